"""What a cohort says about the hidden variables of a trial, before its own score is seen.

The cohort scores do not depend on the hypothesis, so it is enough to condition on them once:

    (x~, y~) | S_I, s_e, s_t ~ N(m, V),   m = constant + F s_e + G s_t                               (S1)
    p_h = mu_h + [alpha_h beta_h] m,      v_h = sigma_h^2 + [alpha_h beta_h] V [alpha_h beta_h]'      (S3)

V, F and G depend only on which scores there are, and of which class: on the labels of s_e and s_t. With them, classes
of the cohort split into members with different labels, and x~ and y~ are solved for last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET
from evenscore.model.expectation import background_core, factorize, solve
from evenscore.model.layout import lay_out
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern import MISSING, Pattern, find_pattern, refine
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Float, Int

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
        (row_n, col_n), mu = sums.labels.counts(), model.mu - sums.center
        row_gamma = ((sums.rows - row_n * mu) / model.sigma2) @ model.alpha  # (E2)
        return cls(find_pattern(sums.labels), row_gamma, ((sums.cols - col_n * mu) / model.sigma2) @ model.beta)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of enrolments and tests."""
        return self.pattern.shape


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
    more_e, more_t = _label_counts(enroll_labels[M:]) / alone_e, _label_counts(test_labels[N:]) / alone_t
    precision[:D, :D] += (model.alpha.T * more_e) @ model.alpha  # (S11)
    precision[D:, D:] += (model.beta.T * more_t) @ model.beta
    V = np.linalg.inv(precision)
    row_cov, col_cov = -row_z @ V, -col_z @ V  # of the cohort's hidden variables with (x~, y~), by class
    F = np.empty((2 * D, len(enroll_labels)))
    F[:, :M] = _weights(model.sigma2, model.alpha, model.beta, col_label, V[:D], col_cov)[:, pattern.col_class]
    F[:, M:] = _weights(alone_e, model.alpha, model.beta, enroll_labels[M:], V[:D], None)
    G = np.empty((2 * D, len(test_labels)))
    G[:, :N] = _weights(model.sigma2, model.beta, model.alpha, row_label, V[D:], row_cov)[:, pattern.row_class]
    G[:, N:] = _weights(alone_t, model.beta, model.alpha, test_labels[N:], V[D:], None)
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
    noise: Float[np.ndarray, "2"], mine: Array, theirs: Array, labels: Codes, own: Array, others: Array | None
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
    layout = lay_out(pattern, ordered=False)
    factors, sides, roots = [], [], []
    for n, batch in enumerate(layout.batches):
        row, col = (
            _placed(layout.row_place, n, row_label, batch.row_size),
            _placed(layout.col_place, n, col_label, batch.col_size),
        )
        row_n = batch.row_n + np.stack([row == 0, row == 1], axis=2)  # with the scores of s_t and s_e
        col_n = batch.col_n + np.stack([col == 0, col == 1], axis=2)
        roots.append((np.sqrt(batch.row_size), np.sqrt(batch.col_size)))
        factors.append(factorize(model, batch.coupling(), row_n, col_n, *roots[-1]))
        sides.append(_border(model, *roots[-1], row, col))
    W = sum((f.UPU.sum(0) for f in factors), np.zeros((2 * model.dim, 2 * model.dim)))
    core = background_core(model, W[None], np.array([pattern.background == NONTARGET]))[0][0]
    solved = [solve(f, *two) for f, two in zip(factors, sides, strict=True)]
    t = np.zeros(W.shape)  # U' P^-1 B
    for two, z in zip(roots, solved, strict=True):
        t += np.concatenate([np.tensordot(u, part, ((0, 1), (0, 2))) for u, part in zip(two, z, strict=True)], axis=1).T
    row_z, col_z = (
        np.zeros((len(row_label), *t.shape[1:], model.dim)),
        np.zeros((len(col_label), *t.shape[1:], model.dim)),
    )
    known = np.zeros(t.shape)
    for n, (f, (row_B, col_B), (x, y)) in enumerate(zip(factors, sides, solved, strict=True)):
        x = x - (f.row_PU @ (core @ t)).transpose(0, 3, 1, 2)  # (E4)
        y = y - (f.col_PU @ (core @ t)).transpose(0, 3, 1, 2)
        known += np.tensordot(row_B, x, ((0, 2, 3), (0, 2, 3))) + np.tensordot(col_B, y, ((0, 2, 3), (0, 2, 3)))
        _gather(row_z, x, layout.row_place, n)
        _gather(col_z, y, layout.col_place, n)
    row_z = (row_z / np.sqrt(pattern.row_size)[:, None, None]).swapaxes(1, 2)
    col_z = (col_z / np.sqrt(pattern.col_size)[:, None, None]).swapaxes(1, 2)
    return row_z, col_z, known


def _placed(place: Int[np.ndarray, "3 r"], number: int, label: Codes, size: Array) -> Codes:
    """Return the labels of the classes of a batch; those that a component lacks are missing."""
    found = np.full(size.shape, MISSING, np.int8)
    here = place[0] == number
    found[place[1, here], place[2, here]] = label[here]
    return found


def _border(model: ScoreModel, row_u: Array, col_u: Array, row_label: Codes, col_label: Codes) -> tuple[Array, Array]:
    """Return B of some components, one vector for each element of (x~, y~): G x P x R x D and G x P x C x D."""
    D = model.dim
    c = np.concatenate([model.score_precision()[2], np.zeros((1, D, D))])  # the last one is for missing scores
    row_B = np.zeros((*row_label.shape, D, 2 * D))
    col_B = np.zeros((*col_label.shape, D, 2 * D))
    row_B[..., D:] = row_u[..., None, None] * c[row_label]  # x_i with y~
    col_B[..., :D] = col_u[..., None, None] * c[col_label].swapaxes(2, 3)  # y_j with x~
    return row_B.transpose(0, 3, 1, 2), col_B.transpose(0, 3, 1, 2)


def _gather(out: Any, values: Float[np.ndarray, "g p r d"], place: Int[np.ndarray, "3 r"], number: int) -> None:
    """Set the values of the classes of a batch."""
    here = place[0] == number
    out[here] = values[place[1, here], :, place[2, here]]
