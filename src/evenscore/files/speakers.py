"""Speakers of utterances, and what else is known about ids: utt2spk, spk2utt, tables with a header."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evenscore.errors import FileError
from evenscore.files.formats import ReadOptions
from evenscore.files.streams import PathLike, atomic_output, spooled, text_lines
from evenscore.files.text import ENROLL_NAMES, NUMBER, TEST_NAMES, refuse_unwritable, split_line

__all__ = ["Metadata", "read_map", "read_metadata", "read_table", "write_map"]

ID_NAMES = ("id", "ids", "utt", "utt_id", "utterance", "utterance_id", "key", "file", "file_id", "path", "name")
SPEAKER_NAMES = ("speaker", "speaker_id", "spk", "spk_id", "spkid", "client", "client_id")


def read_map(path: PathLike, format: str, options: ReadOptions) -> dict[str, str]:
    """Read utt2spk (utterance speaker) or spk2utt (speaker utterance ...)."""
    speakers: dict[str, str] = {}
    lines: dict[str, int] = {}
    for number, line in text_lines(path):
        fields = split_line(line, " ")
        if len(fields) < 2 or (format == "utt2spk" and len(fields) > 2):
            expected = "2 columns (utterance speaker)" if format == "utt2spk" else "a speaker and its utterances"
            raise FileError(path, f"expected {expected}, found {len(fields)}", line=number)
        speaker, utterances = (fields[1], fields[:1]) if format == "utt2spk" else (fields[0], fields[1:])
        for utterance in utterances:
            before, first = speakers.setdefault(utterance, speaker), lines.setdefault(utterance, number)
            if before != speaker:
                problem = f"{utterance!r} has the speaker {speaker!r} here, but {before!r} in line {first}; keep one"
                raise FileError(path, problem, line=number)
            if first != number and options.duplicates == "error":
                problem = f"{utterance!r} is in line {first} already; remove it, or read it with `duplicates`='drop'"
                raise FileError(path, problem, line=number)
    if not speakers:
        raise FileError(path, "the file is empty; there is nothing to read")
    return speakers


def write_map(speakers: Mapping[str, str], path: PathLike, format: str) -> None:
    """Write utt2spk or spk2utt."""
    refuse_unwritable((*speakers, *speakers.values()), " \t")
    lines = dict(speakers)
    if format == "spk2utt":
        utterances: dict[str, list[str]] = {}
        for utterance, speaker in speakers.items():
            utterances.setdefault(speaker, []).append(utterance)
        lines = {speaker: " ".join(names) for speaker, names in utterances.items()}
    with atomic_output(path) as stream:
        stream.writelines(f"{first} {rest}\n".encode() for first, rest in lines.items())


def read_table(path: PathLike, format: str, options: ReadOptions) -> dict[str, str]:
    """Read the speakers of a table with a header."""
    metadata = read_metadata(path)
    named = [name for name in metadata.columns if name.lower() in SPEAKER_NAMES and name not in metadata.ids]
    if not named:
        raise FileError(path, f"no column is called speaker; the header has {', '.join(metadata.columns)}", line=1)
    return metadata.by_id(named[0])


@dataclass(frozen=True)
class Metadata:
    """A table about enrolments, tests or trials; all values are text, absent ones ''."""

    path: str
    columns: Mapping[str, Sequence[str]] = field(repr=False)  #: every column by name
    ids: tuple[str, ...]  #: names of the columns with ids: one, or those of the enrolment and the test of a trial
    side: Literal["enroll", "test"] | None = None  #: the side that the name of the only id column tells

    def by_id(self, column: str) -> dict[str, str]:
        """Return the value of a column for each id; an id with two values is an error."""
        if len(self.ids) != 1:
            raise FileError(self.path, "its rows are about trials, not about single ids; give another table")
        if column not in self.columns:
            raise FileError(self.path, f"there is no column {column!r}; it has {', '.join(self.columns)}")
        values: dict[str, str] = {}
        for name, value in zip(self.columns[self.ids[0]], self.columns[column], strict=True):
            if values.setdefault(name, value) != value:
                problem = f"{name!r} has the values {values[name]!r} and {value!r}; keep one"
                raise FileError(self.path, problem, part=column)
        return values


def read_metadata(path: PathLike) -> Metadata:
    r"""Read a table about enrolments, tests or trials.

    The first line names the columns, which are separated by commas, semicolons, tabs or spaces. Ids are in two columns
    that are named like an enrolment and a test (enroll, test; modelid, segmentid; ...), then a row is about a trial; in
    a column called ``id`` (utt, key, file, ...), then it may be about either side; in a column of one side; or, where
    there is no such name, in the first column. Two columns of ids and numbers need no header, as Kaldi's ``utt2dur``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "meta.csv"
    >>> _ = path.write_text("id,gender\nann,f\nbob,m\n")
    >>> read_metadata(path).by_id("gender")
    {'ann': 'f', 'bob': 'm'}
    """
    with spooled(path) as local:
        columns = _columns(local, Path(path).name)
    plain = {name.lower(): name for name in reversed(columns)}
    enroll, test, identity = (
        next((plain[name] for name in names if name in plain), None) for names in (ENROLL_NAMES, TEST_NAMES, ID_NAMES)
    )
    if enroll is not None and test is not None:
        return Metadata(str(path), columns, (enroll, test))
    if identity is None and enroll is not None:
        return Metadata(str(path), columns, (enroll,), "enroll")
    if identity is None and test is not None:
        return Metadata(str(path), columns, (test,), "test")
    return Metadata(str(path), columns, (identity or next(iter(columns)),))


def _columns(path: PathLike, file_name: str) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    separator = ""
    for number, line in text_lines(path):
        separator = separator or next((mark for mark in "\t,;" if mark in line), " ")
        try:
            fields = split_line(line, separator)
        except ValueError as error:
            raise FileError(path, str(error), line=number) from None
        fields = [text.strip() for text in fields]
        if not columns:
            headless = len(fields) == 2 and NUMBER.fullmatch(fields[1]) is not None  # as utt2dur
            names = ["id", file_name.split(".")[0].removeprefix("utt2")] if headless else fields
            if len(set(names)) < len(names) or "" in names:
                raise FileError(path, "a column has no name, or that of another; name each once", line=number)
            columns = {name: [] for name in names}
            if not headless:
                continue
        if len(fields) != len(columns):
            problem = f"expected {len(columns)} columns ({' '.join(columns)}), found {len(fields)}"
            raise FileError(path, problem, line=number)
        for values, text in zip(columns.values(), fields, strict=True):
            values.append(text)
    if not columns:
        raise FileError(path, "the file is empty; there is nothing to read")
    return columns
