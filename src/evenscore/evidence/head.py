"""The head: views of a trial as log-likelihood ratios, weighed by a regression that is held to their average."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.saturating import saturated
from evenscore.errors import InputError
from evenscore.log_odds import expit
from evenscore.tables.arrays import LARGEST

__all__ = ["BEND", "EvidenceHead", "Features", "Penalties", "fit_head", "log_loss"]

BEND = "bend"  #: the positive part of the views' average

_CHUNK = 1 << 16
_STEPS = 100
_POWER = 2  # a view counts by its loss to this power, before the head is fitted
_MANY_SPEAKERS = 200  # from here on the penalty on views does not fall any more
_STILL = 1e-10  # expected fall of the loss at which the search ends
_USUAL_SLOPE = 0.4  # of real scores, whose tails are heavy, relative to normal ones with the same means and variances
_SLOPE_SPREAD = 0.25  # of the logarithm of that, whose density is a Cauchy
_LARGEST = 50.0  # of the logarithm of a slope's multiple, on the way to the best
_LEAST_SPREAD = 0.01  # variance within classes, of all variance, below which it is not believed

Array = npt.NDArray[np.float64]
Features = Mapping[str, Array]


@dataclass(frozen=True, kw_only=True)
class Penalties:
    """How strongly the head is held to the average of the views.

    Attributes
    ----------
    views
        Penalty on the square of a view's weight less its share of the average.
    bend
        On the square of the change of slope above 0.
    extras
        On the squares of the weights of all other features, in units of log-likelihood ratios.
    """

    views: float = 0.003
    bend: float = 0.0003
    extras: float = 0.03

    @classmethod
    def of(cls, n_speakers: int, n_targets: int) -> Penalties:
        """Return the penalties for so many training speakers and target trials; few leave the head no freedom.

        Where vectors are centred on the training speakers, the others know a little of each: their mean is opposite to
        it, by 1 / number. Views differ in what they make of that mean, so that their difference would tell targets of
        the training side, and of no other. The square of what it tells falls with the square of the number.

        The bend rests on the few targets that are hard to tell: separable ones would bend without end.
        """
        views = max(cls.views, cls.views * (_MANY_SPEAKERS / max(n_speakers, 1)) ** 2)
        return cls(views=views, bend=max(cls.bend, 1 / max(n_targets, 1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class EvidenceHead:
    """From the features of a trial to its log-likelihood ratio.

    v_k = slope_k view_k + offset_k                                                             (H1)
    z = offset + sum_k weight_k v_k + weight_bend max(0, sum_k share_k v_k)
          + sum_f weight_f unit_f (f - center_f)                                                (H2)
    llr = saturated(z)                                                                          (H3)

    (H1) is the logistic calibration of each view by itself, so that all of them are in the same unit; in (H2) the
    other features are brought to units of log-likelihood ratios, too. The weights minimize the class-balanced
    cross-entropy + penalty, where no penalty is due at the average of the views, weight_k = share_k and nothing else.
    Slope and offset of (H1) minimize the

    class-balanced cross-entropy + log(1 + (log(slope variance / (c gap)) / spread)^2) / (2 n)   (H4)

    with the gap between the means of the classes, their mean variance, n trials of the rarer class, c = 0.4 and
    spread = 0.25: gap / variance were right for normal scores, but real ones have heavier tails. It is the posterior
    for n trials of each class and a Cauchy density of the logarithm, which gives way where trials decide; separable
    ones, whose slope would have no end, do not.

    Attributes
    ----------
    slope, intercept
        Of each view's own calibration.
    share
        Of each view in the average.
    center, unit
        Of the other features.
    weight
        Of the views, of the bend, and of the other features.
    offset
        The constant.
    target_outliers, nontarget_outliers
        The bounds, as in `SaturatingCalibration`.
    """

    slope: Mapping[str, float]
    intercept: Mapping[str, float]
    share: Mapping[str, float]
    center: Mapping[str, float]
    unit: Mapping[str, float]
    weight: Mapping[str, float]
    offset: float
    target_outliers: float = 0.0
    nontarget_outliers: float = 0.0
    penalties: Penalties = field(default_factory=Penalties)

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views."""
        return tuple(self.slope)

    @property
    def extras(self) -> tuple[str, ...]:
        """Names of the other features."""
        return tuple(self.unit)

    @property
    def simple(self) -> str | None:
        """The norm, or ``"raw"``, that the head does nothing with but calibrate it; None if it does more."""
        alone = len(self.views) == 1 and not self.extras and self.weight[BEND] == 0
        return self.views[0] if alone else None

    def terms(self, features: Features) -> dict[str, Array]:
        """Return what each feature adds to z."""
        views = {name: self.slope[name] * features[name] + self.intercept[name] for name in self.views}
        terms = {name: self.weight[name] * value for name, value in views.items()}
        average = sum(self.share[name] * value for name, value in views.items())
        terms[BEND] = self.weight[BEND] * np.maximum(average, 0.0)
        for name in self.extras:
            terms[name] = (self.weight[name] * self.unit[name]) * (features[name] - self.center[name])
        return terms

    def llr(self, features: Features) -> Array:
        """Return the log-likelihood ratios."""
        total = sum(self.terms(features).values(), start=np.float64(self.offset))
        return saturated(np.asarray(total), self.target_outliers, self.nontarget_outliers)


def log_loss(llr: Array, labels: npt.NDArray[np.int8]) -> float:
    """Return the class-balanced cross-entropy in bits: the Cllr."""
    target, nontarget = llr[labels == 1], llr[labels == 0]
    bits = np.logaddexp(0.0, -target).mean() + np.logaddexp(0.0, nontarget).mean()
    return float(bits / (2 * np.log(2)))


def fit_head(
    features: Features,
    labels: npt.NDArray[np.int8],
    views: Sequence[str],
    extras: Sequence[str],
    penalties: Penalties,
    calibrated: dict[str, tuple[float, float]] | None = None,
) -> EvidenceHead:
    """Fit a head to labelled trials.

    Parameters
    ----------
    features
        Arrays with an entry for each trial; the raw score, which gives the unit of b and w, is one of them.
    labels
        1 and 0.
    views, extras
        Which features are views, and which others are used.
    penalties
        See `Penalties`.
    calibrated
        Where slopes and offsets of single features are kept, for further heads of the same trials.
    """
    if not (labels == 1).any() or not (labels == 0).any():
        raise InputError("the head needs target and non-target trials to be fitted to, but one kind is missing")
    known = {} if calibrated is None else calibrated
    for name in ("raw", *views):
        if name not in known:
            known[name] = _calibrated(features[name], labels)
    slope, intercept, losses, columns = {}, {}, [], []
    for name in views:
        slope[name], intercept[name] = known[name]
        columns.append(slope[name] * features[name] + intercept[name])
        losses.append(log_loss(columns[-1], labels))
    shares = np.maximum(losses, 1e-6) ** -float(_POWER)
    shares = shares / shares.sum()
    average = np.stack(columns, axis=1) @ shares
    columns.append(np.maximum(average, 0.0))
    reach = float(np.mean([np.abs(average[labels == label]).mean() for label in (0, 1)]))
    per_score = abs(known["raw"][0])
    center, unit = {}, {}
    for name in extras:
        center[name] = float(np.mean([features[name][labels == label].mean() for label in (0, 1)]))
        unit[name] = reach if name.startswith("ls_") else per_score
        columns.append(unit[name] * (features[name] - center[name]))
    prior = np.concatenate([shares, np.zeros(1 + len(extras))])
    penalty = np.array([penalties.views] * len(views) + [penalties.bend] + [penalties.extras] * len(extras))
    X = np.stack(columns, axis=1)
    if not np.abs(X).max(initial=0.0) <= LARGEST:
        raise InputError("the cohort scores are far beyond those of the trials; look for scores far from all others")
    weights, offset = _newton(X, labels, prior, penalty)
    return EvidenceHead(
        slope=slope,
        intercept=intercept,
        share=dict(zip(views, shares.tolist(), strict=True)),
        center=center,
        unit=unit,
        weight=dict(zip([*views, BEND, *extras], weights.tolist(), strict=True)),
        offset=offset,
        penalties=penalties,
    )


def _calibrated(values: Array, labels: npt.NDArray[np.int8]) -> tuple[float, float]:
    """Return slope and offset of the class-balanced logistic calibration of one feature, (H4).

    If the trials are (nearly) separable, nothing but their few errors would end the slope. What is usual ends it here.
    """
    halves = [values[labels == label] for label in (0, 1)]
    mean = float(np.mean([half.mean() for half in halves]))
    std = float(np.sqrt(np.mean([((half - mean) ** 2).mean() for half in halves])))
    if not std > 0:
        return 0.0, 0.0
    low, high = ((half.mean() - mean) / std for half in halves)  # equally far from 0
    spread = float(np.mean([(half / std).var() for half in halves]))
    usual = _USUAL_SLOPE * (high - low) / max(spread, _LEAST_SPREAD)
    X, sign, share = ((values - mean) / std)[:, None], *_signs_and_shares(labels)
    number = min(len(half) for half in halves)

    def at(theta: Array) -> tuple[float, Array, Array]:
        slope = usual * np.exp(min(theta[0], _LARGEST))
        value, gradient, hessian = _objective(np.array([slope, theta[1]]), X, sign, share, np.zeros(2), np.zeros(2))
        rate = np.array([slope, 1.0])  # from the slope to its logarithm
        gradient, hessian = gradient * rate, hessian * np.outer(rate, rate)
        weight = 1 / (number * (_SLOPE_SPREAD**2 + theta[0] ** 2))
        hessian[0, 0] += weight + max(gradient[0], 0.0)  # what would make it indefinite is left out
        gradient[0] += weight * theta[0]
        return value + 0.5 * float(np.log1p((theta[0] / _SLOPE_SPREAD) ** 2)) / number, gradient, hessian

    factor, offset = _descended(at, np.zeros(2))
    slope = float(usual * np.exp(factor) / std)
    return slope, float(offset) - slope * mean


def _newton(X: Array, labels: npt.NDArray[np.int8], prior: Array, penalty: Array) -> tuple[Array, float]:
    """Minimize the class-balanced cross-entropy of X w + c, with the penalty on w less its prior."""
    sign, share = _signs_and_shares(labels)
    full, center = np.append(penalty, 0.0), np.append(prior, 0.0)
    theta = _descended(lambda theta: _objective(theta, X, sign, share, full, center), center)
    return theta[:-1], float(theta[-1])


def _signs_and_shares(labels: npt.NDArray[np.int8]) -> tuple[Array, Array]:
    """Return 1 or -1 for each trial, and its share in the class-balanced loss."""
    counts = [max(int((labels == label).sum()), 1) for label in (0, 1)]
    return np.where(labels == 1, 1.0, -1.0), np.where(labels == 1, 0.5 / counts[1], 0.5 / counts[0])


def _descended(at: Callable[[Array], tuple[float, Array, Array]], theta: Array) -> Array:
    """Go down by Newton's steps, halved until the value falls; ``at`` returns value, gradient and Hessian."""
    value, gradient, hessian = at(theta)
    for _ in range(_STEPS):
        step = np.linalg.solve(hessian + 1e-12 * np.eye(len(theta)), gradient)
        fall, length = float(gradient @ step), 1.0
        if fall < _STILL:
            break
        while True:
            candidate = theta - length * step
            there = at(candidate)
            if there[0] <= value - 1e-4 * length * fall + 1e-15 or length < 1e-8:
                break
            length /= 2
        theta, (value, gradient, hessian) = candidate, there
    return theta


def _objective(
    theta: Array, X: Array, sign: Array, share: Array, penalty: Array, prior: Array
) -> tuple[float, Array, Array]:
    moved = theta - prior
    value, gradient, hessian = 0.5 * float(penalty @ moved**2), penalty * moved, np.diag(penalty)
    for first in range(0, len(X), _CHUNK):
        part = slice(first, first + _CHUNK)
        rows = np.column_stack((X[part], np.ones(len(X[part]))))
        margin = sign[part] * (rows @ theta)
        wrong, weight = expit(-margin), share[part]
        value += float(weight @ np.logaddexp(0.0, -margin))
        gradient = gradient - rows.T @ (weight * sign[part] * wrong)
        hessian = hessian + rows.T @ (rows * (weight * wrong * (1 - wrong))[:, None])
    return value, gradient, hessian
