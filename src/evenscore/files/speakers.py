"""Speaker maps in the manner of Kaldi: ``utt2spk`` (utterance speaker) and ``spk2utt`` (speaker utterance ...)."""

from __future__ import annotations

from collections.abc import Iterator

from evenscore.errors import FileError
from evenscore.files.registry import ReadOptions, SpeakerMap
from evenscore.files.streams import PathLike, atomic_output
from evenscore.files.text.chunks import text_lines
from evenscore.files.text.layouts import Sample
from evenscore.files.text.line_ids import refuse_odd_ids

__all__ = ["map_format", "read_map", "read_members", "read_names", "write_map"]


def map_format(sample: Sample, path: PathLike) -> str | None:
    """Return which of the two maps the first lines are, or None if they can be either."""
    name = str(path).rsplit("/", 1)[-1]
    if any(len(row) != 2 for row in sample.rows):
        return "spk2utt"
    for known in ("utt2spk", "spk2utt"):
        if known in name:
            return known
    first, second = zip(*sample.rows, strict=True) if sample.rows else ((), ())
    if len(set(second)) < len(second):
        return "utt2spk"
    if all(a.startswith(b) for a, b in zip(first, second, strict=True)):
        return "utt2spk"
    if all(b.startswith(a) for a, b in zip(first, second, strict=True)):
        return "spk2utt"
    return None


def read_map(path: PathLike, options: ReadOptions, format: str) -> SpeakerMap:
    """Read a map from utterance to speaker."""
    by_speaker = format == "spk2utt"
    speakers: SpeakerMap = {}
    lines: dict[str, int] = {}
    for number, fields in _fields(path):
        if by_speaker and len(fields) < 2:
            raise FileError(path, "expected a speaker and its utterances, found 1 column", line=number)
        if not by_speaker and len(fields) != 2:
            raise FileError(path, f"expected 2 columns (utterance speaker), found {len(fields)}", line=number)
        for utterance in fields[1:] if by_speaker else fields[:1]:
            speaker = fields[0] if by_speaker else fields[1]
            before = speakers.setdefault(utterance, speaker)
            first = lines.setdefault(utterance, number)
            if before != speaker:
                problem = (
                    f"{utterance!r} is of {speaker!r} here, but of {before!r} in line {first}; keep one of the two"
                )
                raise FileError(path, problem, line=number)
            if first != number and options.duplicates == "error":
                problem = f"{utterance!r} stands in line {first} already; remove it, or read it with duplicates='drop'"
                raise FileError(path, problem, line=number)
    return speakers


def read_members(path: PathLike) -> dict[str, list[str]]:
    """Read which utterances belong to each model: lines of a model and its utterances; a model may have several lines.

    Other than in a map of speakers, an utterance may belong to several models.
    """
    members: dict[str, list[str]] = {}
    seen: set[tuple[str, str]] = set()
    for number, (model, *utterances) in _fields(path):
        if not utterances:
            raise FileError(path, "expected a model and its utterances, found 1 column", line=number)
        for utterance in utterances:
            if (model, utterance) in seen:
                raise FileError(path, f"{utterance!r} belongs to {model!r} already; remove the repeat", line=number)
            seen.add((model, utterance))
        members.setdefault(model, []).extend(utterances)
    return members


def read_names(path: PathLike) -> list[str]:
    """Read names, one per line."""
    names = []
    for number, fields in _fields(path):
        if len(fields) != 1:
            raise FileError(path, f"expected one name, found {len(fields)} columns", line=number)
        names += fields
    return names


def _fields(path: PathLike) -> Iterator[tuple[int, list[str]]]:
    """Split every line that is not blank at spaces and tabs; there must be one."""
    filled = False
    for number, text in text_lines(path, "a text file of utterances and speakers"):
        fields = [field for field in text.replace("\t", " ").split(" ") if field]
        if fields:
            filled = True
            yield number, fields
    if not filled:
        raise FileError(path, "the file is empty; there is nothing to read")


def write_map(table: SpeakerMap, path: PathLike, format: str) -> None:
    """Write a map from utterance to speaker."""
    refuse_odd_ids((*table, *table.values()), path, " \t", "spaces, tabs or line ends", "rename it")
    lines = table.items()
    if format == "spk2utt":
        utterances: dict[str, list[str]] = {}
        for utterance, speaker in table.items():
            utterances.setdefault(speaker, []).append(utterance)
        lines = {speaker: " ".join(names) for speaker, names in utterances.items()}.items()
    with atomic_output(path) as stream:
        stream.writelines(f"{first} {rest}\n".encode() for first, rest in lines)
