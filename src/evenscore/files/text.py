"""The text formats: their columns, which of them a file has (from its first lines), and writing trials as lines.

`LINES` has the columns of the formats without a header: Kaldi, wespeaker, SpeechBrain, ESPnet, Bob, VoxCeleb. Lines are
read by `text_reader`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, atomic_output

if TYPE_CHECKING:
    import polars as pl

    from evenscore.data.score_matrix import ScoreMatrix
    from evenscore.data.trial_list import TrialList

# What a column holds. A further number per trial is COLUMN followed by its name.
ENROLL, TEST, SCORE, LABEL, IGNORED, COLUMN = "enroll", "test", "score", "label", "ignored", "column:"
PAIR = "enroll*test"  #: both ids in one column (ESPnet)
REAL_ID = "real id"  #: the test's true identity; a target if it equals the enrolment (Bob)
SIDE = "side"  #: channel of a recording (NIST)

ABSENT = ("", "-", "NA", "N/A", "null", "None")  #: how other programs write a number that is missing

#: The label of each word; spoofed tests belong to neither class.
LABEL_WORDS = {
    **dict.fromkeys(("target", "tgt", "tar", "1", "+1", "true"), TARGET),
    **dict.fromkeys(("nontarget", "non-target", "nontgt", "non", "imp", "impostor", "0", "-1", "false"), NONTARGET),
    **dict.fromkeys(("spoof", "spoofed"), UNKNOWN),
}

ENROLL_NAMES = (
    *("enroll", "enrol", "enroll_id", "enrol_id", "enrollment", "enrolment", "enrollment_id", "enrolment_id"),
    *("enroll_utt", "model", "modelid", "model_id", "spk", "claimed", "claimed_id", "ref"),
)
TEST_NAMES = (
    *("test", "test_id", "testid", "test_utt", "segment", "segmentid", "segment_id", "filename", "probe", "probe_id"),
)
SCORE_NAMES = ("score", "llr", "scores", "sasv-score", "asv-score", "cm-score")
LABEL_NAMES = ("label", "labels", "target", "targettype", "target_type", "trial_type", "key", "is_target")
ASVSPOOF_NAMES = ("spk", "filename", "cm-score", "asv-score", "sasv-score")
_MAGNITUDES = ("mag_e", "mag_t", "mu_e", "mu_t")
_FACTORS = tuple(f"{how}:{name}" for name in ("dur", "mag", "mu") for how in ("min", "max", "diff", "ratio"))

#: The columns of formats without a header; the first line of the right length that fits is taken.
LINES: dict[str, tuple[tuple[str, ...], ...]] = {
    "kaldi": ((ENROLL, TEST, SCORE), (ENROLL, TEST, LABEL), (ENROLL, TEST)),
    "wespeaker": (
        (ENROLL, TEST, SCORE, LABEL),
        (ENROLL, TEST, LABEL),
        (ENROLL, TEST, SCORE, LABEL, *(COLUMN + name for name in _MAGNITUDES)),
    ),
    "speechbrain": ((ENROLL, TEST, LABEL, SCORE),),
    "espnet": ((PAIR, SCORE, LABEL),),
    "bob": ((ENROLL, REAL_ID, TEST, SCORE),),
    "voxceleb": ((LABEL, ENROLL, TEST),),
}

#: nan and inf are numbers, too
NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)

_LINES_AT_ONCE = 1 << 18
_LONGEST_ID = 4096  # characters: the first lines of a file must fit into the sample that decides on its format

#: Values of some trials by role; under ENROLL and TEST the positions of their ids.
_Part = dict[str, npt.NDArray[np.generic]]


@dataclass(frozen=True, kw_only=True)
class Columns:
    """The columns of one file."""

    roles: tuple[str, ...]
    separator: str = " "  #: a space stands for any run of spaces and tabs; with commas, fields can be quoted
    names: tuple[str, ...] = ()  #: the names in the header line, if there is one
    words: tuple[str, str] = ("nontarget", "target")  #: how labels are written
    absent: str = "nan"  #: how a missing number is written

    def __str__(self) -> str:
        names = self.names or [role.removeprefix(COLUMN) for role in self.roles]
        return (" <tab> " if self.separator == "\t" else self.separator).join(names)


class Sample:
    """The first lines of a file that are not blank, split at spaces and tabs, and what their columns look like.

    A column is numeric (labelled) if at least half of it are numbers (labels): the bad lines among them are reported
    when they are read. It is binary if it has nothing but 0, 1 and -1, which can be labels as well as scores.
    """

    def __init__(self, head: bytes, size: int = 1 << 16) -> None:
        cut = head if len(head) <= size else head[: head.rfind(b"\n", 0, size) + 1] or head[:size]
        lines = enumerate(cut.decode(errors="replace").replace("\r", "").replace("\0", "").split("\n"), start=1)
        filled = {number: line for number, line in lines if line.strip(" \t")}
        self.lines, self.numbers = list(filled.values()), list(filled)
        self.rows = [[text for text in line.replace("\t", " ").split(" ") if text] for line in self.lines]
        self.width = Counter(map(len, self.rows)).most_common(1)[0][0] if self.rows else 0  #: the usual one
        self.columns = list(zip(*(row for row in self.rows if len(row) == self.width), strict=True))
        self.numeric = [2 * sum(map(bool, map(NUMBER.fullmatch, texts))) >= len(texts) for texts in self.columns]
        self.labelled = [2 * sum(t.lower() in LABEL_WORDS for t in texts) >= len(texts) for texts in self.columns]
        self.binary = [{text.lstrip("+") for text in texts} <= {"0", "1", "-1"} for texts in self.columns]
        first = self.lines[0] if self.lines else ""
        self.separator = "\t" if "\t" in first else "," if "," in first else " "
        names = tuple(name.strip() for name in split_line(first, self.separator, strict=False))
        plain = {name.lower() for name in names}
        self.header = names if plain & {*ENROLL_NAMES} and plain & {*TEST_NAMES} else ()  #: names that have both ids

    def fits(self, roles: Sequence[str]) -> bool:
        """Tell whether the lines can have these columns."""
        if len(roles) != self.width or (roles[0] == PAIR and any(text.count("*") != 1 for text in self.columns[0])):
            return False
        return all(
            self.labelled[at] if role == LABEL else self.numeric[at] or not (role == SCORE or role.startswith(COLUMN))
            for at, role in enumerate(roles)
        )


def split_line(line: str, separator: str, *, strict: bool = True) -> list[str]:
    """Split a line; with commas, a field can be quoted, and a ValueError says that the quotes do not match."""
    if separator == " ":
        return [text for text in line.replace("\t", " ").split(" ") if text]
    if separator != "," or '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], strict=strict))
    except (csv.Error, StopIteration) as error:
        raise ValueError(f"the quotes do not match ({error}); close each quoted field") from None


def columns_in(sample: Sample, path: PathLike, format: str, kind: str | None, score_column: str | None) -> Columns:
    """Return the columns of a file of a format, from its first lines; a file of another format is refused."""
    if format in LINES or format == "wespeaker-factors":
        n_factors = max(sample.width - 4, 1)  # twelve, or any other number of them
        names = _FACTORS if n_factors == len(_FACTORS) else [f"factor{i + 1}" for i in range(n_factors)]
        variants = LINES.get(format) or ((ENROLL, TEST, LABEL, SCORE, *(COLUMN + name for name in names)),)
        if kind == "trials" and sample.width == 3 and sample.binary[2]:  # a key with labels 0 and 1
            variants = (*variants[1:], variants[0])
        of_width = [roles for roles in variants if len(roles) == sample.width]
        if of_width:
            return Columns(roles=next(filter(sample.fits, of_width), of_width[0]))
        expected = " or ".join(str(Columns(roles=roles)) for roles in variants)
        at = next(at for at, row in enumerate(sample.rows) if len(row) == sample.width)
        problem = f"expected the columns {expected}, found {sample.width}"
    elif sample.header:
        return _headed_columns(sample, path, score_column)
    else:
        at, problem = 0, "expected a header line that names the columns, such as enroll, test, score, label"
    raise FileError(path, f"this is not the format {format}: {problem}; name the right one", line=sample.numbers[at])


def _headed_columns(sample: Sample, path: PathLike, score_column: str | None) -> Columns:
    """Return the columns that a header names; unknown ones that hold numbers are further columns."""
    names, plain = sample.header, [name.lower() for name in sample.header]
    repeated = [name for name, count in Counter(plain).items() if name and count > 1]
    if repeated:
        problem = f"the header has {repeated[0]!r} twice; rename one of the columns"
        raise FileError(path, problem, line=sample.numbers[0])
    if score_column is not None and score_column not in names:
        problem = f"there is no column {score_column!r}; the header has {', '.join(names)}"
        raise FileError(path, problem, line=sample.numbers[0])
    rows = [split_line(line, sample.separator, strict=False) for line in sample.lines[1:]]
    rows = [row for row in rows if len(row) == len(names)]
    values = [[text for row in rows if (text := row[at].strip()) not in ABSENT] for at in range(len(names))]
    roles = [SIDE if name == "side" else IGNORED for name in plain]
    for role, known in ((ENROLL, ENROLL_NAMES), (TEST, TEST_NAMES), (LABEL, LABEL_NAMES)):
        for name in [name for name in known if name in plain][:1]:
            roles[plain.index(name)] = role
    scores = [plain.index(name) for name in SCORE_NAMES if name in plain]
    scores = [at for at in scores if values[at]] or scores  # the first one that has values
    if score_column is not None:
        scores = [names.index(score_column)]
    for at in scores[:1]:
        roles[at] = SCORE
    for at, name in enumerate(names):
        if roles[at] == IGNORED and name and values[at] and all(map(NUMBER.fullmatch, values[at])):
            roles[at] = COLUMN + name
    return Columns(roles=tuple(roles), separator=sample.separator, names=names)


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


def _series(role: str, part: _Part, enroll: pl.Series, test: pl.Series, columns: Columns) -> pl.Series:
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


def columns_to_write(table: TrialList | ScoreMatrix, format: str) -> Columns:
    """Return the columns that a format has for some trials; what it needs and they lack is an error."""
    known = [] if table.scores is None else [SCORE]
    known += [] if table.labels is None else [LABEL]
    further = [COLUMN + name for name in table.columns]
    if format in ("csv", "tsv"):
        _refuse_names(table.columns)
        names = (ENROLL, TEST, *known, *table.columns)
        separator = "\t" if format == "tsv" else ","
        return Columns(roles=(ENROLL, TEST, *known, *further), separator=separator, names=names, absent="")
    if format == "nist":
        names = ("modelid", "segmentid", *({SCORE: "LLR", LABEL: "targettype"}[role] for role in known[:1]))
        return Columns(roles=(ENROLL, TEST, *known[:1]), separator="\t", names=names, absent="")
    if format == "asvspoof5":
        roles = {name: COLUMN + name if name in table.columns else IGNORED for name in ASVSPOOF_NAMES[2:]}
        unused = [name for name, role in roles.items() if role == IGNORED]
        if not unused:
            raise InputError("the format asvspoof5 has three scores, but all are columns here; rename one of them")
        roles[unused[-1]] = SCORE
        kept = (ENROLL, TEST, *roles.values())
        columns = Columns(roles=kept, separator="\t", names=ASVSPOOF_NAMES, absent="-")
    elif format == "wespeaker-factors":
        if not further:
            raise InputError("the format wespeaker-factors needs columns, but these trials have none; write wespeaker")
        columns = Columns(roles=(ENROLL, TEST, LABEL, SCORE, *further))
    else:  # the longest line for which the trials have the values
        there = {ENROLL, TEST, PAIR, *known, *further, *([REAL_ID] if LABEL in known else [])}
        possible = [roles for roles in LINES[format] if there.issuperset(roles)] or LINES[format][:1]
        longest = max(possible, key=lambda roles: (SCORE in roles, len(roles)))
        words = ("nontarget", "target") if format in ("kaldi", "wespeaker") else ("0", "1")
        columns = Columns(roles=longest, words=words)
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
    used = {*ENROLL_NAMES, *TEST_NAMES, *SCORE_NAMES[:3], *LABEL_NAMES, "side"}
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
