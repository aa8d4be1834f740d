"""Figures of the evaluation trials: exact where they are in memory, else from summaries, with bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.calibrate.tables import calibrated
from evenscore.comparison.comparison import METRICS, Figures, Judging, Measured
from evenscore.comparison.trials import Codes, ComparedTrials
from evenscore.engine.engine import engine_for
from evenscore.metrics import Bootstrap, OperatingPoint, evaluate, summarize
from evenscore.metrics.points import Points
from evenscore.metrics.resampling import Resampled, rank_trials
from evenscore.metrics.speaker_groups import GroupCounter, GroupCounts, speaker_groups
from evenscore.metrics.speakers import trial_speakers
from evenscore.metrics.summary import ScoreSummary
from evenscore.metrics.trials import Trials
from evenscore.progress import Progress, silent
from evenscore.tables import UNKNOWN, Place, ScoreTable
from evenscore.tables.arrays import frozen
from evenscore.tables.pair_values import PairValues
from evenscore.tables.score_table import Source
from evenscore.tables.tile import spans

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
    kinds = ("llrs", "scores") if is_llr else ("llrs",)
    facts: dict[str, Any]
    if trials.is_in_memory:
        facts = _arrays(tables, calibrations, trials)
        points: Mapping[str, Points] = {kind: Trials(values=facts[kind], key=trials.labels) for kind in kinds}
        samples: Mapping[str, Resampled] = {kind: _ranked(facts[kind], trials, how) for kind in kinds}
        key = trials.by_condition(trials.labels)
        llrs = trials.by_condition(facts["llrs"])
        conditions: list[Points] = [Trials(values=v, key=k) for v, k in zip(llrs, key, strict=True)]
    else:
        parts = _counted(tables, calibrations, trials, how, kinds, client, progress)
        whole = reduce(add, parts)
        points, samples = whole.points, whole.groups
        conditions = [part.points["llrs"] for part in parts]
        facts = {"scores": tuple(tables), "llrs": calibrated_tables(tables, calibrations), "summaries": points}
    found = {kind: _figures(points[kind], samples[kind], how) for kind in kinds}
    named = zip(trials.names, conditions, strict=True)
    return Measured(
        **facts,
        figures=found["llrs"][0],
        conditions={name: _condition(part, how) for name, part in named} if len(conditions) > 1 else {},
        uncalibrated=found["scores"][0] if is_llr else None,
        replicates=found["llrs"][1],
    )


def _figures(points: Points, sample: Resampled, how: Judging) -> tuple[Figures, dict[str, Any]]:
    """Return metrics with intervals, and the metrics of every draw of speakers."""
    values = evaluate(points, points=how.points).to_dict()
    in_bins = values if "bounds" in values else None
    drawn = Bootstrap.drawn(sample, figures=in_bins, replicates=how.replicates, seed=how.seed)
    replicates: dict[str, Any] = {metric: drawn.replicates(metric) for metric in METRICS}
    return Figures(values=values, intervals=drawn.to_dict(how.level)), replicates


def _condition(points: Points, how: Judging) -> Figures:
    """Return the metrics of one condition; of one that lacks a class, what can be said."""
    counts: dict[str, Any] = {"n_target": points.n_target, "n_nontarget": points.n_nontarget}
    absent = [name for name, count in counts.items() if not count]
    if absent:
        kind = {"n_target": "target", "n_nontarget": "non-target"}[absent[0]]
        return Figures(values=counts | {"problem": f"there are no {kind} trials"})
    return Figures(values=evaluate(points, points=how.points).to_dict())


def _arrays(
    tables: Sequence[ScoreTable], calibrations: Sequence[Calibration], trials: ComparedTrials
) -> dict[str, npt.NDArray[Any]]:
    """Return scores and LLRs of all trials in memory."""
    scores = trials.pooled(tables)
    pieces = [calibration(part) for calibration, part in zip(calibrations, trials.by_condition(scores), strict=True)]
    return {"scores": scores, "llrs": frozen(np.concatenate(pieces).astype(np.float64, copy=False))}


def _ranked(values: npt.NDArray[Any], trials: ComparedTrials, how: Judging) -> Resampled:
    known, key = trials.known(values), trials.known(trials.labels)
    return rank_trials(known, key, trial_speakers(known, len(key), **trials.sides), how.points)


def calibrated_tables(tables: Sequence[ScoreTable], calibrations: Sequence[Calibration]) -> tuple[ScoreTable, ...]:
    """Return scores as LLRs, which are computed when they are read."""
    return tuple(map(calibrated, tables, calibrations))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counted:
    """All that figures need of some trials, of scores and of LLRs; it adds up."""

    points: Mapping[str, ScoreSummary]
    groups: Mapping[str, GroupCounts]  #: only of what is measured

    def __add__(self, other: _Counted) -> _Counted:
        return _Counted(
            points={kind: part + other.points[kind] for kind, part in self.points.items()},
            groups={kind: part + other.groups[kind] for kind, part in self.groups.items()},
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    source: Source
    labels: PairValues
    enroll: Codes  #: speakers of the enrolments
    test: Codes
    group: npt.NDArray[Any]
    calibration: Calibration
    points: tuple[OperatingPoint, ...]
    kinds: tuple[str, ...]  #: what is measured


def _counted(
    tables: Sequence[ScoreTable],
    calibrations: Sequence[Calibration],
    trials: ComparedTrials,
    how: Judging,
    kinds: tuple[str, ...],
    client: Any,
    progress: Progress,
) -> list[_Counted]:
    """Count scores that are not in memory in one pass over each table; a method that leaves out trials is refused."""
    group = speaker_groups(len(trials.speakers), how.seed)
    parts: list[_Counted] = []
    for place, (table, calibration) in enumerate(zip(tables, calibrations, strict=True)):
        labels, enroll, test = trials.known_of(place, table)
        task = _Task(
            source=table.source,
            labels=labels,
            enroll=enroll,
            test=test,
            group=group,
            calibration=calibration,
            points=how.points,
            kinds=kinds,
        )
        found: _Counted = engine_for(client).total(_count, task, table.places(), stage="measuring", progress=progress)
        here, wanted = found.points["llrs"], trials.summaries[place]
        if (here.n_target, here.n_nontarget) != (wanted.targets, wanted.nontargets):
            raise trials.incomplete(place, here.n_target + here.n_nontarget, wanted.targets + wanted.nontargets)
        parts.append(found)
    return parts


def _count(task: _Task, place: Place) -> _Counted:
    """Count one tile."""
    tile = task.source.read(place)
    scores, labels = tile.scores, np.broadcast_to(task.labels.of(tile), tile.scores.shape)
    enroll, test = task.enroll[tile.rows], task.test[tile.columns]
    groups = {kind: GroupCounter(task.group, task.points) for kind in task.kinds}
    points: list[dict[str, ScoreSummary]] = []
    for at in spans(len(scores), max(_SLAB * len(scores) // max(scores.size, 1), 1)):
        key = np.maximum(labels[at], UNKNOWN).astype(np.int8, copy=False)  # pairs that a key does not list are unknown
        values = {"scores": scores[at], "llrs": np.asarray(task.calibration(scores[at]), dtype=np.float64)}
        points.append({kind: summarize(part, key, points=task.points) for kind, part in values.items()})
        for kind, counter in groups.items():
            counter.add(values[kind], key, enroll[at], test[at] if tile.listed else test)
    return _Counted(
        points={kind: reduce(add, [part[kind] for part in points]) for kind in ("scores", "llrs")},
        groups={kind: counter.counts() for kind, counter in groups.items()},
    )
