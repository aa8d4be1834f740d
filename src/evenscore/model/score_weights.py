"""The predicted scores of a trial under both hypotheses, and its normalized score: equation (10) of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.model.precision import TOO_LITTLE_LEFT
from evenscore.model.prediction import Prediction
from evenscore.model.residuals import Residual, ResidualDensities
from evenscore.tables import NONTARGET, TARGET, ScoreMatrix, TrialList
from evenscore.tables.arrays import in_type
from evenscore.threads import in_parallel

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Reading", "ScoreWeights", "enroll_shifts", "llr", "llrs_of_sums", "side_shifts", "test_shifts"]

Array = np.ndarray
Reading = ResidualDensities | Residual


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
    reading: Reading | None = None  #: what is read off a score; None: the log-likelihood ratio of two Gaussians

    @classmethod
    def of(cls, model: ScoreModel, prediction: Prediction, reading: Reading | None = None) -> ScoreWeights:
        """Project the hidden variables on the effects of the two classes."""
        loading = np.concatenate([model.alpha, model.beta], axis=1)
        variance = model.sigma2 + np.einsum("hp,pq,hq->h", loading, prediction.covariance, loading)
        if not (variance > 0).all():
            raise InputError(TOO_LITTLE_LEFT)
        return cls(
            center=float(model.mu[NONTARGET]),
            offset=model.mu + loading @ prediction.offset,
            enroll=np.ascontiguousarray(loading @ prediction.enroll),
            test=np.ascontiguousarray(loading @ prediction.test),
            variance=variance,
            reading=model.residuals if reading is None else reading,
        )

    @cached_property
    def half(self) -> Float[Array, " 2"]:
        """1 / (2 variance)."""
        return 0.5 / self.variance

    @cached_property
    def constant(self) -> float:
        """Half the difference of the log-variances."""
        return float(0.5 * np.log(self.variance[NONTARGET] / self.variance[TARGET]))


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
    if not scores.size:
        return np.tile(weights.offset, (len(scores), 1))
    if few(scores.size):
        # Not by a matrix product: its threads would go on waiting for the next one, on cores that are needed now.
        return np.einsum("mn,hn->mh", _centered(scores, weights.center), weights.enroll) + weights.offset
    from evenscore.model.normalize_kernels import weigh_rows

    shifts = np.zeros((len(scores), 2))
    how = np.ascontiguousarray(scores), weights.center, np.ascontiguousarray(weights.enroll)
    in_parallel(lambda start, stop: weigh_rows(*how, start, stop, shifts), *scores.shape)
    return shifts + weights.offset


def test_shifts(weights: ScoreWeights, scores: npt.NDArray[Any]) -> Float[Array, "n 2"]:
    """Return each test's part of the predicted scores, from its cohort scores (a column, empty if there are none)."""
    if not scores.size:
        return np.zeros((scores.shape[1], 2))
    if few(scores.size):
        return np.einsum("hm,mn->nh", weights.test, _centered(scores, weights.center))
    from evenscore.model.normalize_kernels import weigh_columns

    shifts = np.zeros((scores.shape[1], 2))
    how = np.ascontiguousarray(scores), weights.center, np.ascontiguousarray(weights.test)
    in_parallel(lambda start, stop: weigh_columns(*how, start, stop, shifts), *scores.shape[::-1])
    return shifts


def _centered(scores: npt.NDArray[Any], center: float) -> Float[Array, "m n"]:
    centered = scores.astype(np.float64) - center
    return np.where(np.isnan(centered), 0.0, centered)


def llrs_of_sums(
    weights: ScoreWeights,
    scores: npt.NDArray[Any],
    enroll: Float[Array, "m 2"],
    test: Float[Array, "2 n"],
    listed: TrialList | None = None,
    out: npt.NDArray[Any] | None = None,
    sound: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[Any]:
    """Return (S4) of a matrix of scores, or of those of listed trials: the predicted score is the sum of two parts.

    The result is in the precision of the scores; ``out`` may be the scores themselves. ``sound`` is set where all
    results of a row are known to be scores.
    """
    out = np.empty_like(scores) if out is None else out
    sound = np.zeros(len(scores), dtype=bool) if sound is None else sound
    half, constant = weights.half, weights.constant
    if weights.reading is not None:
        return weights.reading.of_sums(scores, (enroll, test), weights.variance, listed, out, sound)
    if few(scores.size):
        d0, d1 = (
            (scores - enroll[:, h, None] - test[h])
            if listed is None
            else (scores - enroll[listed.enroll_index, h] - test[h, listed.test_index])
            for h in (NONTARGET, TARGET)
        )
        out[...] = in_type(constant + half[NONTARGET] * d0 * d0 - half[TARGET] * d1 * d1, out.dtype)
        return out
    from evenscore.model.normalize_kernels import llr_list, llr_matrix

    scores, enroll, test = (np.ascontiguousarray(part) for part in (scores, enroll, test))
    if listed is None:
        how = (scores, enroll, test, half, constant)
        in_parallel(lambda start, stop: llr_matrix(*how, start, stop, out, sound), *scores.shape)
    else:
        trials = (scores, enroll, test, listed.enroll_index, listed.test_index, half, constant)
        in_parallel(lambda start, stop: llr_list(*trials, start, stop, out), scores.size)
    return out


def llr(
    scores: npt.NDArray[Any], mean: Float[Array, "t 2"], variance: Array, reading: Reading | None
) -> Float[Array, " t"]:
    """Return log N(s; target) - log N(s; non-target), (S4), or whatever else is read off scores."""
    if reading is not None:
        return reading.of_trials(scores, mean, variance)
    squares = (scores[:, None] - mean) ** 2 / variance + np.log(variance)
    return 0.5 * (squares[:, NONTARGET] - squares[:, TARGET])
