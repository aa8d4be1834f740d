"""From a text file to a `TrialList`: chunk by chunk, so that memory holds the table and little else."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, open_input, reading
from evenscore.files.text.blocks import CodedIds
from evenscore.files.text.careful import parse_carefully
from evenscore.files.text.chunks import CHUNK_SIZE, LONGEST_LINE, SAMPLE_SIZE, line_chunks, sample_of
from evenscore.files.text.columns import MEASURE, Columns
from evenscore.files.text.fast import parse_fast
from evenscore.files.text.layouts import Layout, MisfitError
from evenscore.tables import TrialList
from evenscore.tables.pairs import pair_codes

__all__ = ["read_trials_text"]


def read_trials_text(
    path: PathLike, options: ReadOptions, layout: Layout, *, chunk_size: int = CHUNK_SIZE
) -> TrialList:
    """Read trials, with scores and labels where the columns have them.

    Parameters
    ----------
    path
        A file, plain or gzip, or ``-``.
    layout
        The format; the first lines decide which of its variants it is.
    chunk_size
        Bytes that are parsed at a time.
    """
    with open_input(path) as stream, reading(path):
        chunks = line_chunks(stream, chunk_size)
        head = _head(chunks)
        columns = _columns(head, path, options, layout)
        trials = _Trials(path, options, columns)
        while head:
            trials.add(head.pop(0))
        for data in chunks:
            trials.add(data)
        return trials.table()


def _head(chunks: Iterator[bytes]) -> list[bytes]:
    """Return the first chunks, enough of them to find out what the columns are."""
    head: list[bytes] = []
    for data in chunks:
        head.append(data)
        if sum(map(len, head)) > SAMPLE_SIZE:
            break
    return head


def _columns(head: list[bytes], path: PathLike, options: ReadOptions, layout: Layout) -> Columns:
    start = b"".join(data[: SAMPLE_SIZE + 1] for data in head)
    sample = sample_of(start, whole=True)
    if not sample.lines:
        raise FileError(path, "the file is empty; there is nothing to read")
    try:
        return layout.reads(sample, options)
    except MisfitError as misfit:
        raise FileError(
            path, f"this is not the format {layout.name}: {misfit}; name the right format", line=1
        ) from None


class _Trials:
    """The trials that have been read so far."""

    def __init__(self, path: PathLike, options: ReadOptions, columns: Columns) -> None:
        self.path = path
        self.options = options
        self.columns = columns
        self.line = 1  # of the next chunk
        self.header_ahead = bool(columns.names)
        self.codes: dict[str, dict[str, int]] = {"enroll": {}, "test": {}}
        self.arrays: dict[str, list[npt.NDArray[Any]]] = {}
        self.places: list[tuple[int, int, npt.NDArray[Any] | None]] = []  # trials before, first line, lines
        self.size = 0

    def add(self, data: bytes) -> None:
        """Parse the next chunk."""
        if len(data) > LONGEST_LINE and b"\n" not in data[: LONGEST_LINE + 1]:
            problem = f"the line is longer than {LONGEST_LINE >> 20} MiB; this is not a table of trials"
            raise FileError(self.path, problem, line=self.line)
        if self.header_ahead:
            data = self._without_header(data)
        if not data:
            return
        block = parse_fast(data, self.columns, skip_missing=self.options.missing == "skip")
        if block is None:
            block = parse_carefully(data, self.columns, self.options, self.path, self.line)
        self.places.append((self.size, self.line, block.lines))
        self.line += block.n_lines
        self.size += len(block)
        for side, ids in (("enroll", block.enroll), ("test", block.test)):
            self._keep(side, self._global_codes(side, ids))
        for name, values in {"scores": block.scores, "labels": block.labels}.items():
            if values is not None:
                self._keep(name, values)
        for name, values in block.measures.items():
            self._keep(MEASURE + name, values)

    def table(self) -> TrialList:
        """Return all trials, after a look for repeated ones."""
        if not self.size:
            below = " below the header" if self.columns.names else ""
            raise FileError(self.path, f"there are no trials{below}; nothing is left to read")
        arrays = {name: self._whole(name) for name in list(self.arrays)}
        try:
            return self._trial_list(arrays)
        except InputError as error:
            arrays = self._without_repeats(arrays, str(error))
            return self._trial_list(arrays)

    def _without_header(self, data: bytes) -> bytes:
        """Cut off the header, the first line that is not blank."""
        while data:
            line, _, data = data.partition(b"\n")
            self.line += 1
            if line.strip(b" \t\r"):
                self.header_ahead = False
                break
        return data

    def _global_codes(self, side: str, ids: CodedIds) -> npt.NDArray[np.int32]:
        codes = self.codes[side]
        known = (codes.setdefault(name, len(codes)) for name in ids.names)
        return np.fromiter(known, dtype=np.int32, count=len(ids.names))[ids.index]

    def _keep(self, name: str, values: npt.NDArray[Any]) -> None:
        self.arrays.setdefault(name, []).append(values)

    def _whole(self, name: str) -> npt.NDArray[Any]:
        parts = self.arrays.pop(name)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _trial_list(self, arrays: dict[str, npt.NDArray[Any]]) -> TrialList:
        return TrialList(
            list(self.codes["enroll"]),
            list(self.codes["test"]),
            arrays["enroll"],
            arrays["test"],
            scores=arrays.get("scores"),
            labels=arrays.get("labels"),
            measures={n.removeprefix(MEASURE): values for n, values in arrays.items() if n.startswith(MEASURE)},
        )

    def _without_repeats(self, arrays: dict[str, npt.NDArray[Any]], problem: str) -> dict[str, npt.NDArray[Any]]:
        """Drop identical repeats if that is wished, or say where the first repeat stands."""
        codes = pair_codes(arrays["enroll"], arrays["test"], len(self.codes["test"]))
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
        pair = tuple(list(self.codes[side])[arrays[side][later]] for side in ("enroll", "test"))
        again = f"the trial {pair} stands in line {self._line_of(earlier)} already"
        if identical:
            how = "with the same values; remove it or pass --duplicates drop"
        else:
            names = [name for name in arrays if not _equal(arrays[name][[earlier]], arrays[name][[later]])[0]]
            what = {"scores": "score", "labels": "label"}.get(names[0], names[0].removeprefix(MEASURE))
            how = f"with another {what}; keep one of the two"
        return FileError(self.path, f"{again}, {how}", line=self._line_of(later))

    def _line_of(self, trial: int) -> int:
        """Return the line number of a trial."""
        before, first_line, lines = self.places[bisect_right(self.places, trial, key=lambda place: place[0]) - 1]
        return first_line + (trial - before if lines is None else int(lines[trial - before]))


def _equal(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Compare values, where NaN equals NaN."""
    same: npt.NDArray[np.bool_] = (a == b) | ((a != a) & (b != b))
    return same
