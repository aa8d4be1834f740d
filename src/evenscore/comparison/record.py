"""What a comparison of norms found: plain records, from which the table, ``results.json`` and the report are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.costs import OperatingPoint
from evenscore.metrics.evaluation import Evaluation, NotEvaluated
from evenscore.metrics.resampling import Bootstrap, Interval, PairedTest

if TYPE_CHECKING:
    from evenscore.calibrate.base import Calibration

__all__ = ["METRICS", "Comparison", "DataSummary", "Diagnostic", "Figures", "MethodResult", "Settings", "SideSummary"]
__all__ += ["ComparedMetric", "DiagnosticKind", "Verdict"]

Floats = npt.NDArray[np.float64]
ComparedMetric = Literal["eer", "min_dcf", "act_dcf", "cllr", "min_cllr"]
DiagnosticKind = Literal["size", "overlap", "hidden_targets", "inverted", "data"]

METRICS: tuple[ComparedMetric, ...] = get_args(ComparedMetric)  #: what is compared; lower is better
_FORMAT, _VERSION = "evenscore-comparison", 3


@dataclass(frozen=True, eq=False)
class Figures:
    """Metrics of one set of LLRs, and the same of every draw of speakers."""

    evaluation: Evaluation
    bootstrap: Bootstrap

    def value(self, metric: ComparedMetric, point: int = 0) -> float:
        """Return a metric; a detection cost at one of the operating points."""
        where = self.evaluation.costs[point] if metric in ("min_dcf", "act_dcf") else self.evaluation
        return float(getattr(where, metric))

    def interval(self, metric: ComparedMetric, point: int = 0, level: float = 0.95) -> Interval:
        """Return the confidence interval of a metric."""
        return self.bootstrap.interval(metric, level=level, point=point)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return the metrics by name, with ``intervals`` of the same names."""
        return self.evaluation.to_dict() | {"intervals": self.bootstrap.to_dict(level)}


@dataclass(frozen=True, kw_only=True, eq=False)
class MethodResult:
    """One method: what it is, what it made of the evaluation trials, and how good that is.

    A norm whose scores are log-likelihood ratios (lgsm, evidence) is judged twice, by its own LLRs and by calibrated
    ones; ``figures`` and ``llrs`` are those of the better one on the training side.
    """

    name: str  #: as in tables, such as "as:top_k=100"
    norm: str
    options: Mapping[str, Any]
    scores: Floats  #: normalized scores of the evaluation trials, in the order of `Comparison.labels`
    llrs: Floats  #: the LLRs by which the method is judged
    judged_by: Literal["calibrated", "own"]  #: which LLRs these are
    figures: Figures  #: of ``llrs``
    calibrated: Figures  #: of the calibrated scores
    own: Figures | None  #: of the norm's own LLRs; None for norms that give none
    training: Evaluation | None  #: cross-validated on the training side, calibrated; None if there are too few speakers
    training_own: Evaluation | None  #: the same by the norm's own LLRs
    conditions: Mapping[str, Evaluation | NotEvaluated]  #: of ``llrs`` by phrase or condition; empty if there is one
    calibration: Calibration  #: fitted to the normalized training trials
    model: object = None  #: what the norm learned: a `ScoreModel`, an `EvidenceModel`, or None
    notes: tuple[str, ...] = ()  #: sentences about the method
    seconds: float = 0.0
    to_raw: Mapping[str, PairedTest] = field(default_factory=dict)  #: by metric: this method less raw, paired
    to_best: Mapping[str, PairedTest] = field(default_factory=dict)  #: the same to the method with the lowest Cllr

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Return all but the scores."""
        return {
            "norm": self.norm,
            "options": self.options,
            "judged_by": self.judged_by,
            "figures": self.figures.to_dict(level),
            "calibrated": self.calibrated.to_dict(level),
            "own": self.own and self.own.to_dict(level),
            "training": {
                "calibrated": self.training and self.training.to_dict(),
                "own": self.training_own and self.training_own.to_dict(),
            },
            "conditions": {name: found.to_dict() for name, found in self.conditions.items()},
            "calibration": {"kind": self.calibration.kind, "parameters": asdict(self.calibration)},
            "to_raw": {metric: _test(test) for metric, test in self.to_raw.items()},
            "to_best": {metric: _test(test) for metric, test in self.to_best.items()},
            "notes": self.notes,
        }


def _test(test: PairedTest) -> dict[str, Any]:
    ends = [test.interval.low, test.interval.high]
    return {"difference": test.difference, "interval": ends, "p_value": test.p_value}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which method to use."""

    use: str  #: its name; "raw" if no norm is clearly better than raw scores
    sure: bool  #: whether it is clearly better than raw
    alike: tuple[str, ...]  #: methods that cannot be told from it
    sentences: tuple[str, ...]  #: the same in words, and how far its LLRs can be trusted

    @property
    def text(self) -> str:
        """The sentences, one after the other."""
        return " ".join(self.sentences)


@dataclass(frozen=True)
class Diagnostic:
    """Something that the user should know before the figures."""

    kind: DiagnosticKind
    message: str  #: a sentence
    examples: tuple[Mapping[str, str | float], ...] = ()  #: of hidden targets: trial, cohort, score


@dataclass(frozen=True, kw_only=True)
class SideSummary:
    """How much there is in one set of trials."""

    name: str  #: of the phrase or condition; "" for all together
    speakers: int
    enrolments: int
    tests: int
    trials: int
    targets: int
    nontargets: int


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """How much there is on the training side, on the evaluation side and in the cohort."""

    training: SideSummary
    evaluation: SideSummary
    training_conditions: tuple[SideSummary, ...]
    evaluation_conditions: tuple[SideSummary, ...]
    cohort_enrolments: int  #: members against which tests are scored; the largest of all conditions
    cohort_tests: int
    cohort_speakers: int | None  #: None where they are not known
    speakers_from: str  #: "speaker maps", or "target trials" if ids that these connect count as one speaker


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How every method is judged: all of them the same way."""

    calibration: str
    calibration_options: Mapping[str, Any]
    points: tuple[OperatingPoint, ...]  #: the first one is that of min_dcf and act_dcf
    replicates: int  #: draws of speakers
    level: float
    seed: int
    folds: int  #: of the training side's speakers


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Norms, compared on the same trials; made by `compare`.

    ``to_dict()`` has everything but the scores. DET curves and score distributions are drawn from ``labels`` and each
    method's ``scores`` and ``llrs``.
    """

    methods: tuple[MethodResult, ...]  #: lowest Cllr first; raw is always among them
    failed: Mapping[str, str]  #: methods that could not run, and why
    verdict: Verdict
    diagnostics: tuple[Diagnostic, ...]
    settings: Settings
    data: DataSummary
    trials: Mapping[str, TrialList]  #: raw evaluation trials of each phrase or condition, those with a label
    labels: npt.NDArray[np.int8]  #: of all of them, one after the other: 1 or 0
    command: str = ""  #: the command line, if there was one
    time: str = ""  #: when it was finished, ISO date in UTC
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> MethodResult:
        """The method with the lowest Cllr."""
        return self.methods[0]

    def __getitem__(self, name: str) -> MethodResult:
        found = [method for method in self.methods if name in (method.name, method.norm)]
        if not found:
            raise InputError(f"there is no result of {name!r}; there are {', '.join(one.name for one in self.methods)}")
        return next((method for method in found if method.name == name), found[0])

    def __str__(self) -> str:
        from evenscore.comparison.table import format_table

        return format_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the scores as JSON can hold it; infinite numbers become "inf" and "-inf", NaN null."""
        found: dict[str, Any] = _plain(
            {
                "format": _FORMAT,
                "version": _VERSION,
                "verdict": asdict(self.verdict) | {"text": self.verdict.text},
                "best": self.best.name,
                "settings": self.settings,
                "methods": {
                    one.name: one.to_dict(self.settings.level) | {"recommended": one.name == self.verdict.use}
                    for one in self.methods
                },
                "failed": self.failed,
                "diagnostics": self.diagnostics,
                "data": self.data,
                "run": {
                    "command": self.command,
                    "time": self.time,
                    "seconds": self.seconds,
                    "method_seconds": {one.name: one.seconds for one in self.methods},
                    "versions": self.versions,
                },
            }
        )
        return found


def _plain(value: Any) -> Any:
    """Return records, arrays and numbers as JSON can hold them."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
