"""Blocks with labels: what methods are trained on and judged by."""

import numpy as np
import pytest

from evenscore import Embeddings, InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.sources import Cosine

ROWS, COLUMNS = ["e1", "e2"], ["t1", "t2", "t3"]
SCORES = ScoreMatrix([[5.0, np.nan, 1.0], [1.0, 6.0, 0.0]], ROWS, COLUMNS, missing="nan")
LABELS = Labels.from_speakers(["ann", "bob"], ["ann", "bob", "cat"], enroll_ids=ROWS, test_ids=COLUMNS)


def test_own_cohort_fills_all_four_blocks_and_all_speakers():
    blocks = LabelledBlocks.own_cohort(SCORES, LABELS).blocks
    assert blocks.trials == blocks.enroll == blocks.test == blocks.cohort == SCORES
    assert list(blocks.enroll_speakers) == list(blocks.cohort_enroll_speakers) == ["ann", "bob"]
    assert list(blocks.test_speakers) == list(blocks.cohort_test_speakers) == ["ann", "bob", "cat"]


def test_trials_are_the_known_scores_with_labels():
    trials = LabelledBlocks.own_cohort(SCORES, LABELS).trials
    assert list(zip(trials.enroll, trials.test, trials.labels.tolist(), strict=True)) == [
        ("e1", "t1", 1),
        ("e1", "t3", 0),
        ("e2", "t1", 0),
        ("e2", "t2", 1),
        ("e2", "t3", 0),
    ]


def test_labels_are_aligned_with_the_trials():
    turned = LABELS.align(ROWS[::-1], COLUMNS[::-1])
    assert LabelledBlocks(ScoreBlocks(SCORES), turned).labels == LABELS


@pytest.mark.parametrize("with_table", [True, False])
def test_listed_trials_get_their_labels(with_table):
    listed = TrialList(ROWS, COLUMNS, [0, 1], [2, 1], scores=[1.0, 6.0], labels=None if with_table else [0, 1])
    part = LabelledBlocks(ScoreBlocks(listed), LABELS if with_table else None)
    normalized = TrialList(ROWS, COLUMNS, [1], [1], scores=[2.5])
    assert part.trials.labels.tolist() == [0, 1]
    assert part.labelled(normalized).labels.tolist() == [1]


def test_trials_without_labels_are_refused():
    with pytest.raises(InputError, match="no labels"):
        LabelledBlocks(ScoreBlocks(SCORES))
    with pytest.raises(InputError, match="from_speakers"):
        LabelledBlocks.own_cohort(SCORES, Labels.from_key(LABELS.matrix, enroll_ids=ROWS, test_ids=COLUMNS))


def test_scores_that_are_computed_are_not_mistaken_for_those_of_another_block():
    """Computed scores make their source anew at each look: its id must not stand for the scores."""
    vectors = {name: np.random.default_rng(n).normal(size=(8, 3)) for n, name in enumerate("ct")}
    sides = {name: Embeddings([f"{name}{n}" for n in range(8)], values) for name, values in vectors.items()}
    pairs = {"trials": "tt", "enroll": "tc", "test": "ct", "cohort": "cc"}
    for _ in range(50):
        blocks = ScoreBlocks(**{name: Cosine().score(sides[one], sides[other]) for name, (one, other) in pairs.items()})
        part = LabelledBlocks(
            blocks, Labels.from_speakers(range(8), range(8), enroll_ids=sides["t"].ids, test_ids=sides["t"].ids)
        )
        assert part.n_scores == 4 * 64
        for name in pairs:
            found = getattr(part.in_memory().blocks, name).scores
            assert np.array_equal(found, getattr(blocks, name).in_memory().scores)
