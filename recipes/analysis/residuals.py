"""How far evaluation scores are from what the score model predicts of them, and how likely they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore import LabelledBlocks, ScoreModel, ScoreModelNormalizer, fit_score_model, log_likelihood
from recipes.analysis.cohorts import ids_of
from recipes.analysis.effects import CLASSES
from recipes.analysis.systems import DIMS, ITERATIONS, MODELS

if TYPE_CHECKING:
    from jaxtyping import Float, Int

    from evenscore.files import ScoreSet

__all__ = ["Residuals", "likelihood_rows", "residual_rows", "residuals_of"]

_FOLDS = 5
_FAR = 3.0  # standard deviations; 0.27 % of a Gaussian lie further out


@dataclass(frozen=True, kw_only=True, eq=False)
class Residuals:
    """Scores less what the model predicts of them from their cohort scores, knowing the class.

    Both are as in equation (S3) of docs/math.md: the trial's own score has no part in its prediction.
    """

    standardized: Float[np.ndarray, " n"]  #: in predictive standard deviations
    log_density: Float[np.ndarray, " n"]  #: of each score in its predictive distribution
    labels: Int[np.ndarray, " n"]


def residuals_of(model: ScoreModel, parts: Sequence[LabelledBlocks]) -> Residuals:
    """Return the residuals of all trials of the parts."""
    standardized, log_density, labels = [], [], []
    for part in parts:
        weights = ScoreModelNormalizer(model, part.blocks).weights()
        rows = (np.asarray(part.blocks.enroll.scores, dtype=float) - weights.center) @ weights.enroll.T
        columns = weights.test @ (np.asarray(part.blocks.test.scores, dtype=float) - weights.center)
        trials = part.trials
        label = np.asarray(trials.labels)
        mean = weights.offset[label] + rows[trials.enroll_index, label] + columns[label, trials.test_index]
        variance = weights.variance[label]
        z = (np.asarray(trials.scores, dtype=float) - mean) / np.sqrt(variance)
        standardized.append(z)
        log_density.append(-0.5 * (z**2 + np.log(2 * np.pi * variance)))
        labels.append(label)
    return Residuals(
        standardized=np.concatenate(standardized),
        log_density=np.concatenate(log_density),
        labels=np.concatenate(labels),
    )


def residual_rows(residuals: Mapping[str, Residuals]) -> list[dict[str, Any]]:
    """Return moments and tails of the residuals, for each model and class; a Gaussian has 0, 1, 0, 0 and 0.0027."""
    rows = []
    for model, found in residuals.items():
        for name, label in CLASSES.items():
            z = found.standardized[found.labels == label]
            rows.append(
                {
                    "system": model,
                    "class": name,
                    "n": int(z.size),
                    **moments(z),
                    "far_below": float(np.mean(z < -_FAR)),
                    "far_above": float(np.mean(z > _FAR)),
                }
            )
    return rows


def moments(z: npt.NDArray[np.float64]) -> dict[str, float]:
    """Return mean, standard deviation, skewness and excess kurtosis.

    Examples
    --------
    >>> moments(np.array([-1.0, -1.0, 1.0, 1.0]))
    {'mean': 0.0, 'std': 1.0, 'skewness': 0.0, 'excess_kurtosis': -2.0}
    """
    centered = z - z.mean()
    std = float(centered.std())
    unit = centered / std
    shape = {"skewness": float(np.mean(unit**3)), "excess_kurtosis": float(np.mean(unit**4) - 3.0)}
    return {"mean": float(z.mean()), "std": std, **shape}


def likelihood_rows(
    scores: ScoreSet, models: Mapping[str, ScoreModel], residuals: Mapping[str, Residuals], seed: int
) -> list[dict[str, Any]]:
    """Return log-likelihoods per score of each model, in nats.

    ``development`` is that of the training matrices, ``cross_validated`` that of the matrices of left-out development
    speakers (five folds), ``evaluation`` that of the evaluation matrices, all of them without any cohort; and
    ``given_cohort`` is the mean log-density of an evaluation score given its cohort scores, of each class.
    """
    held_out = _cross_validated(scores.development, seed)
    rows = []
    for dim, name in MODELS.items():
        found = residuals[name]
        row: dict[str, Any] = {"system": name, "dim": dim, "cross_validated": held_out[dim]}
        for side, parts in (("development", scores.development), ("evaluation", scores.evaluation)):
            row[side] = _per_score(models[name], parts)
        for kind, label in CLASSES.items():
            row[f"given_cohort_{kind}"] = float(found.log_density[found.labels == label].mean())
        row["given_cohort"] = float(found.log_density.mean())
        rows.append(row)
    return rows


def _per_score(model: ScoreModel, parts: Sequence[LabelledBlocks]) -> float:
    data = [(part.blocks.trials, part.labels) for part in parts]
    return log_likelihood(model, data) / sum(part.blocks.trials.size for part in parts)


def _cross_validated(parts: Sequence[LabelledBlocks], seed: int) -> dict[int, float]:
    """Return the log-likelihood per score of left-out speakers, by models trained without them, for each dimension."""
    speakers = sorted({str(name) for part in parts for name in part.blocks.trials.enroll_axis.speakers})
    order = np.random.default_rng(seed).permutation(len(speakers))
    folds = [{speakers[place] for place in fold} for fold in np.array_split(order, min(_FOLDS, len(speakers) // 2))]
    total, count = dict.fromkeys(DIMS, 0.0), 0
    for fold in folds:
        kept, left_out = _split(parts, fold)
        count += sum(matrix.size for matrix, _ in left_out)
        for dim in DIMS:
            total[dim] += log_likelihood(fit_score_model(kept, dim=dim, max_iter=ITERATIONS).model, left_out)
    return {dim: value / count for dim, value in total.items()}


def _split(parts: Sequence[LabelledBlocks], fold: set[str]) -> tuple[list[Any], list[Any]]:
    """Return the matrices of the speakers outside of a fold, and those of the speakers in it, with labels."""
    sides: tuple[list[Any], list[Any]] = ([], [])
    for part in parts:
        trials = part.blocks.trials
        for side, inside in zip(sides, (False, True), strict=True):
            rows, columns = ids_of(trials, fold, inside=inside)
            if rows and columns:
                matrix = trials.select(rows, columns)
                side.append((matrix, part.labels.align(rows, columns)))
    return sides
