"""Scorers: how two embeddings make a score. All of them are bilinear: products of two vectors, and offsets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.data.embeddings import Embeddings
from evenscore.errors import InputError
from evenscore.scoring.bilinear import BilinearScores, self_pairs
from evenscore.scoring.projection import Array, Projection, VectorsLike, fit_center, fit_lda, fit_wccn, unit_vectors

if TYPE_CHECKING:
    from evenscore.scoring.plda import PLDA

__all__ = ["SCORERS", "CosineScorer", "DotScorer", "Scorer", "cosine_scores", "dot_scores", "make_scorer"]

#: Names of scorers and their options.
SCORERS = {
    "cosine": ("center", "lda", "wccn", "shrinkage"),
    "dot": ("center", "lda", "wccn", "shrinkage"),
    "plda": ("model", "center", "lda_dim", "length_normalize", "shrinkage", "tol", "max_iter"),
}


class Scorer:
    """Anything that makes one vector and one offset of an embedding, on either side of a trial.

    A scorer of one's own is a subclass with `side`.
    """

    def side(self, vectors: VectorsLike) -> tuple[Array, Array | None]:
        """Return what is multiplied and what is added: n x p vectors, and n offsets or None."""
        raise NotImplementedError

    def bilinear(self, enroll: VectorsLike, test: VectorsLike) -> BilinearScores:
        """Return the scores of every enrolment against every test, without forming them.

        Pairs with the same id on both sides are missing; arrays have no ids.
        """
        left, left_offset = self.side(enroll)
        right, right_offset = (left, left_offset) if test is enroll else self.side(test)
        return BilinearScores(left, right, left_offset, right_offset, missing_pairs(enroll, test))


def missing_pairs(enroll: VectorsLike, test: VectorsLike) -> Any:
    """Return the positions of pairs of an id with itself, or None; arrays have no ids."""
    both = isinstance(enroll, Embeddings) and isinstance(test, Embeddings)
    return self_pairs(enroll, test) if both else None  # type: ignore[arg-type]


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
        return unit_vectors(self.projection(vectors), getattr(vectors, "ids", None)), None


def cosine_scores(enroll: VectorsLike, test: VectorsLike, center: npt.ArrayLike | None = None) -> Array:
    """Return the cosines of every enrolment and every test, m x n; ``center`` is subtracted from all vectors first.

    Examples
    --------
    >>> cosine_scores([[3.0, 4.0]], [[0.0, 2.0]])
    array([[0.8]])
    """
    return np.asarray(make_scorer("cosine", center=center).bilinear(enroll, test))


def dot_scores(enroll: VectorsLike, test: VectorsLike, center: npt.ArrayLike | None = None) -> Array:
    """Return the dot products of every enrolment and every test, m x n; ``center`` is subtracted first."""
    return np.asarray(make_scorer("dot", center=center).bilinear(enroll, test))


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
        ``wccn=True``, ``shrinkage=0.1``. Of plda: ``model=`` a `PLDA`, with ``center=`` in place of its own; or the
        options of `fit_plda`.

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
        center = fit_center(training).center
    trained = _trained(scorer, training, model, options)
    if center is None:
        return trained
    return replace(trained, projection=replace(trained.projection, center=np.asarray(center, float)))


def _trained(scorer: str, training: Embeddings | None, model: PLDA | None, options: dict[str, Any]) -> DotScorer | PLDA:
    """Return a scorer with the projection, or the PLDA, that its options ask for."""
    if scorer == "plda":
        from evenscore.scoring.plda import fit_plda

        if model is None and training is None:
            raise InputError("the scorer 'plda' needs a trained PLDA (model) or training embeddings; give one of them")
        return fit_plda(training, **options).model if model is None else model  # type: ignore[arg-type]
    kind = CosineScorer if scorer == "cosine" else DotScorer
    shrinkage = options.get("shrinkage", 0.0)
    if options.get("lda") is not None:
        return kind(fit_lda(training, None, options["lda"], shrinkage))  # type: ignore[arg-type]
    return kind(fit_wccn(training, None, shrinkage)) if options.get("wccn") else kind()  # type: ignore[arg-type]
