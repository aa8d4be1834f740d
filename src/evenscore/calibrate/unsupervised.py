"""Calibration without labels: a mixture of two Gaussians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input, finite, positive
from evenscore.calibrate.gaussian import gaussian_llr
from evenscore.calibrate.mixture import Mixture, fit_mixture, log_likelihood, variance_of
from evenscore.errors import InputError
from evenscore.metrics.trials import ScoresLike, unlabelled_points

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["UnsupervisedCalibration"]

_LEAST_SCORES = 20
_LEAST_MEMBERS = 5.0  # trials of the rarer component
_LEAST_SEPARATION = 1.0  # standard deviations between the means
_REMEDY = "label some trials and use a supervised calibration"


@dataclass(frozen=True, kw_only=True, eq=False)
class UnsupervisedCalibration(Calibration):
    """Unlabelled scores are a mixture of non-targets and targets, each Gaussian.

    s ~ (1 - p_target) N(mean_0, variance_0) + p_target N(mean_1, variance_1),  mean_0 < mean_1     (U1)
    llr(s) = log N(s; mean_1, variance_1) - log N(s; mean_0, variance_0)                            (U2)

    Attributes
    ----------
    mean, variance
        Of the lower component (non-targets) and of the higher one (targets).
    p_target
        Share of the targets.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate((rng.normal(-3, 1, 900), rng.normal(3, 1, 100)))
    >>> calibration = UnsupervisedCalibration.fit(scores)
    >>> round(calibration.p_target, 2)
    0.1
    """

    kind: ClassVar[str] = "unsupervised"

    mean: Float[np.ndarray, "2"]
    variance: Float[np.ndarray, "2"]
    p_target: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", finite("mean", self.mean, (2,)))
        object.__setattr__(self, "variance", positive("variance", self.variance, (2,)))
        if not 0 < self.p_target < 1:
            raise InputError(f"p_target is {self.p_target}, but must lie between 0 and 1")

    @classmethod
    def fit(
        cls,
        scores: ScoresLike,
        labels: npt.ArrayLike | None = None,
        *,
        p_target: float | None = None,
        shared_variance: bool = False,
    ) -> UnsupervisedCalibration:
        """Fit by expectation maximization, from several starts.

        Parameters
        ----------
        scores
            At least 20 finite scores. Or a `ScoreSummary`, whatever its labels: each bin is then one score, the mean
            of it.
        labels
            Not used: they are accepted so that all calibrations are called alike.
        p_target
            Share of the targets, if it is known; else it is estimated.
        shared_variance
            Give both components one variance, so that the LLR is a straight line.

        Raises
        ------
        InputError
            If the scores do not show two groups: one Gaussian explains them as well (by the Bayesian information
            criterion), the components overlap (means less than one standard deviation apart), or one has fewer than
            5 trials.
        """
        if p_target is not None and not 0 < p_target < 1:
            raise InputError(f"p_target is {p_target}, but must lie between 0 and 1")
        found = unlabelled_points(scores)
        found.refuse_infinite()
        values, counts = found.pooled_scores()
        _refuse_few(values, counts)
        mixture = fit_mixture(values, counts, p_target, shared_variance)
        if mixture is None:
            raise InputError(f"no two Gaussians fit the scores: one of them shrinks to a point; {_REMEDY}")
        _refuse_one_group(values, counts, mixture, estimated=(p_target is None) + (not shared_variance) + 1)
        return cls(mean=mixture.mean, variance=mixture.variance, p_target=mixture.p_target)

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the LLR of each score; NaN stays NaN."""
        return gaussian_llr(as_input(scores), self.mean, self.variance)


Array = npt.NDArray[np.float64]


def _refuse_few(values: Array, counts: Array) -> None:
    number = counts.sum()
    if number < _LEAST_SCORES:
        raise InputError(
            f"there are {number:.0f} scores, too few to tell two groups apart; give at least {_LEAST_SCORES}"
        )
    if not np.ptp(values) > 0:
        raise InputError("all scores are equal, so they do not show two groups")


def _refuse_one_group(values: Array, counts: Array, mixture: Mixture, estimated: int) -> None:
    """Refuse when the data cannot support two components; ``estimated`` parameters were added to one Gaussian's."""
    number = counts.sum()
    alone = -0.5 * number * (np.log(2 * np.pi * variance_of(values, counts)) + 1)
    gain = 2 * (log_likelihood(values, counts, mixture) - alone)
    if gain <= estimated * np.log(number):
        raise InputError(f"one Gaussian explains the scores as well as two, so they do not show two groups; {_REMEDY}")
    rarer = number * min(mixture.p_target, 1 - mixture.p_target)
    if rarer < _LEAST_MEMBERS:
        raise InputError(f"the rarer of the two groups has only {rarer:.1f} trials, too few to trust; {_REMEDY}")
    separation = (mixture.mean[1] - mixture.mean[0]) / np.sqrt(mixture.variance.mean())
    if separation < _LEAST_SEPARATION:
        raise InputError(
            f"the two groups overlap: their means are {separation:.2f} standard deviations apart, less than "
            f"{_LEAST_SEPARATION:g}; {_REMEDY}"
        )
