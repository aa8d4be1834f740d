"""Folds of speakers for scores that are not in memory: which pair of folds each trial falls into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.calibrate.folds import FoldPairs, spread_speakers
from evenscore.cli.labelled import LabelledScores, LabelSources, with_maps
from evenscore.errors import InputError
from evenscore.metrics import ScoreSummary
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.tables import TARGET, Axis, ScoreTable
from evenscore.tables.pair_values import SideGroups

__all__ = ["FoldGroups", "fold_groups"]


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
        return with_maps(file.scores, *sources.read_speaker_maps()), sources.origin
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
