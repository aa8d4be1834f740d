"""Every compiled loop. Imported only where data are large: loading numba takes as long as many a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba

__all__ = ["compiled_formula", "replicate_blocks"]


@cache
def compiled_formula(formula: Callable[..., Any], n_enroll: int, n_test: int) -> Callable[..., None]:
    """Compile ``loop(scores, enroll, test, constants, out)``, which applies a formula to every pair of a matrix.

    A pass is as fast as copying the scores; NumPy, with a temporary for every operation, takes five times as long.
    """
    function = numba.njit(formula, error_model="numpy")

    def by_enroll(scores, enroll, test, constants, out):  # type: ignore[no-untyped-def]
        for i in range(scores.shape[0]):
            a, b = enroll[0][i], enroll[1][i]
            for j in range(scores.shape[1]):
                out[i, j] = function(scores[i, j], a, b, *constants)

    def by_test(scores, enroll, test, constants, out):  # type: ignore[no-untyped-def]
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                out[i, j] = function(scores[i, j], test[0][j], test[1][j], *constants)

    def by_both(scores, enroll, test, constants, out):  # type: ignore[no-untyped-def]
        for i in range(scores.shape[0]):
            a, b = enroll[0][i], enroll[1][i]
            for j in range(scores.shape[1]):
                out[i, j] = function(scores[i, j], a, b, test[0][j], test[1][j], *constants)

    loop = {(2, 0): by_enroll, (0, 2): by_test, (2, 2): by_both}[n_enroll, n_test]
    compiled: Callable[..., None] = numba.njit(loop, nogil=True, error_model="numpy")
    return compiled


@numba.njit(nogil=True, cache=True)
def replicate_blocks(times, enroll, test, target, loss, starts, below, blocks):  # type: ignore[no-untyped-def]
    """Weight every trial by how often its speakers were drawn, and pool adjacent violators (PAV).

    Trials stand in the order of their scores, in runs that begin at ``starts``. Fills ``below`` with how many targets
    and non-targets lie below the end of each run, ``blocks`` with those of each block; returns the number of blocks and
    the loss of each class. NumPy, which gathers two weights per trial for every draw, takes five times as long.
    """
    size, target_loss, nontarget_loss = 0, 0.0, 0.0
    for run in range(starts.size - 1):
        t = n = 0
        for k in range(starts[run], starts[run + 1]):
            weight = times[enroll[k]]
            if enroll[k] != test[k]:
                weight *= times[test[k]]
            if weight == 0:
                continue
            if target[k]:
                t += weight
                target_loss += weight * loss[k]
            else:
                n += weight
                nontarget_loss += weight * loss[k]
        below[run + 1, 0], below[run + 1, 1] = below[run, 0] + t, below[run, 1] + n
        while size > 0 and blocks[size - 1, 0] * n >= t * blocks[size - 1, 1]:
            size -= 1
            t += blocks[size, 0]
            n += blocks[size, 1]
        blocks[size, 0], blocks[size, 1] = t, n
        size += 1
    return size, target_loss, nontarget_loss
