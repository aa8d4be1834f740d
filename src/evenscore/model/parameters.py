"""The linear-Gaussian score model: its parameters and what they mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.llr_shape import LlrShape
from evenscore.model.residuals import ResidualDensities
from evenscore.tables.arrays import LARGEST, LARGEST_SQUARE, frozen, same_array, usable
from evenscore.tables.html_table import html_table

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ScoreModel", "VarianceTable"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class VarianceTable:
    """Where the variance of the scores of each class (non-target, target) comes from.

    The variance of a score is ``sigma2 + nu``. The hidden variables enter only through the effects
    (alpha_0'x, alpha_1'x) and (beta_0'y, beta_1'y), so their 2 x 2 covariances are what data can identify; loadings
    that differ by a rotation of the hidden variables are the same model.

    Examples
    --------
    >>> from evenscore import ScoreModel
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> table = model.variances
    >>> table.nu_enroll, table.share.round(3)
    (array([0.25, 1.  ]), array([0.206, 0.427]))
    """

    sigma2: Float[Array, "2"]  #: variance that the hidden variables do not explain
    nu_enroll: Float[Array, "2"]  #: variance of the enrolment's effect, |alpha_h|^2
    nu_test: Float[Array, "2"]  #: variance of the test's effect, |beta_h|^2
    enroll_covariance: Float[Array, "2 2"]  #: covariance of the enrolment's effects on the two classes
    test_covariance: Float[Array, "2 2"]  #: covariance of the test's effects on the two classes

    @property
    def nu(self) -> Float[Array, "2"]:
        """Variance that the hidden variables explain, both sides together."""
        return self.nu_enroll + self.nu_test

    @property
    def share(self) -> Float[Array, "2"]:
        """Share of the whole variance that the hidden variables explain."""
        return self.nu / (self.nu + self.sigma2)

    @property
    def with_large_cohort(self) -> Float[Array, "2"]:
        """Variance that is left when the effects on non-target scores are known exactly, from a large cohort."""
        left = self.sigma2.copy()
        for covariance in (self.enroll_covariance, self.test_covariance):
            own, both, target = covariance[0, 0], covariance[0, 1], covariance[1, 1]
            left[1] += max(target - both**2 / own, 0.0) if own > 0 else target
        return left


@dataclass(frozen=True, eq=False, init=False)
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
        Densities of what the model does not predict, in place of Gaussians; see `fit_residuals`. They change the
        log-likelihood ratios, and nothing else.

    Examples
    --------
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> model.dim
    1
    >>> model.variances.nu.round(2)
    array([0.26, 1.49])
    """

    mu: Float[Array, "2"]
    alpha: Float[Array, "2 d"]
    beta: Float[Array, "2 d"]
    sigma2: Float[Array, "2"]
    residuals: ResidualDensities | None

    def __init__(
        self,
        *,
        mu: npt.ArrayLike,
        alpha: npt.ArrayLike,
        beta: npt.ArrayLike,
        sigma2: npt.ArrayLike,
        residuals: ResidualDensities | None = None,
    ) -> None:
        object.__setattr__(self, "residuals", residuals)
        for name, value, ndim in (("mu", mu, 1), ("alpha", alpha, 2), ("beta", beta, 2), ("sigma2", sigma2, 1)):
            object.__setattr__(self, name, _parameter(value, name, ndim))
        if self.alpha.shape != self.beta.shape:
            raise InputError(f"alpha has shape {self.alpha.shape}, but beta has shape {self.beta.shape}")

    @property
    def dim(self) -> int:
        """Dimension D of the hidden variables."""
        return int(self.alpha.shape[1])

    @property
    def variances(self) -> VarianceTable:
        """Where the variance comes from, per class and side."""
        enroll, test = self.alpha @ self.alpha.T, self.beta @ self.beta.T
        return VarianceTable(
            sigma2=self.sigma2,
            nu_enroll=np.diag(enroll).copy(),
            nu_test=np.diag(test).copy(),
            enroll_covariance=enroll,
            test_covariance=test,
        )

    def variance_rows(self) -> list[tuple[str, str, str]]:
        """Return means and variances of non-targets and targets as tables show them.

        Examples
        --------
        >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
        >>> model.variance_rows()[1]
        ('variance', '1.2600', '3.4900')
        """
        table = self.variances
        rows = [
            ("mean score (mu)", self.mu),
            ("variance", table.sigma2 + table.nu),
            ("  unexplained (sigma^2)", table.sigma2),
            ("  hidden variables (nu)", table.nu),
            ("    of the enrolment", table.nu_enroll),
            ("    of the test", table.nu_test),
        ]
        rows = rows if self.dim else rows[:2]  # else there is nothing to be explained
        cells = [(name, *(f"{value:#.5g}".rstrip(".") for value in values)) for name, values in rows]
        shares = [("share of nu", *(f"{100 * share:.1f} %" for share in table.share))] if self.dim else []
        return cells + shares  # type: ignore[return-value]

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        header = ["", "non-target", "target"]
        return html_table(header, self.variance_rows(), f"Score model with {self.dim} hidden dimensions")

    def llr_shape(self, *, large_cohort: bool = False) -> LlrShape:
        """Return the LLR as a function of the raw score, with its floor or ceiling.

        Without a cohort the score of class h has its whole variance. A large cohort tells the effects on non-target
        scores exactly; then the vertex is another one in each trial, and that of an average trial is given.

        Examples
        --------
        >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
        >>> round(model.llr_shape().floor, 2), round(model.llr_shape(large_cohort=True).floor, 2)
        (-6.11, -12.85)
        """
        table, spread = self.variances, 0.0
        if not large_cohort:
            return LlrShape(mean=self.mu, variance=table.sigma2 + table.nu)
        for covariance in (table.enroll_covariance, table.test_covariance):
            own, both = covariance[0, 0], covariance[0, 1]
            spread += (
                (both - own) ** 2 / own if own > 0 else 0.0
            )  # of E[effect on targets | on non-targets] - the latter
        return LlrShape(mean=self.mu, variance=table.with_large_cohort, spread=float(spread))

    def rescaled(self, scale: float, shift: npt.ArrayLike = 0.0) -> ScoreModel:
        """Return the model of the scores ``scale * s + shift``; the shift may differ by class."""
        return ScoreModel(
            mu=scale * self.mu + np.asarray(shift, dtype=float),
            alpha=scale * self.alpha,
            beta=scale * self.beta,
            sigma2=scale**2 * self.sigma2,
            residuals=self.residuals,
        )

    def with_residuals(self, residuals: ResidualDensities | None) -> ScoreModel:
        """Return the same model with these densities of residuals; None: Gaussian."""
        parts = {name: getattr(self, name) for name in ("mu", "alpha", "beta", "sigma2")}
        return ScoreModel(**parts, residuals=residuals)

    def padded(self, dim: int) -> ScoreModel:
        """Return the same model with more hidden dimensions, which have no effect."""
        extra = np.zeros((2, dim - self.dim))
        return ScoreModel(
            mu=self.mu,
            alpha=np.hstack([self.alpha, extra]),
            beta=np.hstack([self.beta, extra]),
            sigma2=self.sigma2,
            residuals=self.residuals,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreModel):
            return NotImplemented
        names = ("mu", "alpha", "beta", "sigma2")
        same = all(same_array(getattr(self, name), getattr(other, name)) for name in names)
        return same and self.residuals == other.residuals

    __hash__ = None  # type: ignore[assignment]


def _parameter(value: Any, name: str, ndim: int) -> npt.NDArray[np.float64]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers, but is {value!r}") from None
    if array.ndim != ndim or array.shape[0] != 2:
        wanted = "2 numbers (non-target, target)" if ndim == 1 else "2 x D numbers (non-target row, target row)"
        raise InputError(f"{name} must be {wanted}, but has shape {array.shape}")
    if name == "sigma2" and not ((array >= 1 / LARGEST_SQUARE) & (array <= LARGEST_SQUARE)).all():
        few, many = f"{1 / LARGEST_SQUARE:g}", f"{LARGEST_SQUARE:g}"
        raise InputError(f"sigma2 must be positive, from {few} to {many}, but is {array.tolist()}")
    if name != "sigma2" and not usable(array).all():
        raise InputError(f"{name} must be finite, and {LARGEST:g} at most, but is {array.tolist()}")
    return frozen(array)
