"""Training statistics of a list of trials: what adds up over its chunks, and the independent parts that it falls into.

A list is a set of pairs. Those that are linked, through a shared enrolment or a shared test, form a part with hidden
variables of its own. A part that is a complete matrix of speaker blocks needs nothing but sums; of the others the pairs
are needed, too. Whether a part is complete can be told without its pairs: each test has a random mark of 64 bits, and
an enrolment whose marks add up to those of all tests of the part has met each of them once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.patterns import Exceptions, LabelledSums, SpeakerBlocks, pattern_of_key
from evenscore.model.sums import ClassSums, place_in_group
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, TrialList
from evenscore.tables.ids import Ids, merge
from evenscore.tables.pairs import any_repeated_pair, connect, first_repeated_pair, pair_codes

__all__ = ["ListSums", "ListedPairs", "independent_parts", "pairs_of_list", "sum_list"]

Array = np.ndarray
Index = npt.NDArray[np.intp]
ListedPairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int8]]  #: rows, columns, labels

_MOST_ALONE = 1000  # parts that get statistics of their own; smaller ones are solved together
_WORTH_ALONE = 100  # pairs


@dataclass(frozen=True, kw_only=True, eq=False)
class _Side:
    """Enrolments (or tests) of a list; every array but `mark` is 2 x n, for non-targets and targets."""

    ids: Ids
    mark: npt.NDArray[np.uint64]
    sums: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    counts: npt.NDArray[np.float64]
    met: npt.NDArray[np.uint64]  #: sums of the marks of the other side
    link: Index  #: which elements of both sides are linked, by any trials (0), and by targets (1)

    def placed(self, ids: Ids) -> tuple[_Side, Index]:
        """Return the same with more ids, zero where there is nothing, and where each element is now."""
        place = {name: at for at, name in enumerate(ids.tolist())}
        at = np.fromiter((place[name] for name in self.ids.tolist()), dtype=np.intp, count=len(self.ids))

        def spread(values: Array) -> Array:
            whole = np.zeros((2, len(ids)), dtype=values.dtype)
            whole[:, at] = values
            return whole

        mark = np.zeros(len(ids), dtype=np.uint64)
        mark[at] = self.mark
        arrays = {name: spread(getattr(self, name)) for name in ("sums", "squares", "counts", "met", "link")}
        return _Side(ids=ids, mark=mark, **arrays), at

    def added(self, other: _Side, link: Index) -> _Side:
        """Add what is known about the same elements."""
        arrays = {name: getattr(self, name) + getattr(other, name) for name in ("sums", "squares", "counts", "met")}
        return _Side(ids=self.ids, mark=np.maximum(self.mark, other.mark), link=link, **arrays)


@dataclass(frozen=True, kw_only=True, eq=False)
class ListSums:
    """Sums of (score - center) over some trials of a list; they add up. Trials of unknown label are skipped."""

    center: float
    enroll: _Side
    test: _Side

    def __add__(self, other: ListSums) -> ListSums:
        ids = [merge((getattr(self, side).ids, getattr(other, side).ids)) for side in ("enroll", "test")]
        enroll, rows = zip(*(part.enroll.placed(ids[0]) for part in (self, other)), strict=True)
        test, columns = zip(*(part.test.placed(ids[1]) for part in (self, other)), strict=True)
        links = []
        for h in (0, 1):
            edges = [
                _star(part.enroll.link[h], part.test.link[h], rows[n], columns[n] + len(ids[0]))
                for n, part in enumerate((self, other))
            ]
            ends = np.concatenate(edges, axis=1)
            links.append(connect(ends[0], ends[1], len(ids[0]) + len(ids[1])))
        link = np.stack(links)
        return ListSums(
            center=self.center,
            enroll=enroll[0].added(enroll[1], link[:, : len(ids[0])]),
            test=test[0].added(test[1], link[:, len(ids[0]) :]),
        )


def _star(row_link: Index, column_link: Index, rows: Index, columns: Index) -> npt.NDArray[np.intp]:
    """Return pairs of nodes that link what was linked: each node with one that stands for all of its own."""
    link, nodes = np.concatenate([row_link, column_link]), np.concatenate([rows, columns])
    centre = np.empty(int(link.max(initial=-1)) + 1, dtype=np.intp)
    centre[link] = nodes
    return np.stack([nodes, centre[link]])


def sum_list(trials: TrialList, center: float | None = None) -> ListSums:
    """Sum a list of labelled trials, or a chunk of one; ``center`` is a value near the scores, by default the first."""
    if trials.scores is None or trials.labels is None:
        raise InputError("the trial list needs scores and labels; join it with a key first")
    if center is None:
        center = float(trials.scores[0]) if len(trials) else 0.0
    sizes, marks = (len(trials.enroll_ids), len(trials.test_ids)), (_marks(trials.enroll_ids), _marks(trials.test_ids))
    arrays = [{name: np.zeros((2, size)) for name in ("sums", "squares", "counts")} for size in sizes]
    met = [np.zeros((2, size), dtype=np.uint64) for size in sizes]
    for h in (NONTARGET, TARGET):
        at = np.flatnonzero(trials.labels == h)
        pair = trials.enroll_index[at], trials.test_index[at]
        values = trials.scores[at].astype(np.float64) - center
        for side, index in enumerate(pair):
            arrays[side]["sums"][h] = np.bincount(index, values, sizes[side])
            arrays[side]["squares"][h] = np.bincount(index, values**2, sizes[side])
            arrays[side]["counts"][h] = np.bincount(index, minlength=sizes[side])
            np.add.at(met[side][h], index, marks[1 - side][pair[1 - side]])
    link = np.stack(
        [
            connect(trials.enroll_index[known], trials.test_index[known] + sizes[0], sum(sizes))
            for known in (trials.labels != UNKNOWN, trials.labels == TARGET)
        ]
    )
    links, ids = (link[:, : sizes[0]], link[:, sizes[0] :]), (trials.enroll_ids, trials.test_ids)
    enroll, test = (_Side(ids=ids[n], mark=marks[n], met=met[n], link=links[n], **arrays[n]) for n in (0, 1))
    return ListSums(center=center, enroll=enroll, test=test)


def _marks(ids: Ids) -> npt.NDArray[np.uint64]:
    """Return a number of 64 bits for each id, the same on every machine."""
    digests = b"".join(blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in ids.tolist())
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def pairs_of_list(trials: TrialList, rows: Index, columns: Index, wanted: npt.NDArray[np.bool_]) -> ListedPairs:
    """Return the labelled trials of wanted rows; ``rows`` and ``columns`` are the numbers of the list's own ids."""
    assert trials.labels is not None  # noqa: S101  (the sums have seen to it)
    row = rows[trials.enroll_index]
    at = np.flatnonzero((trials.labels != UNKNOWN) & wanted[row])
    return row[at].astype(np.int32), columns[trials.test_index[at]].astype(np.int32), trials.labels[at]


def independent_parts(
    total: ListSums, pairs: Callable[[npt.NDArray[np.bool_]], Iterable[ListedPairs]]
) -> list[LabelledSums]:
    """Return the statistics of each independent part of a list.

    Parameters
    ----------
    total
        The sums of the whole list.
    pairs
        Given which enrolments matter, yields their trials; called only if sums are not enough.
    """
    parts = _Parts(total)
    found = [parts.sums(part, parts.speaker_blocks(part)) for part in parts.settled]
    rest = np.setdiff1d(np.arange(parts.number), parts.settled)
    if len(rest):
        found += parts.with_pairs(rest, pairs(np.isin(parts.row_part, rest)))
    return found


class _Parts:
    """The linked parts of a list; elements without any labelled trial belong to none (-1)."""

    def __init__(self, total: ListSums) -> None:
        self._total = total
        sides = (total.enroll, total.test)
        seen = [side.counts.sum(axis=0) > 0 for side in sides]
        links = [np.where(there, side.link[0], -1) for side, there in zip(sides, seen, strict=True)]
        distinct, part = np.unique(np.concatenate([[-1], *links]), return_inverse=True)
        self.number = len(distinct) - 1
        self.row_part, self.column_part = np.split(part.reshape(-1)[1:] - 1, [len(links[0])])
        self.shape = np.stack([_sizes(side, self.number) for side in (self.row_part, self.column_part)], axis=1)
        self.alone = self._alone()
        whole = _all_met(total, NONTARGET, self.row_part, self.column_part, self.number)
        n_links = int(max(side.link[1].max(initial=-1) for side in sides)) + 1
        blocks = _all_met(total, TARGET, total.enroll.link[1], total.test.link[1], n_links)
        self.settled = np.setdiff1d(self.alone, self.row_part[seen[0] & ~(whole & blocks)])

    def _alone(self) -> Index:
        """Return the parts that are worth statistics of their own: more than half full, and large."""
        listed = np.zeros(self.number + 1)
        np.add.at(listed, self.row_part, self._total.enroll.counts.sum(axis=0))
        pairs = self.shape.prod(axis=1)
        worth = np.flatnonzero((2 * listed[:-1] > pairs) & ((pairs >= _WORTH_ALONE) | (self.number == 1)))
        return np.sort(worth[np.argsort(-pairs[worth], kind="stable")[:_MOST_ALONE]])

    def speaker_blocks(self, part: int) -> SpeakerBlocks:
        rows, columns = self.row_part == part, self.column_part == part
        links = np.concatenate([self._total.enroll.link[1][rows], self._total.test.link[1][columns]])
        distinct, codes = np.unique(links, return_inverse=True)
        split = int(np.count_nonzero(rows))
        return SpeakerBlocks(row_codes=codes[:split], column_codes=codes[split:], n_speakers=len(distinct))

    def sums(self, part: int, pattern: SpeakerBlocks | Exceptions) -> LabelledSums:
        return self._summed(self.row_part == part, self.column_part == part, pattern)

    def _summed(self, rows: Array, columns: Array, pattern: SpeakerBlocks | Exceptions) -> LabelledSums:
        enroll, test = self._total.enroll, self._total.test
        sums = ClassSums(
            center=self._total.center,
            rows=enroll.sums[:, rows],
            columns=test.sums[:, columns],
            squares=enroll.squares[:, rows].sum(axis=1),
            row_counts=enroll.counts[:, rows],
            column_counts=test.counts[:, columns],
        )
        return LabelledSums(sums=sums, pattern=pattern)

    def with_pairs(self, rest: Index, listed: Iterable[ListedPairs]) -> list[LabelledSums]:
        """Return the statistics of parts that need their pairs: a byte for each pair of a part that is half full."""
        alone = np.intersect1d(rest, self.alone)
        keys = {part: np.full(self.shape[part], UNKNOWN, dtype=np.int8) for part in alone.tolist()}
        others = np.isin(self.row_part, np.setdiff1d(rest, alone))
        other_columns = np.isin(self.column_part, np.setdiff1d(rest, alone))
        row_place, column_place = _within(self.row_part, others), _within(self.column_part, other_columns)
        sparse: list[ListedPairs] = []
        for rows, columns, labels in listed:
            parts = self.row_part[rows]
            for part in np.intersect1d(parts, alone).tolist():
                at = np.flatnonzero(parts == part)
                place = row_place[rows[at]], column_place[columns[at]]
                repeated = np.flatnonzero(keys[part][place] != UNKNOWN)
                if repeated.size:
                    raise self._twice(rows[at[repeated[0]]], columns[at[repeated[0]]])
                keys[part][place] = labels[at]
            at = np.flatnonzero(others[rows])
            sparse.append((row_place[rows[at]], column_place[columns[at]], labels[at]))
        found = [self.sums(part, pattern_of_key(key)) for part, key in keys.items()]
        if others.any():
            found.append(self._summed(others, other_columns, self._listed(sparse, others, other_columns)))
        return found

    def _listed(self, sparse: list[ListedPairs], row_kept: Array, column_kept: Array) -> Exceptions:
        rows, columns, labels = (np.concatenate(arrays) for arrays in zip(*sparse, strict=True))
        sizes = int(row_kept.sum()), int(column_kept.sum())
        if any_repeated_pair(rows, columns, *sizes):
            _, at = first_repeated_pair(pair_codes(rows, columns, sizes[1]))  # type: ignore[misc]
            raise self._twice(np.flatnonzero(row_kept)[rows[at]], np.flatnonzero(column_kept)[columns[at]])
        return Exceptions(
            n_rows=sizes[0], n_columns=sizes[1], background=False, rows=rows, columns=columns, labels=labels
        )

    def _twice(self, row: int, column: int) -> InputError:
        pair = self._total.enroll.ids[row], self._total.test.ids[column]
        return InputError(f"the trial {pair} is listed more than once; keep one of them")


def _sizes(part: Index, number: int) -> Index:
    return np.bincount(part[part >= 0], minlength=number)


def _all_met(total: ListSums, h: int, row_part: Index, column_part: Index, number: int) -> npt.NDArray[np.bool_]:
    """Tell which enrolments have met each test of their part once, in trials of class h or above."""
    member = column_part >= 0
    mark = np.zeros(number + 1, dtype=np.uint64)  # the last entry serves -1
    np.add.at(mark, column_part[member], total.test.mark[member])
    size = np.append(_sizes(column_part, number), 0)
    counts, met = (values[h:].sum(axis=0) for values in (total.enroll.counts, total.enroll.met))
    same: npt.NDArray[np.bool_] = (counts == size[row_part]) & (met == mark[row_part])
    return same


def _within(part: Index, together: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Give numbers from 0 to the elements of each part, and to those of all parts that are kept together."""
    number = int(part.max(initial=-1)) + 2
    return place_in_group(np.where(together, number - 1, part) + 1, number + 1).astype(np.int32)
