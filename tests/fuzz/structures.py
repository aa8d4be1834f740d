"""Spoils files as their formats are built: the outer shape stays right, and something within it is wrong."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

from fuzz.odd_values import SIZES, TEXTS
from fuzz.thrift_places import varint, varints_of

__all__ = ["mutation_of"]

Mutation = Callable[[bytes, random.Random], bytes]

PACKINGS = (
    [zipfile.ZIP_STORED] * 20 + [zipfile.ZIP_DEFLATED] * 8 + [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)  # slow ones last
DEEP = "deep nesting"  #: stands for more brackets than a writer of JSON would write
DTYPES = (
    "<f8", ">f4", "<f2", "<f4", "|O", "<U5", "<U0", "|S0", "|S7", "|V8", "<c16", "<M8[s]", "|b1", "<i8", "<u1", "<i4",
    "<f16", "f", "d", "", "<U999999999", "object", "x", "<f8,<f8", "|i1", ">i2",
)  # fmt: skip
HDF5_MARK = re.compile(rb"OHDR|TREE|HEAP|SNOD|FRHP|FHDB|FHIB|BTHD|BTLF|GCOL|FADB|FAHD|OCHK|\x89HDF")


def mutation_of(data: bytes) -> Mutation | None:
    """Return how to spoil such a file from within; None for text and all else that has no structure to keep."""
    starts = {b"PK\x03\x04": of_zip, b"\x93NUM": of_npy, b"PAR1": of_parquet, b"\x89HDF": of_hdf5}
    return starts.get(data[:4], of_json if data[:1] in (b"{", b"[") else None)


# ---- JSON


def of_json(data: bytes, rng: random.Random) -> bytes:
    """Change, drop, add or move values at any depth."""
    try:
        whole = {"": json.loads(data)}
    except ValueError:  # it was spoilt before
        return data
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        inside, key = rng.choice(list(_places(whole)))
        _change(inside, key, rng)
    try:
        text = json.dumps(whole.get(""))
    except (ValueError, RecursionError):  # a part was put into itself
        return data
    depth = rng.choice((50, 1000, 200_000))
    return text.replace(f'"{DEEP}"', "[" * depth + "]" * depth).encode()


def _places(value: Any) -> Any:
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(one, dict | list):
            yield from _places(one)


def _change(inside: Any, key: Any, rng: random.Random) -> None:
    value, kind = inside[key], rng.randrange(10)
    if kind == 0 and key != "":
        del inside[key]
    elif kind == 1:
        inside.insert(key, value) if isinstance(inside, list) else inside.update({rng.choice(TEXTS): value})
    elif kind == 2 and isinstance(inside, list):
        inside[key:] = inside[key:][::-1] * rng.choice((1, 2, 30))
    elif kind == 3 and isinstance(value, int | float) and abs(value) < 1e300:
        inside[key] = rng.choice((-value, value * 1e9, value + 1, str(value), [value], 1e-300, float(value)))
    elif kind == 4 and isinstance(value, list):
        inside[key] = value[: rng.randint(0, len(value))]
    else:
        odd = (None, True, False, "", "x", [], {}, [[]], [None], {"": []}, DEEP, 0.5, 1e-320, 1e155, 1e308, 10**400)
        inside[key] = rng.choice((*odd, float("nan"), float("inf"), -0.0, *SIZES, *TEXTS, [1.5] * 3, "nan", "<f8"))


# ---- NumPy


def of_npy(data: bytes, rng: random.Random) -> bytes:
    """Write another header; half of the time the data have the size that it asks for."""
    start = 10 + int.from_bytes(data[8:10], "little")
    found = re.search(rb"'descr': (.*?), 'fortran_order': (\w+), 'shape': (\(.*?\))", data[10:start])
    if found is None:
        return data
    descr, order, shape = (part.decode() for part in found.groups())
    body = data[start:]
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.randrange(5)
        if kind == 0:
            descr = rng.choice((*map(repr, DTYPES), "[('a', '<f8')]", "{}", "1", "[]", "('<f8', (2,))"))
        elif kind == 1:
            shape = _odd_shape(shape, rng)
        elif kind == 2:
            order = rng.choice(("True", "False", "None", "1", "'C'"))
        elif kind == 3:
            body = b"".join(rng.choice((b"\0" * 4, b"\xff" * 4, rng.randbytes(4))) for _ in range(len(body) // 4))
        else:
            body = body[: rng.randint(0, len(body))] + b"\0" * rng.choice((0, 1, 8, 1000))
    if rng.random() < 0.5:
        body = _of_size(body, descr, shape)
    extra = rng.choice(("", "", "", ", 'x': 1", ", 'shape': (2,)", " " * 70_000, ", 'descr': " + "(" * 500))
    header = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, {extra}}}"
    version = rng.choice((1, 1, 1, 1, 2, 3, 0, 255))
    length = struct.pack("<H" if version == 1 else "<I", (len(header) + 1) % (1 << 16))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + b"\n" + body


def _odd_shape(shape: str, rng: random.Random) -> str:
    sizes = [int(size) for size in re.findall(r"-?\d+", shape)]
    kind = rng.randrange(5)
    if kind == 0:
        return rng.choice(("()", "5", "(5)", "[5]", "None", "(1.0,)", "('a',)", "(True,)", "(0,)", "(0, 5)", "(5, 0)"))
    if kind == 1:
        sizes = [*sizes, rng.choice((0, 1, 2))] * rng.choice((1, 1, 20))
    elif kind == 2:
        sizes = sizes[::-1]
    elif sizes:
        sizes[rng.randrange(len(sizes))] = rng.choice(SIZES)
    return "(" + "".join(f"{size}, " for size in sizes) + ")"


def _of_size(body: bytes, descr: str, shape: str) -> bytes:
    """Return data of the size that a header asks for, if that is not much."""
    width = re.search(r"[fiucbSU](\d+)", descr)
    sizes = [int(size) for size in re.findall(r"-?\d+", shape)]
    needed = int(width.group(1)) * (4 if "U" in descr else 1) if width else 8
    for size in sizes:
        needed *= max(size, 0)
    return (body * (needed // max(len(body), 1) + 1))[:needed].ljust(needed, b"\0") if needed < 1 << 16 else body


# ---- zip


def of_zip(data: bytes, rng: random.Random) -> bytes:
    """Change a member or the list of members, and sometimes what the headers say about them."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # it was spoilt before
        return data
    if not members:
        return data
    at, kind = rng.randrange(len(members)), rng.randrange(12)
    name, content = members[at]
    if kind < 8:
        inner = mutation_of(content) or _flip_some
        members[at] = name, inner(content, rng)
    elif kind == 8:
        members.append((name, members[rng.randrange(len(members))][1]))
    elif kind == 9:
        members.pop(at)
    elif kind == 10:
        members[at] = rng.choice((*(name for name, _ in members), "x", "é.npy", "../x.npy", "labels.npy")), content
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", rng.choice(PACKINGS)) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            entry = zipfile.ZipInfo(name)
            entry.compress_type = archive.compression
            archive.writestr(entry, content)
    return out.getvalue() if rng.random() < 0.7 else _odd_zip_header(out.getvalue(), rng)


def _odd_zip_header(data: bytes, rng: random.Random) -> bytes:
    """Write another number into a field of a local header, of the directory, or of its end."""
    fields = {
        b"PK\x03\x04": ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
        b"PK\x01\x02": ((6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)),
        b"PK\x05\x06": ((4, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
    }
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2))):
        mark = rng.choice(sorted(fields))
        starts = [found.start() for found in re.finditer(re.escape(mark), data)]
        if starts:
            field, size = rng.choice(fields[mark])
            at = rng.choice(starts) + field
            changed[at : at + size] = (rng.choice(SIZES) % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _flip_some(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8)) if data else 0):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


# ---- parquet and HDF5


def of_parquet(data: bytes, rng: random.Random) -> bytes:
    """Write another number into the footer or a page header, or spoil what a page holds."""
    end = len(data) - 8
    start = end - int.from_bytes(data[-8:-4], "little")
    if start < 4:
        return data
    if rng.random() < 0.4:  # the pages, from the first header on
        at = rng.randrange(4, max(start, 5))
        page = bytearray(data)
        for place in range(at, min(at + rng.choice((1, 1, 2, 4, 16)), start)):
            page[place] = rng.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        return bytes(page)
    places = varints_of(data, start, end)
    footer = data[start:end]
    if places:
        first, last = rng.choice(places)
        old = int.from_bytes(data[first:last], "little")
        new = varint(rng.choice((*(size % (1 << 64) for size in SIZES), old + 1, old + 2, old ^ 1)))
        footer = data[start:first] + new + data[last:end]
    return data[:start] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def of_hdf5(data: bytes, rng: random.Random) -> bytes:
    """Write another number near a mark of the library's own structures, or at a byte that is not 0."""
    changed = bytearray(data)
    marks = [found.start() for found in HDF5_MARK.finditer(data)]
    for _ in range(rng.choice((1, 1, 2, 3))):
        if rng.random() < 0.5 and marks:
            at = rng.choice(marks) + rng.randrange(4, 120)
        else:
            at = rng.randrange(len(data))
            while at < len(data) and not data[at]:
                at += 1
        size = rng.choice((1, 1, 2, 4, 8))
        value = rng.choice((rng.choice(SIZES), rng.randrange(256), rng.randrange(len(data))))
        if at + size <= len(data):
            changed[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)
