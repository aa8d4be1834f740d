"""From a table to a text file, some hundred thousand lines at a time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, atomic_output
from evenscore.files.text.layouts import ENROLL, LABEL, LAYOUTS, MEASURE, PAIR, REAL, SCORE, SKIP, TEST, Columns
from evenscore.files.text.line_ids import refuse_odd_ids
from evenscore.tables import TARGET, UNKNOWN, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids

if TYPE_CHECKING:
    import polars as pl

__all__ = ["write_trials_text"]

_LINES_AT_ONCE = 1 << 18


def write_trials_text(table: ScoreMatrix | TrialList, path: PathLike, format: str) -> None:
    """Write trials; a score matrix is written in long form, without its missing pairs."""
    try:
        columns = LAYOUTS[format].writes(table if isinstance(table, TrialList) else _as_trials(table))
        _check_ids((*table.enroll_ids, *table.test_ids), path, columns)
        if isinstance(table, TrialList) and LABEL in columns.roles:
            _check_labels(table, columns, format)
    except InputError as error:
        raise FileError(path, str(error)) from None
    ids = _Ids(table.enroll_ids, table.test_ids)
    with atomic_output(path) as stream:
        if columns.names:
            stream.write((columns.separator.join(columns.names) + "\n").encode())
        for part in _parts(table):
            stream.write(_lines(part, ids, columns))


@dataclass(frozen=True)
class _Part:
    """Some of the trials, one after the other."""

    enroll_index: npt.NDArray[Any]
    test_index: npt.NDArray[Any]
    scores: npt.NDArray[Any] | None
    labels: npt.NDArray[np.int8] | None = None
    measures: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)


class _Ids:
    """The ids of both sides as polars holds them."""

    def __init__(self, enroll_ids: Ids, test_ids: Ids) -> None:
        import polars as pl

        self.enroll = pl.Series(enroll_ids.tolist(), dtype=pl.String)
        self.test = pl.Series(test_ids.tolist(), dtype=pl.String)


def _parts(table: ScoreMatrix | TrialList) -> Iterator[_Part]:
    if isinstance(table, ScoreMatrix):
        yield from _matrix_parts(table)
        return
    for start in range(0, len(table), _LINES_AT_ONCE):
        at = slice(start, start + _LINES_AT_ONCE)
        yield _Part(
            table.enroll_index[at],
            table.test_index[at],
            None if table.scores is None else table.scores[at],
            None if table.labels is None else table.labels[at],
            {name: values[at] for name, values in table.measures.items()},
        )


def _matrix_parts(matrix: ScoreMatrix) -> Iterator[_Part]:
    n_rows, n_columns = matrix.shape
    step = max(1, _LINES_AT_ONCE // max(n_columns, 1))
    for start in range(0, n_rows, step):
        scores = matrix.scores[start : start + step]
        rows, columns = np.nonzero(~np.isnan(scores))
        yield _Part(rows + start, columns, scores[rows, columns])


def _lines(part: _Part, ids: _Ids, columns: Columns) -> memoryview:
    import polars as pl

    series = [_series(role, part, ids, columns).alias(str(place)) for place, role in enumerate(columns.roles)]
    buffer = io.BytesIO()  # polars turns the errors of a full disk into its own, so the stream is written to below
    pl.DataFrame(series).write_csv(
        buffer,
        include_header=False,
        separator=columns.separator,
        quote_style="necessary" if columns.quoted else "never",
        null_value=columns.absent,
    )
    return buffer.getbuffer()


def _series(role: str, part: _Part, ids: _Ids, columns: Columns) -> pl.Series:
    import polars as pl

    if role == ENROLL:
        return ids.enroll.gather(part.enroll_index)
    if role == TEST:
        return ids.test.gather(part.test_index)
    if role == PAIR:
        return ids.enroll.gather(part.enroll_index) + "*" + ids.test.gather(part.test_index)
    if role == SCORE:
        return pl.Series(part.scores)
    if role == SKIP:
        return pl.repeat(None, len(part.enroll_index), dtype=pl.String, eager=True)
    if role.startswith(MEASURE):
        return pl.Series(part.measures[role.removeprefix(MEASURE)]).fill_nan(None)
    labels = pl.Series(part.labels)
    if role == REAL:  # Bob compares two identities; any other name says that they differ
        enroll = ids.enroll.gather(part.enroll_index)
        return pl.select(pl.when(labels == TARGET).then(enroll).otherwise("not-" + enroll)).to_series()
    words = pl.Series([None, *columns.words], dtype=pl.String)
    return words.gather(labels.cast(pl.Int32) - UNKNOWN)


def _as_trials(matrix: ScoreMatrix) -> TrialList:
    """Return an empty list with scores, which stands for the matrix where only its columns matter."""
    return TrialList([], [], [], [], scores=matrix.scores.reshape(-1)[:0])


def _check_ids(ids: Iterable[str], path: PathLike, columns: Columns) -> None:
    """Refuse ids that could not be read again."""
    forbidden = ("" if columns.quoted else "\t") + (" " if columns.separator == " " else "")
    marks = "spaces, tabs or line ends" if columns.separator == " " else "tabs or line ends"
    if PAIR in columns.roles:
        forbidden, marks = forbidden + "*", marks + " or '*'"
    refuse_odd_ids(ids, path, forbidden, marks, "rename it, or write csv, parquet or npz")


def _check_labels(trials: TrialList, columns: Columns, name: str) -> None:
    if trials.labels is None or columns.names or trials.n_unknown == 0:
        return
    pair = trials.pair(int(np.argmax(trials.labels == UNKNOWN)))
    raise InputError(f"the trial {pair} has no label, but the format {name} needs one; drop it, or write csv")
