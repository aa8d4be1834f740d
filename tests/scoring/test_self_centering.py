"""Self-centred scores: recognized where they are, and mended nearly as by the embeddings themselves."""

import numpy as np
import pytest

from evenscore import Cosine, DotProduct, Embeddings, InputError, Labels, ScoreMatrix
from evenscore.scoring import correct_self_centering, find_self_centering
from evenscore.sources import LeftOutCenter
from reference.self_centering import naive_correction, naive_ratio


def takes(sizes=(1, 2, 3, 4, 5, 4, 3, 4), seed=0, unknown=0):
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    vectors = rng.normal(size=(len(sizes), 12))[codes] + 0.6 * rng.normal(size=(len(codes), 12)) + 0.5
    speakers = [None if at < unknown else f"s{code}" for at, code in enumerate(codes)]
    return Embeddings([f"u{at}" for at in range(len(codes))], vectors, speakers)


def scored(embeddings, kind=Cosine, missing=0.0):
    scores = kind(embeddings.vectors.mean(axis=0)).score(embeddings, embeddings).in_memory()
    gone = np.random.default_rng(1).random(scores.shape) < missing
    return ScoreMatrix(np.where(gone, np.nan, scores.scores), scores.enroll_axis, scores.test_axis, missing="nan")


@pytest.mark.parametrize("kind", [Cosine, DotProduct])
@pytest.mark.parametrize(("unknown", "missing"), [(0, 0.0), (3, 0.0), (0, 0.3), (4, 0.2)])
def test_figures_are_those_of_the_definition(kind, unknown, missing):
    known = takes(unknown=unknown)
    scores = scored(known, kind, missing)
    assert find_self_centering(scores).ratio == pytest.approx(
        naive_ratio(scores.scores, known.speakers, known.speakers)
    )
    wanted = naive_correction(scores.scores, known.speakers, known.speakers, cosine=kind is Cosine)
    wanted = np.clip(wanted, -1, 1) if kind is Cosine else wanted
    assert np.allclose(correct_self_centering(scores).scores, wanted, equal_nan=True)


def test_dot_products_of_a_whole_set_are_mended_exactly():
    known = takes()
    exact = LeftOutCenter(known, "dot").score(known, known).block()
    assert np.allclose(correct_self_centering(scored(known, DotProduct)).scores, exact)


def test_cosines_are_mended_nearly():
    known = takes(sizes=(6,) * 10)
    exact = LeftOutCenter(known).score(known, known).block()
    usual = scored(known)
    before, after = (np.sqrt(np.mean((part.scores - exact) ** 2)) for part in (usual, correct_self_centering(usual)))
    assert after < before / 4


@pytest.mark.parametrize("seed", range(5))
def test_self_centred_scores_are_recognized_and_others_are_not(seed):
    known, others = takes(seed=seed), takes(seed=seed + 100)
    assert find_self_centering(scored(known)).found
    assert find_self_centering(scored(known, DotProduct)).ratio == pytest.approx(0.0, abs=0.5)
    for scorer in (Cosine(), Cosine(others.vectors.mean(axis=0)), LeftOutCenter(known)):
        assert not find_self_centering(scorer.score(known, known).in_memory()).found
    assert not find_self_centering(correct_self_centering(scored(known))).found


def test_labels_can_come_apart_from_the_scores():
    known = takes()
    scores = scored(known).with_axes(known.axis.with_speakers(None), known.axis.with_speakers(None))
    labels = Labels.from_speakers(known.speakers, known.speakers, enroll_ids=known.ids, test_ids=known.ids)
    assert find_self_centering(scores, labels) == find_self_centering(scored(known))
    assert "mean scores between 8 speakers add up to" in str(find_self_centering(scores, labels))


def test_two_speakers_are_too_few():
    two = takes(sizes=(2, 3))
    assert not find_self_centering(scored(two)).found
    with pytest.raises(InputError, match="fewer than 3 speakers"):
        correct_self_centering(scored(two))
