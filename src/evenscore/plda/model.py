"""Two-covariance PLDA: its parameters, and the log-likelihood ratio as a bilinear form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.plda.projection import Projection
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.chunks import float64_chunks
from evenscore.tables import Embeddings
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PLDA", "diagonalize"]

Array = np.ndarray


@dataclass(frozen=True, eq=False, init=False)
class PLDA:
    """Two-covariance PLDA: a scorer whose scores are natural-log likelihood ratios.

    phi = projection(embedding)                                     (P0)
    y_g ~ N(mean, between)              for speaker g               (P1)
    phi | y_g ~ N(y_g, within)          for its utterances          (P2)

    Train it with `fit_plda`.

    Parameters
    ----------
    mean, between, within
        Mean of all speakers, covariance of the speakers, covariance of the utterances of one speaker.
    projection
        What is done to embeddings first; by default nothing.

    Examples
    --------
    >>> plda = PLDA(mean=[0.0], between=[[3.0]], within=[[1.0]])
    >>> enroll, test = Embeddings(["e"], [[2.0]]), Embeddings(["same", "other"], [[1.5], [-2.0]])
    >>> plda.score(enroll, test).in_memory().scores.round(3)
    array([[ 0.695, -2.587]])
    """

    mean: Float[Array, " d"]
    between: Float[Array, "d d"]
    within: Float[Array, "d d"]
    projection: Projection

    def __init__(
        self,
        *,
        mean: npt.ArrayLike,
        between: npt.ArrayLike,
        within: npt.ArrayLike,
        projection: Projection | None = None,
    ) -> None:
        center = _numbers(mean, "mean", 1)
        if projection is None:
            projection = Projection(center=np.zeros(len(center)), length_normalize=False)
        for name, value in {
            "mean": center,
            "between": _covariance(between, "between"),
            "within": _covariance(within, "within"),
            "projection": projection,
        }.items():
            object.__setattr__(self, name, value)
        if not len(self.mean) == len(self.between) == len(self.within) == projection.dim:
            raise InputError(
                f"mean has {len(self.mean)} components, between {len(self.between)}, within {len(self.within)} and the "
                f"projection {projection.dim}, but all must have the same"
            )
        smallest = np.linalg.eigvalsh(self.within)[0]
        if not smallest > 0:
            raise InputError(f"within must be positive definite, but has an eigenvalue of {smallest:.3g}")

    @cached_property
    def _diagonal(self) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        return diagonalize(self.between, self.within)

    def score(self, enroll: Embeddings, test: Embeddings) -> Bilinear:
        """Return the log-likelihood ratios of every enrolment against every test, without forming them.

        An enrolment of several utterances is scored by its average embedding.
        """
        left, left_offset = self._side(enroll)
        right, right_offset = (left, left_offset) if test is enroll else self._side(test)
        return Bilinear(
            left=left,
            right=right,
            left_offset=left_offset,
            right_offset=right_offset,
            enroll_ids=enroll.axis,
            test_ids=test.axis,
        )

    def _side(self, embeddings: Embeddings) -> tuple[npt.NDArray[Any], Float[Array, " n"]]:
        """Return one side of the bilinear form (B1).

        In coordinates z = V'(phi - mean), where within is I and between is diag(psi), the ratio is
        sum_k log(1 + psi_k) - log(1 + 2 psi_k) / 2 + psi_k / (1 + 2 psi_k) z_k z'_k
              - psi_k^2 / (2 (1 + psi_k) (1 + 2 psi_k)) (z_k^2 + z'_k^2).                     (P3)
        """
        projection = self.projection
        if embeddings.dim != len(projection.center):
            raise InputError(
                f"PLDA was trained on {len(projection.center)} dimensions, but the embeddings have {embeddings.dim}"
            )
        V, psi = self._diagonal
        cross = np.sqrt(psi / (1 + 2 * psi))
        square = psi**2 / (2 * (1 + psi) * (1 + 2 * psi))
        constant = float(np.sum(np.log1p(psi) - np.log1p(2 * psi) / 2))
        vectors = np.empty((len(embeddings), len(psi)), dtype=embeddings.vectors.dtype)
        offset = np.empty(len(embeddings))
        for part, chunk in float64_chunks(embeddings.vectors):
            z = (projection.apply(chunk) - self.mean) @ V
            vectors[part] = z * cross
            offset[part] = constant / 2 - (z * z) @ square
        return vectors, offset


def diagonalize(
    between: Float[Array, "d d"], within: Float[Array, "d d"]
) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
    """Return V and psi with V' within V = I and V' between V = diag(psi), psi >= 0."""
    from scipy.linalg import eigh

    psi, V = eigh(between, within)
    return V, np.maximum(psi, 0.0)


def _numbers(value: Any, name: str, ndim: int) -> npt.NDArray[np.float64]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers in {ndim} dimensions") from None
    if array.ndim != ndim or array.size == 0:
        raise InputError(f"{name} must have {ndim} dimensions and not be empty, but has shape {array.shape}")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has a value that is not finite")
    return frozen(array)


def _covariance(value: Any, name: str) -> npt.NDArray[np.float64]:
    array = _numbers(value, name, 2)
    if array.shape[0] != array.shape[1] or not np.allclose(array, array.T, rtol=1e-8, atol=1e-12 * np.abs(array).max()):
        raise InputError(f"{name} must be a symmetric matrix, but is not (shape {array.shape})")
    variances = np.linalg.eigvalsh(array)
    if variances[0] < -1e-9 * max(variances[-1], 0.0) or variances[-1] < 0:
        raise InputError(f"{name} must be a covariance, but has a negative eigenvalue ({variances[0]:.3g})")
    return frozen((array + array.T) / 2)
