"""Putting together what several files say: tables after each other, labels of a key, speakers of a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import UNKNOWN, Embeddings, Labels, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from evenscore.files import Table

__all__ = ["as_list", "as_matrix", "concatenated", "contradictions", "labels_in", "with_key", "with_speakers"]


def concatenated(tables: Sequence[Table]) -> Table:
    """Return several tables of one kind as one.

    Examples
    --------
    >>> concatenated([ScoreMatrix([[1.0]], ["e1"], ["t1"]), TrialList.from_pairs(["e1"], ["t2"], scores=[2.0])])
    TrialList(2 trials of 1 enrolments and 2 tests, no labels, scores 1 to 2)
    """
    if len(tables) == 1:
        return tables[0]
    matrices = [table for table in tables if isinstance(table, ScoreMatrix)]
    if len(matrices) == len(tables):
        return ScoreMatrix.concat(matrices)
    lists = [as_list(table) for table in tables if isinstance(table, ScoreMatrix | TrialList)]
    if len(lists) == len(tables):
        for what in ("scores", "labels"):
            if len({getattr(trials, what) is None for trials in lists}) > 1:
                raise InputError(f"some of the files have {what} and others have none; convert them apart")
        return TrialList.concat(lists)
    vectors = [table for table in tables if isinstance(table, Embeddings)]
    if len(vectors) == len(tables):
        return Embeddings.concat(vectors)
    maps = [table for table in tables if isinstance(table, dict)]
    if len(maps) == len(tables):
        return _one_map(maps)
    raise InputError("the files hold different kinds of things, so they cannot become one; convert them apart")


def _one_map(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    whole: dict[str, str] = {}
    for speakers in maps:
        for name, speaker in speakers.items():
            if whole.setdefault(name, speaker) != speaker:
                raise InputError(f"utterance {name!r} has two speakers, {whole[name]!r} and {speaker!r}; keep one")
    return whole


def as_list(table: ScoreMatrix | TrialList) -> TrialList:
    """Return scores in long form."""
    return table.to_trials() if isinstance(table, ScoreMatrix) else table


def as_matrix(table: Table) -> ScoreMatrix:
    """Return scores as a matrix; pairs that are not listed are missing."""
    if isinstance(table, ScoreMatrix):
        return table
    if isinstance(table, TrialList):
        return table.to_matrix()
    raise InputError("only scores can become a matrix; leave out --matrix")


def with_key(table: Table, key: TrialList, unmatched: Literal["error", "drop"]) -> TrialList:
    """Return the trials with the labels of a key."""
    if not isinstance(table, ScoreMatrix | TrialList):
        raise InputError("only trials can get labels from a key; leave out --key")
    trials = as_list(table)
    joined = trials.join(key, unmatched=unmatched)
    _refuse_contradiction(trials, labels_in(trials, key), "key")
    return joined


def labels_in(trials: TrialList, key: TrialList) -> npt.NDArray[Any]:
    """Return the label that the key has for each trial; unknown where it has none."""
    if key.labels is None or len(key) == 0:
        return np.full(len(trials), UNKNOWN, dtype=np.int8)
    match = trials.match(key)
    return np.where(match >= 0, key.labels[match], UNKNOWN)


def contradictions(trials: TrialList, labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell for each trial whether its own label and another one are known and differ."""
    if trials.labels is None:
        return np.zeros(len(trials), dtype=bool)
    return (trials.labels != labels) & (trials.labels != UNKNOWN) & (labels != UNKNOWN)


def _refuse_contradiction(trials: TrialList, labels: npt.NDArray[Any], source: str) -> None:
    clash = contradictions(trials, labels)
    if clash.any():
        pair = trials.pair(int(np.argmax(clash)))
        count = int(np.count_nonzero(clash))
        raise InputError(f"{count} labels do not agree with the {source}, first that of {pair}; correct one of the two")


def with_speakers(table: Table, speakers: Mapping[str, str]) -> Table:
    """Return embeddings with the speakers of a map, or trials with the labels that follow from it.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["u1", "u1"], ["u2", "u3"])
    >>> with_speakers(trials, {"u1": "ann", "u2": "ann", "u3": "bob"}).labels
    array([1, 0], dtype=int8)
    """
    if isinstance(table, Embeddings):
        return table.with_speakers(speakers)
    if not isinstance(table, ScoreMatrix | TrialList):
        raise InputError("a speaker map cannot get speakers from another one; leave out --speakers")
    from evenscore.cli.labelled import with_maps

    trials, known = as_list(table), ("the speaker map", speakers)
    spoken = with_maps(trials, known, known)
    labels = Labels.of_axes(spoken.enroll_axis, spoken.test_axis).of_pairs(trials.enroll_index, trials.test_index)
    _refuse_contradiction(trials, labels, "speaker map")
    return trials.with_labels(labels)
