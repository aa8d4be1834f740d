"""How sure we are of a metric: resampling speakers, because trials that share a speaker are not independent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.evaluation import evaluate
from evenscore.metrics.operating_points import DEFAULT_POINTS, OperatingPoint, PointLike, as_points
from evenscore.metrics.resampling import Draws, RankedTrials, Resampled, Rows, rank_trials, replicate
from evenscore.metrics.speakers import SpeakersLike, trial_speakers
from evenscore.metrics.trials import validate
from evenscore.tables import TrialList
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Bootstrap", "DetBand", "Interval", "Metric", "PairedTest", "bootstrap", "bootstrap_det", "paired_test"]

Metric = Literal["eer", "cllr", "min_cllr", "calibration_loss", "min_dcf", "act_dcf", "min_c_primary", "act_c_primary"]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval: the middle ``level`` of the replicates."""

    low: float
    high: float
    level: float

    @classmethod
    def of(cls, values: npt.NDArray[np.float64], level: float) -> Interval:
        """Return the percentile interval; its ends are replicates, so infinite ones do no harm."""
        low, high = _percentiles(values, level)
        return cls(low=float(low), high=float(high), level=level)


def _percentiles(values: npt.NDArray[np.float64], level: float) -> npt.NDArray[np.float64]:
    """Return the two ends of the middle ``level`` of values, or of each column."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")


@dataclass(frozen=True, kw_only=True, eq=False)
class Bootstrap:
    """Metrics of many replicates of one evaluation.

    Attributes
    ----------
    eer, cllr, min_cllr
        One value per replicate.
    min_dcf, act_dcf
        One value per replicate and operating point.
    points
        The operating points.
    n_speakers
        How many speakers were resampled.
    """

    eer: Float[np.ndarray, " b"]
    cllr: Float[np.ndarray, " b"]
    min_cllr: Float[np.ndarray, " b"]
    min_dcf: Float[np.ndarray, "b p"]
    act_dcf: Float[np.ndarray, "b p"]
    points: tuple[OperatingPoint, ...]
    n_speakers: int

    @classmethod
    def drawn(
        cls,
        sample: Resampled,
        *,
        replicates: int,
        seed: int,
        normalize: bool = True,
        figures: Mapping[str, Any] | None = None,
    ) -> Bootstrap:
        """Return the metrics of replicates, each with speakers drawn from a sample with replacement.

        Where the sample has bins, ``figures`` are the metrics of all trials, as `evaluate` gives them: what is lost to
        the bins is taken from the differences to their metrics, and given back to every replicate.
        """

        def measure(draws: Draws) -> Rows:
            return sample.measured(draws, normalize)

        rows = replicate(measure, sample.n_speakers, replicates, seed)
        if figures is not None:
            exact = [figures["eer"], figures["cllr"], figures["min_cllr"]]
            exact += [cost[name] for cost in figures["dcf"] for name in ("min_dcf", "act_dcf")]
            with np.errstate(invalid="ignore"):  # an infinite Cllr has no difference
                lost = np.array(exact) - measure(np.ones((1, sample.n_speakers), np.int64))[0]
            rows = np.maximum(rows + np.nan_to_num(lost, nan=0.0, posinf=0.0, neginf=0.0), 0.0)
        return cls(
            eer=frozen(rows[:, 0]),
            cllr=frozen(rows[:, 1]),
            min_cllr=frozen(rows[:, 2]),
            min_dcf=frozen(rows[:, 3::2]),
            act_dcf=frozen(rows[:, 4::2]),
            points=sample.points,
            n_speakers=sample.n_speakers,
        )

    def replicates(self, metric: Metric, point: int = 0) -> Float[np.ndarray, " b"]:
        """Return one metric of every replicate; ``point`` says which operating point."""
        if metric not in get_args(Metric):
            raise InputError(f"there is no metric {metric!r}; choose one of {', '.join(get_args(Metric))}")
        if metric == "calibration_loss":
            return np.asarray(self.cllr - self.min_cllr)
        if metric == "min_c_primary":
            return np.asarray(self.min_dcf.mean(axis=1))
        if metric == "act_c_primary":
            return np.asarray(self.act_dcf.mean(axis=1))
        values: npt.NDArray[np.float64] = getattr(self, metric)
        return values if values.ndim == 1 else values[:, point]

    def interval(self, metric: Metric, *, level: float = 0.95, point: int = 0) -> Interval:
        """Return the confidence interval of one metric."""
        return Interval.of(self.replicates(metric, point), level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return ``[low, high]`` of every metric, in the shape of what `evaluate` returns."""

        def ends(metric: Metric, point: int = 0) -> list[float]:
            interval = self.interval(metric, level=level, point=point)
            return [interval.low, interval.high]

        costs = [
            {"p_target": at.p_target, "c_miss": at.c_miss, "c_fa": at.c_fa}
            | {"min_dcf": ends("min_dcf", p), "act_dcf": ends("act_dcf", p)}
            for p, at in enumerate(self.points)
        ]
        named: dict[str, Any] = {metric: ends(metric) for metric in get_args(Metric)}
        return named | {"dcf": costs, "level": level, "replicates": len(self.eer), "n_speakers": self.n_speakers}


@dataclass(frozen=True, kw_only=True)
class PairedTest:
    """Whether system A is better than system B on the same trials.

    Attributes
    ----------
    metric
        The metric; lower is better.
    a, b, difference
        Its values on all trials, and a - b: negative if A is better.
    interval
        Confidence interval of the difference.
    p_value
        Two-sided: the chance of a difference at least as clear if the systems were equally good.
    replicates, n_speakers
        How many replicates of how many speakers.
    """

    metric: str
    a: float
    b: float
    difference: float
    interval: Interval
    p_value: float
    replicates: int
    n_speakers: int

    @classmethod
    def of(
        cls,
        metric: str,
        values: tuple[float, float],
        drawn: tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]],
        level: float,
        n_speakers: int,
    ) -> PairedTest:
        """Return the test of two systems from a metric of each, on all trials and in the same draws of speakers."""
        a, b = values
        found = differences(*drawn)
        against = min(np.count_nonzero(found <= 0), np.count_nonzero(found >= 0))
        return cls(
            metric=metric,
            a=a,
            b=b,
            difference=a - b if a != b else 0.0,
            interval=Interval.of(found, level),
            p_value=float(min(1.0, 2 * (1 + against) / (1 + len(found)))),
            replicates=len(found),
            n_speakers=n_speakers,
        )


def differences(first: Float[np.ndarray, " b"], second: Float[np.ndarray, " b"]) -> Float[np.ndarray, " b"]:
    """Return the differences of a metric in all draws; between two infinite values none can be seen."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(first - second, nan=0.0, posinf=np.inf, neginf=-np.inf)


def bootstrap(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    enroll_speakers: SpeakersLike,
    test_speakers: SpeakersLike,
    replicates: int = 1000,
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    normalize: bool = True,
    seed: int = 0,
) -> Bootstrap:
    """Return the metrics of replicates of the evaluation, each with speakers drawn with replacement.

    A speaker that is drawn c times counts as c different people, on the enrolment side and on the test side alike: a
    trial of speakers a and b counts c_a c_b times, a trial of one speaker c_a times. Replicates without targets or
    without non-targets are drawn again.

    Parameters
    ----------
    scores, labels
        As in `validate`.
    enroll_speakers, test_speakers
        One speaker per trial; with a `TrialList` a mapping from id to speaker, or one speaker per id of each side.
    replicates
        How many.
    points, normalize
        As in `evaluate`.
    seed
        Of the random numbers; the same seed gives the same replicates.

    Raises
    ------
    InputError
        If there is only one speaker, or a target trial has two different speakers.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> enroll, test = np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)
    >>> scores = rng.normal(3.0 * (enroll == test), 1.0)
    >>> result = bootstrap(scores, enroll == test, enroll_speakers=enroll, test_speakers=test, replicates=200)
    >>> interval = result.interval("eer")
    >>> 0 <= interval.low < interval.high < 0.2
    True
    """
    trials = _ranked(scores, labels, enroll_speakers, test_speakers, as_points(points))
    return Bootstrap.drawn(trials, replicates=replicates, seed=seed, normalize=normalize)


def _ranked(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None,
    enroll_speakers: SpeakersLike,
    test_speakers: SpeakersLike,
    points: Sequence[OperatingPoint] = (),
) -> RankedTrials:
    values, key = validate(scores, labels)
    return rank_trials(values, key, trial_speakers(scores, len(key), enroll_speakers, test_speakers), points)


def paired_test(
    scores_a: npt.ArrayLike | TrialList,
    scores_b: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    enroll_speakers: SpeakersLike,
    test_speakers: SpeakersLike,
    metric: Metric = "eer",
    point: PointLike | list[PointLike] = DEFAULT_POINTS[0],
    normalize: bool = True,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> PairedTest:
    """Test whether system A is better than system B on the same trials, by a paired bootstrap over speakers.

    Both systems are measured on the same draws of speakers, so that what makes a draw easy or hard for both cancels
    in the difference.

    Parameters
    ----------
    scores_a, scores_b, labels
        Scores of the same trials in the same order; or two `TrialList`, matched by id, the first of which has labels.
    enroll_speakers, test_speakers
        As in `bootstrap`.
    metric
        What to compare; lower is better.
    point, normalize
        Operating point of ``min_dcf`` and ``act_dcf``; a list of those of ``min_c_primary`` and ``act_c_primary``.
    replicates, level, seed
        Number of replicates, level of the interval, seed of the random numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> enroll, test = np.repeat(np.arange(30), 30), np.tile(np.arange(30), 30)
    >>> good = rng.normal(3.0 * (enroll == test), 1.0)
    >>> bad = good + rng.normal(0.0, 2.0, good.size)
    >>> result = paired_test(good, bad, enroll == test, enroll_speakers=enroll, test_speakers=test, replicates=200)
    >>> result.difference < 0 and result.p_value < 0.05
    True
    """
    values, key = validate(scores_a, labels)
    other, _ = validate(_matched(scores_a, scores_b), key)
    points = point if isinstance(point, list) else [point]
    speakers, places = trial_speakers(scores_a, len(key), enroll_speakers, test_speakers), as_points(points)
    how: dict[str, Any] = {"replicates": replicates, "seed": seed, "normalize": normalize}  # so the draws are the same
    systems = (rank_trials(side, key, speakers, places) for side in (values, other))
    first, second = (Bootstrap.drawn(system, **how).replicates(metric) for system in systems)
    a, b = (evaluate(side, key, points=places, normalize=normalize)[metric] for side in (values, other))
    return PairedTest.of(metric, (a, b), (first, second), level, len(speakers.names))


def _matched(first: npt.ArrayLike | TrialList, second: npt.ArrayLike | TrialList) -> npt.ArrayLike:
    """Return the second system's scores in the order of the first one's."""
    if not isinstance(second, TrialList):
        return second
    if not isinstance(first, TrialList) or second.scores is None:
        raise InputError("give two arrays of scores, or two trial lists with scores")
    match = first.match(second)
    if (match < 0).any():
        pair = first.pair(int(np.argmin(match)))
        raise InputError(f"the trial {pair} has a score of system A only; compare systems on the same trials")
    return np.asarray(second.scores[match])


@dataclass(frozen=True, kw_only=True, eq=False)
class DetBand:
    """A confidence band around a DET curve: an interval of the miss rate at each false-alarm rate."""

    p_fa: Float[np.ndarray, " k"]
    low: Float[np.ndarray, " k"]
    high: Float[np.ndarray, " k"]
    level: float


def bootstrap_det(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    enroll_speakers: SpeakersLike,
    test_speakers: SpeakersLike,
    p_fa: npt.ArrayLike | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> DetBand:
    """Return a pointwise confidence band of the miss rate on the ROC's convex hull.

    Parameters
    ----------
    scores, labels, enroll_speakers, test_speakers, replicates, seed
        As in `bootstrap`.
    p_fa
        Rising false-alarm rates, by default 100 from 1e-4 to 0.9, evenly spaced in the logarithm.
    level
        Of the band.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> enroll, test = np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)
    >>> scores = rng.normal(2.0 * (enroll == test), 1.0)
    >>> speakers = {"enroll_speakers": enroll, "test_speakers": test}
    >>> band = bootstrap_det(scores, enroll == test, **speakers, p_fa=[0.01, 0.1], replicates=200)
    >>> bool((band.low < band.high).all())
    True
    """
    rates = np.geomspace(1e-4, 0.9, 100) if p_fa is None else np.asarray(p_fa, dtype=np.float64)
    if rates.ndim != 1 or not ((rates >= 0) & (rates <= 1)).all() or (np.diff(rates) < 0).any():
        raise InputError("p_fa must be rates between 0 and 1, in rising order")
    trials = _ranked(scores, labels, enroll_speakers, test_speakers)
    rows = replicate(lambda draws: trials.miss_rates(draws, rates), trials.n_speakers, replicates, seed)
    low, high = _percentiles(rows, level)
    return DetBand(p_fa=frozen(rates), low=frozen(low), high=frozen(high), level=level)
