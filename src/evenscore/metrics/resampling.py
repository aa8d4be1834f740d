"""Confidence intervals and tests by drawing speakers: trials that share a speaker are not independent."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.data.side import Side, SpeakersLike, as_strings, union
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.costs import DEFAULT_POINTS, OperatingPoint, PointsLike, as_operating_points
from evenscore.metrics.evaluation import evaluate
from evenscore.metrics.points import Floats, LabelsLike, ScoresLike, labelled_list, labelled_scores
from evenscore.parallel import thread_count

__all__ = ["Bootstrap", "DetBand", "Interval", "Metric", "PairedTest"]
__all__ += ["bootstrap", "bootstrap_det", "paired_test", "speakers_from_targets"]

Metric = Literal["eer", "cllr", "min_cllr", "calibration_loss", "min_dcf", "act_dcf", "min_c_primary", "act_c_primary"]
Ints = npt.NDArray[np.int64]
Trials = tuple[Floats, npt.NDArray[np.bool_], Ints, Ints, int]  # scores, targets, both speakers, number of speakers
_TOGETHER = 32  # draws in one pass over the trials


@dataclass(frozen=True)
class Interval:
    """A confidence interval: the middle ``level`` of the replicates."""

    low: float
    high: float
    level: float


def _ends(values: npt.ArrayLike, level: float) -> tuple[Any, Any]:
    """Return the two ends of the middle ``level`` of values or of each column; they are replicates, maybe infinite."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
    return tuple(np.quantile(np.asarray(values), [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf"))


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """Metrics of many replicates of an evaluation."""

    values: Mapping[str, Floats]  #: of each metric, one for each draw of speakers; of costs a row for each point
    points: tuple[OperatingPoint, ...]
    n_speakers: int

    def replicates(self, metric: Metric, point: int = 0) -> Floats:
        """Return one metric of every replicate; ``point`` says which operating point."""
        if metric not in get_args(Metric):
            raise InputError(f"there is no metric {metric!r}; choose one of {', '.join(get_args(Metric))}")
        return self.values[metric][point] if metric in ("min_dcf", "act_dcf") else self.values[metric]

    def interval(self, metric: Metric, *, level: float = 0.95, point: int = 0) -> Interval:
        """Return the confidence interval of one metric."""
        low, high = _ends(self.replicates(metric, point), level)
        return Interval(float(low), float(high), level)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return ``[low, high]`` of every metric, in the shape of what `Evaluation.to_dict` returns."""
        found: dict[str, Any] = {name: list(_ends(self.replicates(name), level)) for name in get_args(Metric)}
        found["dcf"] = [asdict(point) for point in self.points]
        for place, cost in enumerate(found["dcf"]):
            cost.update({name: list(_ends(self.replicates(name, place), level)) for name in ("min_dcf", "act_dcf")})
        return found | {"level": level, "replicates": len(self.values["eer"]), "n_speakers": self.n_speakers}


def bootstrap(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    points: PointsLike = DEFAULT_POINTS,
    normalize: bool = True,
    **draws: Any,
) -> Bootstrap:
    """Return the metrics of replicates of the evaluation, each with speakers drawn with replacement.

    A speaker that is drawn c times counts as c different people, on the enrolment side and on the test side alike: a
    trial of speakers a and b counts c_a c_b times, a trial of one speaker c_a times. Replicates without targets or
    without non-targets are drawn again.

    Draws have the options ``enroll_speakers`` and ``test_speakers``: one speaker per trial, or with a table a mapping
    from id to speaker (not needed if it knows its speakers); ``replicates``, by default 1000; ``seed``, by default 0.
    All else is as in `evaluate`, in memory.

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
    found, n = _draw(
        lambda some: _measure(some, places, normalize), tuple(at.threshold for at in places), scores, labels, **draws
    )
    (eer, cllr, min_cllr), (minimum, actual) = found.T[:3], np.split(found.T[3:], 2)
    values = {"eer": eer, "cllr": cllr, "min_cllr": min_cllr, "calibration_loss": cllr - min_cllr}
    values |= {"min_dcf": minimum, "act_dcf": actual}
    means = {"min_c_primary": minimum.mean(axis=0), "act_c_primary": actual.mean(axis=0)}
    return Bootstrap(values | means, places, n)


class _Draws(NamedTuple):
    """The trials of some draws, in runs of rising scores; a row for each draw with both classes."""

    score: Floats  #: the lowest one of each run
    targets: Floats  #: how many targets are below each run, and in all
    nontargets: Floats
    target_loss: Floats  #: sum of log(1 + exp(-llr))
    nontarget_loss: Floats


def _draw(
    measure: Callable[[_Draws], Floats],
    thresholds: tuple[float, ...],
    scores: ScoresLike,
    labels: LabelsLike,
    enroll_speakers: SpeakersLike | None = None,
    test_speakers: SpeakersLike | None = None,
    replicates: int = 1000,
    seed: int = 0,
) -> tuple[Floats, int]:
    """Return measures of draws of as many speakers as there are, a row for each draw, and how many there are."""
    if replicates < 1:
        raise InputError(f"replicates is {replicates}, but must be at least 1; 1000 is usual")
    trials = _speaker_trials(scores, labels, enroll_speakers, test_speakers)
    replicate, rng, n = _replicator(trials, thresholds, replicates), np.random.default_rng(seed), trials[-1]
    found: list[Floats] = []
    with ThreadPoolExecutor(thread_count()) as pool:
        while (left := replicates - sum(map(len, found))) > 0:  # both classes are never rare: three speakers have them
            size = min(left, max(_TOGETHER, (1 << 22) // n))
            parts = np.array_split(rng.multinomial(n, np.full(n, 1 / n), size), -(-size // _TOGETHER))
            found += pool.map(lambda times: measure(replicate(times)), parts)
    return np.concatenate(found), n


def _measure(draws: _Draws, places: tuple[OperatingPoint, ...], normalize: bool) -> Floats:
    """Return EER, Cllr, minCllr, the minimum and the actual cost at each point, as `evaluate` does: a row a draw."""
    p_miss, p_fa, first = _hulls(draws.targets, draws.nontargets)
    n_target, n_nontarget = draws.targets[:, -1], draws.nontargets[:, -1]
    gap = p_miss - p_fa  # rises from -1 to 1
    b = first + np.add.reduceat(gap < 0, first, dtype=np.intp)
    eer = p_miss[b - 1] - gap[b - 1] / (gap[b] - gap[b - 1]) * (p_miss[b] - p_miss[b - 1])
    target, nontarget = np.diff(p_miss, append=0.0), -np.diff(p_fa, append=1.0)  # below 0 from one draw to the next
    mixed = (target > 0) & (nontarget > 0)
    target, nontarget = np.where(mixed, target, 1.0), np.where(mixed, nontarget, 1.0)
    nats = mixed * (target * np.log1p(nontarget / target) + nontarget * np.log1p(target / nontarget))
    losses = draws.target_loss / n_target + draws.nontarget_loss / n_nontarget, np.add.reduceat(nats, first)
    minimum, actual = [], []
    for point in places:
        (miss, fa), at = point.weights, int(np.searchsorted(draws.score, point.threshold))
        unit = min(miss, fa) if normalize else 1.0
        minimum.append(np.minimum.reduceat(miss * p_miss + fa * p_fa, first) / unit)
        misses, false_alarms = draws.targets[:, at] / n_target, (n_nontarget - draws.nontargets[:, at]) / n_nontarget
        actual.append((miss * misses + fa * false_alarms) / unit)
    return np.stack([eer, *(loss / (2 * np.log(2.0)) for loss in losses), *minimum, *actual], axis=1)


def _hulls(targets: Floats, nontargets: Floats) -> tuple[Floats, Floats, npt.NDArray[np.intp]]:
    """Return Pmiss and Pfa at the vertices of the hulls of all draws, and where those of each draw begin.

    As `hull_vertices` does, each round drops all decisions that lie on or above the line between their neighbours.
    """
    some = np.diff(targets + nontargets, axis=1, prepend=-1.0) > 0
    draw, t, n = np.nonzero(some)[0], targets[some], nontargets[some]
    size = -1
    while draw.size != size:
        size, dt, dn, end = draw.size, np.diff(t), np.diff(n), np.diff(draw) > 0
        convex = np.ones(size, bool)
        convex[1:-1] = (dt[:-1] * dn[1:] < dt[1:] * dn[:-1]) | end[:-1] | end[1:]
        draw, t, n = draw[convex], t[convex], n[convex]
    total = nontargets[draw, -1]
    return t / targets[draw, -1], (total - n) / total, np.flatnonzero(np.diff(draw, prepend=-1))


def _speaker_trials(scores: Any, labels: Any, enroll: Any, test: Any) -> Trials:
    """Return trials of known class with the numbers of their speakers; refuse those that cannot be drawn."""
    at: tuple[Any, Any] = (slice(None), slice(None))
    if hasattr(scores, "enroll"):
        listed = labelled_list(scores.with_speakers(enroll, test).to_trials(), labels)
        scores, labels, at = listed.scores, listed.labels, (listed.rows, listed.cols)
        enroll, test = listed.enroll.speakers, listed.test.speakers
    values, key = labelled_scores(scores, labels)
    known: dict[str, int] = {}
    enroll, test = _codes(enroll, "enroll", known)[at[0]], _codes(test, "test", known)[at[1]]
    if not len(enroll) == len(test) == len(key):
        raise InputError(f"there are {len(enroll)} and {len(test)} speakers, but {len(key)} trials; give one for each")
    if not (key == TARGET).any() or not (key == NONTARGET).any() or len(known) < 2:
        raise InputError("targets, non-targets and at least two speakers are needed; check the key and the speakers")
    wrong = np.flatnonzero((key == TARGET) & (enroll != test))
    if wrong.size:
        one, other = list(known)[enroll[wrong[0]]], list(known)[test[wrong[0]]]
        raise InputError(f"trial {wrong[0]} is a target trial of two speakers, {one!r} and {other!r}; check the key")
    used = key != UNKNOWN
    return values[used].astype(np.float64), key[used] == TARGET, enroll[used], test[used], len(known)


def _replicator(trials: Trials, thresholds: tuple[float, ...], n_draws: int) -> Callable[[Ints], _Draws]:
    """Return a function from how often each speaker is drawn, a row per draw, to the draws that have both classes.

    The trials are sorted once, into runs: up to the next score of the other class, or a threshold.
    """
    scores, target, enroll, test, n_speakers = trials
    order = np.argsort(scores, kind="stable")
    score, target = scores[order], target[order]
    first = np.flatnonzero(np.append(True, score[1:] != score[:-1]))
    share = np.add.reduceat(target, first, dtype=np.int64) / np.diff(np.append(first, score.size))
    joins = np.append(False, (share[1:] == share[:-1]) & ((share[1:] == 0) | (share[1:] == 1)))
    starts = np.union1d(first[~joins], np.searchsorted(score, thresholds)).astype(np.int64)
    starts = starts[starts < score.size]
    test = np.where(enroll == test, n_speakers, test)  # a trial of one speaker counts as often as they do
    compiled = n_draws * score.size > 1 << 29 or "evenscore.kernels" in sys.modules  # loading numba takes a second
    classes = []
    for of_class, sign in ((target, -1.0), (~target, 1.0)):
        ends = np.append(np.append(0, np.cumsum(of_class))[starts], np.count_nonzero(of_class))
        some, loss = order[of_class], np.logaddexp(0.0, sign * score[of_class])
        classes.append((enroll[some], test[some], loss, ends))

    def replicate(times: Ints) -> _Draws:
        counts = np.append(times.astype(np.float64), np.ones((len(times), 1)), axis=1)  # whole numbers, exact
        (targets, target_loss), (nontargets, nontarget_loss) = (_add_up(counts, *one, compiled) for one in classes)
        both = (targets[:, -1] > 0) & (nontargets[:, -1] > 0)
        return _Draws(score[starts], targets[both], nontargets[both], target_loss[both], nontarget_loss[both])

    return replicate


def _add_up(times: Floats, enroll: Ints, test: Ints, loss: Floats, ends: Ints, compiled: bool) -> tuple[Floats, Floats]:
    """Return the weight of the trials of one class below each run, and all of it, and the sum of weighted losses."""
    infinite, some = np.isinf(loss), ends[1:] > ends[:-1]
    loss, sums, losses = np.where(infinite, 0.0, loss), np.zeros((ends.size, len(times))), np.zeros(len(times))
    if compiled:
        from evenscore.kernels import sum_draws

        sum_draws(np.ascontiguousarray(times.T), enroll, test, loss, ends, sums[1:], losses)
    for draw, counts in enumerate([] if compiled else times):
        weight = counts.take(enroll, mode="clip")  # which skips a check of the positions
        weight *= counts.take(test, mode="clip")
        sums[1:][some, draw], losses[draw] = np.add.reduceat(weight, ends[:-1][some]), weight @ loss
    losses[(times[:, enroll[infinite]] * times[:, test[infinite]]).any(axis=1)] = np.inf  # not drawn, it costs nothing
    return np.cumsum(sums.T, axis=1), losses


def _codes(speakers: SpeakersLike | None, name: str, known: dict[str, int]) -> Ints:
    """Return the numbers of speakers; those that are new are added to the known ones."""
    if speakers is None:
        raise InputError(f"the speakers of the {name} side are not known; give {name}_speakers")
    given = np.asarray(speakers if isinstance(speakers, np.ndarray) else list(speakers))
    given, code = np.unique(given, return_inverse=True) if given.dtype.kind in "iuU" else (given, np.arange(len(given)))
    names = as_strings(given, f"{name}_speakers").tolist()
    if None in names:
        raise InputError(f"{name}_speakers[{names.index(None)}] is not known; leave out trials of unknown speakers")
    return np.array([known.setdefault(speaker, len(known)) for speaker in names], np.int64)[code]


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
        low, high = _ends(found, level)
        interval = Interval(float(low), float(high), level)
        return cls(metric, a, b, a - b if a != b else 0.0, interval, p_value, len(found), n_speakers)


def paired_test(
    scores_a: ScoresLike,
    scores_b: ScoresLike,
    labels: LabelsLike = None,
    *,
    metric: Metric = "eer",
    level: float = 0.95,
    **options: Any,
) -> PairedTest:
    """Test whether system A is better than system B on the same trials, by a paired bootstrap over speakers.

    Both are measured on the same draws, so that what makes a draw easy or hard for both cancels in the difference.
    Scores are of the same trials in the same order, or two `TrialList`, matched by id. Costs are those at the first
    operating point, ``level`` is that of the interval; options (speakers, points, ...) are as in `bootstrap`.

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
    if isinstance(scores_a, TrialList) and isinstance(scores_b, TrialList):
        at = scores_a.find(scores_b)
        if (at < 0).any():
            pair = scores_a.pair(int(np.argmin(at)))
            raise InputError(f"the trial {pair} has a score of system A only; compare systems on the same trials")
        scores_b = scores_a.with_scores(scores_b.needs_scores()[at], infinite=True)
    how = {name: options[name] for name in ("points", "normalize") if name in options}
    a, b = (getattr(evaluate(scores, labels, **how), metric) for scores in (scores_a, scores_b))
    of_a, of_b = (bootstrap(scores, labels, **options) for scores in (scores_a, scores_b))
    draws = of_a.replicates(metric), of_b.replicates(metric)
    return PairedTest.from_replicates(metric, a, b, *draws, level, of_a.n_speakers)


@dataclass(frozen=True, eq=False)
class DetBand:
    """A confidence band around a DET curve: an interval of the miss rate at each false-alarm rate."""

    p_fa: Floats
    low: Floats
    high: Floats
    level: float


def bootstrap_det(
    scores: ScoresLike, labels: LabelsLike = None, *, p_fa: npt.ArrayLike = (), level: float = 0.95, **draws: Any
) -> DetBand:
    """Return a pointwise confidence band of the miss rate at a false-alarm rate of at most ``p_fa``.

    These rates are by default 100 from 1e-4 to 0.9, evenly spaced in the logarithm; all else is as in `bootstrap`.
    """
    rates = np.asarray(p_fa, np.float64) if np.size(p_fa) else np.geomspace(1e-4, 0.9, 100)
    limits = -rates * (1 + 1e-12)  # rounding must not forbid 0.29 * 100 errors

    def miss_rates(some: _Draws) -> Floats:
        p_miss, p_fa = some.targets / some.targets[:, -1:], 1 - some.nontargets / some.nontargets[:, -1:]
        rows = [miss[np.searchsorted(-fa, limits)] for miss, fa in zip(p_miss, p_fa, strict=True)]
        return np.reshape(rows, (-1, rates.size))

    found, _ = _draw(miss_rates, (), scores, labels, **draws)
    return DetBand(rates, *_ends(found, level), level)


def speakers_from_targets(lists: Iterable[TrialList]) -> dict[str, str]:
    """Return the speaker of each id, as far as target trials tell: the first id that a chain of them leads to.

    An id is the same utterance or model on both sides and in all lists; one without targets is a speaker of its own.

    Examples
    --------
    >>> trials = TrialList(["m1", "m1", "m2"], ["a", "b", "b"], labels=[1, 0, 1])
    >>> speakers_from_targets([trials])
    {'m1': 'm1', 'm2': 'm2', 'a': 'm1', 'b': 'm2'}
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    lists = list(lists)
    ids = union([Side(side.ids) for part in lists for side in (part.enroll, part.test)])
    ends = [np.empty((2, 0), np.intp)]
    for part in lists:
        if part.labels is None:
            raise InputError("the trials have no labels, so their speakers are not known; give a map of speakers")
        rows, cols = part.rows[part.labels == TARGET], part.cols[part.labels == TARGET]
        ends.append(np.stack([ids.find(part.enroll_ids)[rows], ids.find(part.test_ids)[cols]]))
    one, other = np.concatenate(ends, axis=1)
    _, group = connected_components(coo_array((np.ones(one.size), (one, other)), (len(ids), len(ids))), directed=False)
    _, first = np.unique(group, return_index=True)
    return dict(zip(ids.ids.tolist(), ids.ids[first[group]].tolist(), strict=True))
