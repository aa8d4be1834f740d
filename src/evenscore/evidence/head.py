"""The head of the evidence model: class-balanced, ridge-penalized logistic regression on features, with two hinges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.evidence.features import VIEWS
from evenscore.parallel import one_blas_thread

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Head", "fit_head"]

RIDGE = 0.02  #: of all weights but that of the base; the weights of all trials add up to 1
_HINGE = 2.0  # of the base, in standard deviations within classes


@dataclass(frozen=True, eq=False)
class Head:
    """LLR = offset + weights . (base, features, max(base - 2, 0), min(base, 0)).

    Features are standardized by the mean of the non-targets and the pooled standard deviation within classes; the base
    is the mean of the standardized views.
    """

    names: tuple[str, ...]  #: of the features
    mean: Float[np.ndarray, " f"]
    std: Float[np.ndarray, " f"]
    offset: float
    weights: Float[np.ndarray, " g"]  #: f + 3

    def __call__(self, features: Mapping[str, npt.NDArray[np.floating]]) -> npt.NDArray[np.float64]:
        """Return the LLRs of trials, in the shape of their features; NaN where a score is missing."""
        absent = [name for name in self.names if name not in features]
        if absent:
            raise InputError(f"the model was trained with {', '.join(absent)}; give the same kinds of cohort scores")
        table = np.stack([np.ravel(features[name]) for name in self.names], axis=1)
        design = _design((table - self.mean) / self.std, self.names)
        with one_blas_thread():
            return (self.offset + design @ self.weights).reshape(np.shape(features["raw"]))


def _design(standardized: Float[np.ndarray, "n f"], names: Sequence[str]) -> Float[np.ndarray, "n g"]:
    views = [at for at, name in enumerate(names) if name in VIEWS]
    table = np.where(np.isnan(standardized), 0.0, standardized)  # a feature that is not known counts as usual
    base = table[:, views].mean(axis=1)
    design = np.column_stack([base, table, np.maximum(base - _HINGE, 0), np.minimum(base, 0)])
    design[np.isnan(standardized[:, names.index("raw")])] = np.nan
    return design


def fit_head(
    features: Mapping[str, npt.NDArray[np.floating]], labels: npt.NDArray[np.integer], ridge: float = RIDGE
) -> Head:
    """Fit the head to the features of training trials with labels 1 and 0; the ridge shrinks it towards the base."""
    names = tuple(features)
    table = np.stack([features[name] for name in names], axis=1)
    known = np.isfinite(table).all(axis=1) & (labels >= 0)
    table, target = table[known], labels[known] == 1
    if not (target.any() and not target.all()):
        raise InputError("the evidence model needs target and non-target trials that have cohort scores; give more")
    mean, variance = table[~target].mean(axis=0), (table[~target].var(axis=0) + table[target].var(axis=0)) / 2
    std = np.sqrt(variance) + 1e-12
    design = _design((table - mean) / std, names)
    penalty = np.full(design.shape[1] + 1, ridge)
    penalty[:2] = 0.0, 1e-5  # offset; base: an end of its slope where training trials are separable
    with one_blas_thread():
        theta = _logistic(np.column_stack([np.ones(len(design)), design]), target, penalty)
    return Head(names, mean, std, float(theta[0]), theta[1:])


def _logistic(
    design: Float[np.ndarray, "n g"], target: npt.NDArray[np.bool_], penalty: Float[np.ndarray, " g"]
) -> Float[np.ndarray, " g"]:
    """Return the weights of class-balanced logistic regression with a ridge, by Newton's method."""
    weight = np.where(target, 0.5 / target.sum(), 0.5 / (~target).sum())
    sign, theta = np.where(target, 1.0, -1.0), np.zeros(design.shape[1])

    def loss(at: Float[np.ndarray, " g"]) -> float:
        return float(weight @ np.logaddexp(0, -sign * (design @ at)) + 0.5 * penalty @ at**2)

    now = loss(theta)
    for _ in range(80):
        z = sign * (design @ theta)
        q = 0.5 * (1 - np.tanh(z / 2))  # probability of the other class
        gradient = -design.T @ (weight * sign * q) + penalty * theta
        hessian = (design * (weight * q * (1 - q))[:, None]).T @ design + np.diag(penalty + 1e-9)
        step, size = np.linalg.solve(hessian, gradient), 1.0
        while (new := loss(theta - size * step)) > now and size > 1e-6:
            size /= 2
        theta, now = theta - size * step, min(new, now)
        if np.abs(size * step).max() < 1e-7:
            break
    return theta
