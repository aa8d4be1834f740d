"""Choosing a cohort by cross-validation on the training side: which members, how many, and which top-k."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from evenscore.comparison.cohort_choice import CohortCandidate, CohortChoice, candidate_name
from evenscore.comparison.cohort_runs import Run, Search, Way, measured_runs
from evenscore.comparison.comparison import METRICS
from evenscore.comparison.judging import calibration_settings
from evenscore.comparison.methods import RAW, Method
from evenscore.comparison.restricted import cohort_members
from evenscore.comparison.trials import FROM_BLOCKS, ComparedTrials, compared_trials
from evenscore.errors import InputError
from evenscore.metrics import Interval
from evenscore.metrics.operating_points import DEFAULT_POINTS, PointLike, as_points
from evenscore.metrics.uncertainty import Metric
from evenscore.norms import fit_methods
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks

__all__ = ["choose_cohort"]

ALL = "all"


def choose_cohort(
    training: Sequence[LabelledBlocks],
    method: str | Method = "as",
    *,
    sizes: Sequence[int | None] = (None,),
    top_k: Sequence[int | float | None] = (None,),
    cohorts: Mapping[str, Collection[str]] | None = None,
    metric: Metric = "cllr",
    calibration: str = "logistic",
    points: PointLike | Sequence[PointLike] = DEFAULT_POINTS,
    folds: int = 5,
    repeats: int = 5,
    bootstrap: int = 200,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress = silent,
) -> CohortChoice:
    """Find out which cohort, how large, and which top-k is best, without looking at evaluation trials.

    The speakers of the training side are divided into folds. The trials among the speakers of one fold are normalized
    and calibrated by what was fitted to the trials among all others, with a cohort in which none of the fold's
    speakers is. Every combination of ``cohorts``, ``sizes`` and ``top_k`` is measured on the same trials.

    Parameters
    ----------
    training
        One `LabelledBlocks` for each phrase or condition, with speakers; see `LabelledBlocks.own_cohort`.
    method
        The norm, such as ``"as"``, ``"s"`` or ``"as:select=cross"``.
    sizes
        How many of the cohort's speakers to draw (of its members, if their speakers are not known); None takes all.
    top_k
        What an adaptive norm takes: counts, fractions, or None for what is usual.
    cohorts
        Candidates by name: ids or speakers of the members; by default everybody.
    metric
        What to compare by: ``"cllr"``, ``"eer"``, ``"min_dcf"``, ``"act_dcf"`` or ``"min_cllr"``.
    calibration, points
        As in `compare`.
    folds
        Of speakers, at least 2.
    repeats
        How many cohorts of each size are drawn at random; a larger one contains the smaller ones.
    bootstrap, level, seed
        Draws of the trials' speakers for the intervals, their level, and the seed of all draws.
    progress
        Called with the name of the stage and the fraction done.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n // 2}" for n in range(60)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers, speakers, seed=1))
    >>> choice = choose_cohort([dev], "as", top_k=[2, 0.5], bootstrap=50)
    >>> choice.best.top_k
    0.5
    >>> choice.text.startswith("Take all, top_k 0.5: Cllr ")
    True
    """
    chosen = method if isinstance(method, Method) else Method.of(method)
    kind, settings = calibration_settings(calibration)
    trials = _checked(training, chosen, metric, sizes, folds, repeats, bootstrap)
    named = {ALL: None} if cohorts is None else {name: frozenset(ids) for name, ids in cohorts.items()}
    by_speaker = all(who is not None for part in training for _, who in cohort_members(part.blocks))
    search = Search(
        training=training,
        method=chosen,
        folds=_folds(trials, folds, seed),
        members=named,
        order=[_drawn_order(training, by_speaker, seed + draw) for draw in range(repeats)],
        by_speaker=by_speaker,
        calibration=kind,
        calibration_options=settings,
        points=as_points(points),
        replicates=bootstrap,
        seed=seed,
    )
    ways = [Way(cohort=name, size=size, top_k=k) for name in named for size in sizes for k in top_k]
    if not ways:
        raise InputError("there is nothing to choose from; give sizes, values of top_k, or cohorts")
    raw = measured_runs(search, Way(cohort=next(iter(named)), size=None, top_k=None), Method(RAW, RAW))
    measured, not_run = _measure_all(search, ways, progress)
    return CohortChoice(
        method=chosen.name,
        metric=metric,
        unit=search.unit,
        candidates=_candidates(measured, metric, level),
        not_run=not_run,
        raw=raw[0].figures[metric],
        folds=folds,
        repeats=repeats,
        seed=seed,
        n_trials=raw[0].figures["n_target"] + raw[0].figures["n_nontarget"],
    )


def _checked(
    training: Sequence[LabelledBlocks],
    method: Method,
    metric: str,
    sizes: Sequence[int | None],
    folds: int,
    repeats: int,
    replicates: int,
) -> ComparedTrials:
    """Refuse what cannot be meant, and return the trials."""
    if not training:
        raise InputError("there are no training scores; give at least one LabelledBlocks")
    if method.norm not in fit_methods() or method.norm == RAW:
        raise InputError(f"there is no norm {method.norm!r} that uses a cohort; choose one, such as 'as'")
    if metric not in METRICS:
        raise InputError(f"cohorts cannot be compared by {metric!r}; choose one of {', '.join(METRICS)}")
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1), ("bootstrap", replicates, 1)):
        if value < least:
            raise InputError(f"{name} is {value}, but must be at least {least}")
    odd = [size for size in sizes if size is not None and size < 1]
    if odd:
        raise InputError(f"a cohort size is {odd[0]}, but must be at least 1")
    trials = compared_trials(training)
    if trials.speakers_from != FROM_BLOCKS:
        raise InputError("the speakers of the training trials are not known, so there are no folds; give a speaker map")
    if any(not cohort_members(part.blocks) for part in training):
        raise InputError("the training side has no cohort scores; use LabelledBlocks.own_cohort, or give a cohort")
    if len(trials.speakers) < 2 * folds:
        count = len(trials.speakers)
        raise InputError(f"there are {count} speakers, too few for {folds} folds of two; give fewer folds")
    return trials


def _folds(trials: ComparedTrials, number: int, seed: int) -> list[frozenset[str]]:
    """Return the speakers of each fold."""
    order = np.random.default_rng(seed).permutation(len(trials.speakers))
    return [frozenset(trials.speakers[at] for at in order[fold::number]) for fold in range(number)]


def _drawn_order(training: Sequence[LabelledBlocks], by_speaker: bool, seed: int) -> list[str]:
    """Return all speakers of the cohort (or all its members) in random order."""
    sides = [side for part in training for side in cohort_members(part.blocks)]
    found = {name for ids, who in sides for name in (who if by_speaker and who is not None else ids).tolist()}
    names = sorted(found - {None})
    return [names[at] for at in np.random.default_rng(seed).permutation(len(names))]


def _measure_all(
    search: Search, ways: Sequence[Way], progress: Progress
) -> tuple[list[tuple[Way, list[Run]]], dict[str, str]]:
    """Measure every way; those that cannot run are listed with the reason."""
    measured: list[tuple[Way, list[Run]]] = []
    not_run: dict[str, str] = {}
    for place, way in enumerate(ways):
        progress("candidates", place / len(ways))
        found = _runs_or_reason(search, way)
        if isinstance(found, str):
            not_run[candidate_name(way.cohort, way.size, way.top_k, search.unit)] = found
        else:
            measured.append((way, found))
    if not measured:
        name, reason = next(iter(not_run.items()))
        raise InputError(f"no cohort could be measured; {name}: {reason}")
    return measured, not_run


def _runs_or_reason(search: Search, way: Way) -> list[Run] | str:
    method = search.method
    if way.top_k is not None:
        method = Method(method.name, method.norm, {**method.options, "top_k": way.top_k})
    try:
        return measured_runs(search, way, method)
    except InputError as error:
        return str(error)


def _candidates(
    measured: Sequence[tuple[Way, Sequence[Run]]], metric: Metric, level: float
) -> tuple[CohortCandidate, ...]:
    means = [np.mean([run.replicates[metric] for run in runs], axis=0) for _, runs in measured]
    values = [np.array([run.figures[metric] for run in runs]) for _, runs in measured]
    best = int(np.argmin([one.mean() for one in values]))
    return tuple(
        CohortCandidate(
            cohort=way.cohort,
            size=way.size,
            top_k=way.top_k,
            members=float(np.mean([run.members for run in runs])),
            values=value,
            figures={name: float(np.mean([run.figures[name] for run in runs])) for name in METRICS},
            interval=Interval.of(mean, level),
            to_best=Interval.of(mean - means[best], level),
        )
        for (way, runs), value, mean in zip(measured, values, means, strict=True)
    )
