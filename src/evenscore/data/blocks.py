"""The four blocks of scores that every norm works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side, SpeakersLike, replaced
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError, quoted
from evenscore.large import is_dask

__all__ = ["LabelledBlocks", "ScoreBlocks"]

Where = npt.NDArray[np.intp] | Sequence[int] | None  #: positions; None for all


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ScoreBlocks:
    """Trial scores and their cohort scores, aligned by id.

    ====================  =============================================================================
    ``trials`` (S)        m enrolments against n tests, as a matrix or as a list of trials
    ``enroll`` (S_e)      the m enrolments against the M tests of the test cohort
    ``test`` (S_t)        the N enrolments of the enrolment cohort against the n tests
    ``cohort`` (S_I)      cohort against cohort, N x M
    ====================  =============================================================================

    Parameters
    ----------
    trials, enroll, test, cohort
        The blocks. Rows and columns may come in any order, and a block may have more enrolments and tests than the
        trials need; they are brought into the order of the trials and of ``cohort``. All but ``trials`` may be left
        out; each norm says what it needs.
    enroll_labels, test_labels, cohort_labels
        Labels of the cohort scores, as `Labels` or as a key (a labelled `TrialList`; pairs that it does not list are
        non-targets). By default ``cohort`` has the labels that follow from its speakers, if they are known, and
        everything else is a non-target. Classical norms leave out what is not a non-target; the score model uses it.
        With labels, ``enroll`` may have tests (and ``test`` enrolments) that ``cohort`` does not have.
    enroll_speakers, test_speakers, cohort_enroll_speakers, cohort_test_speakers
        Speakers of the trials' and of the cohort's sides, where the tables do not know them: a mapping from id to
        speaker, or a sequence. With them, a trial's own speakers are left out of its cohort.

    Examples
    --------
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0]], ["e"], ["t"]),
    ...     enroll=ScoreMatrix([[1.0, 0.0]], ["e"], ["c1", "c2"]),
    ...     cohort=ScoreMatrix([[0.2, 0.1]], ["d1"], ["c2", "c1"]),
    ... )
    >>> blocks
    ScoreBlocks(trials 1 x 1, enroll 1 x 2, cohort 1 x 2)
    >>> blocks.enroll.test_ids
    array(['c2', 'c1'], dtype=object)
    """

    trials: ScoreMatrix | TrialList
    enroll: ScoreMatrix | None
    test: ScoreMatrix | None
    cohort: ScoreMatrix | None
    enroll_labels: Labels | None
    test_labels: Labels | None
    cohort_labels: Labels | None

    def __init__(
        self,
        trials: ScoreMatrix | TrialList,
        enroll: ScoreMatrix | None = None,
        test: ScoreMatrix | None = None,
        cohort: ScoreMatrix | None = None,
        *,
        enroll_labels: Labels | TrialList | None = None,
        test_labels: Labels | TrialList | None = None,
        cohort_labels: Labels | TrialList | None = None,
        enroll_speakers: SpeakersLike | None = None,
        test_speakers: SpeakersLike | None = None,
        cohort_enroll_speakers: SpeakersLike | None = None,
        cohort_test_speakers: SpeakersLike | None = None,
    ) -> None:
        for name, block in {"trials": trials, "enroll": enroll, "test": test, "cohort": cohort}.items():
            if not isinstance(block, ScoreMatrix | TrialList if name == "trials" else ScoreMatrix | None):
                raise InputError(f"`{name}` is a {type(block).__name__}, but must be a ScoreMatrix")
        trials.needs_scores()
        if enroll_speakers is not None or test_speakers is not None:
            trials = trials.with_speakers(enroll_speakers, test_speakers)
        if enroll is not None and test is not None and not enroll.enroll.same_ids(trials.enroll):
            first = trials.enroll_ids[:1], trials.test_ids[:1]
            there = enroll.enroll.find(first[0]), test.enroll.find(first[0]), enroll.test.find(first[1])
            if [bool((at >= 0).any()) for at in there] == [False, True, True]:
                raise InputError(
                    "`enroll` must have the enrolments against the cohort, `test` the cohort against tests; swap them"
                )
        inner = (None, None) if cohort is None else (cohort.enroll, cohort.test)
        rows = _cohort_side(inner[0], None if test is None else test.enroll, test_labels, "enrolments")
        cols = _cohort_side(inner[1], None if enroll is None else enroll.test, enroll_labels, "tests")
        rows = rows if rows is None or cohort_enroll_speakers is None else rows.with_speakers(cohort_enroll_speakers)
        cols = cols if cols is None or cohort_test_speakers is None else cols.with_speakers(cohort_test_speakers)
        if enroll is not None and cols is not None:
            enroll = enroll.align(trials.enroll, cols, "`enroll`")
        if test is not None and rows is not None:
            test = test.align(rows, trials.test, "`test`")
        if cohort is not None and rows is not None and cols is not None:
            inner_rows, inner_cols = rows.take(slice(cohort.shape[0])), cols.take(slice(cohort.shape[1]))
            cohort = cohort.align(inner_rows, inner_cols, "`cohort`")
        if cohort_labels is None and cohort is not None:
            known = cohort.enroll.speakers is not None and cohort.test.speakers is not None
            cohort_labels = Labels.from_speakers(cohort.enroll, cohort.test) if known else None
        given = {"enroll": (enroll, enroll_labels), "test": (test, test_labels), "cohort": (cohort, cohort_labels)}
        vars(self).update(trials=trials, enroll=enroll, test=test, cohort=cohort)
        for name, (block, labels) in given.items():
            vars(self)[f"{name}_labels"] = None if labels is None else _labels_of(block, labels, name)

    @property
    def cohort_enroll(self) -> Side | None:
        """The enrolment cohort: rows of ``test`` and ``cohort``."""
        block = self.cohort if self.test is None else self.test
        return None if block is None else block.enroll

    @property
    def cohort_test(self) -> Side | None:
        """The test cohort: columns of ``enroll`` and ``cohort``."""
        block = self.cohort if self.enroll is None else self.enroll
        return None if block is None else block.test

    def nontargets(self) -> ScoreBlocks:
        """Return the blocks for norms that know impostors only: other cohort scores are missing, or left out."""
        enroll, test, cohort = self.enroll, self.test, self.cohort
        if enroll is not None and self.enroll_labels is not None:
            enroll = _only_nontargets(enroll, self.enroll_labels)
            enroll = enroll if cohort is None else enroll.take(None, slice(cohort.shape[1]))
        if test is not None and self.test_labels is not None:
            test = _only_nontargets(test, self.test_labels)
            test = test if cohort is None else test.take(slice(cohort.shape[0]))
        if cohort is not None and self.cohort_labels is not None:
            cohort = _only_nontargets(cohort, self.cohort_labels)
        no_labels = dict.fromkeys(("enroll_labels", "test_labels", "cohort_labels"))
        return replaced(self, enroll=enroll, test=test, cohort=cohort, **no_labels)

    def only(self, names: Sequence[str]) -> ScoreBlocks:
        """Return the trials with some of the cohort scores: "enroll", "test", "cohort"."""
        unused = [name for name in ("enroll", "test", "cohort") if name not in names]
        return replaced(self, **{name + labels: None for name in unused for labels in ("", "_labels")})

    def with_trials(self, trials: ScoreMatrix | TrialList) -> ScoreBlocks:
        """Return blocks with other trials of the same enrolments and tests, or of some of them."""
        rows, cols = self.trials.enroll.positions(trials.enroll_ids), self.trials.test.positions(trials.test_ids)
        return replaced(self._take(rows, cols, None, None), trials=trials)

    def take_trials(self, rows: Where, cols: Where) -> ScoreBlocks:
        """Return the blocks of some enrolments and tests of a matrix; None keeps all."""
        if self.trials.rows is not None:
            raise InputError("the trials are a list; select trials and use with_trials")
        return replaced(self._take(rows, cols, None, None), trials=self.trials.take(rows, cols))

    def take_cohort(self, cohort_enroll: Where, cohort_test: Where) -> ScoreBlocks:
        """Return the blocks with some members of the cohort; None keeps all."""
        return self._take(None, None, cohort_enroll, cohort_test)

    def _take(self, rows: Where, cols: Where, members_enroll: Where, members_test: Where) -> ScoreBlocks:
        """Return other rows and columns of the cohort scores and their labels; the trials stay as they are."""
        return replaced(
            self,
            enroll=self.enroll and self.enroll.take(rows, members_test),
            test=self.test and self.test.take(members_enroll, cols),
            cohort=self.cohort and self.cohort.take(members_enroll, members_test),
            enroll_labels=self.enroll_labels and self.enroll_labels.take(rows, members_test),
            test_labels=self.test_labels and self.test_labels.take(members_enroll, cols),
            cohort_labels=self.cohort_labels and self.cohort_labels.take(members_enroll, members_test),
        )

    def __repr__(self) -> str:
        tables = {"trials": self.trials, "enroll": self.enroll, "test": self.test, "cohort": self.cohort}
        sizes = [f"{name} {table.shape[0]} x {table.shape[1]}" for name, table in tables.items() if table is not None]
        listed = [] if self.trials.rows is None else [f"{len(self.trials.rows)} listed"]
        return f"ScoreBlocks({', '.join(sizes + listed)})"


def _cohort_side(cohort: Side | None, block: Side | None, labels: Any, what: str) -> Side | None:
    """Return the members of a cohort: those of S_I first, then those that only labelled scores of a side have."""
    if cohort is None or block is None:
        return block if cohort is None else cohort
    absent, extra = cohort.find(block.ids) < 0, block.find(cohort.ids) < 0
    if extra.any() or (absent.any() and labels is None):
        odd = [*cohort.ids[extra], *block.ids[absent]]
        raise InputError(f"the cohort's {what} do not agree: {quoted(odd)} only in one of two blocks; give one cohort")
    side = cohort.completed_by(block)
    if not absent.any():
        return side
    more = block.take(np.flatnonzero(absent))
    known = side.speakers is not None and more.speakers is not None
    speakers = np.concatenate([side.speakers, more.speakers]) if known else None
    columns = {name: [*side.columns[name], *more.columns[name]] for name in side.columns.keys() & more.columns.keys()}
    return Side(np.concatenate([side.ids, more.ids]), speakers, columns)


def _labels_of(block: ScoreMatrix | None, labels: Labels | TrialList, name: str) -> Labels:
    """Return the labels of a block in its order; pairs that a key does not list are non-targets."""
    if block is None:
        raise InputError(f"`{name}_labels` were given without `{name}`; give these scores, too")
    if isinstance(labels, Labels):
        return labels.align(block.enroll, block.test)
    key = np.full(block.shape, NONTARGET, np.int8)
    rows, cols = block.enroll.find(labels.enroll_ids)[labels.rows], block.test.find(labels.test_ids)[labels.cols]
    inside = (rows >= 0) & (cols >= 0)
    if labels.labels is None or not inside.any():
        raise InputError(f"`{name}_labels` have no label of a pair of `{name}`; give a key of these scores")
    key[rows[inside], cols[inside]] = labels.labels[inside]
    return Labels(block.shape, block.enroll, block.test, key=key)


def _only_nontargets(block: ScoreMatrix, labels: Labels) -> ScoreMatrix:
    """Return the scores with NaN where a pair is not a non-target."""
    if is_dask(block.scores) and labels.by_speaker:  # never form the labels of all pairs
        rows, cols, _ = labels.speaker_codes

        return block.map(lambda s, e, t: np.where((e == t) | (e < 0) | (t < 0), np.nan, s), [rows], [cols])
    other = labels.matrix != NONTARGET
    if not is_dask(block.scores) and not other.any():
        return block
    if is_dask(block.scores):
        import dask.array as da

        other = da.from_array(other, chunks=block.scores.chunks)
    return block.with_scores(np.where(other, np.nan, block.scores).astype(block.scores.dtype))


@dataclass(frozen=True, eq=False)
class LabelledBlocks:
    """Score blocks with the labels of their trials: what methods are trained on, and judged by.

    Examples
    --------
    >>> enroll, test = Side(["e1", "e2"], ["ann", "bob"]), Side(["t1", "t2"], ["ann", "bob"])
    >>> scores = ScoreMatrix([[5.0, 0.0], [1.0, 6.0]], enroll, test)
    >>> LabelledBlocks.own_cohort(scores).trials
    TrialList(4 trials of 2 enrolments and 2 tests, 2 target, 2 non-target, 0 unknown, scores)
    """

    blocks: ScoreBlocks
    labels: Labels | TrialList | None = None  #: of the trials; not needed if these are a list with labels
    name: str = ""  #: of the phrase or condition

    @classmethod
    def own_cohort(cls, scores: ScoreMatrix, labels: Labels | None = None, *, name: str = "") -> LabelledBlocks:
        """Return a labelled matrix as trials and cohort at once: each trial's cohort is all but its own speakers."""
        labels = Labels.from_speakers(scores.enroll, scores.test) if labels is None else labels
        labels = labels.align(scores.enroll, scores.test)
        if not labels.by_speaker:
            raise InputError("a matrix is its own cohort only if speakers are known; make labels with from_speakers")
        known = scores.with_speakers(labels.enroll_speakers, labels.test_speakers)
        return cls(ScoreBlocks(known, known, known, known, cohort_labels=labels), labels, name)

    @property
    def trials(self) -> TrialList:
        """The trials with their labels, as a list; those without a score are left out."""
        return self.labelled(self.blocks.trials)

    def labelled(self, scores: ScoreMatrix | TrialList) -> TrialList:
        """Return other scores of the trials, such as normalized ones, as a list with labels."""
        trials = scores.to_trials()
        if self.labels is not None:
            return trials.join(self.labels)
        if trials.labels is None:
            raise InputError("the trials have no labels; give them as `labels`")
        return trials
