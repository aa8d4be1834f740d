"""Trials that come one by one, as in a service: a few numbers for each side, which meet later, and no tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.norms.by_trial import one_trial
from evenscore.norms.parts import Parts, Pass
from evenscore.tables import ScoreBlocks, ScoreMatrix
from evenscore.tables.axis import as_axis

__all__ = ["OneByOne", "Row"]

Row = npt.NDArray[np.float64]  #: the cohort scores of one element; a norm by parts makes its few numbers of them

_ONE = slice(0, 1)
_NAMES = as_axis(["enrolment"], "ids"), as_axis(["test"], "ids")


@dataclass(frozen=True, eq=False)
class OneByOne:
    """A norm for trials whose sides come one by one and meet later; their speakers must not be in the cohort.

    It never changes, so that threads may share it.

    Attributes
    ----------
    norm
        What normalizes whole blocks.
    parts
        The same by parts, None if it cannot be taken apart: then all of an element's cohort scores are kept.

    Examples
    --------
    >>> from evenscore import prepare_norm
    >>> nobody = {"enroll": None, "test": None}
    >>> like = one_trial(0.0, {"enroll": [0.0, 0.0], "test": [0.0, 0.0]}, nobody, nobody)
    >>> singles = OneByOne.of(prepare_norm("s"), like)
    >>> ann, take = singles.enroll(np.array([0.0, 2.0])), singles.test(np.array([1.0, 3.0]))
    >>> singles.meet(4.0, ann, take)
    2.5
    """

    norm: Any
    parts: Parts | None

    @classmethod
    def of(cls, norm: Any, blocks: ScoreBlocks) -> OneByOne:
        """Prepare a norm for trials like that of these blocks, which have the same cohort."""
        if hasattr(norm, "with_cohort"):
            blocks = norm.with_cohort(blocks)
        return cls(norm, norm.parts(blocks, Pass(endless=True)) if hasattr(norm, "parts") else None)

    def enroll(self, scores: Row) -> Row:
        """Return what is kept of an enrolment, from its cohort scores."""
        return scores if self.parts is None else self.parts.enroll_part(scores[None], _ONE)[0]

    def test(self, scores: Row) -> Row:
        """Return what is kept of a test, from its cohort scores."""
        return scores if self.parts is None else self.parts.test_part(scores[:, None], _ONE)[0]

    def meet(self, score: float, enroll: Row, test: Row) -> float:
        """Return the normalized score of a trial, from what is kept of its two sides."""
        if hasattr(self.parts, "meet"):
            return float(self.parts.meet(score, enroll, test))  # type: ignore[union-attr]
        if self.parts is not None:
            trial = ScoreMatrix([[score]], *_NAMES)
            return float(self.parts.apply(trial, enroll[None], test[None]).tile.scores[0, 0])
        if hasattr(self.norm, "normalize_one"):
            return float(self.norm.normalize_one(score, enroll, test))
        nobody = dict.fromkeys(("enroll", "test"))
        blocks = one_trial(score, {"enroll": enroll, "test": test}, nobody, nobody)
        return float(self.norm.normalize(blocks).tile.scores[0, 0])
