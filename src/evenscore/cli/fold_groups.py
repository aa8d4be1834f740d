"""Folds of speakers for scores that are not in memory: which pair of folds each trial falls into."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenscore.calibrate.folds import FoldPairs, spread_speakers
from evenscore.cli.evaluated_chunks import LabelledFile
from evenscore.cli.labelled import speakers_for
from evenscore.cli.training_data import LabelSources
from evenscore.errors import InputError
from evenscore.metrics import ScoreSummary
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.scale import ChunkedScores
from evenscore.scale.pair_values import SideGroups
from evenscore.tables import TARGET

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


def fold_groups(file: LabelledFile, sources: LabelSources, folds: int, *, at_most: bool = False) -> FoldGroups:
    """Put the speakers of scores into folds; ``at_most``: fewer folds if there are fewer speakers."""
    ids, sides, origin = _speakers(file, sources)
    codes = {name: code for code, name in enumerate(dict.fromkeys([*sides[0], *sides[1]]))}
    speakers, number = list(codes), min(folds, len(codes)) if at_most else folds
    targets = _targets(file, *ids, *sides)
    order = sorted(map(str, codes.values()))  # that of trials in memory, so that folds are the same
    spread = spread_speakers(order, np.array([targets[speakers[int(code)]] for code in order]), number)
    fold_of = {speakers[int(code)]: fold for code, fold in zip(order, spread.tolist(), strict=True)}
    enroll, test = (np.array([fold_of[name] for name in side], dtype=np.int64) for side in sides)
    pairs = SideGroups(ids[0], enroll, ids[1], test, number)
    return FoldGroups(pairs=pairs, folds=number, n_speakers=len(codes), origin=origin)


def _speakers(file: LabelledFile, sources: LabelSources) -> tuple[list[list[str]], list[list[str]], str]:
    """Return the ids of both sides, the speaker of each, and where that is known from."""
    scores, key = file.scores, file.key
    ids = [scores.enroll_ids.tolist(), scores.test_ids.tolist()] if isinstance(scores, ChunkedScores) else None
    if sources.by_speaker:
        maps = sources.read_speaker_maps()
        if ids is None:  # a list of trials
            order = [known for _, known in maps] if key is None else [key.enroll_ids, key.test_ids]
            ids = [[name for name in side if name in known] for side, (_, known) in zip(order, maps, strict=True)]
        both = zip(ids, maps, ("enrolment", "test"), strict=True)
        sides = [speakers_for(np.array(side, dtype=object), *one, what) for side, one, what in both]
        return ids, sides, sources.origin
    if key is None:
        raise InputError(f"{file.path}: the speakers are not known; give --enroll-speakers, or a key")
    known, listed = speakers_by_targets([key]), [key.enroll_ids.tolist(), key.test_ids.tolist()]
    if ids is not None:
        listed = [[name for name in side if name in keyed] for side, keyed in zip(ids, map(set, listed), strict=True)]
    return listed, [[known[name] for name in side] for side in listed], "the target trials"


def _targets(
    file: LabelledFile, enroll_ids: list[str], test_ids: list[str], enroll: list[str], test: list[str]
) -> Counter[str]:
    """Return how many target trials each speaker has; of lists without a key it is not known."""
    if file.key is not None and file.key.labels is not None:
        speaker = dict(zip(enroll_ids, enroll, strict=True))
        at = file.key.enroll_index[file.key.labels == TARGET]
        numbers = np.bincount(at, minlength=len(file.key.enroll_ids)).tolist()
        found: Counter[str] = Counter()
        for name, count in zip(file.key.enroll_ids.tolist(), numbers, strict=True):
            if name in speaker:
                found[speaker[name]] += count
        return found
    if isinstance(file.scores, ChunkedScores):
        tests = Counter(test)
        return Counter({name: count * tests[name] for name, count in Counter(enroll).items()})
    return Counter()
