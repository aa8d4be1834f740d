"""Put the trials of all chunks together, and settle what to do with trials that are listed twice."""

from __future__ import annotations

from bisect import bisect_right
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike
from evenscore.files.text.blocks import Block, CodedIds
from evenscore.files.text.columns import MEASURE
from evenscore.tables import TrialList
from evenscore.tables.pairs import pair_codes

__all__ = ["Collector"]


class Collector:
    """The trials that have been read so far; ``line`` is the number of the next line."""

    def __init__(self, path: PathLike, options: ReadOptions, line: int) -> None:
        self.path = path
        self.options = options
        self.line = line
        self._size = 0
        self._codes: dict[str, dict[str, int]] = {"enroll": {}, "test": {}}
        self._arrays: dict[str, list[npt.NDArray[Any]]] = {}
        self._places: list[tuple[int, int, npt.NDArray[Any] | None]] = []  # trials before, first line, lines of each

    def add(self, block: Block) -> None:
        """Take the trials of the next chunk."""
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
        codes = self._codes[side]
        known = np.fromiter(map(codes.get, ids.names, repeat(-1)), dtype=np.int32, count=len(ids.names))
        for place in np.flatnonzero(known < 0).tolist():  # few, after the first chunks
            known[place] = codes.setdefault(ids.names[place], len(codes))
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
