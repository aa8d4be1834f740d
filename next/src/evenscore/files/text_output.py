"""Writing trials and scores as lines of text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from evenscore.data.labels import TARGET, UNKNOWN
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.files.streams import PathLike, atomic_output
from evenscore.files.text_columns import (
    ASVSPOOF_NAMES,
    COLUMN,
    ENROLL,
    ENROLL_NAMES,
    IGNORED,
    LABEL,
    LABEL_NAMES,
    LINES,
    PAIR,
    REAL_ID,
    SCORE,
    SCORE_NAMES,
    TEST,
    TEST_NAMES,
    Columns,
)

if TYPE_CHECKING:
    import polars as pl

__all__ = ["columns_to_write", "refuse_unwritable", "write"]

_LINES_AT_ONCE = 1 << 18
_LONGEST_ID = 4096  # characters: the first lines of a file must fit into the sample that decides on its format


def write(table: TrialList | ScoreMatrix, path: PathLike, format: str) -> None:
    """Write trials; a score matrix is written in long form, without its missing scores."""
    import polars as pl

    columns = columns_to_write(table if isinstance(table, TrialList) else TrialList([], [], scores=[]), format)
    separators = {" ": " \t", "\t": "\t", ",": ""}[columns.separator] + ("*" if PAIR in columns.roles else "")
    refuse_unwritable((*table.enroll_ids, *table.test_ids), separators)
    enroll, test = (pl.Series(side.ids.tolist(), dtype=pl.String) for side in (table.enroll, table.test))
    with atomic_output(path) as stream:
        if columns.names:
            stream.write((columns.separator.join(columns.names) + "\n").encode())
        for part in _parts(table):
            ids = enroll.gather(part.rows), test.gather(part.cols)
            series = [_series(role, part, *ids, columns).alias(str(at)) for at, role in enumerate(columns.roles)]
            buffer = io.BytesIO()  # polars would turn the error of a full disk into one of its own
            pl.DataFrame(series).write_csv(
                buffer,
                include_header=False,
                separator=columns.separator,
                quote_style="necessary" if columns.separator == "," else "never",
                null_value=columns.absent,
            )
            stream.write(buffer.getbuffer())


def _parts(table: TrialList | ScoreMatrix) -> Iterator[TrialList]:
    """Yield some hundred thousand trials at a time."""
    if isinstance(table, TrialList):
        for start in range(0, len(table), _LINES_AT_ONCE):
            at = slice(start, start + _LINES_AT_ONCE)
            yield TrialList.trusted(
                table.enroll,
                table.test,
                table.rows[at],
                table.cols[at],
                None if table.scores is None else table.scores[at],
                None if table.labels is None else table.labels[at],
                {name: values[at] for name, values in table.columns.items()},
            )
        return
    step = max(1, _LINES_AT_ONCE // max(len(table.test), 1))
    for start in range(0, len(table.enroll), step):
        scores = np.asarray(table.scores[start : start + step])
        rows, cols = np.nonzero(~np.isnan(scores))
        yield TrialList.trusted(
            table.enroll, table.test, (rows + start).astype(np.int32), cols.astype(np.int32), scores[rows, cols]
        )


def _series(role: str, part: TrialList, enroll: pl.Series, test: pl.Series, columns: Columns) -> pl.Series:
    """Return one column of text or numbers."""
    import polars as pl

    if role in (ENROLL, TEST):
        return enroll if role == ENROLL else test
    if role == PAIR:
        return enroll + "*" + test
    if role == SCORE:
        return pl.Series(part.scores)
    if role == IGNORED:
        return pl.repeat(None, len(part), dtype=pl.String, eager=True)
    if role.startswith(COLUMN):
        return pl.Series(part.columns[role.removeprefix(COLUMN)]).fill_nan(None)
    labels = pl.Series(part.labels)
    if role == REAL_ID:  # Bob compares two identities; any other name says that they differ
        return pl.select(pl.when(labels == TARGET).then(enroll).otherwise("not-" + enroll)).to_series()
    return pl.Series([None, *columns.words], dtype=pl.String).gather(labels.cast(pl.Int32) - UNKNOWN)


def columns_to_write(trials: TrialList, format: str) -> Columns:
    """Return the columns that a format has for some trials; what it needs and the trials lack is an error."""
    if format in ("csv", "tsv"):
        return _table_columns(trials, "\t" if format == "tsv" else ",")
    if format == "nist":
        third = {} if trials.labels is None else {LABEL: "targettype"}
        third = third if trials.scores is None else {SCORE: "LLR"}
        names = ("modelid", "segmentid", *third.values())
        return Columns(roles=(ENROLL, TEST, *third), separator="\t", names=names, absent="")
    if format == "asvspoof5":
        roles = {name: COLUMN + name if name in trials.columns else IGNORED for name in ASVSPOOF_NAMES[2:]}
        unused = [name for name, role in roles.items() if role == IGNORED]
        if not unused:
            raise InputError("the format asvspoof5 has three scores, but all are columns here; rename one of them")
        roles[unused[-1]] = SCORE
        columns = Columns(roles=(ENROLL, TEST, *roles.values()), separator="\t", names=ASVSPOOF_NAMES, absent="-")
    else:
        columns = _line_columns(trials, format)
    if SCORE in columns.roles and trials.scores is None:
        raise InputError(f"the format {format} needs scores, but these trials have none; choose another format")
    if not {LABEL, REAL_ID} & {*columns.roles}:
        return columns
    if trials.labels is None:
        raise InputError(f"the format {format} needs labels, but these trials have none; choose another format")
    if (trials.labels == UNKNOWN).any():
        pair = trials.pair(int(np.argmax(trials.labels == UNKNOWN)))
        raise InputError(f"the trial {pair} has no label, but the format {format} needs one; drop it, or write csv")
    return columns


def _line_columns(trials: TrialList, format: str) -> Columns:
    """Return the columns of a format without a header: the longest line for which the trials have the values."""
    further = [COLUMN + name for name in trials.columns]
    if format == "wespeaker-factors":
        if not further:
            raise InputError("the format wespeaker-factors needs columns, but these trials have none; write wespeaker")
        return Columns(roles=(ENROLL, TEST, LABEL, SCORE, *further))
    known = {ENROLL, TEST, PAIR, *further}
    known |= set() if trials.scores is None else {SCORE}
    known |= set() if trials.labels is None else {LABEL, REAL_ID}
    possible = [roles for roles in LINES[format] if known.issuperset(roles)]
    roles = max(possible or LINES[format][:1], key=lambda roles: (SCORE in roles, len(roles)))
    return Columns(roles=roles, words=("nontarget", "target") if format in ("kaldi", "wespeaker") else ("0", "1"))


def _table_columns(trials: TrialList, separator: str) -> Columns:
    """Return the columns of a table with a header."""
    roles = [ENROLL, TEST]
    roles += [SCORE] if trials.scores is not None else []
    roles += [LABEL] if trials.labels is not None else []
    used = {*ENROLL_NAMES, *TEST_NAMES, *SCORE_NAMES[:3], *LABEL_NAMES, "side"}
    for name in trials.columns:
        if name.lower() in used or not name.strip() or any(mark in name for mark in ',"\t\r\n'):
            raise InputError(f"{name!r} cannot be the name of a further column; rename it")
        used.add(name.lower())
    further = [COLUMN + name for name in trials.columns]
    names = (*roles, *trials.columns)
    return Columns(roles=(*roles, *further), separator=separator, names=names, absent="")


def refuse_unwritable(ids: Iterable[str], separators: str) -> None:
    """Refuse ids that could not be read again: blank or very long, or with a separator, a line end or no valid text.

    Examples
    --------
    >>> refuse_unwritable(["a", "b c"], " ")
    Traceback (most recent call last):
        ...
    evenscore.errors.InputError: the id 'b c' cannot be written in this format; rename it, or write csv or npz
    """
    never = re.escape("\0\r\n" + separators) + "\ud800-\udfff"  # halves of characters, which UTF-8 does not have
    names = list(ids)
    if not re.search(f"[{never}\ufeff]", "".join(names)) and all(
        name.strip() and len(name) <= _LONGEST_ID for name in names
    ):
        return
    odd = re.compile(f"[{never}]|^\ufeff|^\\s*$")  # at the start of a file, the mark would be that of its encoding
    for name in names:
        if len(name) > _LONGEST_ID or odd.search(name):
            shown = name if len(name) <= 40 else name[:40] + "..."
            raise InputError(f"the id {shown!r} cannot be written in this format; rename it, or write csv or npz")
