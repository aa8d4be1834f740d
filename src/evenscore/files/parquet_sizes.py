"""A look at all sizes that a parquet file declares, before polars reads it.

Polars allocates what a damaged page header asks for, and ends the whole process when that fails (polars 2.1 did so for
83 of 235,000 files with a few wrong bytes). So the footer and the page headers (thrift records in the compact protocol,
see the parquet format's ``parquet.thrift``) are checked first: every page lies in the file, every column has as many
values as it says, and each part of it fits into memory.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path
from typing import Any

from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, refuse_larger_than_memory
from evenscore.memory import refuse_bomb

__all__ = ["check_sizes"]

_MAGIC = b"PAR1"
_DEEPEST = 12
_VALUE_BYTES = 16  # of a text in memory, to which the text itself may come
_MOST_PACKED = 4000  # to 1: a key of all pairs of 2000 and 3000 ids reaches 600
_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3  # types of pages
# Fields of the thrift records, by number.
_ROWS, _GROUPS = 3, 4  # of the footer
_COLUMNS, _GROUP_ROWS = 1, 3  # of a row group
_META = 3  # of a column
_NAME, _VALUES, _STORED, _DATA_AT, _DICTIONARY_AT = 3, 5, 7, 9, 11  # of a column's metadata
_HEADERS = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}  # of a page header, where the number of values is field 1

Record = dict[int, Any]


def check_sizes(file: Path, path: PathLike) -> int:
    """Return how many bytes a parquet file unpacks to; sizes that do not fit together are refused."""
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
            return _check_footer(data, _Thrift(data, start).record(), start, path)
        except (IndexError, KeyError, TypeError, ValueError, AttributeError):
            raise FileError(path, "the footer or a page header is damaged; copy the file again") from None


def _check_footer(data: mmap.mmap, footer: Record, end: int, path: PathLike) -> int:
    groups = footer[_GROUPS]
    if sum(group[_GROUP_ROWS] for group in groups) != footer[_ROWS]:
        raise FileError(path, f"it declares {footer[_ROWS]} rows, but its parts have others; the file is damaged")
    columns = [column[_META] for group in groups for column in group[_COLUMNS]]
    unpacked = sum(_check_column(data, column, end, path) for column in columns)
    values = sum(column[_VALUES] for column in columns)  # of which many may be stored as one that is repeated
    try:
        refuse_bomb(len(data), max(unpacked, values * _VALUE_BYTES), most=_MOST_PACKED)
    except InputError as error:
        raise FileError(path, str(error)) from None
    return max(unpacked, values * _VALUE_BYTES)


def _check_column(data: mmap.mmap, meta: Record, end: int, path: PathLike) -> int:
    """Check the pages of one column of one row group, and return how many bytes they unpack to."""
    name = b".".join(meta[_NAME]).decode(errors="replace")
    at = min(meta[_DATA_AT], meta.get(_DICTIONARY_AT) or meta[_DATA_AT])
    last = at + meta[_STORED]
    if not 4 <= at <= last <= end:
        raise FileError(path, f"its pages lie from byte {at} to {last}, outside the file; copy it again", part=name)
    values = unpacked = 0
    pages = _Thrift(data, at)
    while pages.at < last:
        header = pages.record()
        kind, full, stored = header[1], header[2], header[3]
        count = header[_HEADERS[kind]][1] if kind in _HEADERS else 0
        pages.at += stored
        if min(full, stored, count) < 0 or pages.at > last or (kind == _DICTIONARY and count > full):
            raise FileError(path, "a page is larger than what is stored of it; copy the file again", part=name)
        values += count if kind != _DICTIONARY else 0
        unpacked += max(full, count)
        refuse_larger_than_memory(path, unpacked, part=name)
    if values != meta[_VALUES]:
        problem = f"it declares {meta[_VALUES]} values, but its pages have {values}; the file is damaged"
        raise FileError(path, problem, part=name)
    return unpacked


class _Thrift:
    """Reads thrift records from a place on; bytes that are none raise IndexError (past the end) or ValueError."""

    def __init__(self, data: mmap.mmap, at: int) -> None:
        self.data, self.at = data, at

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError

    def number(self) -> int:
        """Read a zigzag number: 0, -1, 1, -2, ... are stored as 0, 1, 2, 3, ..."""
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def text(self) -> bytes:
        length = self.varint()
        self.at += length
        return self.data[self.at - length : self.at]

    def record(self, depth: int = 0) -> Record:
        """Return the fields of a record by number."""
        fields: Record = {}
        number = 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.number()
            kind = head & 0x0F
            fields[number] = kind == 1 if kind in (1, 2) else self.value(kind, depth + 1)  # truth is its own type
        return fields

    def value(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError
        if kind == 7:  # a double, which no size is
            self.at += 8
            return None
        if kind == 12:
            return self.record(depth)
        if kind in (9, 10):
            head = self.byte()
            length = head >> 4 if head >> 4 < 15 else self.varint()
            if length > len(self.data):
                raise ValueError
            return [self.value(head & 0x0F, depth + 1) for _ in range(length)]
        return _SIMPLE[kind](self)


# Truth values and bytes, whole numbers of all sizes, text; another number is no type.
_SIMPLE = dict.fromkeys((1, 2, 3), _Thrift.byte) | dict.fromkeys((4, 5, 6), _Thrift.number) | {8: _Thrift.text}
