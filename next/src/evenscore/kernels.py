"""Every compiled loop. Imported only where data are large: loading numba takes as long as many a job."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba

__all__ = ["compiled_formula"]


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
