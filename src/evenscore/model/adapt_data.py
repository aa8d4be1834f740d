"""What the score model is adapted to: trials without labels, some with labels, and their cohort scores."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.dense_scores import DenseScores, dense_scores
from evenscore.tables import NONTARGET, UNKNOWN, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids

__all__ = ["UnlabelledData", "enrolments_of", "hidden_scores", "items_of"]

UnlabelledData = ScoreMatrix | TrialList | ScoreBlocks | tuple[ScoreMatrix, Labels]


def items_of(data: UnlabelledData | Iterable[UnlabelledData]) -> list[UnlabelledData]:
    """Return every independent matrix, list or set of blocks, as it was given."""
    single = isinstance(data, ScoreMatrix | TrialList | ScoreBlocks | LabelledBlocks)
    pair = isinstance(data, tuple) and len(data) == 2 and isinstance(data[1], Labels)
    items = [data] if single or pair else list(data)  # type: ignore[arg-type]
    if not items:
        raise InputError("there are no trials; give a score matrix, a list of trials or score blocks")
    return items  # type: ignore[return-value]


def hidden_scores(data: UnlabelledData | Iterable[UnlabelledData]) -> list[DenseScores]:
    """Return every independent matrix with the labels that are known; the others are hidden."""
    return [_one(item) for item in items_of(data)]


def enrolments_of(item: UnlabelledData, place: int) -> list[str]:
    """Return the ids of the rows that `hidden_scores` makes of an item: those of all enrolments that have a score.

    Rows of arrays have none; they get names that only the item at this place has.
    """
    if isinstance(item, ScoreBlocks):
        cohort = () if item.cohort_enroll_ids is None else item.cohort_enroll_ids.tolist()
        ids, present = [*item.trials.enroll_ids.tolist(), *cohort], _joined_scores(item)[0]
    else:
        scores: Any = item[0] if isinstance(item, tuple) else item
        if isinstance(scores, TrialList):
            assert scores.scores is not None  # noqa: S101
            scored = np.bincount(scores.enroll_index[~np.isnan(scores.scores)], minlength=len(scores.enroll_ids)) > 0
            return scores.enroll_ids[scored].tolist()
        if not isinstance(scores, ScoreMatrix):
            return [f"row {row} of {place}" for row in range(len(scores))]
        ids, present = scores.enroll_ids.tolist(), scores.scores
    return [ids[row] for row in np.flatnonzero(~np.isnan(present).all(axis=1))]


def _one(item: object) -> DenseScores:
    if isinstance(item, LabelledBlocks):
        raise InputError("these blocks have labels, which would be hidden; give their `blocks`")
    if isinstance(item, ScoreBlocks):
        return _joined(item)
    if not isinstance(item, ScoreMatrix | TrialList | tuple):
        raise InputError("data must be a score matrix, a list of trials, score blocks or pairs (scores, labels)")
    return dense_scores([item], labelled=False)[0]


def _joined(blocks: ScoreBlocks) -> DenseScores:
    scores, key = _joined_scores(blocks)
    rows, columns = ([f"{number}" for number in range(size)] for size in scores.shape)
    matrix = ScoreMatrix(scores, rows, columns, missing="nan")
    return dense_scores([(matrix, Labels.from_key(key, enroll_ids=rows, test_ids=columns))], labelled=False)[0]


def _joined_scores(blocks: ScoreBlocks) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]:
    """Put trials and cohort scores into one matrix: an enrolment has the same hidden variable in all of its scores."""
    trials = blocks.trials
    m, n = len(trials.enroll_ids), len(trials.test_ids)
    n_rows = 0 if blocks.cohort_enroll_ids is None else len(blocks.cohort_enroll_ids)
    n_columns = 0 if blocks.cohort_test_ids is None else len(blocks.cohort_test_ids)
    scores = np.full((m + n_rows, n + n_columns), np.nan)
    key = np.full(scores.shape, UNKNOWN, dtype=np.int8)
    if isinstance(trials, ScoreMatrix):
        scores[:m, :n] = trials.scores
    else:
        scores[trials.enroll_index, trials.test_index] = trials.scores
        if trials.labels is not None:
            key[trials.enroll_index, trials.test_index] = trials.labels
    if blocks.enroll is not None:
        scores[:m, n:] = blocks.enroll.scores
        key[:m, n:] = _known(blocks.enroll_speakers, blocks.cohort_test_speakers, blocks.enroll.shape)
    if blocks.test is not None:
        scores[m:, :n] = blocks.test.scores
        key[m:, :n] = _known(blocks.cohort_enroll_speakers, blocks.test_speakers, blocks.test.shape)
    if blocks.cohort is not None and blocks.cohort_labels is not None:
        labels = blocks.cohort_labels.matrix
        scores[m:, n:] = np.where(labels == UNKNOWN, np.nan, blocks.cohort.scores)
        key[m:, n:] = labels
    return scores, key


def _known(enroll: Ids | None, test: Ids | None, shape: tuple[int, int]) -> npt.NDArray[np.int8]:
    """Return labels of scores against a cohort: by speaker where both are known, else non-targets."""
    if enroll is None or test is None:
        return np.full(shape, NONTARGET, dtype=np.int8)
    labels = Labels.from_speakers(enroll, test).matrix
    known: npt.NDArray[np.int8] = np.where(labels == UNKNOWN, np.int8(NONTARGET), labels)
    return known
