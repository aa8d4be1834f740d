"""Classical norms for single trials, as in a service: cohort statistics of each side, computed once, and a formula."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.classical import formula, inverted
from evenscore.norms.options import CLASSICAL, NormOptions
from evenscore.norms.statistics import Statistics, location_scale, nonzero_std, row_statistics

__all__ = ["OnlineNorm", "prepare_norm"]

SideStatistics = tuple[float, ...]  #: mean and standard deviation of one side's cohort scores; empty if not used


@dataclass(frozen=True, eq=False)
class OnlineNorm:
    """A classical norm for single trials, made by `prepare_norm`; threads may share it.

    Cohort scores are in the order of the cohort, NaN where one is missing or belongs to the trial's own speakers.

    Examples
    --------
    >>> norm = prepare_norm("as", top_k=2)
    >>> ann = norm.enroll([2.0, 1.0, 0.0])
    >>> norm.score(3.0, ann, norm.test([1.5, 0.5, -0.5]))
    3.5
    """

    method: str
    options: NormOptions
    cohort: npt.NDArray[np.floating] | None = None  #: N x M, for ZT and TZ; NaN where a pair is a target

    def enroll(self, cohort_scores: npt.ArrayLike) -> SideStatistics:
        """Return the statistics of an enrolment, from its scores against the cohort's tests."""
        return () if self.method in ("t", "at") else self._statistics(cohort_scores, "enrolment")

    def test(self, cohort_scores: npt.ArrayLike) -> SideStatistics:
        """Return the statistics of a test, from the scores of the cohort's enrolments against it."""
        return () if self.method in ("z", "az") else self._statistics(cohort_scores, "test")

    def _statistics(self, cohort_scores: npt.ArrayLike, side: str) -> SideStatistics:
        row = np.array(cohort_scores, np.float64)[None]
        if side == {"zt": "test", "tz": "enrolment"}.get(self.method):
            row = (row - self._of_cohort[0]) / self._of_cohort[1]
        mean, std = location_scale(row, self.options, self.options.count(self.method, row.shape[1]))
        return mean.item(), nonzero_std(mean, std, self.options, side).item()

    @cached_property
    def _of_cohort(self) -> Statistics:
        """Mean and standard deviation of the cohort's own scores, by which ZT and TZ normalize cohort scores first."""
        scores, side = np.asarray(self.cohort), "cohort enrolment" if self.method == "zt" else "cohort test"
        return row_statistics(scores if self.method == "zt" else scores.T, self.options, None, side)

    def score(self, score: float, enroll: SideStatistics, test: SideStatistics) -> float:
        """Return the normalized score of a trial, from the statistics of its two sides."""
        return float(formula(self.method, self.options)(score, *inverted(enroll), *inverted(test)))

    def normalize_one(self, score: float, enroll_cohort: npt.ArrayLike = (), test_cohort: npt.ArrayLike = ()) -> float:
        """Return the normalized score of one trial, from the cohort scores of its two sides.

        Examples
        --------
        >>> prepare_norm("z", ddof=1).normalize_one(3.0, [2.0, 1.0, 0.0])
        2.0
        """
        return self.score(score, self.enroll(enroll_cohort), self.test(test_cohort))


def prepare_norm(
    method: str = "as", *, cohort: npt.ArrayLike | None = None, convention: str | None = None, **options: Any
) -> OnlineNorm:
    """Prepare a classical norm for single trials.

    Parameters
    ----------
    method
        Name of the norm: "z", "t", "s", "zt", "tz", "as", "az" or "at".
    cohort
        Scores of the cohort against itself (N x M), which ZT and TZ need; NaN where a pair is a target.
    convention, **options
        See `NormOptions`; ``select`` must be "own".

    Examples
    --------
    >>> norm = prepare_norm("s", ddof=1)
    >>> norm.normalize_one(3.0, [2.0, 1.0, 0.0], [1.5, 0.5, -0.5])
    2.25
    """
    if method not in CLASSICAL:
        raise InputError(f"there is no classical norm {method!r}; there are {', '.join(CLASSICAL)}")
    how = NormOptions.from_convention(convention, **options).for_method(method)
    if how.select != "own":
        raise InputError(f"select={how.select} needs whole tables of cohort scores; use normalize")
    if method in ("zt", "tz") and cohort is None:
        raise InputError(f"the norm {method!r} needs the scores of the cohort against itself; give `cohort`")
    return OnlineNorm(method, how, None if cohort is None else np.asarray(cohort, np.float64))
