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

from evenscore.model.block_posterior import background_correction, couplings, group_precisions
from evenscore.model.component_posterior import component_posterior
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import Exceptions, SpeakerBlocks, components, exceptions_of_key, pattern_of_key
from evenscore.model.sums import ClassSums, sum_blocks, sum_by_key
from evenscore.tables import NONTARGET, TARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "GroupWeights",
    "Prediction",
    "group_weights",
    "predict",
    "predict_from_blocks",
    "predict_from_exceptions",
    "predict_from_key",
    "predict_from_sums",
]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Prediction:
    """Posterior of (x~, y~) given the cohort, as a linear function of the trial's cohort scores less mu_0.

    mean = offset + enroll @ (s_e - mu_0) + test @ (s_t - mu_0)                     (S1)
    """

    offset: Float[Array, " p"]
    enroll: Float[Array, "p M"]
    test: Float[Array, "p N"]
    covariance: Float[Array, "p p"]


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupWeights:
    """The same for cohorts of speaker blocks, where the weights depend only on the shape of a speaker."""

    enroll: Float[Array, "s p"]  #: weight of a score against a test of a speaker of this shape
    test: Float[Array, "s p"]  #: weight of a score of an enrolment of a speaker of this shape
    group: Float[Array, "s p 4"]  #: weight of the sums phi_g = (1, T_g, R_g, C_g) of a speaker
    covariance: Float[Array, "p p"]


def group_weights(
    model: ScoreModel,
    n_enroll: Array,
    n_test: Array,
    n_groups: Float[Array, " s"],
    sides: tuple[bool, bool] = (True, True),
) -> GroupWeights:
    """Return the weights for a complete cohort of speakers of the given shapes; `sides`: which cohort scores exist.

    The trial is one more group, whose own pair is missing, in a matrix with one more row and one more column.
    """
    dim = model.dim
    terms = couplings(model)
    has_enroll, has_test = sides
    n_rows, n_columns = n_groups @ n_enroll, n_groups @ n_test
    groups = group_precisions(terms, n_enroll, n_test, n_groups, n_rows + has_enroll, n_columns + has_test)
    P = np.eye(2 * dim)
    P[:dim, :dim] += has_enroll * n_columns * terms.a[NONTARGET]
    P[dim:, dim:] += has_test * n_rows * terms.b[NONTARGET]
    P[:dim, dim:] -= (has_enroll and has_test) * terms.c[NONTARGET]
    P[dim:, :dim] = P[:dim, dim:].T
    P_inv = np.linalg.inv(P)
    root = np.repeat(np.array([has_enroll, has_test], dtype=float), dim)
    T, _ = background_correction(terms, groups.W + root[:, None] * P_inv * root)
    spread = P_inv * root  # P^-1 U of the trial's own group
    own = P_inv - spread @ T @ spread.T
    # (S2): what one unit of gamma in a group moves the trial's hidden variables
    reach = -(spread @ T) @ (groups.root[:, :, None] * groups.P_inv)
    ap, bp = terms.alpha_precision, terms.beta_precision
    per_row, per_column = _inverse_root(n_enroll), _inverse_root(n_test)
    enroll = own[:, :dim] @ ap[NONTARGET] + per_column * (reach[:, :, dim:] @ bp[NONTARGET])
    test = own[:, dim:] @ bp[NONTARGET] + per_row * (reach[:, :, :dim] @ ap[NONTARGET])
    shift = model.mu[TARGET] - model.mu[NONTARGET]
    gamma = np.zeros((len(n_enroll), 2 * dim, 4))  # (E6) with scores less mu_0
    gamma[:, :dim, 0] = -np.sqrt(n_enroll)[:, None] * n_test[:, None] * shift * ap[TARGET]
    gamma[:, dim:, 0] = -np.sqrt(n_test)[:, None] * n_enroll[:, None] * shift * bp[TARGET]
    gamma[:, :dim, 1], gamma[:, :dim, 2] = per_row * ap[TARGET], per_row * ap[NONTARGET]
    gamma[:, dim:, 1], gamma[:, dim:, 3] = per_column * bp[TARGET], per_column * bp[NONTARGET]
    return GroupWeights(enroll=enroll, test=test, group=reach @ gamma, covariance=own)


def _inverse_root(sizes: Array) -> Float[Array, "s 1"]:
    return np.where(sizes > 0, 1 / np.sqrt(np.maximum(sizes, 1)), 0.0)[:, None]


def predict_from_blocks(
    model: ScoreModel, cohort: npt.NDArray[Any], blocks: SpeakerBlocks, sides: tuple[bool, bool] = (True, True)
) -> Prediction:
    """Condition on a complete cohort whose targets are the same-speaker pairs."""
    center = float(model.mu[NONTARGET])
    sums = sum_blocks(cohort, blocks.row_codes, blocks.column_codes, blocks.n_speakers, center)
    return predict_from_sums(model, sums, blocks, sides)


def predict_from_sums(
    model: ScoreModel, sums: ClassSums, blocks: SpeakerBlocks, sides: tuple[bool, bool] = (True, True)
) -> Prediction:
    """Condition on a complete cohort of speaker blocks of which only the sums are known."""
    shapes, sums = blocks.shapes, sums.recentered(float(model.mu[NONTARGET]))
    weights = group_weights(model, shapes.n_enroll, shapes.n_test, shapes.n_groups, sides)
    row_shape, column_shape = shapes.shape_of[blocks.row_codes], shapes.shape_of[blocks.column_codes]
    target, in_rows = (np.bincount(row_shape, sums.rows[h], len(shapes)) for h in (TARGET, NONTARGET))
    in_columns = np.bincount(column_shape, sums.columns[NONTARGET], len(shapes))
    phi = np.stack([shapes.n_groups, target, in_rows, in_columns], axis=1)
    return Prediction(
        offset=np.einsum("spf,sf->p", weights.group, phi),
        enroll=weights.enroll[column_shape].T,
        test=weights.test[row_shape].T,
        covariance=weights.covariance,
    )


def predict_from_key(
    model: ScoreModel,
    cohort: npt.NDArray[Any],
    key: npt.NDArray[np.int8],
    sides: tuple[bool, bool] = (True, True),
) -> Prediction:
    """Condition on a cohort with any pattern of labels and missing pairs (key -1)."""
    sums = sum_by_key(cohort, key, float(model.mu[NONTARGET]), {})
    return predict_from_exceptions(model, sums, exceptions_of_key(key), sides)


def predict_from_exceptions(
    model: ScoreModel, sums: ClassSums, pattern: Exceptions, sides: tuple[bool, bool] = (True, True)
) -> Prediction:
    """Condition on a cohort of any pattern of which only the sums are known; no row and no column may be left out."""
    n, m, dim, terms = pattern.n_rows, pattern.n_columns, model.dim, couplings(model)
    pattern = _with_trial(pattern, sides)
    gamma_x, gamma_y = (np.zeros((size, dim, 1 + 2 * dim)) for size in (pattern.n_rows, pattern.n_columns))
    for h in (NONTARGET, TARGET):
        shift = model.mu[h] - sums.center
        gamma_x[:n, :, 0] += (sums.rows[h] - shift * sums.row_counts[h])[:, None] * terms.alpha_precision[h]  # (E2)
        gamma_y[:m, :, 0] += (sums.columns[h] - shift * sums.column_counts[h])[:, None] * terms.beta_precision[h]
    gamma_x[n:, :, 1 : 1 + dim] = gamma_y[m:, :, 1 + dim :] = np.eye(dim)
    counts = _trial_counted(sums.row_counts, m, sides), _trial_counted(sums.column_counts, n, sides[::-1])
    post = component_posterior(model, pattern, components(pattern), gamma_x, gamma_y, *counts)
    to_x, to_y = post.x[:, :, 1:], post.y[:, :, 1:]  # columns of Lambda^-1 that belong to (x~, y~)
    prior = np.eye(2 * dim)  # of a side without cohort scores, about which nothing is known
    own_x, own_y = to_x[n] if sides[0] else prior[:dim], to_y[m] if sides[1] else prior[dim:]
    nothing = np.zeros(dim)
    ap, bp = terms.alpha_precision[NONTARGET], terms.beta_precision[NONTARGET]
    return Prediction(
        offset=np.concatenate([post.x[n, :, 0] if sides[0] else nothing, post.y[m, :, 0] if sides[1] else nothing]),
        enroll=(own_x.T @ ap + np.einsum("jdp,d->jp", to_y[:m], bp)).T * float(sides[0]),
        test=(own_y.T @ bp + np.einsum("idp,d->ip", to_x[:n], ap)).T * float(sides[1]),
        covariance=np.concatenate([own_x, own_y]),
    )


def predict(
    model: ScoreModel,
    cohort: npt.NDArray[Any],
    key: npt.NDArray[np.int8],
    sides: tuple[bool, bool] = (True, True),
) -> Prediction:
    """Condition on the cohort in the cheapest exact way; `key` is -1 where a pair is missing or unknown."""
    pattern = pattern_of_key(key)
    if isinstance(pattern, SpeakerBlocks):
        return predict_from_blocks(model, cohort, pattern, sides)
    return predict_from_key(model, cohort, key, sides)


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
