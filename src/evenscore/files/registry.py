"""All file formats by name."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from evenscore.errors import InputError
from evenscore.files.formats import Format

__all__ = ["FORMATS", "format_named"]

_HOMES = ("text.formats", "speakers", "npz", "parquet", "zarr_store", "bosaris", "kaldi_ark", "npy", "hdf5_embeddings")


def _collected() -> dict[str, Format]:
    found: dict[str, Format] = {}
    for home in _HOMES:
        name = f"evenscore.files.{home}"
        if find_spec(name) is None:
            continue
        found |= {record.name: record for record in import_module(name).FORMATS}
    return found


FORMATS: dict[str, Format] = _collected()


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
