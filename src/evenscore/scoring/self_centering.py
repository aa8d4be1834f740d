"""Training scores of vectors that were centred on their own speakers: recognizing them, and mending them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import Labels, ScoreMatrix

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["SelfCentering", "correct_self_centering", "find_self_centering"]

Array = np.ndarray
_NEAR_ZERO = 0.6  # self-centred sets have -0.1 to 0.4, others 1.3 and more (docs/embeddings.md)
_LEAST_SPEAKERS = 3
_ROUNDING = 1e-5  # of cosines in single precision


@dataclass(frozen=True, kw_only=True)
class SelfCentering:
    """What the scores of a set against itself tell about the centre of its vectors.

    ratio = sum_ab M_ab / sum_a M_aa                                                              (L4)

    with M_ab the mean score of speaker a's enrolments against speaker b's tests. Vectors less their own mean add up to
    nothing, so the non-targets of self-centred scores make up for the targets, and the ratio is about 0. Where the
    centre is somebody else's, the non-targets add nothing or something of their own, and the ratio is 1 or more.
    """

    ratio: float
    n_speakers: int  #: who are on both sides

    @property
    def found(self) -> bool:
        """Whether the scores look as if their vectors had been centred on their own speakers."""
        return self.n_speakers >= _LEAST_SPEAKERS and abs(self.ratio) < _NEAR_ZERO

    def __str__(self) -> str:
        return f"mean scores between {self.n_speakers} speakers add up to {self.ratio:.2f} of those of the targets"


def find_self_centering(scores: ScoreMatrix, labels: Labels | None = None) -> SelfCentering:
    """Tell whether scores look as if their vectors had been centred on their own speakers.

    Parameters
    ----------
    scores
        All scores of a set of speakers against itself, cosines or dot products before any norm.
    labels
        By speaker; None takes the speakers that the scores know.

    Examples
    --------
    >>> from evenscore import Cosine, Embeddings
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(10), 4)
    >>> takes = Embeddings(range(40), rng.normal(size=(10, 16))[speakers] + rng.normal(size=(40, 16)), speakers)
    >>> find_self_centering(Cosine(takes.vectors.mean(axis=0)).score(takes, takes).in_memory()).found
    True
    >>> find_self_centering(Cosine().score(takes, takes).in_memory()).found
    False
    """
    means = _Means.of(scores, labels)
    both = np.flatnonzero(np.isfinite(np.diagonal(means.between)))
    between = means.between[np.ix_(both, both)]
    targets = float(np.trace(between))
    ratio = float(np.nansum(between)) / targets if targets > 0 else np.inf
    return SelfCentering(ratio=ratio, n_speakers=len(both))


def correct_self_centering(scores: ScoreMatrix, labels: Labels | None = None) -> ScoreMatrix:
    """Return about the scores that vectors would have if they were centred without the two speakers of each trial.

    In (L3), dot products with the sum of a speaker's vectors are replaced by the speaker's number of tests times the
    mean score against them, and lengths by 1 for cosines. That holds if the scores are cosines or dot products, of
    vectors centred on their mean, and if all that the mean was made of is among them: one matrix, without phrases, and
    all speakers. From embeddings, `LeftOutCenter` does it exactly.

    Parameters
    ----------
    scores
        All scores of the set against itself. They are taken for cosines if none is beyond 1.
    labels
        By speaker; None takes the speakers that the scores know.

    Examples
    --------
    >>> from evenscore import Cosine, Embeddings
    >>> from evenscore.sources import LeftOutCenter
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(10), 4)
    >>> takes = Embeddings(range(40), rng.normal(size=(10, 16))[speakers] + rng.normal(size=(40, 16)), speakers)
    >>> usual = Cosine(takes.vectors.mean(axis=0)).score(takes, takes).in_memory()
    >>> exact, mended = LeftOutCenter(takes).score(takes, takes).block(), correct_self_centering(usual).scores
    >>> float(np.std(usual.scores - exact).round(3)), float(np.std(mended - exact).round(3))
    (0.036, 0.011)
    """
    p = _Means.of(scores, labels)
    of_rows, of_columns, between = (np.nan_to_num(means) for means in (p.of_rows, p.of_columns, p.between))
    n_a, n_b = p.counts[p.rows][:, None], p.counts[p.columns]
    others = p.rows[:, None] != p.columns  # a target's speaker is left out once
    left = p.counts.sum() - n_a - others * n_b
    if not (left > 0).all():
        raise InputError("there are fewer than 3 speakers with tests, so nobody is left to centre a trial on")
    own_row = of_rows[np.arange(len(p.rows)), p.rows][:, None]
    own_column = of_columns[p.columns, np.arange(len(p.columns))]
    w = 1 / left
    x_sum = w * (n_a * own_row + others * n_b * of_rows[:, p.columns])
    y_sum = w * (n_a * of_columns[p.rows] + others * n_b * own_column)
    own, cross = np.diagonal(between), (between + between.T)[np.ix_(p.rows, p.columns)]
    center = n_a**2 * own[p.rows][:, None] + others * (n_a * n_b * cross + n_b**2 * own[p.columns])
    center = w * w * np.maximum(center, 0.0)  # a squared length
    mended = scores.scores + x_sum + y_sum + center
    if np.nanmax(np.abs(scores.scores), initial=0.0) <= 1 + _ROUNDING:
        lengths = [np.maximum(1 + 2 * shift + center, _ROUNDING) for shift in (x_sum, y_sum)]
        mended = np.clip(mended / np.sqrt(lengths[0] * lengths[1]), -1.0, 1.0)
    return ScoreMatrix(mended.astype(scores.dtype), scores.enroll_axis, scores.test_axis, missing="nan")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Means:
    """Mean scores by speaker; the last speaker is nobody, for rows and columns whose speaker is not known."""

    rows: Int[Array, " k"]  #: the speaker of each enrolment
    columns: Int[Array, " l"]
    counts: Float[Array, " g"]  #: tests of each speaker
    of_rows: Float[Array, "k g"]  #: of each enrolment against each speaker's tests, NaN without any
    of_columns: Float[Array, "g l"]  #: of each speaker's enrolments against each test
    between: Float[Array, "g g"]  #: of each speaker's enrolments against each speaker's tests

    @classmethod
    def of(cls, scores: ScoreMatrix, labels: Labels | None) -> _Means:
        if labels is None:
            labels = Labels.of_axes(scores.enroll_axis, scores.test_axis)
        labels = labels.align(scores.enroll_ids, scores.test_ids)
        rows, columns, number = labels.speaker_codes
        rows, columns = (np.where(side < 0, number, side) for side in (rows, columns))
        known, values = ~np.isnan(scores.scores), np.nan_to_num(scores.scores.astype(np.float64))
        row_sums, row_counts = (_grouped(part, columns, number + 1) for part in (values, known.astype(float)))
        sums, counts = (_grouped(part.T, rows, number + 1).T for part in (row_sums, row_counts))
        column_sums, column_counts = (_grouped(part.T, rows, number + 1).T for part in (values, known.astype(float)))
        tests = np.bincount(columns, minlength=number + 1).astype(float)
        tests[number] = 0.0
        means = [_mean(row_sums, row_counts), _mean(column_sums, column_counts), _mean(sums, counts)]
        means[0][:, number] = means[1][number] = means[2][number] = means[2][:, number] = np.nan
        return cls(rows=rows, columns=columns, counts=tests, of_rows=means[0], of_columns=means[1], between=means[2])


def _grouped(values: npt.NDArray[np.float64], codes: npt.NDArray[np.intp], number: int) -> npt.NDArray[np.float64]:
    """Return for each row the sums over the columns of each group."""
    order = np.argsort(codes, kind="stable")
    groups, start = np.unique(codes[order], return_index=True)
    sums = np.zeros((len(values), number))
    if len(groups):
        sums[:, groups] = np.add.reduceat(values[:, order], start, axis=1)
    return sums


def _mean(sums: Any, counts: Any) -> npt.NDArray[np.float64]:
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
