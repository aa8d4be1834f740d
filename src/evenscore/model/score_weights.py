"""The predicted scores of a trial under both hypotheses, ready for the kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from evenscore.model.parameters import ScoreModel
from evenscore.model.prediction import Prediction
from evenscore.tables import NONTARGET, TARGET, ScoreMatrix, TrialList

__all__ = ["ScoreWeights", "llr", "side_shifts"]

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
    from evenscore.model.normalize_kernels import weigh_columns, weigh_rows

    rows, columns = np.zeros((len(trials.enroll_ids), 2)), np.zeros((len(trials.test_ids), 2))
    if enroll is not None:
        weigh_rows(np.ascontiguousarray(enroll.scores), weights.center, weights.enroll, rows)
    if test is not None:
        weigh_columns(np.ascontiguousarray(test.scores), weights.center, weights.test, columns)
    return rows + weights.offset, columns


def llr(scores: npt.NDArray[Any], mean: Float[Array, "t 2"], variance: Array) -> Float[Array, " t"]:
    """Return log N(s; target) - log N(s; non-target), (S4)."""
    squares = (scores[:, None] - mean) ** 2 / variance + np.log(variance)
    return 0.5 * (squares[:, NONTARGET] - squares[:, TARGET])
