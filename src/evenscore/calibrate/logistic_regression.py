"""Newton's method for the prior-weighted logistic regression (L2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.log_odds import logit

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Design", "Objective", "cross_entropy", "minimize", "newton", "objective", "penalty", "refuse_dependent"]

_CHUNK = 1 << 13  # rows at a time: what is made of them stays in the nearest caches
_SOME = 1 << 14  # trials of a class that tell about where the optimum is
_FEW_STEPS, _NEAR = 12, 1e-3  # that are taken with them, and the gradient that is near enough
_STEPS = 200
_NOT_FOUND = (
    "the logistic regression does not converge; look for scores that are far from all others, or give a penalty such "
    "as l2=0.001"
)
_SHORTEST = 1e-6  # part of a Newton step that may still lead somewhere; where not even it does, there is no optimum
_FLAT = 1e-12  # largest gradient component at the optimum; inputs are standardized
_LITTLE = 1e-16  # a fall that the objective does not show


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
        counts: Sequence[npt.NDArray[Any]] | None = None,
    ) -> Design:
        """Standardize; refuse inputs that carry nothing. ``counts``: how many trials each row of a class stands for."""
        classes = nontarget, target
        numbers = (
            [np.ones(len(side)) for side in classes] if counts is None else [np.asarray(each, float) for each in counts]
        )
        total = sum(number.sum() for number in numbers)
        mean = sum(number @ side for number, side in zip(numbers, classes, strict=True)) / total
        sides = [_beside_ones(side - mean) for side in classes]
        squares = sum(number @ side[:, :-1] ** 2 for number, side in zip(numbers, sides, strict=True))
        std = np.sqrt(squares / total)
        flat = np.flatnonzero(~(std > 1e-12 * np.abs(mean)))
        if flat.size:
            at = int(flat[0])
            name = f"system {at}'s scores are" if at < n_systems else f"quality measure {at - n_systems} is"
            raise InputError(f"{name} the same in all trials and cannot be weighed; leave out what does not vary")
        for side in sides:
            side[:, :-1] /= std
        shares = [number / number.sum() for number in numbers]
        return cls(
            nontarget=sides[0],
            target=sides[1],
            mean=mean,
            std=std,
            nontarget_share=shares[0],
            target_share=shares[1],
        )


def _beside_ones(inputs: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d+1"]:
    """Return inputs with a last column of ones."""
    out = np.empty((len(inputs), inputs.shape[1] + 1))
    out[:, :-1], out[:, -1] = inputs, 1.0
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class Objective:
    """Value, gradient and Hessian of (L2) at one point; those of parts of the trials are added with ``+``.

    ``lowest`` is the smallest margin of each class.
    """

    value: float
    gradient: Float[np.ndarray, " c"]
    hessian: Float[np.ndarray, "c c"]
    lowest: Float[np.ndarray, "2"]

    @property
    def separated(self) -> bool:
        """Whether a threshold separates the classes."""
        return bool(self.lowest.sum() >= 0)

    def take(self, places: npt.NDArray[np.intp]) -> Objective:
        """Return it as a function of some of the numbers; the others stay where they are."""
        hessian = self.hessian[np.ix_(places, places)]
        return Objective(value=self.value, gradient=self.gradient[places], hessian=hessian, lowest=self.lowest)

    def __add__(self, other: Objective) -> Objective:
        return Objective(
            value=self.value + other.value,
            gradient=self.gradient + other.gradient,
            hessian=self.hessian + other.hessian,
            lowest=np.minimum(self.lowest, other.lowest),
        )


def objective(theta: Float[np.ndarray, " c"], design: Design, p_target: float, l2: float) -> Objective:
    """Evaluate (L2) for standardized weights and the intercept ``theta``."""
    return penalty(theta, l2) + cross_entropy(theta, design, p_target)


def penalty(theta: Float[np.ndarray, " c"], l2: float) -> Objective:
    """Evaluate the penalty of (L2)."""
    each = np.append(np.full(theta.size - 1, l2), 0.0)
    value = 0.5 * float(each @ theta**2)
    return Objective(value=value, gradient=each * theta, hessian=np.diag(each), lowest=np.full(2, np.inf))


def cross_entropy(theta: Float[np.ndarray, " c"], design: Design, p_target: float) -> Objective:
    """Evaluate (L2) without its penalty."""
    value, gradient, hessian = 0.0, np.zeros(theta.size), np.zeros((theta.size, theta.size))
    lowest, prior = np.full(2, np.inf), logit(p_target)
    classes = (
        (design.nontarget, design.nontarget_share, -1.0, 1 - p_target),
        (design.target, design.target_share, 1.0, p_target),
    )
    for label, (rows, shares, sign, weight) in enumerate(classes):
        for start in range(0, len(rows), _CHUNK):
            part, share = rows[start : start + _CHUNK], weight * shares[start : start + _CHUNK]
            margin = sign * (part @ theta + prior)
            small = np.exp(-np.abs(margin))  # the one exponential of loss and probability: most of the time goes here
            right = 1.0 / (1.0 + small)  # probability of the likelier class
            # The logarithm is of nearly 1 where nothing is lost; log1p would be several times slower.
            value += float(share @ (np.maximum(-margin, 0.0) - np.log(right)))
            sure = share * right
            gradient = gradient - sign * ((sure * np.where(margin >= 0, small, 1.0)) @ part)
            hessian = hessian + part.T @ (part * (sure * small * right)[:, None])
            lowest[label] = min(lowest[label], float(margin.min()))
    return Objective(value=value, gradient=gradient, hessian=hessian, lowest=lowest)


def minimize(design: Design, *, p_target: float, l2: float) -> tuple[npt.NDArray[np.float64], float]:
    """Return slopes and intercept, in the units of the inputs."""
    if l2 == 0:
        both = design.nontarget[:, :-1].T @ design.nontarget[:, :-1] + design.target[:, :-1].T @ design.target[:, :-1]
        refuse_dependent(both / (len(design.nontarget) + len(design.target)))

    def at(theta: npt.NDArray[np.float64]) -> Objective:
        return objective(theta, design, p_target, l2)

    start = _start(design, p_target, l2)
    return newton(at, at(start), design.mean, design.std, l2, start=start)


def _start(design: Design, p_target: float, l2: float) -> npt.NDArray[np.float64]:
    """Return where to begin: near the optimum of some of the trials, where there are many; else 0."""
    theta = np.zeros(design.mean.size + 1)
    steps = [len(side) // _SOME for side in (design.nontarget, design.target)]
    if min(steps) < 1 or max(steps) < 4:
        return theta
    shares = [share[::step] for share, step in zip((design.nontarget_share, design.target_share), steps, strict=True)]
    some = replace(
        design,
        nontarget=design.nontarget[:: steps[0]],
        target=design.target[:: steps[1]],
        nontarget_share=shares[0] / shares[0].sum(),
        target_share=shares[1] / shares[1].sum(),
    )

    def at(theta: npt.NDArray[np.float64]) -> Objective:
        return objective(theta, some, p_target, l2)

    here = at(theta)
    for _ in range(_FEW_STEPS):
        try:
            theta, here = _descend(theta, _step(here), here, at)
        except InputError:  # as all trials may have an optimum
            return np.zeros_like(theta)
        if here.separated:  # as all trials need not be
            return np.zeros_like(theta)
        if np.abs(here.gradient).max() < _NEAR:
            break
    return theta


def newton(
    at: Callable[[npt.NDArray[np.float64]], Objective],
    here: Objective,
    mean: Float[np.ndarray, " d"],
    std: Float[np.ndarray, " d"],
    l2: float,
    *,
    start: npt.NDArray[np.float64] | None = None,
) -> tuple[npt.NDArray[np.float64], float]:
    """Minimize (L2), of which ``here`` is the value at 0, or at ``start``.

    Returns slopes and intercept, in the units of the inputs.
    """
    theta = np.zeros(mean.size + 1) if start is None else start
    for _ in range(_STEPS):
        if np.abs(here.gradient).max() <= _FLAT:
            break
        step = _step(here)
        fall = float(here.gradient @ step)  # twice the expected fall of the objective
        theta, here = _descend(theta, step, here, at)
        if l2 == 0 and here.separated:
            raise InputError(
                "the scores separate targets from non-targets without error, so the best weights are infinite; "
                "give a penalty such as l2=0.001, or more trials"
            )
        if fall < _LITTLE:  # it has been squared by this step: what is left is rounding
            break
    else:
        raise InputError(_NOT_FOUND)
    slopes = theta[:-1] / std
    return slopes, float(theta[-1] - slopes @ mean)


def _step(here: Objective) -> npt.NDArray[np.float64]:
    """Return the Newton step, which there is unless all that is left of the curvature is rounding."""
    try:
        found: npt.NDArray[np.float64] = np.linalg.solve(here.hessian, here.gradient)
    except np.linalg.LinAlgError:
        raise InputError(_NOT_FOUND) from None
    return found


def _descend(
    theta: npt.NDArray[np.float64],
    step: npt.NDArray[np.float64],
    here: Objective,
    at: Callable[[npt.NDArray[np.float64]], Objective],
) -> tuple[npt.NDArray[np.float64], Objective]:
    """Halve the Newton step until the objective falls enough, up to rounding."""
    slope, rounding = float(here.gradient @ step), 1e-14 * abs(here.value)
    length = 1.0
    while length > _SHORTEST:
        candidate = theta - length * step
        there = at(candidate)
        if there.value <= here.value - 1e-4 * length * slope + rounding:
            return candidate, there
        length /= 2
    raise InputError(_NOT_FOUND)


def refuse_dependent(correlation: Float[np.ndarray, "d d"]) -> None:
    """Refuse inputs whose weights are not determined, given how they go together."""
    if np.linalg.eigvalsh(correlation)[0] < 1e-12:
        raise InputError(
            "one of the inputs is a weighted sum of the others, so the weights are not determined; leave one out, or "
            "give a penalty such as l2=0.001"
        )
