"""Metadata: a table with a header, whose rows are about enrolments, tests or trials (CSV, TSV or parquet)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.parquet import ID_NAMES, read_text_columns
from evenscore.files.streams import PathLike, atomic_output, open_input, reading, spooled
from evenscore.files.text.chunks import text_lines
from evenscore.files.text.layouts import ENROLL_NAMES, TEST_NAMES, is_number, split_quoted
from evenscore.tables.ids import first_repeat

__all__ = ["Metadata", "read_metadata", "write_metadata"]

_PARQUET = b"PAR1"


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """Columns of text, and which of them hold ids.

    Attributes
    ----------
    path
        The file.
    columns
        Every column by name; absent values are ''.
    ids
        Names of the columns with ids: one, or those of the enrolment and of the test where rows are about trials.
    side
        ``"enroll"`` or ``"test"`` where the name of the only id column tells, else None.
    """

    path: str
    columns: Mapping[str, Sequence[str]] = field(repr=False)
    ids: tuple[str] | tuple[str, str]
    side: Literal["enroll", "test"] | None = None


def read_metadata(path: PathLike) -> Metadata:
    r"""Read a table about enrolments, tests or trials.

    The first line names the columns, which are separated by commas, tabs or spaces. Ids stand in a column that is
    named like an enrolment and one that is named like a test (enroll, test; modelid, segmentid; ...), then a row is
    about a trial; in a column that is called ``id`` (utt, key, file, ...), then it may be about either side; in a
    column of one side; or, where there is no such name, in the first column.

    A file of two columns, ids and numbers, needs no header: its ids are called ``id``, its numbers as Kaldi names such
    files, ``dur`` in ``utt2dur``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "meta.csv"
    >>> _ = path.write_text("id,gender\nann,f\nbob,m\n")
    >>> metadata = read_metadata(path)
    >>> metadata.ids, metadata.columns["gender"]
    (('id',), ['f', 'm'])
    """
    with spooled(path) as local:
        with open_input(local) as stream, reading(path):
            start = stream.read(len(_PARQUET))
        columns = read_text_columns(local) if start == _PARQUET else _read_lines(local, path)
    plain = {name.lower(): name for name in reversed(list(columns))}
    enroll, test, identity = (
        next((plain[name] for name in names if name in plain), None) for names in (ENROLL_NAMES, TEST_NAMES, ID_NAMES)
    )
    about: dict[str, Any] = {"path": str(path), "columns": columns}
    if enroll is not None and test is not None:
        return Metadata(**about, ids=(enroll, test))
    if identity is None and enroll is not None:
        return Metadata(**about, ids=(enroll,), side="enroll")
    if identity is None and test is not None:
        return Metadata(**about, ids=(test,), side="test")
    return Metadata(**about, ids=(identity or next(iter(columns)),))


def write_metadata(columns: Mapping[str, npt.NDArray[Any]], path: PathLike) -> None:
    """Write a table with a header that `read_metadata` reads: CSV, or TSV by its name; NaN is left blank."""
    import polars as pl

    frame = pl.DataFrame({name: values.tolist() for name, values in columns.items()}).fill_nan(None)
    separator = "\t" if str(path).endswith(".tsv") else ","
    with atomic_output(path) as stream:
        stream.write(frame.write_csv(separator=separator).encode())


def _read_lines(local: PathLike, path: PathLike) -> dict[str, list[str]]:
    rows = _rows(local, path)
    try:
        first = next(rows)
    except StopIteration:
        raise FileError(path, "the file is empty; there is nothing to read") from None
    names = first[1]
    if len(names) == 2 and is_number(names[1]):  # as in utt2dur
        names, rows = ["id", Path(path).name.split(".")[0].removeprefix("utt2")], chain([first], rows)
    repeated = first_repeat(names)
    if repeated is not None or "" in names:
        problem = "has a column without a name" if repeated is None else f"has {repeated!r} twice"
        raise FileError(path, f"the header {problem}; name every column once", line=1)
    columns: dict[str, list[str]] = {name: [] for name in names}
    for number, row in rows:
        if len(row) != len(names):
            raise FileError(path, f"expected {len(names)} columns ({' '.join(names)}), found {len(row)}", line=number)
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    return columns


def _rows(local: PathLike, path: PathLike) -> Iterator[tuple[int, list[str]]]:
    """Split every line that is not blank; the first one tells what separates the columns."""
    separator: str | None = None
    for number, line in text_lines(local, "a table with a header"):
        if not line.strip():
            continue
        if separator is None:
            separator = next((mark for mark in "\t,;" if mark in line), " ")
        try:
            fields = line.split() if separator == " " else split_quoted(line, separator)
        except ValueError as error:
            raise FileError(path, str(error), line=number) from None
        yield number, [value.strip() for value in fields]
