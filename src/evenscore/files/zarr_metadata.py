"""What the metadata of zarr arrays says, in format 2 (``.zarray``) and in format 3 (``zarr.json``), read without zarr.

Both formats come in the words of format 3. All arrays of a store have the format of the store itself, whatever else
lies beside them: a store that was migrated keeps its old metadata.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from evenscore.errors import FileError
from evenscore.files.streams import PathLike

__all__ = ["METADATA_FILES", "ArrayMetadata", "ZarrFormat", "array_metadata", "settings_codecs", "store_format"]

ZarrFormat = Literal[2, 3]

METADATA_FILES: dict[ZarrFormat, str] = {2: ".zarray", 3: "zarr.json"}  #: that tell about an array

_LARGEST = 1 << 20
_TEXT_TYPES = {"fixed_length_utf32": ("U", 4), "null_terminated_bytes": ("S", 1)}


@dataclass(frozen=True)
class ArrayMetadata:
    """One array of a store."""

    format: ZarrFormat
    shape: tuple[int, ...]
    chunks: tuple[int, ...]  #: shape of what is in one file: a chunk, or a shard of several
    names: str  #: of these files, with {} for each place: ``{}.{}`` or ``c/{}/{}``
    data_type: Any
    fill_value: Any
    codecs: tuple[tuple[str, dict[str, Any]], ...]  #: names and settings, in the order in which they pack

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values in memory; that of objects for all that are not of a fixed size."""
        kind = self.data_type
        if isinstance(kind, dict) and kind.get("name") in _TEXT_TYPES:
            letter, size = _TEXT_TYPES[kind["name"]]
            return np.dtype(f"{letter}{int(kind['configuration']['length_bytes']) // size}")
        return np.dtype(kind) if isinstance(kind, str) and kind != "string" else np.dtype(object)

    def all_codecs(self) -> Iterator[str]:
        """Yield the names of the codecs, also of those within shards."""
        waiting = list(self.codecs)
        for name, settings in waiting:
            yield name
            for inner in ("codecs", "index_codecs") if name == "sharding_indexed" else ():
                waiting.extend(settings_codecs(settings, inner))


def store_format(folder: Path) -> ZarrFormat | None:
    """Return the format of a store; None for a directory that is no store."""
    if (folder / "zarr.json").is_file():
        return 3
    return 2 if any((folder / name).is_file() for name in (".zgroup", ".zarray")) else None


def array_metadata(folder: Path, format: ZarrFormat | None, path: PathLike, part: str) -> ArrayMetadata | None:
    """Return what is known about an array, None for a group or any other directory.

    ``path`` and ``part`` are what an error names. Metadata that lacks something is a `KeyError`, as any error here a
    sign of a damaged store.
    """
    file = None if format is None else folder / METADATA_FILES[format]
    if format is None or file is None or not file.is_file():
        return None
    if file.stat().st_size > _LARGEST:
        raise FileError(path, "its metadata is larger than 1 MB; the store is damaged", part=part)
    found = json.loads(file.read_bytes())
    if not isinstance(found, dict):
        raise FileError(path, "its metadata is not a JSON object; the store is damaged", part=part)
    if found.get("zarr_format") != format:
        problem = f"its metadata is not of zarr's format {format}, as that of the store is; the store is damaged"
        raise FileError(path, problem, part=part)
    if format == 2:
        return _of_format_2(found)
    return _of_format_3(found, path, part) if found.get("node_type") == "array" else None


def _of_format_2(found: dict[str, Any]) -> ArrayMetadata:
    big = isinstance(found["dtype"], str) and found["dtype"].startswith(">")
    turned = [] if found["order"] == "C" else ["transpose"]
    packed = [found["compressor"]] if found.get("compressor") else []
    return ArrayMetadata(
        format=2,
        shape=tuple(found["shape"]),
        chunks=tuple(found["chunks"]),
        names=_names(len(found["shape"]), found.get("dimension_separator") or "."),
        data_type=found["dtype"],
        fill_value=found.get("fill_value"),
        codecs=(
            *map(_named, [*(found.get("filters") or []), *turned]),
            ("bytes", {"endian": "big" if big else "little"}),
            *map(_named, packed),
        ),
    )


def _of_format_3(found: dict[str, Any], path: PathLike, part: str) -> ArrayMetadata:
    (grid, layout), (encoding, naming) = _named(found["chunk_grid"]), _named(found["chunk_key_encoding"])
    known = {"its chunks lie": (grid, ("regular",)), "its chunks are named": (encoding, ("default", "v2"))}
    for what, (name, names) in known.items():
        if name not in names:
            raise FileError(path, f"{what} in the way {name!r}, which is not read; write it without", part=part)
    if found.get("storage_transformers"):
        raise FileError(path, "it has storage transformers, which are not read; write it without", part=part)
    prefix = ("c",) if encoding == "default" else ()
    return ArrayMetadata(
        format=3,
        shape=tuple(found["shape"]),
        chunks=tuple(layout["chunk_shape"]),
        names=_names(len(found["shape"]), naming.get("separator", "/" if prefix else "."), *prefix),
        data_type=found["data_type"],
        fill_value=found["fill_value"],
        codecs=tuple(map(_named, found["codecs"])),
    )


def settings_codecs(settings: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the codecs of a shard's chunks, or of its index."""
    return list(map(_named, settings.get(name, [])))


def _named(extension: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the settings of a codec or the like, which has several forms."""
    if isinstance(extension, str):
        return extension, {}
    if "id" in extension:
        return extension["id"], {name: value for name, value in extension.items() if name != "id"}
    return extension["name"], extension.get("configuration") or {}


def _names(dimensions: int, separator: str, *prefix: str) -> str:
    if separator not in (".", "/"):
        raise ValueError(f"chunks cannot be named with {separator!r}")
    return separator.join([*prefix, *["{}"] * dimensions]) or "0"
