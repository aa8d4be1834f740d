"""What happens to an embedding before it is scored: centring, a linear map, length normalization."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.plda.shrinkage import shrunk
from evenscore.sources.chunks import float64_chunks, gram
from evenscore.tables import Embeddings
from evenscore.tables.arrays import frozen, usable
from evenscore.threads import product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "Projection",
    "SpeakerScatter",
    "check_full_rank",
    "discriminant_map",
    "fit_projection",
    "scatter_by_speaker",
    "speaker_codes",
]

Array = np.ndarray
_NO_VARIANCE = 1e-12  # a direction with less than this share of the largest variance is constant


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection:
    """What is done to an embedding before PLDA, or before a cosine.

    phi = matrix' (embedding - center), then, if `length_normalize`, phi / |phi|              (P0)

    A matrix of None is the identity.
    """

    center: Float[Array, " d"]
    matrix: Float[Array, "d p"] | None = None
    length_normalize: bool = True

    @property
    def dim(self) -> int:
        """Number of components of phi."""
        return len(self.center) if self.matrix is None else int(self.matrix.shape[1])

    def recentered(self, mean: npt.ArrayLike) -> Projection:
        """Return the same with another centre."""
        center = np.array(mean, dtype=np.float64)
        if center.shape != self.center.shape or not usable(center).all():
            raise InputError(f"the centre must be {len(self.center)} finite numbers, but has shape {center.shape}")
        return replace(self, center=frozen(center))

    def apply(self, vectors: npt.NDArray[Any]) -> Float[Array, "n p"]:
        """Return phi of a few vectors; a vector at the centre, which has no direction, stays there."""
        phi = vectors - self.center
        if self.matrix is not None:
            phi = product(phi, self.matrix)
        if self.length_normalize:
            lengths = np.sqrt(np.einsum("np,np->n", phi, phi))
            phi = phi / np.where(lengths > 0, lengths, 1.0)[:, None]
        return phi

    def apply_all(self, embeddings: Embeddings) -> Float[Array, "n p"]:
        """Return phi of all embeddings in float64."""
        if embeddings.dim != len(self.center):
            raise InputError(
                f"the model was trained on {len(self.center)} dimensions, but the embeddings have {embeddings.dim}"
            )
        phi = np.empty((len(embeddings), self.dim))
        for part, chunk in float64_chunks(embeddings.vectors):
            phi[part] = self.apply(chunk)
        return phi


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerScatter:
    """What training needs of labelled vectors: sizes and means of the speakers, scatter within them."""

    sizes: Float[Array, " g"]
    means: Float[Array, "g d"]
    within: Float[Array, "d d"]

    @property
    def count(self) -> float:
        """Number of vectors."""
        return float(self.sizes.sum())

    @property
    def n_speakers(self) -> int:
        """Number of speakers."""
        return len(self.sizes)


def scatter_by_speaker(vectors: Float[Array, "n d"], codes: npt.NDArray[np.intp]) -> SpeakerScatter:
    """Return the statistics of vectors whose speakers have the numbers 0, 1, 2, ..."""
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes)
    first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    means = np.add.reduceat(vectors[order], first, axis=0) / sizes[:, None]
    inner = vectors - means[codes]
    return SpeakerScatter(sizes=sizes.astype(float), means=means, within=gram(inner))


def speaker_codes(embeddings: Embeddings, what: str = "PLDA") -> npt.NDArray[np.intp]:
    """Return the numbers of the speakers, in order of appearance; ``what`` is to be trained on them."""
    if embeddings.speakers is None:
        raise InputError("the embeddings have no speakers; give them with Embeddings.with_speakers")
    names: dict[str | None, int] = {}
    codes = np.fromiter((names.setdefault(name, len(names)) for name in embeddings.speakers), np.intp, len(embeddings))
    if None in names:
        name = embeddings.ids[int(np.argmax(codes == names[None]))]
        raise InputError(f"embedding {name!r} has no speaker; give its speaker or drop it")
    if len(names) < 2:
        raise InputError(f"{what} needs embeddings of at least 2 speakers, but there are {len(names)}")
    if len(names) == len(embeddings):
        raise InputError(f"every speaker has one embedding only, but {what} needs several of some speakers")
    return codes


def fit_projection(
    embeddings: Embeddings,
    codes: npt.NDArray[np.intp],
    *,
    center: bool,
    lda_dim: int | None,
    whiten: bool,
    length_normalize: bool,
    shrinkage: float = 0.0,
) -> Projection:
    """Learn the centre, and the linear map if one is asked for or if some directions are constant."""
    vectors = embeddings.vectors.astype(np.float64)
    middle = vectors.mean(axis=0)
    varying = _varying_directions(vectors - middle, may_be_few=shrinkage > 0)
    matrix = varying
    if lda_dim is not None or whiten:
        basis = np.eye(embeddings.dim) if varying is None else varying
        scatter = scatter_by_speaker((vectors - middle) @ basis, codes)
        matrix = basis @ discriminant_map(scatter, lda_dim, shrinkage)
    return Projection(
        center=frozen(middle if center else np.zeros(embeddings.dim)),
        matrix=None if matrix is None else frozen(matrix),
        length_normalize=length_normalize,
    )


def _varying_directions(centered: Float[Array, "n d"], *, may_be_few: bool) -> Float[Array, "d p"] | None:
    """Return an orthonormal basis of the directions that vary at all, None if all do.

    Where there ``may_be_few`` vectors, fewer than dimensions, those do not tell which directions never vary.
    """
    if may_be_few and len(centered) <= centered.shape[1] and centered.any():
        return None
    variances, directions = np.linalg.eigh(gram(centered))
    kept = variances > _NO_VARIANCE * max(variances[-1], 0.0)
    if kept.all():
        return None
    if not kept.any():
        raise InputError("all embeddings are equal, so there is nothing to learn; check the embeddings")
    return directions[:, kept]


def discriminant_map(scatter: SpeakerScatter, lda_dim: int | None, shrinkage: float = 0.0) -> Float[Array, "p q"]:
    """Return the directions in which speakers differ most (LDA), scaled to a within-speaker covariance of I."""
    size = scatter.within.shape[0]
    most = size if lda_dim is None else min(size, scatter.n_speakers - 1)
    if lda_dim is not None and not 1 <= lda_dim <= most:
        raise InputError(
            f"lda_dim is {lda_dim}, but {scatter.n_speakers} speakers in {size} varying dimensions allow 1 to {most}"
        )
    spread = scatter.means * np.sqrt(scatter.sizes)[:, None]
    within = shrunk(scatter.within / (scatter.count - scatter.n_speakers), shrinkage)
    check_full_rank(within, scatter)
    whitener = np.linalg.inv(np.linalg.cholesky(within))
    directions = whitener.T @ np.linalg.eigh(whitener @ (spread.T @ spread) @ whitener.T)[1]
    return np.ascontiguousarray(directions[:, ::-1][:, : lda_dim or size])


def check_full_rank(within: Float[Array, "d d"], scatter: SpeakerScatter) -> None:
    """Refuse a within-speaker covariance that cannot be inverted."""
    variances = np.linalg.eigvalsh(within)
    if not variances[0] > _NO_VARIANCE * variances[-1]:
        spare = int(scatter.count) - scatter.n_speakers
        raise InputError(
            f"the within-speaker covariance of {len(within)} dimensions is singular: {int(scatter.count)} embeddings "
            f"of {scatter.n_speakers} speakers span {min(spare, len(within))} at most; give more embeddings per "
            "speaker, or shrink it"
        )
