"""The table of file formats, reading and writing by it, and which format a file has (`sniff`).

A further format is a row of `FORMATS` and a module with a function that reads it and one that writes it; these modules
are loaded when they are used.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal, TypedDict, cast

from evenscore.data.embeddings import Embeddings
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, open_input, spooled
from evenscore.files.text import COLUMN, ENROLL, LABEL, LINES, SCORE, TEST, Sample

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    *("FORMATS", "Format", "Kind", "ReadOptions", "Table", "find_format", "output_format"),
    *("read", "read_embeddings", "read_scores", "read_speakers", "read_trials", "sniff", "write"),
]

Kind = Literal["scores", "trials", "embeddings", "speakers"]  #: "trials" are lists and keys without scores
Table = ScoreMatrix | TrialList | Embeddings | dict[str, str]
Duplicates = Literal["error", "drop"]


class _Options(TypedDict, total=False):
    missing: Literal["error", "skip"]
    infinite: Literal["error", "accept"]
    duplicates: Duplicates
    score_column: str | None


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a reader does where there is a choice; `read` describes the parameters."""

    kind: Kind | None = None  #: what the caller wants, where a file can be understood in two ways
    missing: Literal["error", "skip"] = "error"
    infinite: Literal["error", "accept"] = "error"
    duplicates: Duplicates = "error"
    score_column: str | None = None


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str
    kinds: tuple[Kind, ...]  #: what it can hold
    layout: str  #: one line for people: the columns, or what the file contains
    reader: str  #: ``module:function``, called with (path, name of the format, ReadOptions)
    writer: str | None  #: ``module:function``, called with (table, path, name of the format); None: it is only read
    extensions: tuple[str, ...] = ()  #: names of files that suggest it


_SCORES: tuple[Kind, ...] = ("scores",)
_BOTH: tuple[Kind, ...] = ("scores", "trials")
_ALL: tuple[Kind, ...] = ("scores", "trials", "embeddings")
_VECTORS: tuple[Kind, ...] = ("embeddings",)
_TEXT = ("text_reader:read", "text:write")
_MAP = ("speakers:read_map", "speakers:write_map")

_BINARY = (".mat", ".pkl", ".pt")  # not written, but not text either
_DEFAULTS: dict[Kind | None, str] = {"speakers": "utt2spk", "embeddings": "npz"}  # of other names of files; else kaldi

# fmt: off
FORMATS: dict[str, Format] = {each.name: each for each in (
    Format("kaldi", _BOTH, "enroll test score, or enroll test target|nontarget, or enroll test", *_TEXT),
    Format("wespeaker", _BOTH, "enroll test score label [mag_e mag_t mu_e mu_t], or enroll test label", *_TEXT),
    Format("wespeaker-factors", _SCORES, "enroll test label score factor ..., for wespeaker's calibration", *_TEXT),
    Format("speechbrain", _SCORES, "enroll test label score (3D-Speaker, too)", *_TEXT),
    Format("espnet", _SCORES, "enroll*test score label", *_TEXT),
    Format("bob", _SCORES, "enroll real-id test score", *_TEXT),
    Format("voxceleb", ("trials",), "label enroll test", *_TEXT),
    Format("nist", _BOTH, "modelid segmentid [side] LLR or targettype; header, tabs", *_TEXT),
    Format("asvspoof5", _SCORES, "spk filename cm-score asv-score sasv-score; header, tabs", *_TEXT),
    Format("csv", _BOTH, "a header such as enroll,test,score,label and further numbers", *_TEXT, (".csv",)),
    Format("tsv", _BOTH, "the same as csv with tabs", *_TEXT, (".tsv",)),
    Format("utt2spk", ("speakers",), "utterance speaker", *_MAP, ("utt2spk",)),
    Format("spk2utt", ("speakers",), "speaker utterance utterance ...", *_MAP, ("spk2utt",)),
    Format("npz", _ALL, "NumPy archive: scores, enroll_ids, test_ids [enroll_index, test_index, labels]; or embeddings",
           "arrays:read_npz", "arrays:write_npz", (".npz",)),
    Format("npy", ("scores", "embeddings"), "NumPy matrix; ids in name.enroll_ids and name.test_ids, or in name.ids",
           "arrays:read_npy", "arrays:write_npy", (".npy",)),
    Format("zarr", _ALL, "zarr directory with the arrays of npz, in chunks (needs evenscore[zarr])",
           "zarr:read", "zarr:write", (".zarr",)),
    Format("parquet", _ALL, "enroll, test, score, label and further numbers; or id, embedding, speaker",
           "parquet:read", "parquet:write", (".parquet", ".pq")),
    Format("bosaris", _ALL, "HDF5: Scores, Ndx or Key of BOSARIS, SIDEKIT, DCA-PLDA, PyBOSARIS; or embeddings, ids",
           "hdf5:read", "hdf5:write", (".h5", ".hdf5")),
    Format("bosaris-old-key", _BOTH, "the same with target_mask and nontarget_mask", "hdf5:read", "hdf5:write"),
    Format("kaldi-ark", _VECTORS, "Kaldi's archive of vectors", "kaldi:read_ark", "kaldi:write", (".ark",)),
    Format("kaldi-ark-text", _VECTORS, "the same as text: id  [ 0.5 1.5 ]", "kaldi:read_ark", "kaldi:write"),
    Format("kaldi-scp", _VECTORS, "id file.ark:offset, and the archive", "kaldi:read_scp", "kaldi:write", (".scp",)),
    Format("speaker-table", ("speakers",), "a header such as id,speaker and further columns; commas or tabs",
           "speakers:read_table", None),
)}
# fmt: on

_SAMPLE_SIZE = 1 << 16
_LONGEST_LINE = 1 << 20
_MAGIC = {b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"PAR1": "parquet", b"\x93NUMPY": "npy", b"\x89HDF": "bosaris"}
_KALDI = {"kaldi-ark": re.compile(rb"\S+\s+(\0B|\[\s)"), "kaldi-scp": re.compile(rb"\S+[ \t]+\S+\.ark:\d+\s*\n")}
# Python's pickles of protocols 2 and later, and of protocol 0, which is text.
_PICKLE = re.compile(rb"\x80[\x02-\x05]|\(?[dl]p0\n|c[\w.]+\n\w+\np0\n")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_ADVICE = "name the format: read it with `format`=NAME"


def find_format(name: str) -> Format:
    """Return the format of this name; an unknown name is an error that suggests a known one."""
    if name in FORMATS:
        return FORMATS[name]
    close = difflib.get_close_matches(name.lower(), FORMATS, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InputError(f"there is no format {name!r}; {hint}known are {', '.join(FORMATS)}")


def read(path: PathLike, *, format: str | None = None, **options: Unpack[_Options]) -> Table:
    r"""Read any file: scores, trials, embeddings or a map of speakers.

    Parameters
    ----------
    path
        The file, plain or gzip; ``-`` is standard input.
    format
        Name of the format, a key of `FORMATS`. By default it is found out from the first bytes.
    missing
        A score that is absent, NaN or infinite: ``"error"`` refuses it, ``"skip"`` leaves the trial out.
    infinite
        An infinite score: ``"error"`` treats it as missing, ``"accept"`` reads it, as LLRs may be infinite.
    duplicates
        A trial that is listed twice: ``"error"`` refuses it, ``"drop"`` drops repeats with the same values.
    score_column
        Name of the column with the scores, for files with a header.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> _ = path.write_text("spk1 utt1 2.5\nspk1 utt2 -0.5\n")
    >>> read(path)
    TrialList(2 trials of 1 enrolments and 2 tests, no labels, scores)
    """
    return _read(path, format, ReadOptions(**options))


def read_scores(path: PathLike, *, format: str | None = None, **options: Unpack[_Options]) -> TrialList | ScoreMatrix:
    r"""Read scores: a list of trials from a text file, a matrix from an array file. For the parameters see `read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "eval.llr"
    >>> _ = path.write_text("spk1 utt1 2.5\nspk1 utt2 -inf\n")
    >>> read_scores(path, infinite="accept").scores
    array([ 2.5, -inf])
    """
    return cast(TrialList | ScoreMatrix, _read(path, format, ReadOptions(kind="scores", **options)))


def read_trials(path: PathLike, *, format: str | None = None, **options: Unpack[_Options]) -> TrialList:
    r"""Read a list of trials or a key; a score file with labels is a key, too. For the parameters see `read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.key"
    >>> _ = path.write_text("spk1 utt1 target\nspk1 utt2 nontarget\n")
    >>> read_trials(path).labels
    array([1, 0], dtype=int8)
    """
    return cast(TrialList | ScoreMatrix, _read(path, format, ReadOptions(kind="trials", **options))).to_trials()


def read_embeddings(path: PathLike, *, format: str | None = None) -> Embeddings:
    r"""Read embeddings, with the speakers and further columns that the file has.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "xvector.ark"
    >>> _ = path.write_text("ann-1  [ 0.5 1.5 ]\nbob-1  [ 2.0 1.0 ]\n")
    >>> read_embeddings(path)
    Embeddings(2 x 2, float64, no speakers)
    """
    return cast(Embeddings, _read(path, format, ReadOptions(kind="embeddings")))


def read_speakers(path: PathLike, *, format: str | None = None, duplicates: Duplicates = "error") -> dict[str, str]:
    r"""Read the speaker of each utterance, from utt2spk, spk2utt, or a table with a column of speakers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "spk2utt"
    >>> _ = path.write_text("ann a1 a2\nbob b1\n")
    >>> read_speakers(path)
    {'a1': 'ann', 'a2': 'ann', 'b1': 'bob'}
    """
    return cast(dict[str, str], _read(path, format, ReadOptions(kind="speakers", duplicates=duplicates)))


def write(table: Table, path: PathLike, *, format: str | None = None) -> None:
    r"""Write a table; the file appears under its name only when all of it is written.

    What a format has no place for (labels in a Kaldi score file, columns in most formats) is left out; what a format
    needs and the table lacks is an error. Text formats write a score matrix in long form.

    Parameters
    ----------
    table
        Scores, trials, embeddings, or a dictionary from utterance to speaker.
    path
        The file; a name that ends in ``.gz`` is compressed, ``-`` is standard output.
    format
        Name of the format, a key of `FORMATS`. By default the name of the file decides (``.csv``, ``.zarr``, ...);
        with any other name, scores and trials are written in the format kaldi, speakers as utt2spk, embeddings as npz.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> write(TrialList(["e1"], ["t1"], scores=[0.5], labels=[1]), path, format="wespeaker")
    >>> path.read_text()
    'e1 t1 0.5 target\n'
    """
    found = output_format(path, getattr(table, "kind", "speakers"), format)
    try:
        resolve_name(f"evenscore.files.{found.writer}")(table, path, found.name)
    except InputError as error:
        raise FileError("<stdout>" if str(path) == "-" else path, str(error)) from None


def output_format(path: PathLike, kind: Kind | None, format: str | None = None) -> Format:
    """Return the format in which a table is written to a path: a check that can be made before the work.

    A format that cannot hold a table of this kind (None: not known yet) and a directory that is not there are errors.
    """
    name = str(path).lower().removesuffix(".gz")
    named = [each for each in FORMATS.values() if each.extensions and name.endswith(each.extensions)]
    named.sort(key=lambda each: kind not in each.kinds)
    found = find_format(format) if format else named[0] if named else FORMATS[_DEFAULTS.get(kind, "kaldi")]
    if format is None and name.endswith(_BINARY):
        raise FileError(path, "a file of this name is not text; choose another name, or another format")
    if name != "-" and not Path(path).absolute().parent.is_dir():
        raise FileError(path, "its directory does not exist; create it first")
    if found.writer is None:
        raise FileError(path, f"the format {found.name} can be read, but not written; choose another format")
    # Scores and trials are written to formats of either; some of these need scores or labels, and say so.
    if kind in (None, *found.kinds) or (kind in _BOTH and {*_BOTH} & {*found.kinds}):
        return found
    held = " and ".join(found.kinds)
    raise FileError(path, f"the format {found.name} holds {held}, not {kind}; choose another format")


def _read(path: PathLike, format: str | None, options: ReadOptions) -> Table:
    """Read a file, and refuse a table of another kind than that of the options."""
    if format is not None:
        table = resolve_name(f"evenscore.files.{find_format(format).reader}")(path, format, options)
    else:
        with spooled(path) as local:
            name = sniff(local, options.kind)
            table = resolve_name(f"evenscore.files.{FORMATS[name].reader}")(local, name, options)
    kind, expected = getattr(table, "kind", "speakers"), options.kind
    if expected in (None, kind) or (expected == "trials" and kind == "scores"):  # with labels, scores are a key
        return table
    advice = ", or name the score column" if kind == "trials" else ""
    raise FileError(path, f"expected {expected}, but it holds {kind}; give a file of {expected}{advice}")


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
        raise FileError(path, f"{saw}, which can be {' or '.join(found)}; read it with `format`=NAME, one of them")
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
    raise FileError(path, "this can be utt2spk as well as spk2utt; read it with `format`=NAME, one of them")
