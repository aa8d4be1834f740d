"""The two sides of bilinear scores, of one vector at a time: what a service needs of a scorer and of its cohort."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.one_by_one import OneByOne, Row
from evenscore.norms.score_model import ScoreModelParts
from evenscore.sources import Bilinear, Cosine, DotProduct, Scorer
from evenscore.sources.scorers import scored
from evenscore.tables import Embeddings

__all__ = ["Half", "half_of", "numbers_of"]

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Half:
    """One side of a bilinear score (B1): a vector, and what it adds to every score."""

    vector: Array
    offset: float = 0.0


def half_of(scorer: Scorer, side: str) -> Callable[[Array], Half]:
    """Return what makes one side of a scorer's scores of a vector, in microseconds for cosines and dot products."""
    if type(scorer) not in (Cosine, DotProduct):
        return lambda vector: _half_of_any(scorer, side, vector)
    mean, cosine = scorer.mean, type(scorer) is Cosine  # type: ignore[attr-defined]

    def half(vector: Array) -> Half:
        if mean is not None:
            vector = vector - mean.astype(vector.dtype)
        if not cosine:
            return Half(vector)
        exact = vector.astype(np.float64)
        length = float(np.sqrt(exact @ exact))
        if not 0 < length < np.inf:
            raise InputError(f"the vector has length {length:g}, so it has no direction; drop it")
        return Half((exact / length).astype(vector.dtype))

    return half


def _half_of_any(scorer: Scorer, side: str, vector: Array) -> Half:
    one = Embeddings([side], vector[None])
    scores = products(scorer, one, one)
    if side == "enroll":
        return Half(scores.left[0], float(scores.left_offset[0]))
    return Half(scores.right[0], float(scores.right_offset[0]))


def products(scorer: Scorer, enroll: Embeddings, test: Embeddings) -> Bilinear:
    """Return scores that are products of two vectors; other scorers are refused."""
    scores = scored(scorer, enroll, test)
    if not isinstance(scores, Bilinear):
        raise InputError(
            f"{type(scorer).__name__} has no scores that are products of two vectors; give Cosine, DotProduct, PLDA or "
            "Transformed"
        )
    return scores


def numbers_of(norm: OneByOne, cohort: Bilinear, side: str) -> Callable[[Half], Row]:
    """Return what finds the numbers that a norm keeps of one side, from its vector.

    The score model folds its cohort into one vector for each class, (B3): two products, whatever the cohort's size.
    """
    enroll = side == "enroll"
    vectors, offsets = (cohort.right, cohort.right_offset) if enroll else (cohort.left, cohort.left_offset)
    if isinstance(norm.parts, ScoreModelParts):
        weights = norm.parts.weights
        each = weights.enroll if enroll else weights.test
        folded, total = each @ vectors.astype(np.float64), each.sum(axis=1)
        constant = each @ offsets - weights.center * total + (weights.offset if enroll else 0.0)
        return lambda half: folded @ half.vector + total * half.offset + constant
    vectors, find = np.ascontiguousarray(vectors), norm.enroll if enroll else norm.test
    plain = not offsets.any()

    def numbers(half: Half) -> Row:
        scores = (vectors @ half.vector).astype(np.float64)
        return find(scores if plain and not half.offset else scores + (offsets + half.offset))

    return numbers
