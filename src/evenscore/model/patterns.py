"""Patterns of labels and missing pairs, in the form that the posterior works on; what EM needs of complete ones.

A pattern is either speaker blocks (complete, targets are the same-speaker pairs), or a background plus exceptions: the
listed pairs differ from the background, and they connect rows and columns into components that are treated one by one.

In speaker blocks, rows of one speaker are exchangeable, and so are its columns. Everything in a speaker's part of the
posterior depends on the speaker only through its shape (K_g, L_g: numbers of enrolments and tests) and a few sums of
its scores, and the posterior means are linear in those. So one small moment matrix per distinct shape is enough. The
same holds where all utterances of a speaker stand on both sides and are not compared with themselves (`PairedBlocks`):
then its rows are exchangeable, each together with its column.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.sums import ClassSums, group_order, place_in_group
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.tables.pairs import connect

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = [
    "Component",
    "Exceptions",
    "LabelledSums",
    "PairedBlocks",
    "ShapeStatistics",
    "SpeakerBlocks",
    "SpeakerShapes",
    "components",
    "compress",
    "connect",
    "exceptions_of_key",
    "merge",
    "paired_blocks",
    "paired_exceptions",
    "pattern_of_key",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerShapes:
    """Shapes of speakers: numbers of enrolments and tests, and how many speakers have each shape."""

    n_enroll: npt.NDArray[np.intp]
    n_test: npt.NDArray[np.intp]
    shape_of: npt.NDArray[np.intp]  #: which shape each speaker has
    n_groups: npt.NDArray[np.float64]
    paired: npt.NDArray[np.bool_]  #: whether the speaker's utterances are not compared with themselves

    @classmethod
    def of(cls, sizes: npt.NDArray[np.intp], paired: npt.NDArray[np.bool_]) -> SpeakerShapes:
        """Find the distinct shapes among numbers of enrolments and tests of speakers."""
        distinct, which = np.unique(np.column_stack([sizes, paired]), axis=0, return_inverse=True)
        which = which.reshape(-1)
        return cls(
            n_enroll=distinct[:, 0],
            n_test=distinct[:, 1],
            shape_of=which,
            n_groups=np.bincount(which, minlength=len(distinct)).astype(float),
            paired=distinct[:, 2] > 0,
        )

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
        return SpeakerShapes.of(self.sizes, np.zeros(self.n_speakers, dtype=bool))


@dataclass(frozen=True, kw_only=True, eq=False)
class PairedBlocks:
    """Speaker blocks in which every utterance of some speakers stands on both sides and has no score with itself."""

    blocks: SpeakerBlocks
    partner: npt.NDArray[np.intp]  #: the column that each row has no score with, -1 if there is none

    @property
    def shapes(self) -> SpeakerShapes:
        """The distinct shapes of the speakers."""
        paired = np.zeros(self.blocks.n_speakers, dtype=bool)
        paired[self.blocks.row_codes[self.partner >= 0]] = True
        return SpeakerShapes.of(self.blocks.sizes, paired)


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
    pattern: SpeakerBlocks | PairedBlocks | Exceptions


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


def paired_blocks(
    blocks: SpeakerBlocks, rows: npt.NDArray[np.integer[Any]], columns: npt.NDArray[np.integer[Any]]
) -> PairedBlocks | None:
    """Return speaker blocks that lack some pairs; None if these are not one in each row and column of some speakers."""
    partner = np.full(len(blocks.row_codes), -1, dtype=np.intp)
    partner[rows] = columns
    inside = (
        np.array_equal(blocks.row_codes[rows], blocks.column_codes[columns]) and (blocks.row_codes[rows] >= 0).all()
    )
    once = all(len(np.unique(side)) == len(side) for side in (rows, columns))
    if not inside or not once:
        return None
    absent = np.bincount(blocks.row_codes[rows], minlength=blocks.n_speakers)
    if not ((blocks.sizes == absent[:, None]).all(axis=1) | (absent == 0)).all():
        return None
    return PairedBlocks(blocks=blocks, partner=partner)


def paired_exceptions(pattern: Exceptions) -> PairedBlocks | None:
    """Recognize speaker blocks whose utterances are not compared with themselves in a list of exceptions."""
    if not pattern.background:
        return None
    number, row_part, column_part = _connect(pattern.rows, pattern.columns, pattern.n_rows, pattern.n_columns)
    blocks = SpeakerBlocks(row_codes=row_part, column_codes=column_part, n_speakers=number)
    if not np.array_equal(blocks.sizes.prod(axis=1), np.bincount(row_part[pattern.rows], minlength=number)):
        return None
    absent = pattern.labels == UNKNOWN
    return paired_blocks(blocks, pattern.rows[absent], pattern.columns[absent])


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


Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapeStatistics:
    """Moments of the speakers of complete K x L score matrices, per distinct shape; the scores are standardized.

    A speaker g has phi_g = (1, T_g, R_g, C_g): its sum of target scores, and of the non-target scores in its rows
    and in its columns, all less the class means. Matrices with the same numbers of speakers of each shape are kept
    together (first axis of `phi`), since they have the same posterior covariances.
    """

    n_rows: int
    n_columns: int
    n_enroll: Int[Array, " s"]  #: enrolments of a speaker of this shape, K_g
    n_test: Int[Array, " s"]  #: tests of a speaker of this shape, L_g
    n_groups: Float[Array, " s"]  #: speakers of this shape
    phi: Float[Array, "b s 4 4"]  #: sum of phi_g phi_g' for each matrix
    row_scatter: Float[Array, "s 2 2"]  #: scatter of the (non-target, target) row sums within speakers
    column_scatter: Float[Array, "s 2 2"]  #: the same of the columns
    paired: npt.NDArray[np.bool_]  #: whether utterances of speakers of this shape have no score with themselves
    pair_scatter: Float[Array, "s 2 2"]  #: then the scatter of their row sums with their column sums, else zero
    count: Float[Array, "2"]  #: number of scores of each class, over all matrices
    total: Float[Array, "2"]  #: sum of each class, less the class means (which are those of all matrices)
    squares: Float[Array, "2"]  #: sum of squares of each class, less the class means
    center: Float[Array, "2"]  #: class means, in the units of the scores
    scale: float  #: unit of the standardized scores


def compress(
    sums: ClassSums, pattern: SpeakerBlocks | PairedBlocks, *, center: Float[Array, "2"], scale: float
) -> ShapeStatistics:
    """Compress the sums of a complete matrix; `center` (per class) and `scale` standardize the scores."""
    sums, shapes = sums.standardized(center, scale), pattern.shapes
    blocks = pattern.blocks if isinstance(pattern, PairedBlocks) else pattern
    sizes = blocks.sizes
    row_groups, row_inner = _group_sums(sums.rows, blocks.row_codes, sizes[:, 0])
    column_groups, column_inner = _group_sums(sums.columns, blocks.column_codes, sizes[:, 1])
    pair_scatter = np.zeros((len(sizes), 2, 2))
    if isinstance(pattern, PairedBlocks):
        rows = np.flatnonzero(pattern.partner >= 0)
        pair_scatter = _scatter(
            row_inner[:, rows], column_inner[:, pattern.partner[rows]], blocks.row_codes[rows], len(sizes)
        )
    row_scatter = _scatter(row_inner, row_inner, blocks.row_codes, len(sizes))
    column_scatter = _scatter(column_inner, column_inner, blocks.column_codes, len(sizes))
    phi = np.stack([np.ones(len(sizes)), row_groups[1], row_groups[0], column_groups[0]], axis=1)
    return ShapeStatistics(
        n_rows=len(blocks.row_codes),
        n_columns=len(blocks.column_codes),
        n_enroll=shapes.n_enroll,
        n_test=shapes.n_test,
        n_groups=shapes.n_groups,
        phi=_sum_products(phi, shapes)[None],
        row_scatter=_sum_products(row_scatter, shapes),
        column_scatter=_sum_products(column_scatter, shapes),
        paired=shapes.paired,
        pair_scatter=_sum_products(pair_scatter, shapes),
        count=sums.count,
        total=sums.total,
        squares=sums.squares,
        center=center,
        scale=scale,
    )


def merge(parts: list[ShapeStatistics]) -> list[ShapeStatistics]:
    """Put matrices of the same structure together."""
    alike: dict[tuple[object, ...], list[ShapeStatistics]] = {}
    for part in parts:
        structure = (
            part.n_rows,
            part.n_columns,
            *(a.tobytes() for a in (part.n_enroll, part.n_test, part.n_groups, part.paired)),
        )
        alike.setdefault(structure, []).append(part)

    def added(group: list[ShapeStatistics], name: str) -> Any:
        return np.sum([getattr(part, name) for part in group], axis=0)

    summed = ("row_scatter", "column_scatter", "pair_scatter", "count", "total", "squares")
    return [
        replace(
            group[0], phi=np.concatenate([part.phi for part in group]), **{name: added(group, name) for name in summed}
        )
        for group in alike.values()
    ]


def _group_sums(
    values: Float[Array, "2 n"], codes: npt.NDArray[np.intp], sizes: npt.NDArray[np.intp]
) -> tuple[Float[Array, "2 g"], Float[Array, "2 n"]]:
    """Return the sums of each group, and the values less the mean of their group."""
    sums = np.stack([np.bincount(codes, row, len(sizes)) for row in values])
    return sums, values - (sums / np.maximum(sizes, 1))[:, codes]


def _scatter(
    one: Float[Array, "2 n"], other: Float[Array, "2 n"], codes: npt.NDArray[np.intp], n_groups: int
) -> Float[Array, "g 2 2"]:
    """Return the sums of products within each group."""
    products = [np.bincount(codes, one[a] * other[b], n_groups) for a in (0, 1) for b in (0, 1)]
    return np.stack(products, axis=1).reshape(n_groups, 2, 2)


def _sum_products(values: Array, shapes: SpeakerShapes) -> Float[Array, "s p p"]:
    """Sum values v v' (or the matrices themselves) over the groups of each shape."""
    by_shape = [values[shapes.shape_of == s] for s in range(len(shapes))]
    return np.stack([part.sum(axis=0) if values.ndim == 3 else part.T @ part for part in by_shape])
