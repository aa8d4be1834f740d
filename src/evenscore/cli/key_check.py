"""Holding a key against scores: which trials stand only in one of the two, and why that may be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

from evenscore.cli.combine import contradictions, labels_in
from evenscore.cli.facts import Facts
from evenscore.errors import InputError
from evenscore.tables import TrialList
from evenscore.tables.ids import shown

__all__ = ["MOST_SHOWN", "compare_with_key"]

MOST_SHOWN = 5  # trials named for each kind of disagreement


def compare_with_key(trials: TrialList, key: TrialList) -> tuple[Facts, list[str], TrialList]:
    """Return the facts of the comparison, what looks wrong, and the trials with the labels of the key.

    Examples
    --------
    >>> scores = TrialList.from_pairs(["e1", "e1"], ["t1", "t2"], scores=[2.0, -1.0])
    >>> key = TrialList.from_pairs(["e1", "e2"], ["t1", "t1"], labels=[1, 0])
    >>> facts, notes, joined = compare_with_key(scores, key)
    >>> facts["in_both"], facts["only_in_file"]["first"], facts["only_in_key"]["first"]
    (1, [('e1', 't2')], [('e2', 't1')])
    """
    if key.labels is None:
        raise InputError("the key has no labels; give a file with target and non-target trials")
    match = trials.match(key)
    in_key = np.zeros(len(key), dtype=bool)
    in_key[match[match >= 0]] = True
    facts: Facts = {
        "trials": len(key),
        "in_both": int(np.count_nonzero(in_key)),
        "only_in_file": _listed(trials, match < 0),
        "only_in_key": _listed(key, ~in_key),
    }
    notes = []
    for name, what in (
        ("only_in_file", "trials of the file are not in the key"),
        ("only_in_key", "trials of the key are not in the file"),
    ):
        if facts[name]["count"]:
            notes.append(f"{facts[name]['count']} {what}, first {facts[name]['first'][0]}")
    clash = contradictions(trials, labels_in(trials, key))
    if clash.any():
        first = trials.pair(int(np.argmax(clash)))
        notes.append(f"{np.count_nonzero(clash)} labels of the file do not agree with the key, first that of {first}")
    return facts, notes + _reasons(trials, key), trials.join(key, unmatched="drop")


def _listed(trials: TrialList, which: npt.NDArray[np.bool_]) -> Facts:
    first = np.flatnonzero(which)[:MOST_SHOWN]
    return {"count": int(np.count_nonzero(which)), "first": [trials.pair(int(place)) for place in first]}


def _reasons(trials: TrialList, key: TrialList) -> list[str]:
    """Guess why ids do not meet."""
    enroll, test = set(trials.enroll_ids.tolist()), set(trials.test_ids.tolist())
    key_enroll, key_test = set(key.enroll_ids.tolist()), set(key.test_ids.tolist())
    notes = []
    for ours, theirs, side in ((enroll, key_enroll, "enrolment"), (test, key_test, "test")):
        if ours - theirs:
            notes.append(f"{len(ours - theirs)} {side} ids are only in the file: {shown(sorted(ours - theirs))}")
        if theirs - ours:
            notes.append(f"{len(theirs - ours)} {side} ids are only in the key: {shown(sorted(theirs - ours))}")
    if not (enroll & key_enroll) and not (test & key_test) and (enroll & key_test) and (test & key_enroll):
        notes.append("the key's enrolments are the file's tests: are the two sides swapped?")
    elif not (enroll & key_enroll) or not (test & key_test):
        notes += _spelling(enroll | test, key_enroll | key_test)
    return notes


def _spelling(ours: set[str], theirs: set[str]) -> list[str]:
    """Tell whether ids meet when case, folders or file endings are left out."""
    ways: dict[str, Callable[[str], str]] = {
        "case": str.casefold,
        "file endings": lambda name: str(PurePosixPath(name).parent / PurePosixPath(name).stem),
        "folders and file endings": lambda name: PurePosixPath(name.replace("\\", "/")).stem,
    }
    for what, changed in ways.items():
        if {changed(name) for name in ours - theirs} & {changed(name) for name in theirs - ours}:
            return [f"ids of the two files meet without regard to {what}: are they written differently?"]
    return []
