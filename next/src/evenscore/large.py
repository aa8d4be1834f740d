"""Arrays larger than memory: what the program does with dask arrays, and the same for NumPy arrays in row blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.parallel import busy_thread, run_blocks

__all__ = ["CHUNKS", "is_dask", "map_pairs", "map_rows", "reduce_blocks", "start_cluster"]

Array = npt.NDArray[Any]

CHUNKS = (1024, 4096)  #: of new stores: 16 MB of float32, wide enough for whole rows and for whole columns
_ROW_BYTES = 1 << 26  # of whole rows at a time
_ROWS = 1 << 20  # scores at a time in whole rows
_TILE = 1 << 17  # scores at a time in a formula: its terms stay in the cache
_COMPILED = 1 << 24  # scores from which a compiled formula repays the time to compile it


def is_dask(array: object) -> bool:
    """Tell whether an array is computed by dask, without importing it."""
    return hasattr(array, "__dask_graph__")


def map_pairs(
    formula: Callable[..., Any],
    scores: Any,
    enroll: Sequence[Array],
    test: Sequence[Array],
    constants: Sequence[float] = (),
    rows: Array | None = None,
    cols: Array | None = None,
) -> Any:
    """Return ``formula(scores, *enroll, *test, *constants)``: the one place where numbers of both sides meet.

    Parameters
    ----------
    formula
        Elementwise arithmetic on NumPy arrays. For many scores it is compiled, so it must be code that numba can read.
    scores
        A matrix (NumPy or dask), or the scores of listed trials.
    enroll, test
        Arrays with a number per enrolment and per test.
    constants
        Numbers that are the same for all trials.
    rows, cols
        For listed trials, the positions of each trial's enrolment and test.

    Examples
    --------
    >>> map_pairs(lambda s, e, t: s - e + t, np.array([[1.0, 2.0]]), [np.array([1.0])], [np.array([0.0, 5.0])])
    array([[0., 6.]])
    """
    enroll = [np.asarray(values, np.float64) for values in enroll]
    test = [np.asarray(values, np.float64) for values in test]
    if is_dask(scores):
        return _map_dask_pairs(formula, scores, enroll, test, constants)
    out = np.empty(scores.shape, scores.dtype)
    if rows is not None and cols is not None:

        def gather(block: slice) -> None:
            numbers = [values[rows[block]] for values in enroll] + [values[cols[block]] for values in test]
            out[block] = formula(scores[block], *numbers, *constants)

        run_blocks(gather, len(scores), 1, _TILE)
    else:
        run_blocks(_tile_work(formula, scores, enroll, test, constants, out), len(scores), scores.shape[1], _TILE)
    return out


def _tile_work(
    formula: Callable[..., Any],
    scores: Array,
    enroll: list[Array],
    test: list[Array],
    constants: Sequence[float],
    out: Array,
) -> Callable[[slice], None]:
    """Return what is done with some rows of a matrix: in NumPy, or in a compiled loop if there are many scores."""
    if scores.size >= _COMPILED and len(enroll) in (0, 2) and len(test) in (0, 2):
        from evenscore.kernels import compiled_formula

        loop = compiled_formula(formula, len(enroll), len(test))

        def compiled(block: slice) -> None:
            loop(scores[block], tuple(values[block] for values in enroll), tuple(test), tuple(constants), out[block])

        return compiled

    def broadcast(block: slice) -> None:
        out[block] = formula(scores[block], *(values[block, None] for values in enroll), *test, *constants)

    return broadcast


def _map_dask_pairs(
    formula: Callable[..., Any], scores: Any, enroll: list[Array], test: list[Array], constants: Sequence[float]
) -> Any:
    import dask.array as da

    columns = [da.from_array(values[:, None], (scores.chunks[0], 1)) for values in enroll]
    rows = [da.from_array(values[None, :], (1, scores.chunks[1])) for values in test]

    def block(part: Array, *numbers: Array) -> Array:
        by_row = [values[:, 0] for values in numbers[: len(columns)]]
        by_col = [values[0] for values in numbers[len(columns) :]]
        with busy_thread():
            return np.asarray(map_pairs(formula, part, by_row, by_col, constants))

    return da.map_blocks(block, scores, *columns, *rows, dtype=scores.dtype, meta=np.empty((0, 0), scores.dtype))


def map_rows(function: Callable[[Array], Array], scores: Any, n_numbers: int) -> Array:
    """Return ``function(some whole rows)``, which gives ``n_numbers`` for each row, for all rows of an array.

    Parameters
    ----------
    function
        Gets a copy of some rows, which it may change, and returns an array of shape (rows, n_numbers).
    scores
        Anything with a shape whose rows can be sliced: a NumPy array, a memory map, scores of embeddings; or dask.

    Examples
    --------
    >>> map_rows(lambda rows: rows.sum(1, keepdims=True), np.eye(3), 1).ravel()
    array([1., 1., 1.])
    """
    if is_dask(scores):
        import dask.array as da

        whole = scores.rechunk({0: "auto", 1: -1}, block_size_limit=_ROW_BYTES)

        def block(part: Array) -> Array:
            with busy_thread():
                return function(np.array(part, order="C"))

        numbers = da.map_blocks(block, whole, chunks=(whole.chunks[0], n_numbers), dtype=np.float64)
        return np.asarray(numbers.compute())
    out = np.empty((scores.shape[0], n_numbers))

    def work(rows: slice) -> None:
        out[rows] = function(_row_copy(scores, rows))

    run_blocks(work, scores.shape[0], scores.shape[1], _ROWS)
    return out


def _row_copy(scores: Any, rows: slice) -> Array:
    """Return a copy of some rows in C order; rows of a transpose are turned in pieces that fit into the cache."""
    part = np.asarray(scores[rows])
    if not isinstance(scores, np.ndarray) and part.base is None and part.flags.c_contiguous:
        return part  # made just now
    if part.flags.c_contiguous or part.size < _TILE:
        return np.array(part, order="C")
    out = np.empty(part.shape, part.dtype)
    for start in range(0, part.shape[1], 512):
        out[:, start : start + 512] = part[:, start : start + 512]
    return out


def reduce_blocks(function: Callable[..., Any], *arrays: Any) -> Any:
    """Return the sum over all blocks of ``function(block, ...)``, whose results can be added.

    The arrays have the same shape; the blocks of the first one, if it is a dask array, are those of all.

    Examples
    --------
    >>> reduce_blocks(np.sum, np.ones((3, 4)))
    np.float64(12.0)
    """
    if not is_dask(arrays[0]):
        return function(*arrays)
    import dask

    parts = [array if is_dask(array) else _like(array, arrays[0]) for array in arrays]
    parts = [part.rechunk(arrays[0].chunks).to_delayed().ravel() for part in parts]
    layer = [dask.delayed(function, pure=False)(*blocks) for blocks in zip(*parts, strict=True)]
    while len(layer) > 1:  # add in a tree, so that no worker holds all results
        layer = [dask.delayed(sum)(layer[i + 1 : i + 8], layer[i]) for i in range(0, len(layer), 8)]
    return layer[0].compute()


def _like(array: Any, model: Any) -> Any:
    import dask.array as da

    return da.from_array(array, chunks=model.chunks)


def start_cluster(workers: int | None = None, scheduler: str | None = None, memory_limit: str | None = None) -> Any:
    """Start worker processes on this machine, or connect to a scheduler; the client serves dask until it is closed.

    Dask tells the workers' malloc to give memory back at once; every block would be paged in anew, in twice the time.
    """
    import dask
    from distributed import Client, LocalCluster

    if scheduler is not None:
        return Client(scheduler)
    dask.config.set({"distributed.nanny.pre-spawn-environ": {"OPENBLAS_NUM_THREADS": 1}})
    options = {} if memory_limit is None else {"memory_limit": memory_limit}
    return Client(LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, **options))
