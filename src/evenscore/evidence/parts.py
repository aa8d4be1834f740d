"""The cohort-evidence model where a trial's two sides meet only at the very end: numbers per element, then one pass.

It holds for trials whose speakers are not in the cohort; if the head asks the score model, cohort scores must be
complete, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.evidence.features import SIDES, TOP, Scales, shrunk_log_scale, shrunk_log_scale_of_one, summary_of
from evenscore.evidence.head import BEND, EvidenceHead
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.pair_space import PairSpace
from evenscore.model.score_weights import ScoreWeights
from evenscore.norms.sides import turned
from evenscore.norms.statistics import one_row_statistics, row_statistics
from evenscore.tables.arrays import near_zero
from evenscore.threads import in_parallel, product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["EvidenceParts"]

Array = np.ndarray
Part = npt.NDArray[np.float64]  #: n x width, a row for each member

_NUMBERS = 7  # per element, beside its coordinates
_PIECE = 1 << 22  # products of coordinates that are kept at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class _Products:
    """What a side's cohort scores are multiplied with: the two shifts of the score model, then the coordinates.

    The columns for coordinates add up to 0, so that they do not see the mean of a row.
    """

    basis: Float[Array, "c 2+r"]
    constant: Float[Array, " 2+r"]
    turn: Float[Array, "r r"] | None  #: applied to the coordinates of enrolments

    def of(self, scores: npt.NDArray[Any]) -> Float[Array, "m 2+r"]:
        """Return the shifts and the coordinates."""
        scores, level = near_zero(scores)
        found = product(scores, self.basis.astype(scores.dtype, copy=False)).astype(np.float64)
        found += self.constant + level * self.basis.sum(axis=0)
        if self.turn is not None:
            found[:, 2:] = product(found[:, 2:], self.turn)
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class EvidenceParts:
    """A cohort-evidence model prepared for a cohort, as numbers of each element of either side.

    An element has 7 numbers: for s_norm and as_norm the factor of the score and the term to subtract, what the side
    adds to z by itself, and its parts of the score model's two predicted scores. Then come its coordinates, those of
    enrolments turned so that their product with a test's coordinates is what b and w add to z.

    Attributes
    ----------
    pattern, head, scales
        Of the model, for the blocks that there are.
    takes
        Takes of a member's speaker in the cohort of the enrolments, and in that of the tests, see `cohort_takes`.
    enroll, test
        The products of each side; None if the head uses neither the score model nor b and w.
    model
        Constants of the score model's log-likelihood ratio, NaN if the head does not use it.
    """

    sides_alike = False

    pattern: str
    head: EvidenceHead
    scales: Scales
    takes: tuple[float, float] = (1.0, 1.0)
    enroll: _Products | None = None
    test: _Products | None = None
    model: Float[Array, "3"] | None = None
    endless: bool = False  #: see `Pass`

    @classmethod
    def of(
        cls,
        model: CohortEvidence,
        pattern: str,
        takes: tuple[float, float],
        weights: ScoreWeights | None = None,
        space: PairSpace | None = None,
    ) -> EvidenceParts:
        """Prepare a model.

        Parameters
        ----------
        model
            What was trained.
        pattern
            Which blocks there are; the head must be of this pattern.
        takes
            Of the two cohorts.
        weights
            Of the cohort scores in the score model's predictions, None if the head does not use them.
        space
            Coordinates for b and w, None if the head does not use them.
        """
        head, turn = model.heads[pattern], None
        if weights is None and space is None:
            return cls(pattern=pattern, head=head, scales=model.scales, takes=takes)
        if space is not None:
            of_b, of_w = (head.weight[name] * head.unit[name] if name in head.extras else 0.0 for name in ("b", "w"))
            turn = space.operator(model.ridges.impostor, model.ridges.within, (of_b, of_w))
        return cls(
            pattern=pattern,
            head=head,
            scales=model.scales,
            takes=takes,
            enroll=_products("enroll", weights, space, turn),
            test=_products("test", weights, space, None),
            model=None if weights is None else np.array([*weights.half, weights.constant]),
        )

    @property
    def width(self) -> int:
        """How many numbers an element has."""
        return _NUMBERS + (0 if self.enroll is None else len(self.enroll.constant) - 2)

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments, from all of their cohort scores; NaN if that cannot be."""
        return self._part("enroll", scores)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        return self._part("test", scores.T if scores.T.flags.c_contiguous else turned(scores))

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials, from the numbers of their enrolments and tests."""
        assert trials.scores is not None  # noqa: S101
        scores = np.ascontiguousarray(trials.scores)
        constant, constants = self._constants
        rows = enroll[:, :_NUMBERS].copy()
        rows[:, 4] += constant
        columns = np.ascontiguousarray(test[:, :_NUMBERS])
        x, y = (part[:, _NUMBERS:].astype(scores.dtype) for part in (enroll, test))
        out = np.empty_like(scores)
        if few(scores.size):
            tile = trials.tile
            numbers = [sum(tile.pair(*sides)) for sides in zip(rows.T, columns.T, strict=True)]
            pairs = np.einsum("nd,nd->n", x[tile.rows], y[tile.columns]) if trials.listed else x @ y.T
            out[...] = _head_of(scores.astype(np.float64), pairs, numbers, *constants)
        elif not trials.listed:
            _matrix(scores, x, y, rows, columns, constants, out)
        else:
            from evenscore.evidence.kernels import head_list

            listed = (scores, trials.enroll_index, trials.test_index, x, y, rows, columns)
            in_parallel(lambda start, stop: head_list(*listed, *constants, start, stop, out), len(out), 8 + x.shape[1])
        return trials.with_scores(out)

    @cached_property
    def _constants(self) -> tuple[float, tuple[Any, ...]]:
        """The constant part of z, and what else the head takes besides the numbers of a trial's two sides."""
        slopes, shares, constant = _mixture(self.head)
        model = np.full(3, np.nan) if self.model is None else self.model
        return constant, (model, slopes, shares, self.head.weight[BEND], _log_bounds(self.head))

    def meet(self, score: float, enroll: Part, test: Part) -> float:
        """Return the log-likelihood ratio of a single trial, from the numbers of its two sides."""
        constant, constants = self._constants
        numbers = (enroll[:_NUMBERS] + test[:_NUMBERS]).tolist()
        numbers[4] += constant
        return float(_head_of(score, enroll[_NUMBERS:] @ test[_NUMBERS:], numbers, *constants))

    def _part(self, side: str, scores: npt.NDArray[Any]) -> Part:
        out = np.zeros((len(scores), self.width))
        if side not in SIDES[self.pattern]:
            return out
        scores = np.ascontiguousarray(scores)
        write = self._write_single if self.endless else self._write_view
        for at, view, top in self._views:
            write(out, side, at, view, top, scores)
        products = self.enroll if side == "enroll" else self.test
        if products is not None:
            out[:, 5:] = products.of(scores)
        return out

    @cached_property
    def _views(self) -> list[tuple[int, str, float | None]]:
        """Where the numbers of each norm that the head uses stand, its name, and the share of the cohort it takes."""
        return [each for each in ((0, "s_norm", None), (2, "as_norm", TOP)) if each[1] in self.head.views]

    def _write_single(
        self, out: Part, side: str, at: int, view: str, top: float | None, scores: npt.NDArray[Any]
    ) -> None:
        """Do what `_write_view` does for a single row, in microseconds; NaN if a score is infinite."""
        head, prior = self.head, self.scales.of(side, top is not None)
        count, mean, std = one_row_statistics(scores[0], summary_of(top, scores.shape[1]))
        logs = shrunk_log_scale_of_one(count, std, prior, self.takes[0 if side == "enroll" else 1])
        mean = prior.location if count == 0 else mean
        factor = head.slope[view] / len(SIDES[self.pattern]) * math.exp(-logs - prior.center)
        out[0, at], out[0, at + 1] = factor, factor * mean
        name = f"ls_{side[0]}"
        if top is None and name in head.unit:
            out[0, 4] = head.weight[name] * head.unit[name] * (logs - head.center[name])

    def _write_view(
        self, out: Part, side: str, at: int, view: str, top: float | None, scores: npt.NDArray[Any]
    ) -> None:
        head, prior = self.head, self.scales.of(side, top is not None)
        moments = row_statistics(scores, summary_of(top, scores.shape[1]))
        logs = shrunk_log_scale(moments, prior, self.takes[0 if side == "enroll" else 1])
        mean = np.where(moments.count > 0, moments.mean, prior.location)
        factor = head.slope[view] / len(SIDES[self.pattern]) * np.exp(-logs - prior.center)
        out[:, at], out[:, at + 1] = factor, factor * mean
        name = f"ls_{side[0]}"
        if top is None and name in head.extras:
            out[:, 4] = head.weight[name] * head.unit[name] * (logs - head.center[name])


def _products(side: str, weights: ScoreWeights | None, space: PairSpace | None, turn: Array | None) -> _Products:
    size = getattr(space, f"{side}_map").shape[0] if weights is None else getattr(weights, side).shape[1]
    maps, center, shifts, shift = np.empty((size, 0)), np.zeros(size), np.zeros((2, size)), np.zeros(2)
    if space is not None:
        maps, center = getattr(space, f"{side}_map"), getattr(space, f"{side}_center")
    if weights is not None:
        shifts = getattr(weights, side)
        shift = (weights.offset if side == "enroll" else 0.0) - weights.center * shifts.sum(axis=1)
    maps = maps - maps.mean(axis=0) if size else maps
    return _Products(
        basis=np.column_stack((shifts.T, maps)), constant=np.concatenate((shift, -(center @ maps))), turn=turn
    )


def _head_of(
    s: Any, pair: Any, numbers: list[Any], model: Array, slopes: Array, shares: Array, bend: float, bounds: Array
) -> Array:
    """Return (H2) and (H3) of few trials; what the numbers mean, `kernels.head_matrix` tells."""
    a, b, c, d, plain, p0, p1 = numbers
    first, second, other = s * a - b, s * c - d, s
    if not np.isnan(model[0]):
        other = model[2] + model[0] * (s - p0) ** 2 - model[1] * (s - p1) ** 2
    other = other * slopes[0]
    average = shares[0] * first + shares[1] * second + shares[2] * other + shares[3]
    z = slopes[1] * first + slopes[2] * second + slopes[3] * other + plain + pair + bend * np.maximum(average, 0.0)
    if bounds[0] == bounds[2] == -np.inf:
        return z
    return np.logaddexp(bounds[1] + z, bounds[0]) - np.logaddexp(bounds[3], bounds[2] + z)


def _matrix(
    scores: npt.NDArray[Any], x: Array, y: Array, rows: Array, columns: Array, constants: tuple[Any, ...], out: Array
) -> None:
    """Write the log-likelihood ratios of a matrix, some rows at a time."""
    from evenscore.evidence.kernels import head_matrix

    rows, columns = np.ascontiguousarray(rows.T), np.ascontiguousarray(columns.T)
    paired = bool(x.shape[1])
    step = max(1, _PIECE // max(scores.shape[1], 1)) if paired else max(len(scores), 1)
    for first in range(0, len(scores), step):
        part = slice(first, min(first + step, len(scores)))
        pairs = product(x[part], y.T) if paired else np.empty((0, 0), dtype=scores.dtype)
        arguments: tuple[Any, ...] = (scores[part], pairs, np.ascontiguousarray(rows[:, part]), columns, *constants)
        result = out[part]
        in_parallel(
            lambda start, stop: head_matrix(*arguments, start, stop, result),  # noqa: B023
            part.stop - part.start,
            8 * scores.shape[1],
        )


def _mixture(head: EvidenceHead) -> tuple[Array, Array, float]:
    """Return slopes and shares for the kernel, and the constant part of z."""
    names = ["s_norm", "as_norm", *(name for name in head.views if name not in ("s_norm", "as_norm"))]
    names += ["nothing"] * (3 - len(names))
    weight, share, intercept = (
        np.array([values.get(name, 0.0) for name in names]) for values in (head.weight, head.share, head.intercept)
    )
    constant = head.offset + float(weight @ intercept)
    constant -= sum(head.weight[name] * head.unit[name] * head.center[name] for name in head.extras if name in "bw")
    slopes = np.array([head.slope.get(names[2], 0.0), *weight])
    return slopes, np.array([*share, float(share @ intercept)]), constant


def _log_bounds(head: EvidenceHead) -> Array:
    with np.errstate(divide="ignore"):
        e, d = head.target_outliers, head.nontarget_outliers
        return np.array([np.log(e), np.log1p(-e), np.log(d), np.log1p(-d)])
