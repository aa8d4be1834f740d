"""Lists of trials that get their labels, or enrolments of their own for each phrase, when they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evenscore.tables.axis import as_axis
from evenscore.tables.identity import hashed
from evenscore.tables.labels import UNKNOWN
from evenscore.tables.pair_values import UNLISTED, OwnLabels, PairValues
from evenscore.tables.score_table import ScoreTable, Source
from evenscore.tables.tile import Place, Tile
from evenscore.tables.trial_list import TrialList

__all__ = ["apart_by_phrase", "with_labels"]


def with_labels(trials: ScoreTable, labels: PairValues) -> ScoreTable:
    """Return a list with these labels, but the trials that they do not know; labelled when it is read.

    Examples
    --------
    >>> from evenscore.tables import labels_for
    >>> key = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], labels=[1, 0])
    >>> trials = TrialList.from_pairs(["e2", "e1", "e3"], ["t1", "t1", "t1"], scores=[-1.0, 2.0, 3.0])
    >>> with_labels(trials, labels_for(trials, key)).labels
    array([0, 1], dtype=int8)
    """
    if isinstance(labels, OwnLabels):
        return trials
    table = trials.with_source(_Labelled(trials.source, labels))
    if not isinstance(trials, TrialList):
        return table
    found: TrialList = table.in_memory()
    return found if len(found) == len(trials) else found.select(np.arange(len(found)))


def apart_by_phrase(trials: ScoreTable, phrases: Mapping[str, str]) -> ScoreTable:
    r"""Return a list in which each phrase has enrolments of its own, so that training takes it as a matrix of its own.

    Parameters
    ----------
    trials
        The list.
    phrases
        The phrase of each test.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["e", "e"], ["p1-a", "p2-a"], scores=[-1.0, 2.0])
    >>> apart_by_phrase(trials, {"p1-a": "p1", "p2-a": "p2"}).in_memory().enroll
    array(['e\tp1', 'e\tp2'], dtype=object)
    """
    names = {name: code for code, name in enumerate(dict.fromkeys(phrases[test] for test in trials.test_ids))}
    codes = np.array([names[phrases[test]] for test in trials.test_ids], dtype=np.int32)
    both = [f"{enrolment}\t{phrase}" for enrolment in trials.enroll_ids for phrase in names]
    return trials.with_source(_Phrased(trials.source, codes, len(names)), enroll_axis=as_axis(both, "enroll_ids"))


@dataclass(frozen=True, eq=False)
class _Labelled:
    source: Source
    labels: PairValues

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        labels = self.labels.of(tile)
        found = replace(tile, labels=np.maximum(labels, UNKNOWN).astype(np.int8, copy=False))
        return found if labels.min(initial=UNKNOWN) >= UNKNOWN else found.select(labels != UNLISTED)

    def identity(self) -> str:
        return hashed(self.source.identity(), self.labels.identity())


@dataclass(frozen=True, eq=False)
class _Phrased:
    source: Source
    codes: npt.NDArray[np.int32]  #: of the phrase of each test
    n_phrases: int

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        return replace(tile, rows=tile.rows * np.int32(self.n_phrases) + self.codes[tile.columns])

    def identity(self) -> str:
        return hashed(self.source.identity(), self.codes)
