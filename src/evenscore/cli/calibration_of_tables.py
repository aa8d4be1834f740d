"""Calibration of scores that are read tile by tile: trained on counts, applied when they are read."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenscore.calibrate import (
    Calibration,
    LogisticCalibration,
    PavCalibration,
    calibration_class,
    calibration_from_dict,
)
from evenscore.calibrate.cross_validation import cross_fits, fit_to_folds, summary_cllr, summed_cost
from evenscore.calibrate.folds import FoldPairs, spread_speakers
from evenscore.calibrate.tables import calibrated, cross_calibrated, fit_fusion, fused, stack_systems, systems_of
from evenscore.cli.calibration import CalibrationJob, inputs_of
from evenscore.cli.inputs import open_tiles
from evenscore.cli.labelled import LabelledScores, LabelSources, labelled_scores, named, with_maps
from evenscore.cli.output import ScoredOutput
from evenscore.cli.scale_options import ScaleChoices
from evenscore.errors import InputError
from evenscore.metrics import ScoreSummary
from evenscore.metrics.speakers import speakers_by_targets
from evenscore.tables import TARGET, Axis, ScoreTable
from evenscore.tables.arrays import hashed
from evenscore.tables.pair_values import SideGroups

__all__ = ["TableSystems"]

_KEPT = "calibration"
_FOLD_BITS = 17  # of the summaries of pairs of folds, which are many
_FOLDS = 5  # of speakers, by which the saturating calibration is chosen


@dataclass(frozen=True, kw_only=True)
class _Fits:
    """One calibration, or one for each pair of folds, and facts about the training."""

    calibrations: Mapping[tuple[int, ...], Calibration]
    info: dict[str, Any]

    @classmethod
    def kept(cls, output: ScoredOutput) -> _Fits | None:
        """Return those of a run that was cut short."""
        data = None if output.store is None else output.store.get(_KEPT)
        if data is None:
            return None
        record = json.loads(data.tobytes())
        fits = {tuple(folds): calibration_from_dict(fit) for folds, fit in record["fits"]}
        return cls(calibrations=fits, info=record["info"])

    def keep(self, output: ScoredOutput) -> _Fits:
        """Keep them for a run that goes on."""
        if output.store is not None:
            fits = [(folds, calibration.to_dict()) for folds, calibration in self.calibrations.items()]
            packed = json.dumps({"fits": fits, "info": self.info}).encode()
            output.store.put(_KEPT, np.frombuffer(packed, dtype=np.uint8))
        return self


@dataclass(frozen=True, kw_only=True, eq=False)
class TableSystems:
    """Scores of one system, or of several that are stacked."""

    file: LabelledScores
    labelled: bool

    @classmethod
    def opened(
        cls, paths: Sequence[str], job: CalibrationJob, sources: LabelSources | None = None, *, scale: ScaleChoices
    ) -> TableSystems:
        """Open the systems, with the labels of the sources; without, all scores count as one class."""
        tables = [open_tiles(path, scale, infinite=job.infinite) for path in paths]
        if sources is None:
            one = LabelledScores(path=paths[0], scores=tables[0], given=SideGroups.all_one())
        else:
            one, *_ = labelled_scores(paths, tables, sources)
        if len(tables) > 1:
            one = replace(one, scores=stack_systems([one.scores, *tables[1:]]), path=" and ".join(paths))
        return cls(file=one, labelled=sources is not None)

    @property
    def listed(self) -> bool:
        """Whether they are a list of trials."""
        return self.file.scores.listed

    def fit(self, job: CalibrationJob, output: ScoredOutput) -> tuple[Calibration, dict[str, Any]]:
        """Train a calibration, or the weights of a fusion, or take that of a run that was cut short."""
        fit = self._fusion if len(job.train or job.scores) > 1 else self._fitted
        found = _Fits.kept(output) or fit(job, _how(output)).keep(output)
        return found.calibrations[()], found.info

    def apply(self, calibration: Calibration, job: CalibrationJob, names: Sequence[str]) -> ScoreTable:
        """Return the LLRs, made when they are read."""
        self._refuse_infinite(calibration)
        if isinstance(calibration, LogisticCalibration) and inputs_of(calibration)[0] > 1:
            return fused(self.file.scores, calibration)  # type: ignore[arg-type]
        return calibrated(self.file.scores, calibration)

    def cross_calibrated(self, job: CalibrationJob, output: ScoredOutput) -> tuple[ScoreTable, dict[str, Any]]:
        """Return LLRs by fits that never met a trial's speakers."""
        assert job.folds is not None  # noqa: S101
        groups = fold_groups(self.file, job.sources, job.folds)
        fitted = _Fits.kept(output) or self._cross_fitted(job, groups, _how(output)).keep(output)
        fits: Any = fitted.calibrations
        for calibration in fits.values():
            self._refuse_infinite(calibration)
        return cross_calibrated(self.file.scores, groups.pairs, fits), fitted.info

    def about_cheating(self, training: TableSystems) -> list[str]:
        """Say so if these are the scores that were trained on."""
        if self.identity() != training.identity():
            return []
        return [
            "the calibrated trials were trained on, which is cheating: figures measured on them are too good; "
            "use --cross-validate"
        ]

    def identity(self, sources: LabelSources | None = None) -> str:
        """Return a text that changes when the scores change, or the labels and speakers of the sources."""
        scores = self.file.scores.identity()
        if sources is None:
            return scores
        maps = sources.read_speaker_maps() if sources.by_speaker else ()
        return hashed(scores, self.file.labels.identity(), *(sorted(known.items()) for _, known in maps))

    def _fusion(self, job: CalibrationJob, how: dict[str, Any]) -> _Fits:
        """Fit the weights of several systems, by as many passes as Newton's method takes steps."""
        stack: Any = self.file.scores
        summaries = [replace(self.file, scores=system).count(**how).summary for system in systems_of(stack)]
        with named(self.file.path):
            calibration = fit_fusion(stack, self.file.labels, summaries, **how, **job.options)
        made = replace(self.file, scores=fused(stack, calibration)).count(**how).summary
        counts = {"n_target": made.n_target, "n_nontarget": made.n_nontarget, "cllr": made.cllr()}
        return _Fits(calibrations={(): calibration}, info=counts)

    def _fitted(self, job: CalibrationJob, how: dict[str, Any]) -> _Fits:
        groups = fold_groups(self.file, job.sources, _FOLDS, at_most=True) if job.method == "saturating" else None
        counts = self.file.count([] if groups is None else [groups.pairs], group_bits=_FOLD_BITS, **how)
        pairs = {} if groups is None else groups.by_pair(counts.groups[0])
        summary = counts.summary
        with named(self.file.path):
            calibration = fit_to_folds(calibration_class(job.method), pairs, job.options, summary)
        info: dict[str, Any] = {"n_trials": summary.n_nontarget}
        if self.labelled:
            info = {"n_target": summary.n_target, "n_nontarget": summary.n_nontarget}
            info["cllr"] = summary_cllr(calibration, summary)
        return _Fits(calibrations={(): calibration}, info=info)

    def _cross_fitted(self, job: CalibrationJob, groups: FoldGroups, how: dict[str, Any]) -> _Fits:
        counts = self.file.count([groups.pairs], group_bits=_FOLD_BITS, **how)
        pairs = groups.by_pair(counts.groups[0])
        with named(self.file.path):
            fits = cross_fits(calibration_class(job.method), pairs, job.options)
        costs = [summed_cost(fits[min(pair), max(pair)], part) for pair, part in pairs.items()]
        nontarget, target = (sum(side) for side in zip(*costs, strict=True))
        summary = counts.summary
        info = {
            "speakers": groups.n_speakers,
            "speakers_from": groups.origin,
            "calibrations": len(fits),
            "cllr": (target / summary.n_target + nontarget / summary.n_nontarget) / (2 * math.log(2)),
        }
        return _Fits(calibrations=fits, info=info)  # type: ignore[arg-type]

    def _refuse_infinite(self, calibration: Calibration) -> None:
        """Refuse to write a matrix that no reader would accept."""
        endless = isinstance(calibration, PavCalibration) and not np.isfinite(calibration.llr).all()
        if endless and not self.listed:
            raise InputError("a matrix has no place for the infinite LLRs of this calibration; use pav:smoothing=1")


def _how(output: ScoredOutput) -> dict[str, Any]:
    """Return where the work is done, and who is told of it."""
    return {"client": output.client, "progress": output.progress}


@dataclass(frozen=True, kw_only=True)
class FoldGroups:
    """Which pair of folds each pair of ids belongs to."""

    pairs: SideGroups
    folds: int
    n_speakers: int
    origin: str  #: where speakers are known from

    def by_pair(self, groups: Mapping[int, ScoreSummary]) -> FoldPairs:
        """Return the summaries that have scores by the two folds."""
        found = {divmod(number, self.folds): summary for number, summary in groups.items()}
        return {pair: summary for pair, summary in found.items() if summary.bins.size}


def fold_groups(file: LabelledScores, sources: LabelSources, folds: int, *, at_most: bool = False) -> FoldGroups:
    """Put the speakers of scores into folds; ``at_most``: fewer folds if there are fewer speakers."""
    table, origin = _with_speakers(file, sources)
    sides = _speakers(table.enroll_axis), _speakers(table.test_axis)
    speakers = [name for name in dict.fromkeys([*sides[0], *sides[1]]) if name is not None]
    number = min(folds, len(speakers)) if at_most else folds
    targets = _targets(file, table)
    order = sorted(map(str, range(len(speakers))))  # that of trials in memory, so that folds are the same
    spread = spread_speakers(order, np.array([targets[speakers[int(code)]] for code in order]), number)
    fold_of: dict[Any, int] = {speakers[int(code)]: fold for code, fold in zip(order, spread.tolist(), strict=True)}
    enroll, test = (np.array([fold_of.get(name, -1) for name in side], dtype=np.int64) for side in sides)
    pairs = SideGroups(table.enroll_axis, enroll, table.test_axis, test, number)
    return FoldGroups(pairs=pairs, folds=number, n_speakers=len(speakers), origin=origin)


def _with_speakers(file: LabelledScores, sources: LabelSources) -> tuple[ScoreTable, str]:
    """Return the scores with their speakers, None for ids that nothing is known of, and where that is known from."""
    if sources.by_speaker:
        return with_maps(file.scores, *sources.read_speaker_maps()), "the speaker maps"
    if file.listed is None:
        raise InputError(f"{file.path}: the speakers are not known; give --enroll-speakers, or a key")
    known = speakers_by_targets([file.listed])
    sides = (file.scores.enroll_axis, file.listed.enroll_ids), (file.scores.test_axis, file.listed.test_ids)
    axes = []
    for axis, ids in sides:
        here = set(ids.tolist())
        axes.append(axis.with_speakers([known[name] if name in here else None for name in axis.ids]))
    return file.scores.with_axes(*axes), "the target trials"


def _speakers(axis: Axis) -> list[str | None]:
    assert axis.speakers is not None  # noqa: S101
    return axis.speakers.tolist()


def _targets(file: LabelledScores, table: ScoreTable) -> Counter[str | None]:
    """Return how many target trials each speaker has; of lists without a key it is not known."""
    speakers = _speakers(table.enroll_axis)
    if file.listed is not None and file.listed.labels is not None:
        at = file.listed.enroll_index[file.listed.labels == TARGET]
        numbers = np.bincount(at, minlength=len(file.listed.enroll_ids))
        found: Counter[str | None] = Counter()
        for place, count in zip(table.enroll_axis.find(file.listed.enroll_ids).tolist(), numbers.tolist(), strict=True):
            if place >= 0:
                found[speakers[place]] += count
        return found
    if table.listed:
        return Counter()
    tests = Counter(_speakers(table.test_axis))
    return Counter({name: count * tests[name] for name, count in Counter(speakers).items()})
