"""Residuals of training trials, each predicted without its own speakers; and the densities that they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evenscore.engine.engine import engine_for
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.model.residual_fit import ResidualCounts, fit_densities
from evenscore.model.residuals import Residual
from evenscore.norms.fitting import ModelNorm
from evenscore.norms.normalize import described_norm, normalize_with
from evenscore.norms.score_model import PreparedScoreModel
from evenscore.progress import Progress, silent
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks, Place, TrialList
from evenscore.tables.pair_values import PairValues
from evenscore.tables.score_table import Source

__all__ = ["fit_residuals", "left_out_residuals", "residual_counts"]


def fit_residuals(
    model: ScoreModel, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent
) -> ScoreModel:
    """Return the score model with densities of its residuals, fitted to training trials.

    Each trial's score is predicted from its cohort without its own two speakers, as that of a new trial will be, and
    what is left is described by a sinh-arcsinh density for each class, `ResidualDensities`. With fewer than four
    speakers the densities stay Gaussian.

    Parameters
    ----------
    model
        The score model; its own densities, if it has some, do not matter.
    training
        Labelled trials with their cohorts, one for each phrase or condition.
    client
        A `distributed.Client` whose workers read scores that are not in memory; None does it here.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 20}" for n in range(60)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> found = fit_residuals(model, [dev]).residuals
    >>> bool((abs(found.skew) < 0.2).all()), bool((abs(found.tail - 1) < 0.2).all())
    (True, True)
    """
    plain = model.with_residuals(None)
    counts = residual_counts(plain, training, client=client, progress=progress)
    return plain.with_residuals(fit_densities(counts, _n_speakers(training)))


def residual_counts(
    model: ScoreModel, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent
) -> ResidualCounts:
    """Count the residuals of training trials, those of targets as targets and of non-targets as non-targets."""
    found = ResidualCounts.of(np.empty(0), NONTARGET)
    for part in training:
        for label in (NONTARGET, TARGET):
            norm = ModelNorm(model, partial(PreparedScoreModel, reading=Residual(label)))
            table = normalize_with(norm, part.blocks, described_norm("residual", {"label": label}), client=client)
            task = _Task(table.source, part.values, label)
            engine = engine_for(client)
            found += engine.total(_count, task, table.places(), stage="residuals", progress=progress)
    return found


def left_out_residuals(model: ScoreModel, data: Sequence[LabelledBlocks]) -> TrialList:
    """Return labelled trials with the standardized residual of their own class in place of the score.

    Each is predicted without its own speakers in the cohort; what a Gaussian model would leave is N(0, 1) in both
    classes. `plot_qq` draws them.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 20}" for n in range(60)]
    >>> residuals = left_out_residuals(model, [LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))])
    >>> abs(float(residuals.scores.mean())) < 0.1, abs(float(residuals.scores.std()) - 1) < 0.1
    (True, True)
    """
    lists = []
    for part in data:
        found = [
            part.labelled(ScoreModelNormalizer(model, part.blocks, reading=Residual(label)).normalize(part.blocks))
            for label in (NONTARGET, TARGET)
        ]
        labels = np.asarray(found[NONTARGET].labels)
        nontarget, target = (np.asarray(trials.scores) for trials in found)
        lists.append(found[TARGET].with_scores(np.where(labels == TARGET, target, nontarget)))
    return TrialList.concat(lists)


@dataclass(frozen=True, eq=False)
class _Task:
    source: Source
    labels: PairValues
    label: int


def _count(task: _Task, place: Place) -> ResidualCounts:
    tile = task.source.read(place)
    labels = np.broadcast_to(task.labels.of(tile), tile.scores.shape)
    return ResidualCounts.of(tile.scores[labels == task.label], task.label)


def _n_speakers(training: Sequence[LabelledBlocks]) -> int:
    """Return how many speakers there are; where they are not known, as many as there are enrolments of a part."""
    names: set[Any] = set()
    fewest = 0
    for part in training:
        for axis in (part.blocks.trials.enroll_axis, part.blocks.trials.test_axis):
            names.update(() if axis.speakers is None else axis.speakers.tolist())
        fewest = max(fewest, min(part.blocks.trials.shape))
    return len(names - {None}) or fewest
