"""Patterns of labels and missing pairs, in the form that the posterior works on.

Either speaker blocks (complete, targets are the same-speaker pairs), or a background plus exceptions: the listed pairs
differ from the background, and they connect rows and columns into components that can be treated one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.model.sums import ClassSums, group_order, place_in_group
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.tables.connected import connect

__all__ = [
    "Component",
    "Exceptions",
    "LabelledSums",
    "SpeakerBlocks",
    "SpeakerShapes",
    "components",
    "connect",
    "exceptions_of_key",
    "pattern_of_key",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerShapes:
    """Shapes of speakers: numbers of enrolments and tests, and how many speakers have each shape."""

    n_enroll: npt.NDArray[np.intp]
    n_test: npt.NDArray[np.intp]
    shape_of: npt.NDArray[np.intp]  #: which shape each speaker has
    n_groups: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.n_enroll)


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerBlocks:
    """Every pair is observed, and the targets are the pairs of equal codes."""

    row_codes: npt.NDArray[np.intp]
    column_codes: npt.NDArray[np.intp]
    n_speakers: int

    @classmethod
    def of(cls, labels: Labels) -> SpeakerBlocks:
        """Take the speakers of labels by speaker, all of whom are known."""
        rows, columns, number = labels.speaker_codes
        return cls(row_codes=rows, column_codes=columns, n_speakers=number)

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """Numbers of enrolments and tests of each speaker."""
        sides = (self.row_codes, self.column_codes)
        return np.stack([np.bincount(codes, minlength=self.n_speakers) for codes in sides], axis=1)

    @cached_property
    def shapes(self) -> SpeakerShapes:
        """The distinct shapes of the speakers."""
        distinct, which = np.unique(self.sizes, axis=0, return_inverse=True)
        which = which.reshape(-1)
        return SpeakerShapes(
            n_enroll=distinct[:, 0],
            n_test=distinct[:, 1],
            shape_of=which,
            n_groups=np.bincount(which, minlength=len(distinct)).astype(float),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Exceptions:
    """Pairs that are not listed are all non-targets (`background`) or all missing; the listed ones have labels."""

    n_rows: int
    n_columns: int
    background: bool
    rows: npt.NDArray[np.integer[Any]]
    columns: npt.NDArray[np.integer[Any]]
    labels: npt.NDArray[np.int8]


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledSums:
    """Sums per class, row and column, and the pattern of labels that they come from."""

    sums: ClassSums
    pattern: SpeakerBlocks | Exceptions


@dataclass(frozen=True, kw_only=True, eq=False)
class Component:
    """Connected components of one size: positions of their rows and columns, and the labels inside.

    In `key`, a pair that is not listed has the label of the background.
    """

    rows: npt.NDArray[np.intp]  # n x K
    columns: npt.NDArray[np.intp]  # n x L
    key: npt.NDArray[np.int8]  # n x K x L


def pattern_of_key(key: npt.NDArray[np.int8]) -> SpeakerBlocks | Exceptions:
    """Find the structure of a K x L key (1 target, 0 non-target, -1 missing)."""
    blocks = None if (key == UNKNOWN).any() else _as_speaker_blocks(key)
    return exceptions_of_key(key) if blocks is None else blocks


def exceptions_of_key(key: npt.NDArray[np.int8], background: bool | None = None) -> Exceptions:
    """List what differs from the background, by default the more frequent one."""
    if background is None:
        background = int(np.count_nonzero(key == UNKNOWN)) <= key.size / 2
    rows, columns = np.nonzero(key != (NONTARGET if background else UNKNOWN))
    return Exceptions(
        n_rows=key.shape[0],
        n_columns=key.shape[1],
        background=background,
        rows=rows,
        columns=columns,
        labels=key[rows, columns],
    )


def components(pattern: Exceptions) -> list[Component]:
    """Split rows and columns into the connected components of the exceptions, batched by size."""
    number, row_part, column_part = _connect(pattern.rows, pattern.columns, pattern.n_rows, pattern.n_columns)
    sizes = np.stack([np.bincount(row_part, minlength=number), np.bincount(column_part, minlength=number)], axis=1)
    (row_order, row_first), (column_order, column_first) = (group_order(p, number) for p in (row_part, column_part))
    row_place, column_place = place_in_group(row_part, number), place_in_group(column_part, number)
    batches = []
    pair_part = row_part[pattern.rows]
    shapes, which = np.unique(sizes, axis=0, return_inverse=True)
    which = which.reshape(-1)
    for s, (k, size) in enumerate(shapes):
        members = np.flatnonzero(which == s)
        place = np.full(number, -1, dtype=np.intp)
        place[members] = np.arange(len(members))
        key = np.full((len(members), k, size), NONTARGET if pattern.background else UNKNOWN, dtype=np.int8)
        listed = np.flatnonzero(place[pair_part] >= 0)
        i, j = pattern.rows[listed], pattern.columns[listed]
        key[place[pair_part[listed]], row_place[i], column_place[j]] = pattern.labels[listed]
        rows = row_order[row_first[members][:, None] + np.arange(k)]
        columns = column_order[column_first[members][:, None] + np.arange(size)]
        batches.append(Component(rows=rows, columns=columns, key=key))
    return batches


def _as_speaker_blocks(key: npt.NDArray[np.int8]) -> SpeakerBlocks | None:
    """Recognize a complete key whose targets form blocks, as those of speakers do."""
    rows, columns = np.nonzero(key == TARGET)
    number, row_part, column_part = _connect(rows, columns, *key.shape)
    full = np.bincount(row_part, minlength=number) * np.bincount(column_part, minlength=number)
    if not np.array_equal(full, np.bincount(row_part[rows], minlength=number)):
        return None
    return SpeakerBlocks(row_codes=row_part, column_codes=column_part, n_speakers=number)


def _connect(
    rows: npt.NDArray[np.integer[Any]], columns: npt.NDArray[np.integer[Any]], n_rows: int, n_columns: int
) -> tuple[int, npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the number of connected components, and the component of each row and of each column."""
    part = connect(rows, n_rows + columns, n_rows + n_columns)
    return int(part.max(initial=-1)) + 1, part[:n_rows], part[n_rows:]
