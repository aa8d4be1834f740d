"""The features of trials: what their four blocks say about them, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.evidence.moments import ScalePrior, shrunk_log_scale, trial_moments
from evenscore.evidence.own_pairs import Ridges, pair_features
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.norms.statistics import Statistics
from evenscore.tables import ScoreBlocks

__all__ = [
    "EXTRAS",
    "PATTERNS",
    "SIDES",
    "VIEWS",
    "Scales",
    "evidence_features",
    "pattern_of",
    "predicted_shifts",
    "restricted",
    "with_cohort_speakers",
]

#: What a head may know, by the blocks that there are.
PATTERNS = ("full", "pair", "enroll", "test", "none")
VIEWS = {
    "full": ("s_norm", "score_model", "as_norm"),
    "pair": ("s_norm", "as_norm", "raw"),
    "enroll": ("s_norm", "as_norm", "raw"),
    "test": ("s_norm", "as_norm", "raw"),
    "none": ("raw",),
}
EXTRAS = {
    "full": ("ls_e", "ls_t", "b", "w"),
    "pair": ("ls_e", "ls_t"),
    "enroll": ("ls_e",),
    "test": ("ls_t",),
    "none": (),
}
SIDES = {"full": ("enroll", "test"), "pair": ("enroll", "test"), "enroll": ("enroll",), "test": ("test",), "none": ()}

TOP = 0.2  #: the share of the cohort that ``as_norm`` takes

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Scales:
    """What is known of the spread of cohort scores: of all of them and of the highest ones, for both sides."""

    enroll: ScalePrior
    test: ScalePrior
    enroll_top: ScalePrior
    test_top: ScalePrior

    def of(self, side: str, top: bool) -> ScalePrior:
        """Return the one of a side."""
        found: ScalePrior = getattr(self, f"{side}_top" if top else side)
        return found

    @classmethod
    def estimated(cls, parts: Sequence[ScoreBlocks]) -> Scales:
        """Estimate all four from the blocks that have the side."""
        found = {}
        for side in ("enroll", "test"):
            have = [blocks for blocks in parts if getattr(blocks, side) is not None]
            found[side] = ScalePrior.of([trial_moments(blocks, side) for blocks in have])
            found[f"{side}_top"] = ScalePrior.of([trial_moments(blocks, side, TOP) for blocks in have])
        return cls(**found)


def pattern_of(blocks: ScoreBlocks) -> str:
    """Return which of the `PATTERNS` the blocks follow.

    ``full`` needs both sides, the cohort against itself, and the speakers of the cohort's tests.
    """
    enroll, test = blocks.enroll is not None, blocks.test is not None
    if enroll and test:
        return "full" if blocks.cohort is not None and blocks.cohort_test_speakers is not None else "pair"
    return "enroll" if enroll else "test" if test else "none"


def with_cohort_speakers(blocks: ScoreBlocks) -> ScoreBlocks:
    """Return the blocks with the speakers of the cohort; if nobody is known by name, those that its targets connect."""
    known = (
        blocks.enroll_speakers,
        blocks.test_speakers,
        blocks.cohort_enroll_speakers,
        blocks.cohort_test_speakers,
    )
    cohort, labels = blocks.cohort, blocks.cohort_labels
    if any(names is not None for names in known) or cohort is None or labels is None or not labels.n_target:
        return blocks
    speakers = speakers_by_targets([cohort.to_trials(labels)])
    sides = [[speakers.get(name, name) for name in ids.tolist()] for ids in (cohort.enroll_ids, cohort.test_ids)]
    return blocks.replace(cohort=cohort.with_speakers(*sides))


def restricted(blocks: ScoreBlocks, pattern: str) -> ScoreBlocks:
    """Return the blocks that a pattern uses."""
    keep = SIDES[pattern]
    return blocks.replace(
        enroll=blocks.enroll if "enroll" in keep else None,
        test=blocks.test if "test" in keep else None,
        cohort=blocks.cohort if pattern == "full" else None,
    )


def evidence_features(
    blocks: ScoreBlocks, pattern: str, model: ScoreModel, scales: Scales, ridges: Ridges | None
) -> dict[str, Array]:
    """Return the features of all trials, in the shape of their scores; without ridges those of pairs are left out.

    ==================  ========================================================================================
    ``raw``             the score
    ``s_norm``          the mean over the sides of (score - mean) / shrunk scale
    ``as_norm``         the same with mean and scale of the highest fifth of the cohort scores
    ``score_model``     the score model's log-likelihood ratio, made of its predicted shifts
    ``ls_e``, ``ls_t``  shrunk log-scale of each side's cohort scores, less the usual one
    ``b``, ``w``        predicted impostor score, and the part of the score where one speaker varies
    ==================  ========================================================================================
    """
    trials = blocks.trials
    assert trials.scores is not None  # noqa: S101
    score = np.asarray(trials.scores, dtype=np.float64)
    found: dict[str, Array] = {"raw": score}
    sides = SIDES[pattern]
    if sides:
        for name, top in (("s_norm", None), ("as_norm", TOP)):
            moments = {side: trial_moments(blocks, side, top) for side in sides}
            logs = {side: shrunk_log_scale(moments[side], scales.of(side, top is not None)) for side in sides}
            found[name] = _normalized(score, moments, logs, scales, top is not None)
            if top is None:
                for side in sides:
                    found[f"ls_{side[0]}"] = np.broadcast_to(logs[side], score.shape)
    if pattern == "full":
        llr = ScoreModelNormalizer(model, blocks).normalize(blocks).scores
        found["score_model"] = np.asarray(llr, dtype=np.float64)
        if ridges is not None:
            found |= pair_features(blocks, ridges)
    return found


def _normalized(
    score: Array, moments: dict[str, Statistics], logs: dict[str, Array], scales: Scales, top: bool
) -> Array:
    """Return the mean over the sides of (score - mean) / scale; a side without cohort scores has the usual mean."""
    parts = []
    for side, found in moments.items():
        prior = scales.of(side, top)
        mean = np.where(found.count > 0, found.mean, prior.location)
        parts.append((score - mean) * np.exp(-logs[side] - prior.center))
    return np.asarray(sum(parts) / len(parts))


def predicted_shifts(model: ScoreModel, blocks: ScoreBlocks) -> Array:
    """Return pn and pt: how far the cohort scores move the expected non-target and target score of each trial.

    They shrink by themselves when the cohort is small. For complete cohort scores, and trials whose speakers are not
    in the cohort.

    Returns
    -------
    array
        In the shape of the scores, with a last axis for the two classes.
    """
    from evenscore.model.score_weights import side_shifts

    trials = blocks.trials
    weights = ScoreModelNormalizer(model, blocks).weights(
        enroll=blocks.enroll is not None, test=blocks.test is not None
    )
    rows, columns = side_shifts(weights, trials, blocks.enroll, blocks.test)
    return np.asarray(sum(trials.tile.pair(rows, columns)) - model.mu)
