"""All file formats by name."""

from __future__ import annotations

from evenscore.errors import InputError
from evenscore.files import bosaris, hdf5_embeddings, kaldi_ark, npy, npz, parquet, speakers, zarr_store
from evenscore.files.formats import Format
from evenscore.files.text import formats as text

__all__ = ["FORMATS", "format_named"]

_HOMES = (text, speakers, npz, parquet, zarr_store, bosaris, kaldi_ark, npy, hdf5_embeddings)

#: name -> format; what a format needs for its work is loaded when it is used
FORMATS: dict[str, Format] = {record.name: record for home in _HOMES for record in home.FORMATS}


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
