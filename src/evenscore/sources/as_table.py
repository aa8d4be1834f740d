"""One door for scores of any form: arrays in memory, mapped files, Dask arrays, and what is a table already."""

from __future__ import annotations

import os
from typing import Any

from evenscore.errors import InputError
from evenscore.tables.arrays import as_scores
from evenscore.tables.axis import as_axis
from evenscore.tables.door import looked_through
from evenscore.tables.ids import IdsLike
from evenscore.tables.score_table import Array, LazyScores, ScoreTable
from evenscore.tables.tile import Grid

__all__ = ["as_table"]


def as_table(scores: Any, enroll_ids: IdsLike | None = None, test_ids: IdsLike | None = None) -> ScoreTable:
    """Return scores as a table that is read tile by tile.

    Parameters
    ----------
    scores
        A NumPy array (such as one that is mapped from a file), a Dask array, or a table of scores, which stays as it
        is.
    enroll_ids, test_ids
        Ids of rows and columns; only arrays need them.

    Examples
    --------
    >>> import numpy as np
    >>> as_table(np.zeros((2, 3)), ["e1", "e2"], ["t1", "t2", "t3"])
    LazyScores(2 enrolments x 3 tests, float64, 1 tiles)
    """
    if isinstance(scores, ScoreTable):
        if enroll_ids is not None or test_ids is not None:
            raise InputError("these scores have ids of their own; leave out enroll_ids and test_ids, or call `align`")
        return scores
    if isinstance(scores, str | os.PathLike):
        raise InputError(f"{str(scores)!r} is a name, but scores are expected; open the file with open_scores")
    if scores is None:
        raise InputError("there are no scores; give a score matrix, an array or scores of embeddings")
    if enroll_ids is None or test_ids is None:
        raise InputError("an array of scores has no ids; give them: as_table(scores, enroll_ids, test_ids)")
    if hasattr(scores, "dask"):
        from evenscore.sources.dask_arrays import dask_table

        return dask_table(scores, enroll_ids, test_ids)
    array = as_scores(scores, "scores", ndim=2)
    table = LazyScores(
        enroll_axis=as_axis(enroll_ids, "enroll_ids", array.shape[0]),
        test_axis=as_axis(test_ids, "test_ids", array.shape[1]),
        dtype=array.dtype,
        source=Array(array),
        layout=Grid((array.shape[0], array.shape[1]), array.dtype.itemsize),
    )
    return looked_through(table)
