"""Scorers: how two embeddings make a score. All of them are bilinear: products of two vectors, and offsets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.data.embeddings import Embeddings
from evenscore.errors import InputError
from evenscore.large import CHUNKS
from evenscore.model.bilinear import BilinearScores as Products
from evenscore.parallel import one_blas_thread, run_blocks
from evenscore.scoring import projection as before
from evenscore.scoring.projection import Array, Projection, VectorsLike

if TYPE_CHECKING:
    from evenscore.scoring.plda import PLDA

__all__ = ["SCORERS", "BilinearScores", "CosineScorer", "DotScorer", "Scorer", "make_scorer"]

Index = npt.NDArray[np.integer]
#: Names of scorers and their options.
SCORERS = dict.fromkeys(("cosine", "dot"), ("center", "lda", "wccn", "shrinkage")) | {
    "plda": ("model", "center", "lda_dim", "length_normalize", "shrinkage", "tol", "max_iter"),
}


class BilinearScores(Products):
    """Scores s_ij = left_i' right_j + left_offset_i + right_offset_j, in place of a matrix of cohort scores.

    Rows and columns can be selected as those of an array; scores are computed where ``np.asarray`` asks for them. So a
    norm of m x M cohort scores needs no m x M matrix. At most one pair of each row is ``missing``.

    Examples
    --------
    >>> scores = BilinearScores(np.eye(2), np.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> np.asarray(scores[0:1]), scores.pairs(np.array([1]), np.array([1]))
    (array([[1., 3.]]), array([4.]))
    """

    @cached_property
    def T(self) -> BilinearScores:  # noqa: N802
        """The same scores with the sides swapped; ``scores.T.T is scores``."""
        missing = None if self.missing is None else self.missing[::-1]
        other = BilinearScores(self.right, self.left, self.right_offset, self.left_offset, missing)
        other.__dict__["T"] = self
        return other

    def pairs(self, rows: Index, cols: Index) -> Array:
        """Return the scores of listed pairs, also of those that are missing."""
        scores = np.empty(len(rows), self.dtype)

        def work(block: slice) -> None:
            i, j = rows[block], cols[block]
            offsets = self.left_offset[i] + self.right_offset[j]
            scores[block] = np.vecdot(self.left[i], self.right[j]) + offsets

        run_blocks(work, len(rows), self.left.shape[1], 1 << 17)
        return scores

    def missing_columns(self) -> Index:
        """Return the column of each row's missing pair, -1 where there is none."""
        own = np.full(len(self.left), -1)
        if self.missing is not None:
            own[self.missing[0]] = self.missing[1]
        return own

    def to_dask(self) -> Any:
        """Return the scores as a dask array, whose chunks are computed from parts of the vectors."""
        import dask.array as da

        tall, wide = (min(most, max(size, 1)) for most, size in zip(CHUNKS, self.shape, strict=True))
        left, right = da.from_array(self.left, (tall, -1)), da.from_array(self.right, (wide, -1))
        a, b = da.from_array(self.left_offset, tall), da.from_array(self.right_offset, wide)
        own, columns = da.from_array(self.missing_columns(), tall), da.arange(self.shape[1], chunks=wide)
        parts = (left, "id", right, "jd", a, "i", b, "j", own, "i", columns, "j")
        meta = np.empty((0, 0), self.dtype)
        return da.blockwise(_chunk, "ij", *parts, dtype=self.dtype, meta=meta, concatenate=True)


def _chunk(left: Array, right: Array, a: Array, b: Array, own: Index, columns: Index) -> Array:
    """Return a chunk of the scores; ``own`` is the column of each row's missing pair."""
    with one_blas_thread():
        scores: Array = left @ right.T
    scores += (a[:, None] + b).astype(scores.dtype)
    scores[own[:, None] == columns] = np.nan
    return scores


def self_pairs(enroll: VectorsLike, test: VectorsLike) -> tuple[Index, Index] | None:
    """Return the positions (rows, columns) of pairs of an id with itself, None if there are none, as in arrays."""
    ids, find = getattr(enroll, "ids", None), getattr(test, "find", None)
    if ids is None or find is None:
        return None
    cols = np.arange(len(ids)) if test is enroll else find(ids)
    rows = np.flatnonzero(cols >= 0)
    return (rows, cols[rows]) if len(rows) else None


class Scorer:
    """Anything that makes a vector and an offset of an embedding; a scorer of one's own is a subclass with `side`.

    Examples
    --------
    >>> CosineScorer()([[3.0, 4.0]], [[0.0, 2.0]])
    array([[0.8]])
    """

    def side(self, vectors: VectorsLike) -> tuple[Array, Array | None]:
        """Return what is multiplied and what is added: n x p vectors, and n offsets or None."""
        raise NotImplementedError

    def bilinear(self, enroll: VectorsLike, test: VectorsLike) -> BilinearScores:
        """Return the scores of all pairs, without forming them; pairs with the same id on both sides are missing."""
        left, left_offset = self.side(enroll)
        right, right_offset = (left, left_offset) if test is enroll else self.side(test)
        return BilinearScores(left, right, left_offset, right_offset, self_pairs(enroll, test))  # type: ignore[arg-type]

    def __call__(self, enroll: VectorsLike, test: VectorsLike) -> Array:
        """Return the scores of every enrolment against every test, m x n."""
        return np.asarray(self.bilinear(enroll, test))


@dataclass(frozen=True, eq=False)
class DotScorer(Scorer):
    """Score by the dot product, after a projection."""

    projection: Projection = field(default_factory=Projection)

    def side(self, vectors: VectorsLike) -> tuple[Array, Array | None]:
        """Return the projected vectors."""
        return self.projection(vectors), None


@dataclass(frozen=True, eq=False)
class CosineScorer(DotScorer):
    """Score by the cosine of the angle between the vectors, after a projection."""

    def side(self, vectors: VectorsLike) -> tuple[Array, Array | None]:
        """Return the projected vectors at length 1."""
        return before.unit_vectors(self.projection(vectors), getattr(vectors, "ids", None)), None


def make_scorer(scorer: str | Scorer = "cosine", training: Embeddings | None = None, **options: Any) -> Scorer:
    """Return a scorer by its name, trained on embeddings where its options need that.

    Parameters
    ----------
    scorer
        ``"cosine"``, ``"dot"``, ``"plda"``, or a scorer, which is returned as it is.
    training
        Embeddings to train on, with speakers for LDA, WCCN and PLDA.
    **options
        Of cosine and dot: ``center="mean"`` (of the training embeddings) or a vector, ``lda=150`` (dimensions) or
        ``wccn=True``, ``shrinkage=0.1``. Of plda: ``model=`` a `PLDA`, ``center=``, or the options of `fit_plda`.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2"], [[1.0, 0.0], [3.0, 0.0]])
    >>> make_scorer("dot", takes, center="mean").projection.center
    array([2., 0.])
    """
    if isinstance(scorer, Scorer):
        return scorer
    if scorer not in SCORERS:
        raise InputError(f"there is no scorer {scorer!r}; there are {', '.join(SCORERS)}")
    odd = [name for name in options if name not in SCORERS[scorer]]
    if odd:
        raise InputError(f"the scorer {scorer!r} has no option {odd[0]!r}; it has {', '.join(SCORERS[scorer])}")
    center, model = options.pop("center", None), options.pop("model", None)
    if options and (training is None or model is not None):
        raise InputError(f"{', '.join(options)}: there is something to train; give training embeddings and no model")
    if isinstance(center, str):
        if center != "mean" or training is None:
            raise InputError(f"center is {center!r}, but must be a vector, or 'mean' with training embeddings")
        center = before.fit_center(training).center
    trained = model or _trained(scorer, training, options)
    if center is None:
        return trained
    return replace(trained, projection=replace(trained.projection, center=np.asarray(center, float)))


def _trained(scorer: str, training: Embeddings | None, options: dict[str, Any]) -> DotScorer | PLDA:
    """Return a scorer with the projection, or the PLDA, that its options ask for."""
    if scorer == "plda":
        from evenscore.scoring.plda import fit_plda

        if training is None:
            raise InputError("the scorer 'plda' needs a trained PLDA (model) or training embeddings; give one of them")
        return fit_plda(training, **options).model
    kind, lda = CosineScorer if scorer == "cosine" else DotScorer, options.get("lda")
    if training is None or not (lda or options.get("wccn")):
        return kind()
    how = {"shrinkage": options.get("shrinkage", 0.0)}
    return kind(before.fit_lda(training, dim=lda, **how) if lda else before.fit_wccn(training, **how))
