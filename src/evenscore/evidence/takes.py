"""How many scores of a cohort count where several are of one speaker, because such scores resemble each other.

Of n scores with n_k of speaker k, the sum of the squared deviations varies as if there were n / c scores, with

    c = 1 + r (takes - 1),   takes = sum_k n_k^2 / n                                       (T1)

and r the correlation of the squared deviations of two scores of one speaker (`likeness`). With r = 0 scores count, with
r = 1 and as many of each speaker, speakers do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.norms.conditions import coded
from evenscore.norms.sides import Sides
from evenscore.tables import Axis, ScoreBlocks

__all__ = ["cohort_takes", "likeness", "trial_takes"]

Array = npt.NDArray[np.float64]


def _cohort(blocks: ScoreBlocks, side: str) -> Axis | None:
    """Return the cohort that a side has scores against."""
    return blocks.cohort_test_axis if side == "enroll" else blocks.cohort_enroll_axis


def cohort_takes(blocks: ScoreBlocks, side: str) -> float:
    """Return the mean number of takes of a member's speaker in the cohort of a side; 1 if speakers are not known."""
    axis = _cohort(blocks, side)
    if axis is None or axis.speakers is None or not len(axis):
        return 1.0
    return _squares(_sizes(axis), len(axis)) / len(axis)


def trial_takes(blocks: ScoreBlocks, side: str) -> Array | float:
    """Return the same for each trial, without its own speakers; a single number if that is the same for all."""
    axis, trials = _cohort(blocks, side), blocks.trials
    sizes = {} if axis is None else _sizes(axis)
    names = [trials.enroll_axis.speakers, trials.test_axis.speakers]
    numbers = {name: at for at, name in enumerate(sizes)}
    codes = [coded(who, numbers, size) for who, size in zip(names, trials.shape, strict=True)]
    if axis is None or not any((code >= 0).any() for code in codes):
        return cohort_takes(blocks, side)
    many = np.array([*sizes.values(), 0.0])  # the last entry serves those who are not in the cohort
    row, column = trials.tile.pair(*codes)
    first, second = many[row], np.where(row == column, 0.0, many[column])
    left = len(axis) - first - second
    squares = _squares(sizes, len(axis)) - first**2 - second**2
    return np.asarray(np.where(left > 0, squares / np.maximum(left, 1.0), 1.0))


def _sizes(axis: Axis) -> dict[str, int]:
    """Return how many members each known speaker has."""
    found = Counter([] if axis.speakers is None else axis.speakers.tolist())
    found.pop(None, None)
    return dict(found)


def _squares(sizes: dict[str, int], members: int) -> float:
    """Return the sum of squared sizes; a member of whom no speaker is known is a speaker."""
    return float(sum(size**2 for size in sizes.values()) + members - sum(sizes.values()))


def likeness(parts: Sequence[ScoreBlocks], side: str) -> float:
    """Return the correlation r of the squared deviations of two scores of one cohort speaker, pooled over all rows.

    It is 0 if speakers are not known. If nobody has two takes, nothing tells it, and it is 1: of a cohort in which
    some have, speakers would count.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> scores = np.repeat(np.random.default_rng(1).normal(size=(4, 50)), 3, axis=1)
    >>> enroll = ScoreMatrix(scores, [*"abcd"], [f"t{n}" for n in range(150)])
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix(np.zeros((4, 1)), [*"abcd"], ["t"]),
    ...     enroll=enroll,
    ...     cohort_test_speakers=[f"s{n // 3}" for n in range(150)],
    ... )
    >>> round(likeness([blocks], "enroll"), 2)
    1.0
    """
    known = [blocks for blocks in parts if (axis := _cohort(blocks, side)) is not None and axis.speakers is not None]
    if not known:
        return 0.0
    alike, most = np.sum([_alike(blocks, side) for blocks in known], axis=0)
    return float(np.clip(alike / most, 0.0, 1.0)) if most > 0 else 1.0


def _alike(blocks: ScoreBlocks, side: str) -> Array:
    """Return how much the squares of sums by speaker exceed the sum of squares, and how much they do if r is 1."""
    axis, chosen = _cohort(blocks, side), Sides.of(blocks).side(side, getattr(blocks, side).scores)
    assert axis is not None and axis.speakers is not None  # noqa: S101, PT018
    names: list[Any] = [at if name is None else name for at, name in enumerate(axis.speakers.tolist())]
    numbers = {name: at for at, name in enumerate(dict.fromkeys(names))}
    code = np.array([numbers[name] for name in names], dtype=np.intp)
    order = np.argsort(code, kind="stable")
    start = np.searchsorted(code[order], np.arange(len(numbers)))
    found = np.zeros(2)
    for rows in chosen.pieces(beside=32 * len(code)) if len(code) else ():
        X = chosen.scores(rows)[:, order].astype(np.float64)
        there = X == X
        groups = np.add.reduceat(there, start, axis=1, dtype=np.float64)
        several = (groups > 0).sum(axis=1) > 1
        X, there, groups = X[several], there[several], groups[several]
        count = there.sum(axis=1)
        takes = (groups**2).sum(axis=1) / count
        square = _squared_deviations(X, there, count)
        sums = (np.add.reduceat(square, start, axis=1) ** 2).sum(axis=1)
        total = (square**2).sum(axis=1)
        found += (sums / (1 - takes / count) - total).sum(), (total * (takes - 1)).sum()
    return found


def _squared_deviations(X: Array, there: npt.NDArray[np.bool_], count: npt.NDArray[np.int64]) -> Array:
    """Return squared deviations from each row's mean, in units of its variance and less their mean; 0 where missing."""
    mean = np.where(there, X, 0.0).sum(axis=1) / count
    square = np.where(there, X - mean[:, None], 0.0) ** 2
    variance = square.sum(axis=1) / count
    scaled = square / np.where(variance > 0, variance, 1.0)[:, None]
    return np.where(there, scaled - (scaled.sum(axis=1) / count)[:, None], 0.0)
