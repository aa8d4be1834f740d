"""Norms as methods that are trained on labelled scores: one call for the classical ones and for those with a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

from evenscore.errors import InputError
from evenscore.norms.normalize import described_norm, normalize_by
from evenscore.norms.registry import Normalizer, norm_methods, prepare_norm
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.labelled_blocks import labelled_parts

__all__ = ["FittedNorm", "fit_methods", "fit_norm", "register_trainer"]


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
        cohort, so that a calibration can be fitted to them.
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


Trainer = Callable[..., FittedNorm]

# A name leads to a trainer, or to "module:function" of one, which is imported when it is first used.
_TRAINERS: dict[str, Trainer | str] = {
    "raw": "evenscore.norms.fitting:_fit_raw",
    "lgsm": "evenscore.norms.score_model:fit_score_model_norm",
    "evidence": "evenscore.evidence.norm:fit_evidence_norm",
}


def register_trainer(method: str, trainer: Trainer | str) -> None:
    """Make known how a norm is trained.

    Parameters
    ----------
    method
        The name; a name that is taken is an error.
    trainer
        Called as ``trainer(method, training, progress=..., **options)`` with a list of `LabelledBlocks`, and with
        ``client`` if one was given; returns a `FittedNorm`. Or ``"package.module:function"``, imported when it is
        first used.

    Examples
    --------
    >>> def train(method, training, *, progress):
    ...     return FittedNorm(method=method, normalizer=prepare_norm("s"), training_scores=[])
    >>> register_trainer("my-trained-norm", train)
    >>> "my-trained-norm" in fit_methods()
    True
    """
    if method in _TRAINERS:
        raise InputError(f"there is a trainer for {method!r} already; take another name")
    _TRAINERS[method] = trainer


def fit_methods() -> tuple[str, ...]:
    """Return the names of all methods that `fit_norm` knows."""
    return tuple(dict.fromkeys(("raw", *norm_methods(), *_TRAINERS)))


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
    trainer = _TRAINERS.get(method, _fit_nothing)
    if isinstance(trainer, str):
        module, _, name = trainer.partition(":")
        trainer = getattr(import_module(module), name)
    where = {} if client is None else {"client": client}
    return trainer(method, parts, progress=progress, **where, **options)


def _fit_nothing(
    method: str,
    training: Sequence[LabelledBlocks],
    *,
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> FittedNorm:
    """Prepare a norm that has nothing to learn."""
    norm = prepare_norm(method, **options)
    scores = []
    for place, part in enumerate(training):
        progress("normalizing the training scores", place / len(training))
        scores.append(normalize_by(norm, part.blocks, partial(described_norm, method, options), client=client))
    return FittedNorm(method=method, normalizer=norm, training_scores=scores)


class _Raw:
    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        return blocks.trials


def _fit_raw(
    method: str, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent
) -> FittedNorm:
    return FittedNorm(method=method, normalizer=_Raw(), training_scores=[part.blocks.trials for part in training])
