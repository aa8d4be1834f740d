"""The normalization killer: on ideal scores no norm helps; then each assumption is broken, by more and more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenscore import (
    InputError,
    LabelledBlocks,
    LogisticCalibration,
    ScoreTable,
    TrialList,
    bootstrap,
    evaluate,
    fit_norm,
)
from evenscore.comparison import Method
from recipes.theory.bounds import Bound, bound_of
from recipes.theory.breaks import BREAKS, Break, ScoredWorld, break_named
from recipes.theory.world import Sizes

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "COMPARED",
    "GAUSSIAN",
    "METHODS",
    "METRICS",
    "NORMS",
    "ORACLE",
    "REFERENCE",
    "SCORE_MODEL",
    "SYSTEMS",
    "Estimate",
    "Ideal",
    "Level",
    "Trials",
    "break_assumption",
    "ideal_scores",
    "ignore",
    "normalized",
    "run_ideal",
]

Progress = Callable[[str, float], None]

METRICS = ("eer", "min_dcf", "cllr", "min_cllr")  #: what is measured; min_dcf at p_target = 0.01
REFERENCE = "raw"  #: raw scores, calibrated: what the norms are compared with
ORACLE = "oracle"  #: log-likelihood ratios of who knows the true parameters

SCORE_MODEL = "lgsm"
GAUSSIAN = "lgsm:dim=0"  #: the score model without hidden variables: its two Gaussians, and no norm

#: What is compared, by name. Each is followed by the same calibration, trained on the development set.
METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        *map(Method.of, (REFERENCE, "z", "t", "zt", "s")),
        Method("as", "as", {"top_k": 0.3}),
        Method(GAUSSIAN, "lgsm", {"dim": 0, "residuals": "gaussian"}),
        # D = 2 has no poor local optima; more steps change nothing.
        Method(SCORE_MODEL, "lgsm", {"dim": 2, "starts": 1, "tol": 1e-6, "residuals": "gaussian"}),
    )
}
COMPARED = tuple(name for name in METHODS if name != REFERENCE)  #: all that differs from raw scores
NORMS = tuple(name for name in COMPARED if name != GAUSSIAN)  #: those that look at a cohort
_ALSO_PLAIN = (REFERENCE, GAUSSIAN, SCORE_MODEL)  # may be log-likelihood ratios by themselves
#: In the order of the tables.
SYSTEMS = (f"{REFERENCE}, uncalibrated", *METHODS, *(f"{name}, uncalibrated" for name in (GAUSSIAN, SCORE_MODEL)))


def ignore(stage: str, fraction: float) -> None:
    """Report nothing."""


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of one system, with the label and the speakers of every trial."""

    scores: Float[np.ndarray, " n"]
    labels: Any
    enroll_speakers: Any
    test_speakers: Any

    @classmethod
    def of(cls, parts: Sequence[LabelledBlocks], scores: Sequence[ScoreTable] | None = None) -> Trials:
        """Put the trials of all parts together, with other scores if they are given."""
        lists = [part.trials for part in parts] if scores is None else [*map(LabelledBlocks.labelled, parts, scores)]
        columns = zip(*map(_columns, parts, lists), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    def with_scores(self, scores: Float[np.ndarray, " n"]) -> Trials:
        """Return the same trials with other scores."""
        return Trials(scores, self.labels, self.enroll_speakers, self.test_speakers)


def _columns(part: LabelledBlocks, trials: TrialList) -> tuple[Any, ...]:
    enroll, test = part.blocks.enroll_speakers, part.blocks.test_speakers
    if enroll is None or test is None:
        raise InputError("the trials have no speakers, but intervals need them; give them with the blocks")
    return trials.scores, trials.labels, enroll[trials.enroll_index], test[trials.test_index]


@dataclass(frozen=True)
class Estimate:
    """An average over seeds, and an interval for it."""

    value: float
    low: float
    high: float

    @property
    def covers_zero(self) -> bool:
        """Whether nothing is within the interval."""
        return self.low <= 0 <= self.high

    @property
    def negative(self) -> Estimate:
        """The same with the other sign: a loss as a gain."""
        return Estimate(-self.value, -self.high, -self.low)

    @classmethod
    def over_seeds(cls, values: npt.ArrayLike) -> Estimate:
        """Return the mean with its 95 % interval by Student's t; with one seed it has no ends."""
        from scipy.special import stdtrit

        sample = np.asarray(values, dtype=np.float64)
        if sample.size < 2:
            return cls(float(sample.mean()), float("-inf"), float("inf"))
        half = stdtrit(sample.size - 1, 0.975) * sample.std(ddof=1) / np.sqrt(sample.size)
        return cls(float(sample.mean()), float(sample.mean() - half), float(sample.mean() + half))

    @classmethod
    def of_replicates(cls, value: float, replicates: Float[np.ndarray, " b"]) -> Estimate:
        """Return a value with the middle 95 % of its replicates."""
        low, high = np.quantile(replicates, [0.025, 0.975])
        return cls(value, float(low), float(high))


@dataclass(frozen=True, eq=False)
class Level:
    """What the systems do at one strength of a break.

    Attributes
    ----------
    name
        Of the level.
    values
        By system and metric.
    differences
        The same for each system minus `REFERENCE`: negative if the norm gains.
    norm_effect
        The score model minus the same without hidden variables (`GAUSSIAN`), by metric: what its norm does, apart from
        what its Gaussians do.
    """

    name: str
    values: Mapping[str, Mapping[str, Estimate]]
    differences: Mapping[str, Mapping[str, Estimate]]
    norm_effect: Mapping[str, Estimate]

    def recovered(self, system: str, metric: str = "cllr") -> float | None:
        """Return which share of what the break has cost a norm wins back; None if it has not clearly cost anything."""
        lost = self.differences[ORACLE][metric]
        return self.differences[system][metric].value / lost.value if lost.high < 0 else None


@dataclass(frozen=True, eq=False)
class Ideal:
    """Results of the whole experiment.

    Attributes
    ----------
    killer
        Ideal scores, with intervals by resampling speakers.
    broken
        The levels of each break by its name, with intervals over seeds.
    seeds
        The seeds.
    sizes
        Numbers of speakers.
    bounds
        How far the LLRs of the score model and of `GAUSSIAN` go, in each draw: of ideal scores (``none``), and of the
        strongest level of each break.
    """

    killer: Level
    broken: Mapping[str, Sequence[Level]]
    seeds: Sequence[int]
    sizes: Sizes
    bounds: Mapping[str, Mapping[str, Sequence[Bound]]]


def run_ideal(
    *,
    sizes: Sizes | None = None,
    breaks: Sequence[str] = tuple(BREAKS),
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
    levels: Sequence[int] | None = None,
    replicates: int = 500,
    progress: Progress = ignore,
) -> Ideal:
    """Run the experiment: ideal scores first, then every break at all its levels.

    Parameters
    ----------
    sizes
        Numbers of speakers, by default those of the documentation.
    breaks
        Names in `BREAKS`.
    seeds
        Everything is drawn anew for each seed, and results are averaged; the same seeds give the same results.
    levels
        Numbers of the levels of each break, from 0 (ideal); all by default.
    replicates
        Of the bootstrap over speakers on ideal scores.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> found = run_ideal(sizes=Sizes(development=20, evaluation=20), breaks=[], seeds=[1, 2], replicates=50)
    >>> found.killer.differences["t"]["cllr"].value > 0
    True
    """
    sizes = Sizes() if sizes is None else sizes
    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError("give at least one seed, and each only once")
    chosen = [break_named(name) for name in breaks]
    with threadpool_limits(1, "blas"):  # the matrices are small: threads would wait for each other
        killer = ideal_scores(sizes, seeds, replicates, progress)
        broken = {found.name: break_assumption(found, sizes, seeds, levels, progress) for found in chosen}
        bounds = {"none": _bounds(BREAKS["approximation"], 0, sizes, seeds)}
        for place, found in enumerate(chosen):
            progress("bounds of the LLR", place / len(chosen))
            bounds[found.name] = _bounds(found, len(found.levels) - 1, sizes, seeds)
    return Ideal(killer=killer, broken=broken, seeds=tuple(seeds), sizes=sizes, bounds=bounds)


def _bounds(found: Break, level: int, sizes: Sizes, seeds: Sequence[int]) -> dict[str, list[Bound]]:
    bounds: dict[str, list[Bound]] = {GAUSSIAN: [], SCORE_MODEL: []}
    for seed in seeds:
        world = found.make(level, sizes, seed)
        for name, known in bounds.items():
            method = METHODS[name]
            known.append(bound_of(fit_norm(method.norm, world.training, **method.options).model, world.evaluation))
    return bounds


def ideal_scores(sizes: Sizes, seeds: Sequence[int], replicates: int = 500, progress: Progress = ignore) -> Level:
    """Compare the norms on ideal scores; the intervals come from resampling the speakers of the trials.

    All systems of a seed are measured on the same draws of speakers, so that differences are paired. The metrics of
    the seeds, and those of their replicates, are averaged.
    """
    values, drawn = [], []
    for place, seed in enumerate(seeds):
        progress("ideal scores", place / len(seeds))
        systems = normalized(BREAKS["approximation"].make(0, sizes, seed))
        values.append(_measured(systems))
        drawn.append({name: _replicates(trials, replicates, seed) for name, trials in systems.items()})
    progress("ideal scores", 1.0)

    def estimate(name: str, metric: str, reference: str | None) -> Estimate:
        def difference(found: Mapping[str, Mapping[str, Any]]) -> Any:
            return found[name][metric] - (0.0 if reference is None else found[reference][metric])

        mean = float(np.mean([difference(found) for found in values]))
        return Estimate.of_replicates(mean, np.mean([difference(found) for found in drawn], axis=0))

    return _level("ideal", list(values[0]), estimate)


def break_assumption(
    found: Break,
    sizes: Sizes,
    seeds: Sequence[int],
    levels: Sequence[int] | None = None,
    progress: Progress = ignore,
) -> list[Level]:
    """Compare the norms at the levels of a break, all by default; the intervals come from the seeds."""
    numbers = range(len(found.levels)) if levels is None else levels
    measured = []
    for step, number in enumerate(numbers):
        values = []
        for place, seed in enumerate(seeds):
            progress(found.assumption, (step + place / len(seeds)) / len(numbers))
            values.append(_ideal(found.ideal, sizes, seed) if number == 0 else _measure(found, number, sizes, seed))
        measured.append(_averaged(found.levels[number], values))
    progress(found.assumption, 1.0)
    return measured


def normalized(world: ScoredWorld) -> dict[str, Trials]:
    """Return the evaluation trials as every system scores them.

    Examples
    --------
    >>> found = normalized(BREAKS["session-shift"].make(2, Sizes(development=20, evaluation=12), seed=1))
    >>> list(found)[:3], found["zt"].scores.shape
    (['raw, uncalibrated', 'raw', 'z'], (240,))
    """
    systems = {}
    for name, method in METHODS.items():
        fitted = fit_norm(method.norm, world.training, **method.options)
        seen = Trials.of(world.training, fitted.training_scores)
        new = Trials.of(world.evaluation, [fitted.normalizer.normalize(part.blocks) for part in world.evaluation])
        calibration = LogisticCalibration.fit(seen.scores, seen.labels, l2=_PENALTY)
        systems[name] = new.with_scores(calibration(new.scores))
        if name in _ALSO_PLAIN:
            systems[f"{name}, uncalibrated"] = new
    return {name: systems[name] for name in SYSTEMS} | {ORACLE: Trials.of(world.oracle)}


_PENALTY = 1e-6  # keeps the calibration finite where a small development set is free of errors


@lru_cache(maxsize=64)
def _ideal(name: str, sizes: Sizes, seed: int) -> dict[str, dict[str, float]]:
    """Measure the systems where nothing is broken, once for all the breaks that begin there."""
    return _measure(BREAKS[name], 0, sizes, seed)


def _measure(found: Break, level: int, sizes: Sizes, seed: int) -> dict[str, dict[str, float]]:
    return _measured(normalized(found.make(level, sizes, seed)))


def _measured(systems: Mapping[str, Trials]) -> dict[str, dict[str, float]]:
    found = {name: evaluate(trials.scores, trials.labels) for name, trials in systems.items()}
    return {name: {metric: values[metric] for metric in METRICS} for name, values in found.items()}


def _replicates(trials: Trials, replicates: int, seed: int) -> dict[str, Float[np.ndarray, " b"]]:
    speakers = {"enroll_speakers": trials.enroll_speakers, "test_speakers": trials.test_speakers}
    drawn = bootstrap(trials.scores, trials.labels, **speakers, replicates=replicates, seed=seed)
    return {metric: drawn.replicates(metric) for metric in METRICS}  # type: ignore[arg-type]


def _averaged(name: str, values: Sequence[Mapping[str, Mapping[str, float]]]) -> Level:
    def estimate(system: str, metric: str, reference: str | None) -> Estimate:
        other = 0.0 if reference is None else np.array([found[reference][metric] for found in values])
        return Estimate.over_seeds(np.array([found[system][metric] for found in values]) - other)

    return _level(name, list(values[0]), estimate)


def _level(name: str, systems: Sequence[str], estimate: Callable[[str, str, str | None], Estimate]) -> Level:
    values, differences = (
        {system: {metric: estimate(system, metric, reference) for metric in METRICS} for system in systems}
        for reference in (None, REFERENCE)
    )
    effect = {metric: estimate(SCORE_MODEL, metric, GAUSSIAN) for metric in METRICS}
    return Level(name, values, differences, effect)
