"""The linear-Gaussian score model of Swart and Brümmer (2017): its parameters and what they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.densities import ResidualDensities

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LlrBound", "ScoreModel", "VarianceTable"]

Array = npt.NDArray[np.float64]
_LARGEST = 1e30  # of means and loadings, so that products of four still fit into float64


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreModel:
    """Linear-Gaussian score model of Swart and Brümmer (2017).

    x_i, y_j ~ N(0, I_D)                                            (M1)
    s_ij | h ~ N(mu_h + alpha_h' x_i + beta_h' y_j, sigma_h^2)      (M2)

    with h in (NONTARGET, TARGET) = (0, 1), the first axis of every array. x_i belongs to enrolment i, y_j to test j.
    In the paper this is the joint distribution (8), with the linear-Gaussian likelihood that follows it.

    Parameters
    ----------
    mu
        Mean score of each class.
    alpha, beta
        Loadings of the enrolment's and of the test's hidden variable, 2 x D. D = 0 is Gaussian calibration.
    sigma2
        Variance that the hidden variables do not explain, positive.
    residuals
        Densities of what the model does not predict, in place of Gaussians. They change the log-likelihood ratios, and
        nothing else.

    Examples
    --------
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> model.dim, model.variances.nu.round(2), model.variances.share.round(3)
    (1, array([0.26, 1.49]), array([0.206, 0.427]))
    """

    mu: Float[np.ndarray, "2"]
    alpha: Float[np.ndarray, "2 d"]
    beta: Float[np.ndarray, "2 d"]
    sigma2: Float[np.ndarray, "2"]
    residuals: ResidualDensities | None = None

    def __post_init__(self) -> None:
        for name, ndim in (("mu", 1), ("alpha", 2), ("beta", 2), ("sigma2", 1)):
            object.__setattr__(self, name, _parameter(getattr(self, name), name, ndim))
        if self.alpha.shape != self.beta.shape:
            raise InputError(f"alpha has shape {self.alpha.shape}, but beta has shape {self.beta.shape}")

    @property
    def dim(self) -> int:
        """Dimension D of the hidden variables."""
        return int(self.alpha.shape[1])

    @property
    def T(self) -> ScoreModel:  # noqa: N802
        """The model of the transposed scores."""
        return replace(self, alpha=self.beta, beta=self.alpha)

    @property
    def variances(self) -> VarianceTable:
        """Where the variance comes from, per class and side."""
        enroll, test = self.alpha @ self.alpha.T, self.beta @ self.beta.T
        nu_enroll, nu_test, left = np.diag(enroll), np.diag(test), self.sigma2.copy()
        nu = nu_enroll + nu_test
        for (own, both), (_, target) in (enroll, test):
            left[1] += max(target - both**2 / own, 0.0) if own > 0 else target
        return VarianceTable(self.sigma2, enroll, test, nu_enroll, nu_test, nu, nu / (nu + self.sigma2), left)

    def score_precision(self) -> tuple[Array, Array, Array]:
        """Return a_h, b_h, c_h (2 x D x D): what a score of class h adds to the precision of x, y, and between them."""
        alpha, beta = self.alpha / self.sigma2[:, None], self.beta / self.sigma2[:, None]
        a, b = alpha[:, :, None] * self.alpha[:, None], beta[:, :, None] * self.beta[:, None]
        return a, b, alpha[:, :, None] * self.beta[:, None]  # (E1)

    def rescaled(self, scale: float, shift: npt.ArrayLike = 0.0) -> ScoreModel:
        """Return the model of the scores ``scale * s + shift``; the shift may differ by class."""
        mu, sigma2 = scale * self.mu + np.asarray(shift), scale**2 * self.sigma2
        return replace(self, mu=mu, alpha=scale * self.alpha, beta=scale * self.beta, sigma2=sigma2)

    def llr_bound(self, *, large_cohort: bool = False) -> LlrBound:
        """Return where the LLR turns as a function of the raw score, because target and non-target variances differ.

        Without a cohort the score of class h has its whole variance. A large cohort tells the effects on non-target
        scores exactly; then the vertex is another one in each trial, and that of an average trial is given.
        """
        table, distance, spread = self.variances, float(self.mu[1] - self.mu[0]), 0.0
        v0, v1 = (table.with_large_cohort if large_cohort else table.sigma2 + table.nu).tolist()
        if v0 == v1:
            return LlrBound(math.nan, math.nan, (0.0, 0.0))
        for (own, both), _ in (table.enroll_covariance, table.test_covariance) if large_cohort else ():
            spread += (both - own) ** 2 / own if own > 0 else 0.0  # of E[effect on targets | on others] - the latter
        vertex = float(self.mu[0]) - distance * v0 / (v1 - v0)  # (S5)
        extreme = 0.5 * math.log(v0 / v1) - distance**2 / (2 * (v1 - v0))  # (S6)
        # The slope of the LLR at a score of a class is Gaussian, too; beyond the vertex it has the other sign.
        varies = [math.sqrt(own * (1 / v0 - 1 / v1) ** 2 + spread / other**2) for own, other in ((v0, v1), (v1, v0))]
        beyond = [0.5 * math.erfc(abs(distance) / v / s / math.sqrt(2)) for v, s in zip((v1, v0), varies, strict=True)]
        return LlrBound(vertex, extreme, (beyond[0], beyond[1]))  # (S7)


class LlrBound(NamedTuple):
    """The extreme of the LLR as a function of the raw score; NaN if variances are equal and there is none."""

    vertex: float  #: the score at which the LLR turns
    extreme: float  #: the LLR there: a floor if target scores vary more, else a ceiling
    beyond: tuple[float, float]  #: share of non-target and of target trials beyond the vertex, if the model holds


class VarianceTable(NamedTuple):
    """Where the variance of the scores of each class (non-target, target) comes from: it is ``sigma2 + nu``.

    The hidden variables enter only through the effects (alpha_0'x, alpha_1'x) and (beta_0'y, beta_1'y), so their 2 x 2
    covariances are what data can identify; loadings that differ by a rotation are the same model.
    """

    sigma2: Array  #: variance that the hidden variables do not explain
    enroll_covariance: Array  #: covariance of the enrolment's effects on the two classes
    test_covariance: Array  #: covariance of the test's effects on the two classes
    nu_enroll: Array  #: variance of the enrolment's effect, |alpha_h|^2
    nu_test: Array  #: variance of the test's effect, |beta_h|^2
    nu: Array  #: variance that the hidden variables explain, both sides together
    share: Array  #: share of the whole variance that they explain
    with_large_cohort: Array  #: variance that is left when a cohort tells the effects on non-targets exactly


def _parameter(value: npt.ArrayLike, name: str, ndim: int) -> Array:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers, but is {value!r}") from None
    if array.ndim != ndim or array.shape[0] != 2:
        wanted = "2 numbers (non-target, target)" if ndim == 1 else "2 x D numbers (non-target row, target row)"
        raise InputError(f"{name} must be {wanted}, but has shape {array.shape}")
    low, high = (_LARGEST**-2, _LARGEST**2) if name == "sigma2" else (-_LARGEST, _LARGEST)
    if not ((array >= low) & (array <= high)).all():
        raise InputError(f"{name} must be from {low:g} to {high:g}, but is {array.tolist()}")
    array.flags.writeable = False
    return array
