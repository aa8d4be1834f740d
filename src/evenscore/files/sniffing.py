"""Find out the format of a file from its first bytes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from evenscore.errors import FileError
from evenscore.files.named_arrays import UNPICKLED
from evenscore.files.registry import FORMATS, Format, Kind
from evenscore.files.speakers import map_format
from evenscore.files.streams import ZARR_MARKS, PathLike, open_input, reading
from evenscore.files.text.chunks import LONGEST_LINE, SAMPLE_SIZE, UTF16_MARKS, sample_of
from evenscore.files.text.layouts import Sample, header_of

__all__ = ["sniff"]

_MAGIC = {b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet", b"\x93NUMPY": "npy"}
_HDF5 = b"\x89HDF\r\n\x1a\n"
# Python's pickles of protocols 2 and later, and of protocol 0, which is text.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\(?[dl]p0\n|c[\w.]+\n\w+\np0\n")
_COMMA_NUMBER = re.compile(r"[+-]?\d+,\d+")
_LINES_PER_NULL = 20  # with fewer lines to each null byte it is no text; a single one in a text is reported by line
_ADVICE = "name the format: read it with format=NAME"


def sniff(path: PathLike, *, kind: Kind | None = None) -> Format:
    r"""Return the format of a file, plain or gzip, from its first bytes.

    Parameters
    ----------
    path
        A file, the directory of a zarr store, or a directory of parquet files.
    kind
        What the file should hold, where its lines can be understood in two ways.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> _ = path.write_text("spk1 utt1 2.5 target\nspk1 utt2 -0.5 nontarget\n")
    >>> sniff(path).name
    'wespeaker'
    """
    with reading(path):
        if str(path) != "-" and os.path.isdir(path):
            if any((Path(path) / name).exists() for name in ZARR_MARKS):
                return FORMATS["zarr"]
            if any(Path(path).glob("*.parquet")):
                return FORMATS["parquet"]
            raise IsADirectoryError
    with open_input(path) as stream, reading(path):
        head = stream.read(SAMPLE_SIZE)
        whole = len(head) < SAMPLE_SIZE
        endless = b"\n" not in head and len(stream.readline(LONGEST_LINE)) == LONGEST_LINE
    name = _binary(head, path)
    if name is None:
        if endless and kind != "speakers":
            raise FileError(path, "the line is longer than 1 MiB; this is not a table of trials", line=1)
        name = _text(sample_of(head, whole=whole), path, kind)
    return FORMATS[name]


def _binary(head: bytes, path: PathLike) -> str | None:
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if head.startswith(_HDF5):
        from evenscore.files.bosaris import hdf5_format

        return hdf5_format(path)
    if re.match(rb"[^\s\0]+ \0B", head):
        return "kaldi-ark"
    if re.match(rb"[^\s\0]+ +\[", head):
        return "kaldi-ark-text"
    if _PICKLE.match(head):
        raise FileError(path, f"it is a Python pickle, which can run any code when it is read; {UNPICKLED}")
    if head.startswith(UTF16_MARKS):
        raise FileError(path, "it is text in UTF-16; convert it to UTF-8", line=1)
    if head.count(b"\0") * _LINES_PER_NULL > head.count(b"\n"):
        raise FileError(path, f"it is binary data of no known format; {_ADVICE}")
    return None


def _text(sample: Sample, path: PathLike, kind: Kind | None) -> str:
    """Return the name of the text format, from its header or from what its columns look like."""
    if not sample.lines:
        raise FileError(path, "the file is empty; there is nothing to read")
    header = header_of(sample)
    if header is not None:
        return _headed(*header)
    if kind == "speakers":
        name = map_format(sample, path)
        if name is None:
            raise FileError(path, "this can be utt2spk as well as spk2utt; read it with format=NAME, one of them")
        return name
    if sample.width == 1 and "," in sample.lines[0]:
        missing = "the columns are separated by commas, but no header names them; add one, such as enroll,test,score"
        raise FileError(path, missing, line=sample.numbers[0])
    _refuse_comma_numbers(sample, path)
    recognized = {2: _two, 3: _three, 4: _four, 8: _eight}.get(sample.width)
    names = recognized(sample, path, kind) if recognized else {}
    names = names or _factors(sample)
    if not names and _maps_speakers(sample, path):
        return "spk2utt"
    if len(names) == 1:
        return next(iter(names))
    saw = f"the lines have {sample.width} columns, such as {_shown(sample)}"
    if names:
        either = " or ".join(f"{name} ({reading})" for name, reading in names.items())
        raise FileError(path, f"{saw}, which can be {either}; read it with format=NAME, one of them")
    raise FileError(path, f"{saw}, which is no known format; {_ADVICE}", line=sample.numbers[0])


def _refuse_comma_numbers(sample: Sample, path: PathLike) -> None:
    for row, line in zip(sample.rows, sample.numbers, strict=True):
        text = next((text for text in row[2:] if _COMMA_NUMBER.fullmatch(text)), None)
        if text is not None:
            raise FileError(
                path, f"the number {text!r} has a comma for a point; write {text.replace(',', '.')}", line=line
            )
        if len(row) == 1 and row[0].count(";") > 1:
            raise FileError(
                path, "the columns are separated by semicolons; write commas, and points in numbers", line=line
            )


def _shown(sample: Sample) -> str:
    row = next(row for row in sample.rows if len(row) == sample.width)
    text = " ".join(row[:8])
    return repr(text if len(text) <= 80 else text[:80] + "...")


def _headed(separator: str, names: tuple[str, ...]) -> str:
    plain = {name.lower() for name in names}
    if "filename" in plain and plain & {"cm-score", "asv-score", "sasv-score"}:
        return "asvspoof5"
    if "modelid" in plain and separator != ",":
        return "nist"
    return "csv" if separator == "," else "tsv"


# Each of these returns the names of the formats that fit, and how the columns are then understood.


def _two(sample: Sample, path: PathLike, kind: Kind | None) -> dict[str, str]:
    archives = [re.search(r"\.(ark|gz)|:\d+(\[|$)", text) for text in sample.column(1)]
    if kind in (None, "embeddings") and all(archives):
        return {"kaldi-scp": "id archive"}
    if kind in ("trials", "scores"):
        return {"kaldi": "enroll test"}
    if sample.mostly_numbers(0) and sample.mostly_labels(1):
        raise FileError(path, "the lines have a score and a label but no ids; add the ids of the trials")
    if len(set(sample.column(0))) < len(sample.column(0)):
        return {"kaldi": "enroll test"}  # in a map of speakers the first column never repeats
    name = map_format(sample, path)
    by_name = name is not None and name in str(path).rsplit("/", 1)[-1]
    prefixed = all(row[0].startswith(row[-1]) or row[-1].startswith(row[0]) for row in sample.rows)
    if name is not None and (by_name or prefixed):
        return {name: "utterances and speakers"}
    return {"kaldi": "enroll test", "utt2spk": "utterance speaker"}


def _three(sample: Sample, path: PathLike, kind: Kind | None) -> dict[str, str]:
    if all(text.count("*") == 1 for text in sample.column(0)) and sample.mostly_numbers(1) and sample.mostly_labels(2):
        return {"espnet": "enroll*test score label"}
    if sample.mostly_numbers(2) and sample.only_binary(2):
        binary = {"kaldi": "0 and 1 are scores", "wespeaker": "0 and 1 are labels"}
        one_value = "kaldi" if len(set(sample.column(2))) == 1 else None  # labels of one class would make no key
        wanted = {"scores": "kaldi", "trials": "wespeaker"}.get(kind or "", one_value)
        return {wanted: binary[wanted]} if wanted else binary
    if sample.mostly_numbers(2) and sample.only_binary(0):
        return {"kaldi": "the last column is the score", "voxceleb": "the first column is the label"}
    if sample.mostly_numbers(2) or sample.mostly_labels(2):
        return {"kaldi": "enroll test score or label"}
    return {"voxceleb": "label enroll test"} if sample.mostly_labels(0) else {}


def _four(sample: Sample, path: PathLike, kind: Kind | None) -> dict[str, str]:
    names = {}
    if sample.mostly_numbers(2) and sample.mostly_labels(3):
        names["wespeaker"] = "enroll test score label"
    if sample.mostly_labels(2) and sample.mostly_numbers(3):
        names["speechbrain"] = "enroll test label score"
    if len(names) == 2 and sample.only_binary(2) != sample.only_binary(3):
        names.pop("wespeaker" if sample.only_binary(2) else "speechbrain")  # scores are not just 0 and 1
    if not names and sample.mostly_numbers(3):
        names["bob"] = "claimed real probe score"
    return names


def _eight(sample: Sample, path: PathLike, kind: Kind | None) -> dict[str, str]:
    numbers = all(sample.mostly_numbers(place) for place in (2, 4, 5, 6, 7))
    return {"wespeaker": "after norm"} if numbers and sample.mostly_labels(3) else {}


def _factors(sample: Sample) -> dict[str, str]:
    numbers = sample.width > 4 and all(sample.mostly_numbers(place) for place in range(3, sample.width))
    return {"wespeaker-factors": "for calibration"} if numbers and sample.mostly_labels(2) else {}


def _maps_speakers(sample: Sample, path: PathLike) -> bool:
    """Tell whether the lines look like spk2utt: several with at least two columns, no id twice, no numbers."""
    speakers = [row[0] for row in sample.rows]
    utterances = [name for row in sample.rows for name in row[1:]]
    named = "spk2utt" in str(path).rsplit("/", 1)[-1]
    return (
        (named or len(sample.rows) > 1)
        and min(map(len, sample.rows)) > 1
        and len(set(speakers)) == len(speakers)
        and len(set(utterances)) == len(utterances)
        and not any(sample.mostly_numbers(place) for place in range(sample.width))
    )
