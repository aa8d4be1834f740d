"""The four blocks of scores that every normalizer works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.errors import InputError
from evenscore.tables.arrays import same_array
from evenscore.tables.ids import Ids, IdsLike, as_speakers, shown
from evenscore.tables.labels import Labels
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["ScoreBlocks", "aligned_block", "shared_ids", "side_speakers"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ScoreBlocks:
    """Trial scores and their cohort scores, aligned by id.

    ====================  =============================================================================
    ``trials`` (S)        m enrolments against n tests, as a matrix or as a list of trials
    ``enroll`` (S_e)      the m enrolments against the M tests of the test cohort
    ``test`` (S_t)        the N enrolments of the enrolment cohort against the n tests
    ``cohort`` (S_I)      cohort against cohort, N x M, with labels
    ====================  =============================================================================

    Parameters
    ----------
    trials, enroll, test, cohort
        The blocks. Rows and columns may come in any order and may have more enrolments and tests than the trials
        need; they are brought into the order of the trials and of ``cohort``. Every block but ``trials`` may be left
        out; each norm says what it needs.
    cohort_labels
        Labels of ``cohort``. By default they follow from the cohort's speakers, or, without speakers, all pairs are
        non-targets.
    enroll_speakers, test_speakers
        The speaker of each enrolment and of each test of the trials: a mapping from id to speaker, or a sequence in
        the order of ``trials.enroll_ids`` and ``trials.test_ids``. With them (and those of the cohort), a trial's
        own speakers are left out of its cohort.
    cohort_enroll_speakers, cohort_test_speakers
        The same for the cohort; a sequence is in the order of the rows of ``cohort`` (else of ``test``) and of the
        columns of ``cohort`` (else of ``enroll``).

    Examples
    --------
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0]], ["e"], ["t"]),
    ...     enroll=ScoreMatrix([[1.0, 0.0]], ["e"], ["c1", "c2"]),
    ...     test=ScoreMatrix([[0.5]], ["d1"], ["t"]),
    ...     cohort=ScoreMatrix([[0.2, 0.1]], ["d1"], ["c2", "c1"]),
    ... )
    >>> blocks
    ScoreBlocks(trials 1 x 1, enroll 1 x 2, test 1 x 1, cohort 1 x 2)
    >>> blocks.enroll.test_ids
    array(['c2', 'c1'], dtype=object)
    """

    trials: ScoreMatrix | TrialList
    enroll: ScoreMatrix | None
    test: ScoreMatrix | None
    cohort: ScoreMatrix | None
    cohort_labels: Labels | None
    enroll_speakers: Ids | None
    test_speakers: Ids | None
    cohort_enroll_speakers: Ids | None
    cohort_test_speakers: Ids | None

    def __init__(
        self,
        trials: ScoreMatrix | TrialList,
        *,
        enroll: ScoreMatrix | None = None,
        test: ScoreMatrix | None = None,
        cohort: ScoreMatrix | None = None,
        cohort_labels: Labels | None = None,
        enroll_speakers: IdsLike | Mapping[str, str] | None = None,
        test_speakers: IdsLike | Mapping[str, str] | None = None,
        cohort_enroll_speakers: IdsLike | Mapping[str, str] | None = None,
        cohort_test_speakers: IdsLike | Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(trials, TrialList) and trials.scores is None:
            raise InputError("the trials have no scores; give a score file or a score matrix")
        cohort_rows = shared_ids(cohort, test, "enroll_ids", "the cohort's enrolments (rows of `cohort` and `test`)")
        cohort_columns = shared_ids(cohort, enroll, "test_ids", "the cohort's tests (columns of `cohort` and `enroll`)")
        if enroll is not None:
            enroll = aligned_block(enroll, trials.enroll_ids, cohort_columns, "enroll")
        if test is not None:
            test = aligned_block(test, cohort_rows, trials.test_ids, "test")
        sides = {
            "enroll_speakers": side_speakers(enroll_speakers, trials.enroll_ids, "enroll_speakers"),
            "test_speakers": side_speakers(test_speakers, trials.test_ids, "test_speakers"),
            "cohort_enroll_speakers": side_speakers(cohort_enroll_speakers, cohort_rows, "cohort_enroll_speakers"),
            "cohort_test_speakers": side_speakers(cohort_test_speakers, cohort_columns, "cohort_test_speakers"),
        }
        if cohort is None and cohort_labels is not None:
            raise InputError("cohort_labels were given without cohort scores; give `cohort` too")
        if cohort is not None:
            cohort_labels = _cohort_labels(cohort, cohort_labels, sides)
        for name, value in {
            "trials": trials,
            "enroll": enroll,
            "test": test,
            "cohort": cohort,
            "cohort_labels": cohort_labels,
            **sides,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_cohort(
        cls,
        cohort: ScoreMatrix | ScoreBlocks | None,
        labels: Labels | None = None,
        *,
        enroll_speakers: IdsLike | Mapping[str, str] | None = None,
        test_speakers: IdsLike | Mapping[str, str] | None = None,
    ) -> ScoreBlocks | None:
        """Return blocks without trials for a cohort that is given as a matrix; blocks and None as they are."""
        if isinstance(cohort, ScoreMatrix):
            return cls(
                TrialList([], [], [], [], scores=[]),
                cohort=cohort,
                cohort_labels=labels,
                cohort_enroll_speakers=enroll_speakers,
                cohort_test_speakers=test_speakers,
            )
        if labels is not None or enroll_speakers is not None or test_speakers is not None:
            raise InputError("labels and speakers belong to a cohort given as a score matrix; put them into the blocks")
        return cohort

    @property
    def cohort_enroll_ids(self) -> Ids | None:
        """Ids of the enrolment cohort, None if there is none."""
        block = self.cohort if self.cohort is not None else self.test
        return None if block is None else block.enroll_ids

    @property
    def cohort_test_ids(self) -> Ids | None:
        """Ids of the test cohort, None if there is none."""
        block = self.cohort if self.cohort is not None else self.enroll
        return None if block is None else block.test_ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreBlocks):
            return NotImplemented
        blocks = ("trials", "enroll", "test", "cohort", "cohort_labels")
        sides = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
        return all(getattr(self, name) == getattr(other, name) for name in blocks) and all(
            same_array(getattr(self, name), getattr(other, name)) for name in sides
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if isinstance(self.trials, TrialList):
            parts = [f"{len(self.trials)} listed trials"]
        else:
            parts = [f"trials {self.trials.shape[0]} x {self.trials.shape[1]}"]
        for name in ("enroll", "test", "cohort"):
            block = getattr(self, name)
            if block is not None:
                parts.append(f"{name} {block.shape[0]} x {block.shape[1]}")
        known = [side for side in ("enroll", "test", "cohort_enroll", "cohort_test") if self._has_speakers(side)]
        if known:
            parts.append(f"speakers of {', '.join(known)}")
        return f"ScoreBlocks({', '.join(parts)})"

    def _has_speakers(self, side: str) -> bool:
        return getattr(self, f"{side}_speakers") is not None


def shared_ids(cohort: Any, block: Any, side: str, what: str) -> Ids | None:
    """Return the ids that the cohort scores and one side's cohort scores must have in common."""
    if cohort is None or block is None:
        one = cohort if cohort is not None else block
        return None if one is None else getattr(one, side)
    first, second = getattr(cohort, side), getattr(block, side)
    odd = set(first) ^ set(second)
    if odd:
        raise InputError(f"{what} do not line up: {shown(sorted(odd))} only in one of the two")
    ids: Ids = first
    return ids


def aligned_block(block: Any, rows: Ids | None, columns: Ids | None, name: str) -> Any:
    """Bring a block into the order of these ids; None leaves a side as it is."""
    try:
        return block.align(block.enroll_ids if rows is None else rows, block.test_ids if columns is None else columns)
    except InputError as error:
        raise InputError(f"block `{name}`: {error}") from None


def side_speakers(speakers: IdsLike | Mapping[str, str] | None, ids: Ids | None, what: str) -> Ids | None:
    """Return the speaker of each id, from a map or a sequence in the order of the ids."""
    if speakers is None:
        return None
    if ids is None:
        raise InputError(f"{what} were given, but there is no block that they belong to")
    if isinstance(speakers, Mapping):
        absent = [name for name in ids if name not in speakers]
        if absent:
            raise InputError(f"{what} has no speaker for {shown(absent)}; add them, or map them to None")
        speakers = [speakers[name] for name in ids]
    return as_speakers(speakers, what, len(ids))


def _cohort_labels(cohort: ScoreMatrix, labels: Labels | None, sides: Mapping[str, Any]) -> Labels:
    rows, columns = sides["cohort_enroll_speakers"], sides["cohort_test_speakers"]
    if labels is not None:
        return labels.align(cohort.enroll_ids, cohort.test_ids)
    if rows is not None and columns is not None:
        return Labels.from_speakers(rows, columns, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids)
    key = np.zeros(cohort.shape, dtype=np.int8)
    return Labels.from_key(key, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids)
