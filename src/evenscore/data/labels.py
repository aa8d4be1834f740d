"""Which pairs of enrolments and tests are targets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.side import Ids, IdsLike, Side, SpeakersLike, as_strings
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.data.trial_list import TrialList

__all__ = ["NONTARGET", "TARGET", "UNKNOWN", "Labels"]

NONTARGET = 0  #: label of a pair of two speakers
TARGET = 1  #: label of a pair of one speaker
UNKNOWN = -1  #: label of a pair whose class is not known

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False, repr=False)
class Labels:
    """Target, non-target or unknown for every pair of K enrolments and L tests.

    Made by `from_speakers` (pairs of one speaker are targets; costs nothing for pairs) or by `from_key` (any pattern).

    Examples
    --------
    >>> labels = Labels.from_speakers(["ann", "bob"], ["ann", "ann", None])
    >>> labels
    Labels(2 x 3: 2 target, 2 non-target, 2 unknown)
    >>> labels.matrix
    array([[ 1,  1, -1],
           [ 0,  0, -1]], dtype=int8)
    """

    shape: tuple[int, int]
    enroll: Side | None = None  #: ids of the rows, where they are known
    test: Side | None = None  #: ids of the columns, where they are known
    enroll_speakers: Ids | None = None
    test_speakers: Ids | None = None
    key: npt.NDArray[np.int8] | None = None  #: K x L labels, if they do not follow from speakers

    @classmethod
    def from_speakers(
        cls,
        enroll_speakers: SpeakersLike | Side,
        test_speakers: SpeakersLike | Side,
        *,
        enroll_ids: IdsLike | None = None,
        test_ids: IdsLike | None = None,
    ) -> Labels:
        """Label pairs of the same speaker as targets; a speaker that is None or "" makes its pairs unknown.

        Speakers are a sequence, a mapping from id to speaker, or a `Side` that knows its speakers. With ids, labels can
        be aligned with scores.
        """
        enroll, of_rows = _side_and_speakers(enroll_speakers, enroll_ids, "enroll")
        test, of_cols = _side_and_speakers(test_speakers, test_ids, "test")
        return cls((len(of_rows), len(of_cols)), enroll, test, of_rows, of_cols)

    @classmethod
    def from_key(
        cls, key: npt.ArrayLike, *, enroll_ids: IdsLike | Side | None = None, test_ids: IdsLike | Side | None = None
    ) -> Labels:
        """Label each pair on its own: 1 (target), 0 (non-target), -1 (unknown)."""
        array = np.asarray(key)
        if array.ndim != 2 or array.dtype.kind not in "biuf" or not np.isin(array, (-1, 0, 1)).all():
            raise InputError("a key must be a matrix of 1 (target), 0 (non-target) and -1 (unknown)")
        enroll = enroll_ids if isinstance(enroll_ids, Side | None) else Side(enroll_ids, name="enroll_ids")
        test = test_ids if isinstance(test_ids, Side | None) else Side(test_ids, name="test_ids")
        return cls(array.shape, enroll, test, key=array.astype(np.int8))

    @classmethod
    def from_trials(cls, trials: TrialList, unlisted: int = UNKNOWN) -> Labels:
        """Label the pairs that are listed; all others are unknown, or what ``unlisted`` says."""
        if trials.labels is None:
            raise InputError("the trial list has no labels; read a key, or a score file with labels")
        key = np.full(trials.shape, unlisted, np.int8)
        key[trials.rows, trials.cols] = trials.labels
        return cls(trials.shape, trials.enroll, trials.test, key=key)

    @property
    def by_speaker(self) -> bool:
        """Whether the labels follow from speakers."""
        return self.key is None

    @cached_property
    def speaker_codes(self) -> tuple[Codes, Codes, int]:
        """Speaker codes of the rows and of the columns (-1: unknown), and the number of speakers."""
        if self.enroll_speakers is None or self.test_speakers is None:
            raise InputError("these labels come from a key, so they have no speakers; use Labels.from_speakers")
        rows, cols = self.enroll_speakers.tolist(), self.test_speakers.tolist()
        codes: dict[str | None, int] = {None: -1}
        for name in (*rows, *cols):
            codes.setdefault(name, len(codes) - 1)
        return np.array([codes[n] for n in rows], np.intp), np.array([codes[n] for n in cols], np.intp), len(codes) - 1

    @cached_property
    def matrix(self) -> npt.NDArray[np.int8]:
        """K x L labels."""
        if self.key is not None:
            return self.key
        return self.pairs(np.arange(self.shape[0])[:, None], np.arange(self.shape[1]))

    def pairs(self, rows: npt.NDArray[np.integer], cols: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
        """Return the labels of the pairs at these positions."""
        if self.key is not None:
            return self.key[rows, cols]
        of_rows, of_cols, _ = self.speaker_codes
        return _compared(of_rows[rows], of_cols[cols])

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of target, non-target and unknown pairs."""
        n_pairs = self.shape[0] * self.shape[1]
        if self.key is not None:
            n_target, n_nontarget = (int(np.count_nonzero(self.key == label)) for label in (TARGET, NONTARGET))
            return n_target, n_nontarget, n_pairs - n_target - n_nontarget
        rows, cols, n_speakers = self.speaker_codes
        rows, cols = rows[rows >= 0], cols[cols >= 0]
        n_target = int(np.bincount(rows, minlength=n_speakers) @ np.bincount(cols, minlength=n_speakers))
        return n_target, len(rows) * len(cols) - n_target, n_pairs - len(rows) * len(cols)

    def take(self, rows: npt.ArrayLike | None, cols: npt.ArrayLike | None) -> Labels:
        """Return the labels of the rows and columns at these positions, in this order; None takes all."""
        rows = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        cols = np.arange(self.shape[1]) if cols is None else np.asarray(cols)
        sides = self.enroll and self.enroll.take(rows), self.test and self.test.take(cols)
        shape = len(rows), len(cols)
        if self.enroll_speakers is not None and self.test_speakers is not None:
            return Labels(shape, *sides, self.enroll_speakers[rows], self.test_speakers[cols])
        return Labels(shape, *sides, key=self.matrix[np.ix_(rows, cols)])

    def align(self, enroll: Side, test: Side) -> Labels:
        """Return the labels of these ids, in this order; labels without ids must have the right shape."""
        if self.enroll is None or self.test is None:
            if self.shape != (shape := (len(enroll), len(test))):
                raise InputError(f"labels are {self.shape}, but the scores are {shape}; make them agree")
            return Labels(self.shape, enroll, test, self.enroll_speakers, self.test_speakers, self.key)
        if self.enroll.same_ids(enroll) and self.test.same_ids(test):
            return self
        rows = self.enroll.positions(enroll.ids, "enrolment", "the labels", self.test)
        return self.take(rows, self.test.positions(test.ids, "test", "the labels", self.enroll))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return self.enroll == other.enroll and self.test == other.test and np.array_equal(self.matrix, other.matrix)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        target, nontarget, unknown = self.counts
        return f"Labels({self.shape[0]} x {self.shape[1]}: {target} target, {nontarget} non-target, {unknown} unknown)"


def _compared(rows: Codes, cols: Codes) -> npt.NDArray[np.int8]:
    """Return 1 where speaker codes are equal, 0 where they differ, -1 where one is unknown."""
    labels = np.equal(rows, cols).astype(np.int8)
    if (rows < 0).any() or (cols < 0).any():
        labels[np.broadcast_to((rows < 0) | (cols < 0), labels.shape)] = UNKNOWN
    return labels


def _side_and_speakers(speakers: SpeakersLike | Side, ids: IdsLike | None, name: str) -> tuple[Side | None, Ids]:
    if isinstance(speakers, Side):
        side: Side | None = speakers
    elif ids is not None or hasattr(speakers, "keys"):
        side = Side(speakers if ids is None else ids, speakers, name=f"{name}_ids")
    else:
        found = as_strings(speakers, f"{name}_speakers")
        found[found == ""] = None
        return None, found
    if side is None or side.speakers is None:
        raise InputError(f"the speakers of the {name} side are not known; give them")
    return side, side.speakers
