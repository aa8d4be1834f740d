"""Own speakers left out of a cohort that is incomplete within its speakers: no score against oneself, for instance.

As long as every pair of two different speakers is an observed non-target, dropping speakers leaves the other speakers'
parts of the posterior precision as they are, but for the numbers of scores on the diagonal. So one factorization of
all speakers serves all trials that lose the same numbers of rows and columns, and the speakers who are dropped are
subtracted from sums. Letters and equation numbers as in docs/math.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.block_posterior import Couplings, background, couplings
from evenscore.model.cohort import Cohort
from evenscore.model.component_posterior import solve_speakers
from evenscore.model.own_speakers import group_columns
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Component
from evenscore.tables import NONTARGET, TARGET, Labels

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["LocalCohort", "local_cohort", "predict_without_speakers"]

Array = np.ndarray
Index = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalCohort:
    """A cohort whose targets and missing pairs lie within speakers, and sums of its scores less mu_0."""

    row_codes: Index  #: speaker of each enrolment
    column_codes: Index
    n_speakers: int
    batches: list[Component]  #: the speakers, by numbers of enrolments and tests
    counts: tuple[Float[Array, "2 k"], Float[Array, "2 l"]]  #: scores of each class in a row, in a column
    gamma: tuple[Float[Array, "k d"], Float[Array, "l d"]]  #: (E2)
    in_rows: Float[Array, "k g"]  #: sum of a row's scores against the tests of each other speaker
    in_columns: Float[Array, "l g"]


def local_cohort(model: ScoreModel, cohort: Cohort) -> LocalCohort | None:
    """Return the sums of a cohort, or None if it is not of this kind."""
    if cohort.enroll_speakers is None or cohort.test_speakers is None:
        return None
    labels = Labels.from_speakers(cohort.enroll_speakers, cohort.test_speakers)
    same = labels.matrix == TARGET
    if labels.n_unknown or (cohort.key[~same] != NONTARGET).any():
        return None
    rows, columns, number = labels.speaker_codes
    terms = couplings(model)
    is_class = np.stack([cohort.key == NONTARGET, cohort.key == TARGET])
    gamma_x, gamma_y = np.zeros((len(rows), model.dim)), np.zeros((len(columns), model.dim))
    for h in (NONTARGET, TARGET):
        values = np.where(is_class[h], cohort.scores - model.mu[h], 0.0)
        gamma_x += values.sum(axis=1)[:, None] * terms.alpha_precision[h]
        gamma_y += values.sum(axis=0)[:, None] * terms.beta_precision[h]
    between = np.where(same, 0.0, cohort.scores - model.mu[NONTARGET])
    return LocalCohort(
        row_codes=rows,
        column_codes=columns,
        n_speakers=number,
        batches=_speaker_batches(cohort.key, rows, columns, number),
        counts=(is_class.sum(axis=2).astype(float), is_class.sum(axis=1).astype(float)),
        gamma=(gamma_x, gamma_y),
        in_rows=group_columns(between, columns, number, 0.0),
        in_columns=group_columns(between.T, rows, number, 0.0),
    )


def _speaker_batches(key: npt.NDArray[np.int8], rows: Index, columns: Index, number: int) -> list[Component]:
    sizes = np.stack([np.bincount(codes, minlength=number) for codes in (rows, columns)], axis=1)
    members = [[np.flatnonzero(codes == g) for g in range(number)] for codes in (rows, columns)]
    batches = []
    for size in np.unique(sizes, axis=0):
        of_size = np.flatnonzero((sizes == size).all(axis=1))
        i = np.stack([members[0][g] for g in of_size])
        j = np.stack([members[1][g] for g in of_size])
        batches.append(Component(rows=i, columns=j, key=key[i[:, :, None], j[:, None, :]]))
    return batches


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solution:
    """V = P^-1 U of all speakers for one number of dropped rows and columns, and what follows from it by speaker."""

    row_weight: Float[Array, "k p"]  #: Vx_i' alpha_0 / sigma_0^2
    column_weight: Float[Array, "l p"]
    W: Float[Array, "g p p"]  #: U' P^-1 U
    t: Float[Array, "g p"]  #: U' P^-1 gamma
    lost: Float[Array, "g g p"]  #: of [g, a]: the part of t_g that comes from scores between g and a


def _solve(
    model: ScoreModel, terms: Couplings, cohort: LocalCohort, dropped: tuple[int, int], sides: tuple[bool, bool]
) -> _Solution:
    dim = model.dim
    row_counts, column_counts = (counts.copy() for counts in cohort.counts)
    row_counts[NONTARGET] += sides[1] - dropped[1]
    column_counts[NONTARGET] += sides[0] - dropped[0]
    A = np.eye(dim) + np.einsum("hk,hde->kde", row_counts, terms.a)  # (E1)
    B = np.eye(dim) + np.einsum("hk,hde->kde", column_counts, terms.b)
    Vx, Vy = solve_speakers(cohort.batches, terms, A, B)
    rows = np.einsum("kdp,d->kp", Vx, terms.alpha_precision[NONTARGET])
    columns = np.einsum("ldp,d->lp", Vy, terms.beta_precision[NONTARGET])
    W = np.concatenate([_by_speaker(cohort.row_codes, Vx, cohort), _by_speaker(cohort.column_codes, Vy, cohort)], 1)
    t = _by_speaker(cohort.row_codes, np.einsum("kdp,kd->kp", Vx, cohort.gamma[0]), cohort)
    t += _by_speaker(cohort.column_codes, np.einsum("ldp,ld->lp", Vy, cohort.gamma[1]), cohort)
    lost = np.empty((cohort.n_speakers, cohort.n_speakers, 2 * dim))
    for p in range(2 * dim):  # one at a time: the sums by speaker are the largest arrays here
        lost[:, :, p] = _by_speaker(cohort.row_codes, cohort.in_rows * rows[:, p : p + 1], cohort)
        lost[:, :, p] += _by_speaker(cohort.column_codes, cohort.in_columns * columns[:, p : p + 1], cohort)
    return _Solution(row_weight=rows, column_weight=columns, W=W, t=t, lost=lost)


def _by_speaker(codes: Index, values: Array, cohort: LocalCohort) -> Array:
    """Sum values over the rows (or columns) of each speaker."""
    from scipy.sparse import csr_array

    size = len(codes)
    members = csr_array((np.ones(size), (codes, np.arange(size))), shape=(cohort.n_speakers, size))
    return (members @ values.reshape(size, math.prod(values.shape[1:]))).reshape(cohort.n_speakers, *values.shape[1:])


def predict_without_speakers(
    model: ScoreModel,
    cohort: LocalCohort,
    enroll: npt.NDArray[Any] | None,
    test: npt.NDArray[Any] | None,
    own: tuple[Index, Index],
    trials: tuple[Index, Index],
) -> tuple[Float[Array, "t p"], Float[Array, "c p p"], Index]:
    """Return the mean of (x~, y~) for each listed trial, covariances, and which of them a trial has.

    ``enroll`` and ``test`` are the trials' cohort scores less mu_0 (one row per enrolment, one per test), 0 where
    missing; ``own`` the cohort speaker who is the speaker of each enrolment and of each test, or -1.
    """
    terms, number = couplings(model), cohort.n_speakers
    rows, columns = trials
    codes = (own[0][rows] + 1) * (number + 1) + own[1][columns] + 1
    pairs, pair_of = np.unique(codes, return_inverse=True)
    first, second = (part - 1 for part in np.divmod(pairs, number + 1))
    second = np.where(first == second, -1, second)  # a target trial drops one speaker
    size = np.zeros((number + 1, 2), dtype=np.intp)  # the last one is nobody
    size[:-1, 0], size[:-1, 1] = (np.bincount(c, minlength=number) for c in (cohort.row_codes, cohort.column_codes))
    dropped, kind_of = np.unique(size[first] + size[second], axis=0, return_inverse=True)
    kind_of = kind_of.reshape(-1)
    means = np.empty((len(rows), 2 * model.dim))
    covariances = np.empty((len(pairs), 2 * model.dim, 2 * model.dim))
    sides = (enroll is not None, test is not None)
    for kind, (n_rows, n_columns) in enumerate(dropped):
        solution = _solve(model, terms, cohort, (int(n_rows), int(n_columns)), sides)
        mine = np.flatnonzero(kind_of == kind)
        left = len(cohort.row_codes) - int(n_rows), len(cohort.column_codes) - int(n_columns)
        own_cov, reach = _trial_terms(model, terms, solution, left, sides, first[mine], second[mine])
        covariances[mine] = own_cov
        at = np.flatnonzero(kind_of[pair_of] == kind)
        place = np.empty(len(pairs), dtype=np.intp)
        place[mine] = np.arange(len(mine))
        p = place[pair_of[at]]
        gone = first[mine][p], second[mine][p]
        t = _cohort_part(solution, first[mine], second[mine])[p]
        gamma = np.zeros((len(at), 2 * model.dim))
        half = slice(0, model.dim), slice(model.dim, None)
        for side, scores, index, members, weight, precision in (
            (0, enroll, rows[at], cohort.column_codes, solution.column_weight, terms.alpha_precision),
            (1, test, columns[at], cohort.row_codes, solution.row_weight, terms.beta_precision),
        ):
            if scores is not None:
                plain, weighted = _side_part(scores, members, number, weight, index, gone)
                gamma[:, half[side]] = plain[:, None] * precision[NONTARGET]
                t = t + weighted
        means[at] = np.einsum("tpq,tq->tp", own_cov[p], gamma) - np.einsum("tpq,tq->tp", reach[p], t)
    return means, covariances, pair_of.reshape(-1)


def _trial_terms(
    model: ScoreModel,
    terms: Couplings,
    solution: _Solution,
    left: tuple[int, int],
    sides: tuple[bool, bool],
    first: Index,
    second: Index,
) -> tuple[Float[Array, "c p p"], Float[Array, "c p p"]]:
    """Return the covariance of (x~, y~) for each pair of dropped speakers, and what t moves its mean by, (S2)."""
    dim = model.dim
    has_enroll, has_test = sides
    P = np.eye(2 * dim)
    P[:dim, :dim] += has_enroll * left[1] * terms.a[NONTARGET]
    P[dim:, dim:] += has_test * left[0] * terms.b[NONTARGET]
    P[:dim, dim:] -= (has_enroll and has_test) * terms.c[NONTARGET]
    P[dim:, :dim] = P[:dim, dim:].T
    P_inv = np.linalg.inv(P)
    root = np.repeat(np.array([has_enroll, has_test], dtype=float), dim)
    spread = P_inv * root
    W = solution.W.sum(axis=0) - _at(solution.W, first) - _at(solution.W, second) + root[:, None] * P_inv * root
    M = background(terms)
    T = np.linalg.solve(np.eye(2 * dim) + M @ W, np.broadcast_to(M, W.shape))
    return P_inv - spread @ T @ spread.T, spread @ T


def _cohort_part(solution: _Solution, first: Index, second: Index) -> Float[Array, "c p"]:
    """Return U' P^-1 gamma of the speakers who are left, without their scores against those who are not."""
    t = solution.t.sum(axis=0) - _at(solution.t, first) - _at(solution.t, second)
    against = solution.lost.sum(axis=0)
    t = t - _at(against, first) - _at(against, second)
    both = (first >= 0) & (second >= 0)  # what the two have between them went with their own parts
    t[both] += solution.lost[first[both], second[both]] + solution.lost[second[both], first[both]]
    return t


def _side_part(
    scores: npt.NDArray[Any],
    members: Index,
    number: int,
    weight: Float[Array, "c p"],
    index: Index,
    gone: tuple[Index, Index],
) -> tuple[Float[Array, " t"], Float[Array, "t p"]]:
    """Return the sum and the weighted sum of one side's cohort scores, those against dropped speakers left out."""
    kinds = np.column_stack([np.ones(len(weight)), weight])
    total = (scores @ kinds)[index]
    for column, values in enumerate(kinds.T):
        by_speaker = group_columns(scores * values, members, number, 0.0)
        for who in gone:
            at = np.flatnonzero(who >= 0)
            total[at, column] -= by_speaker[index[at], who[at]]
    return total[:, 0], total[:, 1:]


def _at(values: Array, speakers: Index) -> Array:
    """Return the values of speakers, 0 for nobody (-1)."""
    taken = values[speakers]
    taken[speakers < 0] = 0.0
    return taken
