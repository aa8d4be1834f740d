"""Fusion of several systems whose scores are not in memory: one affine map of all, fitted and applied by chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import LogisticCalibration
from evenscore.calibrate.logistic_regression import (
    Design,
    Objective,
    cross_entropy,
    newton,
    penalty,
    refuse_dependent,
)
from evenscore.errors import InputError
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress, silent
from evenscore.scale.chunked_scores import ChunkedScores, TileReader, hashed
from evenscore.scale.chunked_trials import ChunkedTrials, TrialChunk, TrialReader
from evenscore.scale.counting import aligned
from evenscore.scale.engine import engine_for
from evenscore.scale.pair_values import PairValues
from evenscore.tables import NONTARGET, TARGET, TrialList

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["StackedTiles", "StackedTrials", "fit_fusion", "fused", "stack_systems", "systems_of"]

_TRIALS = 1 << 16  # at a time, to bound memory


def stack_systems(systems: Sequence[ChunkedScores | ChunkedTrials]) -> ChunkedScores | ChunkedTrials:
    """Return the first system's trials, ready for `fit_fusion` and `fused`; read as they are, they are its scores.

    Matrices are aligned by id. Lists must have the same trials in the same order.
    """
    first = systems[0]
    if isinstance(first, ChunkedScores):
        readers = []
        for system in systems:
            if not isinstance(system, ChunkedScores) or system.shape != first.shape:
                raise InputError("the systems must have the same trials, all in matrices or all in lists")
            readers.append(system.align(first.enroll_ids, first.test_ids).reader)
        dtype = np.result_type(*(system.dtype for system in systems if isinstance(system, ChunkedScores)))
        return replace(first, reader=StackedTiles(tuple(readers)), dtype=dtype)
    lists = [system for system in systems if isinstance(system, ChunkedTrials)]
    if len(lists) < len(systems) or len({len(system) for system in lists}) > 1:
        raise InputError("the systems must have the same trials, all in matrices or all in lists")
    bounds = tuple(sorted({bound for system in lists for bound in system.bounds}))
    return replace(first, reader=StackedTrials(tuple(system.reader for system in lists)), bounds=bounds)


def systems_of(stack: ChunkedScores | ChunkedTrials) -> list[ChunkedScores | ChunkedTrials]:
    """Return the systems of a stack, each with the trials of the first one."""
    assert isinstance(stack.reader, StackedTiles | StackedTrials)  # noqa: S101
    return [replace(stack, reader=reader) for reader in stack.reader.readers]  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class StackedTiles:
    """Tiles of several systems."""

    readers: tuple[TileReader, ...]

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile of the first system."""
        return self.readers[0].read(rows, columns)

    def stack(self, rows: slice, columns: slice) -> tuple[None, npt.NDArray[Any]]:
        """Return the tiles of all systems, one behind the other."""
        return None, _same_trials(np.stack([reader.read(rows, columns) for reader in self.readers], axis=-1))

    def identity(self) -> str:
        """Return a text that changes when a system does."""
        return hashed(*(reader.identity() for reader in self.readers))


@dataclass(frozen=True, eq=False)
class StackedTrials:
    """Listed trials of several systems."""

    readers: tuple[TrialReader, ...]

    def read(self, trials: slice) -> TrialList:
        """Return some trials of the first system."""
        return self.readers[0].read(trials)

    def stack(self, trials: slice) -> tuple[TrialList, npt.NDArray[Any]]:
        """Return some trials, and the scores of all systems."""
        first, *others = [reader.read(trials) for reader in self.readers]
        for other in others:
            if len(first) != len(other) or not (
                np.array_equal(first.enroll, other.enroll) and np.array_equal(first.test, other.test)
            ):
                raise InputError(
                    "lists of several systems are not in memory, and do not have the same trials in the same order; "
                    "sort them alike"
                )
        return first, _same_trials(np.stack([np.asarray(table.scores) for table in (first, *others)], axis=-1))

    def identity(self) -> str:
        """Return a text that changes when a system does."""
        return hashed(*(reader.identity() for reader in self.readers))


def _same_trials(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    missing = np.isnan(scores)
    if (missing.any(axis=-1) != missing.all(axis=-1)).any():
        raise InputError("some trials have scores of some systems only; give all systems the same trials")
    return scores


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    reader: Any
    labels: PairValues
    theta: Float[np.ndarray, " c"]
    mean: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]
    number: Float[np.ndarray, "2"]  #: trials of each class
    p_target: float


def fit_fusion(
    stack: ChunkedScores | ChunkedTrials,
    labels: PairValues,
    summaries: Sequence[ScoreSummary],
    *,
    p_target: float = 0.5,
    l2: float = 0.0,
    client: Any = None,
    progress: Progress = silent,
) -> LogisticCalibration:
    """Fit as `LogisticCalibration.fit` does, with a pass over the chunks for each step of Newton's method.

    Parameters
    ----------
    stack
        What `stack_systems` gives.
    labels
        Of the trials.
    summaries
        Of the scores of each system.
    p_target, l2
        As in `LogisticCalibration.fit`.
    client, progress
        As in `summarize_chunks`.
    """
    moments = [summary.moments() for summary in summaries]
    number = moments[0][0]
    share = number / number.sum()
    mean = np.array([share @ means for _, means, _ in moments])
    std = np.sqrt([share @ (spread + (means - m) ** 2) for (_, means, spread), m in zip(moments, mean, strict=True)])
    flat = np.flatnonzero(~(std > 1e-12 * np.abs(mean)))
    if flat.size:
        raise InputError(f"system {flat[0]}'s scores are the same in all trials and cannot be weighed; leave it out")
    places: list[Any]
    if isinstance(stack, ChunkedScores):
        places, labels = stack.tiles(), aligned(labels, stack.enroll_ids, stack.test_ids)
    else:
        places = stack.chunks()
    task = {"reader": stack.reader, "labels": labels, "mean": mean, "std": std, "number": number, "p_target": p_target}

    def at(theta: Float[np.ndarray, " c"]) -> Objective:
        what = _Task(theta=theta, **task)  # type: ignore[arg-type]
        found: Objective = engine_for(client).total(_part, what, places, stage="fusing systems", progress=progress)
        return penalty(theta, l2) + found

    start = at(np.zeros(mean.size + 1))
    if l2 == 0:
        refuse_dependent(start.hessian[:-1, :-1] / start.hessian[-1, -1])
    slopes, intercept = newton(at, start, mean, std, l2)
    return LogisticCalibration(weights=slopes, quality_weights=np.empty(0), offset=intercept, p_target=p_target, l2=l2)


def _part(task: _Task, place: Any) -> Objective:
    """Return what one chunk adds to the objective."""
    if isinstance(place, TrialChunk):
        trials, scores = task.reader.stack(place.trials)
        labels = task.labels.of_trials(trials)
    else:
        _, scores = task.reader.stack(place.rows, place.columns)
        labels = np.broadcast_to(task.labels.of_tile(place), scores.shape[:-1])
    rows, key = scores.reshape(-1, scores.shape[-1]), labels.reshape(-1)
    total = _rows_part(task, rows[:_TRIALS], key[:_TRIALS])
    for start in range(_TRIALS, len(rows), _TRIALS):
        total = total + _rows_part(task, rows[start : start + _TRIALS], key[start : start + _TRIALS])
    return total


def _rows_part(task: _Task, rows: npt.NDArray[Any], key: npt.NDArray[Any]) -> Objective:
    scored = ~np.isnan(rows[:, 0])
    sides, shares = [], []
    for label in (NONTARGET, TARGET):
        inputs = (rows[scored & (key == label)].astype(np.float64) - task.mean) / task.std
        sides.append(np.column_stack((inputs, np.ones(len(inputs)))))
        shares.append(np.full(len(inputs), 1 / task.number[label]))
    design = Design(
        nontarget=sides[0],
        target=sides[1],
        mean=task.mean,
        std=task.std,
        nontarget_share=shares[0],
        target_share=shares[1],
    )
    return cross_entropy(task.theta, design, task.p_target)


def fused(stack: ChunkedScores | ChunkedTrials, fusion: LogisticCalibration) -> ChunkedScores | ChunkedTrials:
    """Return the LLRs of the systems that `stack_systems` stacked, made when they are read."""
    if isinstance(stack, ChunkedScores):
        assert isinstance(stack.reader, StackedTiles)  # noqa: S101
        return replace(stack, reader=_FusedTiles(stack.reader, fusion))
    assert isinstance(stack.reader, StackedTrials)  # noqa: S101
    return replace(stack, reader=_FusedTrials(stack.reader, fusion))


@dataclass(frozen=True, eq=False)
class _FusedTiles:
    reader: StackedTiles
    fusion: LogisticCalibration

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        _, scores = self.reader.stack(rows, columns)
        return self.fusion(scores).astype(scores.dtype)

    def identity(self) -> str:
        return hashed(self.reader.identity(), repr(self.fusion.to_dict()))


@dataclass(frozen=True, eq=False)
class _FusedTrials:
    reader: StackedTrials
    fusion: LogisticCalibration

    def read(self, trials: slice) -> TrialList:
        table, scores = self.reader.stack(trials)
        return table.with_scores(self.fusion(scores).astype(scores.dtype))

    def identity(self) -> str:
        return hashed(self.reader.identity(), repr(self.fusion.to_dict()))
