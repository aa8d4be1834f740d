"""Parse a chunk of clean lines with polars; anything odd in it is left to `careful`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.files.registry import ReadOptions
from evenscore.files.text.chunks import Block, CodedIds, filled_lines, squeezed
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
)
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

if TYPE_CHECKING:
    import polars as pl

__all__ = ["lexicon", "parse_fast"]

_NOT_KNOWN_WORD = -2
_NOBODY = CodedIds([], np.zeros(0, dtype=np.int32))


def lexicon() -> Any:
    """Return what numbers ids alike in all chunks that it is given with; None if this polars has no such thing.

    It is a series, as numbers are forgotten when no series with such categories is left.
    """
    import polars as pl

    return pl.Series([""], dtype=pl.Categorical(pl.Categories.random())) if hasattr(pl, "Categories") else None


def parse_fast(data: bytes, columns: Columns, options: ReadOptions, ids: Any = None) -> Block | None:
    """Return the trials of a chunk, or None if any line of it needs a closer look; ``ids`` is a `lexicon`."""
    if data[:1].isspace() and not data.strip(b" \t\r\n"):
        return Block(enroll=_NOBODY, test=_NOBODY, n_lines=data.count(b"\n") + (not data.endswith(b"\n")))
    if b"\0" in data or not (data.isascii() or _is_utf8(data)):
        return None
    if _looks_tidy(data, columns.separator):
        block = _parse(data, columns, options, ids)
        if block is not None:
            return replace(block, n_lines=len(block) if block.lines is None else block.n_lines)
    clean = squeezed(data, columns.separator)
    if b"\r" in clean:
        return None
    block = _parse(clean, columns, options, ids)
    return None if block is None else _numbered_as(data, block)


def _looks_tidy(data: bytes, separator: str) -> bool:
    """Tell whether it is worth while to try the lines as they are; two blanks in a row are looked for at the start."""
    start = data[:4096]
    if separator == " " and (b"\t" in data or b"  " in start or b" \n" in start):
        return False
    return b"\r" not in data and b"\n\n" not in start and not start.startswith(b"\n")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbered_as(data: bytes, block: Block) -> Block:
    """Return the block with the line numbers of the original chunk, where blank lines count."""
    filled = filled_lines(data)
    if filled.all():
        return replace(block, n_lines=len(filled))
    lines = np.flatnonzero(filled)
    return replace(block, lines=lines if block.lines is None else lines[block.lines], n_lines=len(filled))


def _parse(data: bytes, columns: Columns, options: ReadOptions, ids: Any) -> Block | None:
    skip_missing = options.missing == "skip"
    frame = _frame(data, columns, may_lack_scores=skip_missing)
    if frame is None:
        return None
    by_role = {role: frame.to_series(place) for place, role in enumerate(columns.roles) if role != SKIP}
    required = {ENROLL, TEST, PAIR, REAL} | (set() if skip_missing else {SCORE}) | (set() if columns.names else {LABEL})
    if any(by_role[role].null_count() for role in required & by_role.keys()):
        return None
    sides, labels = _sides(by_role, ids), _labels(by_role)
    if sides is None or (labels is not None and (labels == _NOT_KNOWN_WORD).any()):
        return None
    numbers = {
        role: series.fill_null(np.nan).to_numpy()
        for role, series in by_role.items()
        if role == SCORE or role.startswith(MEASURE)
    }
    scores = numbers.pop(SCORE, None)
    block = Block(
        enroll=sides[0],
        test=sides[1],
        scores=scores,
        labels=labels,
        measures={role.removeprefix(MEASURE): values for role, values in numbers.items()},
        n_lines=len(frame),
    )
    usable = None if scores is None else options.usable(scores)
    if usable is None or usable.all():
        return block
    return block.select(usable) if skip_missing else None


def _frame(data: bytes, columns: Columns, *, may_lack_scores: bool) -> pl.DataFrame | None:
    """Return the columns as polars reads them, None if it cannot, or if a line has too few of them."""
    import polars as pl

    schema = {
        str(place): pl.Float64 if role == SCORE or role.startswith(MEASURE) else pl.String
        for place, role in enumerate(columns.roles)
    }
    absent = may_lack_scores or any(role.startswith(MEASURE) or role == SKIP for role in columns.roles)
    try:
        frame = pl.read_csv(
            data,
            has_header=False,
            separator=columns.separator,
            quote_char='"' if columns.quoted else None,
            schema=schema,
            null_values=list(ABSENT) if absent else None,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    quotes = columns.quoted and b'"' in data
    if quotes and len(frame) != data.count(b"\n") + (not data.endswith(b"\n")):
        return None  # a line end within quotes
    if frame.width and frame.to_series(-1).null_count():  # a value that is absent, or a line that is too short?
        separators = len(frame) * (len(columns.roles) - 1)
        if quotes or data.count(columns.separator.encode()) != separators:
            return None
    return frame


def _sides(by_role: dict[str, pl.Series], ids: Any) -> tuple[CodedIds, CodedIds] | None:
    """Return the ids of both sides as numbers."""
    import polars as pl

    if PAIR not in by_role:
        enroll, test = by_role[ENROLL], by_role[TEST]
        if SIDE in by_role:
            side = by_role[SIDE].fill_null("a")
            marked = pl.select(pl.when(side.str.to_lowercase() == "a").then(test).otherwise(test + ":" + side))
            test = marked.to_series()
        return _coded(enroll, ids), _coded(test, ids)
    parts = by_role[PAIR].str.split_exact("*", 2).struct.unnest()
    first, second, third = parts.iter_columns()
    if second.null_count() or third.null_count() < len(third) or (first == "").any() or (second == "").any():
        return None
    return _coded(first, ids), _coded(second, ids)


def _coded(series: pl.Series, ids: Any = None) -> CodedIds:
    import polars as pl

    series = series.cast(pl.Categorical if ids is None else ids.dtype)  # measured: quicker than to read them as such
    distinct = series.unique(maintain_order=True)
    codes = distinct.to_physical().to_numpy()
    if not len(codes):
        return _NOBODY
    low = int(codes.min())
    place = np.empty(int(codes.max()) - low + 1, dtype=np.int32)
    place[codes - low] = np.arange(len(codes), dtype=np.int32)
    index, names = place[series.to_physical().to_numpy() - low], distinct.cast(pl.String)
    return CodedIds(names.to_list(), index) if ids is None else CodedIds(names, index, codes)


def _labels(by_role: dict[str, pl.Series]) -> npt.NDArray[np.int8] | None:
    if REAL in by_role:
        return np.where((by_role[ENROLL] == by_role[REAL]).to_numpy(), TARGET, NONTARGET).astype(np.int8)
    if LABEL not in by_role:
        return None
    series = by_role[LABEL]
    known = series.drop_nulls()
    coded = _coded(known)
    words = np.array([LABEL_WORDS.get(name.lower(), _NOT_KNOWN_WORD) for name in coded.names] or [0], dtype=np.int8)
    labels = np.full(len(series), UNKNOWN, dtype=np.int8)
    labels[series.is_not_null().to_numpy()] = words[coded.index]
    return labels
