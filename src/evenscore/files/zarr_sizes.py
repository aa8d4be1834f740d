"""A look at what the chunks of a zarr array unpack to, before the zarr library reads them.

Its decoders allocate what a chunk says of itself, or as much as there is in it, whatever the metadata declares: nine
kilobytes of zstd can be 300 MB. Blosc, lz4 and zstd say in their headers how much it is; what does not is unpacked
here, in pieces, and forgotten. A shard is a file of several chunks, with an index of where each begins.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from evenscore.errors import FileError
from evenscore.files.streams import PathLike
from evenscore.files.zarr_metadata import METADATA_FILES, ArrayMetadata, settings_codecs

__all__ = ["Packing", "check_chunk", "check_chunks"]

_SPARE = 1 << 16  # bytes that a chunk may have beside its numbers: headers and checksums
_MANY_CHUNKS, _MOST_ABSENT = 100_000, 1000  # to find that a chunk is absent takes as long as to read a small one
_PIECE = 1 << 20
_SHARDS = "sharding_indexed"
_INDEX = {"bytes": 0, "crc32c": 4}  # codecs of the index of a shard, and the bytes that each adds
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_SIZES = {1: (2, 256), 2: (4, 0), 3: (8, 0)}  # bytes of the size, and what is added to it
_REPEATED, _PACKED = 1, 2  # kinds of blocks
_LARGEST_BLOCK, _SMALL_BLOCKS = 1 << 17, 1 << 26  # bytes


def check_chunks(folder: Path, metadata: ArrayMetadata, path: PathLike, part: str) -> None:
    """Refuse an array with far more chunks than files, and chunks that unpack to more than they must hold."""
    files = list(_files(folder))
    count = 1
    for size, chunk in zip(metadata.shape, metadata.chunks, strict=True):
        count *= -(-size // max(chunk, 1))
    if count > _MANY_CHUNKS and count > _MOST_ABSENT * len(files):
        problem = f"it declares {count} chunks, but only {len(files)} are there; the store is damaged"
        raise FileError(path, problem, part=part)
    packing = Packing.of(metadata, path, part)
    for file in files if packing.packer else ():
        check_chunk(file, packing, path, part)


@dataclass(frozen=True)
class Packing:
    """How the chunks of an array are packed, and how they lie in files."""

    packer: str  #: '' for nothing
    nbytes: int  #: of a chunk in memory
    in_shard: int = 0  #: chunks in a file; 0 where each has a file of its own
    index_bytes: int = 0  #: of a shard
    index_first: bool = False  #: whether it stands before the chunks

    @classmethod
    def of(cls, metadata: ArrayMetadata, path: PathLike, part: str) -> Packing:
        """Return that of an array; shards that others are packed in, or whose index is packed, are refused."""
        packed = any(name == _SHARDS for name, _ in metadata.codecs)
        settings = metadata.codecs[0][1] if packed else {}
        codecs = settings_codecs(settings, "codecs") if packed else metadata.codecs
        index = [name for name, _ in settings_codecs(settings, "index_codecs")]
        shape = settings["chunk_shape"] if packed else metadata.chunks
        names = [name for name, _ in codecs]
        if packed and (len(metadata.codecs) > 1 or _SHARDS in names or not set(index) <= set(_INDEX)):
            problem = "its shards are packed once more, or their index is, which is not read; write it without"
            raise FileError(path, problem, part=part)
        inner = int(np.prod(shape, dtype=object))
        number = int(np.prod(metadata.chunks, dtype=object)) // max(inner, 1) if packed else 0
        return cls(
            packer=next((name for name in reversed(names) if name in _UNPACKED_SIZES), ""),
            nbytes=inner * metadata.dtype.itemsize,
            in_shard=number,
            index_bytes=16 * number + sum(_INDEX[name] for name in index),
            index_first=settings.get("index_location") == "start",
        )

    def chunks(self, stream: BinaryIO) -> Iterator[BinaryIO]:
        """Yield the chunks of a file, as far as they lie in it: what does not, the library refuses."""
        if not self.in_shard:
            yield stream
            return
        end = stream.seek(0, os.SEEK_END)
        if end < self.index_bytes:
            return
        stream.seek(0 if self.index_first else end - self.index_bytes)
        index = np.frombuffer(stream.read(16 * self.in_shard), dtype="<u8").reshape(-1, 2)
        for start, length in index[index[:, 0] < end].tolist():
            stream.seek(start)
            yield io.BytesIO(stream.read(min(length, end)))


def check_chunk(file: Path, packing: Packing, path: PathLike, part: str) -> None:
    """Refuse a file with a chunk that unpacks to more than its bytes in memory."""
    most = packing.nbytes + _SPARE
    with open(file, "rb") as stream:
        size = max((_UNPACKED_SIZES[packing.packer](chunk, most) for chunk in packing.chunks(stream)), default=0)
    if size > most:
        problem = f"{file.name} unpacks to {size} bytes or more, but a chunk has {packing.nbytes}; it is damaged"
        raise FileError(path, problem, part=part)


def _files(folder: Path) -> Iterator[Path]:
    known = {*METADATA_FILES.values(), ".zattrs", ".zgroup"}
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in sorted(names) if name not in known)


def _blosc(stream: BinaryIO, most: int) -> int:
    return int.from_bytes(stream.read(16)[4:8], "little")


def _lz4(stream: BinaryIO, most: int) -> int:
    return int.from_bytes(stream.read(4), "little")


def _zstd(stream: BinaryIO, most: int) -> int:
    """Return what the headers of all frames say; of one that says nothing, what its blocks can be at most.

    Bytes that are no frame are left to the decoder, which refuses them.
    """
    data, at, size = stream.read(), 0, 0
    while data[at : at + 4] == _ZSTD_MAGIC and at + 5 < len(data):
        flags, single = data[at + 4], data[at + 4] >> 5 & 1
        start = at + 6 - single + (0, 1, 2, 4)[flags & 3]
        length, more = (single, 0) if flags < 0x40 else _ZSTD_SIZES[flags >> 6]
        declared = int.from_bytes(data[start : start + length], "little") + more
        at, largest = _after_blocks(data, start + length)
        at += 4 if flags & 4 else 0  # a checksum
        size += declared if length else largest if largest > _SMALL_BLOCKS else 0
    return size


def _after_blocks(data: bytes, at: int) -> tuple[int, int]:
    """Return where the blocks of a frame end, and how much they are at most."""
    largest, last = 0, False
    while not last and at + 3 <= len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(head & 1), head >> 1 & 3, head >> 3
        at += 3 + (1 if kind == _REPEATED else size)
        largest += _LARGEST_BLOCK if kind == _PACKED else size
    return at, largest


def _counted(decoder: Callable[[], Any]) -> Callable[[BinaryIO, int], int]:
    """Return what unpacks a stream in pieces, up to more than there may be, and counts the bytes."""

    def count(stream: BinaryIO, most: int) -> int:
        unpacker, size, data = decoder(), 0, b""
        while size <= most and not unpacker.eof:
            data = getattr(unpacker, "unconsumed_tail", b"") or (stream.read(_PIECE) if _wants(unpacker) else b"")
            new = len(unpacker.decompress(data, _PIECE))
            size += new
            if not data and not new:
                break
        return size

    return count


def _wants(unpacker: Any) -> bool:
    return bool(getattr(unpacker, "needs_input", True))


_UNPACKED_SIZES: dict[str, Callable[[BinaryIO, int], int]] = {
    "blosc": _blosc,
    "zstd": _zstd,
    "lz4": _lz4,
    "zlib": _counted(zlib.decompressobj),
    "gzip": _counted(lambda: zlib.decompressobj(31)),
    "bz2": _counted(bz2.BZ2Decompressor),
    "lzma": _counted(lzma.LZMADecompressor),
}
