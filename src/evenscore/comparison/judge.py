"""One method: trained and calibrated on the training side, measured on the evaluation side, compared with others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenscore.calibrate.base import calibration_class
from evenscore.comparison.record import METRICS, ComparedMetric, Figures, Floats, MethodResult, Settings
from evenscore.comparison.sides import Trials
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.evaluation import Evaluation, evaluate, evaluate_by
from evenscore.metrics.resampling import PairedTest, bootstrap
from evenscore.norms.folds import assign_folds
from evenscore.norms.registry import METHODS, fit_norm, method_named
from evenscore.spelling import parse_name

__all__ = ["Method", "judge", "paired", "parse_methods", "with_differences"]

_TRAINED_FOLDS = 10  # of own speakers in training trials, for slow norms; one each changes Cllr of the demo by 0.5 %
_VALIDATED_FOLDS = 3  # at most so many trainings of a norm for its cross-validation
_SEPARATED = "its training scores have no errors, so that the scale of its LLRs is a guess"


@dataclass(frozen=True)
class Method:
    """A norm with its options, and what it is called in tables."""

    name: str
    norm: str
    options: Mapping[str, Any]


def parse_methods(names: Sequence[str]) -> list[Method]:
    """Return the methods that texts such as "as:top_k=100" name, without repetitions; raw is always the first.

    Examples
    --------
    >>> [method.name for method in parse_methods(["s", "as:top_k=100", "s"])]
    ['raw', 's', 'as:top_k=100']
    """
    if isinstance(names, str):
        raise InputError(f"methods is the single text {names!r}, but must be a list of names")
    found = []
    for name in dict.fromkeys(("raw", *names)):
        norm, options = parse_name(name)
        method_named(norm)  # refuses what is no norm before anything is computed
        found.append(Method(name, norm, options))
    return found


def judge(method: Method, training: Trials, evaluation: Trials, settings: Settings) -> MethodResult:
    """Fit a method and its calibration to the training side, normalize the evaluation trials once, and measure them."""
    start = time.perf_counter()
    trained = METHODS[method.norm].fit is not None  # on labels, so that its scores are LLRs by themselves
    fitted = fit_norm(method.norm, training.parts, **method.options)
    folds = _TRAINED_FOLDS if trained else None
    training_scores = training.scores([fitted.normalize(part.blocks, folds=folds) for part in training.parts])
    calibration = calibration_class(settings.calibration).fit(
        training_scores, training.labels, **settings.calibration_options
    )
    scores = evaluation.scores([fitted.normalize(part.blocks) for part in evaluation.parts])
    notes = []
    if training_scores[training.labels == 1].min() > training_scores[training.labels == 0].max():
        notes.append(_SEPARATED)
    cross_validated, own_validated = None, None
    try:
        cross_validated, own_validated = _cross_validate(method, training_scores, training, settings, trained)
    except InputError as error:
        notes.append(f"no cross-validated figures of the training side: {error}")
    llrs = np.asarray(calibration(scores))
    calibrated = _measure(llrs, evaluation, settings)
    own = _measure(scores, evaluation, settings) if trained else None
    own_is_better = (
        own_validated is not None and cross_validated is not None and own_validated.cllr < cross_validated.cllr
    )
    llrs = scores if own_is_better else llrs
    conditions = {}
    if len(evaluation.lists) > 1:
        names = np.repeat(evaluation.names, [len(one) for one in evaluation.lists])
        conditions = dict(evaluate_by(llrs, evaluation.labels, conditions=names, points=settings.points).conditions)
    return MethodResult(
        name=method.name,
        norm=method.norm,
        options=method.options,
        scores=scores,
        llrs=llrs,
        judged_by="own" if own_is_better else "calibrated",
        figures=own if own_is_better and own is not None else calibrated,
        calibrated=calibrated,
        own=own,
        training=cross_validated,
        training_own=own_validated,
        conditions=conditions,
        calibration=calibration,
        model=fitted.model,
        notes=tuple(notes),
        seconds=time.perf_counter() - start,
    )


def _measure(llrs: Floats, trials: Trials, settings: Settings) -> Figures:
    """Return all metrics of LLRs, of the trials and of every draw of speakers; the draws are the same for all LLRs."""
    side = Side(trials.speakers, trials.speakers)  # speakers in place of recordings are all that draws need
    rows, cols = trials.enroll.astype(np.int32), trials.test.astype(np.int32)
    listed = TrialList.trusted(side, side, rows, cols, llrs, trials.labels)
    drawn = bootstrap(listed, points=settings.points, replicates=settings.replicates, seed=settings.seed)
    return Figures(evaluate(llrs, trials.labels, points=settings.points), drawn)


def _cross_validate(
    method: Method, training_scores: Floats, training: Trials, settings: Settings, trained: bool
) -> tuple[Evaluation, Evaluation | None]:
    """Return the metrics of training trials by a calibration, and by a trained norm's own LLRs, without their speakers.

    Speakers are dealt out to folds. Trials within a fold are judged by what the trials of all other folds make: a
    calibration of the normalized scores ``training_scores``, and the norm itself if it is trained.
    """
    n_folds = min(settings.folds, _VALIDATED_FOLDS if trained else settings.folds, len(training.speakers))
    fold = assign_folds(list(training.speakers), n_folds)
    of_speaker = np.array([fold[name] for name in training.speakers])
    of_enroll, of_test = of_speaker[training.enroll], of_speaker[training.test]
    calibrated, own, labels = [], [], []
    for number in range(of_speaker.max() + 1):
        held, rest = (of_enroll == number) & (of_test == number), (of_enroll != number) & (of_test != number)
        scores = training_scores[held]
        if trained:
            names = [name for name, at in fold.items() if at == number]
            model = fit_norm(method.norm, training.restricted(rest, names).parts, **method.options)
            new = training.restricted(held, names)
            scores = new.scores([model.normalize(part.blocks) for part in new.parts])
        calibration = calibration_class(settings.calibration)
        found = calibration.fit(training_scores[rest], training.labels[rest], **settings.calibration_options)(scores)
        calibrated.append(np.asarray(found))
        own.append(scores)
        labels.append(training.labels[held])
    key = np.concatenate(labels)
    figures = evaluate(np.concatenate(calibrated), key, points=settings.points)
    return figures, evaluate(np.concatenate(own), key, points=settings.points) if trained else None


def with_differences(methods: Sequence[MethodResult], settings: Settings) -> tuple[MethodResult, ...]:
    """Return the methods, lowest Cllr first, with their differences to raw and to the best on the same draws."""
    order = sorted(methods, key=lambda one: one.figures.evaluation.cllr)
    raw = next(one for one in order if one.name == "raw")
    compared: Callable[[MethodResult, MethodResult], dict[str, PairedTest]] = lambda one, other: {  # noqa: E731
        metric: paired(one, other, metric, settings, len(order) - 1) for metric in METRICS
    }
    return tuple(replace(one, to_raw=compared(one, raw), to_best=compared(one, order[0])) for one in order)


def paired(
    one: MethodResult, other: MethodResult, metric: ComparedMetric, settings: Settings, n_compared: int
) -> PairedTest:
    """Return the difference of two methods on the same draws; its interval holds for all methods at once (Bonferroni).

    The more methods are compared, the likelier one of them is lucky: of ``n_compared`` intervals of this level, all
    hold with the probability that the settings ask for.
    """
    tests = max(n_compared, 1)
    found = PairedTest.from_replicates(
        metric,
        one.figures.value(metric),
        other.figures.value(metric),
        one.figures.bootstrap.replicates(metric),
        other.figures.bootstrap.replicates(metric),
        1 - (1 - settings.level) / tests,
        one.figures.bootstrap.n_speakers,
    )
    return replace(found, p_value=min(1.0, tests * found.p_value))
