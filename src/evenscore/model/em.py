"""EM with minimum divergence, as in the paper, and the same climb by BFGS where EM creeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.model.posterior import Moments, expect
from evenscore.model.statistics import Statistics

__all__ = ["Run", "m_step", "run_bfgs", "run_em"]

Array = npt.NDArray[np.float64]
Tell = Callable[[int], object] | None  #: called with the number of iterations
_FLOOR = 1e-12  # of the variances of standardized scores


@dataclass(frozen=True, eq=False)
class Run:
    """Where a climb from one starting point has come."""

    model: ScoreModel
    trace: list[float]  #: log-likelihood before the first and after each iteration
    converged: bool = False


def m_step(moments: Moments) -> ScoreModel:
    """Regress the scores of each class on w = (1, x, y), then absorb the fitted prior (minimum divergence)."""
    D = moments.first.shape[1]
    weights = np.stack([_solve(ww, sw) for ww, sw in zip(moments.ww, moments.sw, strict=True)])  # (E9)
    sigma2 = np.maximum(_residual(moments, weights) / np.maximum(moments.ww[:, 0, 0], 1), _FLOOR)  # (E10)
    mu, alpha, beta = weights[:, 0], weights[:, 1 : 1 + D], weights[:, 1 + D :]
    mean = moments.first / moments.number[:, None]
    covariance = moments.second / moments.number[:, None, None] - mean[:, :, None] * mean[:, None]
    mu = mu + alpha @ mean[0] + beta @ mean[1]  # (E11)
    root = np.linalg.cholesky(covariance)
    return ScoreModel(mu=mu, alpha=alpha @ root[0], beta=beta @ root[1], sigma2=sigma2)  # (E12)


def _residual(moments: Moments, weights: Array) -> Array:
    """Return the expected sum of squares of s - weights'w, of each class."""
    fitted = (moments.ww @ weights[:, :, None])[:, :, 0]
    return moments.ss - 2 * (weights * moments.sw).sum(1) + (weights * fitted).sum(1)


def _solve(matrix: Array, vector: Array) -> Array:
    """Return the shortest solution of a system that is singular where a class has fewer scores than weights."""
    scale = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    return scale * np.linalg.lstsq(matrix * scale[:, None] * scale, scale * vector, rcond=1e-13)[0]


def run_em(start: Run, stats: Statistics, tol: float, max_iter: int, progress: Tell = None) -> Run:
    """Repeat E-step and M-step until an iteration gains less than ``tol`` per hidden variable."""
    model, moments = start.model, expect(start.model, stats)
    trace, enough = start.trace or [moments.log_likelihood], tol * float(moments.number.sum())
    for _ in range(max_iter):
        proposal = m_step(moments)
        moments = expect(proposal, stats)
        gain = moments.log_likelihood - trace[-1]
        if not gain >= 0:  # less than rounding errors
            return Run(model, trace, True)
        model, trace = proposal, [*trace, moments.log_likelihood]
        if progress is not None:
            progress(len(trace) - 1)
        if gain <= max(enough, 1e-15 * abs(trace[-1])) or model.dim == 0:
            return Run(model, trace, True)
    return Run(model, trace)


def run_bfgs(start: Run, stats: Statistics, tol: float, max_iter: int, progress: Tell = None) -> Run:
    """Climb on by BFGS: at the current model, EM's moments are the log-likelihood's gradient (Fisher's identity)."""
    from scipy.optimize import minimize

    trace = list(start.trace)

    def loss(vector: Array) -> tuple[float, Array]:
        try:
            model = _as_model(vector)
            moments = expect(model, stats)
        except (np.linalg.LinAlgError, InputError):  # the step went too far and is taken back
            return np.inf, np.zeros_like(vector)
        return -moments.log_likelihood, -_gradient(model, moments)

    def after_iteration(intermediate_result: dict[str, float]) -> None:
        trace.append(-float(intermediate_result["fun"]))
        if progress is not None:
            progress(len(trace) - 1)

    m, how = start.model, {"gtol": 10 * np.sqrt(tol), "maxiter": max_iter}
    first = np.concatenate([m.mu, m.alpha.ravel(), m.beta.ravel(), np.log(m.sigma2)])
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        found = minimize(loss, first, jac=True, method="BFGS", callback=after_iteration, options=how)
    converged = found.status in (0, 2)  # 2: no more digits to gain
    if not -found.fun > start.trace[-1]:
        return Run(start.model, start.trace, converged)
    return Run(_as_model(found.x), trace, converged)


def _as_model(vector: Array) -> ScoreModel:
    mu, alpha, beta, log_sigma2 = np.split(vector, [2, len(vector) // 2, len(vector) - 2])
    sigma2 = np.exp(np.clip(log_sigma2, np.log(_FLOOR), 100.0))
    return ScoreModel(mu=mu, alpha=alpha.reshape(2, -1), beta=beta.reshape(2, -1), sigma2=sigma2)


def _gradient(model: ScoreModel, moments: Moments) -> Array:
    """Return the gradient of the log-likelihood for (mu, alpha, beta, log sigma2)."""
    D = model.dim
    weights = np.concatenate([model.mu[:, None], model.alpha, model.beta], axis=1)
    slope = (moments.sw - (moments.ww @ weights[:, :, None])[:, :, 0]) / model.sigma2[:, None]
    last = 0.5 * (_residual(moments, weights) / model.sigma2 - moments.ww[:, 0, 0])
    return np.concatenate([slope[:, 0], slope[:, 1 : 1 + D].ravel(), slope[:, 1 + D :].ravel(), last])
