"""Newton's method for the prior-weighted logistic regression (L2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float
from scipy.special import expit, logit

from evenscore.errors import InputError

__all__ = ["Design", "Objective", "minimize", "objective"]

_CHUNK = 1 << 16  # rows at a time, to bound memory
_STEPS = 200
_FLAT = 1e-12  # largest gradient component at the optimum; inputs are standardized


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """Standardized inputs of the two classes, with a last column of ones.

    Attributes
    ----------
    nontarget, target
        One row per trial.
    mean, std
        What was subtracted from each input, and what it was divided by.
    nontarget_share, target_share
        Share of each row in its class.
    """

    nontarget: Float[np.ndarray, "n c"]
    target: Float[np.ndarray, "t c"]
    mean: Float[np.ndarray, " c-1"]
    std: Float[np.ndarray, " c-1"]
    nontarget_share: Float[np.ndarray, " n"]
    target_share: Float[np.ndarray, " t"]

    @classmethod
    def of(
        cls,
        nontarget: Float[np.ndarray, "n d"],
        target: Float[np.ndarray, "t d"],
        n_systems: int,
        counts: tuple[npt.NDArray[Any], npt.NDArray[Any]] | None = None,
    ) -> Design:
        """Standardize; refuse inputs that carry nothing. ``counts``: how many trials each row of a class stands for."""
        both = np.concatenate((nontarget, target))
        if counts is None:
            counts = np.ones(len(nontarget)), np.ones(len(target))
            mean, std = both.mean(axis=0), both.std(axis=0)
        else:
            number = np.concatenate(counts)
            mean = np.average(both, axis=0, weights=number)
            std = np.sqrt(np.average((both - mean) ** 2, axis=0, weights=number))
        flat = np.flatnonzero(~(std > 1e-12 * np.abs(mean)))
        if flat.size:
            at = int(flat[0])
            name = f"system {at}'s scores are" if at < n_systems else f"quality measure {at - n_systems} is"
            raise InputError(f"{name} the same in all trials and cannot be weighed; leave out what does not vary")
        sides = [np.column_stack(((side - mean) / std, np.ones(len(side)))) for side in (nontarget, target)]
        shares = [count / count.sum() for count in counts]
        return cls(
            nontarget=sides[0],
            target=sides[1],
            mean=mean,
            std=std,
            nontarget_share=shares[0],
            target_share=shares[1],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    """Value, gradient and Hessian of (L2) at one point, and whether its scores separate the classes."""

    value: float
    gradient: Float[np.ndarray, " c"]
    hessian: Float[np.ndarray, "c c"]
    separated: bool


def objective(theta: Float[np.ndarray, " c"], design: Design, p_target: float, l2: float) -> Objective:
    """Evaluate (L2) for standardized weights and the intercept ``theta``."""
    penalty = np.append(np.full(theta.size - 1, l2), 0.0)
    value = 0.5 * float(penalty @ theta**2)
    gradient, hessian = penalty * theta, np.diag(penalty)
    extremes = []
    classes = (
        (design.nontarget, design.nontarget_share, -1.0, 1 - p_target),
        (design.target, design.target_share, 1.0, p_target),
    )
    for rows, shares, sign, weight in classes:
        worst = np.inf
        for start in range(0, len(rows), _CHUNK):
            part, share = rows[start : start + _CHUNK], weight * shares[start : start + _CHUNK]
            margin = sign * (part @ theta + logit(p_target))
            wrong = expit(-margin)
            value += float(share @ np.logaddexp(0.0, -margin))
            gradient = gradient - sign * ((share * wrong) @ part)
            hessian = hessian + part.T @ (part * (share * wrong * expit(margin))[:, None])
            worst = min(worst, float(margin.min()))
        extremes.append(worst)
    return Objective(value=value, gradient=gradient, hessian=hessian, separated=sum(extremes) >= 0)


def minimize(design: Design, *, p_target: float, l2: float) -> tuple[npt.NDArray[np.float64], float]:
    """Return slopes and intercept, in the units of the inputs."""
    if l2 == 0:
        _refuse_dependent(design)
    theta = np.zeros(design.mean.size + 1)
    here = objective(theta, design, p_target, l2)
    for _ in range(_STEPS):
        if np.abs(here.gradient).max() <= _FLAT:
            break
        step = np.linalg.solve(here.hessian, here.gradient)
        fall = float(here.gradient @ step)  # twice the expected fall of the objective
        theta, here = _descend(theta, step, here, design, p_target, l2)
        if l2 == 0 and here.separated:
            raise InputError(
                "the scores separate targets from non-targets without error, so the best weights are infinite; "
                "give a penalty such as l2=0.001, or more trials"
            )
        if fall < _FLAT**1.5:  # Newton squares it in the next step: what is left is rounding
            break
    else:
        raise InputError("the logistic regression does not converge; give a penalty such as l2=0.001")
    slopes = theta[:-1] / design.std
    return slopes, float(theta[-1] - slopes @ design.mean)


def _descend(
    theta: npt.NDArray[np.float64],
    step: npt.NDArray[np.float64],
    here: Objective,
    design: Design,
    p_target: float,
    l2: float,
) -> tuple[npt.NDArray[np.float64], Objective]:
    """Halve the Newton step until the objective falls enough, up to rounding."""
    slope, rounding = float(here.gradient @ step), 1e-14 * abs(here.value)
    length = 1.0
    while True:
        candidate = theta - length * step
        there = objective(candidate, design, p_target, l2)
        if there.value <= here.value - 1e-4 * length * slope + rounding or length < 1e-10:
            return candidate, there
        length /= 2


def _refuse_dependent(design: Design) -> None:
    both = design.nontarget[:, :-1].T @ design.nontarget[:, :-1] + design.target[:, :-1].T @ design.target[:, :-1]
    correlation = both / (len(design.nontarget) + len(design.target))
    if np.linalg.eigvalsh(correlation)[0] < 1e-12:
        raise InputError(
            "one of the inputs is a weighted sum of the others, so the weights are not determined; leave one out, or "
            "give a penalty such as l2=0.001"
        )
