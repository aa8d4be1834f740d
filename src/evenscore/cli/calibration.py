"""What `evenscore calibrate` does: read, train or load, apply; or cross-validate by speaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore._version import __version__
from evenscore.calibrate import (
    Calibration,
    LogisticCalibration,
    SaturatingCalibration,
    calibration_class,
    cross_calibrate,
)
from evenscore.cli.combine import as_list
from evenscore.cli.embedded_scores import EmbeddedScores, Source, label_sources, read_source
from evenscore.cli.evaluated_trials import labelled
from evenscore.cli.speaker_sources import Speakers, speakers_of
from evenscore.cli.training_data import LabelSources
from evenscore.cli.trial_columns import numbers_of
from evenscore.errors import InputError
from evenscore.files.calibration_json import read_calibration_file
from evenscore.files.metadata import read_metadata
from evenscore.metrics import cllr
from evenscore.progress import Progress, silent
from evenscore.tables import NONTARGET, TARGET, ScoreMatrix, TrialList

__all__ = ["CalibrationJob", "CalibrationResult", "inputs_of", "run_job", "story", "trained_on"]

LOG = "log:"  # before the name of a measure: its logarithm

Array = npt.NDArray[np.float64]


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
    reading: Mapping[str, Any] = field(default_factory=dict)

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
            raise InputError("--load applies a calibration as it is; leave out --method and its options")
        if self.train and self.scores and len(self.train) != len(self.scores):
            raise InputError(
                f"there are {len(self.train)} systems to train on and {len(self.scores)} to calibrate; give the same "
                "systems in the same order"
            )
        if self.method != "logistic" and max(len(self.train), len(self.scores)) > 1:
            raise InputError(f"several systems are a fusion, which is logistic; {self.method} takes one system")
        if self.method != "logistic" and self.quality:
            raise InputError(f"quality measures serve the method logistic; {self.method} takes none")

    @property
    def needs_memory(self) -> str | None:
        """Return what the chunks of scores do not do for, None if they do."""
        if self.quality:
            return "quality measures"
        return "the cross-validation of a fusion" if self.folds is not None and len(self.scores) > 1 else None


@dataclass(frozen=True, kw_only=True)
class CalibrationResult:
    """What a job gave."""

    calibrated: TrialList | ScoreMatrix | None = None
    calibration: Calibration | None = None
    info: Mapping[str, Any] = field(default_factory=dict)  #: facts to be kept with the calibration
    facts: Mapping[str, Any] = field(default_factory=dict)  #: facts for programs
    story: Sequence[str] = ()  #: facts for people
    warnings: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class _Systems:
    """Scores of one or several systems on the same trials; the first gives order, form and labels of the output."""

    first: TrialList
    values: Array  #: n scores, or n x k scores of k systems
    key: npt.NDArray[np.int8] | None  #: labels to train on
    was_matrix: bool

    @property
    def with_key(self) -> TrialList:
        """The trials with the labels to train on."""
        return self.first.with_labels(self.key)

    def with_llrs(self, llrs: Array) -> TrialList | ScoreMatrix:
        """Return the LLRs in the form of the scores; a matrix has no place for infinite ones."""
        trials = self.first.with_scores(llrs, allow_infinite=True)
        return trials.to_matrix() if self.was_matrix and np.isfinite(llrs).all() else trials


def run_job(job: CalibrationJob, progress: Progress = silent) -> CalibrationResult:
    """Do what the job says."""
    progress("reading", 0.0)
    if job.folds is not None:
        return _cross_validated(job, progress)
    if job.load is not None:
        return _loaded(job)
    return _trained(job, progress)


def _trained(job: CalibrationJob, progress: Progress) -> CalibrationResult:
    supervised = job.method != "unsupervised"
    infinite = job.method == "pav"
    paths = job.train or job.scores
    sources = label_sources(paths[0], job.sources, job.train_key)
    training = _read(paths, job.reading, infinite, sources if supervised or job.train_key else None)
    progress("training", 0.3)
    measures = _measures(training.first, job.train_metadata, job.quality)
    calibration = _fit(job, training, measures, sources)
    info = _training_facts(job, paths, training, calibration, measures)
    scored = training if not job.train else _read(job.scores, job.reading, infinite) if job.scores else None
    calibrated, warnings = None, []
    if scored is not None:
        calibrated = scored.with_llrs(_applied(calibration, scored, job.metadata, job.quality))
        if supervised:
            warnings = _about_cheating(training.first, scored.first)
    facts = {"method": calibration.kind, "parameters": calibration.to_dict()["parameters"], "training": info}
    return CalibrationResult(
        calibrated=calibrated,
        calibration=calibration,
        info=info,
        facts=facts,
        story=story(calibration, job.quality, info),
        warnings=warnings,
    )


def _fit(job: CalibrationJob, training: _Systems, measures: Array | None, sources: LabelSources) -> Calibration:
    kind: Any = calibration_class(job.method)
    extra: dict[str, Any] = {} if measures is None else {"quality": measures}
    if job.method == "saturating":
        enroll, test = _speaker_codes(training.first, speakers_of(training.with_key, sources))
        extra = {"enroll_speakers": enroll, "test_speakers": test}
    fitted: Calibration = kind.fit(training.values, training.key, **extra, **job.options)
    return fitted


def _loaded(job: CalibrationJob) -> CalibrationResult:
    assert job.load is not None  # noqa: S101
    found = read_calibration_file(job.load)
    names = job.quality or tuple(found.info.get("quality", ()))
    calibration = found.calibration
    systems, measures = inputs_of(calibration)
    if len(names) != measures:
        raise InputError(f"{job.load} uses {measures} quality measures, but {len(names)} are named; give --quality")
    if job.scores and len(job.scores) != systems:
        raise InputError(f"{job.load} is for {systems} systems, but there are {len(job.scores)} score files")
    scored = _read(job.scores, job.reading, calibration.kind == "pav") if job.scores else None
    calibrated = None
    if scored is not None:
        calibrated = scored.with_llrs(_applied(calibration, scored, job.metadata, names))
    facts = {"method": calibration.kind, "parameters": calibration.to_dict()["parameters"], "training": found.info}
    return CalibrationResult(
        calibrated=calibrated,
        calibration=calibration,
        info=found.info,
        facts=facts,
        story=story(calibration, names, found.info),
    )


def _cross_validated(job: CalibrationJob, progress: Progress) -> CalibrationResult:
    assert job.folds is not None  # noqa: S101
    sources = label_sources(job.scores[0], job.sources, job.key)
    scored = _read(job.scores, job.reading, job.method == "pav", sources)
    speakers = speakers_of(scored.with_key, sources)
    progress("cross-validating", 0.3)
    enroll, test = _speaker_codes(scored.first, speakers)
    result = cross_calibrate(
        scored.values,
        scored.key,
        enroll_speakers=enroll,
        test_speakers=test,
        calibration=job.method,
        folds=job.folds,
        quality=_measures(scored.first, job.metadata, job.quality),
        options=job.options,
    )
    facts: dict[str, Any] = {
        "method": job.method,
        "folds": job.folds,
        "speakers": len(result.speaker_folds),
        "speakers_from": speakers.origin,
        "calibrations": len(result.calibrations),
        "cllr": cllr(result.llr, scored.key),
    }
    story = [
        f"{job.method} calibrations of {len(result.speaker_folds)} speakers in {job.folds} folds, known from "
        f"{speakers.origin}: Cllr {facts['cllr']:.4g}"
    ]
    return CalibrationResult(calibrated=scored.with_llrs(result.llr), facts=facts, story=story)


def _read(
    paths: Sequence[Source], reading: Mapping[str, Any], infinite: bool, sources: LabelSources | None = None
) -> _Systems:
    """Read the systems, with the labels of the sources, if there are any."""
    how = {**reading, "infinite": "accept" if infinite else "error"}
    tables = [read_source(path, how) for path in paths]
    lists, key = [as_list(table) for table in tables], None
    if sources is not None:
        joined = labelled(paths, lists, sources)
        key = joined[0].labels
        lists = [
            new if own.labels is not None else new.with_labels(None) for own, new in zip(lists, joined, strict=True)
        ]
    values = [_scores_on(lists[0], trials, paths[0], path) for path, trials in zip(paths, lists, strict=True)]
    return _Systems(
        first=lists[0],
        values=values[0] if len(values) == 1 else np.column_stack(values),
        key=key,
        was_matrix=isinstance(tables[0], ScoreMatrix),
    )


def _scores_on(trials: TrialList, system: TrialList, first: Source, path: Source) -> Array:
    """Return the scores of a system in the order of the trials of the first one."""
    assert system.scores is not None  # noqa: S101
    if system is trials:
        return system.scores.astype(np.float64)
    match = trials.match(system)
    if len(system) != len(trials) or (match < 0).any():
        at = int(np.argmin(match))
        where = (
            f"{path} has no score of the trial {trials.pair(at)}" if match[at] < 0 else f"{path} has other trials, too"
        )
        raise InputError(f"the systems {first} and {path} must have the same trials, but {where}; make them agree")
    return np.asarray(system.scores[match].astype(np.float64))


def _measures(trials: TrialList, metadata: str | None, names: Sequence[str]) -> Array | None:
    """Return the n x q quality measures, or None if there are none."""
    if not names:
        return None
    table = None if metadata is None else read_metadata(metadata)
    columns = []
    for name in names:
        values = numbers_of(trials, table, name.removeprefix(LOG))
        if name.startswith(LOG):
            if values.min() <= 0:
                pair = trials.pair(int(np.argmin(values)))
                raise InputError(f"{name}: the value of the trial {pair} is {values.min():g}, which has no logarithm")
            values = np.log(values)
        columns.append(values)
    return np.column_stack(columns)


def _applied(calibration: Calibration, scored: _Systems, metadata: str | None, names: Sequence[str]) -> Array:
    measures = _measures(scored.first, metadata, names)
    if isinstance(calibration, LogisticCalibration):
        return calibration(scored.values, measures)
    return calibration(scored.values)


def inputs_of(calibration: Calibration) -> tuple[int, int]:
    """Return the numbers of systems and of quality measures."""
    if isinstance(calibration, LogisticCalibration):
        return calibration.weights.size, calibration.quality_weights.size
    return 1, 0


def _speaker_codes(trials: TrialList, speakers: Speakers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of the speaker on each side of each trial."""
    sides = [[speakers.enroll[name] for name in trials.enroll_ids], [speakers.test[name] for name in trials.test_ids]]
    codes = {name: code for code, name in enumerate(dict.fromkeys(sides[0] + sides[1]))}
    enroll, test = (np.array([codes[name] for name in side], dtype=np.int64) for side in sides)
    return enroll[trials.enroll_index], test[trials.test_index]


def _about_cheating(training: TrialList, scored: TrialList) -> list[str]:
    """Say how many trials stand in both with the same score; other data may use the same ids."""
    assert training.scores is not None and scored.scores is not None  # noqa: S101, PT018
    match = scored.match(training)
    both = int(np.count_nonzero((match >= 0) & (scored.scores == training.scores[match])))
    if not both:
        return []
    return [
        f"{both} of the {len(scored)} calibrated trials were trained on, which is cheating: figures measured on them "
        "are too good; use --cross-validate"
    ]


def _training_facts(
    job: CalibrationJob, paths: Sequence[Source], training: _Systems, calibration: Calibration, measures: Array | None
) -> dict[str, Any]:
    """Return the facts that are kept with the calibration."""
    facts = trained_on(job, paths)
    if job.quality:
        facts["quality"] = list(job.quality)
    if training.key is None:
        return facts | {"n_trials": len(training.first)}
    for name, label in (("n_target", TARGET), ("n_nontarget", NONTARGET)):
        facts[name] = int(np.count_nonzero(training.key == label))
    llrs = calibration(training.values) if measures is None else calibration(training.values, measures)  # type: ignore[call-arg]
    return facts | {"cllr": cllr(llrs, training.key)}


def trained_on(job: CalibrationJob, paths: Sequence[Source]) -> dict[str, Any]:
    """Return what is known of the training before it begins."""
    facts: dict[str, Any] = {"evenscore": __version__, "train": list(map(str, paths))}
    if job.train_key:
        facts["train_key"] = job.train_key
    if isinstance(paths[0], EmbeddedScores):
        facts["scorer"] = paths[0].scoring.scorer.value
    return facts


def story(calibration: Calibration, names: Sequence[str], info: Mapping[str, Any]) -> list[str]:
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
