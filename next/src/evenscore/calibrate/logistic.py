"""Calibration and fusion by prior-weighted logistic regression."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration
from evenscore.calibrate.trials import Floats, Trials, as_tables, as_trials
from evenscore.data.labels import TARGET
from evenscore.errors import InputError
from evenscore.parallel import one_blas_thread

__all__ = ["LogisticCalibration", "prior_shares"]

_CHUNK = 1 << 13  # rows at a time: intermediate results stay in the cache
_SAMPLE = 1 << 15  # trials that give a start near the optimum
_NEW = 1e-4  # least share of a quality measure's variance that the inputs before it do not explain
_REMEDY = "give a penalty such as l2=0.001"


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticCalibration(Calibration):
    """An affine map of scores and quality measures, fitted by logistic regression.

    llr = offset + weights . scores + quality_weights . quality                                     (L1)

    minimizes p mean_targets log(1 + exp(-llr - logit p)) + (1 - p) mean_nontargets log(1 + exp(llr + logit p))
    + l2 / 2 |standardized weights|^2                                                               (L2)

    With p_target = 0.5 and no penalty, this is the Cllr (times log 2). Several systems at once are a fusion.

    Options of `fit`: ``p_target``, the prior at which the LLRs should be best (0.5), and ``l2``, a penalty on the
    weights. Scores that separate the classes without error need one. A quality measure that is constant, or a weighted
    sum of the inputs before it, gets the weight 0.

    Examples
    --------
    >>> calibration = LogisticCalibration.fit([-2.0, -1.0, 0.0, 0.5, 2.0], [0, 0, 1, 0, 1])
    >>> calibration([0.0, 1.0]).round(4)
    array([-0.1092,  1.5289])
    """

    kind: ClassVar[str] = "logistic"
    fuses: ClassVar[bool] = True

    weights: Floats = field(default_factory=lambda: np.ones(1))
    quality_weights: Floats = field(default_factory=lambda: np.zeros(0))
    offset: float = 0.0
    p_target: float = 0.5
    l2: float = 0.0
    quality_names: tuple[str, ...] | None = None  #: of quality measures that were given by name

    @classmethod
    def _fit(cls, trials: Trials, p_target: float = 0.5, l2: float = 0.0) -> LogisticCalibration:
        inputs = trials.scores.reshape(len(trials.labels), -1)
        n_systems = inputs.shape[1]
        if trials.measures.size:
            inputs = np.column_stack((inputs, trials.measures))
        with one_blas_thread():
            slopes, offset = _regress(inputs, trials.labels == TARGET, trials.weights, n_systems, p_target, l2)
        parts = {"weights": slopes[:n_systems], "quality_weights": slopes[n_systems:], "offset": offset}
        return cls(**parts, p_target=p_target, l2=l2)  # type: ignore[arg-type]

    def __call__(self, scores: Any, quality: Any = None) -> Any:
        """Return the LLRs; a table for a table, and NaN for NaN.

        Scores of k systems are numbers whose last axis has the k scores of a trial, or a list of k tables, of which the
        first gives the trials. ``quality`` are the q measures of a trial, along one more axis; of tables names, by
        default those of `fit`.
        """
        tables, n_systems, n_measures = as_tables(scores), self.weights.size, self.quality_weights.size
        if n_systems == 1 and not n_measures and quality is None and len(tables) <= 1:
            return super().__call__(tables[0] if tables else scores)
        names = self.quality_names if quality is None and tables else quality
        trials = as_trials(scores, quality=names, labelled=False, several=n_systems > 1)
        inputs = np.column_stack((self._valid(trials.scores), self._valid(trials.measures)))
        if inputs.shape[1] != n_systems + n_measures or trials.measures.shape[1] != n_measures:
            raise InputError(
                f"this calibration needs {n_systems} systems and {n_measures} quality measures; give these"
            )
        return trials.with_llrs(inputs @ np.append(self.weights, self.quality_weights) + self.offset)  # (L1)

    def _llr(self, scores: Floats) -> Floats:
        return np.asarray(scores * self.weights[0] + self.offset)


def _regress(
    inputs: Floats, target: npt.NDArray[np.bool_], weights: Floats, n_systems: int, p_target: float, l2: float
) -> tuple[Floats, float]:
    """Return the slopes and the offset that minimize (L2)."""
    mean = weights @ inputs / weights.sum()
    rows, covariance = np.ones((len(inputs), len(mean) + 1)), np.zeros((len(mean), len(mean)))
    for start in range(0, len(inputs), _CHUNK):
        part = rows[start : start + _CHUNK, :-1]
        np.subtract(inputs[start : start + _CHUNK], mean, out=part)
        covariance += (part * weights[start : start + _CHUNK, None]).T @ part / weights.sum()
    std = np.sqrt(np.diag(covariance))
    kept = _informative(covariance, std > 1e-12 * np.abs(mean), n_systems, l2)
    rows = rows if len(kept) == len(mean) else rows[:, [*kept, -1]]
    theta, scale = np.zeros(len(kept) + 1), np.append(std[kept], 1.0)
    thin = max(1, len(rows) // _SAMPLE)
    if thin >= 4 and target[::thin].any():  # some of the trials give a start near the optimum
        some = prior_shares(weights[::thin], target[::thin], p_target)
        with suppress(InputError):  # all trials may have an optimum nevertheless
            theta = _newton(_Problem(rows[::thin], target[::thin], some, scale, p_target, l2), theta, flat=1e-3)
    theta = _newton(_Problem(rows, target, prior_shares(weights, target, p_target), scale, p_target, l2), theta)
    slopes = np.zeros(len(mean))
    slopes[kept] = theta[:-1] / std[kept]
    return slopes, float(theta[-1] - slopes @ mean)


def _informative(covariance: Floats, varies: npt.NDArray[np.bool_], n_systems: int, l2: float) -> list[int]:
    """Return which inputs are fitted: all systems, and the measures that the inputs before them do not explain."""
    kept: list[int] = []
    for at in range(len(covariance)):
        known, own = covariance[kept, at], covariance[at, at]
        new = own - known @ np.linalg.lstsq(covariance[np.ix_(kept, kept)], known, rcond=None)[0]
        if varies[at] and (l2 > 0 or new > (1e-12 if at < n_systems else _NEW) * own):
            kept.append(at)
        elif at < n_systems:
            cause = "a weighted sum of those before it" if varies[at] else "the same in all trials"
            raise InputError(f"the scores of system {at + 1} are {cause}, so it has no weight; leave it out")
    return kept


def prior_shares(weights: Floats, target: npt.NDArray[np.bool_], p_target: float) -> Floats:
    """Return the share of each trial in the objective; those of a class sum up to its prior."""
    scale = p_target / weights[target].sum(), (1 - p_target) / weights[~target].sum()
    return weights * np.where(target, *scale)


class _Problem(NamedTuple):
    """The minimization (L2) over the slopes of standardized inputs and the offset."""

    rows: Floats  #: centred inputs, and a last column of ones
    target: npt.NDArray[np.bool_]
    share: Floats  #: of each trial in the objective
    scale: Floats  #: standard deviations of the inputs, and 1
    p_target: float
    l2: float

    def evaluate(self, theta: Floats) -> tuple[float, Floats, Floats, bool]:
        """Return value, gradient and Hessian of (L2), and whether a threshold separates the classes."""
        penalty = np.append(np.full(theta.size - 1, self.l2), 0.0)
        value, gradient, hessian = 0.5 * float(penalty @ theta**2), np.zeros(theta.size), np.zeros((theta.size,) * 2)
        lowest, highest = math.inf, -math.inf  # log-odds of a target, of a non-target
        logit = math.log(self.p_target) - math.log1p(-self.p_target)
        for start in range(0, len(self.rows), _CHUNK):
            rows, target, share = (part[start : start + _CHUNK] for part in self[:3])
            odds = rows @ (theta / self.scale) + logit
            small = np.exp(-np.abs(odds))  # the one exponential of loss and probability: most of the time goes here
            likelier = 1.0 / (1.0 + small)
            posterior = np.where(odds >= 0, likelier, small * likelier)
            # log(1 + exp(z)) = max(z, 0) - log(likelier); log1p would be several times slower
            value += float(share @ (np.maximum(odds, 0.0) - target * odds - np.log(likelier)))
            gradient += (share * (posterior - target)) @ rows
            hessian += rows.T @ (rows * (share * small * likelier**2)[:, None])
            lowest = min(lowest, float(odds[target].min(initial=math.inf)))
            highest = max(highest, float(odds[~target].max(initial=-math.inf)))
        gradient, hessian = gradient / self.scale, hessian / np.outer(self.scale, self.scale)
        return value, gradient + penalty * theta, hessian + np.diag(penalty), lowest >= highest


def _newton(problem: _Problem, theta: Floats, flat: float = 1e-12) -> Floats:
    """Return the optimum; a step is halved until the objective falls enough, up to rounding."""
    value, gradient, hessian, separated = problem.evaluate(theta)
    for _ in range(200):
        if np.abs(gradient).max() <= flat:
            return theta
        if np.linalg.cond(hessian) > 1e15:
            break
        step = np.linalg.solve(hessian, gradient)
        fall, length = float(gradient @ step), 1.0  # twice the expected fall of the objective
        there = problem.evaluate(theta - step)
        while there[0] > value - 1e-4 * length * fall + 1e-14 * abs(value) and length > 1e-6:
            length /= 2
            there = problem.evaluate(theta - length * step)
        if length <= 1e-6:
            break
        theta, (value, gradient, hessian, separated) = theta - length * step, there
        if problem.l2 == 0 and separated:
            raise InputError(f"the scores separate the classes without error; give more trials, or {_REMEDY}")
        if fall < 1e-16:  # this step has squared it: what is left is rounding
            return theta
    raise InputError(f"the logistic regression does not converge; leave out scores far from all others, or {_REMEDY}")
