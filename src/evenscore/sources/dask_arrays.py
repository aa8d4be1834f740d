"""Score matrices in Dask arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import EvenscoreError, InputError
from evenscore.tables.axis import as_axis
from evenscore.tables.door import looked_through
from evenscore.tables.ids import IdsLike
from evenscore.tables.score_table import LazyScores
from evenscore.tables.tile import Grid, Place, Tile

__all__ = ["DaskTiles", "dask_table"]

_DASK_ITSELF = ("asyncio", "concurrent", "dask", "distributed")


def dask_table(array: Any, enroll_ids: IdsLike, test_ids: IdsLike) -> LazyScores:
    """Return a two-dimensional Dask array of float32 or float64 as scores, in its own chunks."""
    if array.ndim != 2:
        raise InputError(f"the Dask array has {array.ndim} dimensions, but scores are a matrix of two; reshape it")
    if array.dtype not in (np.float32, np.float64):
        raise InputError(
            f"the Dask array holds {array.dtype}, but scores are float32 or float64; call its astype first"
        )
    if np.isnan(array.shape).any():
        raise InputError("the shape of the Dask array is not known; call its compute_chunk_sizes() first")
    stored = tuple(int(sizes[0]) if sizes else 1 for sizes in array.chunks)
    table = LazyScores(
        enroll_axis=as_axis(enroll_ids, "enroll_ids", array.shape[0]),
        test_axis=as_axis(test_ids, "test_ids", array.shape[1]),
        dtype=array.dtype,
        source=DaskTiles(array),
        layout=Grid(array.shape, array.dtype.itemsize, stored=stored),  # type: ignore[arg-type]
    )
    return looked_through(table)


@dataclass(frozen=True, eq=False)
class DaskTiles:
    """Tiles of a Dask array; on a worker they are computed within the task, unless they are on the cluster already."""

    array: Any

    def read(self, place: Place) -> Tile:
        """Return a tile."""
        return Tile(self._scores(place.rows, place.columns), place.rows, place.columns)

    def _scores(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return the scores of a tile; whatever goes wrong while Dask computes it is said with its place."""
        where = f"rows {rows.start} to {rows.stop - 1} and columns {columns.start} to {columns.stop - 1}"
        part = self.array[rows, columns]
        try:
            found = np.asarray(self._computed(part))
        except (EvenscoreError, MemoryError):
            raise
        except Exception as error:
            if type(error).__module__.partition(".")[0] in _DASK_ITSELF:  # a lost worker, for instance: tried again
                raise
            reason = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"{where} of the Dask array cannot be computed ({type(error).__name__}: {reason}); correct what it is "
                "made from"
            ) from error
        if found.shape != part.shape or found.dtype.kind != "f":
            raise InputError(
                f"{where} of the Dask array are {found.dtype} of shape {found.shape} when computed, but it says that "
                f"they are {part.dtype} of shape {part.shape}; give the right dtype and chunks where it is made"
            )
        return np.ascontiguousarray(found, dtype=part.dtype)

    def _computed(self, part: Any) -> Any:
        if not _on_a_worker():
            return part.compute()
        from distributed import futures_of, worker_client

        if not futures_of(self.array):
            return part.compute(scheduler="synchronous")
        with worker_client() as client:
            return client.compute(part, sync=True)

    def identity(self) -> str:
        """Return Dask's own name of the array, which stands for how it was made."""
        return str(self.array.name)


def _on_a_worker() -> bool:
    try:
        from distributed import get_worker

        get_worker()
    except (ImportError, ValueError):
        return False
    return True
