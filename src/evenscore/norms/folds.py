"""Leave a trial's own speakers out of its cohort, or keep only the cohort of its condition, for any norm.

The speakers that are in the trials and in the cohort are assigned to folds. For each pair of folds (a, b), the plain
norm runs on the trials of an enrolment in a and a test in b, with the cohort members that are in neither. With as many
folds as speakers, exactly the trial's own speakers are left out. No norm knows of own speakers.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import Formula, Scores, is_dask
from evenscore.parallel import Progress

__all__ = ["EXACT_FOLDS", "MANY_FOLDS", "assign_folds", "normalize_by_folds"]

Codes = npt.NDArray[np.intp]  #: fold or condition of each enrolment, test or cohort member
EXACT_FOLDS, MANY_FOLDS = 40, 20  #: up to 40 speakers have a fold each; more of them are in 20 folds
_IN_NO_FOLD = -1  # a cohort member whose speaker is in no trial
_WHOLE_COHORT = -2  # fold, or condition, of an enrolment or a test that leaves out no cohort member


def normalize_by_folds(
    norm: Callable[[ScoreBlocks], Scores],
    blocks: ScoreBlocks,
    folds: int | None = None,
    condition: str | None = None,
    progress: Progress | None = None,
) -> ScoreMatrix | TrialList:
    """Normalize each trial with the cohort that has none of its own speakers, and only members of its condition.

    Parameters
    ----------
    norm
        Any function of score blocks that returns their trials with other scores.
    blocks
        With the speakers of trials and cohort, own speakers are left out; without them, the norm runs as it is.
    folds
        Number of folds. By default one per speaker for up to 40 speakers, which is exact, and 20 for more: the other
        speakers of a trial's two folds are then left out, too. On Common Voice (`benchmarks/folds.py`, 197 speakers),
        Cllr with 20 folds is 0.9995 (S), 0.999 (AS) and 0.9995 (ZT) of that with exact folds, in 1/40 to 1/80 of the
        time.
    condition
        A column of all sides, such as "gender": enrolments and tests keep the cohort members with the same value. Those
        without a value ("" or None) keep all.
    progress
        Called with the number of pairs of folds that are done, and of all pairs.

    Returns
    -------
    ScoreMatrix or TrialList
        The normalized trials, in the form of ``blocks.trials``.

    Examples
    --------
    >>> def less_mean(blocks):
    ...     return blocks.trials.map(lambda s, mean: s - mean, [np.nanmean(blocks.enroll.scores, axis=1)], [])
    >>> cohort = Side(["c1", "c2"], ["ann", "eve"])
    >>> enroll, test = Side(["e"], ["ann"]), Side(["t"], ["bob"])
    >>> blocks = ScoreBlocks(ScoreMatrix([[3.0]], enroll, test), enroll=ScoreMatrix([[9.0, 1.0]], enroll, cohort))
    >>> normalize_by_folds(less_mean, blocks).scores  # the score 9 is of ann herself
    array([[2.]])
    """
    sides = (blocks.trials.enroll, blocks.trials.test, blocks.cohort_enroll, blocks.cohort_test)
    enroll, test, members_enroll, members_test = _folds_of(sides, folds)
    conditions = _conditions_of(sides, condition)
    whole = (enroll == _WHOLE_COHORT).all() and (test == _WHOLE_COHORT).all() and condition is None
    if whole or 0 in blocks.trials.shape:
        return norm(blocks)
    # A group has one fold and one condition: all its trials with another group have the same cohort.
    groups_enroll, of_enroll = np.unique(np.stack([enroll, conditions[0]]), axis=1, return_inverse=True)
    groups_test, of_test = np.unique(np.stack([test, conditions[1]]), axis=1, return_inverse=True)
    n_done, n_pairs = 0, groups_enroll.shape[1] * groups_test.shape[1]

    def normalize_pair(group_enroll: int, group_test: int, part: ScoreBlocks) -> Scores:
        """Normalize the trials of two groups with their cohort."""
        nonlocal n_done
        n_done += 1
        if progress is not None:
            progress(n_done, n_pairs)
        (a, condition_enroll), (b, condition_test) = groups_enroll[:, group_enroll], groups_test[:, group_test]
        keep_enroll = (members_enroll != a) & (members_enroll != b)
        keep_test = (members_test != a) & (members_test != b)
        if condition_test != _WHOLE_COHORT:
            keep_enroll &= conditions[2] == condition_test
        if condition_enroll != _WHOLE_COHORT:
            keep_test &= conditions[3] == condition_enroll
        return norm(part.take_cohort(np.flatnonzero(keep_enroll), np.flatnonzero(keep_test)))

    if isinstance(blocks.trials, TrialList):
        return _fill_list(normalize_pair, blocks, blocks.trials, of_enroll.ravel(), of_test.ravel())
    return _fill_matrix(normalize_pair, blocks, blocks.trials, of_enroll.ravel(), of_test.ravel())


def _fill_matrix(
    normalize_pair: Formula, blocks: ScoreBlocks, trials: ScoreMatrix, of_enroll: Codes, of_test: Codes
) -> ScoreMatrix:
    """Normalize the trials of each pair of groups; a dask array is assembled from its parts."""
    rows = [np.flatnonzero(of_enroll == group) for group in range(of_enroll.max() + 1)]
    cols = [np.flatnonzero(of_test == group) for group in range(of_test.max() + 1)]
    by_row = [blocks.take_trials(at, None) for at in rows]
    if is_dask(trials.scores):
        import dask.array as da

        parts = [
            [normalize_pair(a, b, by_row[a].take_trials(None, c)).scores for b, c in enumerate(cols)]
            for a in range(len(rows))
        ]
        back = np.argsort(np.concatenate(rows)), np.argsort(np.concatenate(cols))
        return trials.with_scores(da.block(parts)[back[0]][:, back[1]].rechunk(trials.scores.chunks))
    out = np.full(trials.shape, np.nan, trials.scores.dtype)
    for a, at in enumerate(rows):
        for b, c in enumerate(cols):
            if not np.isnan(trials.scores[np.ix_(at, c)]).all():
                out[np.ix_(at, c)] = normalize_pair(a, b, by_row[a].take_trials(None, c)).scores
    return trials.with_scores(out)


def _fill_list(
    normalize_pair: Formula, blocks: ScoreBlocks, trials: TrialList, of_enroll: Codes, of_test: Codes
) -> TrialList:
    """Normalize the listed trials of each pair of groups."""
    pair = of_enroll[trials.rows] * (of_test.max(initial=0) + 1) + of_test[trials.cols]
    order = np.argsort(pair, kind="stable")
    scores = np.full(len(trials), np.nan, trials.needs_scores().dtype)
    for at in np.split(order, np.flatnonzero(np.diff(pair[order])) + 1) if len(order) else []:
        part = trials.select(at)
        found = normalize_pair(of_enroll[trials.rows[at[0]]], of_test[trials.cols[at[0]]], blocks.with_trials(part))
        if len(found) == len(part):
            scores[at] = found.scores
        else:  # trials without cohort scores were dropped
            scores[at[found.find(part)]] = found.scores
    return trials.with_normalized(scores)


def _folds_of(sides: tuple[Side, Side, Side | None, Side | None], folds: int | None) -> list[Codes]:
    """Return the fold of each enrolment, test, and cohort member; only speakers of trials and cohort have one."""
    speakers = [[] if side is None or side.speakers is None else side.speakers.tolist() for side in sides]
    shared = ({*speakers[0], *speakers[1]} & {*speakers[2], *speakers[3]}) - {None}
    if folds is not None and folds < 2:
        raise InputError(f"`folds` is {folds}, but must be 2 or more")
    n_folds = folds or (len(shared) if len(shared) <= EXACT_FOLDS else MANY_FOLDS)
    fold = assign_folds([name for part in speakers[:2] for name in part if name in shared], n_folds)
    found, absent = [], (_WHOLE_COHORT, _WHOLE_COHORT, _IN_NO_FOLD, _IN_NO_FOLD)
    for side, part, other in zip(sides, speakers, absent, strict=True):
        size = 0 if side is None else len(side)
        found.append(np.array([fold.get(name, other) for name in part] or [other] * size, np.intp))
    return found


def assign_folds(speakers: list[str], n_folds: int) -> dict[str, int]:
    """Assign speakers to folds in turn, those with the most recordings first, so that folds have similar sizes.

    Examples
    --------
    >>> assign_folds(["ann", "bob", "bob", "eve"], 2)
    {'bob': 0, 'ann': 1, 'eve': 0}
    """
    names, counts = np.unique(np.array(speakers, dtype=object).astype(str), return_counts=True)
    order = names[np.argsort(-counts, kind="stable")]
    return {str(name): at % n_folds for at, name in enumerate(order)}


def _conditions_of(sides: tuple[Side, Side, Side | None, Side | None], column: str | None) -> list[Codes]:
    """Return the codes of a column on each side, and `_WHOLE_COHORT` where there is no value."""
    names: dict[object, int] = {None: _WHOLE_COHORT, "": _WHOLE_COHORT}
    found = []
    for side, what in zip(sides, ("enrolments", "tests", "cohort's enrolments", "cohort's tests"), strict=True):
        if side is not None and column is not None and column not in side.columns:
            raise InputError(f"the {what} have no column {column!r}; give it in their metadata")
        values = [None] * (0 if side is None else len(side)) if side is None or column is None else side.columns[column]
        found.append(np.array([names.setdefault(value, len(names)) for value in values], np.intp))
    return found
