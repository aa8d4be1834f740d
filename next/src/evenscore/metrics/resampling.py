"""Confidence intervals and tests by drawing speakers: trials that share a speaker are not independent."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Ids, Side, SpeakersLike, as_strings, union
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.costs import DEFAULT_POINTS, OperatingPoint, PointLike, as_operating_points
from evenscore.metrics.cross_entropy import min_cllr_of_hull
from evenscore.metrics.evaluation import evaluate
from evenscore.metrics.hull import Hull, hull_vertices
from evenscore.metrics.points import Floats, LabelsLike, ScoresLike, labelled_scores
from evenscore.metrics.rates import eer_of_hull
from evenscore.parallel import thread_count

__all__ = ["Bootstrap", "DetBand", "Interval", "Metric", "PairedTest"]
__all__ += ["bootstrap", "bootstrap_det", "paired_test", "speakers_from_targets"]

Metric = Literal["eer", "cllr", "min_cllr", "calibration_loss", "min_dcf", "act_dcf", "min_c_primary", "act_c_primary"]
Ints = npt.NDArray[np.int64]
_Speakers = tuple[Ids, Ints, Ints]  # their names, and for each trial the positions of its two speakers

_DRAWS = 1 << 22  # numbers drawn at a time


@dataclass(frozen=True)
class Interval:
    """A confidence interval: the middle ``level`` of the replicates."""

    low: float
    high: float
    level: float


def _interval(values: Floats, level: float) -> Interval:
    low, high = _ends(values, level).tolist()
    return Interval(low, high, level)


def _ends(values: Floats, level: float) -> Floats:
    """Return the two ends of the middle ``level`` of values or of each column; they are replicates, maybe infinite."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
    return np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf")


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Metrics of many replicates: one value per replicate; of ``min_dcf``, ``act_dcf`` one per operating point, too."""

    eer: Floats
    cllr: Floats
    min_cllr: Floats
    min_dcf: Floats
    act_dcf: Floats
    points: tuple[OperatingPoint, ...]
    n_speakers: int

    def replicates(self, metric: Metric, point: int = 0) -> Floats:
        """Return one metric of every replicate; ``point`` says which operating point."""
        costs = {"min_c_primary": self.min_dcf.mean(axis=1), "act_c_primary": self.act_dcf.mean(axis=1)}
        costs |= {"min_dcf": self.min_dcf[:, point], "act_dcf": self.act_dcf[:, point]}
        cllrs = {"cllr": self.cllr, "min_cllr": self.min_cllr, "calibration_loss": self.cllr - self.min_cllr}
        known = {"eer": self.eer, **cllrs, **costs}
        if metric not in known:
            raise InputError(f"there is no metric {metric!r}; choose one of {', '.join(known)}")
        return known[metric]

    def interval(self, metric: Metric, *, level: float = 0.95, point: int = 0) -> Interval:
        """Return the confidence interval of one metric."""
        return _interval(self.replicates(metric, point), level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return ``[low, high]`` of every metric, in the shape of what `Evaluation.to_dict` returns."""
        costs: list[dict[str, Any]] = [
            {"p_target": at.p_target, "c_miss": at.c_miss, "c_fa": at.c_fa}
            | {
                "min_dcf": _ends(self.min_dcf[:, p], level).tolist(),
                "act_dcf": _ends(self.act_dcf[:, p], level).tolist(),
            }
            for p, at in enumerate(self.points)
        ]
        found: dict[str, Any] = {name: _ends(self.replicates(name), level).tolist() for name in get_args(Metric)}
        return found | {"dcf": costs, "level": level, "replicates": len(self.eer), "n_speakers": self.n_speakers}


def bootstrap(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    enroll_speakers: SpeakersLike | None = None,
    test_speakers: SpeakersLike | None = None,
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
    scores, labels, points, normalize
        As in `evaluate`, in memory.
    enroll_speakers, test_speakers
        One speaker per trial; with a table a mapping from id to speaker, or one speaker per id of each side. They may
        be left out if the table knows its speakers.
    replicates, seed
        Number of replicates and seed of the random numbers.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> enroll, test = np.repeat(np.arange(20), 20), np.tile(np.arange(20), 20)
    >>> scores = rng.normal(3.0 * (enroll == test), 1.0)
    >>> result = bootstrap(scores, enroll == test, enroll_speakers=enroll, test_speakers=test, replicates=200)
    >>> 0 <= result.interval("eer").low < result.interval("eer").high < 0.2
    True
    """
    places = as_operating_points(points)
    values, key, speakers = _with_speakers(scores, labels, enroll_speakers, test_speakers)
    return _bootstrap(_rank(values, key, speakers, places), places, normalize, replicates, seed)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Trials in the order of their scores, in runs: up to the next score of the other class, or a threshold."""

    n_speakers: int
    enroll: npt.NDArray[np.intp]
    test: npt.NDArray[np.intp]  #: ``n_speakers`` where it is the enrolled speaker, who counts only once
    targets: Ints  #: positions of the targets
    runs: Ints  #: and their runs
    loss: Floats
    starts: Ints  #: of the runs, and the number of trials
    cuts: Ints  #: the first accepted run of each threshold

    def replicate(self, times: Ints) -> tuple[Hull, Floats, float] | None:
        """Return hull, error rates at the thresholds and Cllr of one draw, None if a class is absent."""
        counts = np.append(times, 1).astype(np.float64)  # whole numbers, exact
        weight = counts.take(self.enroll, mode="clip")  # which skips a check of the positions
        weight *= counts.take(self.test, mode="clip")
        of_targets = weight[self.targets]
        target = np.bincount(self.runs, of_targets, self.starts.size - 1)
        both = np.add.reduceat(weight, self.starts[:-1])
        t, n = np.append(0.0, np.cumsum(target)), np.append(0.0, np.cumsum(both - target))
        if not t[-1] or not n[-1]:
            return None
        target_loss = _weighted(of_targets, self.loss[self.targets])
        weight[self.targets] = 0.0
        cllr = (target_loss / t[-1] + _weighted(weight, self.loss) / n[-1]) / (2 * np.log(2.0))
        p_miss, p_fa, none = t / t[-1], (n[-1] - n) / n[-1], np.empty(0)
        some = np.append(0, np.flatnonzero(both) + 1)
        at = some[hull_vertices(t[some], n[some])]
        return Hull(p_miss[at], p_fa[at], none, none, none), np.stack([p_miss[self.cuts], p_fa[self.cuts]]), cllr


def _weighted(weight: Floats, loss: Floats) -> float:
    """Return the sum of weighted losses; 0 * inf is 0: what is not drawn costs nothing."""
    with np.errstate(invalid="ignore"):
        total = float(weight @ loss)
    return total if math.isfinite(total) else float(weight[weight > 0] @ loss[weight > 0])


def _rank(scores: Floats, key: npt.NDArray[np.int8], speakers: _Speakers, points: Iterable[OperatingPoint]) -> _Ranked:
    """Sort the trials once, for any number of replicates; refuse those that cannot be drawn by speaker."""
    names, enroll, test = speakers
    if not (key == TARGET).any() or not (key == NONTARGET).any():
        raise InputError("both target and non-target trials are needed; check the key")
    if len(names) < 2:
        raise InputError(
            f"all trials are of one speaker, {names[0]!r}; a bootstrap over speakers needs at least two (better twenty)"
        )
    wrong = np.flatnonzero((key == TARGET) & (enroll != test))
    if wrong.size:
        pair = f"{names[enroll[wrong[0]]]!r} and {names[test[wrong[0]]]!r}"
        raise InputError(f"trial {wrong[0]} is a target trial, but its speakers are {pair}; check the key")
    at = np.flatnonzero(key != UNKNOWN)
    at = at[np.argsort(scores[at], kind="stable")]
    ranked, target = scores[at].astype(np.float64), key[at] == TARGET
    cuts = np.searchsorted(ranked, [point.threshold for point in points])
    first = np.flatnonzero(np.concatenate(([True], ranked[1:] != ranked[:-1])))
    share = np.add.reduceat(target, first, dtype=np.int64) / np.diff(np.append(first, len(ranked)))
    joins = np.concatenate(([False], (share[1:] == share[:-1]) & ((share[1:] == 0) | (share[1:] == 1))))
    starts = np.unique(np.concatenate((first[~joins], cuts, [len(at)]))).astype(np.int64)
    loss = np.logaddexp(0.0, np.where(target, -ranked, ranked))
    sides = enroll[at], np.where(enroll[at] == test[at], len(names), test[at])
    targets = np.flatnonzero(target)
    runs = np.searchsorted(starts, targets, side="right") - 1
    return _Ranked(len(names), *sides, targets, runs, loss, starts, np.searchsorted(starts, cuts))


def _draw(measure: Callable[[Ints], list[float] | None], n_speakers: int, replicates: int, seed: int) -> Floats:
    """Return one row of ``measure`` for each draw of as many speakers as there are; those of None are drawn again."""
    if replicates < 1:
        raise InputError(f"replicates is {replicates}, but must be at least 1; 1000 is usual")
    rng = np.random.default_rng(seed)
    rows: list[list[float]] = []
    with ThreadPoolExecutor(thread_count()) as pool:
        while len(rows) < replicates:  # a draw with both classes is never rare: it needs three given speakers at most
            size = min(replicates - len(rows), max(1, _DRAWS // n_speakers))
            draws = rng.multinomial(n_speakers, np.full(n_speakers, 1 / n_speakers), size=size)
            rows += [row for row in pool.map(measure, draws) if row is not None]
    return np.array(rows)


def _bootstrap(
    trials: _Ranked, points: tuple[OperatingPoint, ...], normalize: bool, replicates: int, seed: int
) -> Bootstrap:
    weights = np.array([(at.miss_weight, at.fa_weight, at.default_cost if normalize else 1.0) for at in points])
    miss, false_alarm = (weights[:, :2] / weights[:, 2:]).T

    def measure(times: Ints) -> list[float] | None:
        found = trials.replicate(times)
        if found is None:
            return None
        hull, (p_miss, p_fa), cllr = found
        least = (miss[:, None] * hull.p_miss + false_alarm[:, None] * hull.p_fa).min(axis=1)
        actual = miss * p_miss + false_alarm * p_fa
        return [eer_of_hull(hull), cllr, min_cllr_of_hull(hull), *least.tolist(), *actual.tolist()]

    rows = _draw(measure, trials.n_speakers, replicates, seed)
    costs = rows[:, 3:].reshape(len(rows), 2, -1)
    return Bootstrap(rows[:, 0], rows[:, 1], rows[:, 2], costs[:, 0], costs[:, 1], points, trials.n_speakers)


@dataclass(frozen=True)
class PairedTest:
    """Whether system A is better than system B on the same trials."""

    metric: str  #: lower is better
    a: float  #: on all trials
    b: float
    difference: float  #: a - b: negative if A is better
    interval: Interval  #: of the difference
    p_value: float  #: two-sided: probability of a difference at least as large if the systems were equally good
    replicates: int
    n_speakers: int

    @classmethod
    def from_replicates(
        cls, metric: str, a: float, b: float, of_a: Floats, of_b: Floats, level: float, n_speakers: int
    ) -> PairedTest:
        """Return the test from a metric of two systems, on all trials and in the same draws of speakers."""
        with np.errstate(invalid="ignore"):  # between two infinite values there is no difference
            found = np.nan_to_num(of_a - of_b, nan=0.0, posinf=np.inf, neginf=-np.inf)
        against = min(np.count_nonzero(found <= 0), np.count_nonzero(found >= 0))
        p_value = float(min(1.0, 2 * (1 + against) / (1 + len(found))))
        interval = _interval(found, level)
        return cls(metric, a, b, a - b if a != b else 0.0, interval, p_value, len(found), n_speakers)


def paired_test(
    scores_a: ScoresLike,
    scores_b: ScoresLike,
    labels: LabelsLike = None,
    *,
    enroll_speakers: SpeakersLike | None = None,
    test_speakers: SpeakersLike | None = None,
    metric: Metric = "eer",
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
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
    metric, level
        What to compare (``min_dcf`` and ``act_dcf`` at the first of the ``points``), and the level of the interval.
    enroll_speakers, test_speakers, points, normalize, replicates, seed
        As in `bootstrap`.

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
    places = as_operating_points(points)
    values, key, speakers = _with_speakers(scores_a, labels, enroll_speakers, test_speakers)
    if isinstance(scores_b, TrialList):
        if not isinstance(scores_a, TrialList):
            raise InputError("give two arrays of scores, or two trial lists with scores")
        at = scores_a.find(scores_b)
        if (at < 0).any():
            pair = scores_a.pair(int(np.argmin(at)))
            raise InputError(f"the trial {pair} has a score of system A only; compare systems on the same trials")
        scores_b = scores_b.needs_scores()[at]
    other, _ = labelled_scores(scores_b, key)
    draws = [
        _bootstrap(_rank(side, key, speakers, places), places, normalize, replicates, seed) for side in (values, other)
    ]
    a, b = (getattr(evaluate(side, key, points=places, normalize=normalize), metric) for side in (values, other))
    of_a, of_b = (found.replicates(metric) for found in draws)
    return PairedTest.from_replicates(metric, a, b, of_a, of_b, level, draws[0].n_speakers)


@dataclass(frozen=True, eq=False)
class DetBand:
    """A confidence band around a DET curve: an interval of the miss rate at each false-alarm rate."""

    p_fa: Floats
    low: Floats
    high: Floats
    level: float


def bootstrap_det(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    enroll_speakers: SpeakersLike | None = None,
    test_speakers: SpeakersLike | None = None,
    p_fa: npt.ArrayLike | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> DetBand:
    """Return a pointwise confidence band of the miss rate on the ROC's convex hull.

    ``p_fa`` are rising false-alarm rates, by default 100 from 1e-4 to 0.9, evenly spaced in the logarithm; all else is
    as in `bootstrap`.
    """
    rates = np.geomspace(1e-4, 0.9, 100) if p_fa is None else np.asarray(p_fa, np.float64)
    if rates.ndim != 1 or not ((rates >= 0) & (rates <= 1)).all() or (np.diff(rates) < 0).any():
        raise InputError("p_fa must be rates between 0 and 1, in rising order")
    values, key, speakers = _with_speakers(scores, labels, enroll_speakers, test_speakers)
    trials = _rank(values, key, speakers, ())

    def measure(times: Ints) -> list[float] | None:
        found = trials.replicate(times)
        if found is None:
            return None
        hull = found[0]
        last = int(np.argmax(hull.p_fa <= 0))  # of several vertices without false alarms, the one with fewest misses
        found_rates: list[float] = np.interp(rates, hull.p_fa[last::-1], hull.p_miss[last::-1]).tolist()
        return found_rates

    low, high = _ends(_draw(measure, trials.n_speakers, replicates, seed), level)
    return DetBand(rates, low, high, level)


def _with_speakers(
    scores: ScoresLike, labels: LabelsLike, enroll: SpeakersLike | None, test: SpeakersLike | None
) -> tuple[Floats, npt.NDArray[np.int8], _Speakers]:
    """Return scores, labels and speakers of trials in memory."""
    if isinstance(scores, ScoreMatrix):
        values, key = labelled_scores(scores.compute(), labels)
        rows, cols = (at.astype(np.int32) for at in np.nonzero(key != UNKNOWN))
        scores = TrialList.trusted(scores.enroll, scores.test, rows, cols, values[rows, cols], key[rows, cols])
        labels = None
    at_enroll: npt.NDArray[np.integer]
    at_test: npt.NDArray[np.integer]
    if isinstance(scores, TrialList):
        if isinstance(labels, Labels | TrialList):
            scores, labels = scores.join(labels, unmatched="drop"), None
        of_enroll, at_enroll = _known(scores.enroll.with_speakers(enroll).speakers, "enroll"), scores.rows
        of_test, at_test = _known(scores.test.with_speakers(test).speakers, "test"), scores.cols
    else:
        of_enroll, at_enroll = _distinct(enroll, "enroll")
        of_test, at_test = _distinct(test, "test")
    values, key = labelled_scores(scores, labels)
    if not len(at_enroll) == len(at_test) == len(key):
        raise InputError(
            f"there are {len(at_enroll)} and {len(at_test)} speakers, but {len(key)} trials; give one each"
        )
    names, code = np.unique(np.concatenate([of_enroll, of_test]), return_inverse=True)
    return values, key, (names, code[: len(of_enroll)][at_enroll], code[len(of_enroll) :][at_test])


def _known(speakers: Ids | None, name: str) -> Ids:
    """Refuse speakers that are not known."""
    if speakers is None:
        raise InputError(f"the speakers of the {name} side are not known; give {name}_speakers")
    if None in set(speakers.tolist()):
        at = speakers.tolist().index(None)
        raise InputError(f"{name}_speakers[{at}] is not known, but every speaker must be; leave those trials out")
    return speakers


def _distinct(speakers: SpeakersLike | None, name: str) -> tuple[Ids, Ints]:
    """Return the distinct speakers of trials, and which of them each trial has."""
    if isinstance(speakers, Mapping):
        raise InputError(f"give {name}_speakers, one speaker per trial; only tables have ids to look up in a mapping")
    if isinstance(speakers, np.ndarray) and speakers.dtype.kind in "iuU":
        values, code = np.unique(speakers, return_inverse=True)
        return as_strings(values, name), code
    found = None if speakers is None else as_strings(speakers, f"{name}_speakers")
    values, code = np.unique(_known(found, name), return_inverse=True)
    return values, code


def speakers_from_targets(lists: Iterable[TrialList]) -> dict[str, str]:
    """Return the speaker of each id, as far as target trials tell: the first id that a chain of them leads to.

    An id is the same utterance or model on both sides and in all lists; one without target trials is a speaker of its
    own.

    Examples
    --------
    >>> trials = TrialList(["m1", "m1", "m2"], ["a", "b", "b"], labels=[1, 0, 1])
    >>> speakers_from_targets([trials])
    {'m1': 'm1', 'm2': 'm2', 'a': 'm1', 'b': 'm2'}
    """
    lists = list(lists)
    ids = union([Side(side.ids) for part in lists for side in (part.enroll, part.test)])
    ends = []
    for part in lists:
        if part.labels is None:
            raise InputError("the trials have no labels, so their speakers are not known; give a map of speakers")
        targets = part.labels == TARGET
        rows, cols = ids.find(part.enroll_ids)[part.rows[targets]], ids.find(part.test_ids)[part.cols[targets]]
        ends.append(np.stack([rows, cols]))
    one, other = np.concatenate(ends, axis=1)
    first, before = np.arange(len(ids)), None
    while before is None or not np.array_equal(first, before):  # the lowest position travels along the chains
        before = first.copy()
        lowest = np.minimum(first[one], first[other])
        np.minimum.at(first, one, lowest)
        np.minimum.at(first, other, lowest)
        first = first[first]
    return dict(zip(ids.ids.tolist(), ids.ids[first].tolist(), strict=True))
