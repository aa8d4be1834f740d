"""What stands along one axis of a table of scores: ids, and what is known about each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError, quoted

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Ids", "IdsLike", "Side", "SpeakersLike", "as_strings", "replaced", "union"]

Ids = npt.NDArray[np.object_]  #: Python strings, in an object array
IdsLike = Iterable[Any]
SpeakersLike = IdsLike | Mapping[str, str | None]
Positions = npt.NDArray[np.intp]
Record = TypeVar("Record")


@dataclass(frozen=True, eq=False)
class Side:
    """The enrolments or the tests of a table, in order.

    Parameters
    ----------
    ids
        Unique, non-empty ids; whole numbers become text.
    speakers
        The speaker of each id, or a mapping from id to speaker; None or "" where it is not known.
    columns
        Further facts, one value per id, such as gender, phrase or duration.

    Examples
    --------
    >>> side = Side(["u1", "u2"], speakers={"u1": "ann", "u2": "bob"})
    >>> side.take([1]).speakers
    array(['bob'], dtype=object)
    """

    ids: Ids
    speakers: Ids | None = None
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __init__(
        self,
        ids: IdsLike,
        speakers: SpeakersLike | None = None,
        columns: Mapping[str, npt.ArrayLike] | None = None,
        *,
        name: str = "ids",
    ) -> None:
        names = as_strings(ids, name)
        _refuse_bad_ids(names, name)
        arrays = {column: np.asarray(values) for column, values in (columns or {}).items()}
        for column, values in arrays.items():
            if len(values) != len(names):
                raise InputError(f"column {column!r} has {len(values)} values, but {len(names)} are needed")
        known = None if speakers is None else _speakers_of(speakers, names, name)
        vars(self).update(ids=names, speakers=known, columns=arrays)  # a frozen record that is being made

    @classmethod
    def trusted(cls, ids: Ids, speakers: Ids | None = None, columns: Mapping[str, Any] | None = None) -> Side:
        """Return a side of arrays that are known to be valid."""
        side = object.__new__(cls)
        vars(side).update(ids=ids, speakers=speakers, columns=dict(columns or {}))
        return side

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each id."""
        return dict(zip(self.ids.tolist(), range(len(self.ids)), strict=True))

    def __getstate__(self) -> dict[str, Any]:  # the index is made anew where a side travels to
        return {name: value for name, value in self.__dict__.items() if name != "index"}

    def find(self, ids: IdsLike) -> Positions:
        """Return the position of each id, -1 where it is not here."""
        names = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        return np.fromiter(map(self.index.get, names, repeat(-1)), dtype=np.intp, count=len(names))

    def positions(
        self, ids: IdsLike, what: str = "id", where: str = "the table", other: Side | None = None
    ) -> Positions:
        """Return the position of each id; one that is not here is an error that names it.

        ``other`` is the other side of the table: if the ids are all there, the error asks whether sides were swapped.
        """
        names = as_strings(ids, what)
        found = self.find(names)
        if found.size and found.min() < 0:
            absent = names[found < 0]
            verb = "is" if len(absent) == 1 else "are"
            raise InputError(f"{what} {quoted(absent)} {verb} not in {where}; {self._cause(absent, other)}")
        return found

    def _cause(self, absent: Ids, other: Side | None) -> str:
        """Return the end of a sentence about absent ids: the likely cause."""
        stems = {_stem(name): name for name in self.ids.tolist()}
        for name in absent[:20].tolist():
            if _stem(name) in stems:
                return f"{name!r} is {stems[_stem(name)]!r} there: make directories and suffixes agree"
        if other is not None and (other.find(absent) >= 0).all():
            return "they are on the other side: swap enrolments and tests"
        return "check that the two belong together"

    def same_ids(self, other: Side) -> bool:
        """Tell whether another side has the same ids in the same order."""
        return self.ids is other.ids or np.array_equal(self.ids, other.ids)

    def take(self, positions: npt.ArrayLike | slice) -> Side:
        """Return the ids at some positions, with what is known about them."""
        at: Any = positions if isinstance(positions, slice) else np.asarray(positions)
        at = at.astype(np.intp) if not isinstance(at, slice) and not at.size else at
        speakers = None if self.speakers is None else self.speakers[at]
        return Side.trusted(self.ids[at], speakers, {name: values[at] for name, values in self.columns.items()})

    def with_speakers(self, speakers: SpeakersLike | None) -> Self:
        """Return the same ids with these speakers; None keeps those that are known."""
        return self if speakers is None else replaced(self, speakers=_speakers_of(speakers, self.ids, "speakers"))

    def with_columns(self, columns: Mapping[str, npt.NDArray[Any]]) -> Self:
        """Return the same ids with further facts."""
        return replace(self, columns={**self.columns, **columns}) if columns else self

    def completed_by(self, other: Side) -> Side:
        """Return this side with the speakers and columns of another one that has its ids, where it has none itself."""
        more_speakers = self.speakers is None and other.speakers is not None
        if not more_speakers and other.columns.keys() <= self.columns.keys():
            return self
        there = other.take(other.positions(self.ids))
        speakers = there.speakers if more_speakers else self.speakers
        return Side.trusted(self.ids, speakers, {**there.columns, **self.columns})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Side):
            return NotImplemented
        return self.same_ids(other) and np.array_equal(self.speakers, other.speakers)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        known = "" if self.speakers is None else f", {len(set(self.speakers.tolist()) - {None})} speakers"
        return f"Side({len(self)} ids{known}{', ' if self.columns else ''}{', '.join(self.columns)})"


def replaced(record: Record, **changed: Any) -> Record:
    """Return a copy of a frozen record in which some fields are others, which are known to be valid."""
    made = object.__new__(type(record))
    vars(made).update(vars(record), **changed)
    return made


def as_strings(values: IdsLike, what: str) -> Ids:
    """Return an object array of Python strings, with None where there was None; whole numbers become text."""
    if isinstance(values, str | bytes):
        raise InputError(f"{what} is the single text {values!r}, but must be a sequence; put it in a list")
    items = values.tolist() if isinstance(values, np.ndarray) else list(values)
    strings = np.empty(len(items), dtype=object)
    if set(map(type, items)) != {str}:
        items = [_as_string(item, what, position) for position, item in enumerate(items)]
    strings[:] = items
    return strings


def _as_string(item: object, what: str, position: int) -> str | None:
    if item is None or isinstance(item, str):
        return item
    if isinstance(item, bytes):
        return item.decode(errors="backslashreplace")
    if isinstance(item, int | np.integer) and not isinstance(item, bool):
        return str(item)
    raise InputError(f"{what}[{position}] is {item!r}, but must be text")


def _refuse_bad_ids(ids: Ids, what: str) -> None:
    unique = set(ids.tolist())
    if None in unique or "" in unique:
        raise InputError(f"{what}[{next(i for i, name in enumerate(ids) if not name)}] is empty; give every id a name")
    if len(unique) != len(ids):
        repeated = next(name for name, count in Counter(ids.tolist()).items() if count > 1)
        raise InputError(f"{what} has {repeated!r} more than once; make ids unique")


def _speakers_of(speakers: SpeakersLike, ids: Ids, what: str) -> Ids:
    """Return the speaker of each id, from a mapping that has them all or a sequence in the order of the ids."""
    if isinstance(speakers, Mapping):
        absent = [name for name in ids if name not in speakers]
        if absent:
            raise InputError(f"{what}: there is no speaker for {quoted(absent)}; add them, or map them to None")
        speakers = [speakers[name] for name in ids]
    found = as_strings(speakers, f"speakers of {what}")
    if len(found) != len(ids):
        raise InputError(f"speakers of {what} has {len(found)} values, but {len(ids)} are needed")
    found[found == ""] = None
    return found


def _stem(name: str) -> str:
    """Return the last part of a path without its suffix."""
    last = name.replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, suffix = last.rpartition(".")
    return stem if dot and 1 < len(suffix) < 6 and suffix[0].isalpha() else last


def union(sides: Sequence[Side]) -> Side:
    """Return all ids in the order of their first appearance; speakers stay if all sides know them."""
    if all(side.same_ids(sides[0]) for side in sides[1:]):
        return sides[0]
    names = list(dict.fromkeys(name for side in sides for name in side.ids.tolist()))
    known = [zip(side.ids, side.speakers, strict=True) for side in sides if side.speakers is not None]
    return Side(names, dict(pair for pairs in known for pair in pairs) if len(known) == len(sides) else None)
