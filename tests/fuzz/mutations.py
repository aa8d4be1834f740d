"""Ways to spoil a file: what transfer, other programs and ill will do to it."""

from __future__ import annotations

import gzip
import io
import random
import re
import zipfile
import zlib
from collections.abc import Callable, Sequence

__all__ = ["mutated"]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
#: Numbers at the edges of what types can hold.
EDGES = (
    b"0", b"-0.0", b"1e-320", b"5e-324", b"1e154", b"-1e155", b"1e308", b"1e309", b"-1e999", b"nan", b"inf",
    b"-Infinity",
    b"9" * 400, b"-" + b"9" * 400, b"1" + b"0" * 30, b"2147483648", b"9223372036854775808", b"-1", b"3,5", b"0x10",
    b"1_0",
    b"null", b"true", b'"1"', b"[]", b"{}", b"",
)  # fmt: skip
#: Text that terminals, pages and encodings stumble over.
TEXTS = (
    "\x00", "\x1b[31m", "\u202e", "\ud800", "\ufeff", "\u2028", "<script>", "é", "e\u0301", "../..", "*", "%s", "\t",
    "\r", "\n", " ", "'", '"', ",", "a" * 5000, "😀",
)  # fmt: skip

Mutation = Callable[[bytes, Sequence[bytes], random.Random], bytes]


def mutated(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Return the bytes with one to three things wrong; ``others`` are files of the same kind."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = rng.choice(_MUTATIONS)(data, others, rng)
    return data


def _flip(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4, 16)) if data else 0):
        changed[rng.randrange(len(changed))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(changed)


def _cut(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    return data[: rng.randint(0, len(data))]


def _drop(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    return data[:start] + data[start + rng.choice((1, 2, 4, 8, 64)) :]


def _insert(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    at = rng.randint(0, len(data))
    new = rng.choice((rng.randbytes(rng.randint(1, 16)), rng.choice(TEXTS).encode("utf-8", "surrogatepass")))
    return data[:at] + new + data[at:]


def _repeat(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    start = rng.randint(0, len(data))
    part = data[start : start + rng.choice((1, 8, 64, 512))]
    return data[:start] + part * rng.choice((2, 3, 50)) + data[start + len(part) :]


def _splice(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    other = rng.choice(others)
    return data[: rng.randint(0, len(data))] + other[rng.randint(0, len(other)) :]


def _edge_number(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    found = list(NUMBER.finditer(data[: 1 << 16]))
    if not found:
        return _edge_integer(data, others, rng)
    place = rng.choice(found)
    return data[: place.start()] + rng.choice(EDGES) + data[place.end() :]


def _edge_integer(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    size = rng.choice((1, 2, 4, 8))
    value = rng.choice((0, 1, (1 << (8 * size)) - 1, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1, 1000))
    at = rng.randint(0, max(len(data) - size, 0))
    return data[:at] + (value % (1 << (8 * size))).to_bytes(size, rng.choice(("little", "big"))) + data[at + size :]


def _packed(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Wrap it in gzip, or change what is inside, so that check sums are right."""
    if data[:2] == b"\x1f\x8b":
        try:
            return gzip.compress(_flip(gzip.decompress(data), others, rng), 1)
        except (OSError, EOFError, zlib.error):
            return data
    if data[:2] == b"PK":
        return _within_zip(data, others, rng)
    return gzip.compress(data, 1)


def _within_zip(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
    except Exception:  # it was spoilt before
        return data
    if not members:
        return data
    name = rng.choice(sorted(members))
    inner = rng.choice((_flip, _cut, _edge_integer, _insert, _drop))
    members[name] = inner(members[name], [members[name]], rng)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


_MUTATIONS: tuple[Mutation, ...] = (
    _flip, _flip, _flip, _cut, _drop, _insert, _repeat, _splice, _edge_number, _edge_number, _edge_integer, _packed,
)  # fmt: skip
