"""Scores with their labels: from a key, from speaker maps, or from the score file itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables import UNKNOWN, Labels, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids, shown

__all__ = ["LabelledScores", "label_by_key", "label_by_speakers", "speakers_for", "split_by_phrase"]

LabelledScores = TrialList | tuple[ScoreMatrix, Labels]
_Keyed = tuple[ScoreMatrix | TrialList, npt.NDArray[Any]]  # scores with the label of each pair
_UNLISTED = -2  # in a key matrix: a pair that the key does not have


def label_by_key(
    tables: Sequence[ScoreMatrix | TrialList], key: TrialList, unmatched: Literal["error", "drop"] = "error"
) -> list[LabelledScores]:
    """Return scores with the labels of one key that serves them all.

    Examples
    --------
    >>> matrix = ScoreMatrix([[2.0, -1.0]], ["e1"], ["t1", "t2"])
    >>> key = TrialList.from_pairs(["e1", "e1"], ["t2", "t1"], labels=[0, 1])
    >>> [(scores, labels)] = label_by_key([matrix], key)
    >>> labels.matrix
    array([[1, 0]], dtype=int8)
    """
    if key.labels is None:
        raise InputError("the key has no labels; give a list of trials with labels")
    used = np.zeros(len(key), dtype=bool)
    labelled: list[LabelledScores] = []
    for table in tables:
        one = _matrix_by_key(table, key, used) if isinstance(table, ScoreMatrix) else _list_by_key(table, key, used)
        labelled.append(_without_unlisted(one, unmatched))
    if not used.any():
        raise InputError("the key and the scores have no trial in common; do the two files belong together?")
    if unmatched == "error" and not used.all():
        pair = key.pair(int(np.argmin(used)))
        raise InputError(
            f"{np.count_nonzero(~used)} of the {len(key)} trials of the key have no score, first {pair}; "
            "make the two files agree, or leave out what does not match (--unmatched drop)"
        )
    return labelled


def _list_by_key(trials: TrialList, key: TrialList, used: npt.NDArray[np.bool_]) -> _Keyed:
    match = trials.match(key)
    used[match[match >= 0]] = True
    assert key.labels is not None  # noqa: S101
    labels = np.where(match >= 0, key.labels[match], _UNLISTED) if len(key) else np.full(len(trials), _UNLISTED)
    return trials, labels


def _matrix_by_key(matrix: ScoreMatrix, key: TrialList, used: npt.NDArray[np.bool_]) -> _Keyed:
    rows, columns = _places(key.enroll_ids, matrix.enroll_ids), _places(key.test_ids, matrix.test_ids)
    row, column = rows[key.enroll_index], columns[key.test_index]
    here = np.flatnonzero((row >= 0) & (column >= 0))
    row, column = row[here], column[here]
    labels = np.full(matrix.shape, _UNLISTED, dtype=np.int8)
    assert key.labels is not None  # noqa: S101
    labels[row, column] = key.labels[here]
    used[here] |= ~np.isnan(matrix.scores[row, column])
    return matrix, labels


def _places(ids: Ids, among: Ids) -> npt.NDArray[np.intp]:
    place = dict(zip(among.tolist(), range(len(among)), strict=True))
    return np.fromiter((place.get(name, -1) for name in ids), dtype=np.intp, count=len(ids))


def _without_unlisted(item: _Keyed, unmatched: str) -> LabelledScores:
    """Refuse scores that the key does not have, or leave them out."""
    table, labels = item
    unlisted = labels == _UNLISTED
    if isinstance(table, ScoreMatrix) and table.n_missing:
        unlisted &= ~table.missing
    if unmatched == "error" and unlisted.any():
        first = np.argwhere(unlisted)[0]
        pair = table.pair(int(first[0])) if isinstance(table, TrialList) else _pair_at(table, first)
        total = len(table) if isinstance(table, TrialList) else table.scores.size - table.n_missing
        raise InputError(
            f"{np.count_nonzero(unlisted)} of the {total} scored trials are not in the key, first {pair}; "
            "make the two files agree, or leave out what does not match (--unmatched drop)"
        )
    known = np.maximum(labels, UNKNOWN).astype(np.int8)
    if isinstance(table, TrialList):
        trials = table.with_labels(known)
        return trials.select(~unlisted) if unlisted.any() else trials
    return table, Labels.from_key(known, enroll_ids=table.enroll_ids, test_ids=table.test_ids)


def _pair_at(matrix: ScoreMatrix, place: npt.NDArray[Any]) -> tuple[str, str]:
    return matrix.enroll_ids[place[0]], matrix.test_ids[place[1]]


def label_by_speakers(
    table: ScoreMatrix | TrialList, enroll: tuple[str, Mapping[str, str]], test: tuple[str, Mapping[str, str]]
) -> LabelledScores:
    """Return scores whose targets are the pairs of one speaker, by maps from id to speaker and their file names.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["u1", "u1"], ["u2", "u3"], scores=[2.0, -1.0])
    >>> speakers = ("utt2spk", {"u1": "ann", "u2": "ann", "u3": "bob"})
    >>> label_by_speakers(trials, speakers, speakers).labels
    array([1, 0], dtype=int8)
    """
    labels = Labels.from_speakers(
        speakers_for(table.enroll_ids, *enroll, "enrolment"),
        speakers_for(table.test_ids, *test, "test"),
        enroll_ids=table.enroll_ids,
        test_ids=table.test_ids,
    )
    if isinstance(table, ScoreMatrix):
        return table, labels
    return table.with_labels(labels.of_pairs(table.enroll_index, table.test_index))


def speakers_for(ids: Ids, path: str, speakers: Mapping[str, str], side: str) -> list[str]:
    """Return the speaker of each id; the file's name and the side are for the message."""
    absent = [name for name in ids if name not in speakers]
    if absent:
        raise InputError(f"{path} has no speaker for {side} {shown(absent)}; add it to the map")
    return [speakers[name] for name in ids]


def split_by_phrase(item: LabelledScores, phrases: Mapping[str, str]) -> list[LabelledScores]:
    """Return one part per phrase of the tests; the map has every test id."""
    table = item if isinstance(item, TrialList) else item[0]
    names = [phrases[test] for test in table.test_ids]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    codes = np.array([numbers[name] for name in names], dtype=np.intp)
    if isinstance(item, TrialList):
        return [item.select(codes[item.test_index] == number) for number in numbers.values()]
    matrix, labels = item
    every = np.arange(matrix.shape[0])
    parts = [np.flatnonzero(codes == number) for number in numbers.values()]
    return [(matrix.take(None, columns), labels.take(every, columns)) for columns in parts]
