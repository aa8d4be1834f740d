"""Ways to spoil a file: what transfer, other programs and ill will do to it."""

from __future__ import annotations

import gzip
import random
import re
import zlib
from collections.abc import Callable, Sequence

from fuzz import structures
from fuzz.odd_values import EDGES, TEXTS

__all__ = ["mutated"]

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
FIELD = re.compile(rb"[^\s,\"]+")

Mutation = Callable[[bytes, Sequence[bytes], random.Random], bytes]


def mutated(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Return the bytes with one to three things wrong; ``others`` are files of the same kind.

    Half of the files keep the outer shape of their format, so that what is wrong is not the first thing to be seen.
    """
    inner = structures.mutation_of(data)
    if inner is not None and rng.random() < 0.5:
        data = inner(data, rng)
        if rng.random() < 0.8:
            return data
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
    found = list(NUMBER.finditer(data, 0, 1 << 12))
    if not found:
        return _edge_integer(data, others, rng)
    place = rng.choice(found)
    return data[: place.start()] + rng.choice(EDGES) + data[place.end() :]


def _edge_integer(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    size = rng.choice((1, 2, 4, 8))
    value = rng.choice((0, 1, (1 << (8 * size)) - 1, 1 << (8 * size - 1), (1 << (8 * size - 1)) - 1, 1000))
    at = rng.randint(0, max(len(data) - size, 0))
    return data[:at] + (value % (1 << (8 * size))).to_bytes(size, rng.choice(("little", "big"))) + data[at + size :]


def _odd_line(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Repeat, move or empty a line of text, or put something else in the place of a word."""
    lines = data[: 1 << 13].split(b"\n")
    at, kind = rng.randrange(len(lines)), rng.randrange(6)
    if kind == 0:
        lines.insert(rng.randrange(len(lines)), lines[at])
    elif kind == 1:
        lines[at] = lines[at].replace(b" ", rng.choice((b"\t", b"  ", b",", b"")))
    elif kind == 2:
        lines[at] = rng.choice((b"", b"#", b"\r", lines[at] + b"\r", b"\xef\xbb\xbf" + lines[at], lines[at].upper()))
    else:
        words = list(FIELD.finditer(lines[at]))
        if words:
            word = rng.choice(words)
            new = rng.choice((*EDGES, *(text.encode("utf-8", "surrogatepass") for text in TEXTS)))
            lines[at] = lines[at][: word.start()] + new + lines[at][word.end() :]
    return b"\n".join(lines) + data[1 << 13 :]


def _packed(data: bytes, others: Sequence[bytes], rng: random.Random) -> bytes:
    """Wrap it in gzip, or change what is inside, so that check sums are right."""
    if data[:2] == b"\x1f\x8b":
        try:
            return gzip.compress(_flip(gzip.decompress(data), others, rng), 1)
        except (OSError, EOFError, zlib.error):
            return data
    return gzip.compress(data, 1)


_MUTATIONS: tuple[Mutation, ...] = (
    _flip, _flip, _flip, _cut, _drop, _insert, _repeat, _splice, _edge_number, _edge_number, _edge_integer, _odd_line,
    _packed,
)  # fmt: skip
