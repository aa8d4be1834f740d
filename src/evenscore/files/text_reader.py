"""Reading trials and scores in lines of text.

Chunks of a file are read by polars. A chunk that polars cannot read, or whose values are not valid, is read again line
by line, which names the line that is wrong. What the columns are is decided in `text`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import UNKNOWN
from evenscore.data.score_matrix import LARGEST_SCORE, first_bad_score
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList, repeated_pair
from evenscore.errors import FileError
from evenscore.files import text as tf  # the text formats
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, open_input
from evenscore.files.text import COLUMN, ENROLL, LABEL, PAIR, REAL_ID, SCORE, SIDE, TEST

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read"]

CHUNK_SIZE = 1 << 24  #: bytes; measured: smaller costs calls, larger costs fresh memory from the system
LONGEST_LINE = 1 << 20  #: bytes; what is longer is no line of a table
_AHEAD = 2  # chunks that are parsed while the next one is read


@dataclass(frozen=True)
class _Block:
    """The trials of a chunk."""

    enroll: pl.Series
    test: pl.Series
    numbers: dict[str, npt.NDArray[Any]]  #: by role: score, label and further columns, where the file has them
    n_lines: int  #: lines of the chunk
    lines: npt.NDArray[np.intp] | None = None  #: line of each trial in the chunk, from 0; None if no line is skipped


@dataclass
class _Ids:
    """The distinct ids of one side in the order of their first appearance.

    The last bits of its hash are the slot of an id, which has the code of one of the ids that share it; whether it is
    this one is seen from its name. For ids at random this takes a third of the time of categories of polars.
    """

    names: pl.Series  #: one that is empty, which no id is, until there are ids
    slots: npt.NDArray[np.int32]
    index: dict[str, int] = field(default_factory=dict)

    def encode(self, ids: pl.Series) -> npt.NDArray[np.int32]:
        """Return the code of each id; those that are new get the next codes."""
        import polars as pl

        if len(ids) > 1 and ids[0] == ids[1]:  # most likely sorted: one lookup for each run
            starts = np.append(0, (ids[1:] != ids[:-1]).arg_true().to_numpy() + 1)
            return np.repeat(self.encode(ids.gather(starts)), np.diff(starts, append=len(ids)))
        codes = self.slots[ids.hash().to_numpy().view(np.int64) & (len(self.slots) - 1)]
        other = (self.names.gather(codes) != ids).arg_true().to_numpy()  # new, or another id has the slot
        if not len(other):
            return codes
        n_known, found = len(self.index), ids.gather(other)
        new = [name for name in found.unique(maintain_order=True).to_list() if name not in self.index]
        if not new:
            codes[other] = [self.index[name] for name in found.to_list()]
            return codes
        self.index.update(zip(new, range(n_known, n_known + len(new)), strict=True))
        added = pl.Series(new)
        self.names = pl.concat([self.names[:n_known], added], rechunk=True)
        self.slots[added.hash().to_numpy().view(np.int64) & (len(self.slots) - 1)] = np.arange(n_known, len(self.index))
        return self.encode(ids)


def read(path: PathLike, format: str, options: ReadOptions) -> TrialList:
    """Read trials, with the scores, labels and further columns that the file has."""
    import polars as pl

    with open_input(path) as stream:
        first = stream.read(CHUNK_SIZE) + stream.readline(LONGEST_LINE + 1)
        sample = tf.Sample(first)
        if not sample.lines:
            raise FileError(path, "the file is empty; there is nothing to read")
        parser = _Parser(path, tf.columns_in(sample, path, format, options.kind, options.score_column), options)
        header = sample.numbers[0] if parser.columns.names else 0
        if header:
            first = first.split(b"\n", header)[-1] if first.count(b"\n") >= header else b""
        large, line = len(first) >= CHUNK_SIZE, 1 + header
        n_slots = 1 << (22 if large else 14)
        enroll, test = (_Ids(pl.Series([""]), np.zeros(n_slots, np.int32)) for _ in range(2))
        parts: list[dict[str, npt.NDArray[Any]]] = []
        places: list[tuple[int, int, npt.NDArray[np.intp] | None]] = []  # number of trials, first line, lines
        with ThreadPoolExecutor(2, "evenscore-ids") as pool:
            both = pool.map if large else map
            for data, block in _in_threads(parser.parse, first, stream):
                block = block or parser.parse_lines(data, line)
                rows, cols = both(_Ids.encode, (enroll, test), (block.enroll, block.test))
                parts.append({ENROLL: rows, TEST: cols, **block.numbers})
                places.append((len(block.enroll), line, block.lines))
                line += block.n_lines
    if not enroll.index:
        raise FileError(path, "there are no trials in it; give a file with at least one")
    whole: dict[str, Any] = {role: np.concatenate([part.pop(role) for part in parts]) for role in list(parts[0])}
    left, right = (Side.trusted(np.array(list(side.index), object)) for side in (enroll, test))
    rows, cols, scores, labels = (whole.pop(role, None) for role in (ENROLL, TEST, SCORE, LABEL))
    columns = {role.removeprefix(COLUMN): values for role, values in whole.items()}
    trials = TrialList.trusted(left, right, rows, cols, scores, labels, columns)
    if repeated_pair(trials) is None:
        return trials
    lines = [start + (np.arange(size) if at is None else at) for size, start, at in places]
    return _without_repeats(trials, np.concatenate(lines), path, options)


def _in_threads(
    parse: Callable[[bytes], _Block | None], first: bytes, stream: BinaryIO
) -> Iterator[tuple[bytes, _Block | None]]:
    """Parse chunks of whole lines in threads (polars releases the interpreter lock), and yield them in order."""
    data = stream.read(CHUNK_SIZE)
    if not data:  # a small file is parsed before threads have started
        yield first, parse(first)
        return
    waiting: deque[tuple[bytes, Future[_Block | None]]] = deque()
    with ThreadPoolExecutor(_AHEAD, "evenscore-read") as pool:
        waiting.append((first, pool.submit(parse, first)))
        while waiting:
            if data:
                data += stream.readline(LONGEST_LINE + 1) if not data.endswith(b"\n") else b""
                waiting.append((data, pool.submit(parse, data)))
                data = stream.read(CHUNK_SIZE)
            if not data or len(waiting) > _AHEAD:
                oldest, block = waiting.popleft()
                yield oldest, block.result()


class _Parser:
    """Parses the chunks of one file."""

    def __init__(self, path: PathLike, columns: tf.Columns, options: ReadOptions) -> None:
        import polars as pl

        self.path, self.columns, self.options = path, columns, options
        self.skip_missing = options.missing == "skip"
        self.numbers = [role == SCORE or role.startswith(COLUMN) for role in columns.roles]
        self.schema = {str(at): pl.Float64 if number else pl.String for at, number in enumerate(self.numbers)}

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
        block = self._block(clean) if b"\r" not in clean else None
        n_lines = data.count(b"\n") + (not data.endswith(b"\n"))
        if block is None or block.n_lines == n_lines:
            return block
        filled = np.array([i for i, line in enumerate(data.split(b"\n")) if line.strip(b" \t\r")], np.intp)
        return replace(block, n_lines=n_lines, lines=filled if block.lines is None else filled[block.lines])

    def _block(self, data: bytes) -> _Block | None:
        """Return the trials as polars reads them, None if it cannot, or if a line has too few columns."""
        import polars as pl

        roles, separator = self.columns.roles, self.columns.separator
        absent = self.skip_missing or any(role.startswith(COLUMN) or role == tf.IGNORED for role in roles)
        try:
            frame = pl.read_csv(
                data or b"\n",
                has_header=False,
                separator=separator,
                quote_char='"' if separator == "," else None,
                schema=self.schema,
                null_values=list(tf.ABSENT) if absent else None,
                raise_if_empty=False,
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
        import polars as pl

        found = {role: frame.to_series(at) for at, role in enumerate(self.columns.roles) if role != tf.IGNORED}
        required = {ENROLL, TEST, PAIR, REAL_ID} | (set() if self.skip_missing else {SCORE})
        required |= set() if self.columns.names else {LABEL}
        if any(found[role].null_count() for role in required & found.keys()):
            return None
        if PAIR in found:
            enroll, test, third = found[PAIR].str.split_exact("*", 2).struct.unnest().iter_columns()
            if test.null_count() or third.null_count() < len(third) or (enroll == "").any() or (test == "").any():
                return None
        else:
            enroll, test = found[ENROLL], found[TEST]
            if self.columns.separator == "," and ((enroll == "").any() or (test == "").any()):  # in quotes
                return None
        if SIDE in found:
            other = found[SIDE].fill_null("a").str.to_lowercase() != "a"
            test = pl.select(pl.when(other).then(test + ":" + found[SIDE]).otherwise(test)).to_series()
        columns = {role: found[role].fill_null(np.nan) for role in found if found[role].dtype.is_float()}
        if REAL_ID in found:
            columns[LABEL] = (enroll == found[REAL_ID]).cast(pl.Int8)
        elif LABEL in found:
            words = found[LABEL].unique()
            labels = [UNKNOWN if word is None else tf.LABEL_WORDS.get(word.strip(" ").lower()) for word in words]
            if None in labels:
                return None
            columns[LABEL] = found[LABEL].replace_strict(words, labels, return_dtype=pl.Int8)
        numbers = {role: values.to_numpy() for role, values in columns.items()}
        block = _Block(enroll, test, numbers, len(frame))
        scores, infinite = numbers.get(SCORE, np.zeros(0)), self.options.infinite == "accept"
        if first_bad_score(scores, infinite=infinite, missing=False) is None:
            return block
        keep = ~np.isnan(scores) if infinite else np.isfinite(scores)
        if not self.skip_missing or first_bad_score(scores[keep], infinite=infinite, missing=False) is not None:
            return None
        numbers, lines = {role: values[keep] for role, values in numbers.items()}, np.flatnonzero(keep)
        return replace(block, enroll=enroll.filter(keep), test=test.filter(keep), numbers=numbers, lines=lines)

    def parse_lines(self, data: bytes, first_line: int) -> _Block:
        """Return the trials of a chunk line by line; the first line that is wrong is named."""
        import polars as pl

        rows, filled, lines = [], [], data.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines):
            try:
                row = self._line(line)
            except ValueError as error:
                raise FileError(self.path, str(error), line=first_line + number) from None
            if row is not None:
                rows.append(row)
                filled.append(number)
        block = self._trials(pl.DataFrame(rows, schema=self.schema, orient="row"))
        if block is None:
            raise FileError(self.path, f"the lines from {first_line} on are not valid trials", line=first_line)
        at = np.array(filled, np.intp)
        return replace(block, n_lines=len(lines), lines=at if block.lines is None else at[block.lines])

    def _line(self, line: bytes) -> list[str | float | None] | None:
        """Return the values of one line, None for a blank one; a ValueError says what is wrong with it."""
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
        if not text.strip(" \t"):
            return None
        roles, fields = self.columns.roles, tf.split_line(text, self.columns.separator)
        if len(fields) != len(roles):
            raise ValueError(f"expected {len(roles)} columns ({self.columns}), found {len(fields)}")
        return [self._value(*one) for one in zip(roles, self.numbers, fields, strict=True)]

    def _value(self, role: str, is_number: bool, text: str) -> str | float | None:
        """Return one value, None if it is absent and may be; a ValueError says what is wrong with it."""
        bare = text.strip(" ")
        if role in (ENROLL, TEST, REAL_ID) and not text:
            raise ValueError(f"the id of the {'enrolment' if role == ENROLL else 'test'} is empty")
        if role == PAIR and (text.count("*") != 1 or text.startswith("*") or text.endswith("*")):
            raise ValueError(f"expected two ids joined by one '*', found {text!r}")
        if not is_number and role not in (SIDE, LABEL):
            return text
        required = not self.skip_missing if role == SCORE else role == LABEL and not self.columns.names
        if bare in tf.ABSENT and not required:
            return None
        if role == LABEL and bare.lower() not in tf.LABEL_WORDS:
            raise ValueError(f"label {text!r} is not known; use target and nontarget, tgt and imp, 1 and 0")
        if not is_number:
            return bare
        remedy = "drop the trial, or read it with `missing`='skip'"
        if bare in tf.ABSENT:
            raise ValueError(f"score {text!r} is absent; {remedy}")
        if not tf.NUMBER.fullmatch(bare):
            hint = "; write a point in place of the comma" if "," in text else ""
            raise ValueError(f"{role.removeprefix(COLUMN)} {text!r} is not a number{hint}")
        number = float(bare)
        if role != SCORE or abs(number) <= LARGEST_SCORE or (math.isinf(number) and self.options.infinite == "accept"):
            return number
        if math.isfinite(number):
            raise ValueError(f"score {text!r} is above {LARGEST_SCORE:g} in magnitude; scale the scores")
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
    data = data.replace(b"\r\n", b"\n")
    if separator == " ":
        data = data.replace(b"\t", b" ")
        while b"  " in data:
            data = data.replace(b"  ", b" ")
        data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")
    while b"\n\n" in data:
        data = data.replace(b"\n\n", b"\n")
    return data.removeprefix(b"\n")


def _without_repeats(trials: TrialList, lines: npt.NDArray[np.intp], path: PathLike, options: ReadOptions) -> TrialList:
    """Drop repeats with the same values if that is wished, or name the line of a repeat."""
    codes = trials.rows.astype(np.int64) * len(trials.test) + trials.cols
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    is_first = first[inverse] == np.arange(len(codes))
    repeats, earlier = np.flatnonzero(~is_first), first[inverse][~is_first]
    same = np.ones(len(repeats), bool)
    for array in (trials.scores, trials.labels, *trials.columns.values()):
        if array is not None:
            same &= (array[repeats] == array[earlier]) | (np.isnan(array[repeats]) & np.isnan(array[earlier]))
    if options.duplicates == "drop" and same.all():
        return trials.select(is_first)
    at = int(np.argmin(same)) if options.duplicates == "drop" else 0
    how = ("other values; keep one", "the same values; remove it, or read it with `duplicates`='drop'")[int(same[at])]
    problem = f"the trial {trials.pair(int(repeats[at]))} is in line {lines[earlier[at]]} already, with {how}"
    raise FileError(path, problem, line=int(lines[repeats[at]]))
