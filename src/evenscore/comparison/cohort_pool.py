"""Who may be in a cohort, and who is drawn: parts of labelled blocks, by speakers of the trials and by members."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import Axis, LabelledBlocks, ScoreBlocks

__all__ = ["CohortPool", "cohort_axes", "restricted"]

Chooser = Callable[[Axis], npt.NDArray[np.bool_]]  # tells who of the members on one side stays


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
        axes = [axis for part in training for axis in cohort_axes(part.blocks)]
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


def cohort_axes(blocks: ScoreBlocks) -> list[Axis]:
    """Return the cohort's enrolments and its tests, as far as there are any."""
    return [axis for axis in (blocks.cohort_enroll_axis, blocks.cohort_test_axis) if axis is not None]


def restricted(
    training: Sequence[LabelledBlocks], speakers: Collection[str], stays: Chooser | None = None
) -> list[LabelledBlocks]:
    """Return the trials between these speakers, with the cohort members that stay; None: all of them.

    Blocks without such trials are left out.

    Examples
    --------
    >>> from evenscore import Labels, ScoreMatrix
    >>> scores = ScoreMatrix(np.arange(9.0).reshape(3, 3), ["a1", "b1", "c1"], ["a2", "b2", "c2"])
    >>> dev = LabelledBlocks.own_cohort(scores, Labels.from_speakers(["a", "b", "c"], ["a", "b", "c"]))
    >>> [small] = restricted([dev], {"a", "b"}, lambda axis: axis.speakers != "a")
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
