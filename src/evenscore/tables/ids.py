"""Ids of enrolments, tests and speakers: read-only arrays of Python strings, and looking them up."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

__all__ = [
    "Ids",
    "IdsLike",
    "as_ids",
    "as_speakers",
    "as_texts",
    "encode",
    "first_repeat",
    "merge",
    "same_but_for_path",
    "shown",
]

Ids = npt.NDArray[np.object_]
IdsLike = Iterable[Any]
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{1,4}$")  # of a file, such as .wav
_LOOKED_AT = 20  # ids, to see what is wrong with all of them


def shown(values: Iterable[object], most: int = 3) -> str:
    """Return a few ids for a message: the first ones, and how many more there are."""
    values = list(values)
    text = ", ".join(repr(str(value)) for value in values[:most])
    return text if len(values) <= most else f"{text} and {len(values) - most} more"


def same_but_for_path(names: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Return the first name that another list has with other directories or another suffix, and how it stands there.

    Examples
    --------
    >>> same_but_for_path(["wav/ann/1.wav"], ["bob/1", "ann/1"])
    ('wav/ann/1.wav', 'ann/1')
    """
    whole: dict[str, str] = {}
    ends: dict[str, str] = {}
    for other in others:
        first, *rest = _endings(other)
        whole[first] = other
        ends |= dict.fromkeys(rest, other)
    for name in list(names)[:_LOOKED_AT]:
        endings = _endings(name)
        found = next((whole[end] for end in endings if end in whole), ends.get(endings[0]))
        if found is not None:
            return name, found
    return None


def _endings(name: str) -> list[str]:
    """Return a path without its suffix, then with fewer and fewer directories."""
    parts = _SUFFIX.sub("", name.replace("\\", "/")).split("/")
    return ["/".join(parts[place:]) for place in range(len(parts))]


def as_texts(values: IdsLike, what: str) -> Ids:
    """Return a fresh object array of Python strings, with None where there was None."""
    if isinstance(values, str | bytes):
        raise InputError(f"{what} is the single text {values!r}, but must be a sequence of ids; put it in a list")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InputError(f"{what} must be one-dimensional, but has shape {values.shape}")
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    texts = np.empty(len(items), dtype=object)
    if set(map(type, items)) == {str}:
        texts[:] = items
        return texts
    for place, item in enumerate(items):
        if isinstance(item, bytes):
            try:
                texts[place] = item.decode()
            except UnicodeDecodeError:
                raise InputError(f"{what}[{place}] is {item!r}, which is not valid UTF-8") from None
        elif item is None:
            texts[place] = None
        elif isinstance(item, str | int | np.integer) and not isinstance(item, bool):
            texts[place] = str(item)
        else:
            raise InputError(f"{what}[{place}] is {item!r}, but ids must be text")
    return texts


def first_repeat(values: Iterable[str]) -> str | None:
    """Return the first value that occurs a second time."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None


def as_ids(values: IdsLike, what: str, length: int | None = None) -> Ids:
    """Return ids as a read-only array of unique, non-empty strings; whole numbers become text.

    Examples
    --------
    >>> as_ids(["spk1", "spk2"], "enroll_ids")
    array(['spk1', 'spk2'], dtype=object)
    """
    ids = as_texts(values, what)
    if length is not None and len(ids) != length:
        raise InputError(f"{what} has {len(ids)} ids, but {length} are needed")
    unique = set(ids.tolist())
    if None in unique or "" in unique:
        place = next(i for i, value in enumerate(ids) if not value)
        raise InputError(f"{what}[{place}] is empty, but every id must have at least one character")
    if len(unique) != len(ids):
        raise InputError(f"{what} has {first_repeat(ids)!r} more than once; ids must be unique")
    ids.flags.writeable = False
    return ids


def as_speakers(values: IdsLike, what: str, length: int | None = None) -> Ids:
    """Return speaker ids as a read-only array; they may repeat, and None or '' means unknown (stored as None)."""
    speakers = as_texts(values, what)
    if length is not None and len(speakers) != length:
        raise InputError(f"{what} has {len(speakers)} speakers, but {length} are needed")
    for place, value in enumerate(speakers):
        if value == "":
            speakers[place] = None
    speakers.flags.writeable = False
    return speakers


def merge(parts: Iterable[Ids]) -> Ids:
    """Return the union of several lists of ids, in order of first appearance."""
    union = list(dict.fromkeys(name for part in parts for name in part.tolist()))
    ids = np.empty(len(union), dtype=object)
    ids[:] = union
    ids.flags.writeable = False
    return ids


def encode(values: IdsLike, what: str) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return the distinct ids, in order of first appearance, and for each value which of them it is."""
    names = as_texts(values, what)
    codes: dict[str, int] = {}
    index = np.fromiter((codes.setdefault(name, len(codes)) for name in names), dtype=np.int32, count=len(names))
    return as_ids(list(codes), what), index
