"""Vectors that stand for utterances or speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from evenscore.data.score_matrix import as_scores
from evenscore.data.side import IdsLike, Side, SpeakersLike
from evenscore.errors import InputError

__all__ = ["Embeddings"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Embeddings(Side):
    """A side with vectors: one per id, n x d finite numbers of type float32 or float64.

    Examples
    --------
    >>> embeddings = Embeddings(["u1", "u2"], [[1.0, 0.0], [0.6, 0.8]], speakers=["ann", "bob"])
    >>> embeddings
    Embeddings(2 x 2, float64, 2 speakers)
    >>> embeddings.select(["u2"]).vectors
    array([[0.6, 0.8]])
    """

    kind: ClassVar[Literal["embeddings"]] = "embeddings"
    vectors: npt.NDArray[Any] = field(default_factory=lambda: np.empty((0, 0)))

    def __init__(
        self,
        ids: IdsLike,
        vectors: npt.ArrayLike,
        speakers: SpeakersLike | None = None,
        columns: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        super().__init__(ids, speakers, columns)
        matrix = as_scores(vectors, "vectors", ndim=2)
        if len(matrix) != len(self):
            raise InputError(f"there are {len(matrix)} vectors, but {len(self)} ids; give one for each")
        bad = ~np.isfinite(matrix).all(axis=1)
        if bad.any():
            raise InputError(f"the vector of {self.ids[np.argmax(bad)]!r} has NaN or infinite components; leave it out")
        object.__setattr__(self, "vectors", matrix)

    @property
    def dim(self) -> int:
        """Number of components of each vector."""
        return int(self.vectors.shape[1])

    def take(self, positions: npt.ArrayLike | slice) -> Embeddings:
        """Return the vectors at some positions, or those that are True in a mask."""
        at: Any = positions if isinstance(positions, slice) else np.asarray(positions)
        side = super().take(positions)
        return Embeddings(side.ids, self.vectors[at], side.speakers, side.columns)

    def select(self, ids: IdsLike) -> Embeddings:
        """Return the vectors of these ids, in this order."""
        return self.take(self.positions(ids, "embedding", "the embeddings"))

    @classmethod
    def concat(cls, parts: Sequence[Embeddings]) -> Embeddings:
        """Put embeddings under each other; speakers and columns stay if all parts have them."""
        if len({part.dim for part in parts}) != 1:
            raise InputError(f"embeddings have different dimensions: {sorted({part.dim for part in parts})}")
        known = [part.speakers for part in parts if part.speakers is not None]
        names = [name for name in parts[0].columns if all(name in part.columns for part in parts)]
        return cls(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.vectors for part in parts]),
            np.concatenate(known) if len(known) == len(parts) else None,
            {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        )

    def __repr__(self) -> str:
        known = "no speakers" if self.speakers is None else f"{len(set(self.speakers.tolist()) - {None})} speakers"
        columns = f", columns {', '.join(self.columns)}" if self.columns else ""
        return f"Embeddings({len(self)} x {self.dim}, {self.vectors.dtype}, {known}{columns})"
