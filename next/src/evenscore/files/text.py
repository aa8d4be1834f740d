"""Reading trials and scores in lines of text.

Chunks of a file are read by polars. A chunk that polars cannot read, or whose values are not valid, is read again line
by line, which names the line that is wrong. What the columns are is decided in `text_columns`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.data.score_matrix import LARGEST_SCORE, first_bad_score
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, open_input, reading
from evenscore.files.text_columns import (
    ABSENT,
    COLUMN,
    ENROLL,
    IGNORED,
    LABEL,
    LABEL_WORDS,
    PAIR,
    REAL_ID,
    SCORE,
    SIDE,
    TEST,
    Columns,
    Sample,
    columns_in,
    is_number,
    split_quoted,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read"]

CHUNK_SIZE = 1 << 24  #: bytes; measured: smaller costs calls, larger costs fresh memory from the system
LONGEST_LINE = 1 << 20  #: bytes; what is longer is no line of a table
_AHEAD = 2  # chunks that are parsed while the next one is read

_Numbers = npt.NDArray[np.float64]


@dataclass
class _Block:
    """The trials of a chunk; ids are categories of polars that all chunks of a file share."""

    enroll: pl.Series
    test: pl.Series
    scores: _Numbers | None = None
    labels: npt.NDArray[np.int8] | None = None
    columns: dict[str, _Numbers] = field(default_factory=dict)
    lines: npt.NDArray[np.intp] | None = None  #: line of each trial in the chunk, from 0; None if no line is skipped
    n_lines: int = 0  #: lines of the chunk

    def select(self, keep: npt.NDArray[np.bool_]) -> _Block:
        return _Block(
            self.enroll.filter(keep),
            self.test.filter(keep),
            None if self.scores is None else self.scores[keep],
            None if self.labels is None else self.labels[keep],
            {name: values[keep] for name, values in self.columns.items()},
            np.flatnonzero(keep) if self.lines is None else self.lines[keep],
            self.n_lines,
        )


def read(path: PathLike, format: str, options: ReadOptions) -> TrialList:
    """Read trials, with the scores, labels and further columns that the file has."""
    with open_input(path) as stream, reading(path):
        chunks = _chunks(stream)
        first = next(chunks, b"")
        if first.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise FileError(path, "it is text in UTF-16; convert it to UTF-8", line=1)
        sample = Sample.from_head(first)
        if not sample.lines:
            raise FileError(path, "the file is empty; there is nothing to read")
        columns = columns_in(sample, path, format, options.kind, options.score_column)
        header = sample.numbers[0] if columns.names else 0
        if header:
            first = first.split(b"\n", header)[-1] if first.count(b"\n") >= header else b""
        parser = _Parser(path, columns, options)
        blocks, starts, line = [], [], 1 + header
        for data, block in _in_threads(parser.parse, chain([first] if first else [], chunks)):
            block = block or parser.parse_lines(data, line)
            blocks.append(block)
            starts.append(line)
            line += block.n_lines
    return _joined(blocks, starts, path, options)


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """Cut a stream at line ends; a line that is too long is the last one, and is not complete."""
    while data := stream.read(CHUNK_SIZE):
        if not data.endswith(b"\n"):
            data += stream.readline(LONGEST_LINE + 1)
        yield data
        if not data.endswith(b"\n"):
            return


def _in_threads(
    parse: Callable[[bytes], _Block | None], chunks: Iterator[bytes]
) -> Iterator[tuple[bytes, _Block | None]]:
    """Parse the chunks in threads (polars releases the interpreter lock), and yield them in order."""
    first = next(chunks, b"")
    if len(first) < CHUNK_SIZE:  # a small file is parsed before threads have started
        if first:
            yield first, parse(first)
        return
    waiting: deque[tuple[bytes, Future[_Block | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD, "evenscore-read") as pool:
        for data in chain([first], chunks):
            waiting.append((data, pool.submit(parse, data)))
            if len(waiting) > _AHEAD:
                oldest, block = waiting.popleft()
                yield oldest, block.result()
        for data, block in waiting:
            yield data, block.result()


class _Parser:
    """Parses the chunks of one file."""

    def __init__(self, path: PathLike, columns: Columns, options: ReadOptions) -> None:
        import polars as pl

        self.path, self.columns, self.options = path, columns, options
        self.skip_missing = options.missing == "skip"
        self.schema = {
            str(at): pl.Float64 if role == SCORE or role.startswith(COLUMN) else pl.String
            for at, role in enumerate(columns.roles)
        }
        # All chunks share the categories, which exist as long as these two do.
        self.enroll = pl.Series([""], dtype=pl.Categorical(pl.Categories.random()))
        self.test = pl.Series([""], dtype=pl.Categorical(pl.Categories.random()))

    def parse(self, data: bytes) -> _Block | None:
        """Return the trials of a chunk, or None if a line of it needs a closer look."""
        if b"\0" in data or (not data.endswith(b"\n") and len(data) - data.rfind(b"\n") > LONGEST_LINE):
            return None
        start = data[:4096]
        tidy = not (b"\r" in data or start.isspace() or (self.columns.separator == " " and b"\t" in data))
        block = self._block(data) if tidy and b"  " not in start and b"\n\n" not in start else None
        if block is not None:
            return block
        clean = _squeezed(data, self.columns.separator)
        if b"\r" in clean:
            return None
        block = self._block(clean)
        n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
        if block is not None and block.n_lines != n_lines:  # there are blank lines
            filled = np.array([i for i, line in enumerate(data.split(b"\n")) if line.strip(b" \t\r")], np.intp)
            block.lines = filled if block.lines is None else filled[block.lines]
            block.n_lines = n_lines
        return block

    def _block(self, data: bytes) -> _Block | None:
        """Return the trials as polars reads them, None if it cannot, or if a line has too few columns."""
        import polars as pl

        if not data:
            return _Block(self.enroll[:0], self.test[:0])
        roles, separator = self.columns.roles, self.columns.separator
        absent = self.skip_missing or any(role.startswith(COLUMN) or role == IGNORED for role in roles)
        try:
            frame = pl.read_csv(
                data,
                has_header=False,
                separator=separator,
                quote_char='"' if separator == "," else None,
                schema=self.schema,
                null_values=list(ABSENT) if absent else None,
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
            return None
        quotes = separator == "," and b'"' in data
        if quotes and len(frame) != data.count(b"\n") + (not data.endswith(b"\n")):
            return None  # a line end within quotes
        if frame.to_series(-1).null_count():  # an absent value, or a line that is too short
            complete = data.count(separator.encode()) == len(frame) * (len(roles) - 1)
            if quotes or not complete or (separator == " " and b" \n" in data):
                return None
        return self._trials(frame)

    def _trials(self, frame: pl.DataFrame) -> _Block | None:
        """Return the trials of some lines, None if one of them is not valid."""
        by_role = {role: frame.to_series(at) for at, role in enumerate(self.columns.roles) if role != IGNORED}
        required = {ENROLL, TEST, PAIR, REAL_ID} | (set() if self.skip_missing else {SCORE})
        required |= set() if self.columns.names else {LABEL}
        if any(by_role[role].null_count() for role in required & by_role.keys()):
            return None
        ids, labels = self._ids(by_role), _labels(by_role)
        if ids is None or (labels is not None and labels.min(initial=0) < UNKNOWN):
            return None
        numbers = {
            role: series.fill_null(np.nan).to_numpy() for role, series in by_role.items() if series.dtype.is_float()
        }
        scores = numbers.pop(SCORE, None)
        columns = {role.removeprefix(COLUMN): values for role, values in numbers.items()}
        block = _Block(*ids, scores, labels, columns, n_lines=len(frame))
        infinite = self.options.infinite == "accept"
        if scores is None or first_bad_score(scores, infinite=infinite, missing=False) is None:
            return block
        if not self.skip_missing:
            return None
        block = block.select(~np.isnan(scores) if infinite else np.isfinite(scores))
        return block if first_bad_score(block.scores, infinite=infinite, missing=False) is None else None  # type: ignore[arg-type]

    def _ids(self, by_role: dict[str, pl.Series]) -> tuple[pl.Series, pl.Series] | None:
        """Return the ids of both sides as categories."""
        import polars as pl

        if PAIR in by_role:
            enroll, test, third = by_role[PAIR].str.split_exact("*", 2).struct.unnest().iter_columns()
            if test.null_count() or third.null_count() < len(third) or (enroll == "").any() or (test == "").any():
                return None
        else:
            enroll, test = by_role[ENROLL], by_role[TEST]
        if SIDE in by_role:
            side = by_role[SIDE].fill_null("a")
            test = pl.select(
                pl.when(side.str.to_lowercase() == "a").then(test).otherwise(test + ":" + side)
            ).to_series()
        return enroll.cast(self.enroll.dtype), test.cast(self.test.dtype)  # measured: quicker than to read them as such

    def parse_lines(self, data: bytes, first_line: int) -> _Block:
        """Return the trials of a chunk line by line; the first line that is wrong is named."""
        import polars as pl

        rows, at, lines = [], [], data.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines):
            try:
                row = self._line(line)
            except ValueError as error:
                raise FileError(self.path, str(error), line=first_line + number) from None
            if row is not None:
                rows.append(row)
                at.append(number)
        block = self._trials(pl.DataFrame(rows, schema=self.schema, orient="row"))
        if block is None:
            raise FileError(self.path, f"the lines from {first_line} on are not valid trials", line=first_line)
        block.lines = np.array(at, np.intp) if block.lines is None else np.array(at, np.intp)[block.lines]
        block.n_lines = len(lines)
        return block

    def _line(self, line: bytes) -> list[str | float | None] | None:
        """Return the values of one line, None for a blank one; a ValueError says what is wrong with it."""
        text, roles, separator = _decoded(line), self.columns.roles, self.columns.separator
        if not text.strip(" \t"):
            return None
        fields = (
            [part for part in text.replace("\t", " ").split(" ") if part]
            if separator == " "
            else split_quoted(text, separator)
        )
        if len(fields) != len(roles):
            raise ValueError(f"expected {len(roles)} columns ({self.columns}), found {len(fields)}")
        return [self._value(role, text) for role, text in zip(roles, fields, strict=True)]

    def _value(self, role: str, text: str) -> str | float | None:
        """Return one value, None if it is absent and may be; a ValueError says what is wrong with it."""
        absent = text.strip(" ") in ABSENT
        if role in (ENROLL, TEST, REAL_ID) and not text:
            raise ValueError(f"the id of the {'enrolment' if role == ENROLL else 'test'} is empty")
        if role == PAIR and (text.count("*") != 1 or text.startswith("*") or text.endswith("*")):
            raise ValueError(f"expected two ids joined by one '*', found {text!r}")
        if role == LABEL and text.strip(" ").lower() not in LABEL_WORDS and not (absent and self.columns.names):
            raise ValueError(f"label {text!r} is not known; use target and nontarget, tgt and imp, 1 and 0")
        if role in (SIDE, LABEL):
            return None if absent else text.strip(" ")
        if role != SCORE and not role.startswith(COLUMN):
            return text
        remedy = "drop the trial, or read it with missing='skip'"
        if absent:
            if role == SCORE and not self.skip_missing:
                raise ValueError(f"score {text!r} is absent; {remedy}")
            return None
        if not is_number(text.strip(" ")):
            hint = "; write a point in place of the comma" if "," in text else ""
            raise ValueError(f"{role.removeprefix(COLUMN)} {text!r} is not a number{hint}")
        number = float(text)
        if role != SCORE or abs(number) <= LARGEST_SCORE or (math.isinf(number) and self.options.infinite == "accept"):
            return number
        if math.isfinite(number):
            raise ValueError(
                f"score {text!r} is not between {-LARGEST_SCORE:g} and {LARGEST_SCORE:g}; scale the scores"
            )
        if not self.skip_missing:
            raise ValueError(f"score {text!r} is not finite; {remedy}")
        return number


def _squeezed(data: bytes, separator: str) -> bytes:
    r"""Return lines without blank lines and carriage returns, with one space between columns; clean data as it is.

    Examples
    --------
    >>> _squeezed(b" e1\t t1  0.5 \r\n\ne2 t1 1\n", " ")
    b'e1 t1 0.5\ne2 t1 1\n'
    """
    if b"\r\n" in data:
        data = data.replace(b"\r\n", b"\n")
    if separator == " ":
        if b"\t" in data:
            data = data.replace(b"\t", b" ")
        while b"  " in data:
            data = data.replace(b"  ", b" ")
        if b" \n" in data or b"\n " in data or data.startswith(b" ") or data.endswith(b" "):
            data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    if b"\n\n" in data or data.startswith(b"\n"):
        while b"\n\n" in data:
            data = data.replace(b"\n\n", b"\n")
        data = data.removeprefix(b"\n")
    return data


def _labels(by_role: dict[str, pl.Series]) -> npt.NDArray[np.int8] | None:
    """Return the label of each line, -2 for words that are not known."""
    import polars as pl

    if REAL_ID in by_role:
        return np.where((by_role[ENROLL] == by_role[REAL_ID]).to_numpy(), TARGET, NONTARGET).astype(np.int8)
    if LABEL not in by_role:
        return None
    words = by_role[LABEL].unique()
    labels = [UNKNOWN if word is None else LABEL_WORDS.get(word.strip(" ").lower(), -2) for word in words]
    return by_role[LABEL].replace_strict(words, labels, return_dtype=pl.Int8).to_numpy()


def _decoded(line: bytes) -> str:
    if len(line) > LONGEST_LINE:
        raise ValueError(f"the line is longer than {LONGEST_LINE >> 20} MiB; this is not a table of trials")
    if b"\0" in line:
        raise ValueError("the line has a null byte; this is binary data (or UTF-16), not text")
    try:
        text = line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        byte = line[error.start]
        raise ValueError(f"byte 0x{byte:02x} at column {error.start + 1} is not UTF-8; convert the file") from None
    if "\r" in text:
        raise ValueError("there is a carriage return inside the line; convert the line ends")
    return text


def _joined(blocks: list[_Block], starts: list[int], path: PathLike, options: ReadOptions) -> TrialList:
    """Return all trials of a file; repeated ones are dropped, or named by line."""
    import polars as pl

    sizes = np.cumsum([0, *(len(block.enroll) for block in blocks)])
    if not sizes[-1]:
        raise FileError(path, "there are no trials in it; give a file with at least one")
    lines = [block.lines for block in blocks]
    filled = [block for block in blocks if len(block.enroll)]
    blocks.clear()
    enroll, rows = _encoded([block.enroll for block in filled])
    test, cols = _encoded([block.test for block in filled])
    scores = None if filled[0].scores is None else np.concatenate([block.scores for block in filled])
    labels = None if filled[0].labels is None else np.concatenate([block.labels for block in filled])
    columns = {name: np.concatenate([block.columns[name] for block in filled]) for name in filled[0].columns}
    filled.clear()
    trials = TrialList.trusted(enroll, test, rows, cols, scores, labels, columns)
    codes = rows.astype(np.int64) * len(test) + cols
    if len(enroll) * len(test) <= 32 * len(codes):
        seen = np.zeros(len(enroll) * len(test), bool)
        seen[codes] = True
        unique = np.count_nonzero(seen) == len(codes)
    else:
        ordered = pl.Series(codes).sort().to_numpy()  # on all cores, in a quarter of NumPy's time
        unique = bool((ordered[1:] != ordered[:-1]).all())
    if unique:
        return trials

    def line_of(trial: int) -> int:
        at = bisect_right(sizes.tolist(), trial) - 1
        of_block = lines[at]
        within = trial - int(sizes[at])
        return starts[at] + (within if of_block is None else int(of_block[within]))

    return _without_repeats(trials, codes, line_of, path, options)


def _encoded(parts: list[pl.Series]) -> tuple[Side, npt.NDArray[np.int32]]:
    """Return the distinct ids in the order of their first appearance, and the position of each id among them."""
    import polars as pl

    whole = pl.concat(parts)
    codes = whole.to_physical().to_numpy()
    first = np.full(int(codes.max()) + 1, len(codes))
    np.minimum.at(first, codes, np.arange(len(codes)))
    order = np.argsort(first)[: np.count_nonzero(first < len(codes))]
    position = np.zeros(len(first), np.int32)
    position[order] = np.arange(len(order))
    return Side(whole.gather(first[order]).cast(pl.String).to_list()), position[codes]


def _without_repeats(
    trials: TrialList,
    codes: npt.NDArray[np.int64],
    line_of: Callable[[int], int],
    path: PathLike,
    options: ReadOptions,
) -> TrialList:
    """Drop repeats with the same values if that is wished, or name the line of a repeat."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    repeats = np.flatnonzero(first[inverse] != np.arange(len(codes)))
    earlier = first[inverse][repeats]
    values = {"score": trials.scores, "label": trials.labels, **trials.columns}
    same = np.ones(len(repeats), bool)
    for array in values.values():
        if array is not None:
            same &= (array[repeats] == array[earlier]) | (np.isnan(array[repeats]) & np.isnan(array[earlier]))
    if options.duplicates == "drop" and same.all():
        keep = np.ones(len(trials), bool)
        keep[repeats] = False
        return trials.select(keep)
    at = int(np.argmin(same)) if options.duplicates == "drop" else 0
    how = (
        "with the same values; remove it, or read it with duplicates='drop'"
        if same[at]
        else "with other values; keep one"
    )
    problem = f"the trial {trials.pair(int(repeats[at]))} is in line {line_of(int(earlier[at]))} already, {how}"
    raise FileError(path, problem, line=line_of(int(repeats[at])))
