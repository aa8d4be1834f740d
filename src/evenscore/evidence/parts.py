"""The cohort-evidence model where a trial's two sides meet only at the very end: numbers per element, then one pass.

It holds for trials whose speakers are not in the cohort; if the head asks the score model, cohort scores must be
complete, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from evenscore.evidence.features import SIDES, TOP, Scales
from evenscore.evidence.head import BEND, EvidenceHead
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.moments import Moments, row_moments, shrunk_log_scale
from evenscore.evidence.own_pairs import WITHIN_RIDGE, Ridges
from evenscore.evidence.pair_space import PairSpace, SameSpeaker
from evenscore.model.score_weights import ScoreWeights
from evenscore.norms.threads import in_parallel
from evenscore.tables import ScoreMatrix, TrialList

__all__ = ["EvidenceParts", "needs_space"]

PAIR_EXTRAS = ("b", "w", "plda")

Array = np.ndarray
Part = Float[Array, "n p"]

_VIEWS = ("s_norm", "as_norm", "within_norm")  # each has two numbers per element
_PLAIN = 2 * len(_VIEWS)  # where that stands which a side adds by itself
_NUMBERS = _PLAIN + 3  # per element, beside its coordinates
_PIECE = 1 << 22  # products of coordinates that are kept at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class _Products:
    """What a side's cohort scores are multiplied with: the two shifts of the score model, then the coordinates.

    The columns for coordinates add up to 0, so that they do not see the mean of a row.
    """

    basis: Float[Array, "c 2+r"]
    constant: Float[Array, " 2+r"]
    strength: Float[Array, " r"]
    gram: Float[Array, "r r"]  #: of the coordinates of the cohort's members that the side is compared with

    def of(self, scores: npt.NDArray[Any]) -> Float[Array, "m 2+r"]:
        """Return the shifts and the coordinates."""
        found: Array = scores @ self.basis.astype(scores.dtype, copy=False)
        found += self.constant.astype(found.dtype)
        return found

    def remaining(self, moments: Moments, x: Float[Array, "m r"], operator: Float[Array, "r r"]) -> Moments:
        """Return the moments of cohort scores a - x'C Y, from those of a: Y adds up to 0, so that the mean stays."""
        inside = x @ operator
        common = np.einsum("mr,mr->m", inside, (x - self.constant[2:]) * self.strength)
        taken = np.einsum("mr,mr->m", inside @ self.gram, inside) - 2 * common
        variance = moments.std**2 + taken / np.maximum(moments.count - 1, 1)
        return Moments(count=moments.count, mean=moments.mean, std=np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pairs:
    """What is computed from the coordinates of a pair: x'C y for the extras' part of z and for ``within_norm``."""

    extras: Float[Array, "r r"]
    within: Float[Array, "r r"] | None
    own: Float[Array, "r r"]  #: x'A x is added for either side
    constant: float

    @classmethod
    def of(cls, head: EvidenceHead, ridges: Ridges, space: PairSpace) -> _Pairs:
        same = SameSpeaker.of(space)
        weight = {name: head.weight[name] * head.unit[name] if name in head.extras else 0.0 for name in PAIR_EXTRAS}
        return cls(
            extras=weight["b"] * space.impostor_operator(ridges.impostor)
            + weight["w"] * space.within_operator(ridges.within)
            + weight["plda"] * same.product,
            within=space.within_operator(WITHIN_RIDGE) if "within_norm" in head.views else None,
            own=-0.5 * weight["plda"] * same.own,
            constant=weight["plda"] * same.constant,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class EvidenceParts:
    """A cohort-evidence model prepared for a cohort, as numbers of each element of either side.

    An element has 9 numbers: for s_norm, as_norm and within_norm the factor of the score and the term to subtract, what
    the side adds to z by itself, and its parts of the score model's two predicted scores. Then come its coordinates.

    Attributes
    ----------
    pattern, head, scales
        Of the model, for the blocks that there are.
    enroll, test
        The products of each side; None if the head uses neither the score model nor features of pairs.
    pairs
        What is made of the coordinates; None if there are none.
    model
        Constants of the score model's log-likelihood ratio, NaN if the head does not use it.
    """

    pattern: str
    head: EvidenceHead
    scales: Scales
    enroll: _Products | None = None
    test: _Products | None = None
    pairs: _Pairs | None = None
    model: Float[Array, "3"] | None = None

    @classmethod
    def of(
        cls, model: CohortEvidence, pattern: str, weights: ScoreWeights | None = None, space: PairSpace | None = None
    ) -> EvidenceParts:
        """Prepare a model.

        Parameters
        ----------
        model
            What was trained.
        pattern
            Which blocks there are; the head must be of this pattern.
        weights
            Of the cohort scores in the score model's predictions, None if the head does not use them.
        space
            Coordinates for features of pairs, None if the head does not use them (see `needs_space`).
        """
        head = model.heads[pattern]
        if weights is None and space is None:
            return cls(pattern=pattern, head=head, scales=model.scales)
        return cls(
            pattern=pattern,
            head=head,
            scales=model.scales,
            enroll=_products("enroll", weights, space),
            test=_products("test", weights, space),
            pairs=None if space is None else _Pairs.of(head, model.ridges, space),
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
        return self._part("test", _turned(scores))

    def apply(self, trials: ScoreMatrix | TrialList, enroll: Part, test: Part) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, from the numbers of their enrolments and tests."""
        assert trials.scores is not None  # noqa: S101
        scores = np.ascontiguousarray(trials.scores)
        slopes, shares, constant = _mixture(self.head)
        rows = enroll[:, :_NUMBERS].copy()
        rows[:, _PLAIN] += constant
        columns = np.ascontiguousarray(test[:, :_NUMBERS])
        x, y = enroll[:, _NUMBERS:], test[:, _NUMBERS:].astype(scores.dtype)
        turned: list[Array] = [np.empty((len(x), 0), dtype=scores.dtype)] * 2  # without coordinates, products are 0
        if self.pairs is not None:
            rows[:, _PLAIN] += self.pairs.constant
            operators = (self.pairs.extras, self.pairs.within)
            turned = [
                none if one is None else (x @ one).astype(scores.dtype)
                for one, none in zip(operators, turned, strict=True)
            ]
        model = np.full(3, np.nan) if self.model is None else self.model
        constants = (model, slopes, shares, self.head.weight[BEND], _log_bounds(self.head))
        out = np.empty_like(scores)
        if isinstance(trials, ScoreMatrix):
            _matrix(scores, turned, y, rows, columns, constants, out)
        else:
            from evenscore.evidence.kernels import head_list

            pairs: tuple[Any, ...] = (scores, trials.enroll_index, trials.test_index, *turned, y, rows, columns)
            cost = 10 + sum(one.shape[1] for one in turned)
            in_parallel(lambda start, stop: head_list(*pairs, *constants, start, stop, out), len(out), cost)  # type: ignore[call-arg]
        return trials.with_scores(out)

    def _part(self, side: str, scores: npt.NDArray[Any]) -> Part:
        out = np.zeros((len(scores), self.width))
        if side not in SIDES[self.pattern]:
            return out
        scores = np.ascontiguousarray(scores)
        moments = {"s_norm": row_moments(scores)}
        if "as_norm" in self.head.views:
            moments["as_norm"] = row_moments(scores, TOP)
        products = self.enroll if side == "enroll" else self.test
        if products is not None:
            out[:, _PLAIN + 1 :] = products.of(scores)
        if products is not None and self.pairs is not None:
            x = out[:, _NUMBERS:]
            out[:, _PLAIN] += np.einsum("mr,mr->m", x @ self.pairs.own, x)
            if self.pairs.within is not None:
                moments["within_norm"] = products.remaining(moments["s_norm"], x, self.pairs.within)
        for view, found in moments.items():
            self._write_view(out, side, view, found)
        return out

    def _write_view(self, out: Part, side: str, view: str, moments: Moments) -> None:
        head, prior, at = self.head, self.scales.of(side, view), 2 * _VIEWS.index(view)
        logs = shrunk_log_scale(moments, prior)
        if view in head.views:
            mean = np.where(moments.count > 0, moments.mean, prior.location)
            factor = head.slope[view] / len(SIDES[self.pattern]) * np.exp(-logs - prior.center)
            out[:, at], out[:, at + 1] = factor, factor * mean
        name = f"ls_{side[0]}"
        if view == "s_norm" and name in head.extras:
            out[:, _PLAIN] += head.weight[name] * head.unit[name] * (logs - head.center[name])


def needs_space(head: EvidenceHead) -> bool:
    """Tell whether a head uses features of pairs."""
    return bool({*PAIR_EXTRAS, "within_norm"} & {*head.views, *head.extras})


def _products(side: str, weights: ScoreWeights | None, space: PairSpace | None) -> _Products:
    size = getattr(space, f"{side}_map").shape[0] if weights is None else getattr(weights, side).shape[1]
    maps, center, shifts, shift = np.empty((size, 0)), np.zeros(size), np.zeros((2, size)), np.zeros(2)
    strength, members = np.empty(0), np.empty((size, 0))
    if space is not None:
        maps, center, strength = getattr(space, f"{side}_map"), getattr(space, f"{side}_center"), space.strength
        members = space.test_members if side == "enroll" else space.enroll_members
    if weights is not None:
        shifts = getattr(weights, side)
        shift = (weights.offset if side == "enroll" else 0.0) - weights.center * shifts.sum(axis=1)
    maps = maps - maps.mean(axis=0) if size else maps
    return _Products(
        basis=np.column_stack((shifts.T, maps)),
        constant=np.concatenate((shift, -(center @ maps))),
        strength=strength,
        gram=members.T @ members,
    )


def _turned(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return columns as rows."""
    if scores.T.flags.c_contiguous:
        return scores.T
    from evenscore.norms.kernel_apply import transpose

    out = np.empty(scores.shape[::-1], dtype=scores.dtype)
    in_parallel(lambda start, stop: transpose(scores, start, stop, out), *out.shape)
    return out


def _matrix(
    scores: npt.NDArray[Any],
    turned: list[Array],
    y: Array,
    rows: Array,
    columns: Array,
    constants: tuple[Any, ...],
    out: Array,
) -> None:
    """Write the log-likelihood ratios of a matrix, some rows at a time."""
    from evenscore.evidence.kernels import head_matrix

    rows, columns = np.ascontiguousarray(rows.T), np.ascontiguousarray(columns.T)
    step = max(1, _PIECE // max(scores.shape[1], 1)) if y.shape[1] else max(len(scores), 1)
    for first in range(0, len(scores), step):
        part = slice(first, min(first + step, len(scores)))
        pairs = [x[part] @ y.T if x.shape[1] else np.empty((0, 0), dtype=scores.dtype) for x in turned]
        arguments: tuple[Any, ...] = (scores[part], *pairs, rows[:, part], columns, *constants)
        result = out[part]
        in_parallel(
            lambda start, stop: head_matrix(*arguments, start, stop, result),  # type: ignore[call-arg]  # noqa: B023
            part.stop - part.start,
            8 * scores.shape[1],
        )


def _mixture(head: EvidenceHead) -> tuple[Array, Array, float]:
    """Return slopes and shares for the kernel, and the constant part of z."""
    names = [*_VIEWS, *(name for name in head.views if name not in _VIEWS)]
    names += ["nothing"] * (len(_VIEWS) + 1 - len(names))
    weight, share, intercept = (
        np.array([values.get(name, 0.0) for name in names]) for values in (head.weight, head.share, head.intercept)
    )
    constant = head.offset + float(weight @ intercept)
    constant -= sum(head.weight[n] * head.unit[n] * head.center[n] for n in head.extras if n in PAIR_EXTRAS)
    slopes = np.array([head.slope.get(names[-1], 0.0), *weight])
    return slopes, np.array([*share, float(share @ intercept)]), constant


def _log_bounds(head: EvidenceHead) -> Array:
    with np.errstate(divide="ignore"):
        e, d = head.target_outliers, head.nontarget_outliers
        return np.array([np.log(e), np.log1p(-e), np.log(d), np.log1p(-d)])
