"""`evenscore calibrate` for scores that are not in memory: train on counts, apply chunk by chunk."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from evenscore.calibrate import (
    Calibration,
    LogisticCalibration,
    PavCalibration,
    calibration_class,
    calibration_from_dict,
)
from evenscore.calibrate.cross_validation import cross_fits, fit_to_folds, summary_cllr, summed_cost
from evenscore.cli.calibration import CalibrationJob, CalibrationResult, inputs_of, story, trained_on
from evenscore.cli.chunked_scoring import output_in_chunks, write_result
from evenscore.cli.embedded_scores import label_sources
from evenscore.cli.evaluated_chunks import LabelledFile, labelled_files, open_chunked
from evenscore.cli.fold_groups import FoldGroups, fold_groups
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.training_data import LabelSources
from evenscore.errors import FileError, InputError
from evenscore.files.calibration_json import read_calibration_file
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.progress import Progress
from evenscore.scale import ChunkedScores, ChunkedTrials, transform_chunks
from evenscore.scale.chunked_scores import hashed
from evenscore.scale.counting import ChunkCounts
from evenscore.scale.cross_calibrated import cross_calibrated
from evenscore.scale.fusion import fit_fusion, fused, stack_systems, systems_of
from evenscore.scale.pair_values import SideGroups

__all__ = ["calibrate_in_chunks"]

_KEPT = "calibration"
_FOLD_BITS = 17  # of the summaries of pairs of folds, which are many
_FOLDS = 5  # of speakers, by which the saturating calibration is chosen


@dataclass(frozen=True, kw_only=True)
class _Engine:
    """Where and how the work is done."""

    scale: ScaleChoices
    client: Any
    progress: Progress


@dataclass(frozen=True, kw_only=True)
class _Fitted:
    """One calibration (its place is ''), or one for each pair of folds ('0 1'), and facts about the training."""

    calibrations: Mapping[str, Calibration]
    info: Mapping[str, Any]

    def packed(self) -> np.ndarray[Any, Any]:
        """Return all as an array of bytes."""
        fits = {place: calibration.to_dict() for place, calibration in self.calibrations.items()}
        return np.frombuffer(json.dumps({"fits": fits, "info": self.info}).encode(), dtype=np.uint8)

    @classmethod
    def unpacked(cls, data: np.ndarray[Any, Any]) -> _Fitted:
        """Return what `packed` packed."""
        record = json.loads(data.tobytes())
        fits = {place: calibration_from_dict(fit) for place, fit in record["fits"].items()}
        return cls(calibrations=fits, info=record["info"])


def calibrate_in_chunks(
    job: CalibrationJob,
    files: tuple[str | None, str | None],
    scale: ScaleChoices,
    resume: bool,
    client: Any,
    progress: Progress,
) -> CalibrationResult:
    """Do what the job says, and write the result; ``files``: the output, if any, and its format."""
    if resume and files[0] is None:
        raise InputError("--resume goes on with an output that was cut short; give its name with -o")
    if job.needs_memory:
        raise InputError(
            f"{job.needs_memory} cannot be had in chunks; leave it out, or use scores that fit into memory"
        )
    engine = _Engine(scale=scale, client=client, progress=progress)
    with nullcontext() if files[0] is None else output_in_chunks(files[0], files[1], resume) as output:
        return _calibrated(job, output, files, engine)


def _calibrated(
    job: CalibrationJob, output: ChunkedOutput | None, files: tuple[str | None, str | None], engine: _Engine
) -> CalibrationResult:
    job = replace(job, reading={**job.reading, "infinite": "accept" if _takes_infinite(job) else "error"})
    if job.folds is not None:
        return _cross_validated(job, output, files, engine)
    scored = _stacked([open_chunked(one, engine.scale, job.reading)[0] for one in job.scores])
    if output is not None and isinstance(scored, ChunkedTrials):
        output.refuse_lists()
    fitted, warnings = _fitted(job, scored, output, engine)
    calibration = fitted.calibrations[""]
    if scored is not None:
        assert files[0] is not None  # noqa: S101
        _refuse_infinite(calibration, scored, files[0])
        result = fused(scored, calibration) if _is_fusion(calibration) else transform_chunks(scored, calibration)
        write_result(result, output, files[0], files[1], engine.client, engine.progress)
    parameters = calibration.to_dict()["parameters"]
    return CalibrationResult(
        calibration=calibration,
        info=fitted.info,
        facts={"method": calibration.kind, "parameters": parameters, "training": fitted.info},
        story=story(calibration, (), fitted.info),
        warnings=warnings,
    )


def _fitted(
    job: CalibrationJob, scored: ChunkedScores | ChunkedTrials | None, output: ChunkedOutput | None, engine: _Engine
) -> tuple[_Fitted, list[str]]:
    """Load a calibration, go on with that of a run that was cut short, or train one; and say what is odd about it."""
    known = {} if scored is None else {"scores": scored.identity()}
    if job.load is not None:
        fitted = _loaded(job)
        if output is not None:
            output.begin({**known, "calibration": hashed(fitted.packed())})
        return fitted, []
    training = _training(job, engine)
    if output is not None:
        output.begin({**known, "training": _identity(job, training)})
    found = _kept(output)
    if found is None:
        found = _trained(job, training, engine)
        _keep(output, found)
    return found, _about_cheating(job, training, scored)


def _takes_infinite(job: CalibrationJob) -> bool:
    kind = job.method if job.load is None else read_calibration_file(job.load).calibration.kind
    return kind == "pav"


def _loaded(job: CalibrationJob) -> _Fitted:
    assert job.load is not None  # noqa: S101
    found = read_calibration_file(job.load)
    systems, measures = inputs_of(found.calibration)
    if measures:
        raise InputError(f"{job.load} uses quality measures, which cannot be had in chunks")
    if job.scores and len(job.scores) != systems:
        raise InputError(f"{job.load} is for {systems} systems, but there are {len(job.scores)} score files")
    return _Fitted(calibrations={"": found.calibration}, info=dict(found.info))


def _training(job: CalibrationJob, engine: _Engine) -> LabelledFile:
    """Open what to train on; without labels, all scores count as one class."""
    paths = job.train or job.scores
    if job.method == "unsupervised" and not job.train_key:
        scores, _ = open_chunked(paths[0], engine.scale, job.reading)
        return LabelledFile(path=str(paths[0]), scores=scores, labels=SideGroups([], None, [], None))
    files = labelled_files(paths, _label_sources(job), engine.scale, job.reading)
    stack = _stacked([file.scores for file in files])
    assert stack is not None  # noqa: S101
    return replace(files[0], scores=stack, path=" and ".join(file.path for file in files))


def _stacked(systems: Sequence[ChunkedScores | ChunkedTrials]) -> ChunkedScores | ChunkedTrials | None:
    """Return one system, or several as one; None if there is none."""
    return stack_systems(systems) if len(systems) > 1 else next(iter(systems), None)


def _is_fusion(calibration: Calibration) -> TypeGuard[LogisticCalibration]:
    return inputs_of(calibration)[0] > 1


def _label_sources(job: CalibrationJob) -> LabelSources:
    """Return where the labels of what to train on come from."""
    if job.folds is not None:
        return label_sources(job.scores[0], job.sources, job.key)
    return label_sources((job.train or job.scores)[0], job.sources, job.train_key)


def _identity(job: CalibrationJob, training: LabelledFile) -> str:
    options = json.dumps([job.method, dict(job.options), job.sources.unmatched])
    sources = _label_sources(job)
    maps = sources.read_speaker_maps() if sources.by_speaker else ()
    who = [sorted(speakers.items()) for _, speakers in maps]
    return hashed(training.scores.identity(), training.labels.identity(), options, *who)


def _kept(output: ChunkedOutput | None) -> _Fitted | None:
    """Return the calibration of a run that was cut short."""
    data = None if output is None else output.get(_KEPT)
    return None if data is None else _Fitted.unpacked(data)


def _keep(output: ChunkedOutput | None, fitted: _Fitted) -> None:
    if output is not None:
        output.put(_KEPT, fitted.packed())


def _fusion(job: CalibrationJob, training: LabelledFile, engine: _Engine) -> _Fitted:
    """Fit the weights of several systems, by as many passes as Newton's method takes steps."""
    how: dict[str, Any] = {"client": engine.client, "progress": engine.progress}
    summaries = [replace(training, scores=system).count(**how).summary for system in systems_of(training.scores)]
    with _named(training.path):
        calibration = fit_fusion(training.scores, training.labels, summaries, **how, **job.options)
    made = replace(training, scores=fused(training.scores, calibration)).count(**how).summary
    counts = {"n_target": made.n_target, "n_nontarget": made.n_nontarget, "cllr": made.cllr()}
    return _Fitted(calibrations={"": calibration}, info={**trained_on(job, job.train or job.scores), **counts})


def _trained(job: CalibrationJob, training: LabelledFile, engine: _Engine) -> _Fitted:
    if len(job.train or job.scores) > 1:
        return _fusion(job, training, engine)
    groups = None
    if job.method == "saturating":
        groups = fold_groups(training, _label_sources(job), _FOLDS, at_most=True)
    counts = _counted(training, groups, engine)
    pairs = {} if groups is None else groups.by_pair(counts.groups[0])
    with _named(training.path):
        calibration = fit_to_folds(calibration_class(job.method), pairs, job.options, counts.summary)
    info = trained_on(job, job.train or job.scores)
    summary = counts.summary
    if job.method == "unsupervised" and not job.train_key:
        info["n_trials"] = summary.n_nontarget
    else:
        info |= {"n_target": summary.n_target, "n_nontarget": summary.n_nontarget}
        info["cllr"] = summary_cllr(calibration, summary)
    return _Fitted(calibrations={"": calibration}, info=info)


def _counted(file: LabelledFile, groups: FoldGroups | None, engine: _Engine) -> ChunkCounts:
    groupings = [] if groups is None else [groups.pairs]
    return file.count(groupings, group_bits=_FOLD_BITS, client=engine.client, progress=engine.progress)


def _about_cheating(
    job: CalibrationJob, training: LabelledFile, scored: ChunkedScores | ChunkedTrials | None
) -> list[str]:
    if scored is None or job.method == "unsupervised" or scored.identity() != training.scores.identity():
        return []
    return [
        "the calibrated trials were trained on, which is cheating: figures measured on them are too good; "
        "use --cross-validate"
    ]


def _refuse_infinite(calibration: Calibration, scored: ChunkedScores | ChunkedTrials, path: str) -> None:
    """Refuse to write a matrix that no reader would accept."""
    endless = isinstance(calibration, PavCalibration) and not np.isfinite(calibration.llr).all()
    if endless and isinstance(scored, ChunkedScores):
        raise FileError(path, "a matrix has no place for the infinite LLRs of this calibration; use --smoothing 1")


def _cross_validated(
    job: CalibrationJob, output: ChunkedOutput | None, files: tuple[str | None, str | None], engine: _Engine
) -> CalibrationResult:
    assert job.folds is not None and files[0] is not None  # noqa: S101, PT018
    if job.folds < 3:
        raise InputError(
            f"folds is {job.folds}, but a trial's two speakers can be in two folds, and a third must be left"
        )
    sources = _label_sources(job)
    [file] = labelled_files(job.scores, sources, engine.scale, job.reading)
    groups = fold_groups(file, sources, job.folds)
    if output is not None:
        if isinstance(file.scores, ChunkedTrials):
            output.refuse_lists()
        options = json.dumps([job.method, dict(job.options), job.folds, sources.unmatched])
        identity = hashed(file.labels.identity(), groups.pairs.identity(), options)
        output.begin({"scores": file.scores.identity(), "training": identity})
    fitted = _kept(output)
    if fitted is None:
        fitted = _cross_fitted(job, file, groups, engine)
        _keep(output, fitted)
    fits = {_folds(place): fit for place, fit in fitted.calibrations.items()}
    for calibration in fits.values():
        _refuse_infinite(calibration, file.scores, files[0])
    result = cross_calibrated(file.scores, groups.pairs, fits)
    write_result(result, output, files[0], files[1], engine.client, engine.progress)
    line = (
        f"{job.method} calibrations of {groups.n_speakers} speakers in {job.folds} folds, known from {groups.origin}: "
        f"Cllr {fitted.info['cllr']:.4g}"
    )
    return CalibrationResult(facts=fitted.info, story=[line])


def _folds(place: str) -> tuple[int, int]:
    low, high = map(int, place.split())
    return low, high


def _cross_fitted(job: CalibrationJob, file: LabelledFile, groups: FoldGroups, engine: _Engine) -> _Fitted:
    counts = _counted(file, groups, engine)
    pairs = groups.by_pair(counts.groups[0])
    with _named(file.path):
        fits = cross_fits(calibration_class(job.method), pairs, job.options)
    costs = [summed_cost(fits[min(pair), max(pair)], part) for pair, part in pairs.items()]
    nontarget, target = (sum(side) for side in zip(*costs, strict=True))
    summary = counts.summary
    info = {
        "method": job.method,
        "folds": job.folds,
        "speakers": groups.n_speakers,
        "speakers_from": groups.origin,
        "calibrations": len(fits),
        "cllr": (target / summary.n_target + nontarget / summary.n_nontarget) / (2 * math.log(2)),
    }
    return _Fitted(calibrations={f"{low} {high}": fit for (low, high), fit in fits.items()}, info=info)


@contextmanager
def _named(path: str) -> Iterator[None]:
    """Say of a fit that fails to which file it was."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
