"""Writing trials and scores as lines of text."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import TARGET, UNKNOWN
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.files import text_columns as tc
from evenscore.files.streams import PathLike, atomic_output
from evenscore.files.text_columns import COLUMN, ENROLL, IGNORED, LABEL, PAIR, REAL_ID, SCORE, TEST

if TYPE_CHECKING:
    import polars as pl

__all__ = ["columns_to_write", "refuse_unwritable", "write"]

_LINES_AT_ONCE = 1 << 18
_LONGEST_ID = 4096  # characters: the first lines of a file must fit into the sample that decides on its format

#: Values of some trials by role; under ENROLL and TEST the positions of their ids.
_Part = dict[str, npt.NDArray[np.generic]]


def write(table: TrialList | ScoreMatrix, path: PathLike, format: str) -> None:
    """Write trials; a score matrix is written in long form, without its missing scores."""
    import polars as pl

    columns = columns_to_write(table, format)
    separators = {" ": " \t", "\t": "\t", ",": ""}[columns.separator] + ("*" if PAIR in columns.roles else "")
    refuse_unwritable((*table.enroll.ids, *table.test.ids), separators)
    enroll = pl.Series(table.enroll.ids.tolist(), dtype=pl.String)
    test = pl.Series(table.test.ids.tolist(), dtype=pl.String)
    with atomic_output(path) as stream:
        if columns.names:
            stream.write((columns.separator.join(columns.names) + "\n").encode())
        for part in _parts(table):
            ids = enroll.gather(part[ENROLL]), test.gather(part[TEST])
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


def _parts(table: TrialList | ScoreMatrix) -> Iterator[_Part]:
    """Yield some hundred thousand trials at a time."""
    if table.rows is not None:
        whole = {ENROLL: table.rows, TEST: table.cols, SCORE: table.scores, LABEL: table.labels}
        whole |= {COLUMN + name: values for name, values in table.columns.items()}
        for start in range(0, len(table.rows), _LINES_AT_ONCE):
            at = slice(start, start + _LINES_AT_ONCE)
            yield {role: values[at] for role, values in whole.items() if values is not None}
        return
    step = max(1, _LINES_AT_ONCE // max(len(table.test), 1))
    for start in range(0, len(table.enroll), step):
        scores = np.asarray(table.scores[start : start + step])
        rows, cols = np.nonzero(~np.isnan(scores))
        yield {ENROLL: rows + start, TEST: cols, SCORE: scores[rows, cols]}


def _series(role: str, part: _Part, enroll: pl.Series, test: pl.Series, columns: tc.Columns) -> pl.Series:
    """Return one column of text or numbers."""
    import polars as pl

    if role in (ENROLL, TEST):
        return enroll if role == ENROLL else test
    if role == PAIR:
        return enroll + "*" + test
    if role == IGNORED:
        return pl.repeat(None, len(enroll), dtype=pl.String, eager=True)
    if role == SCORE or role.startswith(COLUMN):
        values = pl.Series(part[role])
        return values if role == SCORE else values.fill_nan(None)
    labels = pl.Series(part[LABEL])
    if role == REAL_ID:  # Bob compares two identities; any other name says that they differ
        return pl.select(pl.when(labels == TARGET).then(enroll).otherwise("not-" + enroll)).to_series()
    return pl.Series([None, *columns.words], dtype=pl.String).gather(labels.cast(pl.Int32) - UNKNOWN)


def columns_to_write(table: TrialList | ScoreMatrix, format: str) -> tc.Columns:
    """Return the columns that a format has for some trials; what it needs and they lack is an error."""
    known = [] if table.scores is None else [SCORE]
    known += [] if table.labels is None else [LABEL]
    further = [COLUMN + name for name in table.columns]
    if format in ("csv", "tsv"):
        _refuse_names(table.columns)
        names = (ENROLL, TEST, *known, *table.columns)
        separator = "\t" if format == "tsv" else ","
        return tc.Columns(roles=(ENROLL, TEST, *known, *further), separator=separator, names=names, absent="")
    if format == "nist":
        names = ("modelid", "segmentid", *({SCORE: "LLR", LABEL: "targettype"}[role] for role in known[:1]))
        return tc.Columns(roles=(ENROLL, TEST, *known[:1]), separator="\t", names=names, absent="")
    if format == "asvspoof5":
        roles = {name: COLUMN + name if name in table.columns else IGNORED for name in tc.ASVSPOOF_NAMES[2:]}
        unused = [name for name, role in roles.items() if role == IGNORED]
        if not unused:
            raise InputError("the format asvspoof5 has three scores, but all are columns here; rename one of them")
        roles[unused[-1]] = SCORE
        kept = (ENROLL, TEST, *roles.values())
        columns = tc.Columns(roles=kept, separator="\t", names=tc.ASVSPOOF_NAMES, absent="-")
    elif format == "wespeaker-factors":
        if not further:
            raise InputError("the format wespeaker-factors needs columns, but these trials have none; write wespeaker")
        columns = tc.Columns(roles=(ENROLL, TEST, LABEL, SCORE, *further))
    else:  # the longest line for which the trials have the values
        there = {ENROLL, TEST, PAIR, *known, *further, *([REAL_ID] if LABEL in known else [])}
        possible = [roles for roles in tc.LINES[format] if there.issuperset(roles)] or tc.LINES[format][:1]
        longest = max(possible, key=lambda roles: (SCORE in roles, len(roles)))
        words = ("nontarget", "target") if format in ("kaldi", "wespeaker") else ("0", "1")
        columns = tc.Columns(roles=longest, words=words)
    if SCORE in columns.roles and table.scores is None:
        raise InputError(f"the format {format} needs scores, but these trials have none; choose another format")
    if not {LABEL, REAL_ID} & {*columns.roles}:
        return columns
    if table.labels is None:
        raise InputError(f"the format {format} needs labels, but these trials have none; choose another format")
    if (table.labels == UNKNOWN).any():
        pair = table.to_trials().pair(int(np.argmax(table.labels == UNKNOWN)))
        raise InputError(f"the trial {pair} has no label, but the format {format} needs one; drop it, or write csv")
    return columns


def _refuse_names(names: Iterable[str]) -> None:
    """Refuse names of further columns that have a meaning of their own, or that a header cannot hold."""
    used = {*tc.ENROLL_NAMES, *tc.TEST_NAMES, *tc.SCORE_NAMES[:3], *tc.LABEL_NAMES, "side"}
    for name in names:
        if name.lower() in used or not name.strip() or any(mark in name for mark in ',"\t\r\n'):
            raise InputError(f"{name!r} cannot be the name of a further column; rename it")
        used.add(name.lower())


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
