"""Comparing norms: the one call that answers which norm to use."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

import numpy as np

from evenscore._version import __version__
from evenscore.calibrate.base import calibration_class
from evenscore.comparison.diagnostics import cohort_speakers, diagnose
from evenscore.comparison.judge import judge, parse_methods, with_differences
from evenscore.comparison.record import Comparison, DataSummary, Settings
from evenscore.comparison.sides import FROM_MAPS, FROM_TARGETS, Trials, pool_trials, shared_blocks
from evenscore.comparison.verdict import write_verdict
from evenscore.data.blocks import LabelledBlocks
from evenscore.errors import EvenscoreError, InputError
from evenscore.metrics.costs import DEFAULT_POINTS, OperatingPoint, PointLike, as_operating_points
from evenscore.parallel import Progress, one_blas_thread
from evenscore.spelling import parse_name

__all__ = ["DEFAULT_METHODS", "compare"]

DEFAULT_METHODS = ("raw", "z", "t", "zt", "s", "as", "lgsm", "evidence")
# Small enough to change nothing where the classes overlap, and it keeps the weights finite where they do not.
_PENALTY = 1e-5


def compare(
    training: LabelledBlocks | Sequence[LabelledBlocks],
    evaluation: LabelledBlocks | Sequence[LabelledBlocks],
    methods: Sequence[str] = DEFAULT_METHODS,
    *,
    calibration: str = "logistic",
    points: PointLike | Iterable[PointLike] = DEFAULT_POINTS,
    bootstrap: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    folds: int = 5,
    allow_overlap: bool = False,
    command: str = "",
    progress: Progress | None = None,
) -> Comparison:
    """Compare norms on one's own scores: which one to use, what it gains, and how sure that is.

    Each method is fitted and calibrated on the training side only, where a trial's own speakers are left out of its
    cohort; then it normalizes the evaluation trials once. All are measured on the same draws of evaluation speakers,
    so that their differences have intervals, too. Everything is in memory.

    Parameters
    ----------
    training, evaluation
        One `LabelledBlocks` for each phrase or condition. With speakers in the blocks, overlaps are found, and a
        trial's own speakers are left out of its cohort; without, ids that target trials connect are of one speaker.
    methods
        Names of norms with their options, such as ``"as:top_k=100"``. ``raw`` is always added.
    calibration
        A name in `CALIBRATIONS`, the same for all methods, with options of its ``fit`` after colons, such as
        ``"logistic:l2=1e-3"``. Without options, logistic and saturating calibration get the penalty l2 = 1e-5.
    points
        Operating points of the detection costs; the first one counts for ``min_dcf``, ``act_dcf`` and the verdict.
    bootstrap, level, seed
        Draws of speakers, level of the intervals, seed of the draws.
    folds
        Of speakers, for the cross-validated figures of the training side.
    allow_overlap
        Go on with a warning if speakers are on both sides.
    command
        The command line, for the report.
    progress
        Called with the number of methods that are done and the number of all.

    Returns
    -------
    Comparison
        The methods, lowest Cllr first, with all figures, a verdict, and what is odd about the data. A method that
        cannot run with these blocks is in ``failed``, with the reason.

    Examples
    --------
    >>> from evenscore import ScoreModel, simulate, simulate_blocks
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    >>> training = LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=1))
    >>> evaluation = LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=2))
    >>> comparison = compare(training, evaluation, ["z", "s"], bootstrap=200)
    >>> [method.name for method in comparison.methods], comparison.verdict.use
    (['s', 'z', 'raw'], 's')
    """
    start = time.perf_counter()
    settings = _settings(calibration, as_operating_points(points), bootstrap, level, seed, folds)
    wanted = parse_methods(methods)
    parts, new, diagnostics = shared_blocks(_as_parts(training, "training"), _as_parts(evaluation, "evaluation"))
    known, trials = pool_trials(parts, "training"), pool_trials(new, "evaluation")
    diagnostics += diagnose(known, trials, allow_overlap=allow_overlap)
    if len(wanted) * bootstrap * len(trials.labels) > 1 << 29:  # then draws of all methods repay loading compiled sums
        import evenscore.kernels  # noqa: F401
    judged, failed = [], {}
    with one_blas_thread():
        for done, method in enumerate(wanted):
            if progress is not None:
                progress(done, len(wanted))
            try:
                judged.append(judge(method, known, trials, settings))
            except Exception as error:  # a norm of one's own may raise anything
                if method.name == "raw":
                    raise
                refused = isinstance(error, EvenscoreError)
                failed[method.name] = str(error) if refused else f"{type(error).__name__}: {error}"
    ranked, data = with_differences(judged, settings), _summary(known, trials)
    if progress is not None:
        progress(len(wanted), len(wanted))
    return Comparison(
        methods=ranked,
        failed=failed,
        verdict=write_verdict(ranked, settings, data),
        diagnostics=tuple(diagnostics),
        settings=settings,
        data=data,
        trials=dict(zip(trials.names, trials.lists, strict=True)),
        labels=trials.labels,
        command=command,
        time=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seconds=time.perf_counter() - start,
        versions={"evenscore": __version__, "numpy": np.__version__, "python": platform.python_version()},
    )


def _as_parts(given: LabelledBlocks | Sequence[LabelledBlocks], side: str) -> list[LabelledBlocks]:
    parts = [given] if isinstance(given, LabelledBlocks) else list(given)
    if not parts or not all(isinstance(part, LabelledBlocks) for part in parts):
        raise InputError(f"the {side} side must be LabelledBlocks, or a list of them for several conditions")
    return parts


def _settings(
    calibration: str, points: tuple[OperatingPoint, ...], draws: int, level: float, seed: int, folds: int
) -> Settings:
    """Refuse what cannot be meant before any work is done."""
    name, options = parse_name(calibration)
    calibration_class(name)
    if not options and name in ("logistic", "saturating"):
        options = {"l2": _PENALTY}
    if draws < 1:
        raise InputError(f"bootstrap is {draws}, but must be at least 1; 1000 is usual")
    if not 0 < level < 1:
        raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
    if folds < 3:
        raise InputError(f"folds is {folds}, but must be at least 3")
    return Settings(
        calibration=name,
        calibration_options=options,
        points=points,
        replicates=draws,
        level=level,
        seed=seed,
        folds=folds,
    )


def _summary(training: Trials, evaluation: Trials) -> DataSummary:
    """Count what there is."""
    blocks = [part.blocks for part in evaluation.parts]
    members = cohort_speakers(evaluation.parts)
    of_training, of_evaluation = training.summaries(), evaluation.summaries()
    return DataSummary(
        training=of_training[0],
        evaluation=of_evaluation[0],
        training_conditions=of_training[1:],
        evaluation_conditions=of_evaluation[1:],
        cohort_enrolments=max(0 if one.cohort_enroll is None else len(one.cohort_enroll) for one in blocks),
        cohort_tests=max(0 if one.cohort_test is None else len(one.cohort_test) for one in blocks),
        cohort_speakers=None if members is None else len(members),
        speakers_from=FROM_TARGETS if FROM_TARGETS in (training.speakers_from, evaluation.speakers_from) else FROM_MAPS,
    )
