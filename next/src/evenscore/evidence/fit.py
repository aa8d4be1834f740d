"""The evidence model: all that cohort scores say about a trial, joined by a trained head into one LLR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenscore.data.blocks import LabelledBlocks, ScoreBlocks
from evenscore.data.labels import Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.evidence.features import ScalePrior, estimate_scales, evidence_features, measure, measure_by_folds
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

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the LLRs of trials none of whose speakers is in the cohort; `normalize` leaves own speakers out."""
        scores = np.asarray(blocks.trials.scores)
        measures = measure(blocks, self.score_model)
        llr = self.head(evidence_features(scores, measures, self.scales)).astype(scores.dtype)
        if isinstance(blocks.trials, TrialList):
            return blocks.trials.with_normalized(llr)
        return blocks.trials.with_scores(llr)


def evidence_norm(blocks: ScoreBlocks, model: EvidenceModel) -> ScoreMatrix | TrialList:
    """Return the trials with log-likelihood ratios of an evidence model: the norm "evidence"."""
    if not isinstance(model, EvidenceModel):
        raise InputError(f"the model is a {type(model).__name__}, but must be an EvidenceModel; train one")
    return model.normalize(blocks)


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
    dim
        Of the score model that is one of the views.
    ridge
        Of the head's weights, divided by the number of training speakers.
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
    n_speakers = _count_speakers(parts)
    folds = folds or min(max(n_speakers, 2), _FOLDS if n_speakers <= _MANY else _FOLDS_OF_MANY)
    measures = [measure_by_folds(part.blocks, model, folds) for part in parts]
    scales = estimate_scales(measures)
    columns: dict[str, list[np.ndarray]] = {}
    for part, found in zip(parts, measures, strict=True):
        for name, values in evidence_features(np.asarray(part.blocks.trials.scores), found, scales).items():
            columns.setdefault(name, []).append(np.ravel(values))
    labels = np.concatenate([_labels(part) for part in parts])
    features = {name: np.concatenate(values) for name, values in columns.items() if len(values) == len(parts)}
    return EvidenceModel(fit_head(features, labels, n_speakers, ridge), scales, model)


def _labels(part: LabelledBlocks) -> np.ndarray:
    """Return the labels of all trials of a part, in the order of their scores."""
    trials = part.blocks.trials
    if isinstance(trials, TrialList):
        return np.asarray(part.trials.labels)
    labels = Labels.from_trials(part.labels) if isinstance(part.labels, TrialList) else part.labels
    if labels is None:
        raise InputError("the training trials have no labels; give them")
    return labels.align(trials.enroll, trials.test).matrix.ravel()


def _count_speakers(parts: Sequence[LabelledBlocks]) -> int:
    """Return the number of training speakers; where they are not known, each enrolment is one."""
    names: set[str | None] = set()
    for part in parts:
        enroll = part.blocks.trials.enroll
        names |= set((enroll.ids if enroll.speakers is None else enroll.speakers).tolist())
    return len(names - {None})
