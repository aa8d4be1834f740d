"""The predicted scores of a trial under both hypotheses, ready for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.parameters import ScoreModel
from evenscore.model.prediction import Prediction
from evenscore.tables import NONTARGET, TARGET, ScoreMatrix, TrialList

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ScoreWeights", "enroll_shifts", "llr", "side_shifts", "test_shifts"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreWeights:
    """Mean and variance of a trial's score in each class (non-target, target), from its cohort scores.

    mean_h = offset_h + enroll_h . (s_e - center) + test_h . (s_t - center)         (S3)
    """

    center: float
    offset: Float[Array, " 2"]
    enroll: Float[Array, "2 M"]
    test: Float[Array, "2 N"]
    variance: Float[Array, " 2"]
    half: Float[Array, " 2"]  #: 1 / (2 variance)
    constant: float  #: half the difference of the log-variances

    @classmethod
    def of(cls, model: ScoreModel, prediction: Prediction) -> ScoreWeights:
        """Project the hidden variables on the effects of the two classes."""
        loading = np.concatenate([model.alpha, model.beta], axis=1)
        variance = model.sigma2 + np.einsum("hp,pq,hq->h", loading, prediction.covariance, loading)
        return cls(
            center=float(model.mu[NONTARGET]),
            offset=model.mu + loading @ prediction.offset,
            enroll=np.ascontiguousarray(loading @ prediction.enroll),
            test=np.ascontiguousarray(loading @ prediction.test),
            variance=variance,
            half=0.5 / variance,
            constant=float(0.5 * np.log(variance[NONTARGET] / variance[TARGET])),
        )


def side_shifts(
    weights: ScoreWeights, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None
) -> tuple[Float[Array, "m 2"], Float[Array, "n 2"]]:
    """Return each enrolment's and each test's part of the two predicted scores; missing scores count as the centre."""
    m, n = len(trials.enroll_ids), len(trials.test_ids)
    return (
        enroll_shifts(weights, np.empty((m, 0)) if enroll is None else enroll.scores),
        test_shifts(weights, np.empty((0, n)) if test is None else test.scores),
    )


def enroll_shifts(weights: ScoreWeights, scores: npt.NDArray[Any]) -> Float[Array, "m 2"]:
    """Return each enrolment's part of the predicted scores, from its cohort scores (a row, empty if there are none)."""
    from evenscore.model.normalize_kernels import weigh_rows

    shifts = np.zeros((len(scores), 2))
    if scores.size:
        weigh_rows(np.ascontiguousarray(scores), weights.center, weights.enroll, shifts)
    return shifts + weights.offset


def test_shifts(weights: ScoreWeights, scores: npt.NDArray[Any]) -> Float[Array, "n 2"]:
    """Return each test's part of the predicted scores, from its cohort scores (a column, empty if there are none)."""
    from evenscore.model.normalize_kernels import weigh_columns

    shifts = np.zeros((scores.shape[1], 2))
    if scores.size:
        weigh_columns(np.ascontiguousarray(scores), weights.center, weights.test, shifts)
    return shifts


def llr(scores: npt.NDArray[Any], mean: Float[Array, "t 2"], variance: Array) -> Float[Array, " t"]:
    """Return log N(s; target) - log N(s; non-target), (S4)."""
    squares = (scores[:, None] - mean) ** 2 / variance + np.log(variance)
    return 0.5 * (squares[:, NONTARGET] - squares[:, TARGET])
