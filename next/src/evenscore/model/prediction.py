"""What a cohort says about the hidden variables of a trial, before its own score is seen.

The cohort scores do not depend on the hypothesis, so it is enough to condition on them once:

    (x~, y~) | S_I, s_e, s_t ~ N(m, V),   m = constant + F s_e + G s_t                               (S1)
    p_h = mu_h + [alpha_h beta_h] m,      v_h = sigma_h^2 + [alpha_h beta_h] V [alpha_h beta_h]'      (S3)

V, F and G depend only on which scores there are, and of which class: on the labels of s_e and s_t. With them, classes
of the cohort split into members with different labels, and x~ and y~ are solved for last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern import MISSING, Pattern, find_pattern, refine
from evenscore.model.posterior import background_core, factorize, solve
from evenscore.model.statistics import lay_out
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Cohort", "Prediction", "predict"]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Cohort:
    """The scores S_I of a cohort, N x M, as a model sees them."""

    pattern: Pattern
    row_gamma: Float[np.ndarray, "n d"]  #: evidence about the enrolments' hidden variables, (E2)
    col_gamma: Float[np.ndarray, "m d"]

    @classmethod
    def from_sums(cls, model: ScoreModel, sums: ClassSums) -> Cohort:
        """Return the cohort of these sums."""
        less = sums.moved(model.mu)
        return cls(
            find_pattern(sums.labels), less.rows / model.sigma2 @ model.alpha, less.cols / model.sigma2 @ model.beta
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of enrolments and tests."""
        return len(self.row_gamma), len(self.col_gamma)


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a cohort says about trials whose cohort scores have the same labels."""

    constant: Float[np.ndarray, " p"]  #: mean of (x~, y~) where all its cohort scores are 0; p = 2 D
    enroll: Float[np.ndarray, "p m"]  #: weights of s_e in the mean
    test: Float[np.ndarray, "p n"]  #: weights of s_t in the mean
    covariance: Float[np.ndarray, "p p"]  #: of (x~, y~)
    offset: Float[np.ndarray, "2"]  #: p_h where all cohort scores are 0
    enroll_weights: Float[np.ndarray, "2 m"]  #: of s_e in p_h
    test_weights: Float[np.ndarray, "2 n"]  #: of s_t in p_h
    variance: Float[np.ndarray, "2"]  #: v_h


def predict(model: ScoreModel, cohort: Cohort, enroll_labels: Codes, test_labels: Codes) -> Prediction:
    """Condition a trial's hidden variables on all cohort scores.

    Parameters
    ----------
    model
        The score model.
    cohort
        N x M.
    enroll_labels, test_labels
        Labels (0, 1, -1 for missing) of s_e and s_t. The first M (and N) are those of the cohort's members; others are
        labels of scores against further recordings, which have no scores with the cohort.
    """
    (N, M), D = cohort.shape, model.dim
    pattern = refine(cohort.pattern, test_labels[:N] % 3, enroll_labels[:M] % 3)
    row_label, col_label = np.empty(len(pattern.row_size), np.int8), np.empty(len(pattern.col_size), np.int8)
    row_label[pattern.row_class], col_label[pattern.col_class] = test_labels[:N], enroll_labels[:M]
    row_z, col_z, known = _solve_cohort(model, pattern, row_label, col_label)
    a, b, _ = model.score_precision()
    precision = np.eye(2 * D) - known
    precision[:D, :D] += np.tensordot(_label_counts(enroll_labels[:M]), a, 1)
    precision[D:, D:] += np.tensordot(_label_counts(test_labels[:N]), b, 1)
    # A recording that has a score with this trial only adds its own hidden variable to the noise of that score.
    alone_e, alone_t = model.sigma2 + (model.beta**2).sum(1), model.sigma2 + (model.alpha**2).sum(1)
    precision[:D, :D] += (model.alpha.T * (_label_counts(enroll_labels[M:]) / alone_e)) @ model.alpha  # (S11)
    precision[D:, D:] += (model.beta.T * (_label_counts(test_labels[N:]) / alone_t)) @ model.beta
    V = np.linalg.inv(precision)
    row_cov, col_cov = -row_z @ V, -col_z @ V  # of the cohort's hidden variables with (x~, y~), by class
    F = np.empty((2 * D, len(enroll_labels)))
    F[:, :M] = _weights(model.sigma2, model.alpha, model.beta, col_label, V[:D], col_cov)[:, pattern.col_class]
    F[:, M:] = _weights(alone_e, model.alpha, model.beta, enroll_labels[M:], V[:D])
    G = np.empty((2 * D, len(test_labels)))
    G[:, :N] = _weights(model.sigma2, model.beta, model.alpha, row_label, V[D:], row_cov)[:, pattern.row_class]
    G[:, N:] = _weights(alone_t, model.beta, model.alpha, test_labels[N:], V[D:])
    constant = np.zeros(2 * D) - F @ model.mu[np.maximum(enroll_labels, 0)] - G @ model.mu[np.maximum(test_labels, 0)]
    for d in range(D):
        constant += np.bincount(pattern.row_class, cohort.row_gamma[:, d], len(row_label)) @ row_cov[:, d]
        constant += np.bincount(pattern.col_class, cohort.col_gamma[:, d], len(col_label)) @ col_cov[:, d]
    both = np.concatenate([model.alpha, model.beta], axis=1)
    variance = model.sigma2 + ((both @ V) * both).sum(1)  # (S3)
    return Prediction(constant, F, G, V, model.mu + both @ constant, both @ F, both @ G, variance)


def _label_counts(labels: Codes) -> Float[np.ndarray, "2"]:
    return np.bincount(labels + 1, minlength=3)[1:].astype(float)


def _weights(
    noise: Float[np.ndarray, "2"], mine: Array, theirs: Array, labels: Codes, own: Array, others: Array | None = None
) -> Float[np.ndarray, "p m"]:
    """Return the weights of cohort scores in m: a score adds its loadings / noise to the evidence of its two sides.

    ``own`` is the covariance of the trial's side with (x~, y~), ``others`` that of the cohort's members.
    """
    h = np.maximum(labels, 0)
    found = mine[h] @ own
    if others is not None:
        found += (theirs[h][:, :, None] * others).sum(1)
    return (found * ((labels != MISSING) / noise[h])[:, None]).T


def _solve_cohort(
    model: ScoreModel, pattern: Pattern, row_label: Codes, col_label: Codes
) -> tuple[Float[np.ndarray, "r d p"], Float[np.ndarray, "c d p"], Float[np.ndarray, "p p"]]:
    """Return Lambda_c^-1 B for the members of every class, and B' Lambda_c^-1 B.

    Lambda_c is the precision of the cohort's hidden variables, s_e and s_t included, and B couples them with (x~, y~).
    """
    D, layout = model.dim, lay_out(pattern, ordered=False)
    row_u, col_u = np.sqrt(pattern.row_size), np.sqrt(pattern.col_size)
    c = np.concatenate([model.score_precision()[2], np.zeros((1, D, D))])  # the last one is for missing scores
    row_B, col_B = np.zeros((len(row_u), 2 * D, D)), np.zeros((len(col_u), 2 * D, D))
    row_B[:, D:] = (row_u[:, None, None] * c[row_label]).swapaxes(1, 2)  # x_i with y~
    col_B[:, :D] = col_u[:, None, None] * c[col_label]  # y_j with x~
    row_n = pattern.row_n + np.stack([row_label == 0, row_label == 1], 1)  # with the scores of s_t and s_e
    col_n = pattern.col_n + np.stack([col_label == 0, col_label == 1], 1)
    W, t, solved = np.zeros((2 * D, 2 * D)), np.zeros((2 * D, 2 * D)), []  # U' P^-1 U and U' P^-1 B
    for n in range(len(layout.shapes)):
        u, v = layout.rows(n, row_u), layout.cols(n, col_u)
        f = factorize(model, layout.coupling(n, u, v)[0], layout.rows(n, row_n), layout.cols(n, col_n), u, v)
        x, y = solve(f, layout.rows(n, row_B).swapaxes(1, 2), layout.cols(n, col_B).swapaxes(1, 2))
        W += f.UPU.sum(0)
        t[:D] += np.tensordot(u, x, ((0, 1), (0, 2))).T
        t[D:] += np.tensordot(v, y, ((0, 1), (0, 2))).T
        solved.append((f, x, y))
    shift = background_core(model, W[None], np.array([pattern.background == NONTARGET]))[0][0] @ t
    row_z, col_z = np.empty(row_B.shape), np.empty(col_B.shape)
    for n, (f, x, y) in enumerate(solved):
        rows, cols = layout.row_place[0] == n, layout.col_place[0] == n
        x, y = x - (f.row_PU @ shift).transpose(0, 3, 1, 2), y - (f.col_PU @ shift).transpose(0, 3, 1, 2)  # (E4)
        row_z[rows] = x[layout.row_place[1, rows], :, layout.row_place[2, rows]]
        col_z[cols] = y[layout.col_place[1, cols], :, layout.col_place[2, cols]]
    known = np.tensordot(row_B, row_z, ((0, 2), (0, 2))) + np.tensordot(col_B, col_z, ((0, 2), (0, 2)))
    row_z, col_z = row_z / row_u[:, None, None], col_z / col_u[:, None, None]
    return row_z.swapaxes(1, 2), col_z.swapaxes(1, 2), known
