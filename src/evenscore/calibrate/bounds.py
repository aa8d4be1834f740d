"""Bounds on log-likelihood ratios, where they would rest on extrapolation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input
from evenscore.errors import InputError
from evenscore.metrics.forensic import llr_bounds
from evenscore.metrics.trials import ScoresLike, points_of

__all__ = ["BoundedLlrs"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundedLlrs(Calibration):
    """LLRs as they are, but for those beyond empirical bounds (ELUB), which become the bounds.

    llr(s) = min(max(s, lower), upper)                                              (B1)

    It calibrates nothing: the scores must be log-likelihood ratios.

    Attributes
    ----------
    lower, upper
        As in `evenscore.metrics.llr_bounds`.

    Examples
    --------
    >>> BoundedLlrs(lower=-2.0, upper=3.0)([-9.0, 1.0, 9.0])
    array([-2.,  1.,  3.])
    """

    kind: ClassVar[str] = "elub"

    lower: float
    upper: float

    def __post_init__(self) -> None:
        if not -np.inf < self.lower <= 0 <= self.upper < np.inf:
            raise InputError(f"the bounds are {self.lower} and {self.upper}, but must be finite, with 0 between them")

    @classmethod
    def fit(cls, scores: ScoresLike, labels: npt.ArrayLike | None = None) -> BoundedLlrs:
        """Find the bounds that labelled LLRs support (Vergeer et al., 2016).

        Parameters
        ----------
        scores, labels
            LLRs, as in `evenscore.metrics.validate`; or a `ScoreSummary`.
        """
        lower, upper = llr_bounds(points_of(scores, labels))
        return cls(lower=lower, upper=upper)

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the bounded LLR of each LLR."""
        return np.clip(as_input(scores, infinite=True), self.lower, self.upper)
