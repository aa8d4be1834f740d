"""Vectors that stand for utterances or speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import LARGEST, as_scores, check_vectors, frozen, same_array
from evenscore.tables.axis import Axis, SpeakersLike, speakers_of_ids
from evenscore.tables.ids import IdsLike, as_ids

__all__ = ["Embeddings"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Embeddings(Axis):
    """An axis with vectors: one per id, with speaker ids and further facts where they are known.

    Parameters
    ----------
    ids
        Unique ids of the n rows.
    vectors
        n x d finite numbers, float32 or float64.
    speakers
        The speaker of each row, None or '' where it is not known.
    columns
        Further facts by name, one value per row, such as gender, phrase or duration.

    Examples
    --------
    >>> Embeddings(["u1", "u2"], [[1.0, 0.0], [0.6, 0.8]], speakers=["ann", "bob"])
    Embeddings(2 x 2, float64, 2 speakers)
    """

    vectors: npt.NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)))

    def __init__(
        self,
        ids: IdsLike,
        vectors: npt.ArrayLike,
        speakers: SpeakersLike | None = None,
        *,
        columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        matrix = as_scores(vectors, "vectors", ndim=2)
        names = as_ids(ids, "ids", matrix.shape[0])
        if 0 < check_vectors(matrix, names) < 1 / LARGEST:
            raise InputError(f"no component of the vectors is above {1 / LARGEST:g}; multiply them by a constant")
        checked = {}
        for name, values in (columns or {}).items():
            column = np.array(values)
            if column.shape != (len(names),):
                raise InputError(f"column {name!r} has shape {column.shape}, but there are {len(names)} rows")
            checked[name] = frozen(column)
        for name, value in {
            "ids": names,
            "vectors": frozen(matrix),
            "speakers": speakers_of_ids(speakers, names, "speakers"),
            "facts": MappingProxyType(checked),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> Mapping[str, npt.NDArray[Any]]:
        """Further facts by name, one value per row."""
        return self.facts

    @property
    def axis(self) -> Axis:
        """The ids with what is known about them, without the vectors."""
        return Axis(self.ids, self.speakers, self.facts)

    @property
    def dim(self) -> int:
        """Number of components of each vector."""
        return int(self.vectors.shape[1])

    def take(self, places: Any) -> Embeddings:
        """Return the rows at these positions, or those that are True in a mask."""
        at = np.asarray(places)
        if at.dtype == bool:
            if at.shape != (len(self),):
                raise InputError(f"the mask has shape {at.shape}, but there are {len(self)} rows")
            at = np.flatnonzero(at)
        return Embeddings(
            self.ids[at],
            self.vectors[at],
            None if self.speakers is None else self.speakers[at],
            columns={name: values[at] for name, values in self.columns.items()},
        )

    def select(self, ids: IdsLike) -> Embeddings:
        """Return the vectors of these ids, in this order."""
        return self.take(self.positions(ids, "embedding", "the embeddings"))

    def with_speakers(self, speakers: SpeakersLike | None, what: str = "the map of speakers") -> Embeddings:
        """Return the same vectors with speakers: one per row, or a mapping from id to speaker that has every id."""
        return Embeddings(self.ids, self.vectors, speakers_of_ids(speakers, self.ids, what), columns=self.facts)

    @classmethod
    def concat(cls, parts: Sequence[Embeddings]) -> Embeddings:
        """Put embeddings under each other; speakers and columns stay if all parts have them."""
        if not parts:
            raise InputError("there is nothing to concatenate; give at least one set of embeddings")
        if len({part.dim for part in parts}) > 1:
            raise InputError(f"embeddings have different dimensions: {sorted({part.dim for part in parts})}")
        speakers = [part.speakers for part in parts if part.speakers is not None]
        names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.vectors for part in parts]),
            np.concatenate(speakers) if len(speakers) == len(parts) else None,
            columns={name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Embeddings):
            return NotImplemented
        return (
            same_array(self.ids, other.ids)
            and self.vectors.dtype == other.vectors.dtype
            and same_array(self.vectors, other.vectors)
            and same_array(self.speakers, other.speakers)
            and self.columns.keys() == other.columns.keys()
            and all(same_array(values, other.columns[name]) for name, values in self.columns.items())
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        speakers = "no speakers"
        if self.speakers is not None:
            speakers = f"{len({name for name in self.speakers if name is not None})} speakers"
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return f"Embeddings({len(self)} x {self.dim}, {self.vectors.dtype}, {speakers}{columns})"
