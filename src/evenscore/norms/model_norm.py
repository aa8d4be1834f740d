"""Trained models as norms: one way for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.fitting import FittedNorm, normalized_training
from evenscore.progress import Progress
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import IdsLike, shown

__all__ = ["ModelNorm", "fitted_model", "prepare_model", "training_data"]


@dataclass(frozen=True, eq=False)
class ModelNorm:
    """A trained model that takes the cohort from the blocks that it normalizes.

    Attributes
    ----------
    model
        The model.
    prepare
        Makes of it and a cohort (or blocks) what normalizes trials, such as `ScoreModelNormalizer`.
    take_apart
        Makes of it and blocks a norm by parts, if it can be taken apart.
    """

    model: Any
    prepare: Callable[..., Any]
    take_apart: Callable[..., Any] | None = None

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        normalized: ScoreMatrix | TrialList = self.prepare(self.model, blocks).normalize(blocks)
        return normalized

    def parts(self, blocks: ScoreBlocks, how: Any) -> Any:
        """Return the norm by parts, as the model knows them; None where it has none for these blocks."""
        return None if self.take_apart is None else self.take_apart(self, blocks, how)

    def normalize_one(
        self, score: float, enroll: npt.ArrayLike | None = None, test: npt.ArrayLike | None = None
    ) -> float:
        """Return the log-likelihood ratio of one trial, without knowing the cohort's scores against itself."""
        return float(self.prepare(self.model).normalize_one(score, enroll, test))


def prepare_model(
    method: str,
    kind: type,
    prepare: Callable[..., Any],
    take_apart: Callable[..., Any] | None = None,
    *,
    model: Any = None,
    cohort: ScoreMatrix | None = None,
    cohort_labels: Labels | None = None,
    cohort_enroll_speakers: IdsLike | None = None,
    cohort_test_speakers: IdsLike | None = None,
    **unknown: Any,
) -> Any:
    """Return a model of this kind as a norm: prepared for a cohort if one is given, else for any blocks."""
    if unknown:
        raise InputError(f"the norm {method!r} knows no option {shown(unknown)}; it takes `model` and the cohort")
    if not isinstance(model, kind):
        raise InputError(f"the norm {method!r} needs a trained {kind.__name__}; give it as `model`")
    if cohort is None:
        return ModelNorm(model, prepare, take_apart)
    return prepare(
        model, cohort, cohort_labels, enroll_speakers=cohort_enroll_speakers, test_speakers=cohort_test_speakers
    )


def training_data(training: Sequence[LabelledBlocks]) -> list[Any]:
    """Return labelled scores as the models' ``fit`` functions take them."""
    data: list[Any] = []
    for part in training:
        trials = part.blocks.trials
        if not trials.listed:
            data.append((trials, part.table()))
        elif part.is_in_memory:
            data.append(part.trials)
        else:
            data.append(trials if part.labels is None else (trials, part.labels))
    return data


def fitted_model(
    method: str,
    norm: ModelNorm,
    training: Sequence[LabelledBlocks],
    notes: tuple[str, ...],
    progress: Progress,
    client: Any = None,
) -> FittedNorm:
    """Normalize the training trials, each without its own speakers, and return the norm with them."""
    scores = normalized_training(method, norm, training, client=client, progress=progress, model=norm.model)
    return FittedNorm(
        method=method, normalizer=norm, training_scores=scores, model=norm.model, is_llr=True, notes=notes
    )
