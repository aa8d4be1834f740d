"""Log-likelihood ratios by tabulated densities, compiled. Import this only when used."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenscore.compiled import inner, loop
from evenscore.tables.arrays import LARGEST

__all__ = ["density_list", "density_matrix"]


@inner
def _exact(r: float, location: float, scale: float, skew: float, tail: float) -> float:
    """Return the log-density (R1) itself, for what lies outside of the table."""
    x = (r - location) / scale
    u = tail * np.arcsinh(x) - skew
    a = abs(u)
    steep = a + np.log1p(np.exp(-2.0 * a)) - np.log(2.0)
    far = np.sinh(min(a, 350.0))  # whose square float64 just holds
    return np.log(tail / scale) - 0.9189385332046727 + steep - 0.5 * np.log1p(x * x) - 0.5 * far**2


@inner
def _llr(d0: float, d1: float, precision: Any, constant: float, cubics: Any, grid: Any, parameters: Any) -> float:
    r0, r1 = d0 * precision[0], d1 * precision[1]
    place0, place1 = (r0 - grid[0, 0]) * grid[1, 0], (r1 - grid[0, 1]) * grid[1, 1]
    last = cubics.shape[1]
    if place0 >= 0.0 and place0 < last:
        k = int(place0)
        t = place0 - k
        f0 = cubics[0, k, 0] + t * (cubics[0, k, 1] + t * (cubics[0, k, 2] + t * cubics[0, k, 3]))
    else:
        f0 = _exact(r0, parameters[0, 0], parameters[1, 0], parameters[2, 0], parameters[3, 0])
    if place1 >= 0.0 and place1 < last:
        k = int(place1)
        t = place1 - k
        f1 = cubics[1, k, 0] + t * (cubics[1, k, 1] + t * (cubics[1, k, 2] + t * cubics[1, k, 3]))
    else:
        f1 = _exact(r1, parameters[0, 1], parameters[1, 1], parameters[2, 1], parameters[3, 1])
    return constant + f1 - f0


@loop("F2 D2 D2 D1 float D3 D2 D2 int int -> F2 B1")
def density_matrix(
    scores: Any, enroll: Any, test: Any, precision: Any, constant: float, cubics: Any, grid: Any, parameters: Any,
    start: int, stop: int, out: Any, sound: Any,
) -> None:  # fmt: skip
    """Set out to (R2), with p_h = enroll[i, h] + test[h, j], and sound where all of a row are scores."""
    for i in range(start, stop):
        e0, e1 = enroll[i, 0], enroll[i, 1]
        good = 0
        for j in range(scores.shape[1]):
            value = np.float64(scores[i, j])
            d0, d1 = value - e0 - test[0, j], value - e1 - test[1, j]
            out[i, j] = _llr(d0, d1, precision, constant, cubics, grid, parameters)
            good += abs(out[i, j]) <= LARGEST
        sound[i] = good == scores.shape[1]


@loop("F1 J1 J1 D2 D2 D1 float D3 D2 D2 int int -> F1")
def density_list(
    scores: Any, rows: Any, columns: Any, enroll: Any, test: Any, precision: Any, constant: float, cubics: Any,
    grid: Any, parameters: Any, start: int, stop: int, out: Any,
) -> None:  # fmt: skip
    """Do the same for listed trials."""
    for n in range(start, stop):
        i, j = rows[n], columns[n]
        value = np.float64(scores[n])
        d0, d1 = value - enroll[i, 0] - test[0, j], value - enroll[i, 1] - test[1, j]
        out[n] = _llr(d0, d1, precision, constant, cubics, grid, parameters)
