"""Norms from embeddings: folded cohorts give the numbers of the dense blocks, and those of the paper's formula."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError, Labels, ScoreBlocks, ScoreModel, ScoreModelNormalizer, TrialList
from evenscore.model.bilinear_normalizer import BilinearNormalizer
from evenscore.plda import PLDA
from evenscore.sources import Bilinear, Cosine, DotProduct, score_blocks
from reference.dense_score_model import dense_llr

pytestmark = pytest.mark.usefixtures("route")

MODEL = ScoreModel(mu=[0.1, 0.9], alpha=[[0.3, 0.1], [0.2, 0.4]], beta=[[0.2, 0], [-0.1, 0.3]], sigma2=[0.5, 0.7])
PLAIN = PLDA(mean=np.zeros(3), between=2 * np.eye(3), within=np.eye(3))


def embeddings(rng, prefix, count, speakers=None, dim=3, dtype=np.float64):
    return Embeddings([f"{prefix}{n}" for n in range(count)], rng.normal(size=(count, dim)).astype(dtype), speakers)


@st.composite
def cohorts(draw):
    """Cohort speakers of both sides: shared, one-sided, single."""
    names = st.sampled_from(["a", "b", "c", "d"])
    return draw(st.lists(names, min_size=1, max_size=7)), draw(st.lists(names, min_size=1, max_size=7))


@given(cohorts(), st.sampled_from([Cosine(), DotProduct(mean=np.ones(3)), PLAIN]), st.integers(0, 2**32))
def test_llrs_are_those_of_the_papers_formula(speakers, scorer, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (embeddings(rng, p, len(s), s) for p, s in zip(("ce", "ct"), speakers, strict=True))
    enroll, test = embeddings(rng, "e", 2), embeddings(rng, "t", 3)
    labels = Labels.from_speakers(*speakers)
    normalizer = BilinearNormalizer(MODEL, scorer.score(rows, columns), labels)
    llrs = normalizer.normalize(scorer.score(enroll, test)).scores
    dense = [scorer.score(a, b).in_memory().scores for a, b in ((enroll, test), (enroll, columns), (rows, test))]
    cohort = scorer.score(rows, columns).in_memory().scores
    for i in range(2):
        for j in range(3):
            expected = dense_llr(MODEL, dense[0][i, j], dense[1][i], dense[2][:, j], cohort, labels.matrix)
            assert llrs[i, j] == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("scorer", [Cosine(), PLAIN])
@pytest.mark.parametrize("shared", [0, 7, 12])
def test_llrs_are_those_of_dense_blocks(scorer, shared):
    rng = np.random.default_rng(5)
    rows = embeddings(rng, "ce", 12, [f"s{n % 5}" for n in range(12)])
    columns = embeddings(rng, "ct", 9, [f"s{n % 4}" for n in range(9)])
    columns = rows.take(rng.permutation(12)[:shared]) if shared else columns
    enroll, test = embeddings(rng, "e", 6), embeddings(rng, "t", 8)
    cohort = scorer.score(rows, columns)
    labels = Labels.from_speakers(rows.speakers, columns.speakers)
    normalizer = BilinearNormalizer(MODEL, cohort, labels)
    blocks = score_blocks(scorer, enroll, test, rows, columns)
    assert blocks.cohort.n_missing == shared
    expected = ScoreModelNormalizer(MODEL, blocks).normalize(blocks)
    result = normalizer.normalize(scorer.score(enroll, test))
    np.testing.assert_allclose(result.scores, expected.scores, rtol=1e-9, atol=1e-9)
    assert result.enroll_ids.tolist() == enroll.ids.tolist()

    rows = np.array([4, 1])
    block = normalizer.block(scorer.score(enroll, test), rows, slice(2, 7))
    np.testing.assert_allclose(block, expected.scores[rows, 2:7], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("key", [None, "explicit"])
def test_cohorts_without_speakers_are_non_targets_unless_a_key_says_otherwise(key):
    rng = np.random.default_rng(6)
    rows, columns = embeddings(rng, "ce", 5), embeddings(rng, "ct", 4)
    enroll, test = embeddings(rng, "e", 3), embeddings(rng, "t", 2)
    labels = None if key is None else Labels.from_key(rng.integers(-1, 2, (5, 4)))
    blocks = score_blocks(Cosine(), enroll, test, rows, columns)
    blocks = ScoreBlocks(
        blocks.trials, enroll=blocks.enroll, test=blocks.test, cohort=blocks.cohort, cohort_labels=labels
    )
    expected = ScoreModelNormalizer(MODEL, blocks).normalize(blocks).scores
    normalizer = BilinearNormalizer(MODEL, Cosine().score(rows, columns), labels)
    np.testing.assert_allclose(normalizer.normalize(Cosine().score(enroll, test)).scores, expected, rtol=1e-9)


@pytest.mark.parametrize("sides", ["enroll", "test", "none"])
def test_one_sided_and_empty_cohorts(sides):
    rng = np.random.default_rng(7)
    enroll, test = embeddings(rng, "e", 3), embeddings(rng, "t", 2)
    rows, columns = (embeddings(rng, "ce", 4 * (sides == "test")), embeddings(rng, "ct", 5 * (sides == "enroll")))
    blocks = ScoreBlocks(
        Cosine().score(enroll, test).in_memory(),
        enroll=Cosine().score(enroll, columns).in_memory() if sides == "enroll" else None,
        test=Cosine().score(rows, test).in_memory() if sides == "test" else None,
    )
    expected = ScoreModelNormalizer(MODEL, blocks).normalize(blocks).scores
    normalizer = BilinearNormalizer(MODEL, Cosine().score(rows, columns))
    np.testing.assert_allclose(normalizer.normalize(Cosine().score(enroll, test)).scores, expected, rtol=1e-9)


def test_float32_stays_float32_and_close():
    rng = np.random.default_rng(8)
    sides = [embeddings(rng, p, 40, dim=16, dtype=np.float32) for p in ("e", "t", "ce", "ct")]
    doubles = [Embeddings(side.ids, side.vectors.astype(float)) for side in sides]
    results = [
        BilinearNormalizer(MODEL, Cosine().score(*four[2:])).normalize(Cosine().score(*four[:2])).scores
        for four in (sides, doubles)
    ]
    assert results[0].dtype == np.float32
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)


def test_blocks_from_embeddings_are_aligned_and_know_their_speakers():
    rng = np.random.default_rng(9)
    enroll, test = embeddings(rng, "e", 3, list("abc")), embeddings(rng, "t", 2, list("ab"))
    cohort = Embeddings.concat([embeddings(rng, "c", 2, list("xy")), enroll.take([0])])
    blocks = score_blocks(Cosine(), enroll, test, cohort)
    assert blocks.enroll.missing.tolist() == [[False, False, True], [False] * 3, [False] * 3]
    assert blocks.test.n_missing == 0
    assert blocks.cohort.missing.tolist() == np.eye(3, dtype=bool).tolist()
    assert blocks.cohort_enroll_speakers.tolist() == ["x", "y", "a"]
    trials = TrialList.from_pairs(["e2", "e0"], ["t1", "t1"])
    listed = score_blocks(Cosine(), enroll, test, cohort, trials=trials)
    assert listed.enroll_speakers.tolist() == ["c", "a"]
    assert listed.enroll.enroll_ids.tolist() == ["e2", "e0"]
    expected = Cosine().score(enroll, test).in_memory().scores[[2, 0], [1, 1]]
    np.testing.assert_allclose(listed.trials.scores, expected)
    assert score_blocks(Cosine(), enroll, test).cohort is None


def test_trials_that_stand_in_the_cohort_are_refused():
    rng = np.random.default_rng(10)
    cohort, test = embeddings(rng, "c", 4), embeddings(rng, "t", 2)
    normalizer = BilinearNormalizer(MODEL, Cosine().score(cohort, cohort))
    with pytest.raises(InputError, match="'c0', 'c1' of the trials stand in the cohort too"):
        normalizer.normalize(Cosine().score(cohort.take([0, 1]), test))
    with pytest.raises(InputError, match="stand in the cohort too"):
        normalizer.normalize(Cosine().score(test, cohort.take([3])))
    wide = Bilinear(left=np.ones((1, 4)), right=np.ones((1, 4)), enroll_ids=["e"], test_ids=["t"])
    with pytest.raises(InputError, match="the trials have 4 dimensions, but the cohort has 3"):
        normalizer.normalize(wide)
