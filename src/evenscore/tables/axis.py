"""What stands along one side of a table: ids, and what is known about each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import frozen, same_array
from evenscore.tables.ids import Ids, IdsLike, as_ids, as_speakers, as_texts, merge, same_but_for_path, shown

__all__ = ["Axis", "SpeakersLike", "as_axis", "positions_of_both", "speakers_of_ids"]

SpeakersLike = IdsLike | Mapping[str, str]
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Axis:
    """The enrolments or the tests of a table, in order.

    Attributes
    ----------
    ids
        Unique ids.
    speakers
        The speaker of each id, None where it is not known; None if no speaker is known.
    facts
        Further facts by name, one value per id, such as gender, phrase or duration.

    Examples
    --------
    >>> axis = as_axis(["u1", "u2"], "ids", speakers={"u1": "ann", "u2": "bob"})
    >>> axis.take([1]).speakers
    array(['bob'], dtype=object)
    """

    ids: Ids
    speakers: Ids | None = None
    facts: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        """Leave behind what can be made anew where it travels to."""
        return {name: value for name, value in self.__dict__.items() if name != "place_of"}

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Where each id stands."""
        return dict(zip(self.ids.tolist(), range(len(self.ids)), strict=True))

    def find(self, ids: Ids) -> npt.NDArray[np.intp]:
        """Return where each of these ids stands here, -1 where it does not."""
        place = self.place_of
        return np.fromiter((place.get(name, NOWHERE) for name in ids.tolist()), dtype=np.intp, count=len(ids))

    def positions(
        self, ids: IdsLike, what: str, where: str = "the table", other: Axis | None = None
    ) -> npt.NDArray[np.intp]:
        """Return where each of these ids stands; one that does not is an error that names it.

        ``other`` is the other side of the table, where ids stand if the sides were swapped.
        """
        names = as_texts(ids, what)
        found = self.find(names)
        if found.size and found.min() < 0:
            absent = names[found < 0]
            raise InputError(f"{what} {shown(absent)} not in {where}{self.slip(absent, other)}")
        return found

    def slip(self, absent: Ids, other: Axis | None = None) -> str:
        """Return the end of a sentence about ids that do not stand here: what may have gone wrong, if it shows."""
        alike = same_but_for_path(absent, self.ids)
        if alike is not None:
            return f"; {alike[0]!r} stands there as {alike[1]!r}: make directories and suffixes agree"
        if other is not None and len(absent) and (other.find(absent) != NOWHERE).all():
            return "; on the other side there is all of this: were enrolments and tests swapped?"
        return ""

    def same_ids(self, other: Axis) -> bool:
        """Tell whether another axis has the same ids in the same order."""
        return self.ids is other.ids or bool(np.array_equal(self.ids, other.ids))

    def take(self, places: Any) -> Axis:
        """Return the ids at some places, with what is known about them."""
        return Axis(
            frozen(self.ids[places]),
            None if self.speakers is None else frozen(self.speakers[places]),
            {name: frozen(values[places]) for name, values in self.facts.items()} if self.facts else self.facts,
        )

    def with_speakers(self, speakers: SpeakersLike | None, what: str = "speakers") -> Axis:
        """Return the same ids with these speakers: one for each, or a mapping that has every id; None: not known."""
        return Axis(self.ids, speakers_of_ids(speakers, self.ids, what), self.facts)

    def knowing(self, other: Axis) -> Axis:
        """Return this axis with the speakers and facts of another one of the same ids, where it has none itself."""
        speakers = other.speakers if self.speakers is None else self.speakers
        if speakers is self.speakers and not (other.facts and not self.facts):
            return self
        return Axis(self.ids, speakers, self.facts or other.facts)

    def same(self, other: Axis) -> bool:
        """Tell whether another axis has the same ids and speakers."""
        return self.same_ids(other) and same_array(self.speakers, other.speakers)


def positions_of_both(
    sides: tuple[Axis, Axis], wanted: tuple[IdsLike, IdsLike], where: str
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return where enrolments and tests stand among those of a table; some that do not are an error."""
    return (
        sides[0].positions(wanted[0], "enrolment", where, sides[1]),
        sides[1].positions(wanted[1], "test", where, sides[0]),
    )


def as_axis(ids: IdsLike | Axis, what: str, length: int | None = None, *, speakers: SpeakersLike | None = None) -> Axis:
    """Return ids as an axis; one that is an axis already is only checked for its length."""
    if not isinstance(ids, Axis):
        axis = Axis(as_ids(ids, what, length))
    elif length is not None and len(ids) != length:
        raise InputError(f"{what} has {len(ids)} ids, but {length} are needed")
    else:
        axis = ids
    return axis if speakers is None else axis.with_speakers(speakers, what.replace("_ids", "_speakers"))


def speakers_of_ids(speakers: SpeakersLike | None, ids: Ids, what: str) -> Ids | None:
    """Return the speaker of each id, from a map that has them all, or from a sequence in the order of the ids.

    Examples
    --------
    >>> speakers_of_ids({"u1": "ann", "u2": None}, np.array(["u2", "u1"], dtype=object), "speakers")
    array([None, 'ann'], dtype=object)
    """
    if speakers is None:
        return None
    if isinstance(speakers, Mapping):
        absent = [name for name in ids if name not in speakers]
        if absent:
            raise InputError(f"{what} has no speaker for {shown(absent)}; add it, or map it to None")
        speakers = [speakers[name] for name in ids]
    return as_speakers(speakers, what, len(ids))


def merged(axes: Iterable[Axis]) -> Axis:
    """Return all ids of some axes, in the order of their first appearance; speakers stay if all axes know them."""
    parts = list(axes)
    union = merge(part.ids for part in parts)
    speakers = None
    if parts and all(part.speakers is not None for part in parts):
        known = {n: s for part in parts for n, s in zip(part.ids.tolist(), part.speakers.tolist(), strict=True)}  # type: ignore[union-attr]
        speakers = as_speakers([known[name] for name in union], "speakers")
    return Axis(union, speakers)
