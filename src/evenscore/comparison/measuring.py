"""Figures of the evaluation trials: of scores in memory, or of summaries of scores that are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.comparison.chunked_trials import ChunkedCompared, Speakers
from evenscore.comparison.comparison import METRICS, Figures
from evenscore.comparison.trials import ComparedTrials
from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.metrics import Bootstrap, OperatingPoint, bootstrap, evaluate, summarize
from evenscore.metrics.speaker_groups import GroupCounter, GroupCounts, speaker_groups
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress
from evenscore.scale import ChunkedScores, ChunkedTrials, transform_chunks
from evenscore.scale.chunked_trials import TrialChunk
from evenscore.scale.pair_values import PairValues
from evenscore.scale.tiles import spans
from evenscore.tables import UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ChunkedTable", "Judging", "Measured", "calibrated_tables", "measured_chunks", "measured_scores"]

ChunkedTable = ChunkedScores | ChunkedTrials
_SLAB = 1 << 22  # scores that are calibrated and counted at a time, so that LLRs of large tiles take little room


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How every method is judged: all of them the same way."""

    calibration: str
    calibration_options: Mapping[str, Any]
    points: tuple[OperatingPoint, ...]
    replicates: int
    level: float
    seed: int
    folds: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The evaluation trials of one method, and how good they are; the fields are those of `MethodResult`.

    ``replicates`` has for each metric its value in every draw of speakers.
    """

    scores: Float[np.ndarray, " n"] | tuple[ChunkedTable, ...]
    llrs: Float[np.ndarray, " n"] | tuple[ChunkedTable, ...]
    figures: Figures
    conditions: Mapping[str, Figures]
    uncalibrated: Figures | None
    replicates: Mapping[str, Float[np.ndarray, " b"]]
    summaries: Mapping[str, ScoreSummary] | None = None


def measured_scores(
    scores: npt.NDArray[Any], llrs: npt.NDArray[Any], trials: ComparedTrials, how: Judging, is_llr: bool
) -> Measured:
    """Measure scores that are in memory."""
    figures, replicates = _measured(llrs, trials, how)
    return Measured(
        scores=scores,
        llrs=llrs,
        figures=figures,
        conditions=_by_condition(llrs, trials, how),
        uncalibrated=_measured(scores, trials, how)[0] if is_llr else None,
        replicates=replicates,
    )


def _measured(
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
    reader: Any
    values: PairValues
    speakers: Speakers
    group: npt.NDArray[Any]
    calibration: Calibration
    points: tuple[OperatingPoint, ...]
    is_llr: bool


def measured_chunks(
    tables: Sequence[ChunkedTable],
    calibration: Calibration,
    trials: ChunkedCompared,
    how: Judging,
    is_llr: bool,
    *,
    client: Any,
    progress: Progress,
) -> Measured:
    """Measure normalized scores that are not in memory, in one pass over the tables of all conditions."""
    group = speaker_groups(len(trials.speakers), how.seed)
    parts = []
    for place, table in enumerate(tables):
        chunks: list[Any] = table.tiles() if isinstance(table, ChunkedScores) else table.chunks()
        task = _Task(
            reader=table.reader,
            values=trials.parts[place].values,
            speakers=trials.by_part[place],
            group=group,
            calibration=calibration,
            points=how.points,
            is_llr=is_llr,
        )
        parts.append(engine_for(client).total(_sums, task, chunks, stage="measuring", progress=progress))
        _check_complete(parts[-1].llrs, trials, place)
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    figures, replicates = _summary_figures(whole.llrs, whole.llr_groups, how)
    uncalibrated = None if whole.score_groups is None else _summary_figures(whole.scores, whole.score_groups, how)[0]
    conditions = {} if len(parts) < 2 else dict(zip(trials.names, map(_condition, parts), strict=True))
    return Measured(
        scores=tuple(tables),
        llrs=calibrated_tables(tables, calibration),
        figures=figures,
        conditions=conditions,
        uncalibrated=uncalibrated,
        replicates=replicates,
        summaries={"scores": whole.scores, "llrs": whole.llrs},
    )


def calibrated_tables(tables: Sequence[ChunkedTable], calibration: Calibration) -> tuple[ChunkedTable, ...]:
    """Return scores as LLRs, which are computed when they are read."""
    described = repr(calibration.to_dict())
    return tuple(transform_chunks(table, calibration, described) for table in tables)


def _sums(task: _Task, place: Any) -> _PartSums:
    """Count one tile or chunk of trials."""
    if isinstance(place, TrialChunk):
        trials = task.reader.read(place.trials)
        scores, labels = trials.scores, task.values.of_trials(trials)
        enroll, test = task.speakers.of_list(trials)
    else:
        scores, labels = task.reader.read(place.rows, place.columns), task.values.of_tile(place)
        enroll, test = task.speakers.of_tile(place)
    groups = [GroupCounter(task.group, task.points) for _ in range(1 + task.is_llr)]
    llr_sums, score_sums = [], []
    for at in spans(len(scores), max(_SLAB * len(scores) // max(scores.size, 1), 1)):
        key = np.maximum(labels[at], UNKNOWN).astype(np.int8, copy=False)  # pairs that a key does not list are unknown
        llrs = np.asarray(task.calibration(scores[at]), dtype=np.float64)
        sides = (key, enroll[at], test if scores.ndim == 2 else test[at])
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


def _check_complete(found: ScoreSummary, trials: ChunkedCompared, place: int) -> None:
    """Refuse a method that leaves out trials: methods are compared on the same ones."""
    size, name = trials.sizes[place], trials.names[place]
    if (found.n_target, found.n_nontarget) != (size.targets, size.nontargets):
        where = f" of {name!r}" if name else ""
        raise InputError(
            f"it gives scores to {found.n_target + found.n_nontarget} of the {size.targets + size.nontargets} trials"
            f"{where}, but methods are compared on the same trials"
        )


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
