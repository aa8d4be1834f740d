"""Lists of trials that get labels, or phrases, when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenscore.errors import InputError
from evenscore.scale.chunked_scores import hashed
from evenscore.scale.chunked_trials import ChunkedTrials, TrialReader
from evenscore.scale.pair_values import UNLISTED, PairValues
from evenscore.tables import TrialList
from evenscore.tables.ids import Ids

__all__ = ["apart_by_phrase", "with_labels"]


def with_labels(
    trials: ChunkedTrials, labels: PairValues, unmatched: Literal["error", "drop"] = "error"
) -> ChunkedTrials:
    """Return trials that are labelled when they are read.

    Parameters
    ----------
    trials
        The list.
    labels
        Labels of pairs; they travel to the workers of a cluster.
    unmatched
        What to do with trials that have no label there: ``"error"`` names one, ``"drop"`` leaves them out.

    Examples
    --------
    >>> from evenscore.scale.pair_values import ListedValues
    >>> key = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], labels=[1, 0])
    >>> trials = ChunkedTrials.of(TrialList.from_pairs(["e2", "e1"], ["t1", "t1"], scores=[-1.0, 2.0]))
    >>> with_labels(trials, ListedValues.of_key(key)).gather().labels
    array([0, 1], dtype=int8)
    """
    return replace(trials, reader=_Labelled(trials.reader, labels, unmatched))


def apart_by_phrase(trials: ChunkedTrials, phrases: Callable[[Ids], Mapping[str, str]], identity: str) -> ChunkedTrials:
    """Return trials in which each phrase has enrolments of its own, so that training takes it as a matrix of its own.

    Parameters
    ----------
    trials
        The list.
    phrases
        Gives the phrase of each of some tests; it travels to the workers of a cluster.
    identity
        A text that changes when the phrases do.

    Examples
    --------
    >>> trials = ChunkedTrials.of(TrialList.from_pairs(["e", "e"], ["p1-a", "p2-a"], scores=[-1.0, 2.0]))
    >>> len(apart_by_phrase(trials, lambda tests: {name: name[:2] for name in tests}, "").gather().enroll_ids)
    2
    """
    return replace(trials, reader=_Phrased(trials.reader, phrases, identity))


@dataclass(frozen=True, eq=False)
class _Labelled:
    reader: TrialReader
    labels: PairValues
    unmatched: str

    def read(self, trials: slice) -> TrialList:
        found = self.reader.read(trials)
        labels = self.labels.of_trials(found)
        unlisted = labels == UNLISTED
        if not unlisted.any():
            return found.with_labels(labels)
        if self.unmatched == "error":
            raise InputError(
                f"the scored trial {found.pair(int(np.argmax(unlisted)))} is not in the key; make the two files agree, "
                "or leave out what does not match (--unmatched drop)"
            )
        return found.with_labels(np.where(unlisted, -1, labels)).select(~unlisted)

    def identity(self) -> str:
        return hashed(self.reader.identity(), self.labels.identity(), self.unmatched)


@dataclass(frozen=True, eq=False)
class _Phrased:
    reader: TrialReader
    phrases: Callable[[Ids], Mapping[str, str]]
    name: str

    def read(self, trials: slice) -> TrialList:
        found = self.reader.read(trials)
        phrase_of = self.phrases(found.test_ids)
        names = {name: code for code, name in enumerate(dict.fromkeys(phrase_of.values()))}
        codes = np.array([names[phrase_of[test]] for test in found.test_ids], dtype=np.int64)
        both = found.enroll_index.astype(np.int64) * max(len(names), 1) + codes[found.test_index]
        distinct, index = np.unique(both, return_inverse=True)
        shown = list(names)
        rows, spoken = np.divmod(distinct, max(len(names), 1))
        enroll = [f"{found.enroll_ids[row]}\t{shown[code]}" for row, code in zip(rows, spoken, strict=True)]
        return TrialList(
            enroll, found.test_ids, index.reshape(-1), found.test_index, scores=found.scores, labels=found.labels
        )

    def identity(self) -> str:
        return hashed(self.reader.identity(), self.name)
