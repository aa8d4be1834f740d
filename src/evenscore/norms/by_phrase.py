"""Trials of several phrases, each normalized with the cohort scores of its own phrase."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.normalize import normalize
from evenscore.tables import Axis, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import shown

__all__ = ["normalize_by_phrase"]


def normalize_by_phrase(
    blocks: ScoreBlocks, phrases: Mapping[str, str], method: str = "as", **options: Any
) -> ScoreMatrix | TrialList:
    """Normalize trials of several phrases (or channels, languages, ...), each with the cohort of its test's phrase.

    As where a score model is trained by phrase, hidden variables are fresh in each phrase. The result is in memory.

    Parameters
    ----------
    blocks
        Trials and cohort scores of all phrases.
    phrases
        The phrase of each test of trials and cohort, by id. Enrolments of the cohort that have one, too, stay with
        theirs; the others serve all phrases.
    method, **options
        As in `normalize`.

    Examples
    --------
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0, 1.0]], ["e"], ["yes-1", "no-1"]),
    ...     enroll=ScoreMatrix([[2.0, 0.0, -1.0, 1.0]], ["e"], ["yes-2", "yes-3", "no-2", "no-3"]),
    ... )
    >>> phrases = {name: name.partition("-")[0] for name in ("yes-1", "no-1", "yes-2", "yes-3", "no-2", "no-3")}
    >>> normalize_by_phrase(blocks, phrases, "z").scores
    array([[2., 1.]])
    """
    trials = blocks.trials.in_memory()
    names = _phrases(trials.test_axis, phrases, "test")
    parts = []
    for phrase in dict.fromkeys(names.tolist()):
        here = np.flatnonzero(names == phrase)
        parts.append((here, normalize(_of_phrase(blocks, trials, here, phrase, phrases), method, **options)))
    if isinstance(trials, ScoreMatrix):
        scores = np.full(trials.shape, np.nan, dtype=np.result_type(*(part.scores for _, part in parts)))
        for here, part in parts:
            scores[:, here] = part.in_memory().scores
        return ScoreMatrix(scores, trials.enroll_axis, trials.test_axis, missing="nan")
    found = TrialList.concat([part.in_memory() for _, part in parts])
    match = trials.match(found)  # a norm may have left out some of them
    return trials.select(match >= 0).rescored(np.array(found.scores)[match[match >= 0]])


def _of_phrase(
    blocks: ScoreBlocks, trials: Any, here: npt.NDArray[np.intp], phrase: str, phrases: Mapping[str, str]
) -> ScoreBlocks:
    """Return the trials of some tests, with the cohort members of one phrase."""
    some = (
        trials.take(None, here) if isinstance(trials, ScoreMatrix) else trials.select(np.isin(trials.test_index, here))
    )
    rows = _members(blocks.cohort_enroll_axis, phrase, lambda name: phrases.get(name, phrase))
    columns = _members(blocks.cohort_test_axis, phrase, lambda name: phrases.get(name))
    taken = {"enroll": (None, columns), "test": (rows, None), "cohort": (rows, columns)}
    tables = {name: getattr(blocks, name) for name in taken}
    return blocks.replace(
        trials=some, **{name: table.take(*taken[name]) for name, table in tables.items() if table is not None}
    )


def _members(axis: Axis | None, phrase: str, phrase_of: Callable[[str], str | None]) -> npt.NDArray[np.intp] | None:
    """Return where the cohort members of a phrase stand; None if there is no such cohort."""
    if axis is None:
        return None
    found = np.flatnonzero([phrase_of(name) == phrase for name in axis.ids])
    if not len(found):
        raise InputError(
            f"no cohort member has the phrase {phrase!r} of some tests; add such, or leave these tests out"
        )
    return found


def _phrases(axis: Axis, phrases: Mapping[str, str], what: str) -> npt.NDArray[np.object_]:
    absent = [name for name in axis.ids if name not in phrases]
    if absent:
        raise InputError(f"there is no phrase for {what} {shown(absent)}; add it")
    return np.array([phrases[name] for name in axis.ids], dtype=object)
