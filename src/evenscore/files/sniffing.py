"""Find out the format of a file from its first bytes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from evenscore.errors import FileError
from evenscore.files.formats import Format, Kind
from evenscore.files.registry import FORMATS
from evenscore.files.speakers import map_format
from evenscore.files.streams import PathLike, open_input, reading
from evenscore.files.text.chunks import LONGEST_LINE, SAMPLE_SIZE, sample_of
from evenscore.files.text.columns import Sample
from evenscore.files.text.layouts import header_of

__all__ = ["sniff"]

_MAGIC = {b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet", b"\x93NUMPY": "npy"}
_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZARR = ("zarr.json", ".zgroup", ".zarray")
_ADVICE = "name the format (--from NAME; 'evenscore formats' lists them)"


def sniff(path: PathLike, *, kind: Kind | None = None) -> Format:
    r"""Return the format of a file, plain or gzip, from its first bytes.

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
    >>> sniff(path).name
    'wespeaker'
    """
    with reading(path):
        if str(path) != "-" and os.path.isdir(path):
            if any((Path(path) / name).exists() for name in _ZARR):
                return FORMATS["zarr"]
            raise IsADirectoryError
    with open_input(path) as stream, reading(path):
        head = stream.read(SAMPLE_SIZE)
        whole = len(head) < SAMPLE_SIZE
    if not head.strip():
        raise FileError(path, "the file is empty; there is nothing to read")
    name = _binary(head, path)
    if name is None:
        sample = sample_of(head, whole=whole)
        name = _text(sample, path, kind)
    return FORMATS[name]


def _binary(head: bytes, path: PathLike) -> str | None:
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if head.startswith(_HDF5):
        return _hdf5(path)
    if re.match(rb"[^\s\0]+ \0B", head):
        return "kaldi-ark"
    if re.match(rb"[^\s\0]+ +\[", head):
        return "kaldi-ark-text"
    if b"\0" in head:
        raise FileError(path, f"it is binary data of no known format; {_ADVICE}")
    return None


def _hdf5(path: PathLike) -> str:
    return "bosaris"


def _text(sample: Sample, path: PathLike, kind: Kind | None) -> str:
    """Return the name of the text format, from its header or from what its columns look like."""
    if len(sample.lines[0]) > LONGEST_LINE:
        raise FileError(path, "the line is longer than 1 MiB; this is not a table of trials", line=1)
    header = header_of(sample)
    if header is not None:
        return _headed(*header)
    if kind == "speakers":
        name = map_format(sample, path)
        if name is None:
            raise FileError(path, "this can be utt2spk as well as spk2utt; name one of them (--from NAME)")
        return name
    recognized = {2: _two, 3: _three, 4: _four, 8: _eight}.get(sample.width)
    names = recognized(sample, path, kind) if recognized else []
    if not names and _maps_speakers(sample):
        names = ["spk2utt"]
    if len(names) == 1:
        return names[0]
    saw = f"the lines have {sample.width} columns, such as {_shown(sample)}"
    if names:
        raise FileError(path, f"{saw}, which can be {' or '.join(names)}; name one of them (--from NAME)")
    raise FileError(path, f"{saw}, which is no known format; {_ADVICE}", line=1)


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


def _two(sample: Sample, path: PathLike, kind: Kind | None) -> list[str]:
    """Tell apart a list of trials, a map of speakers and an scp file, all with two columns."""
    if kind in (None, "embeddings") and all(re.search(r"\.(ark|gz)|:\d+(\[|$)", text) for text in sample.column(1)):
        return ["kaldi-scp"]
    if kind in ("trials", "scores"):
        return ["kaldi"]
    if sample.mostly_numbers(0) and sample.mostly_labels(1):
        raise FileError(path, "the lines have a score and a label but no ids; add the ids of the trials", line=1)
    if len(set(sample.column(0))) < len(sample.column(0)):
        return ["kaldi"]  # in a map of speakers the first column never repeats
    name = map_format(sample, path)
    in_name = name is not None and name in str(path).rsplit("/", 1)[-1]
    prefixed = all(a.startswith(b) or b.startswith(a) for a, b in sample.rows if len((a, b)) == 2)
    if name is not None and (in_name or prefixed):
        return [name]
    return ["kaldi", "utt2spk"]


def _three(sample: Sample, path: PathLike, kind: Kind | None) -> list[str]:
    if all(text.count("*") == 1 for text in sample.column(0)) and sample.mostly_numbers(1) and sample.mostly_labels(2):
        return ["espnet"]
    if sample.mostly_numbers(2):
        if sample.only_binary(2):
            return ["kaldi"] if kind in ("trials", "scores") else ["kaldi", "wespeaker"]
        return ["kaldi", "voxceleb"] if sample.only_binary(0) else ["kaldi"]
    if sample.mostly_labels(2):
        return ["kaldi"]
    return ["voxceleb"] if sample.mostly_labels(0) else []


def _four(sample: Sample, path: PathLike, kind: Kind | None) -> list[str]:
    names = []
    if sample.mostly_numbers(2) and sample.mostly_labels(3):
        names.append("wespeaker")
    if sample.mostly_labels(2) and sample.mostly_numbers(3):
        names.append("speechbrain")
    if len(names) == 2:  # 0 and 1 can be scores as well as labels: the column that has more than these are the scores
        only = sample.only_binary(2), sample.only_binary(3)
        names = {(True, False): ["speechbrain"], (False, True): ["wespeaker"]}.get(only, names)
    if not names and sample.mostly_numbers(3):
        names.append("bob")
    return names


def _eight(sample: Sample, path: PathLike, kind: Kind | None) -> list[str]:
    numbers = all(sample.mostly_numbers(place) for place in (2, 4, 5, 6, 7))
    return ["wespeaker"] if numbers and sample.mostly_labels(3) else []


def _maps_speakers(sample: Sample) -> bool:
    """Tell whether the lines look like spk2utt: at least two columns, and no id twice."""
    names = [name for row in sample.rows for name in row[1:]]
    first = [row[0] for row in sample.rows]
    unique = len(set(names)) == len(names) and len(set(first)) == len(first)
    return unique and min(map(len, sample.rows)) > 1 and not any(sample.mostly_numbers(i) for i in range(sample.width))
