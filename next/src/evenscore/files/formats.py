"""The table of file formats, and reading and writing by it.

A further format is a row of `FORMATS` and a module with a function that reads it and one that writes it; these modules
are loaded when they are used.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError
from evenscore.files.sniff import sniff
from evenscore.files.streams import PathLike, spooled

__all__ = [
    *("FORMATS", "Format", "Kind", "ReadOptions", "Table", "find_format", "output_format"),
    *("read", "read_scores", "read_speakers", "read_trials", "write"),
]

Kind = Literal["scores", "trials", "speakers"]  #: "trials" are lists and keys without scores
Table = ScoreMatrix | TrialList | dict[str, str]
Missing = Literal["error", "skip"]
Infinite = Literal["error", "accept"]
Duplicates = Literal["error", "drop"]


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a reader does where there is a choice; `read` describes the parameters."""

    kind: Kind | None = None  #: what the caller wants, where a file can be understood in two ways
    missing: Missing = "error"
    infinite: Infinite = "error"
    duplicates: Duplicates = "error"
    score_column: str | None = None


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str
    kinds: tuple[Kind, ...]  #: what it can hold
    layout: str  #: one line for people: the columns, or what the file contains
    reader: str  #: ``module.function``, called with (path, name of the format, ReadOptions)
    writer: str | None  #: ``module.function``, called with (table, path, name of the format); None: it is only read
    extensions: tuple[str, ...] = ()  #: names of files that suggest it


_SCORES: tuple[Kind, ...] = ("scores",)
_BOTH: tuple[Kind, ...] = ("scores", "trials")
_TEXT = ("text.read", "text_output.write")
_MAP = ("speakers.read_map", "speakers.write_map")

_BINARY = (".parquet", ".pq", ".h5", ".hdf5", ".ark", ".scp", ".mat", ".pkl")  # not written, but not text either

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
    Format("npz", _BOTH, "NumPy archive: scores, enroll_ids, test_ids; or these with enroll_index, test_index, labels",
           "arrays.read_npz", "arrays.write_npz", (".npz",)),
    Format("npy", _SCORES, "NumPy score matrix, and its ids in name.enroll_ids and name.test_ids, one per line",
           "arrays.read_npy", "arrays.write_npy", (".npy",)),
    Format("zarr", _BOTH, "zarr directory with the arrays of npz, in chunks (needs evenscore[zarr])",
           "zarr.read", "zarr.write", (".zarr",)),
    Format("speaker-table", ("speakers",), "a header such as id,speaker and further columns; commas or tabs",
           "speakers.read_table", None),
)}
# fmt: on


def find_format(name: str) -> Format:
    """Return the format of this name; an unknown name is an error that suggests a known one.

    Examples
    --------
    >>> find_format("kaldy")
    Traceback (most recent call last):
        ...
    evenscore.errors.InputError: there is no format 'kaldy'; did you mean 'kaldi'? ...
    """
    if name in FORMATS:
        return FORMATS[name]
    close = difflib.get_close_matches(name.lower(), FORMATS, 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise InputError(f"there is no format {name!r}; {hint}known are {', '.join(FORMATS)}")


def read(
    path: PathLike,
    *,
    format: str | None = None,
    missing: Missing = "error",
    infinite: Infinite = "error",
    duplicates: Duplicates = "error",
    score_column: str | None = None,
) -> Table:
    r"""Read any file: scores, trials or a map of speakers.

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
    options = ReadOptions(missing=missing, infinite=infinite, duplicates=duplicates, score_column=score_column)
    return _read(path, format, options)


def read_scores(
    path: PathLike,
    *,
    format: str | None = None,
    missing: Missing = "error",
    infinite: Infinite = "error",
    duplicates: Duplicates = "error",
    score_column: str | None = None,
) -> TrialList | ScoreMatrix:
    r"""Read scores: a list of trials from a text file, a matrix from an array file. For the parameters see `read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "eval.llr"
    >>> _ = path.write_text("spk1 utt1 2.5\nspk1 utt2 -inf\n")
    >>> read_scores(path, infinite="accept").scores
    array([ 2.5, -inf])
    """
    options = ReadOptions(
        kind="scores", missing=missing, infinite=infinite, duplicates=duplicates, score_column=score_column
    )
    table = _read(path, format, options)
    if isinstance(table, dict) or (isinstance(table, TrialList) and table.scores is None):
        found = "a map of speakers" if isinstance(table, dict) else "trials without scores"
        raise FileError(path, f"expected scores, but it holds {found}; give a score file, or name the score column")
    return table


def read_trials(
    path: PathLike,
    *,
    format: str | None = None,
    missing: Missing = "error",
    infinite: Infinite = "error",
    duplicates: Duplicates = "error",
) -> TrialList:
    r"""Read a list of trials or a key; a score file with labels is a key, too. For the parameters see `read`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.key"
    >>> _ = path.write_text("spk1 utt1 target\nspk1 utt2 nontarget\n")
    >>> read_trials(path).labels
    array([1, 0], dtype=int8)
    """
    table = _read(path, format, ReadOptions(kind="trials", missing=missing, infinite=infinite, duplicates=duplicates))
    if isinstance(table, dict):
        raise FileError(path, "expected trials, but it holds a map of speakers; give a list of trials")
    return table if isinstance(table, TrialList) else table.to_trials()


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
    table = _read(path, format, ReadOptions(kind="speakers", duplicates=duplicates))
    if isinstance(table, dict):
        return table
    raise FileError(path, "expected a map of speakers, but it holds trials or scores; give utt2spk or spk2utt")


def write(table: Table, path: PathLike, *, format: str | None = None) -> None:
    r"""Write a table; the file appears under its name only when all of it is written.

    What a format has no place for (labels in a Kaldi score file, columns in most formats) is left out; what a format
    needs and the table lacks is an error. Text formats write a score matrix in long form.

    Parameters
    ----------
    table
        Scores, trials, or a dictionary from utterance to speaker.
    path
        The file; a name that ends in ``.gz`` is compressed, ``-`` is standard output.
    format
        Name of the format, a key of `FORMATS`. By default the name of the file decides (``.csv``, ``.zarr``, ...);
        with any other name, scores and trials are written in the format kaldi, speakers as utt2spk.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "dev.scores"
    >>> write(TrialList(["e1"], ["t1"], scores=[0.5], labels=[1]), path, format="wespeaker")
    >>> path.read_text()
    'e1 t1 0.5 target\n'
    """
    kind: Kind = "speakers" if isinstance(table, dict) else "scores"
    if isinstance(table, TrialList) and table.scores is None:
        kind = "trials"
    found = output_format(path, kind, format)
    try:
        _load(str(found.writer))(table, path, found.name)
    except InputError as error:
        raise FileError("<stdout>" if str(path) == "-" else path, str(error)) from None


def output_format(path: PathLike, kind: Kind, format: str | None = None) -> Format:
    """Return the format in which a table of this kind is written to a path; one that cannot hold it is an error.

    Examples
    --------
    >>> output_format("eval.csv.gz", "scores").name
    'csv'
    """
    name = str(path).lower().removesuffix(".gz")
    found = FORMATS["utt2spk" if kind == "speakers" else "kaldi"]
    if format is not None:
        found = find_format(format)
    else:
        named = [each for each in FORMATS.values() if each.extensions and name.endswith(each.extensions)]
        named.sort(key=lambda each: kind not in each.kinds)
        if name.endswith(_BINARY):
            raise FileError(path, "a file of this name is not text; choose another name, or another format")
        found = named[0] if named else found
    holds_trials = {"scores", "trials"} & {*found.kinds}  # some of these formats need scores or labels, and say so
    if found.writer is not None and (kind in found.kinds or (kind != "speakers" and holds_trials)):
        return found
    problem = f"the format {found.name} holds {' and '.join(found.kinds)}, not {kind}"
    problem = f"the format {found.name} can be read, but not written" if found.writer is None else problem
    raise FileError(path, f"{problem}; choose another format")


def _read(path: PathLike, format: str | None, options: ReadOptions) -> Table:
    if format is not None:
        return _load(find_format(format).reader)(path, format, options)
    with spooled(path) as local:
        name = sniff(local, options.kind)
        if name not in FORMATS:
            raise FileError(local, f"it is an {name} file, which cannot be read; give one of {', '.join(FORMATS)}")
        return _load(FORMATS[name].reader)(local, name, options)


def _load(name: str) -> Callable[..., Table]:
    module, _, function = name.rpartition(".")
    loaded: Callable[..., Table] = getattr(import_module(f"evenscore.files.{module}"), function)
    return loaded
