"""Arrays larger than memory: what the program does with dask arrays, and the same for NumPy arrays in row blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.parallel import Progress, busy_thread, run_blocks

__all__ = [
    *("CHUNKS", "COMPILED", "cluster", "in_row_order", "is_dask", "map_pairs", "map_rows", "reduce_blocks"),
    *("regular_chunks", "store", "task_progress"),
]

Array = npt.NDArray[Any]
Scores = Any  #: a NumPy or a dask array, or anything whose rows can be sliced
Formula = Callable[..., Scores]

CHUNKS = (1024, 4096)  #: of new stores: 16 MB of float32, wide enough for whole rows and for whole columns
COMPILED = 1 << 24  #: scores from which compiled loops repay the time to load them
_ROW_BYTES = 1 << 26  # of whole rows at a time
_ROWS = 1 << 20  # scores at a time in whole rows
_TILE = 1 << 17  # scores at a time in a formula: its terms stay in the cache
_LARGE_TILE = 1 << 21  # the same in a compiled loop: two threads seldom write to one new page of 2 MB


def is_dask(array: object) -> bool:
    """Tell whether an array is computed by dask, without importing it."""
    return hasattr(array, "__dask_graph__")


def map_pairs(
    formula: Formula,
    scores: Scores,
    enroll: Sequence[Array],
    test: Sequence[Array],
    constants: Sequence[float] = (),
    rows: Array | None = None,
    cols: Array | None = None,
    out: Array | None = None,
) -> Scores:
    """Return ``formula(scores, *enroll, *test, *constants)``: the one place that combines numbers of both sides.

    Parameters
    ----------
    formula
        Elementwise arithmetic on NumPy arrays. For many scores it is compiled, so it must be code that numba can read.
    scores
        A matrix (NumPy, dask, or `BilinearScores`, which are formed tile by tile), or the scores of listed trials.
    enroll, test
        Arrays with a number per enrolment and per test.
    constants
        Numbers that are the same for all trials.
    rows, cols
        For listed trials, the positions of each trial's enrolment and test.
    out
        Where the result goes, such as the scores themselves: new memory takes as long as the formula. Not for dask.

    Examples
    --------
    >>> map_pairs(lambda s, e, t: s - e + t, np.array([[1.0, 2.0]]), [np.array([1.0])], [np.array([0.0, 5.0])])
    array([[0., 6.]])
    """
    enroll = [np.ascontiguousarray(values, np.float64) for values in enroll]  # loops over these vectorize
    test = [np.ascontiguousarray(values, np.float64) for values in test]
    if is_dask(scores):
        return _map_dask_pairs(formula, scores, enroll, test, constants)
    out, size = np.empty(scores.shape, scores.dtype) if out is None else out, math.prod(scores.shape)
    if rows is not None and cols is not None:

        def gather(block: slice) -> None:
            numbers = [values[rows[block]] for values in enroll] + [values[cols[block]] for values in test]
            out[block] = formula(scores[block], *numbers, *constants)

        run_blocks(gather, len(scores), 1, _TILE)
    elif size >= COMPILED and (len(enroll), len(test)) in ((2, 0), (0, 2), (2, 2)):
        from evenscore.kernels import compiled_formula

        loop = compiled_formula(formula, len(enroll), len(test))

        def compiled(block: slice) -> None:
            tile = np.asarray(scores[block])
            tile = tile.copy() if np.may_share_memory(tile, out) else tile  # loops in place do not vectorize
            loop(tile, tuple(values[block] for values in enroll), tuple(test), tuple(constants), out[block])

        run_blocks(compiled, scores.shape[0], scores.shape[1], _LARGE_TILE)
    else:

        def broadcast(block: slice) -> None:
            numbers = [values[block, None] for values in enroll]
            out[block] = formula(np.asarray(scores[block]), *numbers, *test, *constants)

        run_blocks(broadcast, scores.shape[0], scores.shape[1], _TILE)
    return out


def _map_dask_pairs(
    formula: Formula, scores: Scores, enroll: list[Array], test: list[Array], constants: Sequence[float]
) -> Scores:
    import dask.array as da
    from dask.base import tokenize

    columns = [da.from_array(values[:, None], (scores.chunks[0], 1)) for values in enroll]
    rows = [da.from_array(values[None, :], (1, scores.chunks[1])) for values in test]

    def block(part: Array, *numbers: Array) -> Array:
        by_row = [values[:, 0] for values in numbers[: len(columns)]]
        by_col = [values[0] for values in numbers[len(columns) :]]
        with busy_thread():
            return np.asarray(map_pairs(formula, part, by_row, by_col, constants))

    # Dask would name a closure by its pickle, which differs between the first import of a module and later ones.
    code, cells = getattr(formula, "__code__", formula), getattr(formula, "__closure__", None) or ()
    constant = [value for value in getattr(code, "co_consts", ()) if isinstance(value, str | float | int)]
    what = getattr(code, "co_code", ""), constant, [cell.cell_contents for cell in cells], list(constants)
    name = f"map_pairs-{tokenize(formula.__qualname__, what, scores.name, [part.name for part in (*columns, *rows)])}"
    meta = np.empty((0, 0), scores.dtype)
    return da.map_blocks(block, scores, *columns, *rows, name=name, dtype=scores.dtype, meta=meta)


def map_rows(function: Callable[[Array], Array], scores: Scores, n_numbers: int) -> Array:
    """Return ``function(some whole rows)``, which gives ``n_numbers`` for each row, for all rows of an array.

    Parameters
    ----------
    function
        Gets some rows, which it must not change, and returns an array of shape (rows, n_numbers).
    scores
        Anything with a shape whose rows can be sliced: a NumPy array, a memory map, scores of embeddings; or dask.

    Examples
    --------
    >>> map_rows(lambda rows: rows.sum(1, keepdims=True), np.eye(3), 1).ravel()
    array([1., 1., 1.])
    """
    if is_dask(scores):
        import dask.array as da

        step = max(1, _ROW_BYTES // max(scores.shape[1] * scores.dtype.itemsize, 1))
        whole = scores.rechunk((min(step, max(len(scores), 1)), max(scores.shape[1], 1)))

        def block(part: Array) -> Array:
            with busy_thread():
                return function(part)

        numbers = da.map_blocks(block, whole, chunks=(whole.chunks[0], n_numbers), dtype=np.float64)
        return np.asarray(numbers.compute())
    if scores.shape[0] * scores.shape[1] <= _TILE:
        return function(np.asarray(scores[:]))
    out = np.empty((scores.shape[0], n_numbers))

    def work(rows: slice) -> None:
        out[rows] = function(np.asarray(scores[rows]))

    by_column = getattr(scores, "strides", (1, 0))[0] < getattr(scores, "strides", (1, 0))[-1]
    run_blocks(work, scores.shape[0], scores.shape[1], 4 * _ROWS if by_column else _ROWS)  # wide pieces of columns
    return out


def in_row_order(rows: Array) -> Array:
    """Return a copy in C order; a transpose is turned in pieces that fit into the cache."""
    if rows.flags.c_contiguous or rows.size < _TILE:
        return np.array(rows, order="C")
    out = np.empty(rows.shape, rows.dtype)
    for start in range(0, rows.shape[1], 512):
        out[:, start : start + 512] = rows[:, start : start + 512]
    return out


def reduce_blocks(function: Formula, *arrays: Scores) -> Scores:
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
    import dask.array as da

    def block(*parts: Array) -> Array:
        result = np.empty((1,) * arrays[0].ndim, object)
        result[(0,) * result.ndim] = function(*parts)
        return result

    parts = [array if is_dask(array) else da.from_array(array, arrays[0].chunks) for array in arrays]
    parts = [part.rechunk(arrays[0].chunks) for part in parts]
    chunks = tuple((1,) * number for number in arrays[0].numblocks)
    # One task reads a block and reduces it, so that no block waits in memory for its turn.
    found = da.map_blocks(block, *parts, chunks=chunks, dtype=object, meta=np.empty((0,) * len(chunks), object))
    layer = list(found.to_delayed().ravel())
    while len(layer) > 1:  # add in a tree, so that no worker holds all results
        layer = [dask.delayed(sum)(layer[i + 1 : i + 8], layer[i]) for i in range(0, len(layer), 8)]
    return layer[0].compute().item()


def store(array: Scores, target: Scores, is_stored: Callable[[int, int], bool]) -> None:
    """Compute the blocks of a dask matrix that are not stored yet, and assign each to its place in the target.

    The chunks of the target are those of the matrix (`regular_chunks`), so that no two blocks change one chunk.
    """
    import dask.array as da

    rows, cols = (np.cumsum((0, *sizes)).tolist() for sizes in array.chunks)
    missing = [(i, j) for i, j in product(*map(range, array.numblocks)) if not is_stored(i, j)]
    if len(missing) == array.npartitions:
        da.store(array, target, lock=False)
    elif missing:
        regions = [(slice(rows[i], rows[i + 1]), slice(cols[j], cols[j + 1])) for i, j in missing]
        da.store([array.blocks[at] for at in missing], [target] * len(missing), regions=regions, lock=False)


def regular_chunks(array: Scores) -> Scores:
    """Return a dask matrix in chunks of one size."""
    regular = all({*sizes[:-1]} <= {size} for sizes, size in zip(array.chunks, array.chunksize, strict=True))
    return array if regular else array.rechunk(tuple(map(min, CHUNKS, array.shape)))


@contextmanager
def cluster(
    workers: int | None = None, scheduler: str | None = None, memory_limit: str | None = None
) -> Iterator[Any | None]:
    """Let dask compute on worker processes of this machine, or on those of a scheduler; on threads if there are none.

    Dask tells the workers' malloc to give memory back at once; every block would be paged in anew, in twice the time.
    """
    if workers is None and memory_limit is not None:
        raise InputError("a memory limit is that of worker processes on this machine; give the number of workers, too")
    if workers is None and scheduler is None:
        yield None
        return
    import dask
    from distributed import Client, LocalCluster

    if scheduler is not None:
        with Client(scheduler) as client:
            yield client
        return
    dask.config.set({"distributed.nanny.pre-spawn-environ": {"OPENBLAS_NUM_THREADS": 1}})
    options: dict[str, Any] = {} if memory_limit is None else {"memory_limit": memory_limit}
    options["scheduler_kwargs"] = {"dashboard_address": "127.0.0.1:0"}  # a port of its own: another run may have Dask's
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, **options) as processes,
        Client(processes) as client,
    ):
        yield client


@contextmanager
def task_progress(progress: Progress | None) -> Iterator[None]:
    """Report how many tasks dask's threads have done; a cluster has a dashboard for this."""
    if progress is None:
        yield
        return
    from dask.callbacks import Callback

    with Callback(posttask=lambda *task: progress(len(task[3]["finished"]), len(task[2]))):
        yield
