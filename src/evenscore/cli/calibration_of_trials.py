"""Calibration of trials that are in memory: every score itself, beside quality measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration, LogisticCalibration, calibration_class, cross_calibrate
from evenscore.cli.calibration import CalibrationJob
from evenscore.cli.inputs import open_scores
from evenscore.cli.labelled import LabelSources, Speakers, labelled_scores, speakers_of
from evenscore.cli.output import ScoredOutput
from evenscore.cli.trial_columns import numbers_of
from evenscore.errors import InputError
from evenscore.files.metadata import read_metadata
from evenscore.metrics import cllr
from evenscore.tables import NONTARGET, TARGET, ScoreMatrix, ScoreTable, TrialList

__all__ = ["TrialSystems"]

LOG = "log:"  # before the name of a measure: its logarithm

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TrialSystems:
    """Scores of one or several systems on the same trials; the first gives order, form and labels of the output."""

    first: TrialList
    values: Array  #: n scores, or n x k scores of k systems
    key: npt.NDArray[np.int8] | None  #: labels to train on
    was_matrix: bool

    @classmethod
    def read(cls, paths: Sequence[str], job: CalibrationJob, sources: LabelSources | None = None) -> TrialSystems:
        """Read the systems, with the labels of the sources, if there are any."""
        tables = [open_scores(path, infinite=job.infinite) for path in paths]
        key = None
        if sources is None:
            lists = [table.in_memory().to_trials() for table in tables]
        else:
            joined = [file.trials() for file in labelled_scores(paths, tables, sources)]
            key = joined[0].labels
            lists = [new if own.own_labels else new.with_labels(None) for own, new in zip(tables, joined, strict=True)]
        values = [_scores_on(lists[0], trials, paths[0], path) for path, trials in zip(paths, lists, strict=True)]
        return cls(
            first=lists[0],
            values=values[0] if len(values) == 1 else np.column_stack(values),
            key=key,
            was_matrix=isinstance(tables[0], ScoreMatrix),
        )

    @property
    def listed(self) -> bool:
        """Whether they came as a list of trials."""
        return not self.was_matrix

    def fit(self, job: CalibrationJob, output: ScoredOutput) -> tuple[Calibration, dict[str, Any]]:
        """Train a calibration, or the weights of a fusion; return it with facts about the trials."""
        measures = _measures(self.first, job.train_metadata, job.quality)
        extra: dict[str, Any] = {} if measures is None else {"quality": measures}
        given = dict(extra)
        if job.method == "saturating":
            given["enroll_speakers"], given["test_speakers"] = _speaker_codes(self.first, self._speakers(job.sources))
        kind: Any = calibration_class(job.method)
        calibration = kind.fit(self.values, self.key, **given, **job.options)
        if self.key is None:
            return calibration, {"n_trials": len(self.first)}
        classes = (("n_target", TARGET), ("n_nontarget", NONTARGET))
        facts: dict[str, Any] = {name: int(np.count_nonzero(self.key == label)) for name, label in classes}
        return calibration, facts | {"cllr": cllr(calibration(self.values, **extra), self.key)}

    def apply(self, calibration: Calibration, job: CalibrationJob, names: Sequence[str]) -> ScoreTable:
        """Return the LLRs in the form of the scores."""
        measures = _measures(self.first, job.metadata, names)
        if isinstance(calibration, LogisticCalibration):
            return self._with_llrs(calibration(self.values, measures))
        return self._with_llrs(calibration(self.values))

    def cross_calibrated(self, job: CalibrationJob, output: ScoredOutput) -> tuple[ScoreTable, dict[str, Any]]:
        """Return LLRs by fits that never met a trial's speakers."""
        assert job.folds is not None  # noqa: S101
        speakers = self._speakers(job.sources)
        enroll, test = _speaker_codes(self.first, speakers)
        result = cross_calibrate(
            self.values,
            self.key,
            enroll_speakers=enroll,
            test_speakers=test,
            calibration=job.method,
            folds=job.folds,
            quality=_measures(self.first, job.metadata, job.quality),
            options=job.options,
        )
        facts = {
            "speakers": len(result.speaker_folds),
            "speakers_from": speakers.origin,
            "calibrations": len(result.calibrations),
            "cllr": cllr(result.llr, self.key),
        }
        return self._with_llrs(result.llr), facts

    def about_cheating(self, training: TrialSystems) -> list[str]:
        """Say how many trials stand in both with the same score; other data may use the same ids."""
        ours, theirs = self.first, training.first
        assert ours.scores is not None and theirs.scores is not None  # noqa: S101, PT018
        match = ours.match(theirs)
        both = int(np.count_nonzero((match >= 0) & (ours.scores == theirs.scores[match])))
        if not both:
            return []
        return [
            f"{both} of the {len(ours)} calibrated trials were trained on, which is cheating: figures measured on them "
            "are too good; use --cross-validate"
        ]

    def identity(self, sources: LabelSources | None = None) -> str:
        """Return nothing: what is in memory is written whole, and cannot be continued."""
        return ""

    def _speakers(self, sources: LabelSources) -> Speakers:
        return speakers_of(self.first.with_labels(self.key), sources)

    def _with_llrs(self, llrs: Array) -> TrialList | ScoreMatrix:
        """Return the LLRs in the form of the scores; a matrix has no place for infinite ones."""
        trials = self.first.with_scores(llrs, allow_infinite=True)
        return trials.to_matrix() if self.was_matrix and np.isfinite(llrs).all() else trials


def _scores_on(trials: TrialList, system: TrialList, first: str, path: str) -> Array:
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


def _speaker_codes(trials: TrialList, speakers: Speakers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the number of the speaker on each side of each trial."""
    sides = [[speakers.enroll[name] for name in trials.enroll_ids], [speakers.test[name] for name in trials.test_ids]]
    codes = {name: code for code, name in enumerate(dict.fromkeys(sides[0] + sides[1]))}
    enroll, test = (np.array([codes[name] for name in side], dtype=np.int64) for side in sides)
    return enroll[trials.enroll_index], test[trials.test_index]
