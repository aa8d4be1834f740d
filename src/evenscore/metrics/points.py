"""What is measured, and what calibrations are fitted to: the trials themselves, or bins where they do not fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import NONTARGET, TARGET

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from evenscore.metrics.hull import Rocch
    from evenscore.metrics.operating_points import OperatingPoint

__all__ = ["Points", "SortedScores"]


_FOLDED = 256
_PIECE = 1 << 16  # scores whose numbers stay in the cache


class Points(ABC):
    """Scores of both classes: all that metrics and calibrations know of trials. `points_of` makes them.

    They are exact where the scores are in memory (`Trials`, `SortedScores`). A `ScoreSummary` has bins: the order
    within a bin is not known, but each metric lies between those of the best and of the worst order, for certain.
    Points of parts are added with ``+``.
    """

    n_systems: int = 1

    @abstractmethod
    def number(self, label: int) -> int:
        """Return the number of scores of a class."""

    @property
    @abstractmethod
    def tied(self) -> SortedScores:
        """The scores in order, those of one bin as equals."""

    @property
    def orders(self) -> tuple[SortedScores, ...]:
        """The best and the worst order that the scores can have; in memory the only one."""
        return (self.tied,)

    @abstractmethod
    def class_scores(self, label: int) -> tuple[Float[np.ndarray, " u"], Num[np.ndarray, " u"]]:
        """Return scores of a class, and the number of trials that each of them, the mean of a bin, stands for."""

    @abstractmethod
    def refuse_infinite(self) -> None:
        """Refuse scores that are infinite or NaN, with the place of the first where it is known."""

    @property
    def n_target(self) -> int:
        """Number of target scores."""
        return self.number(TARGET)

    @property
    def n_nontarget(self) -> int:
        """Number of non-target scores."""
        return self.number(NONTARGET)

    def bounds(self, metric: Callable[[SortedScores], float]) -> tuple[float, float]:
        """Return the least and the largest value that a metric of the ordered scores can have."""
        values = [metric(order) for order in self.orders]
        return min(values), max(values)

    def middle(self, metric: Callable[[SortedScores], float]) -> float:
        """Return the middle of the two bounds: the metric itself where the scores are in memory."""
        return sum(self.bounds(metric)) / 2

    def losses(self) -> tuple[float, float]:
        """Return the mean of log(1 + exp(llr)) of the non-targets and of log(1 + exp(-llr)) of the targets."""
        return self.tied.losses()

    def rates_at(self, point: OperatingPoint) -> tuple[float, float]:
        """Return miss and false-alarm rate at the Bayes threshold, exactly."""
        trials = self.tied
        i, j = trials.below(point.threshold)
        return float(trials.miss_rate(i)), float(trials.false_alarm_rate(j))

    def moments(self) -> tuple[Float[np.ndarray, " 2"], Float[np.ndarray, " 2"], Float[np.ndarray, " 2"]]:
        """Return the number, the mean and the variance of the scores of each class; exact, but for rounding."""
        self.refuse_infinite()
        classes = [self.class_scores(label)[0] for label in (NONTARGET, TARGET)]
        number, mean, variance = (
            np.array([of(side) for side in classes], dtype=np.float64) for of in (np.size, np.mean, np.var)
        )
        return number, mean, variance

    def pooled_scores(self) -> tuple[Float[np.ndarray, " u"], Num[np.ndarray, " u"]]:
        """Return what `class_scores` returns, of both classes together."""
        scores, counts = zip(*(self.class_scores(label) for label in (NONTARGET, TARGET)), strict=True)
        return np.concatenate(scores), np.concatenate(counts)

    def check_classes(self) -> None:
        """Refuse points that lack targets or non-targets."""
        if not self.n_target or not self.n_nontarget:
            raise InputError(
                f"there are {self.n_target} target and {self.n_nontarget} non-target trials, but both kinds are "
                "needed; check the key"
            )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SortedScores(Points):
    """Target and non-target scores, each sorted upwards: what every metric works on.

    Every metric takes one of these instead of ``(scores, labels)``, so that several metrics need only one sort. Made
    by `sort_scores`.

    Attributes
    ----------
    target, nontarget
        The scores of each class, sorted upwards.
    target_mass, nontarget_mass
        The share of the class's weight that the k lowest scores have, k = 0, ..., n, where trials are weighted; None
        where each trial of a class weighs the same.

    Examples
    --------
    >>> from evenscore.metrics import sort_scores
    >>> sort_scores([2.0, -1.0, 0.5, 1.0], [1, 0, -1, 1])
    SortedScores(2 targets, 1 non-targets, float64)
    """

    target: Float[np.ndarray, " t"]
    nontarget: Float[np.ndarray, " n"]
    target_mass: Float[np.ndarray, " t+1"] | None = None
    nontarget_mass: Float[np.ndarray, " n+1"] | None = None

    def __repr__(self) -> str:
        weighted = "" if self.target_mass is None else ", weighted"
        sizes = f"{self.target.size} targets, {self.nontarget.size} non-targets"
        return f"SortedScores({sizes}, {self.target.dtype}{weighted})"

    def number(self, label: int) -> int:
        """Return the number of scores of a class."""
        return int((self.target if label == TARGET else self.nontarget).size)

    @property
    def tied(self) -> SortedScores:
        """The scores themselves."""
        return self

    @cached_property
    def hull(self) -> Rocch:
        """The convex hull of the ROC, see `rocch`; the metrics share it."""
        from evenscore.metrics.hull import hull_of_scores

        return hull_of_scores(self)

    def miss_rate(self, below: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the miss rate when this many target scores are rejected."""
        at = np.asarray(below)
        return np.asarray(at / self.target.size if self.target_mass is None else self.target_mass[at])

    def false_alarm_rate(self, below: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the false-alarm rate when this many non-target scores are rejected."""
        at = np.asarray(below)
        if self.nontarget_mass is None:
            return np.asarray((self.nontarget.size - at) / self.nontarget.size)
        return np.asarray(1.0 - self.nontarget_mass[at])

    def below(self, threshold: npt.ArrayLike) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return how many targets and how many non-targets are rejected: those with score < threshold."""
        exact = np.asarray(threshold, dtype=np.float64)
        limit = exact.astype(self.target.dtype)
        limit = np.where(limit < exact, np.nextafter(limit, np.inf, dtype=limit.dtype), limit)  # for float32 scores
        return np.searchsorted(self.target, limit), np.searchsorted(self.nontarget, limit)

    def threshold(self, target_below: int, nontarget_below: int) -> float:
        """Return the lowest accepted score when this many of each class are rejected.

        If nothing is accepted, it is the next number after the highest score.
        """
        accepted = [
            scores[at]
            for scores, at in ((self.target, target_below), (self.nontarget, nontarget_below))
            if at < scores.size
        ]
        if accepted:
            return float(min(accepted))
        with np.errstate(over="ignore"):  # after the largest number comes infinity
            return float(np.nextafter(max(self.target[-1], self.nontarget[-1]), np.inf, dtype=self.target.dtype))

    def losses(self) -> tuple[float, float]:
        """Return the mean of log(1 + exp(llr)) of the non-targets and of log(1 + exp(-llr)) of the targets."""
        sides = (self.nontarget, self.nontarget_mass, 1.0), (self.target, self.target_mass, -1.0)
        nontarget, target = (
            _softplus_sum(scores, sign) / scores.size if mass is None else _weighted_softplus(scores, mass, sign)
            for scores, mass, sign in sides
        )
        return nontarget, target

    def class_scores(self, label: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return the scores of a class, each of which stands for one trial; weighted ones cannot be fitted to."""
        if self.target_mass is not None:
            raise InputError("a calibration takes no weights; give scores and labels")
        scores = self.target if label == TARGET else self.nontarget
        return scores.astype(np.float64, copy=False), np.broadcast_to(1.0, scores.size)

    def refuse_infinite(self) -> None:
        """Refuse infinite scores."""
        if not np.isfinite([side[at] for side in (self.target, self.nontarget) for at in (0, -1)]).all():
            raise InputError("a score is infinite; drop the trial")


def _softplus_sum(scores: npt.NDArray[Any], sign: float) -> float:
    """Return the sum of log(1 + exp(sign * score)), with one logarithm per 256 scores.

    softplus(x) = max(x, 0) + log(1 + u) with u = exp(-|x|), and q = prod(1 + u) - 1 is built up without ever adding a
    small u to 1, so that tiny terms keep all their digits; 1 + u is at most 2, so a product of 256 stays far below
    overflow.
    """
    total = 0.0
    for start in range(0, scores.size, _PIECE):
        x = sign * scores[start : start + _PIECE].astype(np.float64)
        total += np.maximum(x, 0.0).sum()
        u = np.zeros(-x.size % _FOLDED + x.size)
        np.exp(-np.abs(x), out=u[: x.size])
        q = u.reshape(_FOLDED, -1)
        while len(q) > 1:
            one, other = q[: len(q) // 2], q[len(q) // 2 :]
            q = one + other + one * other
        total += np.log1p(q).sum()
    return float(total)


def _weighted_softplus(scores: npt.NDArray[Any], mass: npt.NDArray[np.float64], sign: float) -> float:
    costs, shares = np.logaddexp(0.0, sign * scores.astype(np.float64)), np.diff(mass)
    present = shares > 0  # 0 * inf is 0: a trial of weight 0 is not there
    return float(costs[present] @ shares[present])
