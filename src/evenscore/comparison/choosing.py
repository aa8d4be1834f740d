"""Choosing a cohort by cross-validation on the training side: which members, how many, and which top-k."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.comparison.cohort_choice import CohortCandidate, CohortChoice, candidate_name
from evenscore.comparison.comparison import METRICS, Judging, Measured
from evenscore.comparison.data import in_memory
from evenscore.comparison.judging import or_reason, train
from evenscore.comparison.measuring import measured
from evenscore.comparison.methods import RAW, Method
from evenscore.comparison.trials import FROM_BLOCKS, ComparedTrials, compared_trials
from evenscore.errors import InputError
from evenscore.metrics import Interval
from evenscore.metrics.operating_points import DEFAULT_POINTS, PointLike
from evenscore.metrics.uncertainty import Metric, differences
from evenscore.norms import fit_methods
from evenscore.progress import Progress, silent
from evenscore.tables import Axis, LabelledBlocks, ScoreBlocks, ScoreTable
from evenscore.tables.labelled_blocks import labelled_parts

__all__ = ["choose_cohort"]

ALL = "all"
Chooser = Callable[[Axis], npt.NDArray[np.bool_]]  # tells who of the members on one side stays
Way = tuple[str, int | None, int | float | None]  # name of the cohort, size, top_k


def choose_cohort(
    training: Sequence[LabelledBlocks],
    method: str | Method = "as",
    *,
    sizes: Sequence[int | None] = (None,),
    top_k: Sequence[int | float | None] = (None,),
    cohorts: Mapping[str, Collection[str]] | None = None,
    metric: Metric = "cllr",
    calibration: str = "logistic",
    points: PointLike | Sequence[PointLike] = DEFAULT_POINTS,
    folds: int = 5,
    repeats: int = 5,
    bootstrap: int = 200,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress = silent,
) -> CohortChoice:
    """Find out which cohort, how large, and which top-k is best, without looking at evaluation trials.

    The speakers of the training side are divided into folds. The trials among the speakers of one fold are normalized
    and calibrated by what was fitted to the trials among all others, with a cohort in which none of the fold's
    speakers is. Every combination of ``cohorts``, ``sizes`` and ``top_k`` is measured on the same trials.

    Parameters
    ----------
    training
        One `LabelledBlocks` for each phrase or condition, with speakers; see `LabelledBlocks.own_cohort`.
    method
        The norm, such as ``"as"``, ``"s"`` or ``"as:select=cross"``.
    sizes
        How many of the cohort's speakers to draw (of its members, if their speakers are not known); None takes all.
    top_k
        What an adaptive norm takes: counts, fractions, or None for what is usual.
    cohorts
        Candidates by name: ids or speakers of the members; by default everybody.
    metric
        What to compare by: ``"cllr"``, ``"eer"``, ``"min_dcf"``, ``"act_dcf"`` or ``"min_cllr"``.
    calibration, points
        As in `compare`.
    folds
        Of speakers, at least 2.
    repeats
        How many cohorts of each size are drawn at random; a larger one contains the smaller ones.
    bootstrap, level, seed
        Draws of the trials' speakers for the intervals, their level, and the seed of all draws.
    progress
        Called with the name of the stage and the fraction done.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n // 2}" for n in range(60)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> choice = choose_cohort([dev], "as", top_k=[2, 0.5], bootstrap=50)
    >>> choice.best.top_k
    0.5
    >>> choice.text.startswith("Take all, top_k 0.5: Cllr ")
    True
    """
    chosen = method if isinstance(method, Method) else Method.of(method)
    chosen.check()
    how = Judging.of(
        calibration,
        points=points,
        metric=metric,
        replicates=bootstrap,
        level=level,
        seed=seed,
        folds=folds,
        fewest_folds=2,
    )
    training = in_memory(labelled_parts(training, "training"))
    trials = _checked(training, chosen, sizes, folds, repeats)
    pool = CohortPool.of(training)
    search = _Search(
        training=training,
        speakers=frozenset(trials.speakers),
        folds=_folds(trials, folds, seed),
        pool=pool,
        orders=[pool.drawn_order(seed + draw) for draw in range(repeats)],
        how=how,
    )
    named = {ALL: None} if cohorts is None else {name: frozenset(ids) for name, ids in cohorts.items()}
    ways = list(product(named, sizes, top_k))
    if not ways:
        raise InputError("there is nothing to choose from; give sizes, values of top_k, or cohorts")
    raw = search.run(Method(RAW, RAW)).measured.figures.values
    found: list[tuple[Way, list[Run]]] = []
    not_run: dict[str, str] = {}
    for place, way in enumerate(ways):
        progress("candidates", place / len(ways))
        cohort, size, k = way
        runs = or_reason(search.runs, _with_top_k(chosen, k), named[cohort], size)
        if isinstance(runs, str):
            not_run[candidate_name(*way, pool.unit)] = runs
        else:
            found.append((way, runs))
    if not found:
        name, reason = next(iter(not_run.items()))
        raise InputError(f"no cohort could be measured; {name}: {reason}")
    return CohortChoice(
        method=chosen.name,
        metric=metric,
        unit=pool.unit,
        candidates=_candidates(found, metric, level),
        not_run=not_run,
        raw=raw[metric],
        folds=folds,
        repeats=repeats,
        seed=seed,
        n_trials=raw["n_target"] + raw["n_nontarget"],
    )


def _checked(
    training: Sequence[LabelledBlocks], method: Method, sizes: Sequence[int | None], folds: int, repeats: int
) -> ComparedTrials:
    """Refuse what cannot be meant, and return the trials."""
    if method.norm not in fit_methods() or method.norm == RAW:
        raise InputError(f"there is no norm {method.norm!r} that uses a cohort; choose one, such as 'as'")
    if repeats < 1:
        raise InputError(f"repeats is {repeats}, but must be at least 1")
    odd = [size for size in sizes if size is not None and size < 1]
    if odd:
        raise InputError(f"a cohort size is {odd[0]}, but must be at least 1")
    trials = compared_trials(training)
    if trials.speakers_from != FROM_BLOCKS:
        raise InputError("the speakers of the training trials are not known, so there are no folds; give a speaker map")
    if any(not _cohort_axes(part.blocks) for part in training):
        raise InputError("the training side has no cohort scores; use LabelledBlocks.own_cohort, or give a cohort")
    if len(trials.speakers) < 2 * folds:
        count = len(trials.speakers)
        raise InputError(f"there are {count} speakers, too few for {folds} folds of two; give fewer folds")
    return trials


def _folds(trials: ComparedTrials, number: int, seed: int) -> list[frozenset[str]]:
    """Return the speakers of each fold."""
    order = np.random.default_rng(seed).permutation(len(trials.speakers))
    return [frozenset(trials.speakers[at] for at in order[fold::number]) for fold in range(number)]


def _with_top_k(method: Method, top_k: int | float | None) -> Method:
    return method if top_k is None else replace(method, options={**method.options, "top_k": top_k})


@dataclass(frozen=True, eq=False)
class Run:
    """What one cohort gave, and how many members it had on a side."""

    measured: Measured
    members: float


@dataclass(frozen=True, kw_only=True, eq=False)
class _Search:
    """What all candidates are measured on, and how."""

    training: Sequence[LabelledBlocks]
    speakers: frozenset[str]
    folds: Sequence[frozenset[str]]  #: the speakers of each fold
    pool: CohortPool
    orders: Sequence[Sequence[str]]  #: for each draw, whom to take first
    how: Judging

    @cached_property
    def trials(self) -> ComparedTrials:
        """The trials within each fold, one after the other: the same for all candidates."""
        return compared_trials([part for fold in self.folds for part in _restricted(self.training, fold)])

    def runs(self, method: Method, named: Collection[str] | None, size: int | None) -> list[Run]:
        """Measure a method with a cohort, as often as there is something to draw."""
        return [self.run(method, named, size, order) for order in (self.orders if size is not None else [()])]

    def run(
        self,
        method: Method,
        named: Collection[str] | None = None,
        size: int | None = None,
        order: Sequence[str] = (),
    ) -> Run:
        """Measure the trials within each fold by what is fitted to the trials among all others."""
        tables: list[ScoreTable] = []
        calibrations: list[Calibration] = []
        members: list[int] = []
        for fold in self.folds:
            stays = self.pool.chooser(fold, named, size, order)
            trained = train(method, _restricted(self.training, self.speakers - fold, stays), self.how)
            evaluation = _restricted(self.training, fold, stays)
            tables += trained.normalized(evaluation)
            calibrations += [trained.calibration] * len(evaluation)
            members += [len(axis) for part in evaluation for axis in _cohort_axes(part.blocks)]
        return Run(measured(tables, calibrations, self.trials, self.how), float(np.mean(members)))


def _candidates(found: Sequence[tuple[Way, list[Run]]], metric: Metric, level: float) -> tuple[CohortCandidate, ...]:
    means = [np.mean([run.measured.replicates[metric] for run in runs], axis=0) for _, runs in found]
    values = [np.array([run.measured.figures.values[metric] for run in runs]) for _, runs in found]
    best = means[int(np.argmin([one.mean() for one in values]))]
    return tuple(
        CohortCandidate(
            cohort=cohort,
            size=size,
            top_k=top_k,
            members=float(np.mean([run.members for run in runs])),
            values=value,
            figures={name: float(np.mean([run.measured.figures.values[name] for run in runs])) for name in METRICS},
            interval=Interval.of(mean, level),
            to_best=Interval.of(differences(mean, best), level),
        )
        for ((cohort, size, top_k), runs), value, mean in zip(found, values, means, strict=True)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CohortPool:
    """Everybody who may be in the cohort.

    Attributes
    ----------
    axes
        The members on each side of each condition.
    by_speaker
        Whether speakers are drawn, or members, as their speakers are not known.
    """

    axes: Sequence[Axis]
    by_speaker: bool

    @classmethod
    def of(cls, training: Sequence[LabelledBlocks]) -> CohortPool:
        """Return the pool of all cohort members of labelled blocks."""
        axes = [axis for part in training for axis in _cohort_axes(part.blocks)]
        return cls(axes=axes, by_speaker=all(axis.speakers is not None for axis in axes))

    @property
    def unit(self) -> str:
        """What sizes count."""
        return "speakers" if self.by_speaker else "members"

    def drawn_order(self, seed: int) -> list[str]:
        """Return all who can be drawn in random order: whoever comes first is drawn first."""
        names = sorted({name for axis in self.axes for name in self._drawable(axis).tolist()} - {None})
        return [names[at] for at in np.random.default_rng(seed).permutation(len(names))]

    def _drawable(self, axis: Axis) -> npt.NDArray[np.object_]:
        return axis.speakers if self.by_speaker and axis.speakers is not None else axis.ids

    def chooser(
        self, fold: Collection[str], named: Collection[str] | None, size: int | None, order: Sequence[str]
    ) -> Chooser:
        """Return who stays in the cohort: nobody of the fold, and of the others those who are named and drawn.

        ``named`` are ids or speakers, None is everybody; ``size`` is how many are drawn, None is all of them.
        """

        def eligible(axis: Axis) -> npt.NDArray[np.bool_]:
            speakers = [None] * len(axis) if axis.speakers is None else axis.speakers.tolist()
            pairs = zip(axis.ids.tolist(), speakers, strict=True)
            return np.array(
                [who not in fold and (named is None or name in named or who in named) for name, who in pairs],
                dtype=bool,
            )

        def drawn(axes: Sequence[Axis]) -> Collection[str]:
            possible = {name for axis in axes for name in self._drawable(axis)[eligible(axis)].tolist()}
            if len(possible) < (size or 0):
                count = f"{len(possible)} {self.unit}"
                raise InputError(f"outside a fold there are only {count} to draw from; take fewer, or more folds")
            return frozenset([name for name in order if name in possible][:size])

        of_all = drawn(self.axes) if size is not None and self.by_speaker else None

        def stays(axis: Axis) -> npt.NDArray[np.bool_]:
            kept = eligible(axis)
            if size is not None:
                chosen = drawn([axis]) if of_all is None else of_all
                kept &= np.array([name in chosen for name in self._drawable(axis).tolist()], dtype=bool)
            if not kept.any():
                raise InputError("nobody is left in the cohort; name other members, or give fewer folds")
            return kept

        return stays


def _cohort_axes(blocks: ScoreBlocks) -> list[Axis]:
    """Return the cohort's enrolments and its tests, as far as there are any."""
    return [axis for axis in (blocks.cohort_enroll_axis, blocks.cohort_test_axis) if axis is not None]


def _restricted(
    training: Sequence[LabelledBlocks], speakers: Collection[str], stays: Chooser | None = None
) -> list[LabelledBlocks]:
    """Return the trials between these speakers, with the cohort members that stay; None: all of them.

    Blocks without such trials are left out.

    Examples
    --------
    >>> from evenscore import Labels, ScoreMatrix
    >>> scores = ScoreMatrix(np.arange(9.0).reshape(3, 3), ["a1", "b1", "c1"], ["a2", "b2", "c2"])
    >>> dev = LabelledBlocks.own_cohort(scores, Labels.from_speakers(["a", "b", "c"], ["a", "b", "c"]))
    >>> [small] = _restricted([dev], {"a", "b"}, lambda axis: axis.speakers != "a")
    >>> small.blocks
    ScoreBlocks(trials 2 x 2, enroll 2 x 2, test 2 x 2, cohort 2 x 2, speakers of enroll, test, cohort_enroll,
    cohort_test)
    """
    found = []
    for part in training:
        trials = _trials_among(part.blocks.trials, speakers)
        if trials is not None:
            cohort = {} if stays is None else _cohort(part.blocks, stays)
            blocks = part.blocks.replace(trials=trials, **cohort)
            found.append(replace(part, blocks=blocks, unmatched="drop"))
    return found


def _trials_among(trials: Any, speakers: Collection[str]) -> Any:
    rows, columns = (
        np.array([name in speakers for name in axis.speakers], dtype=bool)
        for axis in (trials.enroll_axis, trials.test_axis)
    )
    if trials.listed:
        kept = rows[trials.enroll_index] & columns[trials.test_index]
        return trials.select(kept) if kept.any() else None
    if not rows.any() or not columns.any():
        return None
    return trials.take(np.flatnonzero(rows), np.flatnonzero(columns))


def _cohort(blocks: ScoreBlocks, stays: Chooser) -> dict[str, Any]:
    """Return the blocks of cohort scores with the members that stay."""
    sides = (blocks.cohort_enroll_axis, blocks.cohort_test_axis)
    rows, columns = (None if axis is None else np.flatnonzero(stays(axis)) for axis in sides)
    return {
        "enroll": None if blocks.enroll is None else blocks.enroll.take(None, columns),
        "test": None if blocks.test is None else blocks.test.take(rows, None),
        "cohort": None if blocks.cohort is None else blocks.cohort.take(rows, columns),
    }
