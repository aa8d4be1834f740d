"""Comparing norms: the one call that answers which norm to use."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.comparison.cohorts import CohortDiagnostics, cohort_diagnostics, usual_target
from evenscore.comparison.comparison import METRICS, Comparison, Judging, Measured, MethodResult, RunFacts
from evenscore.comparison.data import (
    DataSummary,
    Sides,
    centering_warnings,
    check_data,
    cohort_warnings,
    inverted_warnings,
    summary_of,
)
from evenscore.comparison.examples import with_examples
from evenscore.comparison.judging import judge, or_reason, training_points
from evenscore.comparison.likeness import SideLikeness, likeness_of, unlike_warnings
from evenscore.comparison.methods import RAW, Method, as_methods
from evenscore.comparison.needs import size_warnings, too_few
from evenscore.comparison.recommendation import losses_of, paired_with, worst_loss
from evenscore.errors import FileError, InputError
from evenscore.metrics.operating_points import DEFAULT_POINTS, PointLike
from evenscore.metrics.uncertainty import Metric
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks
from evenscore.tables.labelled_blocks import labelled_parts
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from evenscore.comparison.folder import ResultFolder
    from evenscore.files.streams import PathLike
    from evenscore.tables import ScoreTable

__all__ = ["compare"]

_BITS = 16  # of the summary that tells how targets usually score
_LIBRARIES = ("evenscore", "numpy", "scipy", "numba", "polars")


@one_thread_per_product()
def compare(
    training: LabelledBlocks | Sequence[LabelledBlocks],
    evaluation: LabelledBlocks | Sequence[LabelledBlocks],
    methods: Iterable[str | Method] | None = None,
    *,
    calibration: str = "logistic",
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    rank_by: Metric = "cllr",
    bootstrap: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    folds: int = 5,
    directory: PathLike | None = None,
    write_scores: bool = True,
    allow_overlap: bool = False,
    command: str = "",
    client: Any = None,
    memory: float | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Compare norms on one's own scores: which one to use, what it gains, and how sure that is.

    Each method is fitted and calibrated on the training side only, where no trial meets its own speakers in its
    cohort; then it normalizes the evaluation trials once. All are measured on the same draws of evaluation speakers,
    so that their differences have intervals, too.

    Parameters
    ----------
    training, evaluation
        One `LabelledBlocks` for each phrase or condition. With speakers in the blocks, overlaps are found, and a
        trial's own speakers are left out of its cohort; without, ids that target trials connect are of one speaker.
        Evaluation trials that are not in memory stay where they are: figures come from summaries, with bounds, and
        groups of speakers are drawn instead of speakers if there are more than 40 of these.
    methods
        Names of norms with their options, such as ``"as:top_k=100"``, or `Method` records; by default raw, z, t, zt,
        tz, s, as, at, lgsm (also without a norm, as ``lgsm:dim=0``), and the trained ones that are there. ``raw`` is
        always added. Adaptive norms for which no ``top_k`` is given get the usual one, which their names then tell.
    calibration
        A name in `CALIBRATIONS`, the same for all methods, with the options of its ``fit`` after colons, such as
        ``"logistic:l2=1e-3"``. By default logistic, with the penalty l2 = 1e-5 (saturating has it, too), which changes
        next to nothing but keeps it finite where scores have no errors.
    points
        Operating points of the detection costs; the first one counts for ``min_dcf`` and ``act_dcf``.
    rank_by
        The metric of the calibrated scores that ranks the methods: ``"cllr"``, ``"eer"``, ``"min_dcf"``,
        ``"act_dcf"`` or ``"min_cllr"``.
    bootstrap, level, seed
        Draws of speakers, level of the intervals, seed of the draws.
    folds
        Of speakers, for the cross-validated figures of the training side.
    directory
        Where to keep each method's scores, calibration, model and figures as soon as it is finished, and
        ``results.json`` in the end. A run that was stopped goes on from there; results of other data or options are
        not used.
    write_scores
        Whether normalized scores that are not in memory are kept there, too: one table of scores per method.
    allow_overlap
        Go on with a warning if speakers are on both sides.
    command
        The command line, for the report.
    client
        A `distributed.Client` whose workers read and normalize what is not in memory; None does it here.
    memory
        Bytes that work on training scores that are not in memory may take there, by default a quarter of it: then they
        are brought there. A larger training side is fitted from sums and calibrated from a summary.
    progress
        Called with the name of a stage (each method is one) and the fraction done.

    Returns
    -------
    Comparison
        With ``table()``, ``best``, ``verdict``, ``results()``, ``save(directory)`` and ``report(path)``.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate, simulate_blocks
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    >>> training = LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=1))
    >>> evaluation = LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=2))
    >>> comparison = compare([training], [evaluation], ["z", "s"], bootstrap=200)
    >>> [method.name for method in comparison.methods]
    ['s', 'z', 'raw']
    >>> comparison.best.to_raw["cllr"].interval.high < 0
    True
    """
    start = time.perf_counter()
    how = Judging.of(
        calibration,
        points=points,
        metric=rank_by,
        replicates=bootstrap,
        level=level,
        seed=seed,
        folds=folds,
        fewest_folds=3,
    )
    training = labelled_parts(training, "training")
    evaluation = labelled_parts(evaluation, "evaluation")
    wanted = as_methods(methods, [*training, *evaluation])
    progress("checking the data", 0.0)
    sides, warnings = Sides.of(training, evaluation, client=client, memory=memory, progress=progress)
    found = _look_at(sides, warnings, allow_overlap=allow_overlap, client=client, progress=progress)
    progress("checking the data", 1.0)
    folder = None
    with ExitStack() as alone:
        if directory is not None:
            from evenscore.comparison.folder import ResultFolder
            from evenscore.files.working_files import only_run

            folder = ResultFolder.of(directory, wanted, sides, how, with_scores=write_scores)
            alone.enter_context(only_run(Path(directory), directory))
        judged, not_run, resumed = _judge_all(wanted, sides, how, folder, progress)
    results = _ranked(judged, rank_by, level, len(sides.trials.speakers))
    comparison = Comparison(
        methods=tuple(with_examples(method, sides.trials, sides.evaluation) for method in results),
        not_run=not_run,
        trials=sides.trials,
        rank_by=rank_by,
        how=how,
        data=found.data,
        cohorts=found.cohorts,
        likeness=found.likeness,
        warnings=(
            *found.warnings,
            *cohort_warnings(found.cohorts),
            *size_warnings(too_few(results, found.data.training)),
            *unlike_warnings(found.likeness),
        ),
        run=RunFacts(
            command=command,
            time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            seconds=time.perf_counter() - start,
            versions=_versions(),
            resumed=tuple(resumed),
        ),
    )
    if directory is not None:
        from evenscore.comparison.folder import write_results

        write_results(comparison, directory)
    return comparison


@dataclass(frozen=True, kw_only=True, eq=False)
class _Findings:
    """What the scores of both sides tell before any method is tried."""

    data: DataSummary
    cohorts: tuple[CohortDiagnostics, ...]
    likeness: tuple[SideLikeness, ...]
    warnings: list[str]


def _look_at(sides: Sides, warnings: list[str], *, allow_overlap: bool, client: Any, progress: Progress) -> _Findings:
    """Count, check and compare the two sides; what is odd about them is added to the warnings."""
    data = summary_of(sides.training_trials, sides.trials)
    speakers = sides.training_trials.speakers, sides.trials.speakers
    warnings = check_data(data, speakers, allow_overlap=allow_overlap) + warnings + centering_warnings(sides.training)
    scale: dict[str, Any] = {"client": client, "progress": progress}
    trained_on = [training_points([part], bits=_BITS, **scale) for part in sides.training]
    known = [training_points([part]) for part in sides.evaluation if part.is_in_memory]
    return _Findings(
        data=data,
        cohorts=cohort_diagnostics(sides.evaluation, usual_target(trained_on), speakers, **scale),
        likeness=likeness_of(sides, trained_on, **scale),
        warnings=warnings + inverted_warnings({"training": trained_on, "evaluation": known}),
    )


def _judge_all(
    methods: Sequence[Method],
    sides: Sides,
    how: Judging,
    folder: ResultFolder | None,
    progress: Progress,
) -> tuple[list[MethodResult], dict[str, str], list[str]]:
    """Judge the methods one by one; those that cannot run are listed with the reason."""
    judged, not_run, resumed = [], {}, []
    for method in methods:
        progress(method.name, 0.0)
        found = None if folder is None else folder.load(method)
        if found is not None:
            resumed.append(method.name)
            judged.append(found)
            progress(method.name, 1.0)
            continue
        unwritten: list[FileError] = []
        keep = None if folder is None else partial(_kept, folder, method, unwritten)
        result = or_reason(judge, method, sides, how, progress, keep)
        if unwritten:  # a full disk is no reason against a method
            raise unwritten[0]
        if isinstance(result, str):
            not_run[method.name] = result
            continue
        if folder is not None:
            result = folder.store(result)
        judged.append(result)
    if RAW in not_run:
        raise InputError(f"even the raw scores cannot be judged: {not_run[RAW]}")
    return judged, not_run, resumed


def _kept(
    folder: ResultFolder,
    method: Method,
    unwritten: list[FileError],
    tables: Sequence[ScoreTable],
    progress: Progress,
) -> Sequence[ScoreTable]:
    try:
        return folder.keep_scores(method, tables, progress)
    except FileError as error:
        unwritten.append(error)
        raise


def _ranked(judged: Sequence[MethodResult], rank_by: Metric, level: float, n_speakers: int) -> tuple[MethodResult, ...]:
    """Return the results, best first; methods that are equally good stay in the order in which they come."""
    order = sorted(judged, key=lambda one: one.figures.values[rank_by])
    raw = next(one for one in judged if one.name == RAW)
    losses = losses_of(order, rank_by)
    to_raw, to_best = (
        {metric: paired_with(order, other, metric, level, n_speakers) for metric in METRICS}
        for other in (raw, order[0])
    )
    return tuple(
        replace(
            one,
            to_raw={metric: tests[place] for metric, tests in to_raw.items()},
            to_best={metric: tests[place] for metric, tests in to_best.items()},
            best_share=share,
            worst_loss=worst_loss(losses[one.name], level),
        )
        for place, (one, share) in enumerate(zip(order, _best_shares(order, rank_by), strict=True))
    )


def _best_shares(order: Sequence[Measured], rank_by: Metric) -> list[float]:
    """Return in which share of the draws each method is as good as the best; equal methods share."""
    values: npt.NDArray[np.float64] = np.stack([one.replicates[rank_by] for one in order])
    return [float(share) for share in (values == values.min(axis=0)).mean(axis=1)]


def _versions() -> dict[str, str]:
    installed = {name: _version(name) for name in _LIBRARIES}
    return {"python": platform.python_version()} | {name: found for name, found in installed.items() if found}


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
