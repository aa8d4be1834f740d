"""Vectors that stand for utterances or speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import as_scores, frozen, same_array
from evenscore.tables.ids import Ids, IdsLike, as_ids, as_speakers, positions

__all__ = ["Embeddings"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Embeddings:
    """One vector per id, with speaker ids and further facts where they are known.

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

    ids: Ids
    vectors: npt.NDArray[Any]
    speakers: Ids | None
    columns: Mapping[str, npt.NDArray[Any]]

    def __init__(
        self,
        ids: IdsLike,
        vectors: npt.ArrayLike,
        speakers: IdsLike | None = None,
        *,
        columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        matrix = as_scores(vectors, "vectors", ndim=2)
        names = as_ids(ids, "ids", matrix.shape[0])
        finite = np.isfinite(matrix).all(axis=1)
        if not finite.all():
            raise InputError(f"the vector of {names[int(np.argmin(finite))]!r} has a value that is not finite; drop it")
        checked = {}
        for name, values in (columns or {}).items():
            column = np.array(values)
            if column.shape != (len(names),):
                raise InputError(f"column {name!r} has shape {column.shape}, but there are {len(names)} rows")
            checked[name] = frozen(column)
        object.__setattr__(self, "ids", names)
        object.__setattr__(self, "vectors", frozen(matrix))
        object.__setattr__(
            self, "speakers", None if speakers is None else as_speakers(speakers, "speakers", len(names))
        )
        object.__setattr__(self, "columns", MappingProxyType(checked))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dim(self) -> int:
        """Number of components of each vector."""
        return int(self.vectors.shape[1])

    def take(self, rows: npt.ArrayLike) -> Embeddings:
        """Return the rows at these positions, or those that are True in a mask."""
        at = np.asarray(rows)
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
        return self.take(positions(self.ids, ids, "embedding", "the embeddings"))

    def with_speakers(self, speakers: IdsLike | Mapping[str, str]) -> Embeddings:
        """Return the same vectors with speakers: one per row, or a mapping from id to speaker that has every id."""
        if isinstance(speakers, Mapping):
            absent = [name for name in self.ids if name not in speakers]
            if absent:
                raise InputError(f"there is no speaker for embedding {absent[0]!r}; add it to the map")
            speakers = [speakers[name] for name in self.ids]
        return Embeddings(self.ids, self.vectors, speakers, columns=self.columns)

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
