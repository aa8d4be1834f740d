"""All file formats by name; the modules of binary ones load when they are used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from evenscore.errors import InputError
from evenscore.files import speakers
from evenscore.files.checks import unholdable
from evenscore.files.formats import Format, held_as
from evenscore.files.streams import PathLike
from evenscore.files.text import formats as text

__all__ = ["FORMATS", "format_named"]


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a function of a module of this package, which loads when it is called."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"evenscore.files.{module}"), name)(*arguments)

    return call


_BINARY = (
    Format(
        name="npz",
        kinds=("scores", "trials", "embeddings"),
        layout="NumPy archive: scores, enroll_ids, test_ids; or the same with enroll_index, test_index and labels; "
        "or embeddings, ids, speakers",
        extensions=(".npz",),
        read=_later("npz", "read_npz"),
        write=_later("npz", "write_npz"),
    ),
    Format(
        name="parquet",
        kinds=("scores", "trials", "embeddings"),
        layout="columns enroll, test, score, label; or id, speaker, embedding",
        extensions=(".parquet", ".pq"),
        read=_later("parquet", "read_parquet"),
        write=_later("parquet", "write_parquet"),
    ),
    Format(
        name="zarr",
        kinds=("scores", "trials", "embeddings"),
        layout="zarr directory with the arrays of npz, in chunks (needs evenscore[zarr])",
        extensions=(".zarr",),
        read=_later("zarr_store", "read_zarr"),
        write=_later("zarr_store", "write_zarr"),
    ),
    Format(
        name="bosaris",
        kinds=("scores", "trials"),
        layout="BOSARIS HDF5: Scores, Ndx or Key (ID/row_ids, ID/column_ids, scores, score_mask, trial_mask)",
        extensions=(".h5", ".hdf5"),
        read=_later("bosaris", "read_bosaris"),
        write=_later("bosaris", "write_bosaris"),
    ),
    Format(
        name="bosaris-old-key",
        kinds=("scores", "trials"),
        layout="the same with the masks of the first version of the Key (target_mask, nontarget_mask)",
        read=_later("bosaris", "read_bosaris"),
        write=_later("bosaris", "write_bosaris_old_key"),
    ),
    Format(
        name="sidekit",
        kinds=("scores", "trials"),
        layout="SIDEKIT HDF5: modelset, segset, scores, ...",
        read=_later("bosaris", "read_bosaris"),
    ),
    Format(
        name="dca-plda",
        kinds=("scores", "trials"),
        layout="DCA-PLDA HDF5: enroll_ids, test_ids, scores",
        read=_later("bosaris", "read_bosaris"),
    ),
    Format(
        name="pybosaris",
        kinds=("scores", "trials"),
        layout="PyBOSARIS HDF5: model_names, test_names, score_mat",
        read=_later("bosaris", "read_bosaris"),
    ),
    Format(
        name="kaldi-ark",
        kinds=("embeddings",),
        layout="Kaldi archive of float or double vectors, read in binary and text, written in binary",
        extensions=(".ark",),
        read=_later("kaldi_ark", "read_ark"),
        write=_later("kaldi_ark", "write_ark"),
    ),
    Format(
        name="kaldi-ark-text",
        kinds=("embeddings",),
        layout="Kaldi archive in text: id [ 0.1 0.2 ... ]",
        read=_later("kaldi_ark", "read_ark"),
        write=_later("kaldi_ark", "write_ark_text"),
    ),
    Format(
        name="kaldi-scp",
        kinds=("embeddings",),
        layout="id file.ark:offset, and the archive beside it",
        extensions=(".scp",),
        read=_later("kaldi_ark", "read_scp"),
        write=_later("kaldi_ark", "write_scp"),
    ),
    Format(
        name="npy",
        kinds=("embeddings",),
        layout="NumPy matrix, and a list of ids beside it (name.ids), one per line",
        extensions=(".npy",),
        read=_later("npy", "read_npy"),
        write=_later("npy", "write_npy"),
    ),
    Format(
        name="hdf5",
        kinds=("embeddings",),
        layout="HDF5 with embeddings, ids, speakers; or with one vector per id",
        extensions=(".h5", ".hdf5"),
        read=_later("hdf5_embeddings", "read_hdf5_embeddings"),
        write=_later("hdf5_embeddings", "write_hdf5_embeddings"),
    ),
)


def _refusing(record: Format) -> Format:
    """Return the format with a writer that refuses tables of other kinds than its own."""
    writer = record.write
    if writer is None:
        return record

    def write(table: Any, path: PathLike) -> None:
        if not set(held_as(table)) & set(record.kinds):
            raise unholdable(path, table, record.name, record.kinds)
        writer(table, path)

    return replace(record, write=write)


FORMATS: dict[str, Format] = {each.name: _refusing(each) for each in (*text.FORMATS, *speakers.FORMATS, *_BINARY)}


def format_named(name: str) -> Format:
    """Return the format of this name.

    Examples
    --------
    >>> format_named("kaldi").kinds
    ('scores', 'trials')
    """
    if name not in FORMATS:
        raise InputError(f"there is no format {name!r}; known are {', '.join(sorted(FORMATS))}")
    return FORMATS[name]
