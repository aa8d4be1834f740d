"""Who speaks in labelled trials, as far as the target trials tell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenscore.errors import InputError
from evenscore.tables import TARGET, TrialList
from evenscore.tables.axis import merged
from evenscore.tables.connected import connect

__all__ = ["speakers_by_targets"]


def speakers_by_targets(lists: Sequence[TrialList]) -> dict[str, str]:
    """Return the speaker of each id: the first id that a chain of target trials leads to.

    An id is the same utterance or model on both sides and in all lists; one without target trials is a speaker of its
    own.

    Examples
    --------
    >>> trials = TrialList.from_pairs(["m1", "m1", "m2"], ["a", "b", "b"], labels=[1, 0, 1])
    >>> speakers_by_targets([trials])
    {'m1': 'm1', 'm2': 'm2', 'a': 'm1', 'b': 'm2'}
    """
    every = merged(axis for part in lists for axis in (part.enroll_axis, part.test_axis))
    rows, columns = [], []
    for part in lists:
        if part.labels is None:
            raise InputError("the trials have no labels, so their speakers are not known; give a map of speakers")
        targets = part.labels == TARGET
        rows.append(every.find(part.enroll_ids)[part.enroll_index[targets]])
        columns.append(every.find(part.test_ids)[part.test_index[targets]])
    group = connect(np.concatenate(rows), np.concatenate(columns), len(every))
    _, first = np.unique(group, return_index=True)
    return dict(zip(every.ids.tolist(), every.ids[first[group]].tolist(), strict=True))
