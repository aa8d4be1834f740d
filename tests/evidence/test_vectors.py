"""The cohort-evidence model from embeddings and in chunks gives the numbers of the blocks of scores."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.evidence.material import embeddings, evaluation, training

from evenscore import (
    Cosine,
    DotProduct,
    Embeddings,
    InputError,
    ScoreBlocks,
    ScoreModel,
    TrialList,
    fit_evidence,
    fit_plda,
    normalize,
    score_blocks,
    score_embeddings,
)
from evenscore.evidence import (
    EvidenceNormalizer,
    PairSpace,
    impostor_prediction,
    pair_space,
    pair_space_of_vectors,
    within_speaker_part,
)
from evenscore.evidence.features import PATTERNS, restricted
from evenscore.norms.parts import ByBlocks, ByParts
from evenscore.scoring import score_lazily
from evenscore.tables.tile import Cuts

GENERATOR = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5, 0.1], [0.4, 0.2]], beta=[[0.5, 0.2], [0.3, 0.3]], sigma2=[1.0, 1.2])


@pytest.fixture(scope="module")
def model():
    return fit_evidence([training(16, 3, 0)], score_model=GENERATOR)


def some(prefix, n_speakers, takes, seed, name, known=True):
    vectors, speakers = embeddings(n_speakers, takes, seed, name=name)
    return Embeddings([f"{prefix}{n}" for n in range(len(vectors))], vectors, speakers if known else None)


def sides_of(kind):
    enroll, test = some("e", 5, 1, 1, "new"), some("t", 5, 3, 2, "new")
    cohort = some("c", 12, 3, 3, "s", known=kind != "no speakers")
    if kind == "own speakers":
        test = some("t", 5, 3, 2, "s")
    return (test, test, cohort) if kind == "one file" else (enroll, test, cohort)


def scorer_of(name):
    if name == "plda":
        return fit_plda(some("p", 20, 4, 7, "p")).model
    return {"cosine": Cosine(), "dot": DotProduct(mean=np.full(8, 0.3))}[name]


@pytest.mark.parametrize("scorer", ["cosine", "dot", "plda"])
@pytest.mark.parametrize("kind", ["strangers", "one file", "own speakers", "no speakers"])
def test_embeddings_give_the_numbers_of_their_blocks(model, scorer, kind):
    enroll, test, cohort = sides_of(kind)
    how = scorer_of(scorer)
    wanted = normalize(score_blocks(how, enroll, test, cohort), "evidence", model=model).scores
    asked = {"scorer": how, "cohort": cohort, "method": "evidence", "model": model}
    found = score_embeddings(enroll, test, **asked, memory=1e6 if kind == "own speakers" else 900.0)
    np.testing.assert_allclose(found.scores, wanted, rtol=1e-9, atol=1e-9)
    chunks = score_lazily(enroll, test, **asked).in_tiles(300, stored=(4, 5))
    assert isinstance(chunks.source.way, ByBlocks if kind == "own speakers" else ByParts)
    np.testing.assert_allclose(chunks.in_memory().scores, wanted, rtol=1e-9, atol=1e-9)
    pairs = np.random.default_rng(0).choice(len(enroll) * len(test), 20, replace=False)
    trials = TrialList(enroll.ids, test.ids, pairs // len(test), pairs % len(test))
    listed = score_embeddings(enroll, test, trials, **asked)
    np.testing.assert_allclose(listed.scores, wanted.reshape(-1)[pairs], rtol=1e-9, atol=1e-9)
    in_chunks = replace(score_lazily(enroll, test, trials, **asked), layout=Cuts((0, 13, 20))).in_memory()
    np.testing.assert_allclose(in_chunks.scores, listed.scores[in_chunks.match(listed)], rtol=1e-9, atol=1e-9)


def test_own_speakers_need_all_cohort_scores_at_once(model, monkeypatch):
    enroll, test, cohort = sides_of("own speakers")
    asked = {"cohort": cohort, "method": "evidence", "model": model}
    with pytest.raises(InputError, match="needs all 36 x 36 cohort scores at once"):
        score_embeddings(enroll, test, **asked, memory=900.0)
    monkeypatch.setattr("evenscore.scoring.embeddings._MEMORY", 900.0)
    with pytest.raises(InputError, match="needs all 36 x 36 cohort scores at once"):
        score_lazily(enroll, test, **asked)


@pytest.mark.parametrize("exact", [2000, 5], ids=["by Gram matrix", "by search"])
@pytest.mark.parametrize("shared", ["all", "some", "none"])
def test_a_cohort_of_vectors_is_factorized_like_its_matrix(monkeypatch, exact, shared):
    monkeypatch.setattr(sys.modules["evenscore.evidence.pair_space"], "_EXACT", exact)
    cohort = some("c", 12, 3, 3, "s")
    left = {"all": cohort, "some": cohort.take(np.arange(3, 20)), "none": some("d", 9, 2, 4, "s")}[shared]
    new = some("e", 5, 1, 1, "new")
    scores = Cosine().score(left, cohort)
    blocks = score_blocks(Cosine(), new, new, left, cohort)
    spaces = pair_space(blocks.cohort.scores, cohort.speakers, 6), pair_space_of_vectors(scores, cohort.speakers, 6)
    for function, ridge in ((impostor_prediction, 0.3), (within_speaker_part, 0.1)):
        one, other = (
            function(space, space.enroll(blocks.enroll.scores), space.test(blocks.test.scores.T), ridge)
            for space in spaces
        )
        assert other == pytest.approx(one, abs=1e-8)


def test_float32_cohorts_are_factorized_well_enough(monkeypatch):
    cohort, new = some("c", 50, 3, 3, "s"), some("e", 5, 2, 1, "new")
    blocks = score_blocks(Cosine(), new, new, cohort)
    scores = [block.scores for block in (blocks.cohort, blocks.enroll, blocks.test)]
    values = []
    for dtype in (np.float64, np.float32):
        S_I, S_e, S_t = (block.astype(dtype) for block in scores)
        space: PairSpace = pair_space(S_I, cohort.speakers, 6)
        values.append(within_speaker_part(space, space.enroll(S_e), space.test(S_t.T), 0.1))
    assert not np.array_equal(*values)
    assert values[1] == pytest.approx(values[0], abs=1e-4)


@pytest.mark.parametrize("members", [1, 2, 3])
def test_tiny_cohorts_of_embeddings(model, members):
    new, cohort = some("e", 3, 1, 1, "new"), some("c", 3, 1, 3, "s").take(np.arange(members))
    wanted = normalize(score_blocks(Cosine(), new, new, cohort), "evidence", model=model).scores
    found = score_embeddings(new, new, cohort=cohort, method="evidence", model=model).scores
    assert np.abs(found).max() < 20
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_cohort_that_says_nothing_has_no_coordinates(dtype):
    assert len(pair_space(np.full((120, 130), 0.1, dtype=dtype), None).strength) == 0
    sums = np.linspace(0, 1, 120)[:, None] + np.linspace(-3, 1, 130)
    assert len(pair_space(sums.astype(dtype), None).strength) == 0


def in_tiles(scores):
    return None if scores is None else scores.in_tiles(400.0, stored=(2, 3))


def chunked(blocks, trials=None):
    trials = in_tiles(blocks.trials) if trials is None else trials
    return blocks.replace(
        trials=trials, **{name: in_tiles(getattr(blocks, name)) for name in ("enroll", "test", "cohort")}
    )


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("missing", [0, 7])
def test_tiles_give_the_numbers_of_the_matrix(model, pattern, missing):
    blocks = restricted(evaluation(missing=missing), pattern)
    wanted = normalize(blocks, "evidence", model=model).scores
    found = normalize(chunked(blocks), "evidence", model=model)
    assert isinstance(found.source.way, ByBlocks if missing and pattern == "full" else ByParts)
    np.testing.assert_allclose(found.in_memory().scores, wanted, rtol=1e-9, atol=1e-9)
    trials = replace(blocks.trials.to_trials().in_tiles(), layout=Cuts((0, 11, blocks.trials.scores.size)))
    listed = normalize(chunked(blocks, trials), "evidence", model=model).in_memory()
    np.testing.assert_allclose(listed.to_matrix().scores, wanted, rtol=1e-9, atol=1e-9)


def test_own_speakers_and_a_prepared_cohort_in_tiles(model):
    blocks = evaluation(own=True)
    found = normalize(chunked(blocks), "evidence", model=model)
    assert isinstance(found.source.way, ByBlocks)
    np.testing.assert_allclose(found.in_memory().scores, normalize(blocks, "evidence", model=model).scores, atol=1e-9)
    strangers = evaluation()
    cohort = {
        "cohort": strangers.cohort,
        "cohort_enroll_speakers": strangers.cohort_enroll_speakers,
        "cohort_test_speakers": strangers.cohort_test_speakers,
    }
    bare = ScoreBlocks(in_tiles(strangers.trials), enroll=in_tiles(strangers.enroll), test=in_tiles(strangers.test))
    wanted = normalize(strangers, "evidence", model=model).scores
    found = normalize(bare, "evidence", model=model, **cohort).in_memory()
    np.testing.assert_allclose(found.scores, wanted, rtol=1e-9, atol=1e-9)


def test_a_normalizer_without_a_cohort_takes_that_of_each_blocks(model):
    normalizer = EvidenceNormalizer(model)
    for seed in (0, 4):
        blocks = evaluation(cohort_seed=seed)
        wanted = normalize(blocks, "evidence", model=model).scores
        assert normalizer.normalize(blocks).scores == pytest.approx(wanted)


@pytest.mark.parametrize("offset", [0.0, 1e3, -1e4])
@pytest.mark.parametrize("size", [140, 400])
def test_float32_scores_have_the_products_of_the_same_numbers_in_float64(size, offset):
    """With hardly more members than coordinates, the least of these say little, and must be found precisely."""
    single = (np.random.default_rng(1).normal(size=(size, size + 10)) + offset).astype(np.float32)
    found = []
    for scores in (single, single.astype(np.float64)):
        space = pair_space(scores, None)
        found.append(impostor_prediction(space, space.enroll(scores[:9]), space.test(scores.T[:9]), 0.01))
    np.testing.assert_allclose(found[0], found[1], atol=1e-4 * found[1].std())
