"""What the cohort says about a trial before its score is seen.

Conditioned on the cohort scores, the hidden variables (x~, y~) of a trial are Gaussian. Their mean is linear in the
trial's cohort scores, and their covariance is the same for all trials with the same pattern, so one factorization
serves all of them. Letters and equation numbers as in docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.block_posterior import evidence_of_groups, group_precisions, inverse_root
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern_posterior import PatternPrecision
from evenscore.model.patterns import (
    Exceptions,
    LabelledSums,
    SpeakerBlocks,
    components,
    exceptions_of_key,
    pattern_of_key,
)
from evenscore.model.precision import PrecisionTerms, background, evidence_of_sums, precision_terms
from evenscore.model.sums import ClassSums, sum_blocks, sum_by_key
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "EffectPosterior",
    "Prediction",
    "effect_posterior",
    "predict",
    "predict_from_sums",
    "trial_posterior",
]

Array = np.ndarray
_LARGEST_COHORT = 20_000  # members whose covariances fit into memory


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Posterior of (x~, y~) given the cohort, as a linear function of the trial's cohort scores less mu_0.

    mean = offset + enroll @ (s_e - mu_0) + test @ (s_t - mu_0)                     (S1)
    """

    offset: Float[Array, " p"]
    enroll: Float[Array, "p M"]
    test: Float[Array, "p N"]
    covariance: Float[Array, "p p"]


def predict(
    model: ScoreModel,
    cohort: npt.NDArray[Any],
    key: npt.NDArray[np.int8],
    sides: tuple[bool, bool] = (True, True),
) -> Prediction:
    """Condition on the cohort in the cheapest exact way; `key` is -1 where a pair is missing or unknown."""
    pattern, center = pattern_of_key(key), float(model.mu[NONTARGET])
    if isinstance(pattern, SpeakerBlocks):
        sums = sum_blocks(cohort, pattern.row_codes, pattern.column_codes, pattern.n_speakers, center)
    else:
        sums = sum_by_key(cohort, key, center)
    return predict_from_sums(model, LabelledSums(sums=sums, pattern=pattern), sides)


def predict_from_sums(model: ScoreModel, cohort: LabelledSums, sides: tuple[bool, bool] = (True, True)) -> Prediction:
    """Condition on a cohort of which only the sums are known; none of its rows and columns may be left out."""
    if isinstance(cohort.pattern, SpeakerBlocks):
        return _predict_from_blocks(model, cohort.sums, cohort.pattern, sides)
    assert isinstance(cohort.pattern, Exceptions)  # noqa: S101
    return _predict_from_exceptions(model, cohort.sums, cohort.pattern, sides)


def _predict_from_blocks(
    model: ScoreModel, sums: ClassSums, blocks: SpeakerBlocks, sides: tuple[bool, bool]
) -> Prediction:
    """Condition on a complete cohort of speaker blocks of which only the sums are known.

    The trial is one more group, whose own pair is missing, in a matrix with one more row and one more column.
    """
    shapes, sums, terms = blocks.shapes, sums.recentered(float(model.mu[NONTARGET])), precision_terms(model)
    n_rows, n_columns, dim = len(blocks.row_codes), len(blocks.column_codes), model.dim
    sizes = shapes.n_enroll, shapes.n_test
    groups = group_precisions(terms, *sizes, shapes.n_groups, n_rows + sides[0], n_columns + sides[1])
    own, moved = trial_posterior(terms, groups.W, n_rows, n_columns, sides)
    # (S2): what one unit of gamma in a group moves the trial's hidden variables
    reach = -moved @ (groups.root[:, :, None] * groups.P_inv)
    ap, bp = terms.alpha_precision[NONTARGET], terms.beta_precision[NONTARGET]
    enroll = own[:, :dim] @ ap + inverse_root(shapes.n_test) * (reach[:, :, dim:] @ bp)
    test = own[:, dim:] @ bp + inverse_root(shapes.n_enroll) * (reach[:, :, :dim] @ ap)
    gamma = evidence_of_groups(terms, model.mu - model.mu[NONTARGET], *sizes, n_rows, n_columns)  # scores less mu_0
    row_shape, column_shape = shapes.shape_of[blocks.row_codes], shapes.shape_of[blocks.column_codes]
    target, in_rows = (np.bincount(row_shape, sums.rows[h], len(shapes)) for h in (TARGET, NONTARGET))
    in_columns = np.bincount(column_shape, sums.columns[NONTARGET], len(shapes))
    phi = np.stack([shapes.n_groups, target, in_rows, in_columns], axis=1)
    return Prediction(
        offset=np.einsum("spf,sf->p", reach @ gamma, phi),
        enroll=enroll[column_shape].T,
        test=test[row_shape].T,
        covariance=own,
    )


def trial_posterior(
    terms: PrecisionTerms, W: Float[Array, "*c p p"], n_rows: int, n_columns: int, sides: tuple[bool, bool]
) -> tuple[Float[Array, "*c p p"], Float[Array, "*c p p"]]:
    """Return the covariance of (x~, y~), and by what its mean is moved down by a unit of t = U' P^-1 gamma, (S2).

    W = U' P^-1 U of the cohort, which has n_rows enrolments and n_columns tests; `sides`: which cohort scores exist.
    """
    dim = terms.a.shape[1]
    has_enroll, has_test = sides
    P = np.eye(2 * dim)
    P[:dim, :dim] += has_enroll * n_columns * terms.a[NONTARGET]
    P[dim:, dim:] += has_test * n_rows * terms.b[NONTARGET]
    P[:dim, dim:] -= (has_enroll and has_test) * terms.c[NONTARGET]
    P[dim:, :dim] = P[:dim, dim:].T
    P_inv = np.linalg.inv(P)
    root = np.repeat(np.array([has_enroll, has_test], dtype=float), dim)
    spread = P_inv * root  # P^-1 U of the trial's own group
    M = background(terms)
    T = np.linalg.solve(np.eye(2 * dim) + M @ (W + root[:, None] * spread), np.broadcast_to(M, W.shape))  # (E4)
    return P_inv - spread @ T @ spread.T, spread @ T


def _predict_from_exceptions(
    model: ScoreModel, sums: ClassSums, pattern: Exceptions, sides: tuple[bool, bool]
) -> Prediction:
    """Condition on a cohort of any pattern of which only the sums are known."""
    n, m, dim = pattern.n_rows, pattern.n_columns, model.dim
    rhs_x, rhs_y = np.zeros((n + sides[0], dim, 2 * dim)), np.zeros((m + sides[1], dim, 2 * dim))
    rhs_x[n:, :, :dim] = rhs_y[m:, :, dim:] = np.eye(dim)
    x, y = _solve_with_trial(model, sums, pattern, sides, rhs_x, rhs_y)
    to_x, to_y = x[:, :, 1:], y[:, :, 1:]  # columns of Lambda^-1 that belong to (x~, y~)
    prior = np.eye(2 * dim)  # of a side without cohort scores, about which nothing is known
    own_x, own_y = to_x[n] if sides[0] else prior[:dim], to_y[m] if sides[1] else prior[dim:]
    nothing = np.zeros(dim)
    ap, bp = (loading[NONTARGET] / model.sigma2[NONTARGET] for loading in (model.alpha, model.beta))
    return Prediction(
        offset=np.concatenate([x[n, :, 0] if sides[0] else nothing, y[m, :, 0] if sides[1] else nothing]),
        enroll=(own_x.T @ ap + np.einsum("jdp,d->jp", to_y[:m], bp)).T * float(sides[0]),
        test=(own_y.T @ bp + np.einsum("idp,d->ip", to_x[:n], ap)).T * float(sides[1]),
        covariance=np.concatenate([own_x, own_y]),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class EffectPosterior:
    """Posterior of the effects in a trial's M + N cohort scores, all of them observed as non-targets.

    The effect of score j of S_e is alpha_0'x~ + beta_0'y_j, that of score i of S_t is alpha_0'x_i + beta_0'y~. Some of
    them are *exceptional*, and so are the effects of class 1 that stand in place of those of targets.
    """

    exceptional: npt.NDArray[np.intp]  #: which scores, of 0..M-1 in S_e and M.. in S_t
    target: npt.NDArray[np.intp]  #: those of them that are targets in some trial
    scores: Float[Array, "o f"]  #: covariance of the effects of all scores with the exceptional ones, class 0 before 1
    exceptions: Float[Array, "f f"]  #: of the exceptional ones
    hidden: Float[Array, "p f"]  #: of (x~, y~) with them
    offset: Float[Array, " f"]  #: mean of the exceptional ones, when all of the trial's cohort scores are mu_0


def effect_posterior(
    model: ScoreModel,
    cohort: npt.NDArray[Any],
    key: npt.NDArray[np.int8],
    sides: tuple[bool, bool],
    exceptional: npt.NDArray[np.intp],
    target: npt.NDArray[np.intp],
) -> EffectPosterior:
    """Return the posterior of the effects; those of a side without cohort scores mean nothing."""
    (n, m), dim = key.shape, model.dim
    wanted = np.concatenate([exceptional, target])
    if (n + m) * max(dim, 1) * len(wanted) > _LARGEST_COHORT**2:
        raise InputError(
            f"cohort scores of trials are missing, and a cohort of {n} + {m} is too large for that; "
            "complete the cohort scores or take a smaller cohort"
        )
    classes = np.repeat([NONTARGET, TARGET], [len(exceptional), len(target)])
    alpha, beta, at = model.alpha[classes], model.beta[classes], np.arange(len(wanted))
    rhs_x, rhs_y = (np.zeros((size, dim, len(wanted))) for size in (n + sides[0], m + sides[1]))
    of_enroll = wanted < m  # scores of S_e
    rhs_y[wanted[of_enroll], :, at[of_enroll]] = beta[of_enroll]
    rhs_x[wanted[~of_enroll] - m, :, at[~of_enroll]] = alpha[~of_enroll]
    rhs_x[n:, :, of_enroll] = alpha[of_enroll].T
    rhs_y[m:, :, ~of_enroll] = beta[~of_enroll].T
    sums = sum_by_key(cohort, key, float(model.mu[NONTARGET]))
    x, y = _solve_with_trial(model, sums, exceptions_of_key(key), sides, rhs_x, rhs_y)
    nothing = np.zeros((1, dim, 1 + len(wanted)))
    own_x, own_y = (found if len(found) else nothing for found in (x[n:], y[m:]))

    def effects(scores: npt.NDArray[np.intp], of_class: int) -> Float[Array, "s q"]:
        first, second = scores[scores < m], scores[scores >= m] - m
        alpha, beta = model.alpha[of_class], model.beta[of_class]
        row, column = (np.einsum("idr,d->ir", x[second], alpha), np.einsum("jdr,d->jr", y[first], beta))
        row, column = row + np.einsum("idr,d->ir", own_y, beta), column + np.einsum("idr,d->ir", own_x, alpha)
        found = np.empty((len(scores), 1 + len(wanted)))
        found[scores < m], found[scores >= m] = column, row
        return found

    everything = effects(np.arange(m + n), NONTARGET)
    special = np.concatenate([everything[exceptional], effects(target, TARGET)])
    return EffectPosterior(
        exceptional=exceptional,
        target=target,
        scores=everything[:, 1:],
        exceptions=special[:, 1:],
        hidden=np.concatenate([own_x[0, :, 1:], own_y[0, :, 1:]]),
        offset=special[:, 0],
    )


def _solve_with_trial(
    model: ScoreModel,
    sums: ClassSums,
    pattern: Exceptions,
    sides: tuple[bool, bool],
    rhs_x: Float[Array, "i d r"],
    rhs_y: Float[Array, "j d r"],
) -> tuple[Float[Array, "i d q"], Float[Array, "j d q"]]:
    """Return Lambda^-1 times gamma and the right-hand side, with the trial among the rows and columns, behind all."""
    gamma = evidence_of_sums(model, sums)
    both_x, both_y = (np.concatenate([np.zeros((*rhs.shape[:2], 1)), rhs], axis=2) for rhs in (rhs_x, rhs_y))
    both_x[: pattern.n_rows, :, 0], both_y[: pattern.n_columns, :, 0] = gamma
    row_counts = _trial_counted(sums.row_counts, pattern.n_columns, sides)
    column_counts = _trial_counted(sums.column_counts, pattern.n_rows, sides[::-1])
    parts = components(_with_trial(pattern, sides))
    solved = PatternPrecision.of(model, pattern.background, parts, row_counts, column_counts).solve(both_x, both_y)
    return solved.x, solved.y


def _with_trial(pattern: Exceptions, sides: tuple[bool, bool]) -> Exceptions:
    """Return the pattern with the row and the column of the trial, where they have scores; its own pair is missing."""
    n, m = pattern.n_rows, pattern.n_columns
    rows, columns = [pattern.rows], [pattern.columns]
    if not pattern.background:  # then the trial's scores are to be listed
        rows += [np.full(sides[0] * m, n), np.arange(sides[1] * n)]
        columns += [np.arange(sides[0] * m), np.full(sides[1] * n, m)]
    elif all(sides):
        rows, columns = [*rows, np.array([n])], [*columns, np.array([m])]
    more = sum(map(len, rows[1:]))
    label = UNKNOWN if pattern.background else NONTARGET
    return Exceptions(
        n_rows=n + sides[0],
        n_columns=m + sides[1],
        background=pattern.background,
        rows=np.concatenate(rows),
        columns=np.concatenate(columns),
        labels=np.concatenate([pattern.labels, np.full(more, label, dtype=np.int8)]),
    )


def _trial_counted(counts: Float[Array, "2 n"], others: int, sides: tuple[bool, bool]) -> Float[Array, "2 p"]:
    """Return the numbers of scores of cohort members, with those of the trial, and of the trial, if it has any."""
    own, across = sides
    extended = np.zeros((2, counts.shape[1] + own))
    extended[:, : counts.shape[1]] = counts
    extended[NONTARGET, : counts.shape[1]] += across
    extended[NONTARGET, counts.shape[1] :] = others
    return extended
