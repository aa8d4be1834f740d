"""Calibration with bounded log-likelihood ratios: an affine map, and the shares of trials that are outliers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration, check_prior, finite
from evenscore.calibrate.logistic import LogisticCalibration
from evenscore.calibrate.training import Floats, Training, trial_speakers
from evenscore.data.labels import NONTARGET, TARGET
from evenscore.data.side import SpeakersLike
from evenscore.errors import InputError
from evenscore.metrics.cross_entropy import expit
from evenscore.norms.folds import assign_folds

__all__ = ["SHARES", "SaturatingCalibration", "saturate", "speaker_folds"]

SHARES = (0.0, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)  #: candidates of the two shares
_BINS = 4096  # bins of scores while the shares are chosen
_GAIN = 0.02  # part of the loss that a share above the first of its candidates must save
_PENALTY = 1e-6  # on the weight, in units of the scores' spread: without its outliers, a class may be free of errors

Shares = tuple[float, float]  # of target outliers, of non-target outliers


def saturate(llr: npt.ArrayLike, target_outliers: float, nontarget_outliers: float) -> Floats:
    """Bound log-likelihood ratios by the shares of trials that behave like the other class, (T2).

    Examples
    --------
    >>> saturate([-50.0, 0.0, 50.0], 0.01, 0.001).round(3)
    array([-4.604, -0.   ,  6.898])
    """
    above, below = _log_terms(np.asarray(llr, np.float64), (target_outliers, nontarget_outliers))
    return np.asarray(above - below)


def _log_terms(z: Floats, shares: Shares) -> tuple[Floats, Floats]:
    """Return log((1 - e) exp(z) + e) and log((1 - d) + d exp(z))."""
    e, d = shares
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0 sets no bound; NaN stays NaN
        return np.logaddexp(np.log1p(-e) + z, np.log(e)), np.logaddexp(np.log1p(-d), np.log(d) + z)


@dataclass(frozen=True, kw_only=True, eq=False)
class SaturatingCalibration(Calibration):
    """An affine map of scores whose log-likelihood ratios are bounded on both sides.

    z = offset + weight score                                                                   (T1)
    llr = log((1 - e) exp(z) + e) - log((1 - d) + d exp(z)),   log e < llr < -log d             (T2)

    It is the likelihood ratio if a share e of the targets has scores of non-targets, and a share d of the non-targets
    scores of targets: wrong labels, broken recordings, one person under two names. With e = d = 0 it is the logistic
    calibration, in which a single outlier flattens the slope of all LLRs.

    Attributes
    ----------
    weight, offset
        The affine map.
    target_outliers, nontarget_outliers
        The shares e and d.
    p_target
        Prior at which it was fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = np.concatenate([rng.normal(0, 1, 2000), rng.normal(6, 1, 200), rng.normal(0, 1, 4)])
    >>> labels = np.repeat([0, 1], [2000, 204])
    >>> calibration = SaturatingCalibration.fit(scores, labels)
    >>> calibration.target_outliers, calibration.nontarget_outliers
    (0.03, 0.0)
    >>> [float(one(-100.0).round(1)) for one in (calibration, LogisticCalibration.fit(scores, labels))]
    [-3.5, -183.9]
    """

    kind: ClassVar[str] = "saturating"

    weight: float
    offset: float
    target_outliers: float
    nontarget_outliers: float
    p_target: float = 0.5

    def __post_init__(self) -> None:
        for name in ("weight", "offset"):
            object.__setattr__(self, name, float(finite(name, getattr(self, name), ())))
        _check_share("target_outliers", self.target_outliers)
        _check_share("nontarget_outliers", self.nontarget_outliers)
        check_prior(self.p_target)

    @property
    def bounds(self) -> tuple[float, float]:
        """Lower and upper bound of the log-likelihood ratios."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.target_outliers)), float(-np.log(self.nontarget_outliers))

    @classmethod
    def fit(
        cls,
        scores: Any,
        labels: Any = None,
        weights: npt.ArrayLike | None = None,
        *,
        enroll_speakers: SpeakersLike | None = None,
        test_speakers: SpeakersLike | None = None,
        target_outliers: float | None = None,
        nontarget_outliers: float | None = None,
        p_target: float = 0.5,
        l2: float = 0.0,
        folds: int = 5,
    ) -> Self:
        """Choose the two shares by cross-validation, then fit the affine map.

        Parameters
        ----------
        scores, labels, weights
            As in `Calibration.fit`.
        enroll_speakers, test_speakers
            As in `cross_calibrate`. With them, folds are of speakers: outliers often share a speaker. Without them
            every n-th trial is a fold.
        target_outliers, nontarget_outliers
            A share that is known; else the one of `SHARES` with the smallest loss on trials that were not fitted to,
            but 0 if that saves less than 2 % of the loss.
        p_target
            Prior at which the cross-entropy is minimized.
        l2
            Penalty on the weight, as in `LogisticCalibration`; scores that separate the classes need one.
        folds
            How many.
        """
        for name, share in (("target_outliers", target_outliers), ("nontarget_outliers", nontarget_outliers)):
            if share is not None:
                _check_share(name, share)
        if folds < 2:
            raise InputError(f"folds is {folds}, but must be at least 2")
        training = Training.from_scores(scores, labels, weights)
        logistic = LogisticCalibration.fit(training.scores, training.labels, training.weights, p_target=p_target, l2=l2)
        start = float(logistic.weights[0]), logistic.offset
        search = _Search(start, p_target, l2)
        grids = [SHARES if share is None else (share,) for share in (target_outliers, nontarget_outliers)]
        shares = grids[0][0], grids[1][0]
        if max(len(grid) for grid in grids) > 1:
            enroll, test = _trial_folds(training, enroll_speakers, test_speakers, folds)
            shares = _choose_shares(_binned(training, enroll, test), grids, search)
        weight, offset = start
        if shares != (0.0, 0.0):
            members = [training.labels == label for label in (NONTARGET, TARGET)]
            classes = [
                _weighted(training.scores[member].astype(np.float64), training.mass(label)[member])
                for label, member in zip((NONTARGET, TARGET), members, strict=True)
            ]
            weight, offset = search.fit(classes, shares)
        names = {"target_outliers": shares[0], "nontarget_outliers": shares[1], "p_target": p_target}
        return cls(weight=weight, offset=offset, **names)._fitted_to(training, l2=l2, **names)

    def _llr(self, scores: Floats) -> Floats:
        return saturate(scores * self.weight + self.offset, self.target_outliers, self.nontarget_outliers)


def _check_share(name: str, share: float) -> None:
    if isinstance(share, bool) or not 0 <= share < 0.5:
        raise InputError(f"{name} is {share!r}, but must be a share from 0 to below 0.5")


class _Scores(NamedTuple):
    """Scores of one class, each with its share of the class."""

    score: Floats
    share: Floats

    def median(self) -> tuple[float, float]:
        """Return the median, and half the width of the middle two thirds: about the standard deviation."""
        order = np.argsort(self.score)
        low, median, high = np.interp([1 / 6, 1 / 2, 5 / 6], np.cumsum(self.share[order]), self.score[order])
        return float(median), float(high - low) / 2


def _weighted(score: Floats, weight: Floats) -> _Scores:
    return _Scores(score[weight > 0], weight[weight > 0] / weight.sum())


Classes = Sequence[_Scores]  # non-targets, targets


class _Search(NamedTuple):
    """Where the search for weight and offset starts (the logistic calibration of all trials), and its objective."""

    start: tuple[float, float]
    p_target: float
    l2: float

    def loss(self, theta: Floats, classes: Classes, shares: Shares) -> tuple[float, Floats]:
        """Return the prior-weighted cross-entropy of (T2), and its gradient in weight and offset."""
        e, d = shares
        value, gradient = 0.0, np.zeros(2)
        tau = np.log(self.p_target) - np.log1p(-self.p_target)
        for (score, share), sign, prior in zip(classes, (-1.0, 1.0), (1 - self.p_target, self.p_target), strict=True):
            z = theta[0] * score + theta[1]
            above, below = _log_terms(z, shares)
            slope = (1 - e) * np.exp(z - above) - d * np.exp(z - below)  # d llr / dz
            margin = sign * (above - below + tau)
            value += prior * float(share @ np.logaddexp(0.0, -margin))
            pull = -sign * prior * share * expit(-margin) * slope
            gradient += np.array([pull @ score, pull.sum()])
        return value, gradient

    def fit(self, classes: Classes, shares: Shares) -> tuple[float, float]:
        """Return weight and offset; the search is in units of the scores' spread, from the better of two starts."""
        from scipy.optimize import minimize

        both = np.concatenate([part.score for part in classes])
        (low, low_width), (high, high_width) = classes[0].median(), classes[1].median()
        mean, scale = 0.5 * (low + high), max(low_width, high_width, 0.5 * abs(high - low)) or float(both.std())
        if not scale > 0:  # all scores of a fold are the same
            return 0.0, 0.0
        scaled = [_Scores((part.score - mean) / scale, part.share) for part in classes]
        penalty = max(self.l2 * (float(both.std()) / scale) ** 2, _PENALTY if max(shares) > 0 else 0.0)

        def objective(theta: Floats) -> tuple[float, Floats]:
            value, gradient = self.loss(theta, scaled, shares)
            return value + 0.5 * penalty * theta[0] ** 2, gradient + np.array([penalty * theta[0], 0.0])

        starts = [np.array([self.start[0] * scale, self.start[1] + self.start[0] * mean])]
        within = 0.5 * (low_width**2 + high_width**2)
        if within > 0:  # a few scores that are far away may have flattened the logistic calibration
            starts.append(np.array([scale * (high - low) / within, 0.0]))
        first = min(starts, key=lambda theta: objective(theta)[0])
        found = minimize(objective, first, jac=True, method="BFGS", options={"gtol": 1e-9}).x
        weight = float(found[0] / scale)
        return weight, float(found[1] - weight * mean)


def speaker_folds(names: npt.NDArray[Any], speakers: npt.NDArray[np.intp], folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each speaker; those with many of the trials ``speakers`` are dealt out first.

    Examples
    --------
    >>> speaker_folds(np.array(["ann", "bob", "eve"]), np.array([1, 1, 2]), 2)
    array([0, 0, 1])
    """
    found = assign_folds([*names.tolist(), *names[speakers].tolist()], folds)
    return np.array([found[name] for name in names.tolist()], np.intp)


def _trial_folds(
    training: Training, enroll: SpeakersLike | None, test: SpeakersLike | None, folds: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the folds of each trial's speakers; where those are not known, every n-th trial of a class is a fold."""
    if (enroll is None) != (test is None):
        raise InputError("speakers of one side only were given; give both enroll_speakers and test_speakers")
    table = training.table
    if enroll is not None or (
        table is not None and table.enroll.speakers is not None and table.test.speakers is not None
    ):
        names, of_enroll, of_test = trial_speakers(training, enroll, test)
        fold = speaker_folds(names, of_enroll[training.labels == TARGET], min(folds, len(names)))
        return fold[of_enroll], fold[of_test]
    number = np.zeros(len(training.labels), np.intp)
    for label in (NONTARGET, TARGET):
        member = training.labels == label
        number[member] = np.arange(np.count_nonzero(member)) % folds
    return number, number


def _binned(
    training: Training, enroll: npt.NDArray[np.intp], test: npt.NDArray[np.intp]
) -> list[tuple[Classes, Classes]]:
    """Return for each fold the trials to fit to and those to evaluate on, with scores that are nearly equal as one."""
    scores = training.scores.astype(np.float64)
    masses = training.mass(NONTARGET), training.mass(TARGET)
    order = np.argsort(scores)
    running = np.cumsum((masses[0] + masses[1])[order])
    ranks = np.searchsorted(running, np.linspace(0, running[-1], _BINS + 1))
    edges = np.unique(scores[order[np.minimum(ranks, len(order) - 1)]])
    at = np.maximum(np.searchsorted(edges, scores, side="right") - 1, 0)

    def classes(mask: npt.NDArray[np.bool_]) -> Classes:
        found = []
        for mass in masses:
            weight = np.bincount(at[mask], mass[mask], len(edges))
            total = np.bincount(at[mask], (mass * scores)[mask], len(edges))
            some = weight > 0
            found.append(_weighted(total[some] / weight[some], weight[some]))
        return found

    parts = []
    for fold in range(int(max(enroll.max(), test.max())) + 1):
        own, others = classes((enroll == fold) & (test == fold)), classes((enroll != fold) & (test != fold))
        if all(part.score.size for part in (*own, *others)):
            parts.append((others, own))
    return parts


def _choose_shares(
    parts: Sequence[tuple[Classes, Classes]], grids: Sequence[Sequence[float]], search: _Search
) -> Shares:
    """Return the shares with the smallest loss on held-out trials: one share after the other, twice."""
    best = grids[0][0], grids[1][0]
    known: dict[Shares, float] = {}

    def loss(shares: Shares) -> float:
        if shares not in known:
            fits = [(np.array(search.fit(train, shares)), held_out) for train, held_out in parts]
            known[shares] = sum(search.loss(theta, held_out, shares)[0] for theta, held_out in fits)
        return known[shares]

    for side in (0, 1, 0, 1):
        options = [(share, best[1]) if side == 0 else (best[0], share) for share in grids[side]]
        found = min(options, key=loss)
        best = found if loss(found) < (1 - _GAIN) * loss(options[0]) else options[0]
    return best
