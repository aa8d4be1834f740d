"""The score model conditioned on a cohort of embeddings, from sums over its scores instead of the scores."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.model.bilinear_sums import class_sums
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Exceptions, SpeakerBlocks
from evenscore.model.prediction import predict_from_exceptions, predict_from_sums
from evenscore.model.score_weights import ScoreWeights
from evenscore.model.sums import ClassSums, group_order
from evenscore.sources.bilinear import Bilinear
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels

__all__ = ["cohort_weights", "same_utterances"]

Index = npt.NDArray[np.intp]


def cohort_weights(model: ScoreModel, cohort: Bilinear, labels: Labels) -> ScoreWeights:
    """Condition on a cohort whose labels follow from speakers, all known; both sides must have members.

    The score of an utterance against itself, where an id stands on both sides, is left out.
    """
    rows, columns = same_utterances(cohort)
    row_codes, column_codes, number = labels.speaker_codes
    sums = class_sums(cohort, labels)
    if not len(rows):
        blocks = SpeakerBlocks(row_codes=row_codes, column_codes=column_codes, n_speakers=number)
        return ScoreWeights.of(model, predict_from_sums(model, sums, blocks))
    own_class = np.where(row_codes[rows] == column_codes[columns], TARGET, NONTARGET)
    sums = _without(sums, cohort, rows, columns, own_class)
    pattern = _pattern(cohort.shape, _same_speaker_pairs(row_codes, column_codes, number), (rows, columns))
    return ScoreWeights.of(model, predict_from_exceptions(model, sums, pattern))


def same_utterances(cohort: Bilinear) -> tuple[Index, Index]:
    """Return the rows and columns of the utterances that stand on both sides."""
    places = {name: at for at, name in enumerate(cohort.test_ids.tolist())}
    columns = np.array([places.get(name, -1) for name in cohort.enroll_ids.tolist()], dtype=np.intp)
    rows = np.flatnonzero(columns >= 0)
    return rows, columns[rows]


def _without(sums: ClassSums, cohort: Bilinear, rows: Index, columns: Index, own_class: Index) -> ClassSums:
    """Return the sums of rows and columns without one score each; the squares, which nobody asks for, stay."""
    left, right = cohort.left[rows].astype(np.float64), cohort.right[columns].astype(np.float64)
    own = np.einsum("nd,nd->n", left, right) + cohort.left_offset[rows] + cohort.right_offset[columns] - sums.center
    changed = {name: getattr(sums, name).copy() for name in ("rows", "columns", "row_counts", "column_counts")}
    changed["rows"][own_class, rows] -= own
    changed["columns"][own_class, columns] -= own
    changed["row_counts"][own_class, rows] -= 1
    changed["column_counts"][own_class, columns] -= 1
    return ClassSums(center=sums.center, squares=sums.squares, **changed)


def _same_speaker_pairs(row_codes: Index, column_codes: Index, number: int) -> tuple[Index, Index]:
    row_order, row_bounds = group_order(row_codes, number)
    column_order, column_bounds = group_order(column_codes, number)
    n_rows, n_columns = np.diff(row_bounds), np.diff(column_bounds)
    rows = [np.repeat(row_order[row_bounds[g] : row_bounds[g + 1]], n_columns[g]) for g in range(number)]
    columns = [np.tile(column_order[column_bounds[g] : column_bounds[g + 1]], n_rows[g]) for g in range(number)]
    nothing = np.empty(0, dtype=np.intp)
    return np.concatenate([nothing, *rows]), np.concatenate([nothing, *columns])


def _pattern(shape: tuple[int, int], targets: tuple[Index, Index], missing: tuple[Index, Index]) -> Exceptions:
    """Return the pattern of the cohort."""
    own = np.isin(targets[0] * shape[1] + targets[1], missing[0] * shape[1] + missing[1])
    rows, columns = (np.concatenate([some[~own], gone]) for some, gone in zip(targets, missing, strict=True))
    labels = np.full(len(rows), UNKNOWN, dtype=np.int8)
    labels[: np.count_nonzero(~own)] = TARGET
    return Exceptions(n_rows=shape[0], n_columns=shape[1], background=True, rows=rows, columns=columns, labels=labels)
