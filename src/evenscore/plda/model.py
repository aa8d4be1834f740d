"""Two-covariance PLDA: its parameters, and the log-likelihood ratio as a bilinear form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.plda.projection import Projection
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.chunks import float64_chunks
from evenscore.tables import Embeddings
from evenscore.tables.arrays import LARGEST_SQUARE, check_vectors, frozen
from evenscore.threads import product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PLDA", "UTTERANCES", "diagonalize"]

Array = np.ndarray
UTTERANCES = "plda_utterances"  #: the column of enrolments that are means over several utterances: of how many


@dataclass(frozen=True, eq=False, init=False)
class PLDA:
    """Two-covariance PLDA: a scorer whose scores are natural-log likelihood ratios.

    phi = projection(embedding)                                     (P0)
    y_g ~ N(mean, between)              for speaker g               (P1)
    phi | y_g ~ N(y_g, within)          for its utterances          (P2)

    Train it with `fit_plda`. An enrolment of several utterances is a posterior of y_g, which `enroll_models` of
    `evenscore.scoring` prepares.

    Parameters
    ----------
    mean, between, within
        Mean of all speakers, covariance of the speakers, covariance of the utterances of one speaker.
    projection
        What is done to embeddings first; by default nothing.
    model_length
        Whether phi - mean is then scaled to the length sqrt(d) that the model expects of a mean over n utterances,
        with (between + within / n)^-1 as metric, as Kaldi's scoring does.

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
    model_length: bool

    def __init__(
        self,
        *,
        mean: npt.ArrayLike,
        between: npt.ArrayLike,
        within: npt.ArrayLike,
        projection: Projection | None = None,
        model_length: bool = False,
    ) -> None:
        center = _numbers(mean, "mean", 1)
        if projection is None:
            projection = Projection(center=np.zeros(len(center)), length_normalize=False)
        for name, value in {
            "mean": center,
            "between": _covariance(between, "between"),
            "within": _covariance(within, "within"),
            "projection": projection,
            "model_length": model_length,
        }.items():
            object.__setattr__(self, name, value)
        if not len(self.mean) == len(self.between) == len(self.within) == projection.dim:
            raise InputError(
                f"mean has {len(self.mean)} components, between {len(self.between)}, within {len(self.within)} and the "
                f"projection {projection.dim}, but all must have the same"
            )
        try:
            np.linalg.cholesky(self.within)
        except np.linalg.LinAlgError:
            raise InputError("within must be positive definite, but a direction of it has no variance") from None

    @cached_property
    def _diagonal(self) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
        return diagonalize(self.between, self.within)

    @property
    def constant(self) -> float:
        """What all ratios of two utterances have in common, wherever the vectors lie."""
        return float(_Terms.of(self._diagonal[1], 1).constant)

    def inflated(self, by: float) -> PLDA:
        """Return the model with larger covariances, whose ratios are less sure: all but `constant` is divided."""
        return self._but(between=self.between * by, within=self.within * by)

    def recentered(self, mean: npt.ArrayLike) -> PLDA:
        """Return the model with another vector to be subtracted first, such as the mean of another domain."""
        return self._but(projection=self.projection.recentered(mean))

    def _but(self, **changed: Any) -> PLDA:
        names = ("mean", "between", "within", "projection", "model_length")
        return PLDA(**{name: getattr(self, name) for name in names} | changed)

    def projected(self, embeddings: Embeddings) -> Embeddings:
        """Return phi of all embeddings (P0), with what is known about them."""
        phi = self.projection.apply_all(embeddings)
        return Embeddings(embeddings.ids, phi, embeddings.speakers, columns=embeddings.columns)

    def of_means(self, means: Embeddings, counts: Sequence[int]) -> Embeddings:
        """Return embeddings that stand for these means of phi, over so many utterances each, on the enrolment side."""
        back = means.vectors
        if self.projection.matrix is not None:
            back = back @ np.linalg.pinv(self.projection.matrix)
        columns = {**means.columns, UTTERANCES: np.array(counts, dtype=np.int64)}
        return Embeddings(means.ids, back + self.projection.center, means.speakers, columns=columns)

    def score(self, enroll: Embeddings, test: Embeddings) -> Bilinear:
        """Return the log-likelihood ratios of every enrolment against every test, without forming them.

        In coordinates z = V'(phi - mean), where within is I and between is diag(psi), the ratio of a mean z over n
        utterances to one of z' is the sum over components of
        log(1 + psi) / 2 + log(1 + n psi) / 2 - log(1 + (n + 1) psi) / 2 + n psi / (1 + (n + 1) psi) z z'
              - n^2 psi^2 / (2 (1 + n psi) (1 + (n + 1) psi)) z^2
              - n psi^2 / (2 (1 + psi) (1 + (n + 1) psi)) z'^2.                               (P3)
        """
        counts = _counts(enroll)
        if (_counts(test) > 1).any():
            raise InputError("a mean over several utterances stands on the side of the tests; PLDA enrols such means")
        kinds, kind = np.unique(counts, return_inverse=True)
        terms = [_Terms.of(self._diagonal[1], int(n)) for n in kinds]
        z, own = self._coordinates(enroll)
        left, left_offset = np.empty_like(z), np.empty(len(z))
        for number, term in enumerate(terms):
            rows = kind == number
            left[rows] = z[rows] * term.enroll
            left_offset[rows] = term.constant - (z[rows] ** 2) @ term.enroll_square
        left, symmetric = left.astype(own, copy=False), test is enroll and kinds.tolist() in ([], [1])
        if not symmetric:
            z, own = self._coordinates(test)
        squares = np.stack([(z**2) @ term.test_square for term in terms], axis=1) if terms else np.zeros((len(z), 1))
        right = left if symmetric else (z * _Terms.of(self._diagonal[1], 1).enroll).astype(own, copy=False)
        if len(kinds) > 1:  # what each number of utterances makes of a test is a component of its own
            left = np.hstack([left, np.eye(len(kinds), dtype=left.dtype)[kind][:, 1:]])
            right = np.hstack([right, (squares[:, :1] - squares[:, 1:]).astype(own)])
        return Bilinear(
            left=left,
            right=right,
            left_offset=left_offset,
            right_offset=-squares[:, 0],
            enroll_ids=enroll.axis,
            test_ids=test.axis,
        )

    def _coordinates(self, embeddings: Embeddings) -> tuple[Float[Array, "n d"], np.dtype[Any]]:
        """Return z of all embeddings, and the type of their scores."""
        projection, (V, psi) = self.projection, self._diagonal
        if embeddings.dim != len(projection.center):
            raise InputError(
                f"PLDA was trained on {len(projection.center)} dimensions, but the embeddings have {embeddings.dim}"
            )
        means = UTTERANCES in embeddings.columns
        if means and projection.length_normalize:  # of vectors that had length 1: their own is what they tell
            projection = replace(projection, length_normalize=False)
        z = np.empty((len(embeddings), len(psi)))
        for part, chunk in float64_chunks(embeddings.vectors):
            z[part] = product(projection.apply(chunk) - self.mean, V)
        if self.model_length:
            lengths = np.einsum("nd,nd->n", z, z / (psi + 1 / _counts(embeddings)[:, None]))
            z *= np.sqrt(len(psi) / np.where(lengths > 0, lengths, len(psi)))[:, None]
        check_vectors(z, embeddings.ids)
        return z, embeddings.vectors.dtype


@dataclass(frozen=True, eq=False)
class _Terms:
    """The numbers of (P3) for means over n utterances; ``enroll`` for one utterance is also that of the tests."""

    constant: float
    enroll: Float[Array, " d"]
    enroll_square: Float[Array, " d"]
    test_square: Float[Array, " d"]

    @classmethod
    def of(cls, psi: Float[Array, " d"], n: int) -> _Terms:
        both = 1 + (n + 1) * psi
        return cls(
            constant=float(np.sum(np.log1p(psi) + np.log1p(n * psi) - np.log(both)) / 2),
            enroll=n * np.sqrt(psi * (1 + 2 * psi)) / both,
            enroll_square=(n * psi) ** 2 / (2 * (1 + n * psi) * both),
            test_square=n * psi**2 / (2 * (1 + psi) * both),
        )


def _counts(embeddings: Embeddings) -> npt.NDArray[np.int64]:
    """Return how many utterances each embedding is the mean of."""
    if UTTERANCES not in embeddings.columns:
        return np.ones(len(embeddings), dtype=np.int64)
    return np.asarray(embeddings.columns[UTTERANCES], dtype=np.int64)


def diagonalize(
    between: Float[Array, "d d"], within: Float[Array, "d d"]
) -> tuple[Float[Array, "d d"], Float[Array, " d"]]:
    """Return V and psi with V' within V = I and V' between V = diag(psi), psi >= 0."""
    try:
        with np.errstate(over="raise", invalid="raise"):
            whitener = np.linalg.inv(np.linalg.cholesky(within))
            psi, turn = np.linalg.eigh(whitener @ between @ whitener.T)
    except (np.linalg.LinAlgError, FloatingPointError):
        raise InputError(
            "the within-speaker covariance is next to nothing in a direction, so that PLDA cannot divide by it; give "
            "more embeddings per speaker, or shrink it"
        ) from None
    return whitener.T @ turn, np.maximum(psi, 0.0)


def _numbers(value: Any, name: str, ndim: int) -> npt.NDArray[np.float64]:
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers in {ndim} dimensions") from None
    if array.ndim != ndim or array.size == 0:
        raise InputError(f"{name} must have {ndim} dimensions and not be empty, but has shape {array.shape}")
    if not (abs(array) <= LARGEST_SQUARE).all():
        raise InputError(f"{name} has a value that is not finite, or above {LARGEST_SQUARE:g}")
    return frozen(array)


def _covariance(value: Any, name: str) -> npt.NDArray[np.float64]:
    array = _numbers(value, name, 2)
    if array.shape[0] != array.shape[1] or not np.allclose(array, array.T, rtol=1e-8, atol=1e-12 * np.abs(array).max()):
        raise InputError(f"{name} must be a symmetric matrix, but is not (shape {array.shape})")
    variances = np.linalg.eigvalsh(array)
    if variances[0] < -1e-9 * max(variances[-1], 0.0) or variances[-1] < 0:
        raise InputError(f"{name} must be a covariance, but has a negative eigenvalue ({variances[0]:.3g})")
    return frozen((array + array.T) / 2)
