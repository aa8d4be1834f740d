"""A look at all sizes that a parquet file declares, before polars reads it.

Polars allocates what a damaged page header asks for, and ends the whole process when that fails. So the footer and the
page headers (thrift records in the compact protocol, see the parquet format's ``parquet.thrift``) are checked first:
every page lies in the file, every column has as many values as it says, and all of it fits into memory.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from evenscore.errors import FileError
from evenscore.files.checks import refuse_larger_than_memory
from evenscore.files.streams import PathLike

__all__ = ["check_sizes"]

_MAGIC = b"PAR1"
_DEEPEST = 12
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # types of pages
# Fields of the thrift records, by number.
_ROWS, _GROUPS = 3, 4  # of the footer
_COLUMNS, _GROUP_ROWS = 1, 3  # of a row group
_META = 3  # of a column
_NAME, _VALUES, _STORED, _DATA_AT, _DICTIONARY_AT = 3, 5, 7, 9, 11  # of a column's metadata
_HEADERS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}  # of a page header, where the number of values is field 1

Record = dict[int, Any]


class _DamagedError(Exception):
    """The bytes are no thrift record."""


def check_sizes(file: Path, path: PathLike) -> None:
    """Refuse a parquet file whose declared sizes do not fit together, or do not fit into memory."""
    size = file.stat().st_size
    if size < 12:
        raise FileError(path, f"it is not a parquet file: it has only {size} bytes")
    with open(file, "rb") as raw, mmap.mmap(raw.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data[:4] != _MAGIC or data[-4:] != _MAGIC:
            raise FileError(path, "it is not a parquet file, or it is cut off: PAR1 must stand at both ends")
        start = size - 8 - struct.unpack("<I", data[-8:-4])[0]
        if start < 4:
            raise FileError(path, "the footer is longer than the file; the file is damaged, copy it again")
        try:
            footer, _ = _record(data, start, size - 8)
            _check_footer(data, footer, start, path)
        except (_DamagedError, KeyError, TypeError, AttributeError):
            raise FileError(path, "the footer or a page header is damaged; copy the file again") from None


def _check_footer(data: mmap.mmap, footer: Record, end: int, path: PathLike) -> None:
    groups = footer[_GROUPS]
    if sum(group[_GROUP_ROWS] for group in groups) != footer[_ROWS]:
        raise FileError(path, f"it declares {footer[_ROWS]} rows, but its parts have others; the file is damaged")
    unpacked = 0
    for group in groups:
        for column in group[_COLUMNS]:
            unpacked += _check_column(data, column[_META], end, path)
    refuse_larger_than_memory(path, unpacked)


def _check_column(data: mmap.mmap, meta: Record, end: int, path: PathLike) -> int:
    """Check the pages of one column of one row group, and return how many bytes they unpack to."""
    name = b".".join(meta[_NAME]).decode(errors="replace")
    at = min(meta[_DATA_AT], meta.get(_DICTIONARY_AT) or meta[_DATA_AT])
    last = at + meta[_STORED]
    if not 4 <= at <= last <= end:
        raise FileError(path, f"its pages lie from byte {at} to {last}, outside the file; copy it again", part=name)
    values = unpacked = 0
    while at < last:
        header, at = _record(data, at, last)
        kind, full, stored = header[1], header[2], header[3]
        count = header[_HEADERS[kind]][1] if kind in _HEADERS else 0
        at += stored
        if min(full, stored, count) < 0 or at > last or (kind == _DICTIONARY and count > full):
            raise FileError(path, "a page is larger than what is stored of it; copy the file again", part=name)
        values += count if kind != _DICTIONARY else 0
        unpacked += max(full, count)
        refuse_larger_than_memory(path, unpacked, part=name)
    if values != meta[_VALUES]:
        problem = f"it declares {meta[_VALUES]} values, but its pages have {values}; the file is damaged"
        raise FileError(path, problem, part=name)
    return unpacked


def _varint(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise _DamagedError
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _DamagedError


def _number(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    """Read a zigzag number: 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ..."""
    value, at = _varint(data, at, end)
    return (value >> 1) ^ -(value & 1), at


def _record(data: mmap.mmap, at: int, end: int, depth: int = 0) -> tuple[Record, int]:
    """Read a thrift record from ``at``; return its fields by number, and where it ends."""
    fields: Record = {}
    number = 0
    while True:
        head, at = _byte(data, at, end)
        if head == 0:
            return fields, at
        if head >> 4:
            number += head >> 4
        else:
            number, at = _number(data, at, end)
        kind = head & 0x0F
        if kind in (1, 2):  # a truth value is its own type
            fields[number] = kind == 1
        else:
            fields[number], at = _value(data, at, end, kind, depth + 1)


def _value(data: mmap.mmap, at: int, end: int, kind: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise _DamagedError
    if kind in (1, 2, 3):
        return _byte(data, at, end)
    if kind in (4, 5, 6):
        return _number(data, at, end)
    if kind == 7:
        return None, _within(at + 8, end)
    if kind == 8:
        length, at = _varint(data, at, end)
        return data[at : at + length], _within(at + length, end)
    if kind in (9, 10):
        return _list(data, at, end, depth)
    if kind == 12:
        return _record(data, at, end, depth)
    raise _DamagedError


def _list(data: mmap.mmap, at: int, end: int, depth: int) -> tuple[list[Any], int]:
    head, at = _byte(data, at, end)
    length = head >> 4
    if length == 15:
        length, at = _varint(data, at, end)
    if length > end - at:
        raise _DamagedError
    values = []
    for _ in range(length):
        value, at = _value(data, at, end, head & 0x0F, depth + 1)
        values.append(value)
    return values, at


def _byte(data: mmap.mmap, at: int, end: int) -> tuple[int, int]:
    if at >= end:
        raise _DamagedError
    return data[at], at + 1


def _within(at: int, end: int) -> int:
    if at > end:
        raise _DamagedError
    return at
