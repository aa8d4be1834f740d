"""The four blocks of scores that every normalizer works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import hashed
from evenscore.tables.axis import Axis, SpeakersLike
from evenscore.tables.door import refusing_infinite
from evenscore.tables.ids import Ids, shown
from evenscore.tables.known_scores import KnownScores, without_labelled
from evenscore.tables.labels import NONTARGET, Labels
from evenscore.tables.pair_values import labels_for
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.score_table import ScoreTable
from evenscore.tables.trial_list import TrialList

__all__ = ["ScoreBlocks"]

_BLOCKS = ("trials", "enroll", "test", "cohort")
_BESIDE = ("cohort_labels", "enroll_known", "test_known")


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
        out; each norm says what it needs. Any of them may be in memory, or in files, Dask arrays or embeddings, from
        where tiles are read when they are needed.
    cohort_labels
        Labels of ``cohort``. By default they follow from the cohort's speakers, or, without speakers, all pairs are
        non-targets.
    enroll_labels, test_labels
        Labels of ``enroll`` and ``test``, as `Labels` or as a key (a list of labelled pairs; what it does not list is a
        non-target). By default all of these are non-targets. Targets, such as the scores of an enrolment against
        further takes of its speaker, count for the score model; for other norms, which know impostors only, they are
        missing, as are pairs of unknown label. With labels, ``enroll`` may have tests (and ``test`` enrolments) that
        ``cohort`` does not have: only their labelled scores count.
    enroll_known, test_known
        What was found so, in place of ``enroll_labels`` and ``test_labels``.
    enroll_speakers, test_speakers
        The speaker of each enrolment and of each test of the trials, if their axes do not know them: a mapping from
        id to speaker, or a sequence in the order of ``trials.enroll_ids`` and ``trials.test_ids``. With them (and
        those of the cohort), a trial's own speakers are left out of its cohort.
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

    trials: Any
    enroll: Any
    test: Any
    cohort: Any
    cohort_labels: Labels | None
    enroll_known: KnownScores | None
    test_known: KnownScores | None

    def __init__(
        self,
        trials: ScoreTable,
        *,
        enroll: ScoreTable | None = None,
        test: ScoreTable | None = None,
        cohort: ScoreTable | None = None,
        cohort_labels: Labels | None = None,
        enroll_labels: Labels | TrialList | None = None,
        test_labels: Labels | TrialList | None = None,
        enroll_speakers: SpeakersLike | None = None,
        test_speakers: SpeakersLike | None = None,
        cohort_enroll_speakers: SpeakersLike | None = None,
        cohort_test_speakers: SpeakersLike | None = None,
        enroll_known: KnownScores | None = None,
        test_known: KnownScores | None = None,
    ) -> None:
        _refuse_other_things(trials=trials, enroll=enroll, test=test, cohort=cohort, cohort_labels=cohort_labels)
        enroll, test, cohort = map(refusing_infinite, (enroll, test, cohort))
        trials = refusing_infinite(trials).with_speakers(enroll_speakers, test_speakers)
        if enroll_labels is not None:
            enroll, enroll_known = _known_scores(enroll, enroll_labels, cohort, "enroll")
        if test_labels is not None:
            test, test_known = _known_scores(test, test_labels, cohort, "test")
        rows = _shared(cohort, test, "enroll_axis", "the cohort's enrolments (rows of `cohort` and `test`)")
        columns = _shared(cohort, enroll, "test_axis", "the cohort's tests (columns of `cohort` and `enroll`)")
        rows = _with_speakers(rows, cohort_enroll_speakers, "cohort_enroll_speakers")
        columns = _with_speakers(columns, cohort_test_speakers, "cohort_test_speakers")
        if enroll is not None:
            enroll = _aligned(enroll, trials.enroll_axis, columns, "enroll")
        if test is not None:
            test = _aligned(test, rows, trials.test_axis, "test")
        if cohort is None and cohort_labels is not None:
            raise InputError("cohort_labels were given without cohort scores; give `cohort` too")
        if cohort is not None:
            cohort = cohort.with_axes(rows, columns)  # type: ignore[arg-type]
            cohort_labels = _cohort_labels(cohort, cohort_labels)
        enroll_known = _aligned_known(enroll_known, trials.enroll_axis, columns)
        test_known = _aligned_known(test_known, trials.test_axis, rows)
        beside = (cohort_labels, enroll_known, test_known)
        for name, value in zip((*_BLOCKS, *_BESIDE), (trials, enroll, test, cohort, *beside), strict=True):
            object.__setattr__(self, name, value)

    @classmethod
    def of_cohort(
        cls,
        cohort: ScoreMatrix | ScoreBlocks | None,
        labels: Labels | None = None,
        *,
        enroll_speakers: SpeakersLike | None = None,
        test_speakers: SpeakersLike | None = None,
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

    def replace(self, **changed: Any) -> ScoreBlocks:
        """Return blocks in which some are others; what is known about ids stays, as it belongs to the tables.

        Trials may be some of those that were there: cohort scores then are those of their ids.
        """
        parts = {name: getattr(self, name) for name in (*_BLOCKS, *_BESIDE)} | changed
        if parts["cohort"] is None:
            parts["cohort_labels"] = None
        return ScoreBlocks(parts.pop("trials"), **parts)

    def with_targets(
        self, enroll: Mapping[str, npt.ArrayLike] | None = None, test: Mapping[str, npt.ArrayLike] | None = None
    ) -> ScoreBlocks:
        """Return blocks with known target scores of some enrolments and tests, in place of any that were known.

        Parameters
        ----------
        enroll, test
            By id of an enrolment (or of a test) its scores against recordings of its own speaker that are neither in
            the trials nor in the cohort, such as further takes.

        Examples
        --------
        >>> blocks = ScoreBlocks(ScoreMatrix([[3.0]], ["e"], ["t"]))
        >>> blocks.with_targets(enroll={"e": [4.0, 5.0]})
        ScoreBlocks(trials 1 x 1, 2 known scores of enrolments)
        """
        sides = (
            ("enroll_known", enroll, self.trials.enroll_axis, self.cohort_test_axis, "enrolment"),
            ("test_known", test, self.trials.test_axis, self.cohort_enroll_axis, "test"),
        )
        known = {name: KnownScores.targets(given, *rest) for name, given, *rest in sides if given is not None}
        return self.replace(**known)

    @property
    def is_in_memory(self) -> bool:
        """Whether all scores are in memory, those of the cohort, too."""
        tables = (getattr(self, name) for name in _BLOCKS)
        return all(table is None or table.is_in_memory for table in tables)

    @property
    def cohort_enroll_axis(self) -> Axis | None:
        """The enrolment cohort, None if there is none."""
        block = self.cohort if self.cohort is not None else self.test
        return None if block is None else block.enroll_axis

    @property
    def cohort_test_axis(self) -> Axis | None:
        """The test cohort, None if there is none."""
        block = self.cohort if self.cohort is not None else self.enroll
        return None if block is None else block.test_axis

    @property
    def cohort_enroll_ids(self) -> Ids | None:
        """Ids of the enrolment cohort, None if there is none."""
        return None if self.cohort_enroll_axis is None else self.cohort_enroll_axis.ids

    @property
    def cohort_test_ids(self) -> Ids | None:
        """Ids of the test cohort, None if there is none."""
        return None if self.cohort_test_axis is None else self.cohort_test_axis.ids

    @property
    def enroll_speakers(self) -> Ids | None:
        """Speakers of the trials' enrolments, None if they are not known."""
        return self.trials.enroll_axis.speakers

    @property
    def test_speakers(self) -> Ids | None:
        """Speakers of the trials' tests, None if they are not known."""
        return self.trials.test_axis.speakers

    @property
    def cohort_enroll_speakers(self) -> Ids | None:
        """Speakers of the enrolment cohort, None if they are not known."""
        return None if self.cohort_enroll_axis is None else self.cohort_enroll_axis.speakers

    @property
    def cohort_test_speakers(self) -> Ids | None:
        """Speakers of the test cohort, None if they are not known."""
        return None if self.cohort_test_axis is None else self.cohort_test_axis.speakers

    @property
    def _axes(self) -> dict[str, Axis | None]:
        return {
            "enroll": self.trials.enroll_axis,
            "test": self.trials.test_axis,
            "cohort_enroll": self.cohort_enroll_axis,
            "cohort_test": self.cohort_test_axis,
        }

    def identity(self) -> dict[str, str]:
        """Return for each block, by name, a text that changes when it changes."""
        tables = {name: getattr(self, name) for name in _BLOCKS}
        found = {name: "" if table is None else table.identity() for name, table in tables.items()}
        labels = ["" if part is None else part.identity() for part in (getattr(self, name) for name in _BESIDE)]
        speakers = [None if axis is None else axis.speakers for axis in self._axes.values()]
        return found | {"labels and speakers": hashed(*labels, *speakers)}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreBlocks):
            return NotImplemented
        axes = zip(self._axes.values(), other._axes.values(), strict=True)
        return all(getattr(self, name) == getattr(other, name) for name in (*_BLOCKS, *_BESIDE)) and all(
            (one is None and two is None) or (one is not None and two is not None and one.same(two))
            for one, two in axes
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        listed = [f"{self.trials.size} listed trials"] if self.trials.listed else []
        tables = {name: getattr(self, name) for name in _BLOCKS[len(listed) :]}
        parts = [f"{name} {table.shape[0]} x {table.shape[1]}" for name, table in tables.items() if table is not None]
        known = [side for side, axis in self._axes.items() if axis is not None and axis.speakers is not None]
        speakers = [f"speakers of {', '.join(known)}"] if known else []
        labelled = [f"{len(part)} known scores of {side}s" for side, part in self._known.items() if part is not None]
        return f"ScoreBlocks({', '.join([*listed, *parts, *speakers, *labelled])})"

    @property
    def _known(self) -> dict[str, KnownScores | None]:
        return {"enrolment": self.enroll_known, "test": self.test_known}


def _refuse_other_things(**given: Any) -> None:
    labels = given.pop("cohort_labels")
    for name, table in given.items():
        if table is not None and not isinstance(table, ScoreTable):
            raise InputError(
                f"`{name}` is a {type(table).__name__}, but must be a table of scores, such as a ScoreMatrix; make one "
                "with as_table"
            )
    if not isinstance(labels, Labels | None):
        raise InputError(
            f"cohort_labels are a {type(labels).__name__}, but must be Labels; make them with Labels.from_speakers or "
            "Labels.from_key"
        )
    trials = given["trials"]
    if isinstance(trials, TrialList) and trials.scores is None:
        raise InputError("the trials have no scores; give a score file or a score matrix")


def _shared(cohort: Any, block: Any, side: str, what: str) -> Axis | None:
    """Return the axis that the cohort scores and one side's cohort scores must have in common."""
    if cohort is None or block is None:
        one = cohort if cohort is not None else block
        return None if one is None else getattr(one, side)
    first: Axis = getattr(cohort, side)
    second: Axis = getattr(block, side)
    odd = set(first.ids) ^ set(second.ids)
    if odd:
        raise InputError(f"{what} do not line up: {shown(sorted(odd))} only in one of the two")
    return first if first.speakers is not None else first.knowing(second.take(second.find(first.ids)))


def _known_scores(block: Any, labels: Any, cohort: Any, name: str) -> tuple[Any, KnownScores]:
    """Take the scores that are known to be targets, or are of nobody in the cohort, out of cohort scores."""
    if block is None:
        raise InputError(f"{name}_labels were given without cohort scores of the {name} side; give `{name}` too")
    by_row = name == "enroll"
    if not isinstance(labels, Labels | TrialList):
        raise InputError(f"{name}_labels are a {type(labels).__name__}, but must be Labels, or a key")
    try:
        found = labels_for(block, labels)
    except InputError as error:
        raise InputError(f"{name}_labels: {error}") from None
    side = "test_axis" if by_row else "enroll_axis"
    members = getattr(block, side)
    inside = np.ones(len(members), dtype=bool) if cohort is None else getattr(cohort, side).find(members.ids) >= 0
    known = KnownScores.of(block, found, inside, by_row)
    rest = without_labelled(block, found)
    if inside.all():
        return rest, known
    kept = np.flatnonzero(inside)
    return (rest.take(None, kept) if by_row else rest.take(kept, None)) if len(kept) else None, known


def _with_speakers(axis: Axis | None, speakers: SpeakersLike | None, what: str) -> Axis | None:
    if speakers is None:
        return axis
    if axis is None:
        raise InputError(f"{what} were given, but there is no block that they belong to")
    return axis.with_speakers(speakers, what)


def _aligned(block: ScoreTable, rows: Axis | None, columns: Axis | None, name: str) -> ScoreTable:
    """Bring a block into the order of these ids; None leaves a side as it is."""
    try:
        return block.align(block.enroll_axis if rows is None else rows, block.test_axis if columns is None else columns)
    except InputError as error:
        raise InputError(f"block `{name}`: {error}") from None


def _aligned_known(known: KnownScores | None, axis: Axis, members: Axis | None) -> KnownScores | None:
    """Return what is known of the elements of an axis, None if it is nothing."""
    found = None if known is None else known.align(axis, members)
    return found if found is not None and len(found) else None


def _cohort_labels(cohort: ScoreTable, labels: Labels | None) -> Labels:
    """Return the labels of the cohort against itself: those that were given, else by speaker, else non-targets."""
    if labels is not None:
        return labels.align(cohort.enroll_ids, cohort.test_ids)
    if cohort.enroll_axis.speakers is not None and cohort.test_axis.speakers is not None:
        return Labels.of_axes(cohort.enroll_axis, cohort.test_axis)
    if cohort.is_in_memory:
        key = np.broadcast_to(np.int8(NONTARGET), cohort.shape)  # takes no room
        return Labels(shape=cohort.shape, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids, _key=key)
    n_rows, n_columns = cohort.shape  # everybody is somebody else, without a table of all pairs
    rows, columns = range(n_rows), range(n_rows, n_rows + n_columns)
    return Labels.from_speakers(rows, columns, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids)
