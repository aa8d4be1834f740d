"""The classical norms.

With me, se for mean and standard deviation of the enrolment's cohort scores and mt, st for those of the test's, a score
s becomes

    Z   (s - me) / se                                        AZ  the same with the highest cohort scores only
    T   (s - mt) / st                                        AT  likewise
    S   ((s - me) / se + (s - mt) / st) / 2                  AS  likewise
    ZT  ((s - me) / se - mt) / st    mt, st: of cohort scores that were Z-normalized themselves
    TZ  ((s - mt) / st - me) / se    me, se: of cohort scores that were T-normalized themselves

Each function takes plain arrays: S (m x n, or listed trials with ``rows`` and ``cols``), S_e (m x M), S_t (N x n) and
S_I (N x M), NumPy or dask, with NaN where a score is missing. Keywords are ``rows`` and ``cols``, the fields of
`NormOptions`, ``convention``, or a whole record as ``options``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.score_matrix import as_scores
from evenscore.errors import InputError
from evenscore.large import map_pairs
from evenscore.norms.options import CLASSICAL, NormOptions
from evenscore.norms.select import ranked_statistics
from evenscore.norms.statistics import CohortError, Statistics, row_statistics

__all__ = ["as_norm", "at_norm", "az_norm", "s_norm", "t_norm", "tz_norm", "z_norm", "zt_norm"]

Array = npt.NDArray[Any]
Scores = Any  #: a NumPy or a dask array, or anything that `map_rows` takes


def z_norm(S: Scores, S_e: Scores, **options: Any) -> Scores:
    """Z-norm: each enrolment's scores have mean 0 and standard deviation 1 over the cohort.

    Examples
    --------
    >>> z_norm(np.array([[3.0, 1.0]]), np.array([[2.0, 1.0, 0.0]]), ddof=1)
    array([[2., 0.]])
    """
    return classical_norm("z", S, S_e, **options)


def t_norm(S: Scores, S_t: Scores, **options: Any) -> Scores:
    """T-norm: each test's scores have mean 0 and standard deviation 1 over the cohort.

    Examples
    --------
    >>> t_norm(np.array([[3.0, 1.0]]), np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), ddof=1)
    array([[2., 0.]])
    """
    return classical_norm("t", S, None, S_t, **options)


def s_norm(S: Scores, S_e: Scores, S_t: Scores, **options: Any) -> Scores:
    """S-norm: the mean of Z-norm and T-norm.

    Examples
    --------
    >>> s_norm(np.array([[3.0]]), np.array([[2.0, 1.0, 0.0]]), np.array([[1.5], [0.5], [-0.5]]), ddof=1)
    array([[2.25]])
    """
    return classical_norm("s", S, S_e, S_t, **options)


def as_norm(S: Scores, S_e: Scores, S_t: Scores, top_k: int | float | None = None, **options: Any) -> Scores:
    """AS-norm: S-norm with the ``top_k`` highest cohort scores of each side.

    By default these are 300, or a fifth of the cohort where that is fewer.

    Examples
    --------
    >>> S, S_e = np.array([[3.0, 1.0]]), np.array([[2.0, 1.0, 0.0]])
    >>> S_t = np.array([[1.5, 0.0], [0.5, 2.0], [-0.5, 1.0]])
    >>> as_norm(S, S_e, S_t, top_k=2)
    array([[ 3.5, -1. ]])
    >>> as_norm(np.array([1.0]), S_e, S_t, top_k=2, rows=np.array([0]), cols=np.array([1]))
    array([-1.])
    """
    return classical_norm("as", S, S_e, S_t, top_k=top_k, **options)


def az_norm(S: Scores, S_e: Scores, top_k: int | float | None = None, *, S_t: Scores = None, **options: Any) -> Scores:
    """AZ-norm: Z-norm with the highest cohort scores; ``S_t`` ranks them if ``select="cross"``."""
    return classical_norm("az", S, S_e, S_t, top_k=top_k, **options)


def at_norm(S: Scores, S_t: Scores, top_k: int | float | None = None, *, S_e: Scores = None, **options: Any) -> Scores:
    """AT-norm: T-norm with the highest cohort scores; ``S_e`` ranks them if ``select="cross"``."""
    return classical_norm("at", S, S_e, S_t, top_k=top_k, **options)


def zt_norm(S: Scores, S_e: Scores, S_t: Scores, S_I: Scores, **options: Any) -> Scores:
    """ZT-norm: T-norm of Z-normalized scores, with a Z-normalized cohort; targets of S_I should be missing."""
    return classical_norm("zt", S, S_e, S_t, S_I, **options)


def tz_norm(S: Scores, S_e: Scores, S_t: Scores, S_I: Scores, **options: Any) -> Scores:
    """TZ-norm: Z-norm of T-normalized scores, with a T-normalized cohort; targets of S_I should be missing."""
    return classical_norm("tz", S, S_e, S_t, S_I, **options)


def classical_norm(
    method: str,
    S: Scores,
    S_e: Scores = None,
    S_t: Scores = None,
    S_I: Scores = None,
    *,
    rows: Array | None = None,
    cols: Array | None = None,
    options: NormOptions | None = None,
    counts: tuple[int | None, int | None] | None = None,
    rankings: tuple[Array, Array] | None = None,
    convention: str | None = None,
    **named: Any,
) -> Scores:
    """Return the scores of a classical norm by its name.

    ``counts`` are the numbers of cohort scores that each side takes, where they do not follow from the size of S_e and
    S_t: those of a whole cohort of which the trials' own speakers are left out. ``rankings`` are for ``select="cross"``
    where the rows of S_t are not the columns of S_e: see `ranked_statistics`.
    """
    if method not in CLASSICAL:
        raise InputError(f"there is no classical norm {method!r}; there are {', '.join(CLASSICAL)}")
    named = {name: value for name, value in named.items() if value is not None}
    how = NormOptions.resolve(options, convention, **named).for_method(method)
    ndim = 2 if rows is None and cols is None else 1
    S, S_e, S_t, S_I = (  # dask arrays and whatever computes its scores by rows are left alone
        as_scores(scores, name, ndim=n) if isinstance(scores, np.ndarray | list | tuple) else scores
        for scores, name, n in ((S, "S", ndim), (S_e, "S_e", 2), (S_t, "S_t", 2), (S_I, "S_I", 2))
    )
    if rows is not None or cols is not None:
        rows, cols = (np.asarray([-1] if positions is None else positions) for positions in (rows, cols))
    _refuse_shapes(S, S_e, S_t, S_I, rows, cols)
    k = cohort_counts(method, S_e, S_t, how) if counts is None else counts
    listed = rows is not None and cols is not None
    enroll: Statistics | tuple[()] = ()  # if the norm uses them
    test: Statistics | tuple[()] = ()
    if how.select != "own":  # then each trial has numbers of its own
        enroll, test = ranked_statistics(method, S_e, S_t, S_I, how, k, rankings, rows, cols)
        out = formula(method, how)(S, *inverted(enroll), *inverted(test)).astype(S.dtype)
    else:
        if method not in ("t", "at"):
            inner = row_statistics(S_I.T, how, None, "cohort test") if method == "tz" else None
            enroll = row_statistics(S_e, how, k[0], "enrolment", inner)
        if method in ("s", "as") and k[0] == k[1] and S_t.T is S_e:  # one set of embeddings on both sides
            test = enroll
        elif method not in ("z", "az"):
            inner = row_statistics(S_I, how, None, "cohort enrolment") if method == "zt" else None
            test = row_statistics(S_t.T, how, k[1], "test", inner)
        out = map_pairs(formula(method, how), S, inverted(enroll), inverted(test), rows=rows, cols=cols)
    # The statistics are those of a row and of a column, of a listed trial's sides, or already those of each trial.
    of_enroll: Any = rows if listed else (slice(None), None)
    of_test: Any = cols if listed else slice(None)
    of_enroll, of_test = (of_enroll, of_test) if how.select == "own" else (..., ...)
    empty_enroll = np.isnan(enroll[0])[of_enroll] if enroll else np.zeros(1, bool)
    empty_test = np.isnan(test[0])[of_test] if test else np.zeros(1, bool)
    return _finish(S, out, empty_enroll, empty_test, how, rows, cols)


def _refuse_shapes(S: Scores, S_e: Scores, S_t: Scores, S_I: Scores, rows: Array | None, cols: Array | None) -> None:
    m, n = None if S_e is None else S_e.shape[0], None if S_t is None else S_t.shape[1]
    if rows is not None and cols is not None:
        for positions, size in ((rows, m), (cols, n)):
            whole = positions.dtype.kind in "iu" or not positions.size
            inside = not positions.size or (positions.min() >= 0 and (size is None or positions.max() < size))
            if positions.shape != S.shape or not whole or not inside:
                raise InputError("rows and cols must be positions in S_e's rows and S_t's columns, one for each score")
    elif (m is not None and m != S.shape[0]) or (n is not None and n != S.shape[1]):
        raise InputError(f"S is {S.shape}, but S_e has {m} rows and S_t has {n} columns; give one for each id of S")
    if S_I is not None and S_e is not None and S_t is not None and S_I.shape != (S_t.shape[0], S_e.shape[1]):
        raise InputError(f"S_I is {S_I.shape}, but must be {(S_t.shape[0], S_e.shape[1])}: rows of S_t, columns of S_e")


def cohort_counts(method: str, S_e: Scores, S_t: Scores, how: NormOptions) -> tuple[int | None, int | None]:
    """Return how many cohort scores of each enrolment and of each test a norm takes; None for all of them."""
    of_enroll = None if S_e is None else how.count(method, S_e.shape[1])
    return of_enroll, None if S_t is None else how.count(method, S_t.shape[0])


def _z(s: Scores, mean: Scores, scale: Scores) -> Scores:
    return (s - mean) * scale


def _s(s: Scores, enroll_mean: Scores, enroll_scale: Scores, test_mean: Scores, test_scale: Scores) -> Scores:
    return 0.5 * ((s - enroll_mean) * enroll_scale + (s - test_mean) * test_scale)


def _s_sqrt2(s: Scores, enroll_mean: Scores, enroll_scale: Scores, test_mean: Scores, test_scale: Scores) -> Scores:
    return 0.5**0.5 * ((s - enroll_mean) * enroll_scale + (s - test_mean) * test_scale)


def _zt(s: Scores, enroll_mean: Scores, enroll_scale: Scores, test_mean: Scores, test_scale: Scores) -> Scores:
    return ((s - enroll_mean) * enroll_scale - test_mean) * test_scale


def _tz(s: Scores, enroll_mean: Scores, enroll_scale: Scores, test_mean: Scores, test_scale: Scores) -> Scores:
    return ((s - test_mean) * test_scale - enroll_mean) * enroll_scale


def inverted(side: tuple[Scores, ...]) -> tuple[Scores, ...]:
    """Return mean and 1 / standard deviation, which formulas take: products take less time than quotients."""
    return (side[0], 1 / side[1]) if side else ()


def formula(method: str, how: NormOptions) -> Callable[..., Any]:
    """Return the formula of a norm: a function of the score, then of the `inverted` numbers of the sides it uses."""
    if method in ("s", "as"):
        return _s if how.combine == "mean" else _s_sqrt2
    return {"zt": _zt, "tz": _tz}.get(method, _z)


def _finish(
    S: Scores,
    out: Scores,
    empty_enroll: Array,
    empty_test: Array,
    how: NormOptions,
    rows: Array | None,
    cols: Array | None,
) -> Scores:
    """Return the normalized scores; trials whose sides have no cohort scores get what ``empty`` says."""
    if how.empty == "missing" or not (empty_enroll.any() or empty_test.any()):
        return out
    if how.empty == "raw":
        return np.where(empty_enroll | empty_test, S, out)
    used = np.asarray((empty_enroll | empty_test) & ~np.isnan(S))
    if not used.any():
        return out
    at = np.unravel_index(np.argmax(used), used.shape)
    of_enroll = np.broadcast_to(empty_enroll, used.shape)[at]
    row, col = at if rows is None or cols is None else (rows[at[0]], cols[at[0]])
    problem = "it has no cohort scores that can be used; take a larger cohort, or set empty=raw or empty=missing"
    raise CohortError("enrolment" if of_enroll else "test", int(row if of_enroll else col), problem)
