"""One pass over labelled trials: how many there are of each class, and what they say about who speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.engine.engine import engine_for
from evenscore.errors import InputError
from evenscore.progress import Progress
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks, Place, Tile
from evenscore.tables.pair_values import MATCHING_REMEDY, UNLISTED, PairValues
from evenscore.tables.score_table import Source

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["CountedTrials", "TrialCounts", "counted_trials"]

_MISSING = UNLISTED - 1
_NOWHERE: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)


@dataclass(frozen=True, kw_only=True)
class TrialCounts:
    """How many trials of each class there are; counts of parts are added with ``+``."""

    targets: int = 0
    nontargets: int = 0
    unknown: int = 0

    @property
    def trials(self) -> int:
        """All of them."""
        return self.targets + self.nontargets + self.unknown

    def __add__(self, other: TrialCounts) -> TrialCounts:
        return TrialCounts(
            targets=self.targets + other.targets,
            nontargets=self.nontargets + other.nontargets,
            unknown=self.unknown + other.unknown,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedTrials:
    """What one pass over some trials finds; it adds up.

    Attributes
    ----------
    counts
        How many of each class.
    unlisted
        Of those of unknown class, how many are not in a key.
    voiceless
        Of those of known class, how many have a speaker that is not known.
    contradiction
        Where the first target trial of two speakers stands.
    target_pairs
        Where enrolments and tests of the target trials stand, if they were asked for.
    """

    counts: TrialCounts = TrialCounts()
    unlisted: int = 0
    voiceless: int = 0
    contradiction: tuple[int, int] | None = None
    target_pairs: tuple[Int[np.ndarray, " t"], Int[np.ndarray, " t"]] = (_NOWHERE, _NOWHERE)

    def __add__(self, other: CountedTrials) -> CountedTrials:
        rows, columns = (np.concatenate(both) for both in zip(self.target_pairs, other.target_pairs, strict=True))
        return CountedTrials(
            counts=self.counts + other.counts,
            unlisted=self.unlisted + other.unlisted,
            voiceless=self.voiceless + other.voiceless,
            contradiction=self.contradiction or other.contradiction,
            target_pairs=(rows, columns),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    source: Source
    labels: PairValues
    enroll: Int[np.ndarray, " k"]
    test: Int[np.ndarray, " l"]
    with_targets: bool


def counted_trials(
    part: LabelledBlocks,
    enroll: Int[np.ndarray, " k"],
    test: Int[np.ndarray, " l"],
    *,
    with_targets: bool,
    client: Any,
    progress: Progress,
) -> CountedTrials:
    """Pass once over the trials of labelled blocks.

    ``enroll`` and ``test`` are numbers of the speakers of enrolments and tests, negative where they are not known.
    """
    table = part.blocks.trials
    if not table.size:
        return CountedTrials()
    task = _Task(source=table.source, labels=part.values, enroll=enroll, test=test, with_targets=with_targets)
    engine = engine_for(None if part.is_in_memory else client)
    found: CountedTrials = engine.total(_count, task, table.places(), stage="counting trials", progress=progress)
    if part.unmatched == "error":
        _refuse_unmatched(found, part.n_listed)
    return found


def _refuse_unmatched(found: CountedTrials, listed: int | None) -> None:
    scored = found.counts.trials
    if found.unlisted:
        raise InputError(f"{found.unlisted} of the {scored} scored trials are not in the key; {MATCHING_REMEDY}")
    if listed is not None and scored < listed:
        raise InputError(f"{listed - scored} of the {listed} trials of the key have no score; {MATCHING_REMEDY}")


def _count(task: _Task, place: Place) -> CountedTrials:
    tile = task.source.read(place)
    labels = np.broadcast_to(task.labels.of(tile), tile.scores.shape)
    missing = 0
    if not tile.listed and tile.n_missing != 0:  # a list has no missing trials
        absent = np.isnan(tile.scores)
        missing = int(np.count_nonzero(absent))
        labels = np.where(absent, np.int8(_MISSING), labels) if missing else labels
    rows, columns = _places(tile, np.flatnonzero(labels == TARGET))
    targets, nontargets = len(rows), int(np.count_nonzero(labels == NONTARGET))
    wrong = task.enroll[rows] != task.test[columns]
    first = int(np.argmax(wrong)) if wrong.any() else None
    return CountedTrials(
        counts=TrialCounts(
            targets=targets, nontargets=nontargets, unknown=labels.size - missing - targets - nontargets
        ),
        unlisted=int(np.count_nonzero(labels == UNLISTED)),
        voiceless=_voiceless(task, tile, labels),
        contradiction=None if first is None else (int(rows[first]), int(columns[first])),
        target_pairs=(rows, columns) if task.with_targets else (_NOWHERE, _NOWHERE),
    )


def _places(tile: Tile, at: npt.NDArray[np.intp]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return where enrolments and tests of some scores of a tile, counted row by row, stand on the axes."""
    if tile.listed:
        return tile.rows[at], tile.columns[at]
    row, column = np.divmod(at, max(tile.scores.shape[1], 1))
    return row + tile.rows.start, column + tile.columns.start


def _voiceless(task: _Task, tile: Tile, labels: npt.NDArray[Any]) -> int:
    nobody = task.enroll < 0, task.test < 0
    if not nobody[0].any() and not nobody[1].any():
        return 0
    enroll, test = tile.pair(*nobody)
    return int(np.count_nonzero((labels >= NONTARGET) & (enroll | test)))
