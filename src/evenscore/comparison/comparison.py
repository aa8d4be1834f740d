"""What a comparison of norms found: plain records, which tables, files and the report are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenscore.calibrate import Calibration, calibration_and_options
from evenscore.comparison.cohorts import CohortDiagnostics
from evenscore.comparison.data import DataSummary
from evenscore.comparison.likeness import SideLikeness
from evenscore.comparison.needs import too_few
from evenscore.comparison.recommendation import paired_with
from evenscore.errors import InputError
from evenscore.metrics import OperatingPoint, PairedTest, SortedScores, sort_scores
from evenscore.metrics.operating_points import PointLike, as_points
from evenscore.metrics.speaker_groups import MOST_GROUPS
from evenscore.metrics.uncertainty import Metric

if TYPE_CHECKING:
    import polars as pl
    from jaxtyping import Float

    from evenscore.comparison.examples import ExampleContributions
    from evenscore.comparison.trials import ComparedTrials
    from evenscore.comparison.verdict import Verdict
    from evenscore.files.streams import PathLike
    from evenscore.metrics.summary import ScoreSummary
    from evenscore.tables import ScoreTable

__all__ = ["METRICS", "Comparison", "Figures", "Judging", "Measured", "MethodResult", "RunFacts"]

# Small enough to change nothing where the classes overlap, and it keeps the weights finite where they do not.
_PENALTY = 1e-5
#: The metrics that are compared; lower is better.
METRICS: tuple[Metric, ...] = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")


@dataclass(frozen=True, kw_only=True)
class Judging:
    """How every candidate is judged: all of them the same way.

    Attributes
    ----------
    calibration, calibration_options
        The kind of calibration, and the options of its ``fit``.
    points
        Operating points of the detection costs; the first one is that of ``min_dcf`` and ``act_dcf``.
    replicates, level, seed
        Draws of speakers, level of the intervals, seed of the draws.
    folds
        Of the training side's speakers.
    """

    calibration: str
    calibration_options: Mapping[str, Any]
    points: tuple[OperatingPoint, ...]
    replicates: int
    level: float
    seed: int
    folds: int

    @classmethod
    def of(
        cls,
        calibration: str,
        *,
        points: PointLike | Iterable[PointLike],
        metric: str,
        replicates: int,
        level: float,
        seed: int,
        folds: int,
        fewest_folds: int,
    ) -> Judging:
        """Refuse what cannot be meant before any work is done; ``metric`` is what candidates are ranked by.

        Calibrations without options that weigh scores get a tiny penalty.

        Examples
        --------
        >>> how = {"points": 0.01, "metric": "eer", "replicates": 9, "level": 0.9, "seed": 0, "folds": 3}
        >>> Judging.of("logistic", **how, fewest_folds=3).calibration_options
        {'l2': 1e-05}
        >>> Judging.of("logistic:l2=0.1", **how, fewest_folds=3).calibration_options
        {'l2': 0.1}
        """
        name, options = calibration_and_options(calibration)
        if not options and name in ("logistic", "saturating"):
            options = {"l2": _PENALTY}
        if metric not in METRICS:
            raise InputError(f"candidates cannot be ranked by {metric!r}; choose one of {', '.join(METRICS)}")
        if replicates < 1:
            raise InputError(f"bootstrap is {replicates}, but must be at least 1; 1000 is usual")
        if not 0 < level < 1:
            raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
        if folds < fewest_folds:
            raise InputError(f"folds is {folds}, but must be at least {fewest_folds}")
        return cls(
            calibration=name,
            calibration_options=options,
            points=as_points(points),
            replicates=replicates,
            level=level,
            seed=seed,
            folds=folds,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """Metrics of one set of trials.

    Attributes
    ----------
    values
        As `evenscore.evaluate` returns them.
    intervals
        ``[low, high]`` of each metric in the same shape, from draws of speakers (see `evenscore.bootstrap`); None
        where they were not asked for.
    """

    values: Mapping[str, Any]
    intervals: Mapping[str, Any] | None = None

    def value(self, metric: str, point: int = 0) -> float:
        """Return a metric; a detection cost at an operating point."""
        return float(_at(self.values, metric, point)[metric])

    def interval(self, metric: str, point: int = 0) -> tuple[float, float] | None:
        """Return the ends of a metric's interval."""
        if self.intervals is None:
            return None
        low, high = _at(self.intervals, metric, point)[metric]
        return low, high


def _at(figures: Mapping[str, Any], metric: str, point: int) -> Mapping[str, Any]:
    """Return where a metric stands among figures."""
    found: Mapping[str, Any] = figures["dcf"][point] if point and metric in ("min_dcf", "act_dcf") else figures
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """The evaluation trials of one candidate, and how good they are.

    Attributes
    ----------
    scores
        The normalized evaluation trials, one number per trial in the order of ``Comparison.trials``; where they are
        not in memory, a table for each condition.
    llrs
        The same, calibrated: log-likelihood ratios.
    figures
        Metrics of ``llrs``, with intervals.
    conditions
        The same for each phrase or condition, by name, without intervals; empty if there is only one.
    uncalibrated
        Metrics of ``scores`` where they are log-likelihood ratios by themselves; else None.
    replicates
        Each metric in every draw of speakers.
    summaries
        Of ``scores`` and ``llrs`` where these are not in memory, else None; figures and curves come from them.
    """

    scores: Float[np.ndarray, " n"] | tuple[ScoreTable, ...]
    llrs: Float[np.ndarray, " n"] | tuple[ScoreTable, ...]
    figures: Figures
    conditions: Mapping[str, Figures]
    uncalibrated: Figures | None
    replicates: Mapping[str, Float[np.ndarray, " b"]]
    summaries: Mapping[str, ScoreSummary] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodResult(Measured):
    """One method: what it was, what it made of the evaluation trials (see `Measured`), and how good that is.

    Attributes
    ----------
    name
        What it is called in tables, such as ``"as:top_k=100"``.
    norm, options
        The norm, as `evenscore.fit_norm` knows it, and its options.
    training
        Metrics of the training trials, each calibrated without its speakers (see `evenscore.cross_calibrate`); None
        where there are too few speakers for that.
    calibration
        Fitted to the training trials, which have not met their own speakers.
    model
        What was trained: a `ScoreModel` for ``lgsm``, None for methods that learn nothing.
    is_llr
        Whether ``scores`` are log-likelihood ratios by themselves.
    notes
        Sentences about the method.
    seconds
        What fitting, normalizing and measuring took.
    to_raw, to_best
        For each metric this method against ``raw`` and against the best method, on the same draws of speakers; the
        intervals hold for all methods at once.
    best_share
        The share of the draws in which no other method was better.
    worst_loss
        What it loses to the best method of a draw in the worst draws: only a share of 1 - ``level`` is worse.
    contributions
        For methods that can take an LLR apart: what each feature adds to the LLRs of some example trials.
    """

    name: str
    norm: str
    options: Mapping[str, Any]
    training: Figures | None
    calibration: Calibration
    model: Any = None
    is_llr: bool = False
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    to_raw: Mapping[str, PairedTest] = field(default_factory=dict)
    to_best: Mapping[str, PairedTest] = field(default_factory=dict)
    best_share: float = 0.0
    worst_loss: float = 0.0
    contributions: ExampleContributions | None = None


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """How a comparison was made.

    Attributes
    ----------
    command
        The exact command line; empty when it was made from Python.
    time
        When it was finished, as an ISO date in UTC.
    seconds
        What it took, without the methods that were finished before.
    versions
        Of evenscore, Python and the libraries.
    resumed
        Names of the methods that an earlier run had finished.
    """

    command: str
    time: str
    seconds: float
    versions: Mapping[str, str]
    resumed: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Norms, compared on the same trials. Made by `compare`.

    Attributes
    ----------
    methods
        The methods that ran, best first.
    not_run
        Those that could not run: name and reason.
    trials
        The evaluation trials: labels, conditions and speakers of each; where they are not in memory, how many.
    rank_by
        The metric that ranks them.
    how
        How all of them were judged: calibration, operating points, draws of speakers.
    data
        How many speakers, enrolments, tests and trials there are on each side.
    cohorts
        What is known about the cohort of each condition.
    likeness
        Whether the evaluation side is like the training side, as cohort scores of the enrolments and of the tests tell;
        empty if there are none.
    warnings
        Sentences that the user should read before the figures.
    run
        Versions, command, time.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, compare, simulate, simulate_blocks
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.5], [1.5]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    >>> training = LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=1))
    >>> evaluation = LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=2))
    >>> comparison = compare([training], [evaluation], ["raw", "z", "s"], bootstrap=200)
    >>> comparison.best.name
    's'
    >>> comparison.table()["method"].to_list()
    ['s', 'z', 'raw']
    """

    methods: tuple[MethodResult, ...]
    not_run: Mapping[str, str]
    trials: ComparedTrials
    rank_by: Metric
    how: Judging
    data: DataSummary
    cohorts: tuple[CohortDiagnostics, ...]
    likeness: tuple[SideLikeness, ...]
    warnings: tuple[str, ...]
    run: RunFacts

    @property
    def best(self) -> MethodResult:
        """The method that is best by ``rank_by``."""
        return self.methods[0]

    @property
    def raw(self) -> MethodResult:
        """The calibrated raw scores, which every comparison has."""
        return self["raw"]

    def __getitem__(self, name: str) -> MethodResult:
        found = [method for method in self.methods if method.name == name]
        found = found or [method for method in self.methods if method.norm == name]  # "as" for "as:top_k=0.2"
        if len(found) == 1:
            return found[0]
        names = ", ".join(method.name for method in self.methods)
        raise InputError(f"there is no result of {name!r}; there are {names}")

    @property
    def unlike(self) -> bool:
        """Whether the evaluation side is unlike the training side."""
        return any(one.unlike for one in self.likeness)

    @property
    def too_few(self) -> dict[str, str]:
        """The methods for which the training side is too small, each with the reason."""
        return too_few(self.methods, self.data.training)

    def paired(self, a: MethodResult, b: MethodResult) -> PairedTest:
        """Return whether one method is better than another by ``rank_by``, on the same draws of speakers.

        The interval is wide enough for the differences of all methods to ``b`` at once.
        """
        tests = paired_with(self.methods, b, self.rank_by, self.how.level, len(self.trials.speakers))
        return tests[self.methods.index(a)]

    @property
    def drawn(self) -> str:
        """What was drawn for the intervals: speakers, or groups of them where scores are not in memory."""
        number = len(self.trials.speakers)
        if self.best.summaries is None or number <= MOST_GROUPS:
            return f"{number} speakers"
        return f"{MOST_GROUPS} groups of {number} speakers"

    def sorted_scores(self, name: str, kind: Literal["scores", "llrs"]) -> SortedScores:
        """Return scores or LLRs of a method, sorted; where they are not in memory, the weighted bins of a summary."""
        method = self[name]
        if method.summaries is not None:
            return method.summaries[kind].sorted_scores()
        return sort_scores(getattr(method, kind), self.trials.labels)

    @property
    def verdict(self) -> Verdict:
        """Which method to use, and how sure that is; its text is in plain words."""
        from evenscore.comparison.verdict import verdict_of

        return verdict_of(self)

    def table(self) -> pl.DataFrame:
        """Return one row per method, best first, with every metric and the ends of its interval."""
        from evenscore.comparison.results import method_table

        return method_table(self)

    def _repr_html_(self) -> str:
        """Return a table for notebooks, with the verdict above it."""
        from evenscore.comparison.results import html_view

        return html_view(self)

    def condition_table(self) -> pl.DataFrame:
        """Return one row per method and condition."""
        from evenscore.comparison.results import condition_table

        return condition_table(self)

    def results(self) -> dict[str, Any]:
        """Return everything but the scores as plain numbers, texts and lists: the content of ``results.json``."""
        from evenscore.comparison.results import results_of

        return results_of(self)

    def save(self, directory: PathLike) -> None:
        """Write scores, log-likelihood ratios, models, calibrations and ``results.json`` into a directory."""
        from evenscore.comparison.folder import save_comparison

        save_comparison(self, directory)
