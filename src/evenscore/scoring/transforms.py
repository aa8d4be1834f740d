"""What is learned about embeddings before they are compared by cosine: centring, whitening, LDA, WCCN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.plda.projection import (
    Projection,
    check_full_rank,
    discriminant_map,
    scatter_by_speaker,
    speaker_codes,
)
from evenscore.plda.shrinkage import choose_shrinkage, share_up_to, shrunk
from evenscore.sources import Cosine, Scorer
from evenscore.sources.computed import ComputedScores
from evenscore.tables import Embeddings
from evenscore.tables.arrays import check_vectors, frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["STEPS", "Transform", "TransformFit", "Transformed", "fit_transform"]

Array = np.ndarray
STEPS = ("center", "whiten", "lda", "wccn", "length")  #: what can be done, in any order


@dataclass(frozen=True, eq=False)
class Transform:
    """Steps that embeddings go through, one after the other; `fit_transform` learns them.

    Examples
    --------
    >>> less = Transform((Projection(center=np.array([1.0, 1.0]), length_normalize=False),))
    >>> less.apply(Embeddings(["u"], [[3.0, 1.0]])).vectors
    array([[2., 0.]])
    """

    steps: tuple[Projection, ...]

    def apply(self, embeddings: Embeddings) -> Embeddings:
        """Return the transformed embeddings, with what is known about them."""
        for step in self.steps:
            vectors = step.apply_all(embeddings)
            check_vectors(vectors, embeddings.ids)  # before they may become float32
            vectors = vectors.astype(embeddings.vectors.dtype, copy=False)
            embeddings = Embeddings(embeddings.ids, vectors, embeddings.speakers, columns=embeddings.columns)
        return embeddings

    def recentered(self, mean: npt.ArrayLike) -> Transform:
        """Return the same steps, with another vector to be subtracted first, such as the mean of another domain."""
        return Transform((self.steps[0].recentered(mean), *self.steps[1:]))


@dataclass(frozen=True, eq=False)
class Transformed:
    """A scorer of transformed embeddings.

    Parameters
    ----------
    transform
        What is done to both sides first.
    scorer
        What scores them then, by default their cosine.

    Examples
    --------
    >>> takes = Embeddings(range(4), [[1.0, 0.0], [1.5, 0.1], [0.0, 1.0], [0.2, 2.0]], ["a", "a", "b", "b"])
    >>> found = fit_transform(takes, ["center", "wccn"], shrinkage=0.5)
    >>> Transformed(found.transform).score(takes.take([0]), takes.take([1, 2])).in_memory().scores.round(2)
    array([[ 0.91, -0.78]])
    """

    transform: Transform
    scorer: Scorer = field(default_factory=Cosine)

    def score(self, enroll: Embeddings, test: Embeddings) -> ComputedScores:
        """Return the scores of every enrolment against every test, without forming them."""
        left = self.transform.apply(enroll)
        return self.scorer.score(left, left if test is enroll else self.transform.apply(test))


@dataclass(frozen=True, kw_only=True, eq=False)
class TransformFit:
    """A learned transform, and how far covariances were trusted."""

    transform: Transform
    shrinkage: float  #: share of each covariance that equal variances replaced

    def __repr__(self) -> str:
        sizes = [len(self.transform.steps[0].center), *(step.dim for step in self.transform.steps)]
        return f"TransformFit({' -> '.join(map(str, sizes))} dimensions, shrinkage {self.shrinkage:g})"


def fit_transform(
    embeddings: Embeddings,
    steps: Sequence[str] = ("center", "wccn"),
    *,
    shrinkage: float | Literal["auto"] = "auto",
    progress: Callable[[str, float], None] | None = None,
) -> TransformFit:
    """Learn what is done to embeddings before they are compared by cosine.

    Parameters
    ----------
    embeddings
        Training embeddings; every one needs its speaker, and some speakers more than one embedding.
    steps
        In their order: ``"center"`` (subtract the mean), ``"whiten"`` (total covariance I), ``"lda"`` or ``"lda:100"``
        (keep so many directions in which speakers differ most, by default as many as there can be; scaled to a
        within-speaker covariance of I, so that it includes WCCN), ``"wccn"`` (within-speaker covariance I) and
        ``"length"`` (length 1). Each is learned on what those before it leave.
    shrinkage
        Share of the covariances, from 0 to 1, that equal variances in all directions replace; ``"auto"`` takes the
        share that tells left-out training speakers apart best.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(30), 4)
    >>> takes = Embeddings(range(120), rng.normal(size=(30, 6))[speakers] + rng.normal(size=(120, 6)), speakers)
    >>> fit_transform(takes, ["center", "lda:4", "length"])
    TransformFit(6 -> 6 -> 4 -> 4 dimensions, shrinkage 0.97)
    """
    parsed = [_parsed(step) for step in steps]
    if not parsed:
        raise InputError(f"there are no steps; give some of {', '.join(STEPS)}")
    speaker_codes(embeddings, "a transform")
    if shrinkage == "auto":
        how: dict[str, Any] = {"progress": progress}
        share = choose_shrinkage(embeddings, lambda part, share: _scorer(part, parsed, share), **how).shrinkage
    else:
        share = share_up_to(shrinkage, 1.0)
    return TransformFit(transform=_learned(embeddings, parsed, share), shrinkage=share)


def _parsed(step: str) -> tuple[str, int | None]:
    name, mark, size = step.partition(":")
    if name not in STEPS or (mark and (name != "lda" or not size.isdecimal() or int(size) < 1)):
        raise InputError(f"there is no step {step!r}; there are {', '.join(STEPS)}, and lda:100 for 100 dimensions")
    return name, int(size) if mark else None


def _scorer(embeddings: Embeddings, steps: Sequence[tuple[str, int | None]], share: float) -> Scorer | None:
    """Return the scorer of a candidate; None if the data are too few for so little shrinkage."""
    most = len(set(embeddings.speakers)) - 1  # type: ignore[arg-type]
    try:
        fitting = [(name, size if size is None else min(size, most)) for name, size in steps]
        return Transformed(_learned(embeddings, fitting, share))
    except InputError:
        return None


def _learned(embeddings: Embeddings, steps: Sequence[tuple[str, int | None]], share: float) -> Transform:
    codes, vectors, found = speaker_codes(embeddings, "a transform"), embeddings.vectors.astype(np.float64), []
    for name, size in steps:
        nothing = np.zeros(vectors.shape[1])
        step = Projection(
            center=frozen(vectors.mean(axis=0) if name in ("center", "whiten") else nothing),
            matrix=_matrix(name, size, vectors, codes, share),
            length_normalize=name == "length",
        )
        vectors = step.apply(vectors)
        found.append(step)
    return Transform(tuple(found))


def _matrix(
    name: str, size: int | None, vectors: Float[Array, "n d"], codes: npt.NDArray[np.intp], share: float
) -> Float[Array, "d p"] | None:
    if name in ("center", "length"):
        return None
    if name == "whiten":
        covariance = shrunk(np.atleast_2d(np.cov(vectors.T)), share)
        return frozen(_inverse_root(covariance))
    scatter = scatter_by_speaker(vectors, codes)
    if name == "lda":
        most = min(vectors.shape[1], scatter.n_speakers - 1)
        middle = scatter_by_speaker(vectors - vectors.mean(axis=0), codes)
        return frozen(discriminant_map(middle, most if size is None else size, share))
    within = shrunk(scatter.within / (scatter.count - scatter.n_speakers), share)
    if not share:
        check_full_rank(within, scatter)
    return frozen(_inverse_root(within))


def _inverse_root(covariance: Float[Array, "d d"]) -> Float[Array, "d d"]:
    variances, directions = np.linalg.eigh(covariance)
    if not variances[0] > 1e-12 * variances[-1]:
        raise InputError(
            f"{len(covariance)} dimensions cannot be whitened, as some of them do not vary; shrink, or use LDA"
        )
    return (directions / np.sqrt(variances)) @ directions.T
