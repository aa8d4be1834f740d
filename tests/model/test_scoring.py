"""The closed-form score against the paper's two marginal likelihoods over the (N+1) x (M+1) matrix."""

import dask.array as da
import numpy as np
import pytest

from evenscore import (
    InputError,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    TrialList,
    simulate_blocks,
)
from evenscore.model import lgsm_norm
from reference.paper import normalized_score
from reference.score_designs import KINDS, draw_key, draw_model, draw_scores, labels_of

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.8, 0.1], [0.2, 1.1]], beta=[[0.5, 0.0], [0.3, 0.6]], sigma2=[1.0, 1.5])


def names(letter, number):
    return [f"{letter}{n}" for n in range(number)]


def draw_sides(rng, N, M, missing, labelled):
    """Return trials, S_e, S_t and the labels of these; with labels there are recordings beyond the cohort."""
    m, n = rng.integers(1, 4, 2)
    more_e, more_t = rng.integers(0, 3, 2) * labelled
    scores, enroll, test = (2 * rng.normal(size=shape) for shape in ((m, n), (m, M + more_e), (N + more_t, n)))
    if missing:
        enroll[rng.random(enroll.shape) < 0.3] = np.nan
        test[rng.random(test.shape) < 0.3] = np.nan
    keys = [rng.integers(-1, 2, part.shape).astype(np.int8) if labelled else None for part in (enroll, test)]
    sides = [None if rng.random() < 0.15 else part for part in (enroll, test)]
    return scores, *sides, *(None if side is None else key for side, key in zip(sides, keys, strict=True))


def expected_llrs(model, cohort, key, scores, enroll, test, enroll_key, test_key):
    N, M = key.shape
    wide = M if enroll is None else enroll.shape[1], N if test is None else test.shape[0]
    all_scores, all_keys = np.full(wide[::-1], np.nan), np.full(wide[::-1], -1)
    all_scores[:N, :M], all_keys[:N, :M] = cohort, key
    out = np.empty(scores.shape)
    for i, j in np.ndindex(scores.shape):
        e = np.full(wide[0], np.nan) if enroll is None else enroll[i]
        t = np.full(wide[1], np.nan) if test is None else test[:, j]
        e_key = np.zeros(wide[0], int) if enroll_key is None else enroll_key[i]
        t_key = np.zeros(wide[1], int) if test_key is None else test_key[:, j]
        e, t = np.where(e_key < 0, np.nan, e), np.where(t_key < 0, np.nan, t)
        out[i, j] = normalized_score(
            model, scores[i, j], e, t, all_scores, all_keys, np.maximum(e_key, 0), np.maximum(t_key, 0)
        )
    return out


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize(("missing", "labelled"), [(False, False), (True, False), (True, True)])
def test_equal_to_the_papers_formula(missing, labelled, dim):
    for seed in range(16):
        rng = np.random.default_rng([seed, dim])
        kind = KINDS[seed % len(KINDS)]
        key, speakers = draw_key(rng, kind, 7)
        cohort, model = draw_scores(rng, key), draw_model(rng, dim)
        scores, *sides = draw_sides(rng, *key.shape, missing, labelled)
        expected = expected_llrs(model, cohort, key, scores, *sides)
        normalizer = ScoreModelNormalizer(model, cohort, labels_of(rng, kind, key, speakers))
        how = {"rtol": 1e-9, "atol": 1e-9, "err_msg": f"{kind} {seed}"}
        np.testing.assert_allclose(normalizer.llr(scores, *sides), expected, **how)
        rows, cols = (part.ravel()[::-1] for part in np.indices(scores.shape))
        np.testing.assert_allclose(normalizer.llr(scores[rows, cols], *sides, rows, cols), expected[rows, cols], **how)
        lazy = normalizer.llr(da.from_array(scores, (1, 2)), *sides)
        np.testing.assert_allclose(lazy.compute(), expected, **how)
        e, t, e_key, t_key = (
            part if part is None else part[0] if n % 2 == 0 else part[:, 0] for n, part in enumerate(sides)
        )
        one = normalizer.normalize_one(scores[0, 0], e, t, enroll_labels=e_key, test_labels=t_key)
        np.testing.assert_allclose(one, expected[0, 0], **how)


def test_tables_are_aligned_by_id():
    blocks, _ = simulate_blocks(MODEL, ["a", "b"], ["a", "c", "d"], ["e", "f", "g"], ["e", "f", "h", "h"], seed=3)
    expected = ScoreModelNormalizer(MODEL, blocks).normalize(blocks).scores
    np.testing.assert_allclose(lgsm_norm(blocks, model=MODEL).scores, expected)
    order = [3, 1, 0, 2]
    cohort = blocks.cohort.take([2, 0, 1], order)
    labels = Labels.from_speakers(cohort.enroll, cohort.test)
    mixed = ScoreBlocks(blocks.trials, blocks.enroll.take(None, order[::-1]), blocks.test)
    np.testing.assert_allclose(ScoreModelNormalizer(MODEL, cohort, labels).normalize(mixed).scores, expected)
    listed = ScoreBlocks(blocks.trials.to_trials(), blocks.enroll, blocks.test, blocks.cohort)
    found = lgsm_norm(listed, model=MODEL)
    assert isinstance(found, TrialList)
    np.testing.assert_allclose(found.scores, expected.ravel())
    with pytest.raises(InputError, match="ScoreModel"):
        lgsm_norm(blocks, model="model.json")


def test_large_matrices_take_the_compiled_loops(monkeypatch):
    import evenscore.large
    import evenscore.model.sums

    rng = np.random.default_rng(2)
    cohort, scores = rng.normal(size=(30, 20)).astype(np.float32), rng.normal(size=(15, 12)).astype(np.float32)
    enroll, test = rng.normal(size=(15, 20)), rng.normal(size=(30, 12))
    cohort[3, 4] = np.nan
    plain = ScoreModelNormalizer(MODEL, cohort).llr(scores, enroll, test)
    monkeypatch.setattr(evenscore.model.sums, "COMPILED", 0)
    monkeypatch.setattr(evenscore.large, "COMPILED", 0)
    normalizer = ScoreModelNormalizer(MODEL, cohort)
    np.testing.assert_allclose(normalizer.llr(scores, enroll, test), plain, rtol=1e-5)
    assert normalizer.llr(scores, enroll, test, out=scores) is scores  # in place
    np.testing.assert_allclose(scores, plain, rtol=1e-5)


def test_llrs_go_into_an_array_of_the_user():
    rng = np.random.default_rng(5)
    scores, enroll, out = rng.normal(size=(4, 3)), rng.normal(size=(4, 6)), np.empty((3, 4)).T
    enroll[1, 2] = np.nan  # two kinds of rows
    normalizer = ScoreModelNormalizer(MODEL, np.zeros((0, 6)))
    assert normalizer.llr(scores, enroll, out=out) is out
    np.testing.assert_array_equal(out, normalizer.llr(scores, enroll))
    for odd in (np.empty((3, 4)), np.empty((4, 3), int)):
        with pytest.raises(InputError, match="out must be"):
            normalizer.llr(scores, enroll, out=odd)


def test_whole_numbers_have_llrs_that_are_not():
    normalizer = ScoreModelNormalizer(ScoreModel(mu=[0.0, 4.0], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1.0, 1.0]))
    np.testing.assert_array_equal(normalizer.llr(np.array([[3, 1]])), normalizer.llr(np.array([[3.0, 1.0]])))


def test_wrong_shapes_are_refused():
    normalizer = ScoreModelNormalizer(MODEL, ScoreMatrix(np.zeros((2, 3)), names("N", 2), names("M", 3)))
    with pytest.raises(InputError, match="3 members"):
        normalizer.normalize_one(1.0, [1.0, 2.0])
    with pytest.raises(InputError, match="agree"):
        ScoreModelNormalizer(MODEL, np.zeros((2, 3)), np.zeros((3, 2)))
