"""What the E-step hands to the M-step: sums of expectations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["HiddenSide", "Moments", "SideMoments", "regressors", "sum_moments"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class SideMoments:
    """Sums over the hidden variables of one side: how many, their expectations, and those of their products."""

    count: float
    first: Float[Array, " d"]
    second: Float[Array, "d d"]

    def __add__(self, other: SideMoments) -> SideMoments:
        return SideMoments(
            count=self.count + other.count, first=self.first + other.first, second=self.second + other.second
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Expected sufficient statistics of labelled scores under the posterior of the hidden variables.

    For each class h, with w = (1, x_i, y_j) and sums over its scores:  ww = sum <w w'>, sw = sum s <w>,
    ss = sum s^2. `log_likelihood` is the marginal of the scores at the parameters of the E-step. Moments add up over
    independent matrices.
    """

    ww: Float[Array, "2 w w"]
    sw: Float[Array, "2 w"]
    ss: Float[Array, "2"]
    enroll: SideMoments
    test: SideMoments
    log_likelihood: float

    def __add__(self, other: Moments) -> Moments:
        return Moments(
            ww=self.ww + other.ww,
            sw=self.sw + other.sw,
            ss=self.ss + other.ss,
            enroll=self.enroll + other.enroll,
            test=self.test + other.test,
            log_likelihood=self.log_likelihood + other.log_likelihood,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenSide:
    """Posterior mean and covariance of every hidden variable of one side."""

    mean: Float[Array, "n d"]
    covariance: Float[Array, "n d d"]

    @property
    def second(self) -> Float[Array, "n d d"]:
        """Expectations of the products."""
        return self.covariance + self.mean[:, :, None] * self.mean[:, None, :]

    @property
    def moments(self) -> SideMoments:
        """Sums over the hidden variables."""
        return SideMoments(count=float(len(self.mean)), first=self.mean.sum(axis=0), second=self.second.sum(axis=0))


def sum_moments(
    sums: ClassSums, x: HiddenSide, y: HiddenSide, cross: Float[Array, "2 d d"], log_likelihood: float
) -> Moments:
    """Return the moments of one matrix; ``cross`` are the sums of <x_i y_j'> over the scores of each class."""
    sides = ((x, sums.row_counts, sums.rows), (y, sums.column_counts, sums.columns))
    in_x, in_y = (
        (counts @ side.mean, np.einsum("hk,kde->hde", counts, side.second), scores @ side.mean)
        for side, counts, scores in sides
    )
    ww, sw = regressors(sums.count, sums.total, in_x, in_y, cross)
    return Moments(ww=ww, sw=sw, ss=sums.squares, enroll=x.moments, test=y.moments, log_likelihood=log_likelihood)


def regressors(
    count: Float[Array, "2"],
    total: Float[Array, "2"],
    in_x: tuple[Array, Array, Array],
    in_y: tuple[Array, Array, Array],
    cross: Float[Array, "2 d d"],
) -> tuple[Float[Array, "2 w w"], Float[Array, "2 w"]]:
    """Return <w w'> and <s w> of each class; of x and y are given the sums of <x>, <x x'> and s<x> over its scores."""
    dim = cross.shape[1]
    at_x, at_y = slice(1, 1 + dim), slice(1 + dim, 1 + 2 * dim)
    ww, sw = np.empty((2, 1 + 2 * dim, 1 + 2 * dim)), np.empty((2, 1 + 2 * dim))
    ww[:, 0, 0], sw[:, 0] = count, total
    for at, (first, second, scored) in ((at_x, in_x), (at_y, in_y)):
        ww[:, 0, at] = ww[:, at, 0] = first
        ww[:, at, at], sw[:, at] = second, scored
    ww[:, at_x, at_y], ww[:, at_y, at_x] = cross, cross.transpose(0, 2, 1)
    return ww, sw
