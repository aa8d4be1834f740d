"""Which pairs of a score matrix are targets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.arrays import frozen, hashed, same_array
from evenscore.tables.axis import Axis, SpeakersLike, speakers_of_ids
from evenscore.tables.ids import Ids, IdsLike, as_ids, as_speakers
from evenscore.tables.tile import Tile

if TYPE_CHECKING:
    from evenscore.tables.trial_list import TrialList

__all__ = ["NONTARGET", "TARGET", "UNKNOWN", "Labels"]

NONTARGET = 0  #: class of a pair of two different speakers
TARGET = 1  #: class of a pair of one speaker
UNKNOWN = -1  #: label of a pair whose class is not known

_NO_SPEAKER = -1


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Labels:
    """Target, non-target or unknown for every pair of K enrolments and L tests.

    Made by `from_speakers` (pairs of the same speaker are targets; keeps the block structure, so that the cost does
    not grow with K x L) or by `from_key` (one label for each pair, in any pattern).

    Attributes
    ----------
    enroll_speakers, test_speakers
        Speaker ids of the rows and columns, or None when the labels came from a key. A speaker that is None is not
        known, and so are the labels of its pairs.
    enroll_ids, test_ids
        Ids of the rows and columns, where they were given; then labels can be aligned by id.

    Examples
    --------
    >>> labels = Labels.from_speakers(["ann", "bob"], ["ann", "ann", "eve"])
    >>> labels
    Labels(2 x 3 by speaker: 2 target, 4 non-target, 0 unknown)
    >>> labels.matrix
    array([[1, 1, 0],
           [0, 0, 0]], dtype=int8)
    """

    shape: tuple[int, int]
    enroll_speakers: Ids | None = None
    test_speakers: Ids | None = None
    enroll_ids: Ids | None = None
    test_ids: Ids | None = None
    _key: npt.NDArray[np.int8] | None = field(default=None)

    @classmethod
    def from_speakers(
        cls,
        enroll_speakers: SpeakersLike,
        test_speakers: SpeakersLike,
        *,
        enroll_ids: IdsLike | None = None,
        test_ids: IdsLike | None = None,
    ) -> Labels:
        """Label pairs of the same speaker as targets, all others as non-targets.

        Parameters
        ----------
        enroll_speakers, test_speakers
            The speaker of each row and of each column; None or '' where it is not known. A mapping from id to
            speaker needs ``enroll_ids`` or ``test_ids``, or else its own order of ids is taken.
        enroll_ids, test_ids
            Ids of rows and columns, to align labels with scores by id.

        Examples
        --------
        >>> labels = Labels.from_speakers({"a-1": "ann", "b-1": "bob"}, {"t1": "bob"})
        >>> labels.enroll_ids, labels.matrix.tolist()
        (array(['a-1', 'b-1'], dtype=object), [[0], [1]])
        """
        enroll_speakers, rows = _side(enroll_speakers, enroll_ids, "enroll")
        test_speakers, columns = _side(test_speakers, test_ids, "test")
        return cls(
            shape=(len(enroll_speakers), len(test_speakers)),
            enroll_speakers=enroll_speakers,
            test_speakers=test_speakers,
            enroll_ids=rows,
            test_ids=columns,
        )

    @classmethod
    def of_axes(cls, enroll: Axis, test: Axis) -> Labels:
        """Label the pairs of two axes by the speakers that they know."""
        return cls(
            shape=(len(enroll), len(test)),
            enroll_speakers=enroll.speakers,
            test_speakers=test.speakers,
            enroll_ids=enroll.ids,
            test_ids=test.ids,
        )

    @classmethod
    def from_key(
        cls, key: npt.ArrayLike, *, enroll_ids: IdsLike | None = None, test_ids: IdsLike | None = None
    ) -> Labels:
        """Label each pair on its own.

        Parameters
        ----------
        key
            K x L whole numbers or truth values: 1 (target), 0 (non-target), -1 (unknown).

        Examples
        --------
        >>> Labels.from_key([[1, 0], [-1, 1]])
        Labels(2 x 2 by key: 2 target, 1 non-target, 1 unknown)
        """
        array = np.asarray(key)
        if array.ndim != 2:
            raise InputError(f"key must have 2 dimensions, but has shape {array.shape}")
        if array.dtype.kind not in "biuf" or not np.isin(array, (UNKNOWN, NONTARGET, TARGET)).all():
            raise InputError("key must hold only 1 (target), 0 (non-target) and -1 (unknown)")
        return cls(
            shape=(array.shape[0], array.shape[1]),
            enroll_ids=None if enroll_ids is None else as_ids(enroll_ids, "enroll_ids", array.shape[0]),
            test_ids=None if test_ids is None else as_ids(test_ids, "test_ids", array.shape[1]),
            _key=frozen(array.astype(np.int8)),
        )

    @classmethod
    def from_trials(cls, trials: TrialList) -> Labels:
        """Label the pairs that are listed with a label; all other pairs are unknown."""
        if trials.labels is None:
            raise InputError("the trial list has no labels; read a key, or a score file with labels")
        key = np.full((len(trials.enroll_ids), len(trials.test_ids)), UNKNOWN, dtype=np.int8)
        key[trials.enroll_index, trials.test_index] = trials.labels
        return cls.from_key(key, enroll_ids=trials.enroll_ids, test_ids=trials.test_ids)

    @property
    def by_speaker(self) -> bool:
        """Whether the labels follow from speaker ids."""
        return self._key is None

    @cached_property
    def speaker_codes(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], int]:
        """Numbers of the speakers of the rows, of the columns (-1: not known), and how many speakers there are."""
        if self.enroll_speakers is None or self.test_speakers is None:
            raise InputError("these labels come from a key, so they have no speakers; use Labels.from_speakers")
        sides = (self.enroll_speakers.tolist(), self.test_speakers.tolist())
        names = dict.fromkeys(chain(*sides))
        names.pop(None, None)
        codes: dict[str | None, int] = {name: code for code, name in enumerate(names)}
        number = len(codes)
        codes[None] = _NO_SPEAKER
        rows, columns = (np.fromiter(map(codes.__getitem__, side), dtype=np.intp, count=len(side)) for side in sides)
        return frozen(rows), frozen(columns), number

    @cached_property
    def matrix(self) -> npt.NDArray[np.int8]:
        """K x L labels: 1 target, 0 non-target, -1 unknown."""
        if self._key is not None:
            return self._key
        rows, columns, _ = self.speaker_codes
        key = (rows[:, None] == columns[None, :]).astype(np.int8)
        key[rows == _NO_SPEAKER, :] = UNKNOWN
        key[:, columns == _NO_SPEAKER] = UNKNOWN
        return frozen(key)

    @cached_property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of target, non-target and unknown pairs."""
        if self._key is not None:
            target = int(np.count_nonzero(self._key == TARGET))
            unknown = int(np.count_nonzero(self._key == UNKNOWN))
        else:
            rows, columns, number = self.speaker_codes
            known_rows, known_columns = rows[rows >= 0], columns[columns >= 0]
            target = int(np.bincount(known_rows, minlength=number) @ np.bincount(known_columns, minlength=number))
            unknown = self.shape[0] * self.shape[1] - len(known_rows) * len(known_columns)
        return target, self.shape[0] * self.shape[1] - target - unknown, unknown

    n_target = property(lambda self: self.counts[0], doc="Number of target pairs.")
    n_nontarget = property(lambda self: self.counts[1], doc="Number of non-target pairs.")
    n_unknown = property(lambda self: self.counts[2], doc="Number of pairs whose class is not known.")

    def of_pairs(self, rows: npt.NDArray[Any], columns: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
        """Return the labels of the pairs at these positions, without the labels of all other pairs."""
        if self._key is not None:
            return self._key[rows, columns]
        row_codes, column_codes, _ = self.speaker_codes
        row, column = row_codes[rows], column_codes[columns]
        return np.where((row < 0) | (column < 0), UNKNOWN, row == column).astype(np.int8)

    def of(self, tile: Tile) -> npt.NDArray[np.int8]:
        """Return the labels of the pairs of a tile of the scores that these labels are aligned with."""
        if self._key is not None:
            return self._key[tile.rows, tile.columns]
        rows, columns, _ = self.speaker_codes
        row, column = tile.pair(rows, columns)
        key = np.equal(row, column).view(np.int8)
        if (rows < 0).any() or (columns < 0).any():
            key[np.broadcast_to((row < 0) | (column < 0), key.shape)] = UNKNOWN
        return key

    def identity(self) -> str:
        """Return a text that changes when the labels or their ids change."""
        parts = (self.matrix,) if not self.by_speaker else (self.enroll_speakers, self.test_speakers)
        return hashed(self.enroll_ids, self.test_ids, *parts)

    def take(self, rows: npt.NDArray[np.intp], columns: npt.NDArray[np.intp]) -> Labels:
        """Return the labels of the rows and columns at these positions, in this order."""

        def part(values: Any, at: Any) -> Any:
            return None if values is None else frozen(values[at])

        return Labels(
            shape=(len(rows), len(columns)),
            enroll_speakers=part(self.enroll_speakers, rows),
            test_speakers=part(self.test_speakers, columns),
            enroll_ids=part(self.enroll_ids, rows),
            test_ids=part(self.test_ids, columns),
            _key=None if self._key is None else frozen(self._key[np.ix_(rows, columns)]),
        )

    def align(self, enroll_ids: IdsLike, test_ids: IdsLike) -> Labels:
        """Return the labels of these enrolments and tests, in this order, found by id.

        Labels without ids are taken to be in order already, if their shape fits.
        """
        rows, columns = as_ids(enroll_ids, "enroll_ids"), as_ids(test_ids, "test_ids")
        if self.enroll_ids is None or self.test_ids is None:
            if self.shape != (len(rows), len(columns)):
                raise InputError(
                    f"labels are {self.shape[0]} x {self.shape[1]}, but the scores are {len(rows)} x {len(columns)}"
                )
            return Labels(
                shape=self.shape,
                enroll_speakers=self.enroll_speakers,
                test_speakers=self.test_speakers,
                enroll_ids=rows,
                test_ids=columns,
                _key=self._key,
            )
        if np.array_equal(rows, self.enroll_ids) and np.array_equal(columns, self.test_ids):
            return self
        return self.take(
            Axis(self.enroll_ids).positions(rows, "enrolment", "the labels"),
            Axis(self.test_ids).positions(columns, "test", "the labels"),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Labels):
            return NotImplemented
        return (
            self.shape == other.shape
            and same_array(self.enroll_ids, other.enroll_ids)
            and same_array(self.test_ids, other.test_ids)
            and same_array(self.matrix, other.matrix)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        target, nontarget, unknown = self.counts
        how = "speaker" if self.by_speaker else "key"
        size = f"{self.shape[0]} x {self.shape[1]} by {how}"
        return f"Labels({size}: {target} target, {nontarget} non-target, {unknown} unknown)"


def _side(speakers: SpeakersLike, ids: IdsLike | None, side: str) -> tuple[Ids, Ids | None]:
    """Return the speakers of one side in order, and its ids if they are known."""
    if ids is None and not isinstance(speakers, Mapping):
        return as_speakers(speakers, f"{side}_speakers"), None
    names = as_ids(speakers if ids is None else ids, f"{side}_ids", None)
    if not isinstance(speakers, Mapping):
        speakers = as_speakers(speakers, f"{side}_speakers")
        names = as_ids(names, f"{side}_ids", len(speakers))
    found = speakers_of_ids(speakers, names, f"{side}_speakers")
    assert found is not None  # noqa: S101
    return found, names
