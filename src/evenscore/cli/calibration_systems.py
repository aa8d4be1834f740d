"""The scores that `evenscore calibrate` trains on and applies to, of one system or of several.

Of trials in memory every score counts itself, beside quality measures. Scores that are read tile by tile are counted to
train on, and calibrated when they are read.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import (
    Calibration,
    LogisticCalibration,
    PavCalibration,
    calibration_class,
    calibration_from_dict,
    cross_calibrate,
)
from evenscore.calibrate.cross_validation import cross_fits, fit_to_folds, summary_cllr, summed_cost
from evenscore.calibrate.folds import FoldPairs, spread_speakers
from evenscore.calibrate.tables import (
    Stack,
    calibrated,
    cross_calibrated,
    fit_fusion,
    fused,
    stack_systems,
    systems_of,
    with_measures,
)
from evenscore.cli.calibration import CalibrationJob, inputs_of
from evenscore.cli.inputs import open_scores, open_tiles
from evenscore.cli.labelled import LabelledScores, LabelSources, labelled_scores, named, with_known_speakers
from evenscore.cli.options import ScaleChoices
from evenscore.cli.output import ScoredOutput
from evenscore.cli.trial_columns import Measures
from evenscore.errors import InputError
from evenscore.files.metadata import Metadata, read_metadata
from evenscore.metrics import ScoreSummary, cllr
from evenscore.tables import NONTARGET, TARGET, Axis, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.arrays import hashed
from evenscore.tables.pair_values import SideGroups
from evenscore.tables.score_table import LazyScores

__all__ = ["TableSystems", "TrialSystems"]

_KEPT = "calibration"  # what a run that is cut short leaves
_FOLD_BITS = 17  # of the summaries of pairs of folds, which are many
_FOLDS = 5  # of speakers, by which the saturating calibration is chosen

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TrialSystems:
    """Scores of one or several systems on the same trials; the first gives order, form and labels of the output."""

    first: TrialList
    values: Array  #: n scores, or n x k scores of k systems
    key: npt.NDArray[np.int8] | None  #: labels to train on
    listed: bool  #: whether they came as a list of trials

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
            listed=tables[0].listed,
        )

    def fit(self, job: CalibrationJob, output: ScoredOutput) -> tuple[Calibration, dict[str, Any]]:
        """Train a calibration, or the weights of a fusion; return it with facts about the trials."""
        measures = _measures(self.first, job.train_metadata, job.quality)
        extra: dict[str, Any] = {} if measures is None else {"quality": measures}
        given = dict(extra)
        if job.method == "saturating":
            given |= self._speakers(job.sources)[1]
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
        origin, speakers = self._speakers(job.sources)
        result = cross_calibrate(
            self.values,
            self.key,
            **speakers,
            calibration=job.method,
            folds=job.folds,
            quality=_measures(self.first, job.metadata, job.quality),
            options=job.options,
        )
        facts = {
            "speakers": len(result.speaker_folds),
            "speakers_from": origin,
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

    def _speakers(self, sources: LabelSources) -> tuple[str, dict[str, Any]]:
        """Return where speakers are known from, and the number of the speaker on each side of each trial."""
        trials, origin = with_known_speakers(self.first, sources, self.first.with_labels(self.key))
        sides = _speakers(trials.enroll_axis), _speakers(trials.test_axis)
        codes = {name: code for code, name in enumerate(dict.fromkeys(sides[0] + sides[1]))}
        enroll, test = (np.array([codes[name] for name in side], dtype=np.int64) for side in sides)
        numbers = {"enroll_speakers": enroll[trials.enroll_index], "test_speakers": test[trials.test_index]}
        return origin, numbers

    def _with_llrs(self, llrs: Array) -> TrialList | ScoreMatrix:
        """Return the LLRs in the form of the scores; a matrix has no place for infinite ones."""
        trials = self.first.with_scores(llrs, allow_infinite=True)
        return trials if self.listed or not np.isfinite(llrs).all() else trials.to_matrix()


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


def _measures(trials: TrialList, metadata: Sequence[str], names: Sequence[str]) -> Array | None:
    """Return the n x q quality measures, or None if there are none."""
    return Measures.on(trials, _tables(metadata), names).of(trials.tile) if names else None


def _tables(metadata: Sequence[str]) -> list[Metadata]:
    return [read_metadata(path) for path in metadata]


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
        fit = self._fusion if len(job.train or job.scores) > 1 or job.quality else self._fitted
        found = _Fits.kept(output) or fit(job, output.how).keep(output)
        return found.calibrations[()], found.info

    def apply(self, calibration: Calibration, job: CalibrationJob, names: Sequence[str]) -> ScoreTable:
        """Return the LLRs, made when they are read."""
        self._refuse_infinite(calibration)
        if isinstance(calibration, LogisticCalibration) and sum(inputs_of(calibration)) > 1:
            return fused(self._stacked(job.metadata, names), calibration)
        return calibrated(self.file.scores, calibration)

    def cross_calibrated(self, job: CalibrationJob, output: ScoredOutput) -> tuple[ScoreTable, dict[str, Any]]:
        """Return LLRs by fits that never met a trial's speakers."""
        assert job.folds is not None  # noqa: S101
        groups = _fold_groups(self.file, job.sources, job.folds)
        fitted = _Fits.kept(output) or self._cross_fitted(job, groups, output.how).keep(output)
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

    def _stacked(self, metadata: Sequence[str], names: Sequence[str]) -> LazyScores:
        """Return the systems as a stack, with quality measures if some are named."""
        scores: Any = self.file.scores
        stack = scores if isinstance(scores.source, Stack) else stack_systems([scores])
        return with_measures(stack, Measures.on(scores, _tables(metadata), names)) if names else stack

    def _fusion(self, job: CalibrationJob, how: dict[str, Any]) -> _Fits:
        """Fit the weights of several systems, by as many passes as Newton's method takes steps."""
        stack = self._stacked(job.train_metadata, job.quality)
        summaries = [replace(self.file, scores=system).count(**how).summary for system in systems_of(stack)]
        with named(self.file.path):
            calibration = fit_fusion(stack, self.file.labels, summaries, **how, **job.options)
        made = replace(self.file, scores=fused(stack, calibration)).count(**how).summary
        counts = {"n_target": made.n_target, "n_nontarget": made.n_nontarget, "cllr": made.cllr()}
        return _Fits(calibrations={(): calibration}, info=counts)

    def _fitted(self, job: CalibrationJob, how: dict[str, Any]) -> _Fits:
        groups = _fold_groups(self.file, job.sources, _FOLDS, at_most=True) if job.method == "saturating" else None
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

    def _cross_fitted(self, job: CalibrationJob, groups: _FoldGroups, how: dict[str, Any]) -> _Fits:
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


@dataclass(frozen=True, kw_only=True)
class _FoldGroups:
    """Which pair of folds each pair of ids belongs to."""

    pairs: SideGroups
    folds: int
    n_speakers: int
    origin: str  #: where speakers are known from

    def by_pair(self, groups: Mapping[int, ScoreSummary]) -> FoldPairs:
        """Return the summaries that have scores by the two folds."""
        found = {divmod(number, self.folds): summary for number, summary in groups.items()}
        return {pair: summary for pair, summary in found.items() if summary.bins.size}


def _fold_groups(file: LabelledScores, sources: LabelSources, folds: int, *, at_most: bool = False) -> _FoldGroups:
    """Put the speakers of scores into folds; ``at_most``: fewer folds if there are fewer speakers."""
    if file.listed is None and not sources.by_speaker:
        raise InputError(f"{file.path}: the speakers are not known; give --enroll-speakers, or a key")
    table, origin = with_known_speakers(file.scores, sources, file.listed)  # type: ignore[arg-type]
    sides = _speakers(table.enroll_axis), _speakers(table.test_axis)
    speakers = [name for name in dict.fromkeys([*sides[0], *sides[1]]) if name is not None]
    number = min(folds, len(speakers)) if at_most else folds
    targets = _targets(file, table)
    order = sorted(map(str, range(len(speakers))))  # that of trials in memory, so that folds are the same
    spread = spread_speakers(order, np.array([targets[speakers[int(code)]] for code in order]), number)
    fold_of: dict[Any, int] = {speakers[int(code)]: fold for code, fold in zip(order, spread.tolist(), strict=True)}
    enroll, test = (np.array([fold_of.get(name, -1) for name in side], dtype=np.int64) for side in sides)
    pairs = SideGroups(table.enroll_axis, enroll, table.test_axis, test, number)
    return _FoldGroups(pairs=pairs, folds=number, n_speakers=len(speakers), origin=origin)


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
