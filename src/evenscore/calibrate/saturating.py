"""Calibration whose log-likelihood ratios are bounded: an affine map, and the shares of trials that break the rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration, as_input, finite
from evenscore.calibrate.folds import FoldPairs, assign_folds, held_out, pairs_of_folds
from evenscore.calibrate.logistic import LogisticCalibration
from evenscore.errors import InputError
from evenscore.log_odds import expit, logit
from evenscore.metrics.points import Points
from evenscore.metrics.speakers import SpeakersLike, trial_speakers
from evenscore.metrics.trials import ScoresLike, Trials, points_of
from evenscore.tables import NONTARGET, TARGET
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["SHARES", "SaturatingCalibration", "saturated"]

SHARES = (0.0, 1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2)  #: candidates of the two shares
_BINS = 4096  # scores are put into so many bins while the shares are chosen
_FOLDS = 5
_WORTH = 0.02  # part of the loss that a share above the first of its candidates must save
_PENALTY = 1e-6  # on the weight, in units of the scores' spread: without its outliers, a class may be free of errors

Array = npt.NDArray[np.float64]


def saturated(llr: Array, target_outliers: float, nontarget_outliers: float) -> Array:
    """Bound log-likelihood ratios by the shares of trials that behave like the other class, (T2).

    Examples
    --------
    >>> saturated(np.array([-50.0, 0.0, 50.0]), 0.01, 0.001).round(3)
    array([-4.604, -0.   ,  6.898])
    """
    e, d = target_outliers, nontarget_outliers
    with np.errstate(divide="ignore", invalid="ignore"):  # a share of 0 sets no bound; NaN stays NaN
        log_e, log_d = np.log(e), np.log(d)
        return np.logaddexp(np.log1p(-e) + llr, log_e) - np.logaddexp(np.log1p(-d), log_d + llr)


@dataclass(frozen=True, kw_only=True, eq=False)
class SaturatingCalibration(Calibration):
    """An affine map of scores whose log-likelihood ratios are bounded on both sides.

    z = offset + weight score                                                                   (T1)
    llr = log((1 - e) exp(z) + e) - log((1 - d) + d exp(z)),   log e < llr < -log d             (T2)

    It is the likelihood ratio if a share e of the targets has scores of non-targets, and a share d of the non-targets
    scores of targets: wrong labels, broken recordings, one person under two names. With e = d = 0 it is the logistic
    calibration, which lets a single outlier flatten the slope for everybody.

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
        for name in ("target_outliers", "nontarget_outliers"):
            _check_share(name, getattr(self, name))
        if not 0 < self.p_target < 1:
            raise InputError(f"p_target is {self.p_target}, but must lie between 0 and 1")

    @property
    def bounds(self) -> tuple[float, float]:
        """What no log-likelihood ratio goes below and above."""
        with np.errstate(divide="ignore"):
            return float(np.log(self.target_outliers)), float(-np.log(self.nontarget_outliers))

    @classmethod
    @one_thread_per_product()
    def fit(
        cls,
        scores: ScoresLike,
        labels: npt.ArrayLike | None = None,
        *,
        enroll_speakers: SpeakersLike | None = None,
        test_speakers: SpeakersLike | None = None,
        fold_pairs: FoldPairs | None = None,
        target_outliers: float | None = None,
        nontarget_outliers: float | None = None,
        p_target: float = 0.5,
        l2: float = 0.0,
        folds: int = _FOLDS,
    ) -> SaturatingCalibration:
        """Choose the two shares by cross-validation, then fit the affine map.

        Parameters
        ----------
        scores, labels
            As in `evenscore.metrics.validate`; scores must be finite. Or a `ScoreSummary`: each bin is then one score,
            the mean of its class in it.
        enroll_speakers, test_speakers
            One speaker per trial; with a `TrialList` a mapping from id to speaker, or one speaker per id of each
            side. With them, folds are of speakers, which is the honest way: outliers come speaker by speaker. Without
            them every n-th trial is a fold.
        fold_pairs
            With a summary, in place of speakers: the summary of each pair of folds, that of the enrolment's speaker and
            that of the test's.
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
        given = {"target_outliers": target_outliers, "nontarget_outliers": nontarget_outliers}
        for name, share in given.items():
            if share is not None:
                _check_share(name, share)
        found = points_of(scores, labels)
        start = LogisticCalibration.fit(found, p_target=p_target, l2=l2)
        how = _Search(start=np.array([start.weights[0], start.offset]), p_target=p_target, l2=l2)
        data = [_Weighted.of(*found.class_scores(label)) for label in (NONTARGET, TARGET)]
        grids = [SHARES if share is None else (share,) for share in given.values()]
        shares = (grids[0][0], grids[1][0])
        if max(len(grid) for grid in grids) > 1:
            pairs = fold_pairs or _fold_pairs(found, scores, (enroll_speakers, test_speakers), folds)
            shares = _chosen_shares(_binned(found, pairs), grids, how)
        weight, offset = how.start if shares == (0.0, 0.0) else _fit_affine(data, shares, how)
        return cls(
            weight=float(weight),
            offset=float(offset),
            target_outliers=shares[0],
            nontarget_outliers=shares[1],
            p_target=p_target,
        )

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the LLR of each score; NaN stays NaN."""
        z = as_input(scores) * self.weight + self.offset
        return np.asarray(saturated(z, self.target_outliers, self.nontarget_outliers))


def _check_share(name: str, share: float) -> None:
    if isinstance(share, bool) or not 0 <= share < 0.5:
        raise InputError(f"{name} is {share!r}, but must be a share from 0 to below 0.5")


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Scores of one class, each with the share of the class that it stands for."""

    score: Float[np.ndarray, " n"]
    share: Float[np.ndarray, " n"]

    @classmethod
    def of(cls, scores: Array, counts: Array | None = None) -> _Weighted:
        """Weigh scores, each of which stands for so many trials, or for one."""
        number = np.ones(len(scores)) if counts is None else counts
        return cls(scores, number / max(number.sum(), 1))

    @classmethod
    def of_table(cls, counts: Array, sums: Array) -> _Weighted:
        """Take the mean of each bin that has scores."""
        used = counts > 0
        return cls.of(sums[used] / counts[used], counts[used])

    def middle(self) -> tuple[float, float]:
        """Return the median, and half the width of the middle two thirds: about the standard deviation."""
        order = np.argsort(self.score)
        low, median, high = np.interp([1 / 6, 1 / 2, 5 / 6], np.cumsum(self.share[order]), self.score[order])
        return float(median), float(high - low) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """Where the search for weight and offset starts (the logistic calibration of all trials), and what it minimizes."""

    start: Float[np.ndarray, "2"]
    p_target: float
    l2: float


def _loss(theta: Array, data: Sequence[_Weighted], shares: tuple[float, float], p_target: float) -> tuple[float, Array]:
    """Return the prior-weighted cross-entropy of (T2), and its gradient in weight and offset."""
    e, d = shares
    with np.errstate(divide="ignore"):
        log_e, log_d = np.log(e), np.log(d)
    value, gradient = 0.0, np.zeros(2)
    for points, sign, prior in zip(data, (-1.0, 1.0), (1 - p_target, p_target), strict=True):
        z = theta[0] * points.score + theta[1]
        above, below = np.logaddexp(np.log1p(-e) + z, log_e), np.logaddexp(np.log1p(-d), log_d + z)
        slope = np.exp(np.log1p(-e) + z - above) - np.exp(log_d + z - below)  # d llr / dz
        margin = sign * (above - below + logit(p_target))
        value += prior * float(points.share @ np.logaddexp(0.0, -margin))
        pull = -sign * prior * points.share * expit(-margin) * slope
        gradient += np.array([pull @ points.score, pull.sum()])
    return value, gradient


def _fit_affine(data: Sequence[_Weighted], shares: tuple[float, float], how: _Search) -> tuple[float, float]:
    """Return weight and offset; the search runs in units of the scores' spread, and starts from the better of two."""
    both = np.concatenate([points.score for points in data])
    (low, low_width), (high, high_width) = (points.middle() for points in data)
    mean, scale = 0.5 * (low + high), max(low_width, high_width, 0.5 * abs(high - low)) or float(both.std())
    if not scale > 0:  # all scores of a fold are the same
        return 0.0, 0.0
    scaled = [_Weighted((points.score - mean) / scale, points.share) for points in data]
    penalty = max(how.l2 * (float(both.std()) / scale) ** 2, _PENALTY if max(shares) > 0 else 0.0)

    def loss(theta: Array) -> tuple[float, Array]:
        value, gradient = _loss(theta, scaled, shares, how.p_target)
        return value + 0.5 * penalty * theta[0] ** 2, gradient + np.array([penalty * theta[0], 0.0])

    starts = [np.array([how.start[0] * scale, how.start[1] + how.start[0] * mean])]
    within = 0.5 * (low_width**2 + high_width**2)
    if within > 0:  # a few scores that are far away may have flattened the logistic calibration beyond repair
        starts.append(np.array([scale * (high - low) / within, 0.0]))
    first = min(starts, key=lambda theta: loss(theta)[0])
    from scipy.optimize import minimize

    found = minimize(loss, first, jac=True, method="BFGS", options={"gtol": 1e-9}).x
    weight = float(found[0] / scale)
    return weight, float(found[1] - weight * mean)


def _fold_pairs(
    found: Points, trials: object, speakers: tuple[SpeakersLike | None, SpeakersLike | None], folds: int
) -> FoldPairs:
    """Divide trials by speakers, or where those are not known every n-th trial of each class."""
    if folds < 2:
        raise InputError(f"folds is {folds}, but must be at least 2")
    if not isinstance(found, Trials):
        raise InputError("the shares are chosen by cross-validation; give fold_pairs, or both shares")
    enroll, test = speakers
    if (enroll is None) != (test is None):
        raise InputError("speakers of one side only were given; give both enroll_speakers and test_speakers")
    if enroll is None or test is None:
        number = np.zeros(len(found.key), dtype=np.int64)
        for label in (NONTARGET, TARGET):
            members = found.key == label
            number[members] = np.arange(np.count_nonzero(members)) % folds
        return {(fold, fold): found.part(number == fold) for fold in range(folds)}
    known = trial_speakers(trials, len(found.key), enroll, test)
    return pairs_of_folds(found, known, assign_folds(known, found.key, min(folds, len(known.names))))[0]


def _binned(found: Points, pairs: FoldPairs) -> list[tuple[list[_Weighted], list[_Weighted]]]:
    """Return for each fold what is fitted to and what is judged, with scores that are nearly equal as one."""
    scores, counts = found.pooled_scores()
    order = np.argsort(scores)
    running = np.cumsum(counts[order])
    ranks = np.searchsorted(running, np.linspace(0, running[-1], _BINS + 1))
    edges = np.unique(scores[order[np.minimum(ranks, len(order) - 1)]])
    tables = {pair: _table(part, edges) for pair, part in pairs.items()}
    parts = [
        (np.sum([tables[pair] for pair in others], axis=0), tables[own]) for own, others in held_out(pairs).items()
    ]
    return [
        ([_Weighted.of_table(*side) for side in use], [_Weighted.of_table(*side) for side in test])
        for use, test in parts
        if all(half[:, 0].sum(axis=1).all() for half in (use, test))
    ]


def _table(found: Points, edges: Array) -> Float[np.ndarray, "2 2 b"]:
    """Return number and sum of the scores of each class from each edge to the next."""
    tables = []
    for label in (NONTARGET, TARGET):
        scores, counts = found.class_scores(label)
        at = np.maximum(np.searchsorted(edges, scores, side="right") - 1, 0)
        tables.append([np.bincount(at, weights, len(edges)) for weights in (counts, counts * scores)])
    return np.array(tables)


def _chosen_shares(
    parts: Sequence[tuple[list[_Weighted], list[_Weighted]]],
    grids: Sequence[Sequence[float]],
    how: _Search,
) -> tuple[float, float]:
    """Return the shares with the smallest loss on judged trials: one share after the other, twice; 0 unless it pays."""
    best = (min(grids[0]), min(grids[1]))
    known: dict[tuple[float, float], float] = {}

    def loss(shares: tuple[float, float]) -> float:
        if shares not in known:
            fits = [(_fit_affine(use, shares, how), test) for use, test in parts]
            known[shares] = sum(_loss(np.array(fit), test, shares, how.p_target)[0] for fit, test in fits)
        return known[shares]

    for side in (0, 1, 0, 1):
        options = [(share, best[1]) if side == 0 else (best[0], share) for share in grids[side]]
        plain, found = options[0], min(options, key=loss)
        best = found if loss(found) < (1 - _WORTH) * loss(plain) else plain
    return best
