"""What is on the page, section by section, as records of plain text: nothing here knows of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Cell", "Column", "Content", "Contributions", "Model", "ResultRow", "Results", "System", "Table", "Tile"]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; the first cell of each row is the row's heading."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: bool = False  #: texts instead of numbers
    texts: int = 1  #: how many columns hold texts before those with numbers: 1, 2 or 4


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A figure in the table of results."""

    text: str
    value: str = ""  #: for sorting; empty if there is none
    range: str = ""
    mood: str = ""  #: "better", "worse" or nothing


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table of results."""

    title: str
    explanation: str
    sorted: bool = False


@dataclass(frozen=True, kw_only=True)
class ResultRow:
    """A method in the table of results."""

    name: str
    tag: str
    recommended: bool
    cells: Sequence[Cell]


@dataclass(frozen=True, kw_only=True)
class Results:
    """The table of results."""

    explanation: str
    caption: str
    columns: Sequence[Column]
    rows: Sequence[ResultRow]
    differences: Table | None


@dataclass(frozen=True, kw_only=True)
class Tile:
    """A large figure of the summary."""

    name: str
    value: str
    before: str
    change: str
    better: bool


@dataclass(frozen=True, kw_only=True)
class System:
    """How a method is drawn: the number of its colour in the style sheet, and its line."""

    name: str
    colour: int
    dash: str
    raw: bool
    best: bool


@dataclass(frozen=True, kw_only=True)
class Model:
    """What a score model learned."""

    name: str
    sentences: Sequence[str]
    table: Table


@dataclass(frozen=True, kw_only=True)
class Contributions:
    """What each feature adds to the LLRs of some trials."""

    trials: Sequence[str]
    description: str
    table: Table


@dataclass(frozen=True, kw_only=True)
class Content:
    """The whole page."""

    title: str
    origin: str
    verdict: str
    tiles: Sequence[Tile]
    warnings: Sequence[str]
    results: Results
    methods: Table
    failed: Table | None
    systems: Sequence[System]
    det: Table
    det_description: str
    bayes: Table
    bayes_description: str
    histograms: Table | None
    histograms_description: str
    conditions: Table | None
    condition_details: Table | None
    models: Sequence[Model]
    contributions: Contributions | None
    cohorts: Sequence[Table]
    cohort_sentences: Sequence[str]
    data: Sequence[Table]
    command: str
    versions: Table
    plots: dict[str, Any]  #: numbers for the scripts
