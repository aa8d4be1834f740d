"""What is measured, and what calibrations are fitted to: the trials themselves, or bins where they do not fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from evenscore.errors import InputError
from evenscore.tables import NONTARGET, TARGET

if TYPE_CHECKING:
    from jaxtyping import Float, Num

    from evenscore.metrics.operating_points import OperatingPoint
    from evenscore.metrics.sorted_scores import SortedScores

__all__ = ["Points"]


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
