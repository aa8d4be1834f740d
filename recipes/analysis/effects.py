"""What the hidden variables are told by the cohort, against what the evaluation trials show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore import LabelledBlocks, ScoreModel, ScoreModelNormalizer
from evenscore.tables import NONTARGET, TARGET

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["CLASSES", "SideEffects", "agreement", "effect_rows", "side_effects", "variance_rows"]

CLASSES = {"non-target": NONTARGET, "target": TARGET}  #: names of the first axis of every array
_FEWEST = 3  # points that a correlation can be told from


@dataclass(frozen=True, kw_only=True, eq=False)
class SideEffects:
    """Of every enrolment, or of every test: its effects given the cohort, and its mean scores in the trials.

    The effects are alpha_h'x (beta_h'y for tests) at the mean of the posterior given the scores of this side with the
    cohort and those of the cohort with itself. The trials themselves are not used for them.
    """

    predicted: Float[np.ndarray, "2 n"]  #: effect on the scores of either class
    measured: Float[np.ndarray, "2 n"]  #: mean score of the element's trials of that class, less mu_h; NaN if none
    phrases: npt.NDArray[np.int_]  #: number of the part


def side_effects(model: ScoreModel, parts: Sequence[LabelledBlocks], side: str) -> SideEffects:
    """Return the effects of all enrolments (``side="enroll"``) or tests (``"test"``) of the parts."""
    predicted, measured, phrases = [], [], []
    for number, part in enumerate(parts):
        predicted.append(_predicted(model, part, side))
        measured.append(_means(part, side) - model.mu[:, None])
        phrases.append(np.full(predicted[-1].shape[1], number))
    return SideEffects(
        predicted=np.concatenate(predicted, axis=1),
        measured=np.concatenate(measured, axis=1),
        phrases=np.concatenate(phrases),
    )


def agreement(effects: SideEffects, label: int) -> dict[str, float]:
    """Return correlation and slope of the measured on the predicted effects, over all phrases and within them.

    Examples
    --------
    >>> twice = np.array([[0.0, 1.0, 2.0, 5.0], [1.0, 2.0, 3.0, 4.0]])
    >>> effects = SideEffects(predicted=twice / 2, measured=twice, phrases=np.array([0, 0, 1, 1]))
    >>> agreement(effects, 0)
    {'n': 4, 'correlation': 1.0, 'slope': 2.0, 'correlation_within': 1.0, 'slope_within': 2.0}
    """
    there = np.isfinite(effects.measured[label])
    pairs = np.stack([effects.predicted[label][there], effects.measured[label][there]])
    phrases = effects.phrases[there]
    within = pairs.copy()
    for number in np.unique(phrases):
        within[:, phrases == number] -= pairs[:, phrases == number].mean(axis=1, keepdims=True)
    found: dict[str, float] = {"n": int(there.sum())}
    for end, points in (("", pairs), ("_within", within)):
        correlation, slope = _regression(points)
        found |= {f"correlation{end}": correlation, f"slope{end}": slope}
    return found


def effect_rows(effects: Mapping[str, Mapping[str, SideEffects]]) -> list[dict[str, Any]]:
    """Return `agreement` for each model, side and class."""
    return [
        {"system": model, "side": side, "class": name, **agreement(found, label)}
        for model, sides in effects.items()
        for side, found in sides.items()
        for name, label in CLASSES.items()
    ]


def variance_rows(models: Iterable[tuple[str, str, ScoreModel]]) -> list[dict[str, Any]]:
    """Return the variances of each class and the correlations of the effects, for (group, name, model).

    ``correlation_enroll`` is that of alpha_non'x with alpha_tar'x, ``correlation_test`` that of beta_non'y with
    beta_tar'y; +1 or -1 in a model of one dimension, which has no other choice.
    """
    rows = []
    for group, name, model in models:
        table = model.variances
        row: dict[str, Any] = {"group": group, "system": name}
        for end, label in (("non", NONTARGET), ("tar", TARGET)):
            row |= {
                f"sigma2_{end}": float(table.sigma2[label]),
                f"nu_enroll_{end}": float(table.nu_enroll[label]),
                f"nu_test_{end}": float(table.nu_test[label]),
                f"share_{end}": float(table.share[label]),
            }
        row["correlation_enroll"] = _correlation(table.enroll_covariance)
        row["correlation_test"] = _correlation(table.test_covariance)
        rows.append(row)
    return rows


def _predicted(model: ScoreModel, part: LabelledBlocks, side: str) -> npt.NDArray[np.float64]:
    normalizer = ScoreModelNormalizer(model, part.blocks)
    if side == "enroll":
        given = np.asarray(part.blocks.enroll.scores, dtype=float)
        return np.stack([model.alpha @ normalizer.posterior(enroll=scores).enroll for scores in given], axis=1)
    given = np.asarray(part.blocks.test.scores, dtype=float).T
    return np.stack([model.beta @ normalizer.posterior(test=scores).test for scores in given], axis=1)


def _means(part: LabelledBlocks, side: str) -> npt.NDArray[np.float64]:
    """Return the mean score of each class, of every enrolment or test; NaN where there are no trials."""
    trials = part.trials
    index, size = (
        (trials.enroll_index, len(trials.enroll_ids)) if side == "enroll" else (trials.test_index, len(trials.test_ids))
    )
    values, labels = np.asarray(trials.scores, dtype=float), np.asarray(trials.labels)
    means = np.full((2, size), np.nan)
    for label in CLASSES.values():
        kept = labels == label
        counts = np.bincount(index[kept], minlength=size)
        sums = np.bincount(index[kept], values[kept], minlength=size)
        means[label, counts > 0] = sums[counts > 0] / counts[counts > 0]
    return means


def _regression(points: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return correlation and slope of the second row on the first; 0 where the first does not vary."""
    if points.shape[1] < _FEWEST:
        return 0.0, 0.0
    covariance = np.cov(points)
    if min(covariance[0, 0], covariance[1, 1]) <= 0:
        return 0.0, 0.0
    return _correlation(covariance), float(covariance[0, 1] / covariance[0, 0])


def _correlation(covariance: npt.NDArray[np.float64]) -> float:
    scale = float(np.sqrt(covariance[0, 0] * covariance[1, 1]))
    return float(np.clip(covariance[0, 1] / scale, -1.0, 1.0)) if scale > 0 else 0.0
