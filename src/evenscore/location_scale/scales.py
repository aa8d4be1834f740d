"""Posteriors of the log-scales, and the concave problems that update them and their loadings.

Both are Newton steps with backtracking, so that the bound never falls. Equation numbers as in docs/location-scale.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ScalePosterior", "fit_loadings", "update_scales"]

Array = np.ndarray
_STEPS = 8  # Newton steps at most; it converges quadratically
_HALVINGS = 30
_ENOUGH = 1e-10  # a smaller Newton decrement is at the optimum


@dataclass(frozen=True, kw_only=True, eq=False)
class ScalePosterior:
    """Gaussian posteriors of the log-scales of one side: u_i ~ N(mean_i, variance_i)."""

    mean: Float[Array, " k"]
    variance: Float[Array, " k"]

    @classmethod
    def prior(cls, size: int) -> ScalePosterior:
        """Return what is known without any score."""
        return cls(mean=np.zeros(size), variance=np.ones(size))

    @property
    def divergence(self) -> float:
        """Kullback-Leibler divergence from the prior N(0, 1)."""
        return 0.5 * float((self.mean**2 + self.variance - 1 - np.log(self.variance)).sum())

    def precision(self, loading: Float[Array, "2"]) -> Float[Array, "2 k"]:
        """Return the expectation of exp(-loading_h u_i), the factor of the precision, for both classes, (V2)."""
        c = loading[:, None]
        factor: Float[Array, "2 k"] = np.exp(-c * self.mean + 0.5 * c**2 * self.variance)
        return factor

    def inverse_variance(self, loading: float) -> Float[Array, " k"]:
        """Return one over the expectation of exp(loading u_i)."""
        factor: Float[Array, " k"] = np.exp(-loading * self.mean - 0.5 * loading**2 * self.variance)
        return factor


def update_scales(
    start: ScalePosterior,
    loading: Float[Array, "2"],
    counts: Float[Array, "2 k"],
    squares: Float[Array, "2 k"],
    pull: Float[Array, " k"] | float = 0.0,
    grip: float = 0.0,
) -> ScalePosterior:
    """Maximize the bound over all q(u_i) of one side, (V3).

    `counts` are the numbers of scores of each class in a row, `squares` their expected squared residuals, weighted by
    everything in the precision but the factor of u_i itself. The location adds `pull` u - `grip` u^2 / 2.
    """
    c = loading[:, None]
    linear = (c * counts).sum(axis=0) - 2 * np.asarray(pull)
    prior = 1 + grip

    def terms(m: Array, v: Array) -> Float[Array, "2 k"]:
        # an exponent beyond 300 is a step that is far too long: its value is refused, not used
        factor: Array = squares * np.exp(np.minimum(-c * m + 0.5 * c**2 * v, 300.0))
        return factor

    def value(m: Array, v: Array) -> Float[Array, " k"]:
        bound: Array = -0.5 * (linear * m + terms(m, v).sum(axis=0) + prior * (m**2 + v) - np.log(v))
        return bound

    m, v = start.mean.copy(), start.variance.copy()
    now = value(m, v)
    for _ in range(_STEPS):
        e = terms(m, v)
        step_m, step_v, gm, gv = _newton_step(c, e, -0.5 * linear - prior * m, 0.5 / v - 0.5 * prior, v, prior)
        decrement = gm * step_m + gv * step_v
        if decrement.max(initial=0.0) <= _ENOUGH:
            break
        size = np.ones_like(m)
        open_ = np.ones(m.shape, dtype=bool)
        for _ in range(_HALVINGS):
            new_m, new_v = m + size * step_m, v + size * step_v
            inside = new_v > 0
            then = np.where(inside, value(new_m, np.where(inside, new_v, 1.0)), -np.inf)
            better = open_ & (then >= now)
            m, v, now = np.where(better, new_m, m), np.where(better, new_v, v), np.where(better, then, now)
            open_ &= ~better
            if not open_.any():
                break
            size = np.where(open_, 0.5 * size, 0.0)
    return ScalePosterior(mean=m, variance=v)


def _newton_step(
    c: Float[Array, "2 1"], e: Float[Array, "2 k"], rest_m: Array, rest_v: Array, v: Array, prior: float
) -> tuple[Array, Array, Array, Array]:
    """Return the Newton steps of means and variances, and the gradients; `rest` is the part without residuals.

    If residuals are large, products of their powers are nearly equal, and would cancel each other. So what is left of
    their differences is written out: with two classes, it is their product times a power of c_0 - c_1.
    """
    e1, e2, e3, e4 = ((c**power * e).sum(axis=0) for power in (1, 2, 3, 4))
    gm, gv = rest_m + 0.5 * e1, rest_v - 0.25 * e2
    hmm, hvv = 0.5 * e2 + prior, 0.125 * e4 + 0.5 / v**2  # minus the second derivatives; hmv = -e3 / 4
    left = e.prod(axis=0) * c.prod() * (c[0] - c[1]) ** 2
    det = left * c.prod() / 16 + prior * hvv + 0.25 * e2 / v**2
    top_m = hvv * rest_m + 0.25 * e3 * rest_v + 0.25 * e1 / v**2 + left * c.sum() / 16
    top_v = hmm * rest_v + 0.25 * e3 * rest_m - 0.25 * prior * e2 + left / 8
    return top_m / det, top_v / det, gm, gv


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassSquares:
    """Expected squared residuals of one class in one matrix (0 elsewhere), and the log-scales of its two sides."""

    squares: Float[Array, "k l"]
    row_counts: Float[Array, " k"]
    column_counts: Float[Array, " l"]
    rows: ScalePosterior
    columns: ScalePosterior


def fit_loadings(parts: list[ClassSquares], log_variance: float, c: float, d: float) -> tuple[float, float, float]:
    """Maximize the bound over (log sigma^2, c, d) of one class, (V4)."""
    theta = np.array([log_variance, c, d])
    now, gradient, curvature = _loading_terms(parts, theta)
    for _ in range(_STEPS):
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step <= _ENOUGH * max(1.0, abs(now)):
            break
        size = 1.0
        for _ in range(_HALVINGS):
            then, new_gradient, new_curvature = _loading_terms(parts, theta + size * step)
            if then >= now:
                theta, now, gradient, curvature = theta + size * step, then, new_gradient, new_curvature
                break
            size *= 0.5
        else:
            break
    return float(theta[0]), float(theta[1]), float(theta[2])


def _loading_terms(
    parts: list[ClassSquares], theta: Float[Array, "3"]
) -> tuple[float, Float[Array, "3"], Float[Array, "3 3"]]:
    """Return the class's part of the bound, its gradient, and minus its second derivatives, all by thin products."""
    log_variance, c, d = theta
    value, gradient, curvature = 0.0, np.zeros(3), np.zeros((3, 3))
    for part in parts:
        u, v = part.rows, part.columns
        # an exponent beyond 300 is a step that is far too long: its value is refused, not used
        row = np.exp(np.minimum(-log_variance - c * u.mean + 0.5 * c**2 * u.variance, 300.0))
        column = np.exp(np.minimum(-d * v.mean + 0.5 * d**2 * v.variance, 300.0))
        slope_u, slope_v = -u.mean + c * u.variance, -v.mean + d * v.variance
        in_rows, in_columns = row * (part.squares @ column), column * (row @ part.squares)
        n, total = part.row_counts.sum(), in_rows.sum()
        plain = np.array([n, part.row_counts @ u.mean, part.column_counts @ v.mean])
        weighted = np.array([-total, in_rows @ slope_u, in_columns @ slope_v])
        value -= 0.5 * (plain @ theta + total)
        gradient -= 0.5 * (plain + weighted)
        cross = (row * slope_u) @ part.squares @ (column * slope_v)
        curvature += 0.5 * np.array(
            [
                [total, -weighted[1], -weighted[2]],
                [-weighted[1], in_rows @ (slope_u**2 + u.variance), cross],
                [-weighted[2], cross, in_columns @ (slope_v**2 + v.variance)],
            ]
        )
    return value, gradient, curvature + 1e-12 * np.trace(curvature) * np.eye(3)
