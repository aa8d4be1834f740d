"""Summaries of chunks add up to those of all scores, and changed scores are changed one by one."""

import numpy as np
import pytest

from evenscore import (
    ChunkedBlocks,
    ChunkedTrials,
    InputError,
    LabelledChunks,
    Labels,
    ScoreBlocks,
    TrialList,
    summarize,
    summarize_chunks,
    transform_chunks,
)
from scale.chunked_examples import ids, in_tiles, matrix

E, T = ids("e", 23), ids("t", 31)


@pytest.mark.parametrize("kind", ["speaker", "key"])
def test_summaries_add_up(kind):
    rng = np.random.default_rng(0)
    scores = matrix(rng, E, T, missing=0.1)
    labels = Labels.from_speakers([f"s{n % 5}" for n in range(23)], [f"s{n % 4}" for n in range(31)])
    if kind == "key":
        labels = Labels.from_key(labels.matrix)
    wanted = summarize(scores.scores, labels.matrix, bits=12)
    found = summarize_chunks(in_tiles(scores), labels, bits=12)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    np.testing.assert_allclose(found.costs, wanted.costs, rtol=1e-12)
    trials = scores.to_trials(labels)
    listed = summarize_chunks(
        ChunkedTrials(size=len(trials), reader=ChunkedTrials.of(trials).reader, bounds=(0, 9, len(trials))), bits=12
    )
    np.testing.assert_array_equal(listed.counts, wanted.counts)
    with pytest.raises(InputError, match="labels are missing"):
        summarize_chunks(in_tiles(scores))


def test_scores_are_changed_where_they_are_read():
    scores = matrix(np.random.default_rng(0), E, T, missing=0.1)
    changed = transform_chunks(in_tiles(scores), lambda values: 2 * values, "twice")
    np.testing.assert_array_equal(changed.matrix().scores, 2 * scores.scores)
    assert changed.identity() != transform_chunks(in_tiles(scores), np.negative, "negative").identity()
    trials = TrialList.from_pairs(["a", "b"], ["c", "d"], scores=[1.0, 2.0], labels=[0, 1])
    found = transform_chunks(ChunkedTrials.of(trials), lambda values: np.where(values > 1, np.inf, values), "llr")
    np.testing.assert_array_equal(found.gather().scores, [1.0, np.inf])
    assert found.identity() != ChunkedTrials.of(trials).identity()


def test_repeats_in_several_chunks_are_found_by_a_key():
    trials = TrialList.from_pairs(["a", "b"], ["c", "d"], scores=[1.0, 2.0], labels=[0, 1])
    twice = ChunkedTrials(size=4, reader=_Again(trials), bounds=(0, 2, 4))
    with pytest.raises(InputError, match="4 scores are of the 2 trials of the key, so some trials are listed more"):
        summarize_chunks(twice, trials)


class _Again:
    def __init__(self, trials):
        self.trials = trials

    def read(self, trials):
        return self.trials

    def identity(self):
        return "again"


def test_what_is_given_must_be_right():
    scores = matrix(np.random.default_rng(0), E, T)
    chunked, labels = in_tiles(scores), Labels.from_speakers(E, T)
    with pytest.raises(InputError, match="labels are a ndarray, but must be Labels, or a list"):
        summarize_chunks(chunked, labels.matrix)
    with pytest.raises(InputError, match="unmatched is 'dorp', but must be 'error' or 'drop'"):
        summarize_chunks(chunked, labels, unmatched="dorp")
    with pytest.raises(InputError, match="unmatched is 'dorp'"):
        LabelledChunks(ChunkedBlocks(chunked), labels, unmatched="dorp")
    with pytest.raises(InputError, match="labels are a ndarray, but must be Labels, or a key"):
        LabelledChunks(ChunkedBlocks(chunked), labels.matrix)
    with pytest.raises(InputError, match="blocks are a ScoreBlocks, but must be ChunkedBlocks"):
        LabelledChunks(ScoreBlocks(scores), labels)
    with pytest.raises(InputError, match="cohort_labels are a ndarray, but must be Labels"):
        ChunkedBlocks(chunked, cohort=chunked, cohort_labels=labels.matrix)
    with pytest.raises(InputError, match="which cannot be called"):
        transform_chunks(chunked, 2.0, "twice")
    with pytest.raises(InputError, match=r"made scores of shape \(1, 7\) of those of shape \(5, 7\)"):
        transform_chunks(chunked, lambda values: values[:1], "first").block(slice(0, 5), slice(0, 7))
