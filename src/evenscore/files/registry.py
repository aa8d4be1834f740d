"""The table of file formats: what each is called, what it holds, and which functions read and write it.

A function is named by its module in this package, which loads when it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike
from evenscore.tables import Embeddings, ScoreMatrix, TrialList
from evenscore.tables.arrays import usable

__all__ = ["FORMATS", "ArrayTable", "Format", "Kind", "ReadOptions", "SpeakerMap", "Table", "format_named", "kind_of"]

Kind = Literal["scores", "trials", "embeddings", "speakers"]  #: "trials" are lists and keys without scores
SpeakerMap = dict[str, str]  #: from utterance (or model) id to speaker
ArrayTable = ScoreMatrix | TrialList | Embeddings  #: what named arrays can hold
Table = ArrayTable | SpeakerMap


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """What a reader does where there is a choice."""

    missing: Literal["error", "skip"] = "error"  #: a score that is absent, nan or infinite: refuse, or skip the trial
    infinite: Literal["error", "accept"] = "error"  #: an infinite score: as `missing` says, or a score like others
    duplicates: Literal["error", "drop"] = "error"  #: a trial listed twice: refuse, or drop identical repeats
    score_column: str | None = None  #: name of the score column, for formats with a header
    ids: PathLike | None = None  #: list of ids, one per line, for npy embeddings
    kind: Kind | None = None  #: what the caller wants, where a file can be understood in two ways

    @property
    def accepts_infinite(self) -> bool:
        """Whether an infinite score is a score."""
        return self.infinite == "accept"

    def usable(self, scores: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Tell which numbers are scores: those that are finite, and infinite ones where they are accepted."""
        return usable(scores, infinite=self.accepts_infinite)


@dataclass(frozen=True)
class Format:
    """A file format; `write` is None where evenscore only reads it."""

    name: str  #: what it is called
    kinds: tuple[Kind, ...]  #: what it can hold
    layout: str  #: one line for people: the columns, or what the file contains
    read: str  #: ``module.function(path, options)``
    write: str | None = None  #: ``module.function(table, path)``
    extensions: tuple[str, ...] = ()  #: file names that suggest it, such as ".npz"
    one_of_several: bool = False  #: its functions serve other formats, too, and are told this one's name

    def reader(self) -> Callable[[PathLike, ReadOptions], Table]:
        """Return the function that reads such files."""
        return self._function(self.read)

    def writer(self, table: object, path: PathLike) -> Callable[[Any, PathLike], None]:
        """Return the function that writes this table; a format that has no place for it is refused."""
        if self.write is None:
            raise FileError(path, f"the format {self.name} can be read, but not written; choose another format")
        if isinstance(table, ScoreMatrix | TrialList):
            holds = "scores" in self.kinds or "trials" in self.kinds  # some of them want more of it, and say so
        else:
            holds = kind_of(table) in self.kinds
        if holds:
            return self._function(self.write)
        *others, last = (_SHOWN.get(kind, kind) for kind in self.kinds)
        what = f"{', '.join(others)} and {last}" if others else last
        found = type(table).__name__
        problem = f"the format {self.name} holds {what}, not {_SHOWN.get(found, found)}; choose another format"
        raise FileError(path, problem)

    def _function(self, name: str) -> Callable[..., Any]:
        module, _, function = name.rpartition(".")
        found: Callable[..., Any] = getattr(import_module(f"evenscore.files.{module}"), function)
        return partial(found, format=self.name) if self.one_of_several else found


_SHOWN = {
    "ScoreMatrix": "a score matrix",
    "TrialList": "a list of trials",
    "Embeddings": "embeddings",
    "LazyScores": "scores that are not in memory (`write_table` writes them)",
    "dict": "a map of speakers",
    "speakers": "a map from utterance to speaker",
}


def kind_of(table: object) -> Kind | None:
    """Return what a table holds, None for anything else."""
    if isinstance(table, ScoreMatrix | TrialList):
        return "trials" if isinstance(table, TrialList) and table.scores is None else "scores"
    return "embeddings" if isinstance(table, Embeddings) else "speakers" if isinstance(table, dict) else None


def _text(name: str, kinds: tuple[Kind, ...], layout: str, *extensions: str) -> Format:
    functions = "text.read.read_trials_text", "text.write.write_trials_text"
    return Format(name, kinds, layout, *functions, extensions, one_of_several=True)


def _map(name: str, layout: str) -> Format:
    return Format(name, ("speakers",), layout, "speakers.read_map", "speakers.write_map", one_of_several=True)


_BOTH: tuple[Kind, ...] = ("scores", "trials")
_ALL: tuple[Kind, ...] = (*_BOTH, "embeddings")
_VECTORS: tuple[Kind, ...] = ("embeddings",)
_HDF5 = (".h5", ".hdf5")

# fmt: off
FORMATS: dict[str, Format] = {each.name: each for each in (
    _text("kaldi", _BOTH, "enroll test score, or enroll test target|nontarget, or enroll test"),
    _text("wespeaker", _BOTH, "enroll test score label [mag_e mag_t mu_e mu_t], or enroll test label"),
    _text("wespeaker-factors", ("scores",), "enroll test label score factor ..., for wespeaker's calibration"),
    _text("speechbrain", ("scores",), "enroll test label score"),
    _text("espnet", ("scores",), "enroll*test score label"),
    _text("bob", ("scores",), "enroll real id test score"),
    _text("voxceleb", ("trials",), "label enroll test"),
    _text("nist", _BOTH, "modelid segmentid [side] LLR or targettype; header, tabs"),
    _text("asvspoof5", ("scores",), "spk filename cm-score asv-score sasv-score; header, tabs"),
    _text("csv", _BOTH, "a header such as enroll,test,score,label and further numbers", ".csv"),
    _text("tsv", _BOTH, "the same as csv with tabs", ".tsv"),
    _map("utt2spk", "utterance speaker"),
    _map("spk2utt", "speaker utterance utterance ..."),
    Format("npz", _ALL, "NumPy archive: scores, enroll_ids, test_ids; or the same with enroll_index, test_index and "
           "labels; or embeddings, ids, speakers; or a vector for each id",
           "numpy_files.read_npz", "numpy_files.write_npz", (".npz",)),
    Format("parquet", _ALL, "columns enroll, test, score, label; or id, speaker, embedding",
           "parquet.read_parquet", "parquet.write_parquet", (".parquet", ".pq")),
    Format("zarr", _ALL, "zarr directory with the arrays of npz, in chunks (needs evenscore[zarr])",
           "zarr_store.read_zarr", "zarr_store.write_zarr", (".zarr",)),
    Format("bosaris", _BOTH, "BOSARIS HDF5: Scores, Ndx or Key (ID/row_ids, ID/column_ids, scores, score_mask, "
           "trial_mask)", "bosaris.read_bosaris", "bosaris.write_bosaris", _HDF5),
    Format("bosaris-old-key", _BOTH, "the same with the masks of the first version of the Key (target_mask, "
           "nontarget_mask)", "bosaris.read_bosaris", "bosaris.write_bosaris_old_key"),
    Format("sidekit", _BOTH, "SIDEKIT HDF5: modelset, segset, scores, ...", "bosaris.read_bosaris"),
    Format("dca-plda", _BOTH, "DCA-PLDA HDF5: enroll_ids, test_ids, scores", "bosaris.read_bosaris"),
    Format("pybosaris", _BOTH, "PyBOSARIS HDF5: model_names, test_names, score_mat", "bosaris.read_bosaris"),
    Format("kaldi-ark", _VECTORS, "Kaldi archive of float or double vectors, read in binary and text, written in "
           "binary", "kaldi_ark.read_ark", "kaldi_ark.write_ark", (".ark",)),
    Format("kaldi-ark-text", _VECTORS, "Kaldi archive in text: id [ 0.1 0.2 ... ]",
           "kaldi_ark.read_ark", "kaldi_ark.write_ark_text"),
    Format("kaldi-scp", _VECTORS, "id file.ark:offset, and the archive beside it",
           "kaldi_ark.read_scp", "kaldi_ark.write_scp", (".scp",)),
    Format("npy", _VECTORS, "NumPy matrix, and a list of ids beside it (name.ids), one per line",
           "numpy_files.read_npy", "numpy_files.write_npy", (".npy",)),
    Format("hdf5", _VECTORS, "HDF5 with embeddings, ids, speakers; or with one vector per id",
           "hdf5.read_hdf5_embeddings", "hdf5.write_hdf5_embeddings", _HDF5),
)}
# fmt: on


def format_named(name: str) -> Format:
    """Return the format of this name."""
    if name not in FORMATS:
        raise InputError(f"there is no format {name!r}; known are {', '.join(sorted(FORMATS))}")
    return FORMATS[name]
