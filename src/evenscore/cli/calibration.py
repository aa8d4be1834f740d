"""What `evenscore calibrate` does: read, train or load, apply; or cross-validate by speaker."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evenscore._version import __version__
from evenscore.calibrate import Calibration, LogisticCalibration, SaturatingCalibration
from evenscore.cli.labelled import LabelSources
from evenscore.cli.output import ScoredOutput
from evenscore.errors import InputError
from evenscore.files.metadata import read_metadata
from evenscore.files.models import CALIBRATION
from evenscore.files.records import ModelFile
from evenscore.tables.arrays import hashed

if TYPE_CHECKING:
    from evenscore.cli.options import ScaleChoices

__all__ = ["CalibrationJob", "CalibrationResult", "inputs_of", "run_job"]

Facts = dict[str, Any]
Systems = Any  # TrialSystems of scores in memory, or TableSystems


@dataclass(frozen=True, kw_only=True)
class CalibrationJob:
    """Files and options; exactly one of training, loading and cross-validation."""

    scores: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    train_key: str | None = None
    key: str | None = None
    load: str | None = None
    folds: int | None = None  #: where set, cross-validate
    method: str = "logistic"
    options: Mapping[str, Any] = field(default_factory=dict)
    quality: tuple[str, ...] = ()
    metadata: Sequence[str] = ()
    train_metadata: Sequence[str] = ()
    sources: LabelSources = field(default_factory=LabelSources)
    infinite: bool = False  #: whether scores may be infinite

    def __post_init__(self) -> None:
        ways = {"--train": self.train, "--load": self.load, "--cross-validate": self.folds is not None}
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise InputError(f"both {given[0]} and {given[1]} were given; choose one")
        if self.folds is not None and self.folds < 3:
            raise InputError(
                f"folds is {self.folds}, but a trial's two speakers can be in two folds, and a third must be left"
            )
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
        if self.folds is None or (len(self.scores) == 1 and not self.quality):
            return None
        return f"the cross-validation {'with quality measures' if self.quality else 'of a fusion'}"

    def refuse_needing_memory(self) -> None:
        """Refuse what cannot be had of scores that are read tile by tile."""
        if self.needs_memory:
            raise InputError(
                f"{self.needs_memory} cannot be had in chunks; leave it out, or use scores that fit into memory"
            )


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """What a job gave, beside the scores that it wrote."""

    calibration: Calibration | None = None
    info: Mapping[str, Any] = field(default_factory=dict)  #: facts to be kept with the calibration
    facts: Mapping[str, Any] = field(default_factory=dict)  #: facts for programs
    story: Sequence[str] = ()  #: facts for people
    warnings: Sequence[str] = ()


def run_job(job: CalibrationJob, output: ScoredOutput, scale: ScaleChoices | None = None) -> CalibrationResult:
    """Do what the job says, and write the calibrated scores; with ``scale``, scores are read tile by tile."""
    output.progress("reading", 0.0)
    found = None if job.load is None else _loaded(job)
    job = replace(job, infinite=(job.method if found is None else found.model.kind) == "pav")
    if scale is None:
        from evenscore.cli.calibration_systems import TrialSystems

        opened: Callable[..., Systems] = TrialSystems.read
    else:
        from evenscore.cli.calibration_systems import TableSystems

        job.refuse_needing_memory()
        opened = partial(TableSystems.opened, scale=scale)
    if job.folds is not None:
        return _cross_validated(job, opened(job.scores, job, job.sources), output)
    if found is not None:
        return _applied(job, found, opened(job.scores, job) if job.scores else None, output)
    labelled = job.method != "unsupervised" or job.train_key is not None
    training = opened(job.train or job.scores, job, job.sources if labelled else None)
    scored = training if not job.train else opened(job.scores, job) if job.scores else None
    return _trained(job, training, scored, output)


def _trained(job: CalibrationJob, training: Systems, scored: Systems | None, output: ScoredOutput) -> CalibrationResult:
    """Train, and calibrate the other scores, if there are any."""
    if scored is not None:
        _begin(output, scored, {"training": lambda: _identity(job, training)})
    output.progress("training", 0.3)
    calibration, counts = training.fit(job, output)
    info: Facts = {"evenscore": __version__, "train": list(job.train or job.scores)}
    info |= {"train_key": job.train_key} if job.train_key else {}
    info |= {"quality": list(job.quality)} if job.quality else {}
    warnings: list[str] = []
    if scored is not None:
        output.write(scored.apply(calibration, job, job.quality))
        warnings = [] if job.method == "unsupervised" else scored.about_cheating(training)
    return _told(calibration, job.quality, {**info, **counts}, warnings)


def _applied(
    job: CalibrationJob, found: ModelFile[Calibration], scored: Systems | None, output: ScoredOutput
) -> CalibrationResult:
    calibration, names = found.model, job.quality or tuple(found.info.get("quality", ()))
    if scored is not None:
        kept = json.dumps([calibration.to_dict(), dict(found.info)])
        _begin(output, scored, {"calibration": lambda: hashed(kept)})
        output.write(scored.apply(calibration, job, names))
    return _told(calibration, names, dict(found.info))


def _cross_validated(job: CalibrationJob, scored: Systems, output: ScoredOutput) -> CalibrationResult:
    assert job.folds is not None  # noqa: S101
    _begin(output, scored, {"training": lambda: _identity(job, scored)})
    output.progress("cross-validating", 0.3)
    result, counts = scored.cross_calibrated(job, output)
    output.write(result)
    facts = {"method": job.method, "folds": job.folds, **counts}
    line = (
        f"{job.method} calibrations of {facts['speakers']} speakers in {job.folds} folds, known from "
        f"{facts['speakers_from']}: Cllr {facts['cllr']:.4g}"
    )
    return CalibrationResult(facts=facts, story=[line])


def _begin(output: ScoredOutput, scored: Systems, other: Mapping[str, Callable[[], str]]) -> None:
    """Start the output; it goes on with one of the same scores, and of the same training or calibration."""
    identities = {"scores": scored.identity, **other}
    output.begin(scored.listed, lambda: {name: identity() for name, identity in identities.items()})


def _identity(job: CalibrationJob, training: Systems) -> str:
    options = json.dumps([job.method, dict(job.options), job.folds, job.sources.unmatched, job.quality])
    tables = [dict(read_metadata(path).columns) for path in (*job.train_metadata, *job.metadata)]
    return hashed(training.identity(job.sources), options, *tables)


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


def inputs_of(calibration: Calibration) -> tuple[int, int]:
    """Return the numbers of systems and of quality measures."""
    if isinstance(calibration, LogisticCalibration):
        return calibration.weights.size, calibration.quality_weights.size
    return 1, 0


def _unused(calibration: Calibration, names: Sequence[str]) -> list[str]:
    """Return a note about quality measures without a weight."""
    unused = calibration.unused_measures if isinstance(calibration, LogisticCalibration) else []
    if not unused:
        return []
    which = " and ".join(names[place] for place in unused)
    return [f"{which}: not used, as the scores and the measures before tell the same, or as nothing varies"]


def _story(calibration: Calibration, names: Sequence[str], info: Mapping[str, Any]) -> list[str]:
    """Return lines for people: what was fitted, and to what."""
    lines = [f"{calibration.kind} calibration"]
    if isinstance(calibration, LogisticCalibration):
        scores = (
            ["score"] if calibration.weights.size == 1 else [f"score{k + 1}" for k in range(calibration.weights.size)]
        )
        weights = (*calibration.weights, *calibration.quality_weights)
        terms = [f"{weight:+.4g} {name}" for weight, name in zip(weights, (*scores, *names), strict=True) if weight]
        lines[0] += f": llr = {calibration.offset:.4g} {' '.join(terms)}"
        lines += _unused(calibration, names)
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
