"""Calibration and fusion by prior-weighted logistic regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, as_input, check_prior, finite
from evenscore.calibrate.quality import quality_columns
from evenscore.calibrate.training import Floats, SystemsLike, Training, stack_systems
from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike
from evenscore.parallel import one_blas_thread

__all__ = ["LogisticCalibration"]

_CHUNK = 1 << 13  # rows at a time: intermediate results stay in the cache
_SAMPLE = 1 << 14  # trials of a class that give a start near the optimum
_EXPLAINED = 1e-4  # least share of a quality measure's variance that the inputs before it do not explain
_STEPS = 200
_SHORTEST = 1e-6  # part of a Newton step below which there is no descent
_FLAT = 1e-12  # largest gradient component at the optimum; inputs are standardized
_NO_OPTIMUM = (
    "the logistic regression does not converge; look for scores that are far from all others, or give a penalty such "
    "as l2=0.001"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LogisticCalibration(Calibration):
    """An affine map of scores and quality measures, fitted by logistic regression.

    llr = offset + weights . scores + quality_weights . quality                                     (L1)

    minimizes p mean_targets log(1 + exp(-llr - logit p)) + (1 - p) mean_nontargets log(1 + exp(llr + logit p))
    + l2 / 2 |standardized weights|^2                                                               (L2)

    With p_target = 0.5 and no penalty, this is the Cllr (times log 2). Several systems at once are a fusion.

    Attributes
    ----------
    weights
        One per system.
    quality_weights
        One per quality measure; none by default.
    offset
        LLR where all inputs are 0.
    p_target, l2
        How it was fitted.

    Examples
    --------
    >>> calibration = LogisticCalibration.fit([-2.0, -1.0, 0.0, 0.5, 2.0], [0, 0, 1, 0, 1])
    >>> calibration([0.0, 1.0]).round(4)
    array([-0.1092,  1.5289])
    """

    kind: ClassVar[str] = "logistic"

    weights: Floats
    quality_weights: Floats
    offset: float
    p_target: float = 0.5
    l2: float = 0.0

    def __post_init__(self) -> None:
        for name in ("weights", "quality_weights"):
            values = finite(name, getattr(self, name))
            if values.ndim != 1 or (name == "weights" and not values.size):
                raise InputError(f"{name} has shape {values.shape}, but must be a list with one number per input")
            object.__setattr__(self, name, values)
        object.__setattr__(self, "offset", float(finite("offset", self.offset, ())))
        check_prior(self.p_target)
        _check_penalty(self.l2)

    @classmethod
    def fit(
        cls,
        scores: SystemsLike,
        labels: LabelsLike = None,
        weights: npt.ArrayLike | None = None,
        *,
        quality: npt.ArrayLike | None = None,
        p_target: float = 0.5,
        l2: float = 0.0,
    ) -> Self:
        """Fit by Newton's method.

        Parameters
        ----------
        scores, labels, weights
            As in `Calibration.fit`. For a fusion n x k scores of k systems, or a list of k tables, whose trials are
            found by id.
        quality
            n x q finite quality measures, or n values of one measure; for tables also names as in `quality_columns`.
        p_target
            Prior at which the cross-entropy is minimized: where the LLRs should be best.
        l2
            Penalty on the weights of the inputs, each divided by its standard deviation; not on the offset.

        Raises
        ------
        InputError
            If a system's scores are constant or a weighted sum of the others', or if the classes can be separated
            without error, so that without a penalty the weights would be infinite.

        Notes
        -----
        A quality measure that is constant gets the weight 0; so does one that is a weighted sum of the inputs before
        it, unless there is a penalty (`unused_measures`).
        """
        check_prior(p_target)
        _check_penalty(l2)
        training = Training.from_scores(scores, labels, weights)
        inputs = training.scores.reshape(len(training.labels), -1)
        n_systems, measures = inputs.shape[1], None
        if quality is not None:
            measures = _as_measures(quality, training.table, len(inputs))
            inputs = np.column_stack((inputs, measures))
        used = training.labels != UNKNOWN
        inputs = inputs if used.all() else inputs[used]
        problem = _Problem(inputs, training.mass(TARGET)[used], training.mass(NONTARGET)[used], p_target, l2)
        with one_blas_thread():
            kept = _informative(problem, n_systems) if quality is not None else np.arange(n_systems)
            slopes = np.zeros(inputs.shape[1])
            slopes[kept], offset = _minimize(problem._replace(inputs=inputs[:, kept]), n_systems)
        found = cls(
            weights=slopes[:n_systems], quality_weights=slopes[n_systems:], offset=offset, p_target=p_target, l2=l2
        )
        return found._fitted_to(training, quality=measures, p_target=p_target, l2=l2)

    @property
    def unused_measures(self) -> list[int]:
        """Positions of the quality measures that were left out of the fit: the inputs before them explain them."""
        return np.flatnonzero(self.quality_weights == 0).tolist()

    def __call__(self, scores: Any, quality: npt.ArrayLike | None = None) -> Any:
        """Return the LLRs; a table for a table, and NaN for NaN.

        Parameters
        ----------
        scores
            Of one system: numbers of any shape, or a table. Of k systems: the last axis has the k scores of a trial, or
            a list of k tables, of which the first gives the trials.
        quality
            Where quality measures were used in `fit`: one more axis, the last, with the q measures of a trial; with
            one measure that axis may be left out. For tables also names as in `quality_columns`.
        """
        if (quality is not None) != (self.quality_weights.size > 0):
            raise InputError(f"this calibration uses {self.quality_weights.size} quality measures; give as many")
        if isinstance(scores, ScoreMatrix | TrialList) and quality is None and self.weights.size == 1:
            return super().__call__(scores)
        tables = [scores] if isinstance(scores, ScoreMatrix | TrialList) else scores
        if not (isinstance(tables, list | tuple) and tables and isinstance(tables[0], ScoreMatrix | TrialList)):
            return self._fuse(as_input(scores), quality)
        first, values = tables[0], as_input(stack_systems(tables))
        measures = quality if quality is None else _as_measures(quality, first, None)
        llr = self._fuse(values, measures).astype(values.dtype, copy=False)
        return first.with_scores(llr)

    def _fuse(self, values: Floats, quality: npt.ArrayLike | None) -> Floats:
        """Return (L1)."""
        if self.weights.size > 1 and (values.ndim == 0 or values.shape[-1] != self.weights.size):
            raise InputError(
                f"scores have shape {values.shape}, but the last axis must hold {self.weights.size} systems"
            )
        llr = values @ self.weights + self.offset if self.weights.size > 1 else self._llr(values)
        if quality is None:
            return np.asarray(llr)
        measures = as_input(quality)
        if self.quality_weights.size == 1 and measures.shape == llr.shape:
            measures = measures[..., None]
        wanted = (*llr.shape, self.quality_weights.size)
        if measures.shape != wanted:
            raise InputError(f"quality has shape {measures.shape}, but must have shape {wanted}")
        return np.asarray(llr + measures @ self.quality_weights)

    def _llr(self, scores: Floats) -> Floats:
        return np.asarray(scores * self.weights[0] + self.offset)


def _check_penalty(l2: float) -> None:
    if not 0 <= l2 < np.inf:
        raise InputError(f"l2 is {l2}, but must be finite and at least 0")


def _as_measures(quality: Any, table: ScoreMatrix | TrialList | None, n_trials: int | None) -> npt.NDArray[Any]:
    """Return quality measures as numbers; names are looked up in a table."""
    names = [quality] if isinstance(quality, str) else quality
    if isinstance(names, Sequence) and names and all(isinstance(name, str) for name in names):
        if table is None:
            raise InputError("quality measures are given by name, but only tables have columns; give numbers")
        return quality_columns(table, names)
    measures = np.asarray(quality)
    if measures.dtype.kind not in "fiu" or not np.isfinite(measures).all():
        raise InputError("quality measures must be finite numbers")
    if n_trials is None:
        return measures
    if measures.ndim not in (1, 2) or len(measures) != n_trials:
        raise InputError(f"quality has shape {measures.shape}, but there are {n_trials} trials; give one row for each")
    return measures.reshape(n_trials, -1)


class _Problem(NamedTuple):
    """The minimization (L2): inputs of the trials, and the weight of each as a target and as a non-target."""

    inputs: npt.NDArray[Any]  #: n x d
    target: Floats
    nontarget: Floats
    p_target: float
    l2: float

    def evaluate(self, theta: Floats) -> tuple[float, Floats, Floats, bool]:
        """Return value, gradient and Hessian of (L2), and whether a threshold separates the classes.

        The inputs are standardized, with a last column of ones; the weights of a class sum up to its prior.
        """
        penalty = np.append(np.full(theta.size - 1, self.l2), 0.0)
        value, gradient, hessian = 0.5 * float(penalty @ theta**2), penalty * theta, np.diag(penalty)
        lowest, highest = math.inf, -math.inf  # log-odds of a target, of a non-target
        tau = math.log(self.p_target) - math.log1p(-self.p_target)
        for start in range(0, len(self.inputs), _CHUNK):
            rows = self.inputs[start : start + _CHUNK]
            target, nontarget = self.target[start : start + _CHUNK], self.nontarget[start : start + _CHUNK]
            odds = rows @ theta + tau
            small = np.exp(-np.abs(odds))  # the one exponential of loss and probability: most of the time goes here
            likelier = 1.0 / (1.0 + small)
            both, posterior = target + nontarget, np.where(odds >= 0, likelier, small * likelier)
            # log(1 + exp(z)) = max(z, 0) - log(likelier); log1p would be several times slower
            value += float(nontarget @ np.maximum(odds, 0.0) - target @ np.minimum(odds, 0.0) - both @ np.log(likelier))
            gradient = gradient + (both * posterior - target) @ rows
            hessian = hessian + rows.T @ (rows * (both * small * likelier**2)[:, None])
            lowest = min(lowest, float(odds[target > 0].min(initial=math.inf)))
            highest = max(highest, float(odds[nontarget > 0].max(initial=-math.inf)))
        return value, gradient, hessian, lowest >= highest


def _minimize(problem: _Problem, n_systems: int) -> tuple[Floats, float]:
    """Return slopes and offset, in the units of the inputs."""
    raw, both = problem.inputs, problem.target + problem.nontarget
    mean = both @ raw / both.sum()
    rows = np.empty((len(raw), raw.shape[1] + 1))
    np.subtract(raw, mean, out=rows[:, :-1])
    rows[:, -1] = 1.0
    std = np.sqrt(both @ rows[:, :-1] ** 2 / both.sum())
    flat = np.flatnonzero(~(std > 1e-12 * np.abs(mean)))
    if flat.size:
        name = f"system {flat[0]}'s scores are" if flat[0] < n_systems else f"quality measure {flat[0] - n_systems} is"
        raise InputError(f"{name} the same in all trials and cannot be weighed; leave out what does not vary")
    rows[:, :-1] /= std
    if problem.l2 == 0 and len(std) > 1:
        correlation = (rows[:, :-1] * both[:, None]).T @ rows[:, :-1] / both.sum()
        if np.linalg.eigvalsh(correlation)[0] < 1e-12:
            raise InputError(
                "one of the inputs is a weighted sum of the others, so the weights are not determined; leave one out, "
                "or give a penalty such as l2=0.001"
            )
    standard = _prior_weighted(problem._replace(inputs=rows))
    theta = _newton(standard, _start(standard))
    slopes = theta[:-1] / std
    return slopes, float(theta[-1] - slopes @ mean)


def _prior_weighted(problem: _Problem) -> _Problem:
    """Return the problem with weights of each class that sum up to its prior."""
    target = problem.target * (problem.p_target / problem.target.sum())
    return problem._replace(
        target=target, nontarget=problem.nontarget * ((1 - problem.p_target) / problem.nontarget.sum())
    )


def _start(problem: _Problem) -> Floats:
    """Return the optimum of some of the trials, where there are many; else 0."""
    zero = np.zeros(problem.inputs.shape[1])
    targets, nontargets = np.flatnonzero(problem.target), np.flatnonzero(problem.nontarget)
    steps = len(targets) // _SAMPLE, len(nontargets) // _SAMPLE
    if min(steps) < 1 or max(steps) < 4:
        return zero
    at = np.concatenate((targets[:: steps[0]], nontargets[:: steps[1]]))
    some = problem._replace(inputs=problem.inputs[at], target=problem.target[at], nontarget=problem.nontarget[at])
    try:
        return _newton(_prior_weighted(some), zero, flat=1e-3)
    except InputError:  # all trials may have an optimum nevertheless
        return zero


def _newton(problem: _Problem, theta: Floats, flat: float = _FLAT) -> Floats:
    """Return the optimum; a step is halved until the objective falls enough, up to rounding."""
    value, gradient, hessian, separated = problem.evaluate(theta)
    for _ in range(_STEPS):
        if np.abs(gradient).max() <= flat:
            return theta
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            raise InputError(_NO_OPTIMUM) from None
        fall, length = float(gradient @ step), 1.0  # twice the expected fall of the objective
        while True:
            there = problem.evaluate(theta - length * step)
            if there[0] <= value - 1e-4 * length * fall + 1e-14 * abs(value):
                break
            length /= 2
            if length <= _SHORTEST:
                raise InputError(_NO_OPTIMUM)
        theta, (value, gradient, hessian, separated) = theta - length * step, there
        if problem.l2 == 0 and separated:
            raise InputError(
                "the scores separate targets from non-targets without error, so the best weights are infinite; "
                "give a penalty such as l2=0.001, or more trials"
            )
        if fall < 1e-16:  # this step has squared it: what is left is rounding
            return theta
    raise InputError(_NO_OPTIMUM)


def _informative(problem: _Problem, n_systems: int) -> npt.NDArray[np.intp]:
    """Return which inputs are fitted: all systems, and the measures that the inputs before them do not explain."""
    both = problem.target + problem.nontarget
    centred = problem.inputs - both @ problem.inputs / both.sum()
    spread = np.sqrt(both @ centred**2 / both.sum())
    varies = spread > 1e-12 * np.abs(problem.inputs).max(axis=0)
    centred /= np.where(varies, spread, 1.0)
    covariance = (centred * both[:, None]).T @ centred / both.sum() * np.outer(varies, varies)
    kept = list(range(n_systems))
    for at in range(n_systems, len(covariance)):
        known = covariance[np.ix_(kept, [at])]
        explained = known.T @ np.linalg.lstsq(covariance[np.ix_(kept, kept)], known, rcond=None)[0]
        if varies[at] and (problem.l2 > 0 or explained.item() < (1 - _EXPLAINED) * covariance[at, at]):
            kept.append(at)
    return np.array(kept)
