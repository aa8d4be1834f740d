"""Features of trials against their definitions, and the promise that no trial meets its own speakers."""

import sys

import numpy as np
import pytest
from tests.evidence.material import evaluation, product, sides, training
from tests.reference import naive_evidence as naive

from evenscore import LabelledBlocks, ScoreBlocks, ScoreMatrix, fit_score_model
from evenscore.evidence import (
    Ridges,
    evidence_features,
    impostor_prediction,
    pair_space,
    pair_space_of_vectors,
    within_speaker_part,
)
from evenscore.evidence.features import TOP, Scales, pattern_of, restricted
from evenscore.evidence.own_pairs import pair_tables
from evenscore.sources import Bilinear


@pytest.fixture(scope="module")
def model():
    part = training()
    return fit_score_model([(part.blocks.trials, part.labels)], 2, tol=1e-6).model


@pytest.fixture(scope="module")
def scales():
    return Scales.estimated([training().blocks])


BLOCKS = {
    "other speakers": lambda: evaluation(),
    "own speakers": lambda: evaluation(own=True),
    "missing scores": lambda: evaluation(missing=9),
    "own speakers, missing scores": lambda: evaluation(own=True, missing=9),
    "the matrix itself": lambda: training(5, 2).blocks,
    "few": lambda: evaluation(n_cohort=3, tests=1),
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("listed", [False, True])
def test_norms_and_scales_are_those_of_the_definition(kind, listed, model, scales):
    blocks = BLOCKS[kind]()
    if listed:
        blocks = as_list(blocks)
    found = evidence_features(restricted(blocks, "pair"), "pair", model, scales, None)
    rows, columns = pairs_of(blocks)
    for name, top in (("s_norm", None), ("as_norm", TOP)):
        for n, (i, j) in enumerate(zip(rows, columns, strict=True)):
            parts = []
            for side, size in (("enroll", blocks.enroll.shape[1]), ("test", blocks.test.shape[0])):
                prior = scales.of(side, top is not None)
                values = naive.cohort_scores(blocks, i, j, side)
                if values:
                    count, mean, std = naive.moments(values, top, size)
                    log = naive.shrunk(count, std, prior, naive.takes(blocks, i, j, side))
                else:
                    mean, log = prior.location, 0.0
                parts.append((mean, log, prior.center))
                if top is None:
                    assert np.ravel(found[f"ls_{side[0]}"])[n] == pytest.approx(log, abs=1e-9)
            score = float(np.ravel(blocks.trials.scores)[n])
            assert np.ravel(found[name])[n] == pytest.approx(naive.normalized(score, parts), rel=1e-9, abs=1e-9)


def as_list(blocks):
    trials = blocks.trials.to_trials().select(np.arange(0, blocks.trials.scores.size, 3))
    return ScoreBlocks(
        trials,
        enroll=blocks.enroll.select(trials.enroll_ids),
        test=blocks.test.select(None, trials.test_ids),
        cohort=blocks.cohort,
        cohort_labels=blocks.cohort_labels,
        enroll_speakers=dict(zip(blocks.trials.enroll_ids, blocks.enroll_speakers, strict=True)),
        test_speakers=dict(zip(blocks.trials.test_ids, blocks.test_speakers, strict=True)),
        cohort_enroll_speakers=blocks.cohort_enroll_speakers,
        cohort_test_speakers=blocks.cohort_test_speakers,
    )


def looked_up(whole, blocks, listed):
    """Return the entries of a matrix that belong to listed trials."""
    rows = [blocks.trials.enroll_ids.tolist().index(name) for name in listed.trials.enroll_ids]
    columns = [blocks.trials.test_ids.tolist().index(name) for name in listed.trials.test_ids]
    return whole[np.array(rows)[listed.trials.enroll_index], np.array(columns)[listed.trials.test_index]]


def pairs_of(blocks):
    if isinstance(blocks.trials, ScoreMatrix):
        return (at.reshape(-1) for at in np.indices(blocks.trials.shape))
    return blocks.trials.enroll_index, blocks.trials.test_index


@pytest.mark.parametrize("listed", [False, True])
def test_pair_features_are_those_of_the_definition(listed):
    blocks = evaluation()
    if listed:
        blocks = as_list(blocks)
    found = pair_tables(blocks, (0.3, 1.0), (0.1,), (128,))
    speakers = blocks.cohort_test_speakers.astype(str)
    for n, (i, j) in enumerate(zip(*pairs_of(blocks), strict=True)):
        for ridge in (0.3, 1.0):
            b, w = naive.pair_values(
                blocks.cohort.scores, speakers, blocks.enroll.scores[i], blocks.test.scores[:, j], ridge, 0.1
            )
            assert np.ravel(found["b", ridge, 128])[n] == pytest.approx(b, abs=1e-7)
            assert np.ravel(found["w", 0.1, 128])[n] == pytest.approx(w, abs=1e-7)


def test_without_a_ridge_a_bilinear_score_is_recovered():
    (CE, _), (CT, ct) = sides(14, 3, 0)
    (E, _), (T, _) = sides(4, 2, 1)
    space = pair_space(product(CE, CT), ct)
    x, y = space.enroll(product(E, CT)), space.test(product(CE, T).T)
    found = impostor_prediction(space, x, y, 0.0)
    expected = product(E - CE.mean(axis=0), T - CT.mean(axis=0))
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_first_coordinates_are_those_of_a_smaller_rank():
    (CE, _), (CT, ct) = sides(14, 3, 0)
    (E, _), (T, _) = sides(4, 2, 1)
    small, cut = pair_space(product(CE, CT), ct, 3), pair_space(product(CE, CT), ct).leading(3)
    for function, ridge in ((impostor_prediction, 0.3), (within_speaker_part, 0.1)):
        values = [function(one, one.enroll(product(E, CT)), one.test(product(CE, T).T), ridge) for one in (small, cut)]
        assert values[1] == pytest.approx(values[0], abs=1e-8)


@pytest.mark.parametrize("rank", [128, 3])
def test_embeddings_give_the_same_coordinates_without_a_matrix(rank):
    (CE, _), (CT, ct) = sides(14, 3, 0)
    (E, _), (T, _) = sides(4, 2, 1)
    rng = np.random.default_rng(2)
    offsets = rng.normal(size=len(CE)), rng.normal(size=len(CT))
    cohort = Bilinear(
        left=CE,
        right=CT,
        enroll_ids=[f"e{n}" for n in range(len(CE))],
        test_ids=[f"t{n}" for n in range(len(CT))],
        left_offset=offsets[0],
        right_offset=offsets[1],
    )
    dense, quick = pair_space(cohort.in_memory().scores, ct, rank), pair_space_of_vectors(cohort, ct, rank)
    assert quick.strength == pytest.approx(dense.strength)
    S_e, S_t = E @ CT.T + offsets[1] + 2.0, (CE @ T.T + offsets[0][:, None] - 1.0).T
    for function, ridge in ((impostor_prediction, 0.3), (within_speaker_part, 0.1)):
        values = [function(one, one.enroll(S_e), one.test(S_t), ridge) for one in (dense, quick)]
        assert values[1] == pytest.approx(values[0], abs=1e-6)


def test_a_randomized_factorization_finds_the_leading_part(monkeypatch):
    (CE, _), (CT, ct) = sides(40, 3, 0)
    exact = pair_space(product(CE, CT), ct, 6)
    monkeypatch.setattr(sys.modules["evenscore.evidence.pair_space"], "_EXACT", 10)
    found = pair_space(product(CE, CT), ct, 6)
    assert found.strength == pytest.approx(exact.strength, rel=1e-6)
    assert np.abs(found.test_map.T @ (exact.test_map * exact.strength)) == pytest.approx(np.eye(6), abs=1e-5)


@pytest.mark.parametrize("exact", [10, 1000])
def test_scores_that_are_all_alike_span_nothing(monkeypatch, exact):
    monkeypatch.setattr(sys.modules["evenscore.evidence.pair_space"], "_EXACT", exact)
    space = pair_space(np.ones((20, 30)), [f"s{at % 7}" for at in range(30)])
    assert space.strength.shape == (0,)
    assert space.enroll(np.ones((2, 30))).shape == (2, 0)


def test_one_test_a_speaker_leaves_nothing_within_speakers():
    (CE, _), (CT, ct) = sides(6, 1, 0)
    space = pair_space(product(CE, CT), ct)
    x = space.enroll(product(CE, CT))
    assert not within_speaker_part(space, x, x, 0.1).any()


def test_no_trial_meets_its_own_speakers(model, scales):
    part = training(8, 3)
    before = evidence_features(part.blocks, "full", model, scales, Ridges())
    scores = part.blocks.trials.scores.copy()
    i, j = 2, 17  # a non-target trial
    e, t = part.blocks.enroll_speakers, part.blocks.test_speakers
    own = {e[i], t[j]}
    touched = np.isin(e, list(own))[:, None] & np.isin(t, list(own))[None]  # scores between its own two speakers
    touched[i, j] = False
    scores[touched] += 50.0
    changed = LabelledBlocks.own_cohort(part.blocks.trials.with_scores(scores), part.labels)
    after = evidence_features(changed.blocks, "full", model, scales, Ridges())
    for name, values in before.items():
        assert after[name][i, j] == pytest.approx(values[i, j], abs=1e-8), name
        assert not np.allclose(after[name], values), name


def test_patterns():
    blocks = evaluation()
    assert pattern_of(blocks) == "full"
    for pattern in ("pair", "enroll", "test", "none"):
        assert pattern_of(restricted(blocks, pattern)) == pattern
