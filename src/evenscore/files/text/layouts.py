"""Which columns each text format has: found in the first lines of a file, or chosen for a table that is written."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from evenscore.errors import InputError
from evenscore.files.registry import ReadOptions
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, TrialList
from evenscore.tables.ids import first_repeat

__all__ = [
    *("ABSENT", "ENROLL", "LABEL", "LABEL_WORDS", "MEASURE", "PAIR", "REAL", "SCORE", "SIDE", "SKIP", "TEST"),
    *("ENROLL_NAMES", "LABEL_NAMES", "LAYOUTS", "SCORE_NAMES", "TEST_NAMES"),
    *("Columns", "Layout", "MisfitError", "Sample", "header_of", "is_number", "split_quoted"),
]

# What a column can hold. A measure's role is MEASURE followed by its name.
ENROLL, TEST, SCORE, LABEL, SKIP, MEASURE = "enroll", "test", "score", "label", "ignored", "measure:"
PAIR = "enroll*test"  #: both ids in one column (ESPnet)
REAL = "real id"  #: the test's true identity; a target if it equals the enrolment (Bob)
SIDE = "side"  #: channel of a recording (NIST)

ABSENT = ("", "-", "NA", "N/A", "null", "None")  #: how other tools write a number that is not there

_TARGET_WORDS = ("target", "tgt", "tar", "1", "+1", "true")
_NONTARGET_WORDS = ("nontarget", "non-target", "nontgt", "non", "imp", "impostor", "0", "-1", "false")
_SPOOF_WORDS = ("spoof", "spoofed")  # neither of the two classes
LABEL_WORDS = dict.fromkeys(_TARGET_WORDS, TARGET) | dict.fromkeys(_NONTARGET_WORDS, NONTARGET)
LABEL_WORDS |= dict.fromkeys(_SPOOF_WORDS, UNKNOWN)

_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)", re.ASCII | re.IGNORECASE)

ENROLL_NAMES = (
    *("enroll", "enrol", "enroll_id", "enrol_id", "enrollment", "enrolment", "enrollment_id", "enrolment_id"),
    *("enroll_utt", "model", "modelid", "model_id", "spk", "claimed", "claimed_id", "ref"),
)
TEST_NAMES = (
    *("test", "test_id", "testid", "test_utt", "segment", "segmentid", "segment_id", "filename"),
    *("probe", "probe_id"),
)
SCORE_NAMES = ("score", "llr", "scores", "sasv-score", "asv-score", "cm-score")
LABEL_NAMES = ("label", "labels", "target", "targettype", "target_type", "trial_type", "key", "is_target")
_ASVSPOOF = ("spk", "filename", "cm-score", "asv-score", "sasv-score")
_WESPEAKER = ("mag_e", "mag_t", "mu_e", "mu_t")
_FACTORS = tuple(f"{how}:{name}" for name in ("dur", "mag", "mu") for how in ("min", "max", "diff", "ratio"))
_BINARY = ("0", "1")


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


class MisfitError(Exception):
    """The first lines of a file do not fit a format: why, and which line shows it."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(frozen=True)
class Layout:
    """The columns of one text format of trials or scores."""

    reads: Callable[[Sample, ReadOptions], Columns]  #: of a file that begins like this
    writes: Callable[[TrialList], Columns]  #: for this table


def header_of(sample: Sample) -> tuple[str, tuple[str, ...]] | None:
    """Return the separator and the names, if the first line is a header with names for the two ids."""
    if not sample.lines:
        return None
    line = sample.lines[0]
    separator = "\t" if "\t" in line else "," if "," in line else " "
    names = tuple(name.strip() for name in _split(line, separator))
    plain = [name.lower() for name in names]
    known = any(name in ENROLL_NAMES for name in plain) and any(name in TEST_NAMES for name in plain)
    return (separator, names) if known else None


def split_quoted(line: str, separator: str) -> list[str]:
    """Split a line where a field may stand in double quotes; a ValueError says that these do not fit together."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except (csv.Error, StopIteration) as error:
        raise ValueError(f"the quotes do not fit together ({error}); close each quoted field") from None


def _split(line: str, separator: str) -> list[str]:
    """Split a line of the sample; quotes that do not fit together are reported later, by line."""
    if separator == ",":
        with suppress(ValueError):
            return split_quoted(line, separator)
    return line.split() if separator == " " else line.split(separator)


def _expect_width(sample: Sample, widths: tuple[int, ...], line: str) -> None:
    if sample.width not in widths:
        problem = f"expected {' or '.join(map(str, widths))} columns ({line}), found {sample.width}"
        raise MisfitError(problem, sample.first(lambda row: len(row) == sample.width))


def _named(trials: TrialList, name: str, roles: tuple[str, ...], **how: str | tuple[str, ...]) -> Columns:
    """Return the columns for a format whose lines always have these, or say what the table lacks."""
    for role, values, what in ((SCORE, trials.scores, "scores"), (LABEL, trials.labels, "labels")):
        if values is None and (role in roles or (role == LABEL and REAL in roles)):
            raise InputError(f"the format {name} needs {what}, but these trials have none; choose another format")
    return Columns(roles=roles, **how)  # type: ignore[arg-type]


# Kaldi: enroll test [score | label]


def _kaldi_reads(sample: Sample, options: ReadOptions) -> Columns:
    _expect_width(sample, (2, 3), "enroll test [score or label]")
    if sample.width == 2:
        return Columns(roles=(ENROLL, TEST))
    if sample.mostly_numbers(2):
        third = LABEL if options.kind == "trials" and sample.only_binary(2) else SCORE
    elif sample.mostly_labels(2):
        third = LABEL
    else:
        odd = next(text for text in sample.column(2) if not is_number(text) and not is_label(text))
        line = sample.first(lambda row: len(row) == 3 and row[2] == odd)
        raise MisfitError(f"expected a score or a label in the third column, found {odd!r}", line)
    return Columns(roles=(ENROLL, TEST, third))


def _kaldi_writes(trials: TrialList) -> Columns:
    if trials.scores is not None:
        return Columns(roles=(ENROLL, TEST, SCORE))
    return Columns(roles=(ENROLL, TEST) if trials.labels is None else (ENROLL, TEST, LABEL))


# wespeaker: enroll test score label [mag_e mag_t mu_e mu_t], and labels alone: enroll test label


def _wespeaker_reads(sample: Sample, options: ReadOptions) -> Columns:
    _expect_width(sample, (3, 4, 8), "enroll test [score] label [mag_e mag_t mu_e mu_t]")
    if sample.width == 3:
        return Columns(roles=(ENROLL, TEST, LABEL))
    extra = tuple(MEASURE + name for name in _WESPEAKER) if sample.width == 8 else ()
    return Columns(roles=(ENROLL, TEST, SCORE, LABEL, *extra))


def _wespeaker_writes(trials: TrialList) -> Columns:
    extra = all(name in trials.measures for name in _WESPEAKER)
    roles = (ENROLL, TEST, LABEL) if trials.scores is None else (ENROLL, TEST, SCORE, LABEL)
    return _named(trials, "wespeaker", roles + tuple(MEASURE + name for name in _WESPEAKER if extra))


# What wespeaker's calibration is trained on: enroll test label score, and any number of further numbers


def _factors_reads(sample: Sample, options: ReadOptions) -> Columns:
    if sample.width < 5:
        problem = f"expected 5 columns or more (enroll test label score factor ...), found {sample.width}"
        raise MisfitError(problem, sample.first(lambda row: len(row) == sample.width))
    names = _FACTORS if sample.width == 4 + len(_FACTORS) else [f"factor{i + 1}" for i in range(sample.width - 4)]
    return Columns(roles=(ENROLL, TEST, LABEL, SCORE, *(MEASURE + name for name in names)))


def _factors_writes(trials: TrialList) -> Columns:
    roles = (ENROLL, TEST, LABEL, SCORE, *(MEASURE + name for name in trials.measures))
    if not trials.measures:
        raise InputError("the format wespeaker-factors needs measures, but these trials have none; write wespeaker")
    return _named(trials, "wespeaker-factors", roles)


# Formats with one fixed line


def _fixed(name: str, roles: tuple[str, ...], words: tuple[str, str] = _BINARY) -> Layout:
    line = " ".join(roles)

    def reads(sample: Sample, options: ReadOptions) -> Columns:
        _expect_width(sample, (len(roles),), line)
        return Columns(roles=roles)

    def writes(trials: TrialList) -> Columns:
        return _named(trials, name, roles, words=words)

    return Layout(reads, writes)


# Files with a header line


def _headed_reads(sample: Sample, options: ReadOptions) -> Columns:
    header = header_of(sample)
    if header is None:
        expected = "expected a header line that names the columns, such as enroll, test, score, label"
        raise MisfitError(expected, sample.numbers[0])
    separator, names = header
    rows = [_split(line, separator) for line in sample.lines[1:]]
    plain = [name.lower() for name in names]
    repeated = first_repeat(name for name in plain if name)
    if repeated is not None:
        raise MisfitError(f"the header has {repeated!r} twice; rename one of the columns", sample.numbers[0])
    roles = [SIDE if name == "side" else SKIP for name in plain]
    for role, known in ((ENROLL, ENROLL_NAMES), (TEST, TEST_NAMES), (LABEL, LABEL_NAMES)):
        place = next((plain.index(name) for name in known if name in plain), None)
        if place is not None:
            roles[place] = role
    score = _score_column(names, rows, options, sample.numbers[0])
    if score is not None:
        roles[score] = SCORE
    for place, name in enumerate(names):
        values = [row[place].strip() for row in rows if len(row) == len(names)]
        values = [value for value in values if value not in ABSENT]
        if roles[place] == SKIP and name and values and all(map(is_number, values)):
            roles[place] = MEASURE + name
    return Columns(roles=tuple(roles), separator=separator, names=names, quoted=separator == ",")


def _score_column(
    names: tuple[str, ...], rows: Sequence[Sequence[str]], options: ReadOptions, header: int
) -> int | None:
    """Return which column holds the scores: the one asked for, or the first known name that has values."""
    if options.score_column is not None:
        if options.score_column not in names:
            problem = f"there is no column {options.score_column!r}; the header has {', '.join(names)}"
            raise MisfitError(problem, header)
        return names.index(options.score_column)
    plain = [name.lower() for name in names]
    found = [plain.index(name) for name in SCORE_NAMES if name in plain]
    used = [place for place in found if any(len(row) > place and row[place] not in ABSENT for row in rows)]
    return next(iter(used or found), None)


def _table_writes(separator: str) -> Callable[[TrialList], Columns]:
    def writes(trials: TrialList) -> Columns:
        roles = [ENROLL, TEST]
        roles += [SCORE] if trials.scores is not None else []
        roles += [LABEL] if trials.labels is not None else []
        taken = {*ENROLL_NAMES, *TEST_NAMES, *SCORE_NAMES[:3], *LABEL_NAMES, "side"}
        for name in trials.measures:
            if name.lower() in taken or not name.strip() or any(mark in name for mark in ',"\t\r\n'):
                raise InputError(f"the measure {name!r} cannot be the name of a column; rename it")
            taken.add(name.lower())
        names = (*roles, *trials.measures)
        roles += [MEASURE + name for name in trials.measures]
        return Columns(roles=tuple(roles), separator=separator, names=names, quoted=separator == ",", absent="")

    return writes


def _nist_writes(trials: TrialList) -> Columns:
    if trials.scores is None and trials.labels is None:
        return Columns(roles=(ENROLL, TEST), separator="\t", names=("modelid", "segmentid"))
    role, name = (SCORE, "LLR") if trials.scores is not None else (LABEL, "targettype")
    return Columns(roles=(ENROLL, TEST, role), separator="\t", names=("modelid", "segmentid", name), absent="")


def _asvspoof_writes(trials: TrialList) -> Columns:
    free = [name for name in reversed(_ASVSPOOF[2:]) if name not in trials.measures]
    if not free:
        raise InputError("the format asvspoof5 has three scores, but all are measures here; rename one of them")
    columns = {name: MEASURE + name if name in trials.measures else SKIP for name in _ASVSPOOF[2:]}
    columns[free[0]] = SCORE
    return _named(trials, "asvspoof5", (ENROLL, TEST, *columns.values()), separator="\t", names=_ASVSPOOF, absent="-")


LAYOUTS = {
    "kaldi": Layout(_kaldi_reads, _kaldi_writes),
    "wespeaker": Layout(_wespeaker_reads, _wespeaker_writes),
    "wespeaker-factors": Layout(_factors_reads, _factors_writes),
    "speechbrain": _fixed("speechbrain", (ENROLL, TEST, LABEL, SCORE)),
    "espnet": _fixed("espnet", (PAIR, SCORE, LABEL)),
    "bob": _fixed("bob", (ENROLL, REAL, TEST, SCORE)),
    "voxceleb": _fixed("voxceleb", (LABEL, ENROLL, TEST)),
    "nist": Layout(_headed_reads, _nist_writes),
    "asvspoof5": Layout(_headed_reads, _asvspoof_writes),
    "csv": Layout(_headed_reads, _table_writes(",")),
    "tsv": Layout(_headed_reads, _table_writes("\t")),
}
