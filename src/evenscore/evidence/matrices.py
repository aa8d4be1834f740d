"""The fast way for matrices of trials whose speakers are not in the cohort, and whose cohort scores are complete."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.evidence.features import TOP
from evenscore.evidence.head import BEND, EvidenceHead
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.moments import shrunk_log_scale, trial_moments
from evenscore.evidence.pair_space import PairSpace
from evenscore.model.score_weights import ScoreWeights
from evenscore.norms.threads import in_parallel
from evenscore.tables import ScoreBlocks, ScoreMatrix

__all__ = ["llr_matrix_of"]

Array = npt.NDArray[np.float64]
_PIECE = 1 << 22  # products of coordinates that are kept at a time


def llr_matrix_of(
    model: CohortEvidence,
    head: EvidenceHead,
    blocks: ScoreBlocks,
    weights: ScoreWeights | None,
    space: PairSpace | None,
) -> npt.NDArray[Any]:
    """Return the log-likelihood ratios of a matrix of trials.

    Parameters
    ----------
    model, head
        What was trained, and the head for these blocks.
    blocks
        Their trials are a matrix.
    weights
        Of the cohort scores in the score model's predictions, None if the head does not use them.
    space
        Coordinates for b and w, None if the head does not use them.
    """
    from evenscore.evidence.kernels import head_matrix

    assert isinstance(blocks.trials, ScoreMatrix)  # noqa: S101
    scores = np.ascontiguousarray(blocks.trials.scores)
    rows, columns = (_side(model, head, blocks, side) for side in ("enroll", "test"))
    slopes, shares, constant = _mixture(head)
    rows[:, 4] += constant
    constants = _predict(weights, blocks, rows, columns)
    bounds = _log_bounds(head)
    out = np.empty_like(scores)
    x, y = _coordinates(model, head, blocks, space)
    step = max(1, _PIECE // max(scores.shape[1], 1)) if len(x) else max(len(scores), 1)
    for first in range(0, len(scores), step):
        part = slice(first, min(first + step, len(scores)))
        pairs = x[part] @ y.T if len(x) else np.empty((0, 0), dtype=scores.dtype)
        arguments = (scores[part], pairs, rows[part], columns, constants, slopes, shares, head.weight[BEND], bounds)
        result = out[part]
        in_parallel(
            lambda start, stop: head_matrix(*arguments, start, stop, result),  # noqa: B023
            part.stop - part.start,
            8 * scores.shape[1],
        )
    return out


def _coordinates(
    model: CohortEvidence, head: EvidenceHead, blocks: ScoreBlocks, space: PairSpace | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return x C and y, with (x C) . y what b and w add to z, in the precision of the scores."""
    if space is None or blocks.enroll is None or blocks.test is None:
        return np.empty((0, 0)), np.empty((0, 0))
    weights = tuple(head.weight[name] * head.unit[name] if name in head.extras else 0.0 for name in ("b", "w"))
    operator = space.operator(model.ridges.impostor, model.ridges.within, (weights[0], weights[1]))
    kind = blocks.trials.scores.dtype if blocks.trials.scores is not None else np.float64
    x = space.enroll(blocks.enroll.scores) @ operator
    return x.astype(kind), space.test(blocks.test.scores.T).astype(kind)


def _predict(weights: ScoreWeights | None, blocks: ScoreBlocks, rows: Array, columns: Array) -> Array:
    """Write both sides' parts of the score model's predicted scores, and return the constants of its LLR."""
    if weights is None or blocks.enroll is None or blocks.test is None:
        return np.full(3, np.nan)
    rows[:, 5:] = _weighed(blocks.enroll.scores, weights.enroll, weights.center) + weights.offset
    columns[:, 5:] = _weighed(blocks.test.scores.T, weights.test, weights.center)
    return np.array([*weights.half, weights.constant])


def _weighed(scores: npt.NDArray[Any], weights: Array, center: float) -> Array:
    """Return the weighted sums of (score - center) of each row."""
    return np.asarray(scores @ weights.T.astype(scores.dtype) - center * weights.sum(axis=1))


def _side(model: CohortEvidence, head: EvidenceHead, blocks: ScoreBlocks, side: str) -> Array:
    """Return what one side gives to the kernel: factors and terms of s_norm and as_norm, and what it adds to z."""
    trials = blocks.trials
    out = np.zeros((len(trials.enroll_ids if side == "enroll" else trials.test_ids), 7))
    if getattr(blocks, side) is None:
        return out
    n_sides = (blocks.enroll is not None) + (blocks.test is not None)
    for at, (view, top) in enumerate((("s_norm", None), ("as_norm", TOP))):
        if view not in head.views:
            continue
        moments, prior = trial_moments(blocks, side, top), model.scales.of(side, top is not None)
        logs = shrunk_log_scale(moments, prior)
        mean = np.where(moments.count > 0, moments.mean, prior.location)
        factor = np.ravel(head.slope[view] / n_sides * np.exp(-logs - prior.center))
        out[:, 2 * at], out[:, 2 * at + 1] = factor, factor * np.ravel(mean)
        name = f"ls_{side[0]}"
        if top is None and name in head.extras:
            out[:, 4] = head.weight[name] * head.unit[name] * (np.ravel(logs) - head.center[name])
    return out


def _mixture(head: EvidenceHead) -> tuple[Array, Array, float]:
    """Return slopes and shares for the kernel, and the constant part of z."""
    names = ["s_norm", "as_norm", *(name for name in head.views if name not in ("s_norm", "as_norm"))]
    names += ["nothing"] * (3 - len(names))
    weight, share, intercept = (
        np.array([values.get(name, 0.0) for name in names]) for values in (head.weight, head.share, head.intercept)
    )
    constant = head.offset + float(weight @ intercept)
    constant -= sum(head.weight[name] * head.unit[name] * head.center[name] for name in head.extras if name in "bw")
    slopes = np.array([head.slope.get(names[2], 0.0), *weight])
    return slopes, np.array([*share, float(share @ intercept)]), constant


def _log_bounds(head: EvidenceHead) -> Array:
    with np.errstate(divide="ignore"):
        e, d = head.target_outliers, head.nontarget_outliers
        return np.array([np.log(e), np.log1p(-e), np.log(d), np.log1p(-d)])
