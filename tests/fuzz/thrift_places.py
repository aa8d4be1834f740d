"""Where the numbers of a thrift record stand (compact protocol), as parquet has them."""

from __future__ import annotations

from contextlib import suppress

__all__ = ["varint", "varints_of"]


def varint(value: int) -> bytes:
    """Return a number as thrift stores it, seven bits a byte."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def varints_of(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Return the places of all numbers and lengths of a record; those before the first thing that is none."""
    places: list[tuple[int, int]] = []
    with suppress(IndexError):
        _record(data[:end], start, places)
    return places


def _number(data: bytes, at: int, places: list[tuple[int, int]]) -> int:
    last = at
    while data[last] & 0x80:
        last += 1
    places.append((at, last + 1))
    return last + 1


def _record(data: bytes, at: int, places: list[tuple[int, int]]) -> int:
    while head := data[at]:
        at += 1
        if not head >> 4:
            at = _number(data, at, places)
        if head & 0x0F not in (1, 2):  # truth is its own type
            at = _value(data, at, head & 0x0F, places)
    return at + 1


def _value(data: bytes, at: int, kind: int, places: list[tuple[int, int]]) -> int:
    if kind in (1, 2, 3):
        return at + 1
    if kind == 7:
        return at + 8
    if kind == 8:
        first = at
        at = _number(data, at, places)
        return at + sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[first:at]))
    if kind == 12:
        return _record(data, at, places)
    if kind in (9, 10):
        head = data[at]
        at += 1
        length = head >> 4
        if length == 15:
            first = at
            at = _number(data, at, places)
            length = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data[first:at]))
        for _ in range(length):
            at = _value(data, at, head & 0x0F, places)
        return at
    return _number(data, at, places)
