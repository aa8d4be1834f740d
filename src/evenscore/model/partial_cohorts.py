"""Scoring where trials do not share one cohort: missing cohort scores, and speakers who are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.cohort import Cohort
from evenscore.model.own_speakers import (
    SpeakerRows,
    SpeakerSums,
    TrialSums,
    group_columns,
    score_by_sums,
    speaker_rows,
    speaker_sums,
)
from evenscore.model.parameters import ScoreModel
from evenscore.model.prediction import EffectPosterior, effect_posterior, predict
from evenscore.model.score_weights import ScoreWeights, llr, side_shifts
from evenscore.model.sums import group_order
from evenscore.tables import NONTARGET, ScoreBlocks, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["has_missing", "score_by_sums", "score_without_missing", "score_without_own"]

Array = np.ndarray
Index = npt.NDArray[np.intp]


def has_missing(block: ScoreMatrix | None) -> bool:
    """Tell whether a block exists and has missing pairs."""
    return block is not None and block.n_missing > 0


def score_without_missing(
    model: ScoreModel, cohort: Cohort, trials: TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None
) -> Float[Array, " t"]:
    """Return the LLRs of trials some of whose cohort scores may be missing, one group of equal patterns at a time."""
    sides = (enroll is not None, test is not None)
    weights = ScoreWeights.of(model, predict(model, cohort.scores, cohort.key, sides))
    rows, columns = side_shifts(weights, trials, enroll, test)
    i, j, scores = trials.enroll_index, trials.test_index, _scores(trials)
    if not (has_missing(enroll) or has_missing(test)):
        return llr(scores, rows[i] + columns[j], weights.variance)
    effects = effect_posterior(model, cohort.scores, cohort.key, sides)
    n_tests = len(cohort.test_ids)
    loading = np.concatenate([weights.enroll, weights.test], axis=1)
    e_patterns, e_which, e_effects = _side_effects(
        model, None if enroll is None else enroll.scores, effects.covariance[:n_tests], len(trials.enroll_ids)
    )
    t_patterns, t_which, t_effects = _side_effects(
        model, None if test is None else test.scores.T, effects.covariance[n_tests:], len(trials.test_ids)
    )
    out = np.empty(len(trials))
    for cell, at in _cells(e_which[i] * len(t_patterns) + t_which[j]):
        pe, pt = divmod(cell, len(t_patterns))
        absent = np.concatenate([np.flatnonzero(e_patterns[pe]), n_tests + np.flatnonzero(t_patterns[pt])])
        mean, variance = rows[i[at]] + columns[j[at]], weights.variance
        if len(absent):
            predicted = effects.offset[absent] + e_effects[i[at]][:, absent] + t_effects[j[at]][:, absent]
            more, wider = _without_missing(model, effects, loading, absent, predicted)
            mean, variance = mean + more, variance + wider
        out[at] = llr(scores[at], mean, variance)
    return out


def _side_effects(
    model: ScoreModel, scores: npt.NDArray[Any] | None, covariance: Float[Array, "c o"], size: int
) -> tuple[npt.NDArray[np.bool_], Index, Float[Array, "m o"]]:
    """Return the patterns of missing scores of one side, and what its scores say about all effects."""
    members, n_effects = covariance.shape
    if scores is None:
        return np.zeros((1, members), dtype=bool), np.zeros(size, dtype=np.intp), np.zeros((size, n_effects))
    patterns, which = _missing_patterns(np.isnan(scores))
    centered = np.nan_to_num(scores.astype(np.float64) - model.mu[NONTARGET], nan=0.0)
    return patterns, which, centered @ covariance / model.sigma2[NONTARGET]


def _missing_patterns(missing: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Return the distinct rows of a mask, and which of them each row is."""
    packed = np.packbits(missing, axis=1)
    _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    return missing[first], which.reshape(-1)


def _without_missing(
    model: ScoreModel,
    effects: EffectPosterior,
    loading: Float[Array, "2 o"],
    absent: npt.NDArray[np.intp],
    predicted: Float[Array, "t a"],
) -> tuple[Float[Array, "t 2"], Float[Array, " 2"]]:
    """Return what taking out absent scores adds to the means and variances of the predicted scores, (S5).

    `loading` are the weights of all cohort scores in the two predicted scores, `predicted` the effects expected for
    the absent ones in each trial.
    """
    noise = model.sigma2[NONTARGET]
    inner = noise * np.eye(len(absent)) - effects.covariance[np.ix_(absent, absent)]
    reach = noise * loading[:, absent]
    weights = np.linalg.solve(inner, reach.T)  # symmetric, so it serves the means and the variances
    return predicted @ weights, np.einsum("ha,ah->h", reach, weights)


def score_without_own(
    model: ScoreModel,
    cohort: Cohort,
    blocks: ScoreBlocks,
    trials: TrialList,
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
) -> Float[Array, " t"]:
    """Return the LLRs of trials whose own speakers are left out of the cohort."""
    rows = cohort.numbers_of(blocks.enroll_speakers, len(trials.enroll_ids))
    columns = cohort.numbers_of(blocks.test_speakers, len(trials.test_ids))
    members = (
        cohort.numbers_of(cohort.enroll_speakers, len(cohort.enroll_ids)),
        cohort.numbers_of(cohort.test_speakers, len(cohort.test_ids)),
    )
    center = float(model.mu[NONTARGET])
    by_sums: SpeakerSums | SpeakerRows | None = None
    complete = cohort.blocks if not (has_missing(enroll) or has_missing(test)) else None
    if complete is not None:
        by_sums = speaker_sums(cohort.scores, complete, center)
    elif _misses_only_own(enroll, rows, members[1]) and _misses_only_own(test, columns, members[0], turned=True):
        by_sums = speaker_rows(model, cohort)
    if by_sums is None:
        return _pair_by_pair(model, cohort, trials, enroll, test, rows, columns)

    def by_units(scores: npt.NDArray[Any], codes: Index) -> npt.NDArray[np.float64]:
        if complete is not None:
            return group_columns(scores, codes, complete.n_speakers, center)
        return np.nan_to_num(scores.astype(np.float64) - center, nan=0.0)

    trial_sums = TrialSums(
        enroll=None if enroll is None else by_units(enroll.scores, members[1]),
        test=None if test is None else by_units(test.scores.T, members[0]),
        enroll_group=rows,
        test_group=columns,
    )
    return score_by_sums(model, by_sums, trial_sums, trials.enroll_index, trials.test_index, _scores(trials))


def _misses_only_own(block: ScoreMatrix | None, own: Index, members: Index, *, turned: bool = False) -> bool:
    """Tell whether trials lack only those cohort scores that they would not use anyway: against their own speaker."""
    if block is None or not block.n_missing:
        return True
    missing = block.missing.T if turned else block.missing
    return not (missing & ((own[:, None] != members) | (own[:, None] < 0))).any()


def _pair_by_pair(
    model: ScoreModel,
    cohort: Cohort,
    trials: TrialList,
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
    rows: Index,
    columns: Index,
) -> Float[Array, " t"]:
    """Score the trials of each pair of speakers with the cohort that is left: any pattern, one pair after another."""
    names = [*cohort.speakers, None]  # the number -1 is nobody
    out = np.empty(len(trials))
    number = len(names)
    for cell, at in _cells((rows[trials.enroll_index] + 1) * number + columns[trials.test_index] + 1):
        own = {names[code - 1] for code in divmod(cell, number)} - {None}
        kept_rows, kept_columns = cohort.members(own)  # type: ignore[arg-type]
        part = trials.select(at)
        out[at] = score_without_missing(
            model,
            cohort.take(kept_rows, kept_columns),
            part,
            None if enroll is None else enroll.select(part.enroll_ids).take(columns=kept_columns),
            None if test is None else test.select(None, part.test_ids).take(rows=kept_rows),
        )
    return out


def _cells(codes: Index) -> list[tuple[int, Index]]:
    """Return each distinct code with the positions where it stands."""
    distinct, which = np.unique(codes, return_inverse=True)
    order, bounds = group_order(which.reshape(-1), len(distinct))
    return [(int(code), order[bounds[n] : bounds[n + 1]]) for n, code in enumerate(distinct)]


def _scores(trials: TrialList) -> npt.NDArray[Any]:
    assert trials.scores is not None  # noqa: S101
    return trials.scores
