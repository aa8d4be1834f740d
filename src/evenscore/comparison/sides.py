"""The labelled trials of one side, of all phrases or conditions one after the other, and their speakers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenscore.comparison.record import Diagnostic, Floats, SideSummary
from evenscore.data.blocks import LabelledBlocks
from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.resampling import speakers_from_targets

__all__ = ["FROM_MAPS", "FROM_TARGETS", "Trials", "pool_trials", "shared_blocks"]

FROM_MAPS, FROM_TARGETS = "speaker maps", "target trials"

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """Labelled trials, one after the other: those of each part in their order, without those of unknown class."""

    parts: tuple[LabelledBlocks, ...]
    names: tuple[str, ...]  #: of the parts
    lists: tuple[TrialList, ...]  #: the raw trials of each part that have a label
    speakers: tuple[str, ...]  #: sorted
    enroll: Codes  #: speaker of each trial's enrolment, a position in ``speakers``
    test: Codes
    speakers_from: str  #: `FROM_MAPS` or `FROM_TARGETS`

    @cached_property
    def labels(self) -> npt.NDArray[np.int8]:
        """The label of each trial, 0 or 1."""
        return np.concatenate([np.asarray(one.labels) for one in self.lists])

    @cached_property
    def spans(self) -> list[slice]:
        """Where the trials of each part stand."""
        ends = np.cumsum([len(one) for one in self.lists]).tolist()
        return [slice(end - len(one), end) for end, one in zip(ends, self.lists, strict=True)]

    def scores(self, tables: Sequence[ScoreMatrix | TrialList]) -> Floats:
        """Return other scores of the trials, such as normalized ones, given as a table for each part."""
        found = np.concatenate([_scores_of(one, table) for one, table in zip(self.lists, tables, strict=True)])
        lost = int(np.count_nonzero(np.isnan(found)))
        if lost:
            raise InputError(f"it gives no score to {lost} of the {len(found)} trials; every method needs all of them")
        return found

    def summaries(self) -> tuple[SideSummary, ...]:
        """Return how much there is: all together first, then each part."""
        parts = [(name, at, (one,)) for name, at, one in zip(self.names, self.spans, self.lists, strict=True)]
        return tuple(self._summary(*part) for part in [("", slice(None), self.lists), *parts])

    def _summary(self, name: str, at: slice, lists: Sequence[TrialList]) -> SideSummary:
        labels = self.labels[at]
        return SideSummary(
            name=name,
            speakers=len(np.union1d(self.enroll[at], self.test[at])),
            enrolments=len({one for part in lists for one in part.enroll_ids.tolist()}),
            tests=len({one for part in lists for one in part.test_ids.tolist()}),
            trials=len(labels),
            targets=int(np.count_nonzero(labels == TARGET)),
            nontargets=int(np.count_nonzero(labels == NONTARGET)),
        )

    def restricted(self, mask: npt.NDArray[np.bool_], held_out: Sequence[str]) -> Trials:
        """Return some of the trials, with a cohort that has none of these speakers; empty parts are left out."""
        parts, lists, names = [], [], []
        for name, part, listed, at in zip(self.names, self.parts, self.lists, self.spans, strict=True):
            if not mask[at].any():
                continue
            chosen, blocks = listed.select(mask[at]), part.blocks
            members = [
                None if side is None or side.speakers is None else np.flatnonzero(~np.isin(side.speakers, held_out))
                for side in (blocks.cohort_enroll, blocks.cohort_test)
            ]
            by_labels = blocks.trials.rows is None and isinstance(part.labels, Labels)
            blocks = blocks.with_trials(chosen.to_matrix() if by_labels else chosen).take_cohort(*members)
            parts.append(LabelledBlocks(blocks, part.labels if by_labels else None, part.name))
            lists.append(chosen)
            names.append(name)
        enroll, test = self.enroll[mask], self.test[mask]
        return replace(self, parts=tuple(parts), lists=tuple(lists), names=tuple(names), enroll=enroll, test=test)


def _scores_of(trials: TrialList, table: ScoreMatrix | TrialList) -> Floats:
    """Return the scores that a table has for listed trials; NaN for those that it does not have."""
    if table.rows is None:
        rows, cols = table.enroll.find(trials.enroll_ids)[trials.rows], table.test.find(trials.test_ids)[trials.cols]
        return np.asarray(table.to_matrix().compute().scores[rows, cols], np.float64)
    at = trials.find(table.to_trials())
    return np.where(at < 0, np.nan, np.asarray(table.scores, np.float64)[at])


def pool_trials(parts: Sequence[LabelledBlocks], side: str) -> Trials:
    """Return the labelled trials of a side; who speaks, the blocks tell, or else the target trials.

    Examples
    --------
    >>> from evenscore.data import ScoreBlocks
    >>> trials = TrialList(["m1", "m1"], ["a", "b"], scores=[3.0, 0.0], labels=[1, 0])
    >>> found = pool_trials([LabelledBlocks(ScoreBlocks(trials))], "evaluation")
    >>> found.speakers, found.speakers_from
    (('b', 'm1'), 'target trials')
    """
    lists = tuple(trials.select(trials.labels != UNKNOWN) for trials in (part.trials for part in parts))
    sides = [side for trials in lists for side in (trials.enroll, trials.test)]
    origin = FROM_MAPS
    if any(side.speakers is None or None in side.speakers.tolist() for side in sides):
        known = speakers_from_targets(lists)
        sides, origin = [Side(side.ids, known) for side in sides], FROM_TARGETS
    names, codes = np.unique(np.concatenate([[], *(side.speakers for side in sides)]).astype(str), return_inverse=True)
    of_side = np.split(codes.astype(np.int64), np.cumsum([len(side) for side in sides])[:-1])
    enroll = np.concatenate([speakers[part.rows] for speakers, part in zip(of_side[0::2], lists, strict=True)])
    test = np.concatenate([speakers[part.cols] for speakers, part in zip(of_side[1::2], lists, strict=True)])
    titles = [part.name for part in parts]
    if len(titles) > len({*titles}) or (len(titles) > 1 and not all(titles)):  # then their numbers tell them apart
        titles = [f"{title} {number}".strip() for number, title in enumerate(titles, 1)]
    found = Trials(
        parts=tuple(parts),
        names=tuple(titles),
        lists=lists,
        speakers=tuple(names.tolist()),
        enroll=enroll,
        test=test,
        speakers_from=origin,
    )
    _refuse_contradictions(found, side)
    return found


def _refuse_contradictions(trials: Trials, side: str) -> None:
    """Refuse a side that lacks a class, or has a target trial of two speakers."""
    n_target = int(np.count_nonzero(trials.labels))
    if not 0 < n_target < len(trials.labels):
        counts = f"{n_target} target and {len(trials.labels) - n_target} non-target trials"
        raise InputError(f"the {side} side has {counts}, but both kinds are needed; check the key")
    wrong = np.flatnonzero((trials.labels == TARGET) & (trials.enroll != trials.test))
    if wrong.size:
        part = next(at for at, span in enumerate(trials.spans) if wrong[0] < span.stop)
        pair = trials.lists[part].pair(int(wrong[0]) - trials.spans[part].start)
        names = trials.speakers[trials.enroll[wrong[0]]], trials.speakers[trials.test[wrong[0]]]
        raise InputError(f"{pair} is a target trial of the {side} side, but of the speakers {names}; check the key")


def shared_blocks(
    training: Sequence[LabelledBlocks], evaluation: Sequence[LabelledBlocks]
) -> tuple[list[LabelledBlocks], list[LabelledBlocks], list[Diagnostic]]:
    """Return both sides without the cohort scores that one of them lacks, so that norms are trained as they are used.

    Examples
    --------
    >>> from evenscore.data import ScoreBlocks
    >>> trials = TrialList(["e"], ["t"], scores=[1.0], labels=[1])
    >>> bare = LabelledBlocks(ScoreBlocks(trials))
    >>> full = LabelledBlocks(ScoreBlocks(trials, enroll=ScoreMatrix([[0.0]], ["e"], ["c"])))
    >>> shared_blocks([bare], [full])[1][0].blocks
    ScoreBlocks(trials 1 x 1, 1 listed)
    """
    names = ("enroll", "test", "cohort")
    parts = [*training, *evaluation]
    kept = [name for name in names if all(getattr(part.blocks, name) is not None for part in parts)]
    lacking = [name for name in names if name not in kept and any(getattr(part.blocks, name) for part in parts)]
    if not lacking:
        return list(training), list(evaluation), []
    sides = [[replace(part, blocks=part.blocks.only(kept)) for part in side] for side in (training, evaluation)]
    message = f"the cohort scores {' and '.join(lacking)} are not on both sides, so that no norm uses them"
    return sides[0], sides[1], [Diagnostic("data", message)]
