"""Scorers: from embeddings of enrolments and tests to bilinear scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.computed import ComputedScores
from evenscore.tables import Embeddings
from evenscore.tables.arrays import LARGEST_COMPONENT, as_scores, frozen
from evenscore.threads import in_parallel

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Cosine", "DotProduct", "Scorer", "length_normalized", "scored"]

Array = np.ndarray


@runtime_checkable
class Scorer(Protocol):
    """Anything that scores embeddings of enrolments against embeddings of tests."""

    def score(self, enroll: Embeddings, test: Embeddings) -> ComputedScores:
        """Return the scores of every enrolment against every test, without forming them."""


@dataclass(frozen=True, eq=False, init=False)
class DotProduct:
    """Score by the dot product of the two vectors.

    Parameters
    ----------
    mean
        Vector that is subtracted from every embedding first, for instance the mean of the cohort.

    Examples
    --------
    >>> enroll, test = Embeddings(["e"], [[1.0, 2.0]]), Embeddings(["t1", "t2"], [[3.0, 4.0], [0.0, 1.0]])
    >>> DotProduct().score(enroll, test).in_memory().scores
    array([[11.,  2.]])
    """

    mean: Float[Array, " d"] | None

    def __init__(self, mean: npt.ArrayLike | None = None) -> None:
        object.__setattr__(self, "mean", _as_mean(mean))

    def score(self, enroll: Embeddings, test: Embeddings) -> Bilinear:
        """Return the scores of every enrolment against every test, without forming them."""
        left = _centered(enroll, self.mean)
        right = left if test is enroll else _centered(test, self.mean)
        return Bilinear(left=left, right=right, enroll_ids=enroll.axis, test_ids=test.axis)


@dataclass(frozen=True, eq=False, init=False)
class Cosine:
    """Score by the cosine of the angle between the two vectors.

    Parameters
    ----------
    mean
        Vector that is subtracted from every embedding first, for instance the mean of the cohort.

    Examples
    --------
    >>> enroll, test = Embeddings(["e"], [[3.0, 4.0]]), Embeddings(["t1", "t2"], [[3.0, 4.0], [0.0, 2.0]])
    >>> Cosine().score(enroll, test).in_memory().scores
    array([[1. , 0.8]])
    """

    mean: Float[Array, " d"] | None

    def __init__(self, mean: npt.ArrayLike | None = None) -> None:
        object.__setattr__(self, "mean", _as_mean(mean))

    def score(self, enroll: Embeddings, test: Embeddings) -> Bilinear:
        """Return the scores of every enrolment against every test, without forming them."""
        left = length_normalized(_centered(enroll, self.mean), enroll)
        right = left if test is enroll else length_normalized(_centered(test, self.mean), test)
        return Bilinear(left=left, right=right, enroll_ids=enroll.axis, test_ids=test.axis)


def scored(scorer: Scorer, enroll: Embeddings, test: Embeddings) -> ComputedScores:
    """Return the scores of every enrolment against every test, with all that the embeddings know about them."""
    return scorer.score(enroll, test).with_axes(enroll.axis, test.axis)


def length_normalized(vectors: npt.NDArray[Any], embeddings: Embeddings) -> npt.NDArray[Any]:
    """Return the vectors at length 1; a vector of zeros is an error that names its embedding."""
    out, lengths = np.empty(vectors.shape, dtype=vectors.dtype), np.empty(len(vectors))
    if few(vectors.size):
        exact = vectors.astype(np.float64)
        lengths = np.sqrt(np.einsum("nd,nd->n", exact, exact))
        out[...] = exact * np.where(lengths > 0, 1 / np.where(lengths > 0, lengths, 1.0), 0.0)[:, None]
    else:
        from evenscore.sources.kernels import normalize_into

        block = np.ascontiguousarray(vectors)
        in_parallel(lambda start, stop: normalize_into(block, start, stop, lengths, out), *vectors.shape)
    if not lengths.all():
        at = int(np.argmin(lengths))
        raise InputError(f"the vector of {embeddings.ids[at]!r} has length 0, so it has no direction; drop it")
    return out


def _as_mean(mean: npt.ArrayLike | None) -> npt.NDArray[Any] | None:
    if mean is None:
        return None
    vector = as_scores(mean, "mean", ndim=1)
    if not (abs(vector) <= LARGEST_COMPONENT).all():
        raise InputError(f"mean has a value that is not finite, or above {LARGEST_COMPONENT:g}")
    return frozen(vector)


def _centered(embeddings: Embeddings, mean: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    if mean is None:
        return embeddings.vectors
    if len(mean) != embeddings.dim:
        raise InputError(f"mean has {len(mean)} components, but the embeddings have {embeddings.dim}")
    return embeddings.vectors - mean.astype(embeddings.vectors.dtype)
