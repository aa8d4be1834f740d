"""Scoring where trials do not share one cohort: missing cohort scores, and speakers who are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.cohort import Cohort
from evenscore.model.missing_evidence import effect_posterior, missing_patterns, without_missing
from evenscore.model.own_exceptions import LocalCohort, local_cohort, predict_without_speakers
from evenscore.model.own_speakers import SpeakerSums, TrialSums, group_columns, predict_without_own, speaker_sums
from evenscore.model.parameters import ScoreModel
from evenscore.model.prediction import predict
from evenscore.model.score_weights import ScoreWeights, llr, side_shifts
from evenscore.model.sums import group_order
from evenscore.tables import NONTARGET, ScoreBlocks, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["has_missing", "score_by_sums", "score_without_missing", "score_without_own"]

Array = np.ndarray
Index = npt.NDArray[np.intp]
_CHUNK = 1 << 20  # trials that are worked on at once


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
            more, wider = without_missing(model, effects, loading, absent, predicted)
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
    patterns, which = missing_patterns(np.isnan(scores))
    centered = np.nan_to_num(scores.astype(np.float64) - model.mu[NONTARGET], nan=0.0)
    return patterns, which, centered @ covariance / model.sigma2[NONTARGET]


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
    if cohort.blocks is None or has_missing(enroll) or has_missing(test):
        local = local_cohort(model, cohort) if _misses_only_own(cohort, enroll, test, rows, columns) else None
        if local is None:
            return _pair_by_pair(model, cohort, trials, enroll, test, rows, columns)
        return _with_local_exceptions(model, local, trials, enroll, test, (rows, columns))
    number, center = cohort.blocks.n_speakers, float(model.mu[NONTARGET])
    sums = speaker_sums(cohort.scores, cohort.blocks, center)
    trial_sums = TrialSums(
        enroll=None if enroll is None else group_columns(enroll.scores, cohort.blocks.column_codes, number, center),
        test=None if test is None else group_columns(test.scores.T, cohort.blocks.row_codes, number, center),
        enroll_group=rows,
        test_group=columns,
    )
    return score_by_sums(model, sums, trial_sums, trials.enroll_index, trials.test_index, _scores(trials))


def score_by_sums(
    model: ScoreModel,
    cohort: SpeakerSums,
    trial_sums: TrialSums,
    rows: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    scores: npt.NDArray[Any],
) -> Float[Array, " t"]:
    """Return the LLRs of trials without their own speakers, from sums by speaker of a complete cohort."""
    loading = np.concatenate([model.alpha, model.beta], axis=1)
    out = np.empty(len(scores))
    for start in range(0, len(scores), _CHUNK):
        part = slice(start, start + _CHUNK)
        i, j = rows[part].astype(np.intp), columns[part].astype(np.intp)
        means, covariances, which = predict_without_own(model, cohort, trial_sums, i, j)
        variance = model.sigma2 + np.einsum("hp,npq,hq->nh", loading, covariances, loading)
        out[part] = llr(scores[part], model.mu + means @ loading.T, variance[which])
    return out


def _misses_only_own(
    cohort: Cohort, enroll: ScoreMatrix | None, test: ScoreMatrix | None, rows: Index, columns: Index
) -> bool:
    """Tell whether trials lack only those cohort scores that they would not use anyway: against their own speaker."""
    members = (
        cohort.numbers_of(cohort.test_speakers, len(cohort.test_ids)),
        cohort.numbers_of(cohort.enroll_speakers, len(cohort.enroll_ids)),
    )
    for block, own, side in ((enroll, rows, members[0]), (test, columns, members[1])):
        if block is not None and block.n_missing:
            missing = block.missing if block is enroll else block.missing.T
            if (missing & ((own[:, None] != side) | (own[:, None] < 0))).any():
                return False
    return True


def _with_local_exceptions(
    model: ScoreModel,
    cohort: LocalCohort,
    trials: TrialList,
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
    own: tuple[Index, Index],
) -> Float[Array, " t"]:
    def centered(scores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.nan_to_num(scores.astype(np.float64) - model.mu[NONTARGET], nan=0.0)

    means, covariances, which = predict_without_speakers(
        model,
        cohort,
        None if enroll is None else centered(enroll.scores),
        None if test is None else centered(test.scores.T),
        own,
        (trials.enroll_index.astype(np.intp), trials.test_index.astype(np.intp)),
    )
    loading = np.concatenate([model.alpha, model.beta], axis=1)
    variance = model.sigma2 + np.einsum("hp,npq,hq->nh", loading, covariances, loading)
    return llr(_scores(trials), model.mu + means @ loading.T, variance[which])


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
