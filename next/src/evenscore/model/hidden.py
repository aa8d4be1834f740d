"""The posterior of all hidden variables of a matrix: the paper's z, with its mean and covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.model.sums import with_labels

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["HiddenPosterior", "posterior"]

_MOST = 20_000  # hidden numbers whose covariance fits into memory (3 GB)


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenPosterior:
    """Gaussian posterior of hidden variables: of all x and y of a matrix, or of those of one trial."""

    enroll: Float[np.ndarray, "*k d"]  #: means of x
    test: Float[np.ndarray, "*l d"]  #: means of y
    covariance: Float[np.ndarray, "z z"]  #: of z = (x_1, ..., x_K, y_1, ..., y_L), which has (K + L) D elements


def posterior(model: ScoreModel, scores: Any, labels: Any = None) -> HiddenPosterior:
    """Return the posterior of all hidden variables, given labelled scores.

    Parameters
    ----------
    model
        The score model.
    scores, labels
        A matrix with labels, or a labelled `TrialList`, as for `fit_score_model`. Scores that are NaN, or of unknown
        label, are not used.

    Examples
    --------
    >>> model = ScoreModel(mu=[0.0, 2.0], alpha=[[0.5], [0.5]], beta=[[0.1], [0.3]], sigma2=[1.0, 1.0])
    >>> found = posterior(model, np.array([[2.5, 0.1], [-0.4, 1.5]]), np.eye(2))
    >>> found.enroll.round(3), found.covariance.shape
    (array([[ 0.195],
           [-0.293]]), (4, 4))
    """
    scores, labels = with_labels(scores, labels)
    if isinstance(scores, TrialList):
        scores, labels = scores.to_matrix().scores, Labels.from_trials(scores)
    (K, L), D = labels.shape, model.dim
    if (K + L) * D > _MOST:
        raise InputError(f"the posterior of {K} + {L} hidden variables does not fit into memory; take fewer of them")
    values = np.asarray(scores, dtype=float)
    key = np.where(np.isnan(values), -1, labels.matrix)
    a, b, c = model.score_precision()
    precision, gamma = np.zeros((K + L, D, K + L, D)), np.zeros((K + L, D))
    x, y, rows, cols = np.arange(K), np.arange(K, K + L), slice(K), slice(K, None)
    for h in (NONTARGET, TARGET):
        there = (key == h).astype(float)
        evidence = np.where(key == h, values - model.mu[h], 0.0) / model.sigma2[h]
        precision[x, :, x] += there.sum(1)[:, None, None] * a[h]  # (E1)
        precision[y, :, y] += there.sum(0)[:, None, None] * b[h]
        precision[rows, :, cols] += there[:, None, :, None] * c[h][None, :, None]
        precision[cols, :, rows] += there.T[:, None, :, None] * c[h].T[None, :, None]
        gamma[rows] += evidence.sum(1)[:, None] * model.alpha[h]  # (E2)
        gamma[cols] += evidence.sum(0)[:, None] * model.beta[h]
    covariance = np.linalg.inv(precision.reshape((K + L) * D, (K + L) * D) + np.eye((K + L) * D))
    mean = (covariance @ gamma.ravel()).reshape(K + L, D)
    return HiddenPosterior(enroll=mean[rows], test=mean[cols], covariance=covariance)
