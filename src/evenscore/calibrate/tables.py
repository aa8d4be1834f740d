"""Calibrations of the scores of a table, which are changed when they are read, and fusions of several tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.calibration import Calibration
from evenscore.calibrate.logistic import LogisticCalibration, told_apart
from evenscore.calibrate.logistic_regression import (
    Design,
    Objective,
    cross_entropy,
    newton,
    penalty,
    refuse_dependent,
)
from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.metrics.summary import ScoreSummary
from evenscore.progress import Progress, silent
from evenscore.tables.arrays import hashed
from evenscore.tables.labels import NONTARGET, TARGET
from evenscore.tables.pair_values import PairValues, SideGroups, labels_for
from evenscore.tables.score_table import LazyScores, ScoreTable, Source
from evenscore.tables.tile import Cuts, Place, Tile

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    *("Stack", "TileMeasures", "calibrated", "cross_calibrated", "fit_fusion", "fused", "stack_systems", "systems_of"),
    "with_measures",
]

_TRIALS = 1 << 16  # at a time, to bound memory

Fits = Mapping[tuple[int, int], Calibration]


def calibrated(
    scores: ScoreTable, function: Callable[[npt.NDArray[Any]], npt.NDArray[Any]], identity: str | None = None
) -> LazyScores:
    """Return scores that a calibration, or another function, changes one by one when they are read.

    Parameters
    ----------
    scores
        The scores.
    function
        Takes and gives an array; on a cluster it travels to the workers.
    identity
        A text that changes when the function does, for runs that are continued; a calibration needs none.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> scores = ScoreMatrix([[3.0, -1.0]], ["e1"], ["t1", "t2"])
    >>> calibrated(scores, np.negative, "negative").in_memory().scores
    array([[-3.,  1.]])
    """
    if not isinstance(scores, ScoreTable):
        raise InputError(f"the scores are a {type(scores).__name__}, but must be a table; make one with as_table")
    if not callable(function):
        raise InputError(f"the function is a {type(function).__name__}, which cannot be called; give a function")
    if isinstance(function, Calibration):
        return scores.map(function, identity or json.dumps(function.to_dict()))
    if identity is None:
        raise InputError("nothing tells when this function changes; give identity, a text that changes with it")
    return scores.map(function, identity)


def cross_calibrated(scores: ScoreTable, folds: SideGroups, fits: Fits) -> LazyScores:
    """Return scores that the fit of their pair of folds turns into LLRs when they are read.

    Parameters
    ----------
    scores
        The scores.
    folds
        The fold of each enrolment and of each test. Pairs of other ids are left out.
    fits
        A calibration for each pair of folds, the lower one first.
    """
    groups = folds.align(scores.enroll_axis, scores.test_axis)
    return scores.with_source(_CrossCalibrated(scores.source, groups, folds.n_test, fits))


@dataclass(frozen=True, eq=False)
class _CrossCalibrated:
    source: Source
    folds: PairValues
    n_folds: int
    fits: Fits

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        groups = np.broadcast_to(self.folds.of(tile), tile.scores.shape)
        llrs = np.full_like(tile.scores, np.nan)
        for group in np.unique(groups[groups >= 0]).tolist():
            i, j = divmod(group, self.n_folds)
            fit = self.fits.get((min(i, j), max(i, j)))
            if fit is not None:
                llrs[groups == group] = fit(tile.scores[groups == group])
        known = ~np.isnan(llrs)
        found = tile.with_scores(llrs)
        return found if known.all() or not tile.listed else found.select(known)

    def identity(self) -> str:
        fits = [(pair, fit.to_dict()) for pair, fit in sorted(self.fits.items())]
        return hashed(self.source.identity(), self.folds.identity(), fits)


def stack_systems(systems: Sequence[ScoreTable]) -> LazyScores:
    """Return the first system's trials, ready for `fit_fusion` and `fused`; read as they are, they are its scores.

    Matrices are aligned by id. Lists must have the same trials in the same order.
    """
    first = systems[0]
    if len({(system.listed, system.size) for system in systems}) > 1:
        raise InputError("the systems must have the same trials, all in matrices or all in lists")
    dtype = np.result_type(*(system.dtype for system in systems))
    if not first.listed:
        aligned = [system.align(first.enroll_axis, first.test_axis) for system in systems]
        return first.with_source(Stack(tuple(system.source for system in aligned)), dtype=dtype)
    sides = [(first.enroll_axis.find(system.enroll_ids), first.test_axis.find(system.test_ids)) for system in systems]
    bounds = sorted({bound for system in systems for bound in getattr(system.layout, "bounds", ())})
    stack = Stack(tuple(system.source for system in systems), tuple(sides))
    return first.with_source(stack, dtype=dtype, layout=Cuts(tuple(bounds)))


def systems_of(stack: LazyScores) -> list[LazyScores]:
    """Return the systems and measures of a stack, each with the trials of the first one."""
    assert isinstance(stack.source, Stack)  # noqa: S101
    return [stack.with_source(_OneOf(stack.source, number)) for number in range(stack.source.width)]


class TileMeasures(Protocol):
    """Quality measures of the trials of any tile, along one more axis."""

    @property
    def names(self) -> tuple[str, ...]:
        """What they are called."""

    def of(self, tile: Tile) -> npt.NDArray[np.float64]:
        """Return the measures of a tile."""

    def identity(self) -> str:
        """Return a text that changes when the measures change."""


def with_measures(stack: LazyScores, measures: TileMeasures) -> LazyScores:
    """Return stacked systems with quality measures behind them."""
    assert isinstance(stack.source, Stack)  # noqa: S101
    return stack.with_source(replace(stack.source, measures=measures))


@dataclass(frozen=True, eq=False)
class Stack:
    """Tiles of several systems; ``sides``: where the ids of each list stand on the axes of the first one."""

    sources: tuple[Source, ...]
    sides: tuple[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]], ...] = ()
    measures: TileMeasures | None = None  #: of the trials of the first system

    @property
    def width(self) -> int:
        """Number of systems and measures."""
        return len(self.sources) + (0 if self.measures is None else len(self.measures.names))

    def read(self, place: Place) -> Tile:
        """Return a tile of the first system."""
        return self.sources[0].read(place)

    def stack(self, place: Place) -> tuple[Tile, npt.NDArray[Any]]:
        """Return a tile of the first system, and the scores of all of them, one behind the other."""
        tiles = [source.read(place) for source in self.sources]
        first = tiles[0]
        for tile, (rows, columns) in zip(tiles, self.sides, strict=False):
            same = len(tile.scores) == len(first.scores)
            if not (
                same
                and np.array_equal(rows[tile.rows], first.rows)
                and np.array_equal(columns[tile.columns], first.columns)
            ):
                raise InputError(
                    "lists of several systems are not in memory, and do not have the same trials in the same order; "
                    "sort them alike"
                )
        scores = np.stack([tile.scores for tile in tiles], axis=-1)
        missing = np.isnan(scores)
        if (missing.any(axis=-1) != missing.all(axis=-1)).any():
            raise InputError("some trials have scores of some systems only; give all systems the same trials")
        if self.measures is None:
            return first, scores
        measured = np.where(missing[..., :1], np.nan, self.measures.of(first))
        return first, np.concatenate((scores, measured), axis=-1)

    def identity(self) -> str:
        """Return a text that changes when a system does."""
        measures = "" if self.measures is None else self.measures.identity()
        return hashed(*(source.identity() for source in self.sources), measures)


@dataclass(frozen=True, eq=False)
class _OneOf:
    """One of the systems or measures of a stack."""

    stack: Stack
    number: int

    def read(self, place: Place) -> Tile:
        if not self.stack.sides and self.number < len(self.stack.sources):
            return self.stack.sources[self.number].read(place)
        tile, scores = self.stack.stack(place)
        return tile.with_scores(np.ascontiguousarray(scores[..., self.number]))

    def identity(self) -> str:
        return hashed(self.stack.identity(), self.number)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    source: Stack
    labels: PairValues
    theta: Float[np.ndarray, " c"]
    mean: Float[np.ndarray, " k"]
    std: Float[np.ndarray, " k"]
    number: Float[np.ndarray, "2"]  #: trials of each class
    p_target: float


def fit_fusion(
    stack: LazyScores,
    labels: Any,
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
        What `stack_systems` gives, and `with_measures`.
    labels
        Of the trials, as in `labels_for`.
    summaries
        Of the scores of each system, and of each measure.
    p_target, l2
        As in `LogisticCalibration.fit`.
    client, progress
        As in `summarize_table`.
    """
    assert isinstance(stack.source, Stack)  # noqa: S101
    moments = [summary.moments() for summary in summaries]
    number, systems = moments[0][0], len(stack.source.sources)
    share = number / number.sum()
    mean = np.array([share @ means for _, means, _ in moments])
    std = np.sqrt([share @ (spread + (means - m) ** 2) for (_, means, spread), m in zip(moments, mean, strict=True)])
    flat = ~(std > 1e-12 * np.abs(mean))
    if flat[:systems].any():
        place = int(np.argmax(flat))
        raise InputError(f"system {place}'s scores are the same in all trials and cannot be weighed; leave it out")
    std[flat] = 1.0
    values, places = labels_for(stack, labels), stack.places()
    task: dict[str, Any] = {"source": stack.source, "labels": values, "mean": mean, "std": std, "number": number}

    def at(theta: Float[np.ndarray, " c"]) -> Objective:
        what = _Task(theta=theta, p_target=p_target, **task)
        found: Objective = engine_for(client).total(_part, what, places, stage="fusing systems", progress=progress)
        return penalty(theta, l2) + found

    start = at(np.zeros(mean.size + 1))
    kept = told_apart(_covariance(start.hessian) * np.outer(~flat, ~flat), systems, l2)
    if l2 == 0:
        refuse_dependent(start.hessian[np.ix_(kept, kept)] / start.hessian[-1, -1])
    some = np.append(kept, mean.size)

    def of_kept(theta: Float[np.ndarray, " k"]) -> Objective:
        whole = np.zeros(mean.size + 1)
        whole[some] = theta
        return at(whole).take(some)

    slopes = np.zeros(mean.size)
    slopes[kept], intercept = newton(of_kept, start.take(some), mean[kept], std[kept], l2)
    weights = {"weights": slopes[:systems], "quality_weights": slopes[systems:], "offset": intercept}
    return LogisticCalibration(**weights, p_target=p_target, l2=l2)  # type: ignore[arg-type]


def _covariance(hessian: Float[np.ndarray, "c c"]) -> Float[np.ndarray, "d d"]:
    """Return how inputs go together, from the Hessian where all trials weigh the same: less their means."""
    sums = hessian[:-1, -1]
    return np.asarray((hessian[:-1, :-1] - np.outer(sums, sums) / hessian[-1, -1]) / hessian[-1, -1])


def _part(task: _Task, place: Place) -> Objective:
    """Return what one tile adds to the objective."""
    tile, scores = task.source.stack(place)
    labels = np.broadcast_to(task.labels.of(tile), scores.shape[:-1])
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


def fused(stack: LazyScores, fusion: LogisticCalibration) -> LazyScores:
    """Return the LLRs of the systems that `stack_systems` stacked, made when they are read."""
    assert isinstance(stack.source, Stack)  # noqa: S101
    return stack.with_source(_Fused(stack.source, fusion))


@dataclass(frozen=True, eq=False)
class _Fused:
    source: Stack
    fusion: LogisticCalibration

    def read(self, place: Place) -> Tile:
        tile, inputs = self.source.stack(place)
        systems = len(self.source.sources)
        scores = inputs[..., 0] if systems == 1 else inputs[..., :systems]
        quality = None if self.source.measures is None else inputs[..., systems:]
        return tile.with_scores(self.fusion(scores, quality).astype(tile.scores.dtype))

    def identity(self) -> str:
        return hashed(self.source.identity(), repr(self.fusion.to_dict()))
