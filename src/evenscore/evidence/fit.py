"""The evidence model: all that cohort scores say about a trial, joined by a trained head into one LLR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import LabelledBlocks, ScoreBlocks
from evenscore.data.labels import Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.evidence.features import Cache, ScalePrior, estimate_scales, evidence_features, measure, measure_by_folds
from evenscore.evidence.head import RIDGE, Head, fit_head
from evenscore.model.fit import fit_score_model
from evenscore.model.parameters import ScoreModel

__all__ = ["EvidenceModel", "evidence_norm", "fit_evidence"]

_FOLDS, _FOLDS_OF_MANY, _MANY = 10, 8, 150  # folds of up to so many speakers, and of more, who lose less by it


@dataclass(frozen=True, eq=False)
class EvidenceModel:
    """A trained evidence model; `fit_evidence` makes it, ``normalize(blocks, "evidence", model=...)`` uses it."""

    head: Head
    scales: Mapping[str, ScalePrior]  #: of the cohort scores of each side
    score_model: ScoreModel | None = None


def evidence_norm(blocks: ScoreBlocks, model: EvidenceModel, prepared: Cache | None = None) -> ScoreMatrix | TrialList:
    """Return log-likelihood ratios of trials none of whose speakers is in the cohort: the norm "evidence"."""
    if not isinstance(model, EvidenceModel):
        raise InputError(f"the model is a {type(model).__name__}, but must be an EvidenceModel; train one")
    scores = np.asarray(blocks.trials.scores)
    measures = measure(blocks, model.score_model, {} if prepared is None else prepared)
    features = evidence_features(scores, measures, model.scales)
    return blocks.trials.with_normalized(model.head(features).astype(scores.dtype))


def fit_evidence(
    training: LabelledBlocks | Sequence[LabelledBlocks],
    *,
    dim: int = 2,
    ridge: float = RIDGE,
    folds: int | None = None,
) -> EvidenceModel:
    """Train the evidence model.

    Parameters
    ----------
    training
        Trials with labels and cohort scores; several parts, such as phrases, must have the same kinds of blocks.
    dim, ridge
        Of the score model that is one of the views, and of the head: the larger, the nearer to the mean of the views.
    folds
        Folds of speakers that training trials leave out of their cohort; by default 10, or 8 of more than 150 speakers.

    Examples
    --------
    >>> people = [f"s{at}" for at in range(12)]
    >>> from evenscore.model import simulate
    >>> truth = ScoreModel(mu=[0.0, 4.0], alpha=[[0.7], [0.5]], beta=[[0.7], [0.5]], sigma2=[1.0, 1.0])
    >>> scores, labels = simulate(truth, people, people * 3, seed=0)
    >>> model = fit_evidence(LabelledBlocks.own_cohort(scores, labels))
    >>> model.head.names
    ('raw', 'ls_e', 'ls_t', 's_norm', 'as_norm', 'score_model', 'b', 'w')
    """
    parts = [training] if isinstance(training, LabelledBlocks) else list(training)
    if not parts:
        raise InputError("there are no training trials; give labelled blocks")
    model = None
    if all(part.blocks.cohort is not None for part in parts):
        pairs = [(part.blocks.trials, part.trials if part.labels is None else part.labels) for part in parts]
        model = fit_score_model(pairs, dim=dim, residuals="gaussian", tol=1e-6).model
    sides = [part.blocks.trials.enroll for part in parts]  # an enrolment whose speaker is not known counts as one
    n_speakers = len({name for side in sides for name in (side.ids if side.speakers is None else side.speakers)})
    folds = folds or min(max(n_speakers, 2), _FOLDS if n_speakers <= _MANY else _FOLDS_OF_MANY)
    measures = [measure_by_folds(part.blocks, model, folds) for part in parts]
    scales = estimate_scales(measures)
    columns: dict[str, list[npt.NDArray[np.float64]]] = {}
    for part, found in zip(parts, measures, strict=True):
        for name, values in evidence_features(np.asarray(part.blocks.trials.scores), found, scales).items():
            columns.setdefault(name, []).append(np.ravel(values))
    features = {name: np.concatenate(values) for name, values in columns.items() if len(values) == len(parts)}
    labels = np.concatenate([_labels(part) for part in parts])
    return EvidenceModel(fit_head(features, labels, ridge), scales, model)


def _labels(part: LabelledBlocks) -> npt.NDArray[np.int8]:
    """Return the labels of all trials of a part, in the order of their scores."""
    trials, labels = part.blocks.trials, part.labels
    if trials.rows is not None or labels is None:
        return np.asarray(part.trials.labels)
    labels = Labels.from_trials(labels) if isinstance(labels, TrialList) else labels
    return labels.align(trials.enroll, trials.test).matrix.ravel()
