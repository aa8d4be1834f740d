"""Figures of the evaluation trials: exact where they are in memory, else from summaries, with bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.calibrate.tables import calibrated
from evenscore.comparison.comparison import METRICS, Figures, Measured
from evenscore.comparison.settings import Judging
from evenscore.comparison.trials import ComparedTrials
from evenscore.engine.engine import engine_for
from evenscore.metrics import Bootstrap, OperatingPoint, bootstrap, evaluate, summarize
from evenscore.metrics.speaker_groups import GroupCounter, GroupCounts, speaker_groups
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress, silent
from evenscore.tables import UNKNOWN, Place, ScoreTable
from evenscore.tables.arrays import frozen
from evenscore.tables.pair_values import PairValues
from evenscore.tables.score_table import Source
from evenscore.tables.tile import spans

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["calibrated_tables", "measured"]

_SLAB = 1 << 22  # scores that are calibrated and counted at a time, so that LLRs of large tiles take little room


def measured(
    tables: Sequence[ScoreTable],
    calibrations: Sequence[Calibration],
    trials: ComparedTrials,
    how: Judging,
    *,
    is_llr: bool = False,
    client: Any = None,
    progress: Progress = silent,
) -> Measured:
    """Calibrate and measure normalized scores: a table and a calibration for each condition.

    Scores that are LLRs by themselves (``is_llr``) are measured before they are calibrated, too.
    """
    if not trials.is_in_memory:
        return _measured_tiles(tables, calibrations, trials, how, is_llr, client, progress)
    scores = trials.pooled(tables)
    pieces = [calibration(part) for calibration, part in zip(calibrations, trials.by_condition(scores), strict=True)]
    llrs = frozen(np.concatenate(pieces).astype(np.float64, copy=False))
    figures, replicates = _exact(llrs, trials, how)
    return Measured(
        scores=scores,
        llrs=llrs,
        figures=figures,
        conditions=_by_condition(llrs, trials, how),
        uncalibrated=_exact(scores, trials, how)[0] if is_llr else None,
        replicates=replicates,
    )


def _exact(
    scores: npt.NDArray[Any], trials: ComparedTrials, how: Judging
) -> tuple[Figures, dict[str, npt.NDArray[np.float64]]]:
    values, key = trials.known(scores), trials.known(trials.labels)
    drawn = bootstrap(values, key, **trials.sides, replicates=how.replicates, points=how.points, seed=how.seed)
    figures = Figures(values=evaluate(values, key, points=how.points), intervals=drawn.to_dict(how.level))
    return figures, {metric: drawn.replicates(metric) for metric in METRICS}


def _by_condition(llrs: npt.NDArray[Any], trials: ComparedTrials, how: Judging) -> dict[str, Figures]:
    if len(trials.lists) < 2:
        return {}
    found = {}
    for name, part in zip(trials.names, trials.split(llrs), strict=True):
        problem = _one_class(part.n_target, part.n_nontarget)
        found[name] = problem or Figures(values=evaluate(part, points=how.points))
    return found


def _one_class(n_target: int, n_nontarget: int) -> Figures | None:
    """Return what can be said of a condition that lacks a class; None if it has both."""
    absent = [kind for count, kind in ((n_target, "target"), (n_nontarget, "non-target")) if not count]
    if not absent:
        return None
    counts: dict[str, Any] = {"n_target": n_target, "n_nontarget": n_nontarget}
    return Figures(values=counts | {"problem": f"there are no {absent[0]} trials"})


@dataclass(frozen=True, kw_only=True, eq=False)
class _PartSums:
    """All that figures need of some trials; it adds up."""

    llrs: ScoreSummary
    scores: ScoreSummary
    llr_groups: GroupCounts
    score_groups: GroupCounts | None  #: where scores are LLRs before they are calibrated

    def __add__(self, other: _PartSums) -> _PartSums:
        both = self.score_groups is not None and other.score_groups is not None
        return _PartSums(
            llrs=self.llrs + other.llrs,
            scores=self.scores + other.scores,
            llr_groups=self.llr_groups + other.llr_groups,
            score_groups=self.score_groups + other.score_groups if both else None,  # type: ignore[operator]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    source: Source
    labels: PairValues
    enroll: Int[np.ndarray, " k"]  #: speakers of the enrolments
    test: Int[np.ndarray, " l"]
    group: npt.NDArray[Any]
    calibration: Calibration
    points: tuple[OperatingPoint, ...]
    is_llr: bool


def _measured_tiles(
    tables: Sequence[ScoreTable],
    calibrations: Sequence[Calibration],
    trials: ComparedTrials,
    how: Judging,
    is_llr: bool,
    client: Any,
    progress: Progress,
) -> Measured:
    """Measure scores that are not in memory, in one pass over the tables of all conditions."""
    group = speaker_groups(len(trials.speakers), how.seed)
    parts = []
    for place, table in enumerate(tables):
        labels, enroll, test = trials.known_of(place, table)
        task = _Task(
            source=table.source,
            labels=labels,
            enroll=enroll,
            test=test,
            group=group,
            calibration=calibrations[place],
            points=how.points,
            is_llr=is_llr,
        )
        found = engine_for(client).total(_sums, task, table.places(), stage="measuring", progress=progress)
        _check_complete(found.llrs, trials, place)
        parts.append(found)
    whole = reduce(add, parts)
    figures, replicates = _summary_figures(whole.llrs, whole.llr_groups, how)
    uncalibrated = None if whole.score_groups is None else _summary_figures(whole.scores, whole.score_groups, how)[0]
    conditions = {} if len(parts) < 2 else dict(zip(trials.names, map(_condition, parts), strict=True))
    return Measured(
        scores=tuple(tables),
        llrs=calibrated_tables(tables, calibrations),
        figures=figures,
        conditions=conditions,
        uncalibrated=uncalibrated,
        replicates=replicates,
        summaries={"scores": whole.scores, "llrs": whole.llrs},
    )


def calibrated_tables(tables: Sequence[ScoreTable], calibrations: Sequence[Calibration]) -> tuple[ScoreTable, ...]:
    """Return scores as LLRs, which are computed when they are read."""
    return tuple(map(calibrated, tables, calibrations))


def _sums(task: _Task, place: Place) -> _PartSums:
    """Count one tile."""
    tile = task.source.read(place)
    scores, labels = tile.scores, np.broadcast_to(task.labels.of(tile), tile.scores.shape)
    enroll, test = task.enroll[tile.rows], task.test[tile.columns]
    groups = [GroupCounter(task.group, task.points) for _ in range(1 + task.is_llr)]
    llr_sums, score_sums = [], []
    for at in spans(len(scores), max(_SLAB * len(scores) // max(scores.size, 1), 1)):
        key = np.maximum(labels[at], UNKNOWN).astype(np.int8, copy=False)  # pairs that a key does not list are unknown
        llrs = np.asarray(task.calibration(scores[at]), dtype=np.float64)
        sides = (key, enroll[at], test[at] if tile.listed else test)
        llr_sums.append(summarize(llrs, key, points=task.points))
        score_sums.append(summarize(scores[at], key, points=task.points))
        for counter, values in zip(groups, (llrs, scores[at]), strict=False):
            counter.add(values, *sides)
    return _PartSums(
        llrs=reduce(add, llr_sums),
        scores=reduce(add, score_sums),
        llr_groups=groups[0].counts(),
        score_groups=groups[1].counts() if task.is_llr else None,
    )


def _check_complete(found: ScoreSummary, trials: ComparedTrials, place: int) -> None:
    """Refuse a method that leaves out trials: methods are compared on the same ones."""
    wanted = trials.counts[place]
    if (found.n_target, found.n_nontarget) != (wanted.targets, wanted.nontargets):
        raise trials.incomplete(place, found.n_target + found.n_nontarget, wanted.targets + wanted.nontargets)


def _condition(part: _PartSums) -> Figures:
    problem = _one_class(part.llrs.n_target, part.llrs.n_nontarget)
    return problem or Figures(values=part.llrs.evaluate())


def _summary_figures(
    summary: ScoreSummary, groups: GroupCounts, how: Judging
) -> tuple[Figures, dict[str, npt.NDArray[np.float64]]]:
    values = summary.evaluate()
    drawn = Bootstrap.drawn(groups, figures=values, replicates=how.replicates, seed=how.seed)
    return Figures(values=values, intervals=drawn.to_dict(how.level)), {
        name: drawn.replicates(name) for name in METRICS
    }
