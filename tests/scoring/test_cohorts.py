"""Choosing cohorts."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError
from evenscore.scoring import average_embeddings, make_cohort


def takes(seed=0, size=30, speakers=6):
    rng = np.random.default_rng(seed)
    owner = rng.integers(speakers, size=size)
    return Embeddings(
        [f"u{i}" for i in range(size)],
        rng.normal(size=(size, 4)) + 3 * owner[:, None],
        [f"s{k}" for k in owner],
        columns={"gender": np.where(owner % 2, "f", "m"), "duration": rng.random(size)},
    )


@pytest.mark.parametrize("length_norm", ["none", "before", "after", "both"])
def test_one_mean_per_speaker(length_norm):
    data = takes()
    cohort = make_cohort(data, unit="speaker", length_norm=length_norm)
    assert set(cohort.ids) == set(data.speakers)
    assert list(cohort.ids) == list(cohort.speakers)
    vectors = data.vectors
    if length_norm in ("before", "both"):
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for name, vector in zip(cohort.ids, cohort.vectors, strict=True):
        mean = vectors[data.speakers == name].mean(axis=0)
        if length_norm in ("after", "both"):
            mean = mean / np.linalg.norm(mean)
        np.testing.assert_allclose(vector, mean)
    assert set(cohort.columns) == {"gender"}  # the durations of a speaker differ


@pytest.mark.parametrize("pick", ["random", "kmeans"])
@given(seed=st.integers(0, 50), size=st.integers(1, 30))
def test_a_subset_is_reproducible_and_without_repeats(pick, seed, size):
    data = takes()
    cohort = make_cohort(data, size=size, pick=pick, seed=seed)
    assert cohort == make_cohort(data, size=size, pick=pick, seed=seed)
    assert len(cohort) == size
    order = [list(data.ids).index(name) for name in cohort.ids]
    assert order == sorted(set(order))


def test_k_means_finds_the_clusters():
    rng = np.random.default_rng(1)
    centers = 50 * np.eye(5)
    owner = np.repeat(np.arange(5), [40, 3, 1, 20, 9])
    data = Embeddings([f"u{i}" for i in range(len(owner))], centers[owner] + rng.normal(size=(len(owner), 5)))
    chosen = make_cohort(data, size=5, pick="kmeans")
    assert sorted(np.argmax(chosen.vectors, axis=1)) == [0, 1, 2, 3, 4]


def test_k_means_of_equal_vectors_gives_different_members():
    data = Embeddings([f"u{i}" for i in range(6)], np.ones((6, 2)))
    assert len(set(make_cohort(data, size=4, pick="kmeans").ids)) == 4


def test_excluded_speakers_are_gone():
    cohort = make_cohort(takes(), exclude_speakers=["s1", "s4", "nobody"])
    assert set(cohort.speakers) == {"s0", "s2", "s3", "s5"}


def test_utterances_at_length_one():
    cohort = make_cohort(takes(), length_norm="after")
    np.testing.assert_allclose(np.linalg.norm(cohort.vectors, axis=1), 1)
    assert list(cohort.ids) == list(takes().ids)


def test_averages_keep_what_their_members_share():
    data = takes()
    means = average_embeddings(data, {"mixed": list(data.ids), "one": ["u3"]})
    assert means.speakers[0] is None
    assert means.speakers[1] == data.speakers[3]
    np.testing.assert_allclose(means.vectors[0], data.vectors.mean(axis=0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"size": 31}, "from 1 to 30"),
        ({"size": 0}, "from 1 to 30"),
        ({"size": 2.5}, "from 1 to 30"),
        ({"unit": "word"}, "'utterance' or 'speaker'"),
        ({"pick": "best"}, "'random' or 'kmeans'"),
        ({"length_norm": "twice"}, "length_norm is 'twice'"),
    ],
)
def test_bad_options_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        make_cohort(takes(), **change)


def test_speakers_must_be_known():
    nameless = Embeddings(["u1"], [[1.0]])
    with pytest.raises(InputError, match="needs the speaker of each utterance"):
        make_cohort(nameless, unit="speaker")
    with pytest.raises(InputError, match="embeddings have none"):
        make_cohort(nameless, exclude_speakers=["ann"])
    with pytest.raises(InputError, match="speaker of 'u2' is not known"):
        make_cohort(Embeddings(["u1", "u2"], [[1.0], [2.0]], ["ann", None]), unit="speaker")
    with pytest.raises(InputError, match="no utterances"):
        average_embeddings(nameless, {"m": []})
    with pytest.raises(InputError, match="length 0"):
        average_embeddings(Embeddings(["u1"], [[0.0]]), {"m": ["u1"]}, length_norm="before")
