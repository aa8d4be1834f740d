"""Parse a chunk line by line: slow, but it can say which line is wrong, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from evenscore.errors import FileError
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import PathLike
from evenscore.files.text.chunks import LONGEST_LINE, Block, CodedIds
from evenscore.files.text.layouts import (
    ABSENT,
    ENROLL,
    LABEL,
    LABEL_WORDS,
    MEASURE,
    PAIR,
    REAL,
    SCORE,
    SIDE,
    SKIP,
    TEST,
    Columns,
    is_number,
    split_quoted,
)
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

__all__ = ["parse_carefully"]


class _NoScoreError(Exception):
    """A trial without a score, to be left out."""


def parse_carefully(data: bytes, columns: Columns, options: ReadOptions, path: PathLike, first_line: int) -> Block:
    """Return the trials of a chunk whose first line has this number, or name the first line that is wrong."""
    reader = _Lines(columns, options)
    lines = data.removesuffix(b"\n").split(b"\n")
    place = 0
    try:
        for place, line in enumerate(lines):
            reader.add(place, line)
    except ValueError as error:
        raise FileError(path, str(error), line=first_line + place) from None
    return reader.block(len(lines))


@dataclass
class _Lines:
    """The trials so far; every problem of a line is a ValueError."""

    columns: Columns
    options: ReadOptions
    rows: list[tuple[str, str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    measures: list[list[float]] = field(default_factory=list)

    def add(self, place: int, line: bytes) -> None:
        text = _decoded(line)
        if not text.strip(" \t"):
            return
        fields = self._fields(text)
        expected = len(self.columns.roles)
        if len(fields) != expected:
            s = "s" * (len(fields) != 1)
            raise ValueError(f"expected {expected} columns ({self.columns}), found {len(fields)} column{s}")
        values = {role: fields[at] for at, role in enumerate(self.columns.roles) if role != SKIP}
        try:
            score = self._score(values[SCORE]) if SCORE in values else None
        except _NoScoreError:
            return
        pair = _pair(values)
        label = self._label(values)
        measures = [_measure(role, text) for role, text in values.items() if role.startswith(MEASURE)]
        self.rows.append(pair)
        self.lines.append(place)
        if score is not None:
            self.scores.append(score)
        if label is not None:
            self.labels.append(label)
        self.measures.append(measures)

    def block(self, n_lines: int) -> Block:
        roles = self.columns.roles
        names = [role.removeprefix(MEASURE) for role in roles if role.startswith(MEASURE)]
        return Block(
            enroll=_coded(pair[0] for pair in self.rows),
            test=_coded(pair[1] for pair in self.rows),
            scores=np.array(self.scores, dtype=np.float64) if SCORE in roles else None,
            labels=np.array(self.labels, dtype=np.int8) if LABEL in roles or REAL in roles else None,
            measures={
                name: np.array([row[place] for row in self.measures], dtype=np.float64)
                for place, name in enumerate(names)
            },
            lines=np.array(self.lines, dtype=np.int64),
            n_lines=n_lines,
        )

    def _fields(self, text: str) -> list[str]:
        if self.columns.separator == " ":
            return [part for part in text.replace("\t", " ").split(" ") if part]
        return (split_quoted if self.columns.quoted else str.split)(text, self.columns.separator)

    def _score(self, text: str) -> float:
        text = text.strip(" ")
        if text in ABSENT:
            if self.options.missing == "skip":
                raise _NoScoreError
            raise ValueError(f"score {text!r} is absent; drop the trial, or read it with missing='skip'")
        if not is_number(text):
            hint = "; write a point in place of the comma" if "," in text else ""
            raise ValueError(f"score {text!r} is not a number{hint}")
        score = float(text)
        if math.isnan(score) or (math.isinf(score) and not self.options.accepts_infinite):
            if self.options.missing == "skip":
                raise _NoScoreError
            raise ValueError(f"score {text!r} is not finite; drop the trial, or read it with missing='skip'")
        return score

    def _label(self, values: dict[str, str]) -> int | None:
        if REAL in values:
            return TARGET if values[ENROLL] == values[REAL] else NONTARGET
        if LABEL not in values:
            return None
        word = values[LABEL].strip(" ")
        if self.columns.names and word in ABSENT:
            return UNKNOWN
        label = LABEL_WORDS.get(word.lower())
        if label is None:
            raise ValueError(f"label {word!r} is not known; use target and nontarget, tgt and imp, 1 and 0")
        return label


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


def _pair(values: dict[str, str]) -> tuple[str, str]:
    if PAIR in values:
        enroll, star, test = values[PAIR].partition("*")
        if not star or "*" in test:
            raise ValueError(f"expected two ids joined by one '*', found {values[PAIR]!r}")
    else:
        enroll, test = values[ENROLL], values[TEST]
    if not enroll or not test:
        raise ValueError(f"the id of the {'enrolment' if not enroll else 'test'} is empty")
    side = values.get(SIDE, "")
    return enroll, test if side.lower() == "a" or side in ABSENT else f"{test}:{side}"


def _measure(role: str, text: str) -> float:
    text = text.strip(" ")
    if text in ABSENT:
        return math.nan
    if not is_number(text):
        raise ValueError(f"{role.removeprefix(MEASURE)} {text!r} is not a number")
    return float(text)


def _coded(names: Iterator[str]) -> CodedIds:
    codes: dict[str, int] = {}
    index = np.fromiter((codes.setdefault(name, len(codes)) for name in names), dtype=np.int32)
    return CodedIds(list(codes), index)
