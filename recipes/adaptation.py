"""What adaptation without labels is worth: the score model before and after, against one that knew the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore import (
    InputError,
    LabelledBlocks,
    ScoreBlocks,
    ScoreModel,
    ScoreModelNormalizer,
    adapt_score_model,
    cllr,
    eer,
    fit_score_model,
    min_cllr,
)
from evenscore.model import AdaptResult

__all__ = ["AdaptationOutcome", "AdaptationShown", "show_adaptation"]


@dataclass(frozen=True, kw_only=True)
class AdaptationOutcome:
    """How good the log-likelihood ratios of one model are on the evaluation trials."""

    name: str
    eer: float
    cllr: float
    min_cllr: float


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptationShown:
    """The outcomes of the trained model, the adapted one, and one trained on the evaluation labels (an oracle)."""

    outcomes: tuple[AdaptationOutcome, ...]
    result: AdaptResult | None  #: None if the guard refused
    refusal: str = ""  #: the reason, if it did
    prior: float = 0.0

    @property
    def recovered(self) -> float:
        """Share of the loss of Cllr against the oracle that the adaptation takes away; NaN if there is no loss."""
        trained, adapted, oracle = (outcome.cllr for outcome in self.outcomes)
        return (trained - adapted) / (trained - oracle) if trained > oracle else float("nan")


def show_adaptation(
    development: Sequence[LabelledBlocks],
    evaluation: Sequence[LabelledBlocks],
    *,
    prior: float | None = None,
    dim: int = 2,
    cohort: Sequence[str] = ("enroll", "test", "cohort"),
    change: str = "all",
    strength: float = 20.0,
) -> AdaptationShown:
    """Train on the development side, adapt to the evaluation trials with their labels hidden, and compare.

    Parameters
    ----------
    development, evaluation
        As a score set has them: one `LabelledBlocks` per phrase.
    prior
        Share of targets that the adaptation is told; by default the true one.
    dim
        Dimension of the hidden variables.
    cohort
        Which cohort blocks trials are normalized with, and adapted with. Those of another domain than the trials do
        harm: with spoilt tests only ``"test"`` belongs to the new domain.
    change, strength
        As in `adapt_score_model`.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 10}" for n in range(30)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> scores, labels = simulate(model.rescaled(1.0, 3.0), speakers, speakers, seed=2)
    >>> shown = show_adaptation([dev], [LabelledBlocks(ScoreBlocks(scores), labels)], dim=1, cohort=())
    >>> shown.recovered > 0.9
    True
    """
    labels = np.concatenate([_labels(part) for part in evaluation])
    prior = float(labels.mean()) if prior is None else prior
    trained = fit_score_model([_training(part) for part in development], dim).model
    oracle = fit_score_model([_training(part) for part in evaluation], dim).model
    blocks = [_with_cohort(part.blocks, cohort) for part in evaluation]
    result, refusal = None, ""
    try:
        result = adapt_score_model(
            trained,
            blocks,
            prior=prior,
            change=change,  # type: ignore[arg-type]
            strength=strength,
            enroll_speakers=_enroll_speakers(evaluation),
        )
    except InputError as error:
        refusal = str(error)
    adapted = trained if result is None else result.model
    outcomes = tuple(
        _outcome(name, model, blocks, labels)
        for name, model in (("trained", trained), ("adapted", adapted), ("oracle", oracle))
    )
    return AdaptationShown(outcomes=outcomes, result=result, refusal=refusal, prior=prior)


def _training(part: LabelledBlocks) -> Any:
    return part.trials if part.labels is None else (part.blocks.trials, part.labels)


def _enroll_speakers(parts: Sequence[LabelledBlocks]) -> dict[str, str]:
    """Return who enrolled, where it is known; that says nothing about the tests."""
    pairs = [
        zip(part.blocks.trials.enroll_ids.tolist(), part.blocks.enroll_speakers.tolist(), strict=True)
        for part in parts
        if part.blocks.enroll_speakers is not None
    ]
    return {name: speaker for pair in pairs for name, speaker in pair}


def _labels(part: LabelledBlocks) -> npt.NDArray[np.int8]:
    labels = part.trials.labels
    assert labels is not None  # noqa: S101
    return labels


def _with_cohort(blocks: ScoreBlocks, names: Sequence[str]) -> ScoreBlocks:
    """Keep the trials without labels, and the chosen cohort blocks; trials and cohort have no speaker in common."""
    trials = blocks.trials.to_trials().with_labels(None)
    kept = {name: getattr(blocks, name) for name in names}
    if "cohort" in names:
        kept["cohort_labels"] = blocks.cohort_labels
    return ScoreBlocks(trials, **kept)


def _outcome(
    name: str, model: ScoreModel, blocks: Sequence[ScoreBlocks], labels: npt.NDArray[np.int8]
) -> AdaptationOutcome:
    llrs = np.concatenate([np.asarray(ScoreModelNormalizer(model, b).normalize(b).scores) for b in blocks])
    return AdaptationOutcome(name=name, eer=eer(llrs, labels), cllr=cllr(llrs, labels), min_cllr=min_cllr(llrs, labels))
