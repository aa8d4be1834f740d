"""The words of the text formats: what a column can mean, how labels are spelt, how many columns a sample has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from evenscore.tables import NONTARGET, TARGET

__all__ = [
    "ABSENT",
    "ENROLL",
    "LABEL",
    "LABEL_WORDS",
    "MEASURE",
    "PAIR",
    "REAL",
    "SCORE",
    "SIDE",
    "SKIP",
    "TEST",
    "Columns",
    "Sample",
    "is_label",
    "is_number",
]

# What a column can hold. A measure's role is MEASURE followed by its name.
ENROLL, TEST, SCORE, LABEL, SKIP, MEASURE = "enroll", "test", "score", "label", "ignored", "measure:"
PAIR = "enroll*test"  #: both ids in one column (ESPnet)
REAL = "real id"  #: the test's true identity; a target if it equals the enrolment (Bob)
SIDE = "side"  #: channel of a recording (NIST)

ABSENT = ("", "-", "NA", "N/A", "null", "None")  #: how other tools write a number that is not there

_TARGET_WORDS = ("target", "tgt", "tar", "1", "+1", "true")
_NONTARGET_WORDS = ("nontarget", "non-target", "nontgt", "non", "imp", "impostor", "0", "-1", "false")
LABEL_WORDS = dict.fromkeys(_TARGET_WORDS, TARGET) | dict.fromkeys(_NONTARGET_WORDS, NONTARGET)

_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of one file: resolved from its first lines, or chosen for writing."""

    roles: tuple[str, ...]
    separator: str = " "  #: a space stands for any run of spaces and tabs
    names: tuple[str, ...] = ()  #: the names in the header line, if there is one
    quoted: bool = False  #: whether a field can stand in double quotes
    words: tuple[str, str] = ("nontarget", "target")  #: how labels are written
    absent: str = "nan"  #: how a number that is not there is written

    def __str__(self) -> str:
        shown = self.names or tuple(role.removeprefix(MEASURE) for role in self.roles)
        return {" ": " ", "\t": " <tab> ", ",": ","}[self.separator].join(shown)


@dataclass(frozen=True)
class Sample:
    """The first lines of a file, blank lines left out."""

    lines: Sequence[str]
    numbers: Sequence[int]  #: of the lines, counted from 1
    rows: Sequence[Sequence[str]] = field(init=False)  #: split at spaces and tabs
    width: int = field(init=False)  #: the most frequent number of columns

    def __post_init__(self) -> None:
        rows = [line.replace("\t", " ").split(" ") for line in self.lines]
        rows = [[text for text in row if text] for row in rows]
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "width", Counter(map(len, rows)).most_common(1)[0][0] if rows else 0)

    def column(self, place: int) -> list[str]:
        """Return one column of the rows that have the usual number of columns."""
        return [row[place] for row in self.rows if len(row) == self.width]

    def first(self, fits: Callable[[Sequence[str]], bool]) -> int:
        """Return the number of the first line whose columns are like this."""
        return next(number for number, row in zip(self.numbers, self.rows, strict=True) if fits(row))

    def mostly_numbers(self, place: int) -> bool:
        """Tell whether at least half of a column are numbers; a few bad lines are reported later, by line."""
        return _mostly(map(is_number, self.column(place)))

    def mostly_labels(self, place: int) -> bool:
        """Tell whether at least half of a column are labels."""
        return _mostly(map(is_label, self.column(place)))

    def only_binary(self, place: int) -> bool:
        """Tell whether a column has nothing but 0, 1 and -1, which can be labels as well as scores."""
        return {text.lstrip("+") for text in self.column(place)} <= {"0", "1", "-1"}


def is_number(text: str) -> bool:
    """Tell whether a text is a number, nan and inf included."""
    return _NUMBER.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Tell whether a text is one of the known labels."""
    return text.lower() in LABEL_WORDS


def _mostly(flags: Iterable[bool]) -> bool:
    values = list(flags)
    return bool(values) and 2 * sum(values) >= len(values)
