"""What is done to embeddings before they are scored: centre, LDA, WCCN, length normalization."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.data.embeddings import Embeddings
from evenscore.data.side import Ids, IdsLike, as_strings
from evenscore.errors import InputError
from evenscore.parallel import one_blas_thread, run_blocks

__all__ = ["Projection", "Scatter", "as_vectors", "fit_center", "fit_lda", "fit_wccn", "unit_vectors"]

Array = npt.NDArray[np.floating]
VectorsLike = Embeddings | npt.ArrayLike  #: embeddings, or n x d numbers


def as_vectors(vectors: VectorsLike) -> Array:
    """Return n x d vectors in float32 or float64."""
    array = np.asarray(getattr(vectors, "vectors", vectors))
    if array.dtype.kind not in "fiu" or array.ndim != 2:
        raise InputError(f"vectors must be n x d numbers, but are {array.dtype} of shape {array.shape}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


@dataclass(frozen=True, eq=False)
class Projection:
    """phi = matrix' (x - center), then phi / |phi| if ``length_normalize``."""

    center: Array | None = None  #: d numbers
    matrix: Array | None = None  #: d x p; None: the identity
    length_normalize: bool = False

    def __call__(self, vectors: VectorsLike) -> Array:
        """Return phi of vectors, in their precision; a vector at the centre has no direction and stays there."""
        x = as_vectors(vectors)
        known = self.center if self.matrix is None else self.matrix
        if known is not None and len(known) != x.shape[1]:
            raise InputError(f"the projection is for {len(known)} dimensions, but the embeddings have {x.shape[1]}")
        if self.center is not None:
            x = x - self.center.astype(x.dtype)
        if self.matrix is not None:
            with one_blas_thread():
                x = x @ self.matrix.astype(x.dtype)
        return _scaled(x)[0] if self.length_normalize else x


def _scaled(x: Array) -> tuple[Array, Array]:
    """Return vectors of length 1, but those of zeros, and the lengths that they had."""
    lengths, scaled = np.empty(len(x)), np.empty_like(x)

    def scale(rows: slice) -> None:
        block = x[rows].astype(np.float64)
        lengths[rows] = np.sqrt(np.vecdot(block, block))
        scaled[rows] = block / np.where(lengths[rows] > 0, lengths[rows], 1)[:, None]

    run_blocks(scale, len(x), x.shape[1], 1 << 17)
    return scaled, lengths


def unit_vectors(vectors: VectorsLike, ids: Ids | None = None) -> Array:
    """Return vectors of length 1; a vector of zeros is an error that names it."""
    scaled, lengths = _scaled(as_vectors(vectors))
    if not lengths.all():
        at = int(np.argmin(lengths))
        raise InputError(f"the vector of {at if ids is None else ids[at]!r} has length 0, so no direction; drop it")
    return scaled


@dataclass(frozen=True, eq=False)
class Scatter:
    """What training needs of vectors with speakers: size and mean of each speaker, scatter within speakers."""

    sizes: Array
    means: Array
    within: Array  #: sum of (x - mean of its speaker)(x - mean of its speaker)'

    @classmethod
    def from_vectors(cls, vectors: Array, codes: npt.NDArray[np.intp]) -> Scatter:
        """Return the sums of vectors in float64 whose speakers have the codes 0, 1, 2, ..."""
        sizes, order = np.bincount(codes), np.argsort(codes, kind="stable")
        means = np.add.reduceat(vectors[order], np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]
        rest = vectors - means[codes]
        with one_blas_thread():
            return cls(sizes.astype(float), means, rest.T @ rest)

    def covariance(self, shrinkage: float = 0.0) -> Array:
        """Return the unbiased within-speaker covariance, of which a share is replaced by equal variances."""
        n, n_speakers = self.sizes.sum(), len(self.sizes)
        covariance = shrink(self.within / (n - n_speakers), shrinkage)
        variances = np.linalg.eigvalsh(covariance)
        if not variances[0] > 1e-12 * variances[-1]:
            problem = f"{n:.0f} embeddings of {n_speakers} speakers give no within-speaker covariance of full rank"
            raise InputError(f"{problem}; give more of them, or set shrinkage")
        return covariance


def shrink(covariance: Array, share: float) -> Array:
    """Return a covariance of which a share is replaced by equal variances in all directions."""
    if not 0 <= share < 1:
        raise InputError(f"shrinkage is {share}, but must be from 0 to below 1")
    mean = np.trace(covariance) / len(covariance)
    return (1 - share) * covariance + share * mean * np.eye(len(covariance))


def training_data(vectors: VectorsLike, speakers: IdsLike | None = None) -> tuple[Array, npt.NDArray[np.intp]]:
    """Return training vectors in float64, and the numbers 0, 1, 2, ... of their speakers, of whom one has several."""
    x = as_vectors(vectors).astype(np.float64)
    known = getattr(vectors, "speakers", None) if speakers is None else speakers
    names = as_strings([] if known is None else known, "speakers").tolist()
    if None in names or "" in names or len(names) != len(x):
        raise InputError("every training embedding needs its speaker; give it, or drop the embedding")
    known_names, codes = np.unique(names, return_inverse=True)
    if not 2 <= len(known_names) < len(names):
        found = f"{len(names)} embeddings of {len(known_names)} speakers"
        raise InputError(f"training needs two speakers and several embeddings of some, but there are {found}")
    return x, codes


def fit_center(vectors: VectorsLike) -> Projection:
    """Return the subtraction of the mean of training vectors."""
    return Projection(as_vectors(vectors).mean(axis=0, dtype=np.float64))


def fit_lda(
    vectors: VectorsLike, speakers: IdsLike | None = None, dim: int | None = None, shrinkage: float = 0.0
) -> Projection:
    """Return the ``dim`` directions in which speakers differ most (None: all), with a within-speaker covariance of I.

    Examples
    --------
    >>> vectors = [[0.0, 3.0], [0.0, -3.0], [9.0, 2.0], [8.0, -2.0]]
    >>> np.abs(fit_lda(vectors, ["a", "a", "b", "b"], dim=1, shrinkage=0.1).matrix).round(2).tolist()
    [[1.1], [0.08]]
    """
    x, codes = training_data(vectors, speakers)
    center = x.mean(axis=0)
    return Projection(center, discriminant_map(Scatter.from_vectors(x - center, codes), dim, shrinkage))


def discriminant_map(scatter: Scatter, dim: int | None, shrinkage: float) -> Array:
    """Return the matrix of LDA for centred vectors."""
    most = min(scatter.within.shape[0], len(scatter.sizes) - 1)
    dim = most if dim is None else dim
    if not 1 <= dim <= most:
        raise InputError(f"the LDA dimension is {dim}, but must be from 1 to {most}: speakers and dimensions allow it")
    whitener = np.linalg.inv(np.linalg.cholesky(scatter.covariance(shrinkage)))
    spread = (scatter.means * np.sqrt(scatter.sizes)[:, None]) @ whitener.T
    directions = whitener.T @ np.linalg.eigh(spread.T @ spread)[1]
    return np.ascontiguousarray(directions[:, ::-1][:, :dim])


def fit_wccn(vectors: VectorsLike, speakers: IdsLike | None = None, shrinkage: float = 0.0) -> Projection:
    """Return within-class covariance normalization: the mean is subtracted, the within-speaker covariance becomes I."""
    x, codes = training_data(vectors, speakers)
    variances, directions = np.linalg.eigh(Scatter.from_vectors(x, codes).covariance(shrinkage))
    return Projection(x.mean(axis=0), (directions / np.sqrt(variances)) @ directions.T)
