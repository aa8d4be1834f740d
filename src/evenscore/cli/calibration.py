"""What `evenscore calibrate` does: read, train or load, apply; or cross-validate by speaker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from evenscore._version import __version__
from evenscore.calibrate import Calibration, LogisticCalibration, SaturatingCalibration
from evenscore.cli.embedded_scores import EmbeddedScores, Source, label_sources
from evenscore.cli.labelled import LabelSources
from evenscore.cli.scored_output import ScoredOutput
from evenscore.errors import InputError
from evenscore.files.models import CALIBRATION
from evenscore.files.records import ModelFile
from evenscore.progress import Progress
from evenscore.tables import ScoreTable
from evenscore.tables.identity import hashed

__all__ = ["CalibrationJob", "CalibrationResult", "Opener", "Systems", "inputs_of", "run_job", "trained_on"]

Facts = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class CalibrationJob:
    """Files and options; exactly one of training, loading and cross-validation."""

    scores: tuple[Source, ...] = ()
    train: tuple[Source, ...] = ()
    train_key: str | None = None
    key: str | None = None
    load: str | None = None
    folds: int | None = None  #: where set, cross-validate
    method: str = "logistic"
    options: Mapping[str, Any] = field(default_factory=dict)
    quality: tuple[str, ...] = ()
    metadata: str | None = None
    train_metadata: str | None = None
    sources: LabelSources = field(default_factory=LabelSources)
    infinite: bool = False  #: whether scores may be infinite

    def __post_init__(self) -> None:
        ways = {"--train": self.train, "--load": self.load, "--cross-validate": self.folds is not None}
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise InputError(f"both {given[0]} and {given[1]} were given; choose one")
        if self.key and self.folds is None:
            raise InputError(
                "calibrating on the evaluated trials is cheating, so --key serves --cross-validate only; add that, "
                "or train on other speakers with --train and --train-key"
            )
        if not given and self.method != "unsupervised":
            raise InputError(
                "there is nothing to train on; give --train and --train-key, --load, or, where there are no scores of "
                "other speakers, --cross-validate with --key"
            )
        if self.load and (self.options or self.method != "logistic"):
            raise InputError("--load applies a calibration as it is; leave out --calibration")
        if self.train and self.scores and len(self.train) != len(self.scores):
            raise InputError(
                f"there are {len(self.train)} systems to train on and {len(self.scores)} to calibrate; give the same "
                "systems in the same order"
            )
        if self.method != "logistic" and max(len(self.train), len(self.scores)) > 1:
            raise InputError(f"several systems are a fusion, which is logistic; {self.method} takes one system")
        if self.method != "logistic" and self.quality:
            raise InputError(f"quality measures serve the calibration logistic; {self.method} takes none")

    @property
    def needs_memory(self) -> str | None:
        """Return what the chunks of scores do not do for, None if they do."""
        if self.quality:
            return "quality measures"
        return "the cross-validation of a fusion" if self.folds is not None and len(self.scores) > 1 else None

    def refuse_needing_memory(self) -> None:
        """Refuse what cannot be had of scores that are read tile by tile."""
        if self.needs_memory:
            raise InputError(
                f"{self.needs_memory} cannot be had in chunks; leave it out, or use scores that fit into memory"
            )
        if self.load is not None and inputs_of(CALIBRATION.read(self.load).model)[1]:
            raise InputError(f"{self.load} uses quality measures, which cannot be had in chunks")


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """What a job gave, beside the scores that it wrote."""

    calibration: Calibration | None = None
    info: Mapping[str, Any] = field(default_factory=dict)  #: facts to be kept with the calibration
    facts: Mapping[str, Any] = field(default_factory=dict)  #: facts for programs
    story: Sequence[str] = ()  #: facts for people
    warnings: Sequence[str] = ()


class Systems(Protocol):
    """Scores of one or several systems on the same trials, in memory or not."""

    @property
    def listed(self) -> bool:
        """Whether they are a list of trials."""

    def fit(self, job: CalibrationJob, sources: LabelSources, output: ScoredOutput) -> tuple[Calibration, Facts]:
        """Train a calibration, or the weights of a fusion; return it with facts about the training."""

    def apply(self, calibration: Calibration, job: CalibrationJob, names: Sequence[str]) -> ScoreTable:
        """Return the log-likelihood ratios; ``names`` are those of the quality measures."""

    def cross_calibrated(
        self, job: CalibrationJob, sources: LabelSources, output: ScoredOutput
    ) -> tuple[ScoreTable, Facts]:
        """Return log-likelihood ratios by fits that never met a trial's speakers, and facts about them."""

    def about_cheating(self, training: Any) -> list[str]:
        """Say so if these are the trials that were trained on."""

    def identity(self, sources: LabelSources | None = None) -> str:
        """Return a text that changes when the scores change, or the labels and speakers of the sources."""


class Opener(Protocol):
    """Reads systems, or opens them; with the labels of the sources, if there are any."""

    def __call__(self, paths: Sequence[Source], job: CalibrationJob, sources: LabelSources | None = None) -> Systems:
        """Return the systems of these files."""


def run_job(job: CalibrationJob, opened: Opener, output: ScoredOutput, progress: Progress) -> CalibrationResult:
    """Do what the job says, and write the calibrated scores."""
    progress("reading", 0.0)
    found = None if job.load is None else _loaded(job)
    infinite = (job.method if found is None else found.model.kind) == "pav"
    job = replace(job, infinite=infinite)
    if job.folds is not None:
        return _cross_validated(job, opened, output, progress)
    if found is not None:
        return _applied(found, job, opened, output)
    sources = label_sources((job.train or job.scores)[0], job.sources, job.train_key)
    labelled = job.method != "unsupervised" or job.train_key is not None
    training = opened(job.train or job.scores, job, sources if labelled else None)
    scored = training if not job.train else opened(job.scores, job) if job.scores else None
    if scored is not None:
        whole = scored
        output.begin(whole.listed, lambda: {"scores": whole.identity(), "training": _identity(job, training, sources)})
    progress("training", 0.3)
    calibration, info = training.fit(job, sources, output)
    warnings = []
    if scored is not None:
        output.write(scored.apply(calibration, job, job.quality))
        warnings = [] if job.method == "unsupervised" else scored.about_cheating(training)
    return _told(calibration, job.quality, info, warnings)


def _applied(
    found: ModelFile[Calibration], job: CalibrationJob, opened: Opener, output: ScoredOutput
) -> CalibrationResult:
    calibration, names = found.model, job.quality or tuple(found.info.get("quality", ()))
    if job.scores:
        scored = opened(job.scores, job)
        kept = json.dumps([calibration.to_dict(), dict(found.info)])
        output.begin(scored.listed, lambda: {"scores": scored.identity(), "calibration": hashed(kept)})
        output.write(scored.apply(calibration, job, names))
    return _told(calibration, names, dict(found.info))


def _told(
    calibration: Calibration, names: Sequence[str], info: Facts, warnings: Sequence[str] = ()
) -> CalibrationResult:
    parameters = calibration.to_dict()["parameters"]
    return CalibrationResult(
        calibration=calibration,
        info=info,
        facts={"method": calibration.kind, "parameters": parameters, "training": info},
        story=_story(calibration, names, info),
        warnings=warnings,
    )


def _loaded(job: CalibrationJob) -> ModelFile[Calibration]:
    assert job.load is not None  # noqa: S101
    found = CALIBRATION.read(job.load)
    names = job.quality or tuple(found.info.get("quality", ()))
    systems, measures = inputs_of(found.model)
    if len(names) != measures:
        raise InputError(f"{job.load} uses {measures} quality measures, but {len(names)} are named; give --quality")
    if job.scores and len(job.scores) != systems:
        raise InputError(f"{job.load} is for {systems} systems, but there are {len(job.scores)} score files")
    return found


def _identity(job: CalibrationJob, training: Systems, sources: LabelSources) -> str:
    options = json.dumps([job.method, dict(job.options), job.folds, sources.unmatched])
    return hashed(training.identity(sources), options)


def _cross_validated(
    job: CalibrationJob, opened: Opener, output: ScoredOutput, progress: Progress
) -> CalibrationResult:
    assert job.folds is not None  # noqa: S101
    if job.folds < 3:
        raise InputError(
            f"folds is {job.folds}, but a trial's two speakers can be in two folds, and a third must be left"
        )
    sources = label_sources(job.scores[0], job.sources, job.key)
    scored = opened(job.scores, job, sources)
    output.begin(scored.listed, lambda: {"scores": scored.identity(), "training": _identity(job, scored, sources)})
    progress("cross-validating", 0.3)
    result, facts = scored.cross_calibrated(job, sources, output)
    output.write(result)
    line = (
        f"{job.method} calibrations of {facts['speakers']} speakers in {job.folds} folds, known from "
        f"{facts['speakers_from']}: Cllr {facts['cllr']:.4g}"
    )
    return CalibrationResult(facts=facts, story=[line])


def inputs_of(calibration: Calibration) -> tuple[int, int]:
    """Return the numbers of systems and of quality measures."""
    if isinstance(calibration, LogisticCalibration):
        return calibration.weights.size, calibration.quality_weights.size
    return 1, 0


def trained_on(job: CalibrationJob, paths: Sequence[Source]) -> dict[str, Any]:
    """Return what is known of the training before it begins."""
    facts: dict[str, Any] = {"evenscore": __version__, "train": list(map(str, paths))}
    if job.train_key:
        facts["train_key"] = job.train_key
    if isinstance(paths[0], EmbeddedScores):
        facts["scorer"] = paths[0].scoring.scorer
    return facts


def _story(calibration: Calibration, names: Sequence[str], info: Mapping[str, Any]) -> list[str]:
    """Return lines for people: what was fitted, and to what."""
    lines = [f"{calibration.kind} calibration"]
    if isinstance(calibration, LogisticCalibration):
        scores = (
            ["score"] if calibration.weights.size == 1 else [f"score{k + 1}" for k in range(calibration.weights.size)]
        )
        weights = (*calibration.weights, *calibration.quality_weights)
        terms = [f"{weight:+.4g} {name}" for weight, name in zip(weights, (*scores, *names), strict=True)]
        lines[0] += f": llr = {calibration.offset:.4g} {' '.join(terms)}"
    if isinstance(calibration, SaturatingCalibration):
        lower, upper = calibration.bounds
        lines[0] += (
            f": llr = {calibration.offset:.4g} {calibration.weight:+.4g} score, between {lower:.3g} and {upper:.3g}"
        )
    if "n_target" in info and "n_nontarget" in info:
        lines.append(f"trained on {info['n_target']} target and {info['n_nontarget']} non-target trials")
    if isinstance(info.get("cllr"), float):
        lines[-1] += f", their Cllr is {info['cllr']:.4g}"
    return lines
