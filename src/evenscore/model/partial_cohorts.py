"""Scoring where trials do not share one cohort: missing cohort scores, and speakers who are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.cohort import Cohort
from evenscore.model.known_scores import EffectWeights, Known, trials_with
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
from evenscore.model.score_weights import Reading
from evenscore.model.sums import group_order
from evenscore.tables import NONTARGET, TARGET, Axis, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.known_scores import KnownScores

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["has_missing", "knows_only_own", "score_by_sums", "score_without_missing", "score_without_own"]

Array = np.ndarray
Index = npt.NDArray[np.intp]


def has_missing(block: ScoreMatrix | None) -> bool:
    """Tell whether a block exists and has missing pairs."""
    return block is not None and block.n_missing > 0


def score_without_missing(
    model: ScoreModel,
    cohort: Cohort,
    trials: TrialList,
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
    known: Known = (None, None),
    reading: Reading | None = None,
) -> Float[Array, " t"]:
    """Return the LLRs of trials some of whose cohort scores may be missing, or known to be targets.

    Trials with the same pattern of these are scored together.
    """
    sides = (enroll is not None, test is not None)
    how = trials_with(model, known, (len(trials.enroll_ids), len(trials.test_ids)), reading)
    weights = EffectWeights.of(model, predict(model, cohort.scores, cohort.key, sides), how.loading)
    blocks = (
        np.empty((len(trials.enroll_ids), 0)) if enroll is None else enroll.scores,
        np.empty((0, len(trials.test_ids))) if test is None else test.scores,
    )
    rows, columns = weights.enroll_effects(blocks[0]), weights.test_effects(blocks[1])
    i, j, scores = trials.enroll_index, trials.test_index, _scores(trials)
    if not (has_missing(enroll) or has_missing(test)):
        return how.llr(scores, (i, j), rows[i] + columns[j], weights.covariance[None], 0)
    n_tests, n_enrolments = len(cohort.test_ids), len(cohort.enroll_ids)
    e, t = _Exceptions.of(blocks[0], known[0], n_tests), _Exceptions.of(blocks[1].T, known[1], n_enrolments)
    odd = np.flatnonzero(np.concatenate([(e.patterns > 0).any(axis=0), (t.patterns > 0).any(axis=0)]))
    target = np.flatnonzero(np.concatenate([(e.patterns > 1).any(axis=0), (t.patterns > 1).any(axis=0)]))
    effects = effect_posterior(model, cohort.scores, cohort.key, sides, odd, target)
    e_effects, t_effects = e.say(model, effects.scores[:n_tests]), t.say(model, effects.scores[n_tests:])
    e_targets = e.values(model, target[target < n_tests], 0, len(target))
    t_targets = t.values(model, target[target >= n_tests] - n_tests, int((target < n_tests).sum()), len(target))
    out = np.empty(len(trials))
    for cell, at in _cells(e.which[i] * len(t.patterns) + t.which[j]):
        pe, pt = divmod(cell, len(t.patterns))
        kinds = np.concatenate([e.patterns[pe], t.patterns[pt]])
        mine = np.concatenate([np.flatnonzero(kinds[odd] > 0), len(odd) + np.flatnonzero(kinds[target] > 1)])
        mean, covariance = rows[i[at]] + columns[j[at]], weights.covariance
        if len(mine):
            expected = effects.offset[mine] + e_effects[i[at]][:, mine] + t_effects[j[at]][:, mine]
            told = np.zeros_like(expected)
            told[:, kinds[odd].astype(bool).sum() :] = (e_targets[i[at]] + t_targets[j[at]])[:, kinds[target] > 1]
            mean, covariance = _corrected(model, effects, how.loading, mine, expected, told, mean, covariance)
        out[at] = how.llr(scores[at], (i[at], j[at]), mean, covariance[None], 0)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _Exceptions:
    """Cohort scores of one side that are missing (1) or known to be targets (2), by patterns that occur."""

    scores: Float[Array, "m c"]
    known: KnownScores | None
    patterns: npt.NDArray[np.int8]
    which: Index  #: the pattern of each element

    @classmethod
    def of(cls, scores: npt.NDArray[Any], known: KnownScores | None, members: int) -> _Exceptions:
        """Take a row of scores for each element; a side without cohort scores has no exceptions."""
        if not scores.shape[1]:
            nothing = np.zeros((1, members), dtype=np.int8)
            return cls(scores=scores, known=None, patterns=nothing, which=np.zeros(len(scores), dtype=np.intp))
        kinds = np.isnan(scores).view(np.int8).copy()
        linked = None if known is None else known.linked()
        if linked is not None:
            kinds[linked.element, linked.member] = 2
        packed = np.concatenate([np.packbits(kinds > 0, axis=1), np.packbits(kinds > 1, axis=1)], axis=1)
        _, first, which = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        return cls(scores=scores, known=linked, patterns=kinds[first], which=which.reshape(-1))

    def say(self, model: ScoreModel, covariance: Float[Array, "c f"]) -> Float[Array, "m f"]:
        """Return what the other cohort scores say about the exceptional effects."""
        if not self.scores.shape[1]:
            return np.zeros((len(self.scores), covariance.shape[1]))
        centered = np.nan_to_num(self.scores.astype(np.float64) - model.mu[NONTARGET], nan=0.0)
        return centered @ covariance / model.sigma2[NONTARGET]

    def values(self, model: ScoreModel, members: Index, start: int, size: int) -> Float[Array, "m l"]:
        """Return what targets say about their effects, in columns for these members, from ``start`` on."""
        told = np.zeros((len(self.scores), size))
        if self.known is not None:
            place = start + np.searchsorted(members, self.known.member)
            told[self.known.element, place] = (self.known.score - model.mu[TARGET]) / model.sigma2[TARGET]
        return told


def _corrected(
    model: ScoreModel,
    effects: EffectPosterior,
    loading: Float[Array, "k p"],
    mine: Index,
    expected: Float[Array, "t f"],
    told: Float[Array, "t f"],
    mean: Float[Array, "t k"],
    covariance: Float[Array, "k k"],
) -> tuple[Float[Array, "t k"], Float[Array, "k k"]]:
    """Return means and covariance where exceptional scores are taken out, and targets are put in their place, (S5).

    ``mine`` are the exceptional effects of these trials, ``expected`` their means, ``told`` what targets say.
    """
    is_target = mine >= len(effects.exceptional)
    precision = np.where(is_target, 1 / model.sigma2[TARGET], -1 / model.sigma2[NONTARGET])
    between = loading @ effects.hidden[:, mine]
    inner = np.eye(len(mine)) + precision[:, None] * effects.exceptions[np.ix_(mine, mine)]
    gain = np.linalg.solve(inner.T, between.T)
    return mean + (told - precision * expected) @ gain, covariance - gain.T @ (precision[:, None] * between.T)


def score_without_own(
    model: ScoreModel,
    cohort: Cohort,
    blocks: ScoreBlocks,
    trials: TrialList,
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
    known: Known = (None, None),
    reading: Reading | None = None,
) -> Float[Array, " t"]:
    """Return the LLRs of trials whose own speakers are left out of the cohort; known scores count all the same."""
    rows = cohort.numbers_of(blocks.enroll_speakers, len(trials.enroll_ids))
    columns = cohort.numbers_of(blocks.test_speakers, len(trials.test_ids))
    members = (
        cohort.numbers_of(cohort.enroll_speakers, len(cohort.enroll_ids)),
        cohort.numbers_of(cohort.test_speakers, len(cohort.test_ids)),
    )
    center = float(model.mu[NONTARGET])
    by_sums: SpeakerSums | SpeakerRows | None = None
    own = _misses_only_own(enroll, rows, members[1]) and _misses_only_own(test, columns, members[0], turned=True)
    own = own and knows_only_own(known[0], rows, members[1]) and knows_only_own(known[1], columns, members[0])
    complete = cohort.blocks if own else None
    if complete is not None:
        by_sums = speaker_sums(cohort.scores, complete, center)
    elif own:
        by_sums = speaker_rows(model, cohort)
    if by_sums is None:
        return _pair_by_pair(model, cohort, trials, enroll, test, (rows, columns), known, reading)

    def by_units(scores: npt.NDArray[Any], codes: Index) -> npt.NDArray[np.float64]:
        filled = np.nan_to_num(scores.astype(np.float64) - center, nan=0.0)  # own scores are not used anyway
        return filled if complete is None else group_columns(filled, codes, complete.n_speakers, 0.0)

    trial_sums = TrialSums(
        enroll=None if enroll is None else by_units(enroll.scores, members[1]),
        test=None if test is None else by_units(test.scores.T, members[0]),
        enroll_group=rows,
        test_group=columns,
    )
    outside = tuple(None if part is None else part.outside() for part in known)
    how = trials_with(model, outside, (len(rows), len(columns)), reading)  # type: ignore[arg-type]
    return score_by_sums(how, by_sums, trial_sums, trials.enroll_index, trials.test_index, _scores(trials))


def _misses_only_own(block: ScoreMatrix | None, own: Index, members: Index, *, turned: bool = False) -> bool:
    """Tell whether trials lack only those cohort scores that they would not use anyway: against their own speaker."""
    if block is None or not block.n_missing:
        return True
    missing = block.missing.T if turned else block.missing
    return not (missing & ((own[:, None] != members) | (own[:, None] < 0))).any()


def knows_only_own(known: KnownScores | None, own: Index, members: Index) -> bool:
    """Tell whether known scores within the cohort are against the element's own speaker, who is left out anyway."""
    if known is None:
        return True
    linked = known.linked()
    return bool(((own[linked.element] == members[linked.member]) & (own[linked.element] >= 0)).all())


def _pair_by_pair(
    model: ScoreModel,
    cohort: Cohort,
    trials: TrialList,
    enroll: ScoreMatrix | None,
    test: ScoreMatrix | None,
    speakers: tuple[Index, Index],
    known: Known,
    reading: Reading | None,
) -> Float[Array, " t"]:
    """Score the trials of each pair of speakers with the cohort that is left: any pattern, one pair after another."""
    names = [*cohort.speakers, None]  # the number -1 is nobody
    out = np.empty(len(trials))
    number, (rows, columns) = len(names), speakers
    for cell, at in _cells((rows[trials.enroll_index] + 1) * number + columns[trials.test_index] + 1):
        own = {names[code - 1] for code in divmod(cell, number)} - {None}
        kept_rows, kept_columns = cohort.members(own)  # type: ignore[arg-type]
        part, left = trials.select(at), cohort.take(kept_rows, kept_columns)
        enroll_known, test_known = known
        out[at] = score_without_missing(
            model,
            left,
            part,
            None if enroll is None else enroll.select(part.enroll_ids).take(columns=kept_columns),
            None if test is None else test.select(None, part.test_ids).take(rows=kept_rows),
            (
                None if enroll_known is None else enroll_known.align(part.enroll_axis, Axis(left.test_ids)),
                None if test_known is None else test_known.align(part.test_axis, Axis(left.enroll_ids)),
            ),
            reading,
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
