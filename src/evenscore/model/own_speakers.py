"""Trials whose own speakers are in the cohort: those speakers are left out of the trial's evidence, by sums.

Every row and column of the cohort that belongs to one of the trial's two speakers is dropped, in S_e, S_t and S_I. As
long as every pair of two different speakers is an observed non-target, that leaves the other speakers' parts of the
posterior precision as they are, but for the numbers of scores on the diagonal. So one factorization serves all trials
that lose the same numbers of rows and columns, and the speakers who are dropped are subtracted from sums. What the
sums run over are *units*: all rows of a speaker together, who are exchangeable if the cohort is complete
(`SpeakerSums`), or single rows if scores are missing within speakers (`SpeakerRows`). Letters and equation numbers as
in docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.block_posterior import evidence_of_groups, group_precisions, inverse_root
from evenscore.model.cohort import Cohort
from evenscore.model.known_scores import KnownTrials, PlainTrials
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern_posterior import PatternPrecision
from evenscore.model.patterns import Component, SpeakerBlocks, SpeakerShapes, components, exceptions_of_key
from evenscore.model.precision import evidence_of_sums, precision_terms
from evenscore.model.prediction import trial_posterior
from evenscore.model.sums import ClassSums, group_order, sum_by_key
from evenscore.tables import NONTARGET, TARGET, Labels
from evenscore.threads import product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["SpeakerRows", "SpeakerSums", "TrialSums", "group_columns", "score_by_sums", "speaker_rows", "speaker_sums"]

Array = np.ndarray
Index = npt.NDArray[np.intp]
_CHUNK = 1 << 20  # trials that are worked on at once


def group_columns(scores: npt.NDArray[Any], codes: Index, n_groups: int, center: float) -> Float[Array, "m g"]:
    """Return for each row the sums of (score - center) over the columns of each group."""
    out = np.zeros((scores.shape[0], n_groups))
    order = np.argsort(codes, kind="stable")
    present, first = np.unique(codes[order], return_index=True)
    if len(present):
        step = max(1, (1 << 22) // max(scores.shape[1], 1))
        for start in range(0, scores.shape[0], step):
            part = scores[start : start + step][:, order].astype(np.float64) - center
            out[start : start + step, present] = np.add.reduceat(part, first, axis=1)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _Units:
    """The units of one side of a cohort, and how much each of them says about t = U' P^-1 gamma."""

    speaker: Index  #: of each unit
    against: Float[Array, "u g"]  #: sum of a unit's scores against each other speaker
    weight: Float[Array, "u p"]  #: what a unit of these scores adds to t
    one_per_speaker: bool  #: whether unit g is all rows (or columns) of speaker g

    @classmethod
    def whole(cls, against: Float[Array, "g g"], weight: Float[Array, "g p"]) -> _Units:
        """Make one unit of each speaker."""
        return cls(speaker=np.arange(len(weight)), against=against, weight=weight, one_per_speaker=True)

    def lost(self, first: Index, second: Index) -> Float[Array, "c p"]:
        """Return the part of t that comes from the scores of each first speaker's units against the second."""
        order, bounds = group_order(self.speaker, self.against.shape[1])
        counts = bounds[first + 1] - bounds[first]
        pair = np.repeat(np.arange(len(first)), counts)
        unit = order[np.arange(len(pair)) + np.repeat(bounds[first] - np.cumsum(counts) + counts, counts)]
        sums = self.against[unit, second[pair]]
        lost = np.zeros((len(first), self.weight.shape[1]))
        for total, weight in zip(lost.T, self.weight[unit].T, strict=True):
            total[:] = np.bincount(pair, sums * weight, len(first))
        return lost


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solution:
    """P^-1 of all speakers for one number of dropped rows and columns, and what follows from it by speaker."""

    W: Float[Array, "k p p"]  #: U' P^-1 U of each kind of speaker
    t: Float[Array, "g p"]  #: U' P^-1 gamma of each speaker
    rows: _Units
    columns: _Units

    @cached_property
    def _gone(self) -> Float[Array, "g p"]:
        """What goes from the sum of t with each speaker: its own part, and what its scores add to the others'."""
        return self.t + sum(side.against.T @ side.weight for side in (self.rows, self.columns))

    def without(self, first: Index, second: Index) -> Float[Array, "c p"]:
        """Return t of the speakers who are left, without their scores against those who are not, (S7)."""
        t: Array = self.t.sum(axis=0) - _at(self._gone, first) - _at(self._gone, second)
        both = (first >= 0) & (second >= 0)  # what the two have between them went with their own parts
        for one, other in ((first[both], second[both]), (second[both], first[both])):
            t[both] += self.rows.lost(one, other) + self.columns.lost(one, other)
        return t


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerSums:
    """Sums of a complete cohort's scores (less mu_0) by pairs of speakers, and the speakers' shapes."""

    between: Float[Array, "g g"]  #: sum of the scores of the enrolments of one speaker against the tests of another
    shapes: SpeakerShapes

    @property
    def kind_of(self) -> Index:
        """Speakers of one kind have the same part in W: those of one shape."""
        return self.shapes.shape_of

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """Numbers of enrolments and tests of each speaker."""
        return np.stack([self.shapes.n_enroll, self.shapes.n_test], axis=1)[self.shapes.shape_of]

    @cached_property
    def _others(self) -> Float[Array, "g g"]:
        return self.between - np.diag(np.diag(self.between))

    def solve(self, model: ScoreModel, dropped: tuple[int, int], sides: tuple[bool, bool]) -> _Solution:
        """Factorize each shape, for a cohort that lost some rows and columns."""
        terms, dim, shapes = precision_terms(model), model.dim, self.shapes
        shape_of, sizes = shapes.shape_of, (shapes.n_enroll, shapes.n_test)
        n_rows, n_columns = (self.sizes.sum(axis=0) - dropped + sides).tolist()
        groups = group_precisions(terms, *sizes, shapes.n_groups, n_rows, n_columns)
        V = groups.P_inv * groups.root[:, None, :]
        target, others = np.diag(self.between), self._others
        gamma = evidence_of_groups(terms, model.mu - model.mu[NONTARGET], *sizes, 0, 0)  # scores less mu_0
        phi = np.stack([np.ones(len(target)), target, others.sum(axis=1), others.sum(axis=0)], axis=1)
        row_weight = inverse_root(shapes.n_enroll) * (terms.alpha_precision[NONTARGET] @ V[:, :dim])
        column_weight = inverse_root(shapes.n_test) * (terms.beta_precision[NONTARGET] @ V[:, dim:])
        return _Solution(
            W=groups.root[:, :, None] * V,
            t=np.einsum("gpf,gf->gp", (V.transpose(0, 2, 1) @ gamma)[shape_of], phi),
            rows=_Units.whole(others, row_weight[shape_of]),
            columns=_Units.whole(others.T, column_weight[shape_of]),
        )


def speaker_sums(cohort: npt.NDArray[Any], blocks: SpeakerBlocks, center: float) -> SpeakerSums:
    """Sum the scores of a complete cohort by pairs of speakers."""
    rows = group_columns(cohort, blocks.column_codes, blocks.n_speakers, center)
    return SpeakerSums(
        between=group_columns(rows.T, blocks.row_codes, blocks.n_speakers, 0.0).T,
        shapes=blocks.shapes,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerRows:
    """A cohort whose targets and missing pairs lie within speakers: each row and column is a unit of its own."""

    blocks: SpeakerBlocks  #: the speakers of rows and columns
    batches: list[Component]  #: speakers, or parts of them
    sums: ClassSums  #: of the scores less mu_0
    in_rows: Float[Array, "k g"]  #: sum of a row's scores (less mu_0) against the tests of each other speaker
    in_columns: Float[Array, "l g"]

    @property
    def kind_of(self) -> Index:
        """Every speaker is of a kind of its own."""
        return np.arange(self.blocks.n_speakers)

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """Numbers of enrolments and tests of each speaker."""
        return self.blocks.sizes

    def solve(self, model: ScoreModel, dropped: tuple[int, int], sides: tuple[bool, bool]) -> _Solution:
        """Factorize each speaker, for a cohort that lost some rows and columns."""
        dim, codes = model.dim, (self.blocks.row_codes, self.blocks.column_codes)
        row_counts, column_counts = self.sums.row_counts.copy(), self.sums.column_counts.copy()
        row_counts[NONTARGET] += sides[1] - dropped[1]
        column_counts[NONTARGET] += sides[0] - dropped[0]
        precision = PatternPrecision.of(model, True, self.batches, row_counts, column_counts)
        V = precision.solve_components(np.empty((len(codes[0]), dim, 0)), np.empty((len(codes[1]), dim, 0)))
        gamma, terms = evidence_of_sums(model, self.sums), precision.terms
        ap, bp = terms.alpha_precision[NONTARGET], terms.beta_precision[NONTARGET]
        W = [self._summed(side, values) for side, values in zip(codes, V, strict=True)]
        t = [self._summed(codes[n], np.einsum("kdp,kd->kp", V[n], gamma[n])) for n in (0, 1)]
        return _Solution(
            W=np.concatenate(W, axis=1),
            t=t[0] + t[1],
            rows=_Units(speaker=codes[0], against=self.in_rows, weight=ap @ V[0], one_per_speaker=False),
            columns=_Units(speaker=codes[1], against=self.in_columns, weight=bp @ V[1], one_per_speaker=False),
        )

    def _summed(self, codes: Index, values: Array) -> Array:
        total = np.zeros((self.blocks.n_speakers, *values.shape[1:]))
        np.add.at(total, codes, values)
        return total


def speaker_rows(model: ScoreModel, cohort: Cohort) -> SpeakerRows | None:
    """Return the sums of a cohort, or None if pairs of different speakers are no observed non-targets."""
    if cohort.enroll_speakers is None or cohort.test_speakers is None:
        return None
    labels = Labels.from_speakers(cohort.enroll_speakers, cohort.test_speakers)
    same, center = labels.matrix == TARGET, float(model.mu[NONTARGET])
    if labels.n_unknown or (cohort.key[~same] != NONTARGET).any():
        return None
    blocks = SpeakerBlocks.of(labels)
    between = np.where(same, 0.0, cohort.scores - center)
    return SpeakerRows(
        blocks=blocks,
        batches=components(exceptions_of_key(cohort.key, background=True)),
        sums=sum_by_key(cohort.scores, cohort.key, center),
        in_rows=group_columns(between, blocks.column_codes, blocks.n_speakers, 0.0),
        in_columns=group_columns(between.T, blocks.row_codes, blocks.n_speakers, 0.0),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialSums:
    """Sums of the trials' cohort scores (less mu_0) by the cohort's units, None for a side without scores."""

    enroll: Float[Array, "m u"] | None
    test: Float[Array, "n v"] | None
    enroll_group: Index  #: the cohort speaker who is the speaker of each enrolment, or -1
    test_group: Index


def score_by_sums(
    known: PlainTrials | KnownTrials,
    cohort: SpeakerSums | SpeakerRows,
    trial_sums: TrialSums,
    rows: npt.NDArray[Any],
    columns: npt.NDArray[Any],
    scores: npt.NDArray[Any],
) -> Float[Array, " t"]:
    """Return the LLRs of trials without their own speakers, from sums over the cohort's units."""
    model = known.model
    sides = (trial_sums.enroll is not None, trial_sums.test is not None)
    solve = cache(lambda dropped: cohort.solve(model, dropped, sides))
    sizes = np.concatenate([cohort.sizes, [[0, 0]]])  # the last one is nobody
    number, out = len(sizes), np.empty(len(scores))
    for start in range(0, len(scores), _CHUNK):
        part = slice(start, start + _CHUNK)
        i, j = rows[part].astype(np.intp), columns[part].astype(np.intp)
        codes = (trial_sums.enroll_group[i] + 1) * number + trial_sums.test_group[j] + 1
        pairs, pair_of = np.unique(codes, return_inverse=True)
        first, second = (who - 1 for who in np.divmod(pairs, number))
        second = np.where(first == second, -1, second)  # a target trial drops one speaker
        dropped, loss_of = np.unique(sizes[first] + sizes[second], axis=0, return_inverse=True)
        loss_of = loss_of.reshape(-1)
        for loss, (n_rows, n_columns) in enumerate(dropped.tolist()):
            at, mine = np.flatnonzero(loss_of[pair_of] == loss), np.flatnonzero(loss_of == loss)
            gone = _Gone(first=first[mine], second=second[mine], pair_of=np.searchsorted(mine, pair_of[at]))
            left = (sizes.sum(axis=0) - (n_rows, n_columns)).tolist()
            solution = solve((n_rows, n_columns))
            pairs = i[at], j[at]
            found = _predict(known, cohort.kind_of, solution, left, trial_sums, pairs, gone)
            out[start + at] = known.llr(scores[part][at], pairs, *found)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class _Gone:
    """Pairs of dropped speakers (-1: nobody), and which of them each trial has."""

    first: Index
    second: Index
    pair_of: Index


def _predict(
    known: PlainTrials | KnownTrials,
    kind_of: Index,
    solution: _Solution,
    left: list[int],
    trials: TrialSums,
    places: tuple[Index, Index],
    gone: _Gone,
) -> tuple[Float[Array, "t k"], Float[Array, "c k k"], Index]:
    """Return what is predicted of trials that lose as many rows and columns, (S3).

    Means, covariances, and which covariance each trial has.
    """
    model, loading = known.model, known.loading
    dim, terms = model.dim, precision_terms(model)
    kinds = np.append(kind_of, -1)
    codes = kinds[gone.first] * (len(kinds) + 1) + kinds[gone.second]
    _, example, cell_of = np.unique(codes, return_index=True, return_inverse=True)
    lost = (kinds[who[example]] for who in (gone.first, gone.second))
    W = np.einsum("k,kpq->pq", np.bincount(kind_of, minlength=len(solution.W)), solution.W)
    W = W - sum(_at(solution.W, kind) for kind in lost)  # (S6)
    sides = (trials.enroll is not None, trials.test is not None)
    covariance, moved = trial_posterior(terms, W, left[0], left[1], sides)
    effect, cell = loading @ covariance, cell_of.reshape(-1)[gone.pair_of]
    mean, t = np.zeros((len(cell), len(loading))), solution.without(gone.first, gone.second)[gone.pair_of]
    groups, units = (trials.enroll_group, trials.test_group), (solution.columns, solution.rows)
    precision = (terms.alpha_precision[NONTARGET], terms.beta_precision[NONTARGET])
    for side, scores in enumerate((trials.enroll, trials.test)):
        if scores is not None and scores.size:
            other = groups[1 - side][places[1 - side]]
            sums = _side_part(scores, units[side], groups[side], places[side], other)
            own = effect[:, :, side * dim : (side + 1) * dim] @ precision[side]
            mean += sums[:, :1] * own[cell]
            t += sums[:, 1:]
    mean -= np.einsum("thp,tp->th", (loading @ moved)[cell], t)
    return mean, effect @ loading.T, cell


def _side_part(
    scores: Float[Array, "m u"], units: _Units, own: Index, place: Index, other: Index
) -> Float[Array, "t w"]:
    """Return the sum and the weighted sums of one side's cohort scores, those against dropped speakers left out.

    ``own`` is the speaker of each element of the side, ``other`` that of the other side of each trial; -1 is nobody.
    """
    weights = np.column_stack([np.ones(len(units.weight)), units.weight])
    if units.one_per_speaker:
        padded = np.append(weights, np.zeros((1, weights.shape[1])), axis=0)

        def against(element: Index, speaker: Index) -> Array:
            return scores[element, speaker][:, None] * padded[speaker]
    else:
        table = _by_speaker(scores, weights, units.speaker, units.against.shape[1] + 1)  # the last one is nobody

        def against(element: Index, speaker: Index) -> Array:
            return table[:, speaker, element].T

    total = product(scores, weights) - against(np.arange(len(own)), own)
    return total[place] - against(place, np.where(other == own[place], -1, other))


def _by_speaker(scores: Float[Array, "m u"], weights: Float[Array, "u w"], codes: Index, number: int) -> Array:
    """Return the weighted sums of each row's scores over the units of each speaker, w x number x m."""
    from scipy.sparse import csr_array

    n_units, n_weights = weights.shape
    place = np.arange(n_weights)[:, None] * number + codes, np.tile(np.arange(n_units), (n_weights, 1))
    spread = csr_array((weights.T.ravel(), (place[0].ravel(), place[1].ravel())), shape=(n_weights * number, n_units))
    sums: Array = (spread @ scores.T).reshape(n_weights, number, len(scores))
    return sums


def _at(values: Array, places: Index) -> Array:
    """Return the values at places, 0 for nobody (-1)."""
    taken = values[places]
    taken[places < 0] = 0.0
    return taken
