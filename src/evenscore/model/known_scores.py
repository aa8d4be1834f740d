"""Scores of a trial's enrolment or test that are known to be targets: they count as the formula says.

A known score against a recording of which nothing else is known (a further take of the enrolment's speaker) tells
about x~ alone, through a y that is drawn for it: it is one more observation of alpha_h'x~, with the noise
sigma_h^2 + |beta_h|^2. So the cohort is conditioned on first, and what it says about the four *effects*
q = (alpha_0'x~, alpha_1'x~, beta_0'y~, beta_1'y~) is then brought up to date, (S11). A known score against a member of
the cohort is an exception among its cohort scores, see `partial_cohorts`. Equation numbers as in docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.parameters import ScoreModel
from evenscore.model.prediction import Prediction
from evenscore.model.residuals import ResidualDensities
from evenscore.model.score_weights import Reading, ScoreWeights, enroll_shifts, llr, llrs_of_sums, test_shifts
from evenscore.tables.known_scores import KnownScores

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "EffectWeights",
    "Known",
    "KnownTrials",
    "PlainTrials",
    "SettledOne",
    "known_rows",
    "settled_one",
    "trials_with",
]

Array = np.ndarray
Index = npt.NDArray[np.integer[Any]]
Known = tuple[KnownScores | None, KnownScores | None]  #: of the enrolments and of the tests
_SCORES = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])  # which effects add up to the score of either class


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainTrials:
    """Trials of which nothing is known beside their cohort scores: what is predicted are their two scores."""

    model: ScoreModel
    reading: Reading | None = None

    @cached_property
    def loading(self) -> Float[Array, "2 p"]:
        """How what is predicted depends on (x~, y~)."""
        return np.concatenate([self.model.alpha, self.model.beta], axis=1)

    def llr(
        self,
        scores: npt.NDArray[Any],
        pairs: tuple[Index, Index],
        mean: Float[Array, "t 2"],
        covariance: Float[Array, "c 2 2"],
        cell: Index | int,
    ) -> Float[Array, " t"]:
        """Return the LLRs of pairs of an enrolment and a test; ``cell`` says which covariance is theirs."""
        variance = self.model.sigma2 + np.diagonal(covariance, axis1=-2, axis2=-1)
        return llr(scores, self.model.mu + mean, variance[cell], self.reading)


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownTrials:
    """Trials with known scores beside the cohort's: what is predicted are their four effects, (S11).

    Attributes
    ----------
    enroll, test
        A row for each enrolment (or test): how many scores of non-targets and of targets are known, and how much they
        say, sum (s - mu_h) / noise.
    """

    model: ScoreModel
    enroll: Float[Array, "m 4"]
    test: Float[Array, "n 4"]
    reading: Reading | None = None

    @classmethod
    def of(cls, model: ScoreModel, known: Known, shape: tuple[int, int], reading: Reading | None = None) -> KnownTrials:
        """Sum up the known scores that lie outside of the cohort; ``shape``: how many enrolments and tests."""
        enroll = known_rows(model, known[0], shape[0], model.beta)
        test = known_rows(model, known[1], shape[1], model.alpha)
        return cls(model=model, enroll=enroll, test=test, reading=model.residuals if reading is None else reading)

    @cached_property
    def loading(self) -> Float[Array, "4 p"]:
        """How the effects depend on (x~, y~)."""
        alpha, beta = self.model.alpha, self.model.beta
        return np.block([[alpha, np.zeros_like(beta)], [np.zeros_like(alpha), beta]])

    @cached_property
    def precision(self) -> Float[Array, " 4"]:
        """What one known score adds to the precision of an effect."""
        return 1 / np.concatenate([_noise(self.model, self.model.beta), _noise(self.model, self.model.alpha)])

    def settled(
        self, covariance: Float[Array, "u 4 4"], counts: Float[Array, "u 4"]
    ) -> tuple[Float[Array, "u 2 4"], Float[Array, "u 2 4"], Float[Array, "u 2"]]:
        """Return how the predicted scores follow from the effects and from known scores, and their variances, (S11)."""
        gain = np.linalg.inv(np.eye(4) + covariance * (counts * self.precision)[:, None, :])
        updated = gain @ covariance
        spread = _SCORES @ updated
        return _SCORES @ gain, spread, self.model.sigma2 + np.einsum("uhq,hq->uh", spread, _SCORES)

    def llr(
        self,
        scores: npt.NDArray[Any],
        pairs: tuple[Index, Index],
        mean: Float[Array, "t 4"],
        covariance: Float[Array, "c 4 4"],
        cell: Index | int,
    ) -> Float[Array, " t"]:
        """Return the LLRs of pairs of an enrolment and a test; ``cell`` says which covariance is theirs."""
        i, j = pairs
        known = np.concatenate([self.enroll[i], self.test[j]], axis=1)
        cells = np.broadcast_to(np.asarray(cell, dtype=float), (len(known),))
        kinds, kind = np.unique(np.column_stack([cells, known[:, [0, 1, 4, 5]]]), axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        gain, spread, variance = self.settled(covariance[kinds[:, 0].astype(np.intp)], kinds[:, 1:])
        predicted = np.einsum("thq,tq->th", gain[kind], mean)
        predicted += np.einsum("thq,tq->th", spread[kind], known[:, [2, 3, 6, 7]])
        return llr(scores, self.model.mu + predicted, variance[kind], self.reading)

    def normalized(
        self, trials: Any, weights: EffectWeights, enroll: Float[Array, "m 4"], test: Float[Array, "n 4"]
    ) -> Any:
        """Return trials with their LLRs, from the two sides' parts of the effects."""
        if not trials.listed:
            return trials.with_scores(self.llr_matrix(trials.scores, weights, enroll, test))
        pairs, scores = (trials.enroll_index, trials.test_index), np.asarray(trials.scores)
        mean = enroll[pairs[0]] + test[pairs[1]]
        return trials.with_scores(self.llr(scores, pairs, mean, weights.covariance[None], 0).astype(scores.dtype))

    def llr_matrix(
        self, scores: npt.NDArray[Any], weights: EffectWeights, enroll: Float[Array, "m 4"], test: Float[Array, "n 4"]
    ) -> npt.NDArray[Any]:
        """Return the LLRs of all pairs, from the two sides' parts of the effects: one pass for each pair of kinds."""
        out, (rows, row_of), (columns, column_of) = np.empty_like(scores), _kinds(self.enroll), _kinds(self.test)
        for a, row in enumerate(rows):
            for b, column in enumerate(columns):
                i, j = np.flatnonzero(row_of == a), np.flatnonzero(column_of == b)
                counts = np.concatenate([row, column])[None]
                (gain,), (spread,), (variance,) = self.settled(weights.covariance[None], counts)
                shifts = (
                    self.model.mu + enroll[i] @ gain.T + self.enroll[i, 2:] @ spread[:, :2].T,
                    (test[j] @ gain.T + self.test[j, 2:] @ spread[:, 2:].T).T,
                )
                like = replace(weights.pairs[0], variance=variance, reading=self.reading)
                if len(rows) == len(columns) == 1:
                    return llrs_of_sums(like, scores, *shifts)
                out[np.ix_(i, j)] = llrs_of_sums(like, np.ascontiguousarray(scores[np.ix_(i, j)]), *shifts)
        return out


def trials_with(
    model: ScoreModel, known: Known, shape: tuple[int, int], reading: Reading | None = None
) -> PlainTrials | KnownTrials:
    """Return how trials are scored of whose enrolments and tests some scores are known, or none."""
    if known == (None, None):
        return PlainTrials(model=model, reading=model.residuals if reading is None else reading)
    return KnownTrials.of(model, known, shape, reading)


def known_rows(
    model: ScoreModel, known: KnownScores | None, size: int, other: Float[Array, "2 d"]
) -> Float[Array, "n 4"]:
    """Return the counts and the weight of each element's known scores; ``other``: loadings of the other side."""
    if known is None:
        return np.zeros((size, 4))
    counts, totals = known.sums()
    return np.concatenate([counts, (totals - counts * model.mu) / _noise(model, other)], axis=1)


def _noise(model: ScoreModel, other: Float[Array, "2 d"]) -> Float[Array, " 2"]:
    """Return the variance of a score whose other side is not known at all."""
    return model.sigma2 + (other**2).sum(axis=1)


def _kinds(known: Float[Array, "n 4"]) -> tuple[Float[Array, "k 2"], Index]:
    kinds, kind_of = np.unique(known[:, :2], axis=0, return_inverse=True)
    return kinds, kind_of.reshape(-1)


@dataclass(frozen=True, kw_only=True, eq=False)
class SettledOne:
    """The two predicted scores of one trial with certain numbers of known targets, ready for any number of trials."""

    offset: Float[Array, " 2"]
    enroll: Float[Array, "2 M"]
    test: Float[Array, "2 N"]
    targets: Float[Array, "2 2"]  #: weights of the sums of (s - mu_1) over the known targets of either side
    variance: Float[Array, " 2"]
    reading: Reading | None

    def llr(self, score: float, enroll: Array, test: Array, *sums: float) -> float:
        """Return the LLR of a trial from its cohort scores less mu_0, and the sums of its known targets less mu_1."""
        mean = self.offset + self.targets @ np.array(sums)
        if enroll.size:
            mean = mean + self.enroll @ enroll
        if test.size:
            mean = mean + self.test @ test
        if isinstance(self.reading, ResidualDensities):
            return self.reading.of_one(score, mean, self.variance)
        return float(llr(np.array([score]), mean[None], self.variance, self.reading)[0])


def settled_one(model: ScoreModel, prediction: Prediction, n_enroll: int, n_test: int) -> SettledOne:
    """Prepare for trials with these numbers of known targets of the enrolment and of the test."""
    how = KnownTrials(model=model, enroll=np.zeros((1, 4)), test=np.zeros((1, 4)))
    weights = EffectWeights.of(model, prediction, how.loading)
    counts = np.array([[0.0, n_enroll, 0.0, n_test]])
    (gain,), (spread,), (variance,) = how.settled(weights.covariance[None], counts)
    effects = gain @ how.loading
    return SettledOne(
        offset=model.mu + effects @ prediction.offset,
        enroll=effects @ prediction.enroll,
        test=effects @ prediction.test,
        targets=spread[:, [1, 3]] * how.precision[[1, 3]],
        variance=variance,
        reading=model.residuals,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class EffectWeights:
    """Mean and covariance of what is predicted of a trial, from its cohort scores: two scores, or four effects."""

    pairs: tuple[ScoreWeights, ...]  #: the weights of two of them at a time
    covariance: Float[Array, "k k"]

    @classmethod
    def of(cls, model: ScoreModel, prediction: Prediction, loading: Float[Array, "k p"]) -> EffectWeights:
        """Project the hidden variables on what is predicted."""
        plain = ScoreWeights.of(model, prediction)
        pairs = (
            replace(
                plain,
                offset=two @ prediction.offset,
                enroll=np.ascontiguousarray(two @ prediction.enroll),
                test=np.ascontiguousarray(two @ prediction.test),
            )
            for two in (loading[start : start + 2] for start in range(0, len(loading), 2))
        )
        return cls(pairs=tuple(pairs), covariance=loading @ prediction.covariance @ loading.T)

    def enroll_effects(self, scores: npt.NDArray[Any]) -> Float[Array, "m k"]:
        """Return each enrolment's part of the means, from its cohort scores (a row, empty if there are none)."""
        return np.concatenate([enroll_shifts(two, scores) for two in self.pairs], axis=1)

    def test_effects(self, scores: npt.NDArray[Any]) -> Float[Array, "n k"]:
        """Return each test's part of the means, from its cohort scores (a column, empty if there are none)."""
        return np.concatenate([test_shifts(two, scores) for two in self.pairs], axis=1)
