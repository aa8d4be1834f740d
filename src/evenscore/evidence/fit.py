"""Training of the cohort-evidence model, every choice by speaker cross-validation on the training side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.evidence.choice import CANDIDATES, Choice, Judge, best_choice, bounded, cross_fitted
from evenscore.evidence.features import EXTRAS, PATTERNS, VIEWS, Scales, evidence_features, pattern_of, restricted
from evenscore.evidence.head import BEND, EvidenceHead, Penalties
from evenscore.evidence.model import CohortEvidence, TrainingReport
from evenscore.evidence.own_pairs import Ridges, pair_tables
from evenscore.evidence.simple import calibration_alone, simple_choice, simple_columns
from evenscore.evidence.training_trials import TrainingTrials
from evenscore.model.parameters import ScoreModel
from evenscore.norms.fitting import training_data
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, ScoreMatrix, TrialList
from evenscore.tables.labelled_blocks import labelled_parts
from evenscore.threads import one_thread_per_product

__all__ = ["EvidenceFit", "fit_evidence", "train_evidence"]

#: Which heads blocks of a pattern can train, the fullest first.
_TRAINS = {
    "full": PATTERNS,
    "pair": ("pair", "enroll", "test", "none"),
    "enroll": ("enroll", "none"),
    "test": ("test", "none"),
    "none": ("none",),
}
_TOLERANCE = 1e-6  # the head weighs the score model, so that its last digits do not matter
_FIT, _CHOOSE = 150_000, 25_000  # non-target trials that a head is fitted to, and that choices are made with

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class EvidenceFit:
    """A trained model, and the training trials' log-likelihood ratios by heads that never met their speakers."""

    model: CohortEvidence
    scores: list[ScoreMatrix | TrialList]


def fit_evidence(
    training: LabelledBlocks | Sequence[LabelledBlocks],
    *,
    score_model: ScoreModel | None = None,
    dim: int = 2,
    guard: bool = True,
    progress: Progress = silent,
) -> CohortEvidence:
    """Train the cohort-evidence model.

    Parameters
    ----------
    training
        Labelled blocks, one for each phrase or condition, usually from `LabelledBlocks.own_cohort`. With speakers on
        all sides no trial meets its own speakers in its cohort. They should look like the blocks that the model will
        be used on: as many utterances per enrolment, tests and cohorts of the same kind.
    score_model
        A trained score model; else one is trained on the same scores.
    dim
        Hidden dimensions of that score model.
    guard
        Whether the model becomes a simple method (a classical norm or none, then logistic calibration) where it does
        no better than that on held-out training speakers.
    progress
        Called with a stage name and the fraction done.

    Returns
    -------
    CohortEvidence
        Its ``report`` tells what was chosen, and what each feature is worth.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 12}" for n in range(36)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers[:12], speakers, seed=1))
    >>> fit_evidence([dev]).report.lines()[0]
    '36 target and 396 non-target trials of 12 speakers'
    """
    return train_evidence(training, score_model=score_model, dim=dim, guard=guard, progress=progress).model


def train_evidence(
    training: LabelledBlocks | Sequence[LabelledBlocks],
    *,
    score_model: ScoreModel | None = None,
    dim: int = 2,
    guard: bool = True,
    progress: Progress = silent,
) -> EvidenceFit:
    """Train the model and cross-fit the training trials; see `fit_evidence`."""
    training = labelled_parts(training, "training")
    with one_thread_per_product():
        return _trained(training, score_model, dim, guard, progress)


def _trained(
    training: Sequence[LabelledBlocks], score_model: ScoreModel | None, dim: int, guard: bool, progress: Progress
) -> EvidenceFit:
    if score_model is None:
        score_model = _score_model(training, dim, progress)
    score_model = score_model.with_residuals(None)  # the head calibrates, so it needs no other density
    patterns = _common_patterns(training)
    scales = Scales.estimated([part.blocks for part in training])
    trials = TrainingTrials.of(training)
    progress("features", 0.3)
    table = _table(training, patterns[0], score_model, scales, every_ridge=True)
    simple = simple_columns(training, patterns[0], trials.n_speakers) if guard else {}
    table |= simple
    progress("cross-validation", 0.5)
    choice, tried, judge = _choose(table, trials, patterns[0])
    instead, losses = simple_choice(judge, choice, tuple(simple), trials.n_speakers) if judge else (None, {})
    head, loss = _final_head(choice, table, trials, judge, instead)
    scores = cross_fitted(instead or choice, table, trials, trials.sample(_CHOOSE), head)
    report = _report(trials, judge, choice, loss, tried)
    report = replace(report, simple=losses, instead=head.simple, errors=_errors(scores, trials.key) if judge else {})
    heads = {patterns[0]: head}
    for place, pattern in enumerate(patterns[1:]):
        progress("other patterns", 0.8 + 0.2 * place / len(patterns))
        smaller = Choice(views=VIEWS[pattern], extras=EXTRAS[pattern], penalties=choice.penalties)
        own = _table(training, pattern, score_model, scales, every_ridge=False)
        simple = simple_columns(training, pattern, trials.n_speakers) if guard else {}
        judge = Judge(own | simple, trials, trials.sample(_CHOOSE))
        instead, _ = simple_choice(judge, smaller, tuple(simple), trials.n_speakers) if judge else (None, {})
        heads[pattern], _ = _final_head(smaller, own | simple, trials, judge, instead)
    model = CohortEvidence(score_model=score_model, scales=scales, ridges=choice.ridges, heads=heads, report=report)
    parts = trials.split(scores)
    return EvidenceFit(model=model, scores=[_rescored(p, s) for p, s in zip(training, parts, strict=True)])


def _score_model(training: Sequence[LabelledBlocks], dim: int, progress: Progress) -> ScoreModel:
    from evenscore.model.fit import fit_score_model

    return fit_score_model(training_data(training), dim, tol=_TOLERANCE, progress=progress).model


def _common_patterns(training: Sequence[LabelledBlocks]) -> list[str]:
    """Return the patterns that all training blocks can train, the fullest first."""
    found = {pattern_of(part.blocks) for part in training}
    return [name for name in PATTERNS if all(name in _TRAINS[pattern] for pattern in found)]


def _table(
    training: Sequence[LabelledBlocks], pattern: str, model: ScoreModel, scales: Scales, *, every_ridge: bool
) -> dict[Any, Array]:
    """Return the features of all trials of a pattern, b and w for all candidates of ridge and rank."""
    columns: dict[Any, list[Array]] = {}
    for part in training:
        blocks = restricted(part.blocks, pattern)
        found: dict[Any, Array] = dict(evidence_features(blocks, pattern, model, scales, None))
        if pattern == "full" and every_ridge:
            found |= pair_tables(blocks, CANDIDATES["impostor ridge"], CANDIDATES["within ridge"], CANDIDATES["rank"])
        for name, values in found.items():
            columns.setdefault(name, []).append(np.ravel(values))
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _choose(
    table: dict[Any, Array], trials: TrainingTrials, pattern: str
) -> tuple[Choice, dict[str, dict[str, float]], Judge]:
    penalties = Penalties.of(trials.n_speakers, int((trials.key == 1).sum()))
    choice = Choice(views=VIEWS[pattern], extras=EXTRAS[pattern], ridges=Ridges(), penalties=penalties)
    judge = Judge(table, trials, trials.sample(_CHOOSE))
    if not judge:
        return choice, {}, judge
    choice, tried = best_choice(judge, choice)
    return choice, tried, judge


def _final_head(
    choice: Choice, table: dict[Any, Array], trials: TrainingTrials, judge: Judge, instead: Choice | None
) -> tuple[EvidenceHead, float]:
    """Return the head that is fitted to all trials, with its bounds, and the loss of this choice on held-out trials.

    With a simple method ``instead``, the head is that method.
    """
    at = trials.sample(_FIT)
    head = (instead or choice).fit({name: values[at] for name, values in table.items()}, trials.key[at])
    if not judge:
        return head, float("nan")
    loss = float(judge.losses(choice).mean())
    return bounded(head, judge.held_out(choice)) if instead is None else calibration_alone(head), loss


def _report(
    trials: TrainingTrials, judge: Judge, choice: Choice, loss: float, tried: dict[str, dict[str, float]]
) -> TrainingReport:
    names = [*(choice.views if len(choice.views) > 1 else ()), BEND, *choice.extras]
    without = {name: float(judge.losses(choice.without(name)).mean()) for name in names} if judge else {}
    return TrainingReport(
        n_target=int((trials.key == 1).sum()),
        n_nontarget=int((trials.key == 0).sum()),
        n_speakers=trials.n_speakers,
        folds=trials.n_folds if judge else 0,
        loss=loss,
        without=without,
        tried=tried,
    )


def _errors(llrs: Array, key: npt.NDArray[np.int8]) -> dict[str, int]:
    return {"target": int((llrs[key == 1] <= 0).sum()), "nontarget": int((llrs[key == 0] > 0).sum())}


def _rescored(part: LabelledBlocks, llrs: Array) -> ScoreMatrix | TrialList:
    trials = part.blocks.trials
    assert trials.scores is not None  # noqa: S101
    return trials.with_scores(llrs.reshape(trials.scores.shape).astype(trials.scores.dtype))
