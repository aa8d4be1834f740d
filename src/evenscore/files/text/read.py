"""From a text file to a `TrialList`: chunk by chunk, so that memory holds the table and little else."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import PathLike, open_input, refuse_larger_than_memory
from evenscore.files.text.careful import parse_carefully
from evenscore.files.text.chunks import (
    CHUNK_SIZE,
    LONGEST_LINE,
    SAMPLE_SIZE,
    UTF16_MARKS,
    Block,
    CodedIds,
    line_chunks,
    sample_of,
)
from evenscore.files.text.fast import lexicon, parse_fast
from evenscore.files.text.layouts import LAYOUTS, MEASURE, Columns, MisfitError
from evenscore.tables import TrialList
from evenscore.tables.pairs import pair_codes

__all__ = ["read_trials_text"]

_AHEAD = 2  # chunks that are parsed while the next one is read


def read_trials_text(path: PathLike, options: ReadOptions, format: str, *, chunk_size: int = CHUNK_SIZE) -> TrialList:
    """Read trials, with scores and labels where the columns have them.

    Parameters
    ----------
    path
        A file, plain or gzip, or ``-``.
    options
        What to do with missing scores and repeated trials, and which column has the scores.
    format
        Its name; the first lines decide which of its variants it is.
    chunk_size
        Bytes that are parsed at a time.
    """
    with open_input(path) as stream:
        chunks = line_chunks(stream, chunk_size)
        head = _head(chunks)
        columns = _columns(head, path, options, format)
        collector = _Collector(path, options, line=1 + (_drop_header(head) if columns.names else 0))
        for data, block in _parsed(chain(_drained(head), chunks), columns, options):
            if block is None:
                block = parse_carefully(data, columns, options, path, collector.line)
            collector.add(block)
        return collector.table()


def _head(chunks: Iterator[bytes]) -> list[bytes]:
    """Return the first chunks, enough of them to find out what the columns are."""
    head: list[bytes] = []
    for data in chunks:
        head.append(data)
        if sum(map(len, head)) > SAMPLE_SIZE:
            break
    return head


def _columns(head: list[bytes], path: PathLike, options: ReadOptions, format: str) -> Columns:
    sample = sample_of(b"".join(data[: SAMPLE_SIZE + 1] for data in head), whole=True)
    if not sample.lines:
        raise FileError(path, "the file is empty; there is nothing to read")
    if head[0].startswith(UTF16_MARKS):
        raise FileError(path, "it is text in UTF-16; convert it to UTF-8", line=1)
    try:
        return LAYOUTS[format].reads(sample, options)
    except MisfitError as misfit:
        problem = f"this is not the format {format}: {misfit}; name the right one"
        raise FileError(path, problem, line=misfit.line) from None


def _drop_header(head: list[bytes]) -> int:
    """Cut off the first line that is not blank, and return how many lines are gone."""
    dropped = 0
    while True:
        line, _, head[0] = head[0].partition(b"\n")
        dropped += 1
        if not head[0]:
            head.pop(0)
        if line.strip(b" \t\r"):
            return dropped


def _drained(items: list[bytes]) -> Iterator[bytes]:
    """Hand out the items without holding them any longer."""
    while items:
        yield items.pop(0)


def _parsed(chunks: Iterator[bytes], columns: Columns, options: ReadOptions) -> Iterator[tuple[bytes, Block | None]]:
    """Parse the chunks in threads (polars lets go of the interpreter), and hand them out in order."""
    ids = lexicon()

    def parse(data: bytes) -> Block | None:
        if not data.endswith(b"\n") and len(data) - data.rfind(b"\n") > LONGEST_LINE:
            return None
        return parse_fast(data, columns, options, ids)

    head = list(islice(chunks, 2))
    if len(head) == 1:  # as most files are; threads take longer to start than it takes to parse
        yield head[0], parse(head[0])
        return
    waiting: deque[tuple[bytes, Future[Block | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD, "evenscore-read") as workers:
        for data in chain(_drained(head), chunks):
            waiting.append((data, workers.submit(parse, data)))
            if len(waiting) > _AHEAD:
                oldest, future = waiting.popleft()
                yield oldest, future.result()
        for data, future in waiting:
            yield data, future.result()


class _Collector:
    """The trials that have been read so far; ``line`` is the number of the next line."""

    def __init__(self, path: PathLike, options: ReadOptions, line: int) -> None:
        self.path = path
        self.options = options
        self.line = line
        self._size = 0
        self._codes: dict[str, dict[str, int]] = {"enroll": {}, "test": {}}
        self._seen = {side: np.empty(0, dtype=np.int32) for side in self._codes}  # codes by the numbers of a lexicon
        self._arrays: dict[str, list[npt.NDArray[Any]]] = {}
        self._places: list[tuple[int, int, npt.NDArray[Any] | None]] = []  # trials before, first line, lines of each

    def add(self, block: Block) -> None:
        """Take the trials of the next chunk, as long as all of them fit into memory when they are joined."""
        refuse_larger_than_memory(self.path, 8 * self._size)
        self._places.append((self._size, self.line, block.lines))
        self.line += block.n_lines
        self._size += len(block)
        columns: dict[str, npt.NDArray[Any] | None] = {"scores": block.scores, "labels": block.labels}
        columns |= {
            side: self._global_codes(side, ids) for side, ids in (("enroll", block.enroll), ("test", block.test))
        }
        columns |= {MEASURE + name: values for name, values in block.measures.items()}
        for name, values in columns.items():
            if values is not None:
                self._arrays.setdefault(name, []).append(values)

    def table(self) -> TrialList:
        """Return all trials; the collector is empty afterwards, so that nothing is held twice."""
        if not self._size:
            raise FileError(self.path, "there are no trials in it; give a file with at least one")
        arrays = {name: _joined(self._arrays.pop(name)) for name in list(self._arrays)}
        try:
            return self._trial_list(arrays)
        except InputError as error:
            return self._trial_list(self._without_repeats(arrays, str(error)))

    def _global_codes(self, side: str, ids: CodedIds) -> npt.NDArray[np.int32]:
        codes, numbers = self._codes[side], ids.numbers
        if numbers is None:
            known = np.fromiter(map(codes.get, ids.names, repeat(-1)), dtype=np.int32, count=len(ids.names))
        else:
            seen = self._seen[side]
            beyond = int(numbers.max(initial=0)) + 1 - len(seen)
            if beyond > 0:
                self._seen[side] = seen = np.concatenate([seen, np.full(beyond + len(seen), -1, dtype=np.int32)])
            known = seen[numbers]
        new = np.flatnonzero(known < 0)  # few, after the first chunks
        names = ids.names[new].to_list() if numbers is not None else [ids.names[place] for place in new.tolist()]
        for place, name in zip(new.tolist(), names, strict=True):
            known[place] = codes.setdefault(name, len(codes))
        if numbers is not None:
            seen[numbers[new]] = known[new]
        return known[ids.index]

    def _trial_list(self, arrays: dict[str, npt.NDArray[Any]]) -> TrialList:
        return TrialList(
            list(self._codes["enroll"]),
            list(self._codes["test"]),
            arrays["enroll"],
            arrays["test"],
            scores=arrays.get("scores"),
            labels=arrays.get("labels"),
            measures={n.removeprefix(MEASURE): values for n, values in arrays.items() if n.startswith(MEASURE)},
            allow_infinite=self.options.accepts_infinite,
        )

    def _without_repeats(self, arrays: dict[str, npt.NDArray[Any]], problem: str) -> dict[str, npt.NDArray[Any]]:
        """Drop identical repeats if that is wished, or say where the first repeat stands."""
        codes = pair_codes(arrays["enroll"], arrays["test"], len(self._codes["test"]))
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        earlier = first[inverse.reshape(-1)]
        repeats = np.flatnonzero(earlier != np.arange(len(codes)))
        if not len(repeats):
            raise FileError(self.path, problem)
        same = np.ones(len(repeats), dtype=bool)
        for values in arrays.values():
            same &= _equal(values[repeats], values[earlier[repeats]])
        if self.options.duplicates == "drop" and same.all():
            keep = np.ones(len(codes), dtype=bool)
            keep[repeats] = False
            return {name: values[keep] for name, values in arrays.items()}
        worst = int(np.argmin(same)) if self.options.duplicates == "drop" else 0
        raise self._repeat_error(arrays, int(earlier[repeats[worst]]), int(repeats[worst]), identical=bool(same[worst]))

    def _repeat_error(
        self, arrays: dict[str, npt.NDArray[Any]], earlier: int, later: int, *, identical: bool
    ) -> FileError:
        pair = tuple(list(self._codes[side])[arrays[side][later]] for side in ("enroll", "test"))
        again = f"the trial {pair} stands in line {self._line_of(earlier)} already"
        if identical:
            how = "with the same values; remove it, or read it with duplicates='drop'"
        else:
            names = [name for name in arrays if not _equal(arrays[name][[earlier]], arrays[name][[later]])[0]]
            what = {"scores": "score", "labels": "label"}.get(names[0], names[0].removeprefix(MEASURE))
            how = f"with another {what}; keep one of the two"
        return FileError(self.path, f"{again}, {how}", line=self._line_of(later))

    def _line_of(self, trial: int) -> int:
        """Return the line number of a trial."""
        before, first_line, lines = self._places[bisect_right(self._places, trial, key=lambda place: place[0]) - 1]
        return first_line + (trial - before if lines is None else int(lines[trial - before]))


def _equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Compare values, where NaN equals NaN."""
    same: npt.NDArray[np.bool_] = (a == b) | ((a != a) & (b != b))
    return same


def _joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
