"""The statistics of training for bilinear scores, without forming a score of two different speakers.

With both sides centred at their means, s_ij - c = u_i . v_j + p_i + q_j, where u, v, p and q each sum to zero and c is
the mean score. So row i sums to L p_i, column j to K q_j, and the squares to

    <U'U, V'V> + L |p|^2 + K |q|^2                                  (B2)

in which no term is negative and no digit is lost. Same-speaker scores are visited one by one, or, where a speaker has
very many, summed by (B2) again; scores of different speakers are the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.model.patterns import LabelledSums, SpeakerBlocks, paired_blocks
from evenscore.model.sums import ClassSums, group_order
from evenscore.model.table_sums import pattern_of_labels
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.chunks import sum_of_chunks
from evenscore.tables import NONTARGET, TARGET, Labels
from evenscore.threads import in_parallel

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["class_sums", "cohort_sums", "same_utterances", "training_sums"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Side:
    """One side of (B1): vectors and offsets of some enrolments or tests."""

    vectors: npt.NDArray[Any]
    offset: Float[Array, " n"]

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, at: npt.NDArray[np.intp]) -> _Side:
        return _Side(vectors=self.vectors[at], offset=self.offset[at])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """Sums of (score - center) over a whole rectangle of scores."""

    center: float
    rows: Float[Array, " k"]
    columns: Float[Array, " l"]
    squares: float

    def recentered(self, center: float) -> _Sums:
        shift = self.center - center
        n_rows, n_columns = len(self.rows), len(self.columns)
        return _Sums(
            center=center,
            rows=self.rows + n_columns * shift,
            columns=self.columns + n_rows * shift,
            squares=self.squares + 2 * shift * float(self.rows.sum()) + n_rows * n_columns * shift**2,
        )


def class_sums(scores: Bilinear, labels: Labels) -> ClassSums:
    """Return the sums that training needs, per class, row and column, in O((K + L) d^2) operations.

    Labels must follow from speakers, all of them known.
    """
    _check_labels(scores, labels)
    row_codes, column_codes, n_speakers = labels.speaker_codes
    # offsets less the first one of their side: a large common offset then costs no digits
    pilots = [float(offset[0]) if len(offset) else 0.0 for offset in (scores.left_offset, scores.right_offset)]
    left = _Side(vectors=scores.left, offset=scores.left_offset - pilots[0])
    right = _Side(vectors=scores.right, offset=scores.right_offset - pilots[1])
    everything = _sum_rectangle(left, right)
    row_order, row_bounds = group_order(row_codes, n_speakers)
    column_order, column_bounds = group_order(column_codes, n_speakers)
    targets = _sum_targets(left, right, everything.center, row_order, row_bounds, column_order, column_bounds)
    target_rows = np.diff(column_bounds)[row_codes].astype(float)
    target_columns = np.diff(row_bounds)[column_codes].astype(float)
    other_rows, other_columns = len(right) - target_rows, len(left) - target_columns
    others = max(everything.squares - targets.squares, 0.0) if other_rows.any() else 0.0
    return ClassSums(
        center=everything.center + sum(pilots),
        rows=np.stack([np.where(other_rows > 0, everything.rows - targets.rows, 0.0), targets.rows]),
        columns=np.stack([np.where(other_columns > 0, everything.columns - targets.columns, 0.0), targets.columns]),
        squares=np.array([others, targets.squares]),
        row_counts=np.stack([other_rows, target_rows]),
        column_counts=np.stack([other_columns, target_columns]),
    )


def same_utterances(scores: Bilinear) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the rows and columns of the utterances that stand on both sides."""
    columns = scores.test_axis.find(scores.enroll_ids)
    rows = np.flatnonzero(columns >= 0)
    return rows, columns[rows]


def training_sums(scores: Bilinear, labels: Labels, *, keep_self_pairs: bool = False) -> LabelledSums:
    """Return the sums that training needs; an utterance is not compared with itself unless this is asked for.

    Labels must follow from speakers, all of them known.
    """
    sums, blocks = class_sums(scores, labels), SpeakerBlocks.of(labels)
    rows, columns = same_utterances(scores)
    if keep_self_pairs or not len(rows):
        return LabelledSums(sums=sums, pattern=blocks)
    pattern = paired_blocks(blocks, rows, columns) or pattern_of_labels(labels, rows, columns)
    return LabelledSums(sums=_without_pairs(sums, scores, labels, rows, columns), pattern=pattern)


def cohort_sums(cohort: Bilinear, labels: Labels) -> LabelledSums:
    """Return the sums of a cohort against itself, in which an utterance is not compared with itself.

    Labels must follow from speakers, all of them known.
    """
    (rows, columns), sums = same_utterances(cohort), class_sums(cohort, labels)
    pattern = pattern_of_labels(labels, rows, columns)
    return LabelledSums(sums=_without_pairs(sums, cohort, labels, rows, columns), pattern=pattern)


def _without_pairs(
    sums: ClassSums,
    scores: Bilinear,
    labels: Labels,
    rows: npt.NDArray[np.intp],
    columns: npt.NDArray[np.intp],
) -> ClassSums:
    """Take pairs, at most one of each row and column, out of sums."""
    left, right = scores.left[rows].astype(np.float64), scores.right[columns].astype(np.float64)
    own = np.einsum("nd,nd->n", left, right) + scores.left_offset[rows] + scores.right_offset[columns] - sums.center
    row_codes, column_codes, _ = labels.speaker_codes
    own_class = np.where(row_codes[rows] == column_codes[columns], TARGET, NONTARGET)
    changed = {name: getattr(sums, name).copy() for name in ("rows", "columns", "row_counts", "column_counts")}
    changed["squares"] = np.maximum(sums.squares - np.bincount(own_class, own**2, 2), 0.0)
    changed["rows"][own_class, rows] -= own
    changed["columns"][own_class, columns] -= own
    changed["row_counts"][own_class, rows] -= 1
    changed["column_counts"][own_class, columns] -= 1
    return replace(sums, **changed)


def _check_labels(scores: Bilinear, labels: Labels) -> None:
    if labels.shape != scores.shape:
        size = f"{scores.shape[0]} x {scores.shape[1]}"
        raise InputError(f"scores are {size}, but labels are {labels.shape[0]} x {labels.shape[1]}")
    if not labels.by_speaker or labels.n_unknown:
        raise InputError("scores from embeddings need labels by speaker, with every speaker known")
    for ids, known in ((scores.enroll_ids, labels.enroll_ids), (scores.test_ids, labels.test_ids)):
        if known is not None and not np.array_equal(ids, known):
            raise InputError(
                "labels and scores have ids in a different order; give labels.align(scores.enroll_ids, scores.test_ids)"
            )


def _sum_rectangle(left: _Side, right: _Side) -> _Sums:
    """Sum all scores of two sides by (B2)."""
    left_mean, right_mean = _mean(left.vectors), _mean(right.vectors)
    left_offset, right_offset = _mean(left.offset[:, None])[0], _mean(right.offset[:, None])[0]
    U_gram, p = _centered_gram(left.vectors, left_mean, right_mean)
    V_gram, q = _centered_gram(right.vectors, right_mean, left_mean)
    p += left.offset - left_offset
    q += right.offset - right_offset
    n_rows, n_columns = len(left), len(right)
    return _Sums(
        center=float(left_mean @ right_mean + left_offset + right_offset),
        rows=n_columns * p,
        columns=n_rows * q,
        squares=float(np.vdot(U_gram, V_gram) + n_columns * (p @ p) + n_rows * (q @ q)),
    )


def _mean(vectors: npt.NDArray[Any]) -> Float[Array, " d"]:
    total = sum_of_chunks(vectors, vectors.shape[1:], lambda _, chunk: np.ones(len(chunk)) @ chunk)
    return total / max(len(vectors), 1)


def _centered_gram(
    vectors: npt.NDArray[Any], mean: Float[Array, " d"], other_mean: Float[Array, " d"]
) -> tuple[Float[Array, "d d"], Float[Array, " n"]]:
    """Return U'U and U m for the centred vectors U and the mean m of the other side."""
    products = np.empty(len(vectors))

    def gram(part: slice, chunk: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        centered = chunk - mean
        products[part] = centered @ other_mean
        return np.asarray(centered.T @ centered)

    return sum_of_chunks(vectors, (vectors.shape[1], vectors.shape[1]), gram), products


def _sum_targets(
    left: _Side,
    right: _Side,
    center: float,
    row_order: npt.NDArray[np.intp],
    row_bounds: npt.NDArray[np.intp],
    column_order: npt.NDArray[np.intp],
    column_bounds: npt.NDArray[np.intp],
) -> _Sums:
    """Sum the scores of equal speakers; `rows` and `columns` are in the order of the sides."""
    rows, columns = np.zeros(len(left)), np.zeros(len(right))
    n_rows, n_columns = np.diff(row_bounds), np.diff(column_bounds)
    by_gram = n_rows * n_columns > (n_rows + n_columns) * left.vectors.shape[1]
    dim, dtype = left.vectors.shape[1], np.result_type(left.vectors, right.vectors)
    squares = 0.0
    if few(int((n_rows * n_columns)[~by_gram].sum()), dim):
        for g in np.flatnonzero(~by_gram):
            row_at = row_order[row_bounds[g] : row_bounds[g + 1]]
            column_at = column_order[column_bounds[g] : column_bounds[g + 1]]
            scores = left.vectors[row_at].astype(np.float64) @ right.vectors[column_at].astype(np.float64).T
            scores += (left.offset[row_at] - center)[:, None] + right.offset[column_at]
            rows[row_at], columns[column_at] = scores.sum(axis=1), scores.sum(axis=0)
            squares += float((scores**2).sum())
    else:
        from evenscore.sources.kernels import add_same_speaker_pairs

        by_speaker, speakers = np.zeros(len(n_rows)), np.flatnonzero(~by_gram)
        sides = tuple(np.ascontiguousarray(side.vectors, dtype=dtype) for side in (left, right))
        offsets = left.offset - center, np.ascontiguousarray(right.offset)
        pairs = (*sides, *offsets, row_order, row_bounds, column_order, column_bounds, speakers)
        in_parallel(
            lambda start, stop: add_same_speaker_pairs(*pairs, start, stop, rows, columns, by_speaker),
            len(speakers),
            dim,
        )
        squares = float(by_speaker.sum())
    for g in np.flatnonzero(by_gram):
        row_at = row_order[row_bounds[g] : row_bounds[g + 1]]
        column_at = column_order[column_bounds[g] : column_bounds[g + 1]]
        block = _sum_rectangle(left.take(row_at), right.take(column_at)).recentered(center)
        rows[row_at], columns[column_at] = block.rows, block.columns
        squares += block.squares
    return _Sums(center=center, rows=rows, columns=columns, squares=squares)
