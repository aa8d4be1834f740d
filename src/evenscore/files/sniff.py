"""Which format a file has, from its first bytes and lines."""

from __future__ import annotations

import re
from pathlib import Path

from evenscore.errors import FileError
from evenscore.files.streams import PathLike, open_input
from evenscore.files.text_columns import COLUMN, ENROLL, LABEL, LINES, SCORE, TEST, Sample

__all__ = ["sniff"]

_SAMPLE_SIZE = 1 << 16
_LONGEST_LINE = 1 << 20
_MAGIC = {b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet", b"\x93NUMPY": "npy", b"\x89HDF": "bosaris"}
_KALDI = {"kaldi-ark": re.compile(rb"\S+\s+(\0B|\[\s)"), "kaldi-scp": re.compile(rb"\S+[ \t]+\S+\.ark:\d+\s*\n")}
# Python's pickles of protocols 2 and later, and of protocol 0, which is text.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\(?[dl]p0\n|c[\w.]+\n\w+\np0\n")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_ADVICE = "name the format: read it with format=NAME"


def sniff(path: PathLike, kind: str | None = None) -> str:
    r"""Return the name of the format of a file, plain or gzip.

    Parameters
    ----------
    path
        A file, or the directory of a zarr store.
    kind
        What the file should hold, where its lines can be understood in two ways.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> _ = path.write_text("spk1 utt1 2.5 target\nspk1 utt2 -0.5 nontarget\n")
    >>> sniff(path)
    'wespeaker'
    """
    folder = Path(path)
    if any((folder / name).is_file() for name in ("zarr.json", ".zgroup", ".zarray")):
        return "zarr"
    with open_input(path) as stream:
        head = stream.read(_SAMPLE_SIZE + 1)
        too_long = b"\n" not in head and len(stream.readline(_LONGEST_LINE)) == _LONGEST_LINE
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    for name, start in _KALDI.items():
        if start.match(head) or (name == "kaldi-scp" and str(path).endswith(".scp")):
            return name
    if _PICKLE.match(head):
        remedy = "load it where you trust it, and write the arrays with numpy.savez"
        raise FileError(path, f"it is a Python pickle, which can run any code when it is read; {remedy}")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(path, "it is text in UTF-16; convert it to UTF-8", line=1)
    if 20 * head.count(b"\0") > head.count(b"\n"):  # a single null byte in a text is reported by line
        raise FileError(path, f"it is binary data of no known format; {_ADVICE}")
    if too_long and kind != "speakers":
        raise FileError(path, "the line is longer than 1 MiB; this is not a table of trials", line=1)
    sample = Sample(head, _SAMPLE_SIZE)
    if not sample.lines:
        raise FileError(path, "the file is empty; there is nothing to read")
    if kind == "speakers":
        return _speakers_format(sample, path)
    if sample.header:
        plain = {name.lower() for name in sample.header}
        if "filename" in plain and plain & {"cm-score", "asv-score", "sasv-score"}:
            return "asvspoof5"
        return "csv" if sample.separator == "," else "nist" if "modelid" in plain else "tsv"
    return _line_format(sample, path, kind)


def _line_format(sample: Sample, path: PathLike, kind: str | None) -> str:
    """Return the format of lines without a header, from what the columns look like."""
    if sample.width == 1 and re.search("[,;]", sample.lines[0]):
        problem = "the columns are separated by commas, but no header names them; add one, such as enroll,test,score"
        if sample.lines[0].count(";") > 1:
            problem = "the columns are separated by semicolons; write commas, and points in numbers"
        raise FileError(path, problem, line=sample.numbers[0])
    for row, line in zip(sample.rows, sample.numbers, strict=True):
        if any(map(_DECIMAL_COMMA.fullmatch, row[2:])):
            raise FileError(path, "a number has a comma for a point; write points in numbers", line=line)
    found = _two_columns(sample, path, kind) if sample.width == 2 else _possible(sample, kind)
    if len(found) == 1:
        return found[0]
    text = " ".join(next(row for row in sample.rows if len(row) == sample.width)[:8])
    saw = f"the lines have {sample.width} columns, such as {text[:80]!r}"
    if found:
        raise FileError(path, f"{saw}, which can be {' or '.join(found)}; read it with format=NAME, one of them")
    raise FileError(path, f"{saw}, which is no known format; {_ADVICE}", line=sample.numbers[0])


def _possible(sample: Sample, kind: str | None) -> list[str]:
    """Return the formats that the columns fit."""
    fits = [name for name, variants in LINES.items() if any(map(sample.fits, variants))]
    numeric, binary = sample.numeric, sample.binary
    if "espnet" in fits:
        return ["espnet"]
    if sample.width == 3 and numeric[2] and binary[2]:  # scores or labels? Labels of one class would make no key
        unsure = ["kaldi", "wespeaker"] if len(set(sample.columns[2])) > 1 else ["kaldi"]
        return {"scores": ["kaldi"], "trials": ["wespeaker"]}.get(str(kind), unsure)
    if sample.width == 3 and "kaldi" in fits:
        return ["kaldi", "voxceleb"] if numeric[2] and binary[0] else ["kaldi"]
    if {"wespeaker", "speechbrain"} <= {*fits} and binary[2] != binary[3]:  # scores are not just 0 and 1
        fits.remove("wespeaker" if binary[2] else "speechbrain")
    if "bob" in fits and len(fits) > 1:  # any four columns whose last one is a number
        fits.remove("bob")
    if not fits and sample.width > 4 and sample.fits((ENROLL, TEST, LABEL, SCORE, *[COLUMN] * (sample.width - 4))):
        return ["wespeaker-factors"]
    if not fits and len(sample.rows) > 1 and min(map(len, sample.rows)) > 1 and not any(numeric):
        names = [name for row in sample.rows for name in row]
        return ["spk2utt"] if len(set(names)) == len(names) else []
    return fits


def _two_columns(sample: Sample, path: PathLike, kind: str | None) -> list[str]:
    first, second = sample.columns
    if kind is not None or len(set(first)) < len(first):  # in a map of speakers the first column never repeats
        return ["kaldi"]
    if sample.numeric[0] and sample.labelled[1]:
        raise FileError(path, "the lines have a score and a label but no ids; add the ids of the trials")
    prefixed = all(a.startswith(b) or b.startswith(a) for a, b in zip(first, second, strict=True))
    if prefixed or any(name in Path(path).name for name in ("utt2spk", "spk2utt")):
        return [_speakers_format(sample, path)]
    return ["kaldi", "utt2spk"]


def _speakers_format(sample: Sample, path: PathLike) -> str:
    """Return which map of speakers the lines are."""
    if re.search("[,\t]", sample.lines[0]) and re.search(r"speaker|spk\b|client", sample.lines[0].lower()):
        return "speaker-table"
    if any(len(row) != 2 for row in sample.rows):
        return "spk2utt"
    for name in ("utt2spk", "spk2utt"):
        if name in Path(path).name:
            return name
    first, second = sample.columns
    if len(set(second)) < len(second) or all(a.startswith(b) for a, b in zip(first, second, strict=True)):
        return "utt2spk"
    if all(b.startswith(a) for a, b in zip(first, second, strict=True)):
        return "spk2utt"
    raise FileError(path, "this can be utt2spk as well as spk2utt; read it with format=NAME, one of them")
