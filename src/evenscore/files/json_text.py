"""Small JSON files, read with suspicion: limited in size and depth, no repeated keys, no NaN, UTF-8 only."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NoReturn

from evenscore.errors import FileError, InputError
from evenscore.files.streams import PathLike, atomic_output, open_input, reading

__all__ = ["kind_of", "read_json", "read_object", "shown", "write_object"]


def read_json(path: PathLike, *, largest: int = 10_000_000) -> dict[str, Any]:
    r"""Read a JSON object, such as facts about speakers, from a file of at most ``largest`` bytes.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "speakers.json"
    >>> _ = path.write_text('{"ann": {"gender": "female"}}')
    >>> read_json(path)
    {'ann': {'gender': 'female'}}
    """
    return read_object(path, largest=largest)


def read_object(path: PathLike, *, largest: int) -> dict[str, Any]:
    """Return the JSON object in a file of at most ``largest`` bytes (unpacked, if it is gzip)."""
    with open_input(path) as stream, reading(path):
        data = stream.read(largest + 1)
    if len(data) > largest:
        raise FileError(path, f"it is larger than {largest // 1000} kB, so it is not a file of this kind")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(path, f"byte 0x{data[error.start]:02x} is not UTF-8, but JSON files are UTF-8") from None
    try:
        value = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise FileError(path, f"this is not JSON: {error.msg} (column {error.colno})", line=error.lineno) from None
    except RecursionError:
        raise FileError(path, "it is nested too deeply for a model file") from None
    except ValueError as error:  # our own refusals, and whole numbers of thousands of digits
        raise FileError(path, str(error)) from None
    if not isinstance(value, dict):
        raise FileError(path, f"expected a JSON object {{...}}, but found {kind_of(value)}")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise InputError(f"the key {key!r} stands twice in one object; keep one of them")
        values[key] = value
    return values


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"the value {name} is not finite, and no JSON either")


def write_object(path: PathLike, values: Mapping[str, Any]) -> None:
    """Write an object with one line per key; the keys of inner objects get lines of their own, too."""
    lines = []
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            inner = ",\n".join(f"    {_dumped(name)}: {_dumped(item)}" for name, item in value.items())
            lines.append(f"  {_dumped(key)}: {{\n{inner}\n  }}")
        else:
            lines.append(f"  {_dumped(key)}: {_dumped(value)}")
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    with atomic_output(path) as stream:
        stream.write(text.encode("ascii"))


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"{shown(value)} cannot be written as JSON: use text, finite numbers, lists") from None


def kind_of(value: object) -> str:
    """Return what JSON calls a value, for a message."""
    kinds = {bool: "true or false", dict: "an object", list: "a list", str: "text", type(None): "null"}
    return kinds.get(type(value), "a number")


def shown(value: object, longest: int = 60) -> str:
    """Return a value for a message, cut off if it is long."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number beyond the range of floating point"
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a whole number of thousands of digits, a deep list
        return kind_of(value)
    return text if len(text) <= longest else f"{text[:longest]}..."
