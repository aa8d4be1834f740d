"""Centring without a trial's own speakers: the small tables against the loop over pairs, and what follows from it."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from evenscore import Cosine, DotProduct, Embeddings, InputError, TrialList, score_blocks, score_embeddings
from evenscore.sources import LeftOutCenter
from reference.left_out_centers import left_out_scores

NAMES = ["ann", "bob", "cat", "dan", None]


@st.composite
def embedded(draw, prefix, names=NAMES, least=1, most=7, dim=4):
    """Vectors of unequal numbers of takes, some of speakers who are not known."""
    speakers = draw(st.lists(st.sampled_from(names), min_size=least, max_size=most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    vectors = (rng.normal(size=(len(speakers), dim)) + 3.0).astype(dtype)
    given = speakers if draw(st.booleans()) else None
    return Embeddings([f"{prefix}{at}" for at in range(len(speakers))], vectors, given)


@given(
    enroll=embedded("x", [*NAMES, "eve"]),
    test=embedded("y", [*NAMES, "eve"]),
    more=embedded("z", least=3),
    shared=st.booleans(),
    measure=st.sampled_from(["cosine", "dot"]),
)
@settings(deadline=None)
def test_small_tables_are_the_loop_over_pairs(enroll, test, more, shared, measure):
    others = Embeddings(["o1", "o2"], np.eye(2, 4) + 3, ["oda", "ole"])  # so that somebody is left
    parts = [more, others, enroll] if shared else [more, others]
    background = Embeddings.concat([part.with_speakers(_known(part)) for part in parts])
    scores = LeftOutCenter(background, measure).score(enroll, test)
    wanted = left_out_scores(enroll, test, background, measure)
    tolerance = 1e-9 if enroll.vectors.dtype == test.vectors.dtype == np.float64 else 1e-4
    assert np.allclose(scores.in_memory().scores, wanted, rtol=tolerance, atol=tolerance)
    rows, columns = (at.ravel() for at in np.indices(scores.shape))
    assert np.allclose(scores.pairs(rows, columns), wanted.ravel(), rtol=tolerance, atol=tolerance)


def _known(part):
    return [None] * len(part) if part.speakers is None else part.speakers


def training(dtype=float):
    rng = np.random.default_rng(3)
    speakers = np.repeat(["ann", "bob", "cat", "dan", "eve"], [1, 2, 3, 5, 8])
    return Embeddings([f"u{at}" for at in range(19)], rng.normal(size=(19, 6)).astype(dtype) + 1, speakers)


def test_new_speakers_are_centred_on_everybody():
    known, new = training(), Embeddings(["n1", "n2"], np.random.default_rng(0).normal(size=(2, 6)), ["new", "newer"])
    mean = known.vectors.mean(axis=0)
    for measure, scorer in (("cosine", Cosine(mean)), ("dot", DotProduct(mean))):
        centre = LeftOutCenter(known, measure)
        assert np.allclose(centre.score(new, new).block(), scorer.score(new, new).block())
        assert not centre.concerns(new)
        assert centre.concerns(known)


def test_what_a_speaker_says_does_not_change_the_centre_of_its_trials():
    """Moving all of ann's vectors moves her scores as with a centre that never saw her."""
    known = training()
    mine = known.speakers == "dan"
    moved = Embeddings(known.ids, np.where(mine[:, None], known.vectors + 10, known.vectors), known.speakers)
    probe = known.take(mine)
    assert np.allclose(
        LeftOutCenter(known).score(probe, probe).block(), LeftOutCenter(moved).score(probe, probe).block()
    )


def test_rows_of_training_scores_do_not_add_up_to_zero_by_themselves():
    known = training()
    usual = DotProduct(known.vectors.mean(axis=0)).score(known, known).block()
    assert np.allclose(usual.sum(axis=1), 0.0)  # with its own targets in it
    assert not np.allclose(LeftOutCenter(known, "dot").score(known, known).block().sum(axis=1), 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_lists_and_parts_have_the_numbers_of_the_matrix(dtype):
    known = training(dtype)
    scores = LeftOutCenter(known).score(known, known)
    whole = scores.block()
    assert whole.dtype == dtype
    tiled = scores.in_tiles(256, (3, 5))
    assert len(tiled.places()) > 1
    assert np.allclose(tiled.in_memory().scores, whole, atol=1e-6)
    assert np.array_equal(np.isnan(scores.without_itself().in_memory().scores), np.eye(19, dtype=bool))
    listed = TrialList.from_pairs(["u1", "u7"], ["u2", "u18"])
    assert np.allclose(scores.score_trials(listed).scores, whole[[1, 7], [2, 18]], atol=1e-6)
    assert np.allclose(scores.of_trials(listed).in_memory().scores, whole[[1, 7], [2, 18]], atol=1e-6)
    assert np.allclose(scores.take([3, 1], [0, 9]).block(), whole[np.ix_([3, 1], [0, 9])], atol=1e-6)
    assert scores.identity() == LeftOutCenter(known).score(known, known).identity()
    assert scores.identity() != LeftOutCenter(known, "dot").score(known, known).identity()


def test_it_is_a_scorer_like_others():
    known = training()
    new = Embeddings(["e", "t"], np.random.default_rng(1).normal(size=(2, 6)), ["x", "y"])
    centre = LeftOutCenter(known)
    wanted = left_out_scores(known, known, known, "cosine")
    assert np.allclose(score_embeddings(known, known, scorer=centre).scores, wanted)
    blocks = score_blocks(centre, new, new, known)
    assert np.allclose(np.nan_to_num(blocks.cohort.scores), np.where(np.eye(19), 0.0, wanted))
    assert np.allclose(blocks.enroll.scores, left_out_scores(new, known, known, "cosine"))
    assert score_embeddings(known, known, scorer=centre, cohort=known, method="s").scores.shape == (19, 19)


def test_what_cannot_be_centred_is_refused():
    known = training()
    two = known.take(np.isin(known.speakers, ["ann", "bob"]))
    with pytest.raises(InputError, match="by 2 speakers, so nobody is left for a trial between them"):
        LeftOutCenter(two).score(two, two)
    assert LeftOutCenter(two).score(two.take([0]), known.take([4])).shape == (1, 1)  # somebody is left for these
    with pytest.raises(InputError, match="measure is 'plda'"):
        LeftOutCenter(known, "plda")
    with pytest.raises(InputError, match="no embeddings to centre on"):
        LeftOutCenter(known.take(np.zeros(19, dtype=bool)))
    with pytest.raises(InputError, match="6 components, but the embeddings have 2"):
        LeftOutCenter(known).score(known, Embeddings(["e"], [[1.0, 2.0]]))
    same = Embeddings(["a", "b", "c"], [[1.0, 2.0], [3.0, 1.0], [1.0, 2.0]], ["ann", "bob", "cat"])
    with pytest.raises(InputError, match="the enrolment of the trial in row 0, column 1 is the mean of the speakers"):
        LeftOutCenter(same).score(same, same).in_memory()
