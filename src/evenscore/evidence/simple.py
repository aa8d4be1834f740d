"""The simple methods that a head is measured by: one classical norm, or none, and a logistic calibration after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.evidence.choice import Choice, Judge
from evenscore.evidence.features import SIMPLE, restricted
from evenscore.evidence.head import BEND, EvidenceHead
from evenscore.norms.parts import Part, Parts
from evenscore.norms.registry import prepare_as_given
from evenscore.tables import LabelledBlocks, ScoreBlocks

__all__ = ["CalibratedParts", "calibration_alone", "simple_choice", "simple_columns", "simple_features", "simple_parts"]

Array = npt.NDArray[np.float64]
_NEVER = 1e9  # penalty on a bend that there shall not be
_FEW_SPEAKERS = 12  # below it, what is within the noise counts for the simple method, else for the head
_CLEAR = 2.0  # standard errors by which a head must be worse to give way
_CLEAR_OF_FEW = 4.0  # by which it must be better with few speakers, who hardly tell


def simple_features(norm: str, blocks: ScoreBlocks) -> dict[str, Array]:
    """Return the raw scores, and those that a norm makes of them."""
    raw = blocks.trials.tile.scores
    found = raw if norm == "raw" else prepare_as_given(norm).normalize(blocks).tile.scores
    return {name: np.asarray(scores, dtype=np.float64) for name, scores in (("raw", raw), (norm, found))}


def simple_columns(training: Sequence[LabelledBlocks], pattern: str, n_speakers: int) -> dict[str, Array]:
    """Return the training trials by every simple method of a pattern; one that cannot be used on them is left out.

    Few speakers are too poor a cohort for any norm.
    """
    found: dict[str, Array] = {}
    for norm in SIMPLE[pattern] if n_speakers >= _FEW_SPEAKERS else SIMPLE[pattern][:1]:
        try:
            parts = [simple_features(norm, restricted(part.blocks, pattern))[norm] for part in training]
        except InputError:  # a cohort of nobody, or of one score that does not vary
            continue
        found[norm] = np.concatenate([part.reshape(-1) for part in parts])
    return found


def simple_choice(
    judge: Judge, choice: Choice, norms: Sequence[str], n_speakers: int
) -> tuple[Choice | None, dict[str, float]]:
    """Return the simple method that is to be preferred to a head, None if the head is better; and all their losses.

    Both are judged on speakers that they were not fitted to. Few speakers do not tell which is better, and then it is
    the simple method, which has two parameters; with more of them it is the head, whose average of views is good where
    any of them is (docs/evidence.md tells how that was found).
    """
    options = {
        norm: replace(choice, views=(norm,), extras=(), penalties=replace(choice.penalties, bend=_NEVER))
        for norm in norms
    }
    losses = {norm: float(judge.losses(option).mean()) for norm, option in options.items()}
    if not losses:
        return None, {}
    best = options[min(losses, key=lambda norm: losses[norm])]
    gain, error = judge.gain(choice, best)
    least = _CLEAR_OF_FEW * error if n_speakers < _FEW_SPEAKERS else -_CLEAR * error
    return None if gain > least else best, losses


def calibration_alone(head: EvidenceHead) -> EvidenceHead:
    """Return the head of one view as nothing but the calibration of that view."""
    [view] = head.views
    return replace(head, weight={view: 1.0, BEND: 0.0}, offset=0.0)


@dataclass(frozen=True, eq=False)
class CalibratedParts:
    """A classical norm by parts, and the calibration after it."""

    parts: Parts
    norm: str
    head: EvidenceHead

    @property
    def sides_alike(self) -> bool:
        """Whether a row of cohort scores says the same about an enrolment and about a test."""
        return self.parts.sides_alike

    @property
    def width(self) -> int:
        """How many numbers an element has."""
        return self.parts.width

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments."""
        return self.parts.enroll_part(scores, rows)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        return self.parts.test_part(scores, columns)

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials."""
        normalized = self.parts.apply(trials, enroll, test)
        llrs = self.head.llr({self.norm: np.asarray(normalized.scores, dtype=np.float64)})
        return normalized.with_scores(llrs.astype(normalized.scores.dtype))

    def meet(self, score: float, enroll: Part, test: Part) -> float:
        """Return the log-likelihood ratio of a single trial, from the numbers of its two sides."""
        normalized = self.parts.meet(score, enroll, test)  # type: ignore[attr-defined]  # it is a classical norm
        return float(self.head.llr({self.norm: np.array([normalized])})[0])


def simple_parts(norm: str, head: EvidenceHead, blocks: ScoreBlocks, how: Any) -> CalibratedParts | None:
    """Return a norm with its calibration by parts; None where the norm has none for these blocks."""
    parts = prepare_as_given(norm).parts(blocks, how)
    return None if parts is None else CalibratedParts(parts, norm, head)
