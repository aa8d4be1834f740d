"""What is odd about the data: too few speakers, speakers on both sides, hidden targets, inverted scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from evenscore.comparison.record import Diagnostic, Floats
from evenscore.comparison.sides import FROM_TARGETS, Trials
from evenscore.data.blocks import LabelledBlocks
from evenscore.data.labels import TARGET, Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.errors import InputError, quoted
from evenscore.metrics.rates import auc

__all__ = ["FEW_SPEAKERS", "FEW_TARGETS", "cohort_speakers", "diagnose"]

FEW_TARGETS = 30  #: with fewer target trials the figures are not reliable
FEW_SPEAKERS = 20  #: with fewer speakers the intervals are too narrow, and trained methods not to be trusted
SURPRISING = 5.0  #: standard deviations by which a hidden target lies above the other scores of either id
_FEWEST = 10  # scores of an id among which one can be surprising
_MOST_LISTED = 20


def diagnose(training: Trials, evaluation: Trials, *, allow_overlap: bool = False) -> list[Diagnostic]:
    """Return what the user should know before the figures; speakers on both sides are an error unless allowed."""
    found = [one for side, name in ((training, "training"), (evaluation, "evaluation")) for one in _sizes(side, name)]
    found += _overlap(training, evaluation, allow_overlap)
    for side, name in ((training, "training"), (evaluation, "evaluation")):
        area = auc(np.concatenate([np.asarray(one.scores) for one in side.lists]), side.labels)
        if area < 0.5:
            remedy = "change the sign of distances, or check the labels"
            found.append(
                Diagnostic("inverted", f"targets of the {name} side score below non-targets (AUC {area:.3f}); {remedy}")
            )
    raw = np.concatenate([np.asarray(one.scores) for one in training.lists])
    return found + _hidden_targets(evaluation.parts, float(np.median(raw[training.labels == TARGET])))


def cohort_speakers(parts: Sequence[LabelledBlocks]) -> set[str] | None:
    """Return the speakers of the cohort; None where they are not known."""
    sides = [side for part in parts for side in (part.blocks.cohort_enroll, part.blocks.cohort_test)]
    known = [side.speakers.tolist() for side in sides if side is not None and side.speakers is not None]
    return {name for names in known for name in names} - {None} if known else None


def _sizes(trials: Trials, name: str) -> Iterator[Diagnostic]:
    n_speakers, n_target = len(trials.speakers), int(np.count_nonzero(trials.labels))
    if n_speakers < 2:
        raise InputError(f"all {name} trials are of one speaker; at least two are needed, better {FEW_SPEAKERS}")
    if n_target < FEW_TARGETS:
        message = f"only {n_target} target trials on the {name} side: the figures are not reliable"
        yield Diagnostic("size", f"{message}; have {FEW_TARGETS} or more")
    if n_speakers < FEW_SPEAKERS:
        meaning = "the real uncertainty is larger than shown"
        if name == "training":
            meaning = "norms that are trained, and calibrations, are not to be trusted"
        yield Diagnostic("size", f"only {n_speakers} speakers on the {name} side: {meaning}; have {FEW_SPEAKERS}")


def _overlap(training: Trials, evaluation: Trials, allowed: bool) -> Iterator[Diagnostic]:
    """Tell which speakers are on both sides, or in the cohort of their own trials."""
    shared = sorted({*training.speakers} & {*evaluation.speakers})
    if shared:
        message = f"{len(shared)} of the speakers are on the training side and on the evaluation side: {quoted(shared)}"
        if not allowed:
            raise InputError(f"{message}; take them out of one side, or allow it with `allow_overlap`")
        yield Diagnostic("overlap", f"{message}; the figures are better than they would be for new speakers")
    elif FROM_TARGETS in (training.speakers_from, evaluation.speakers_from):
        message = "speakers are known only as far as target trials connect ids, so that an overlap may go unseen"
        yield Diagnostic("overlap", f"{message}; give a map of speakers to be sure")
    members = cohort_speakers(evaluation.parts) or set()
    own = sorted(members & {*evaluation.speakers})
    if own and evaluation.speakers_from != FROM_TARGETS:
        message = f"{len(own)} evaluation speakers are in the cohort: {quoted(own)}"
        yield Diagnostic("overlap", f"{message}; they are left out of the cohort of their own trials")


def _hidden_targets(parts: Sequence[LabelledBlocks], usual_target: float) -> list[Diagnostic]:
    """Find cohort scores as high as those of most targets that stand out among all other scores of both ids."""
    found: list[dict[str, str | float]] = []
    for part in parts:
        for block, of_rows in ((part.blocks.enroll, True), (part.blocks.test, False)):
            if block is None:
                continue
            scores = _of_others(block)
            rows, cols = np.nonzero(scores > usual_target)
            surprise = np.minimum(_surprise(scores, rows, cols, 1), _surprise(scores, rows, cols, 0))
            for at in np.flatnonzero(surprise > SURPRISING).tolist():
                pair = str(block.enroll_ids[rows[at]]), str(block.test_ids[cols[at]])
                trial, member = pair if of_rows else pair[::-1]
                found.append({"trial": trial, "cohort": member, "score": float(scores[rows[at], cols[at]])})
    if not found:
        return []
    found.sort(key=lambda one: -float(one["score"]))
    highest = f"the highest is {found[0]['score']:.4g} of {found[0]['trial']!r} and {found[0]['cohort']!r}"
    message = f"{len(found)} cohort scores look like those of targets, {highest}; is the speaker in the cohort?"
    return [Diagnostic("hidden_targets", message, tuple(found[:_MOST_LISTED]))]


def _of_others(block: ScoreMatrix) -> Floats:
    """Return cohort scores without those of one speaker, where speakers are known."""
    scores = np.asarray(block.compute().scores, np.float64)
    if block.enroll.speakers is None or block.test.speakers is None:
        return scores
    own = Labels.from_speakers(block.enroll, block.test).matrix == TARGET
    return np.where(own, np.nan, scores) if own.any() else scores


def _surprise(scores: Floats, rows: npt.NDArray[np.intp], cols: npt.NDArray[np.intp], axis: int) -> Floats:
    """Return by how many standard deviations some scores lie above the others of their row (axis 1) or column."""
    at, values = (rows if axis else cols), scores[rows, cols]
    there = ~np.isnan(scores)
    count = np.count_nonzero(there, axis=axis)
    mean = np.sum(scores, axis=axis, where=there) / np.maximum(count, 1)
    scatter = np.sum(np.square(scores - np.expand_dims(mean, axis)), axis=axis, where=there)
    count, above, others = count[at], values - mean[at], np.maximum(count[at] - 1, 1)
    above = above * count / others  # from the mean of the others
    variance = (scatter[at] - above * (values - mean[at])) / others
    usable = (variance > 1e-12 * np.square(above)) & (count >= _FEWEST)
    return np.where(usable, above / np.sqrt(np.where(usable, variance, 1.0)), 0.0)
