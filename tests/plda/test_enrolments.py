"""Enrolments of several utterances: the posterior of the speaker's variable, for any numbers of utterances."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import eigh

from evenscore import Embeddings, InputError
from evenscore.plda import PLDA
from evenscore.plda.projection import Projection
from evenscore.scoring import average_embeddings, enroll_models, score_embeddings
from reference.dense_plda import dense_llr, kaldi_llr


def made(seed, sizes, dim=3, raw=4, **options):
    """A model, enrolments of so many utterances, and tests."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(2, dim, dim))
    matrix = rng.normal(size=(raw, dim)) if raw != dim else None
    projection = Projection(center=rng.normal(size=raw), matrix=matrix, length_normalize=options.pop("length", True))
    between, within = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(dim)
    plda = PLDA(mean=rng.normal(size=dim), between=between, within=within, projection=projection, **options)
    takes = Embeddings([f"u{n}" for n in range(sum(sizes))], 2 * rng.normal(size=(sum(sizes), raw)))
    ends = np.cumsum(sizes)
    members = {
        f"m{k}": takes.ids[end - size : end].tolist() for k, (end, size) in enumerate(zip(ends, sizes, strict=True))
    }
    return plda, takes, members, Embeddings(["t1", "t2"], 2 * rng.normal(size=(2, raw)))


@given(st.integers(0, 2**32), st.lists(st.integers(1, 5), min_size=1, max_size=4), st.booleans())
def test_scores_are_those_of_all_utterances_together(seed, sizes, length):
    plda, takes, members, test = made(seed, sizes, length=length)
    scores = plda.score(enroll_models(plda, takes, members), test).in_memory().scores
    phi, chi = plda.projected(takes).vectors, plda.projected(test).vectors
    for row, name in enumerate(members):
        own = phi[takes.positions(members[name], "take", "the takes")]
        expected = [dense_llr(plda.mean, plda.between, plda.within, own, one) for one in chi]
        np.testing.assert_allclose(scores[row], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("normalize", [True, False])
def test_scores_are_kaldis_for_a_mean_and_its_number(normalize):
    plda, takes, members, test = made(1, [1, 2, 4], dim=3, raw=3, length=False, model_length=normalize)
    psi, V = eigh(plda.between, plda.within)
    scores = plda.score(enroll_models(plda, takes, members), test).in_memory().scores
    mean = plda.mean + plda.projection.center
    for row, name in enumerate(members):
        own = takes.vectors[takes.positions(members[name], "take", "the takes")]
        expected = [
            kaldi_llr(mean, V.T, psi, own.mean(axis=0), len(own), one, normalize=normalize) for one in test.vectors
        ]
        np.testing.assert_allclose(scores[row], expected, rtol=1e-8, atol=1e-8)


def test_enrolments_keep_their_facts_and_go_through_score_embeddings():
    plda, takes, members, test = made(2, [2, 3])
    takes = takes.with_speakers(["ann", "ann", "bob", "bob", "bob"])
    enroll = enroll_models(plda, takes, members)
    assert enroll.speakers.tolist() == ["ann", "bob"]
    scores = score_embeddings(takes, test, scorer=plda, models=members).scores
    np.testing.assert_array_equal(scores, plda.score(enroll, test).in_memory().scores)
    means = average_embeddings(takes, members, length_norm="before")
    by_mean = score_embeddings(takes, test, scorer=plda, models=members, length_norm="before").scores
    np.testing.assert_array_equal(by_mean, plda.score(means, test).in_memory().scores)


def test_a_mean_on_the_side_of_the_tests_is_refused():
    plda, takes, members, test = made(3, [2, 1])
    with pytest.raises(InputError, match="stands on the side of the tests"):
        plda.score(test, enroll_models(plda, takes, members))
