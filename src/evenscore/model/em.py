"""EM of the score model: the E-step sums expectations under the posterior, the M-step is a regression on them.

No step looks at a score: the statistics are those of `statistics`. The E-step is in `block_posterior` for complete
matrices of speaker blocks, and in `pattern_posterior` for everything else. Equation numbers as in docs/math.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from evenscore.model.block_posterior import expect_blocks
from evenscore.model.moments import Moments
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern_posterior import PatternStatistics, expect_pattern
from evenscore.model.patterns import ShapeStatistics
from evenscore.tables.arrays import LARGEST

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Run", "Statistics", "expect", "m_step", "run_em"]

Array = np.ndarray
Statistics = ShapeStatistics | PatternStatistics
_ROUNDING = 1e-15  # relative rounding error of the log-likelihood
_SMALLEST_SIGMA2 = 1e-12  # of the standardized scores


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Where EM has come to from one starting point."""

    model: ScoreModel
    trace: list[float]  #: log-likelihood before the first and after each iteration
    converged: bool

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.trace) - 1


def run_em(model: ScoreModel, statistics: Sequence[Statistics], min_divergence: bool, tol: float, max_iter: int) -> Run:
    """Repeat E-step and M-step until an iteration gains less than ``tol`` per hidden variable."""
    moments = expect(model, statistics)
    trace = [moments.log_likelihood]
    enough = tol * (moments.enroll.count + moments.test.count)
    for _ in range(1 if model.dim == 0 else max_iter):
        proposal = _floored(m_step(moments, min_divergence=min_divergence))
        moments = expect(proposal, statistics)
        gain = moments.log_likelihood - trace[-1]
        if gain < 0:  # less than the rounding error of the likelihood: nothing is left to gain
            return Run(model=model, trace=trace, converged=True)
        model = proposal
        trace.append(moments.log_likelihood)
        if gain <= max(enough, _ROUNDING * abs(trace[-1])) or model.dim == 0:
            return Run(model=model, trace=trace, converged=True)
    return Run(model=model, trace=trace, converged=False)


def _floored(model: ScoreModel) -> ScoreModel:
    if (model.sigma2 >= _SMALLEST_SIGMA2).all():
        return model
    sigma2 = np.maximum(model.sigma2, _SMALLEST_SIGMA2)
    return ScoreModel(mu=model.mu, alpha=model.alpha, beta=model.beta, sigma2=sigma2)


def expect(model: ScoreModel, statistics: Sequence[Statistics]) -> Moments:
    """Return the E-step's moments over all matrices; `model` is in standardized units."""
    parts = (
        expect_blocks(model, stats) if isinstance(stats, ShapeStatistics) else expect_pattern(model, stats)
        for stats in statistics
    )
    return reduce(add, parts)


def m_step(moments: Moments, *, min_divergence: bool = True) -> ScoreModel:
    """Regress the scores of each class on (1, x, y), then absorb the fitted prior (minimum divergence)."""
    dim = moments.enroll.first.size
    count = moments.ww[:, 0, 0]
    weights = np.stack([_solve_psd(ww, sw) for ww, sw in zip(moments.ww, moments.sw, strict=True)])  # (E9)
    # (E10) in the form of a residual of a quadratic, which stays accurate when the regression is only approximate
    residual = moments.ss - 2 * np.einsum("hw,hw->h", weights, moments.sw)
    residual += np.einsum("hv,hvw,hw->h", weights, moments.ww, weights)
    sigma2 = np.maximum(residual / count, 1 / LARGEST)  # of standardized scores: no digit of it is left
    mu, alpha, beta = weights[:, 0], weights[:, 1 : 1 + dim], weights[:, 1 + dim :]
    if min_divergence and dim:
        for loading, side in ((alpha, moments.enroll), (beta, moments.test)):
            mean = side.first / side.count
            covariance = side.second / side.count - np.outer(mean, mean)
            mu = mu + loading @ mean  # (E11)
            loading[:] = loading @ np.linalg.cholesky(covariance)  # (E12)
    return ScoreModel(mu=mu, alpha=alpha, beta=beta, sigma2=sigma2)


def _solve_psd(matrix: Float[Array, "w w"], vector: Float[Array, " w"]) -> Float[Array, " w"]:
    """Solve a system that may be singular when a class has fewer scores than weights (then the shortest solution)."""
    scale = 1 / np.sqrt(np.where(np.diag(matrix) > 0, np.diag(matrix), 1.0))
    scaled = matrix * np.outer(scale, scale)
    try:
        factor = np.linalg.cholesky(scaled)
        if np.diag(factor).min() > 1e-7:
            half = np.linalg.solve(factor, scale * vector)
            return scale * np.linalg.solve(factor.T, half)
    except np.linalg.LinAlgError:
        pass
    return scale * np.linalg.lstsq(scaled, scale * vector, rcond=1e-12)[0]
