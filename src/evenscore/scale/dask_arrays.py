"""Score matrices in Dask arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.scale.chunked_scores import ChunkedScores
from evenscore.tables.ids import IdsLike, as_ids

__all__ = ["DaskTiles", "chunked_dask_array"]


def chunked_dask_array(array: Any, enroll_ids: IdsLike, test_ids: IdsLike) -> ChunkedScores:
    """Return a two-dimensional Dask array of float32 or float64 as chunked scores, in its own chunks."""
    if array.ndim != 2 or array.dtype not in (np.float32, np.float64):
        raise InputError(
            f"the Dask array has {array.ndim} dimensions of {array.dtype}, but a matrix of float is needed"
        )
    if np.isnan(array.shape).any():
        raise InputError("the shape of the Dask array is not known; call its compute_chunk_sizes() first")
    return ChunkedScores(
        enroll_ids=as_ids(enroll_ids, "enroll_ids", array.shape[0]),
        test_ids=as_ids(test_ids, "test_ids", array.shape[1]),
        dtype=array.dtype,
        reader=DaskTiles(array),
        stored=(int(array.chunks[0][0]) if array.chunks[0] else 1, int(array.chunks[1][0]) if array.chunks[1] else 1),
    )


@dataclass(frozen=True, eq=False)
class DaskTiles:
    """Tiles of a Dask array; on a worker they are computed within the task, unless they are on the cluster already."""

    array: Any

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile."""
        part = self.array[rows, columns]
        if not _on_a_worker():
            return np.ascontiguousarray(part.compute())
        from distributed import futures_of, worker_client

        if not futures_of(self.array):
            return np.ascontiguousarray(part.compute(scheduler="synchronous"))
        with worker_client() as client:
            return np.ascontiguousarray(client.compute(part, sync=True))

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
