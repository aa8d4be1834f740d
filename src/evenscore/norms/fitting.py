"""Norms as methods that are trained on labelled scores: one call for the classical ones and for those with a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.by_trial import one_trial
from evenscore.norms.normalize import described_norm, normalize_with, prepare_norm
from evenscore.norms.options import with_usual_top_k
from evenscore.norms.registry import METHODS, Normalizer, loaded, method_named, refuse_unknown_options
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import IdsLike, shown
from evenscore.tables.labelled_blocks import labelled_parts

__all__ = [
    "FittedNorm",
    "ModelNorm",
    "fit_methods",
    "fit_norm",
    "fitted_model",
    "normalized_training",
    "prepare_model",
    "training_data",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedNorm:
    """A norm that is ready for new trials, and what it makes of the trials that it was trained on.

    Attributes
    ----------
    method
        Its name.
    normalizer
        Normalizes any `ScoreBlocks`.
    training_scores
        The training trials, normalized, one table per training blocks. No trial has met its own speakers in its
        cohort, so that a calibration can be fitted to them. Those of tables that are not in memory are not, either.
    model
        What was trained, None if nothing was.
    is_llr
        Whether the normalized scores are log-likelihood ratios by themselves.
    notes
        Sentences for the user.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 6}" for n in range(12)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> fitted = fit_norm("lgsm", [dev], dim=1)
    >>> fitted.is_llr, fitted.model.dim, fitted.normalizer.normalize(dev.blocks) == fitted.training_scores[0]
    (True, 1, True)
    """

    method: str
    normalizer: Normalizer
    training_scores: Sequence[ScoreTable]
    model: Any = None
    is_llr: bool = False
    notes: tuple[str, ...] = ()

    def normalize(
        self, blocks: ScoreBlocks, described: str = "", *, client: Any = None, progress: Progress = silent
    ) -> Any:
        """Normalize new trials, in memory or not; ``described`` is a text that changes when the options do."""
        if self.method == "raw":
            return blocks.trials
        described = f"{described} {described_norm(self.method, {'model': self.model})}"
        return normalize_with(self.normalizer, blocks, described, client=client, progress=progress)


def fit_methods() -> tuple[str, ...]:
    """Return the names of all methods that `fit_norm` knows."""
    return tuple(METHODS)


def fit_norm(
    method: str,
    training: LabelledBlocks | Sequence[LabelledBlocks],
    *,
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> FittedNorm:
    """Train a norm on labelled scores; a classical one has nothing to learn and only normalizes them.

    Parameters
    ----------
    method
        ``"raw"`` (no norm), or the name of a norm, see `prepare_norm`.
    training
        One `LabelledBlocks` for each phrase or condition.
    client
        A `distributed.Client` whose workers read scores that are not in memory; None does it here.
    progress
        Called with a stage name and the fraction done.
    **options
        Of the method.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 6}" for n in range(12)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> fitted = fit_norm("s", [dev])
    >>> fitted.training_scores[0].shape, fitted.is_llr
    ((12, 12), False)
    """
    parts = labelled_parts(training, "training")
    train = method_named(method).train
    trainer = fit_nothing if train is None else loaded(train)
    refuse_unknown_options(method, trainer, options)
    extra = {} if client is None else {"client": client}
    fitted: FittedNorm = trainer(method, parts, progress=progress, **extra, **options)
    return fitted


def fit_nothing(
    method: str, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent, **options: Any
) -> FittedNorm:
    """Prepare a norm that has nothing to learn."""
    options = with_usual_top_k(method, options)
    norm = prepare_norm(method, **options)
    scores = normalized_training(method, norm, training, client=client, progress=progress, **options)
    return FittedNorm(method=method, normalizer=norm, training_scores=scores)


def normalized_training(
    method: str,
    norm: Normalizer,
    training: Sequence[LabelledBlocks],
    *,
    client: Any = None,
    progress: Progress = silent,
    **described: Any,
) -> list[Any]:
    """Return the training trials normalized, each without its own speakers in its cohort."""
    scores = []
    for place, part in enumerate(training):
        progress("normalizing the training scores", place / len(training))
        scores.append(normalize_with(norm, part.blocks, described_norm(method, described), client=client))
    return scores


class _Raw:
    def normalize(self, blocks: ScoreBlocks) -> Any:
        return blocks.trials


def fit_raw(
    method: str, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent
) -> FittedNorm:
    """Leave scores as they are."""
    return FittedNorm(method=method, normalizer=_Raw(), training_scores=[part.blocks.trials for part in training])


@dataclass(frozen=True, eq=False)
class ModelNorm:
    """A trained model that takes the cohort from the blocks that it normalizes.

    Attributes
    ----------
    model
        The model.
    prepare
        Makes of it and a cohort (or blocks, or nothing) what normalizes trials, and has ``parts``.

    Examples
    --------
    >>> from evenscore import ScoreModel, prepare_norm
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> norm = prepare_norm("lgsm", model=model)
    >>> [round(norm.normalize_one(3.0, enroll, [0.2, 0.1]), 2) for enroll in ([0.0, 0.1], [1.9, 2.0])]
    [2.37, -0.58]
    """

    model: Any
    prepare: Callable[..., Any]
    _prepared: dict[tuple[int, ...], Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def needs(self) -> tuple[str, ...]:
        """Which sides' cohort scores are to be read."""
        return tuple(getattr(self.prepare(self.model), "needs", ("enroll", "test")))

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        normalized: ScoreMatrix | TrialList = self.prepare(self.model, blocks).normalize(blocks)
        return normalized

    def parts(self, blocks: ScoreBlocks, how: Any) -> Any:
        """Return the norm by parts, as the model knows them; None where it has none for these blocks."""
        return self.prepare(self.model).parts(blocks, how)

    def normalize_one(
        self, score: float, enroll: npt.ArrayLike | None = None, test: npt.ArrayLike | None = None
    ) -> float:
        """Return the log-likelihood ratio of one trial, without knowing the cohort's scores against itself.

        Parameters
        ----------
        score
            The trial's raw score.
        enroll, test
            Scores of its enrolment against a cohort's tests, and of a cohort's enrolments against its test; None if
            there are none, NaN where one is missing. The first of this many is slower than those that follow.
        """
        sizes = tuple(-1 if scores is None else np.size(scores) for scores in (enroll, test))
        prepared = self._prepared.get(sizes)
        if prepared is None:
            nobody = dict.fromkeys(("enroll", "test"))
            blocks = one_trial(score, {"enroll": enroll, "test": test}, nobody, nobody)
            prepared = self.prepare(self.model, blocks)
            self._prepared.clear()  # a service has cohorts of one size
            self._prepared[sizes] = prepared
        return float(prepared.normalize_one(score, enroll, test))


def prepare_model(
    method: str,
    kind: type,
    prepare: Callable[..., Any],
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
        return ModelNorm(model, prepare)
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
