"""The score model's norm for scores from embeddings: the cohort folds into one vector per side and class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.bilinear_sums import cohort_sums
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.parameters import ScoreModel
from evenscore.model.prediction import predict_from_sums
from evenscore.model.score_weights import ScoreWeights, llrs_of_sums
from evenscore.sources.bilinear import Bilinear
from evenscore.sources.blocks import cohort_matrix
from evenscore.sources.chunks import each_chunk, sum_of_chunks
from evenscore.sources.computed import Places
from evenscore.tables import Labels, ScoreMatrix
from evenscore.tables.ids import Ids, shown
from evenscore.threads import product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["BilinearNormalizer"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Folded:
    """Weighted sums of one side's cohort scores, as a function of its vector u and its offset a.

    sum_j w_hj (s_j - center) = vectors_h . u + slope_h a + constant_h              (B3)
    """

    vectors: Float[Array, "2 d"]
    slope: Float[Array, " 2"]
    constant: Float[Array, " 2"]

    @classmethod
    def of(cls, weights: Float[Array, "2 m"], vectors: npt.NDArray[Any], offset: Array, center: float) -> _Folded:
        folded = sum_of_chunks(vectors, (2, vectors.shape[1]), lambda part, chunk: weights[:, part] @ chunk)
        return cls(vectors=folded, slope=weights.sum(axis=1), constant=weights @ (offset - center))

    def apply(self, vectors: npt.NDArray[Any], offset: Array) -> Float[Array, "2 n"]:
        sums = np.outer(self.slope, offset) + self.constant[:, None]

        def add(part: slice, chunk: npt.NDArray[np.float64]) -> None:
            sums[:, part] += self.vectors @ chunk.T

        each_chunk(vectors, add)
        return sums


class BilinearNormalizer:
    """A score model prepared for a cohort of embeddings; scores trials and normalizes them in one go.

    It gives the numbers of `ScoreModelNormalizer`, without cohort scores: normalizing costs two dot products per
    enrolment and per test, whatever the size of the cohort, and one pass over the scores as they are made.

    Parameters
    ----------
    model
        The trained score model.
    cohort
        Scores of the cohort's enrolments against its tests, from the scorer that scores the trials. An id that stands
        on both sides is one utterance, whose score against itself is left out.
    labels
        Labels of the cohort; by default all pairs are non-targets. With labels by speaker, all of them known, the
        cohort scores are never formed.

    Notes
    -----
    No speaker and no utterance of the trials may be in the cohort. If some are, make dense blocks with `score_blocks`
    and give them to `ScoreModelNormalizer`, which leaves them out where they must be.

    Examples
    --------
    >>> import numpy as np
    >>> from evenscore import Cosine, Embeddings, ScoreModel
    >>> rng = np.random.default_rng(0)
    >>> enroll, test = Embeddings(["e"], rng.normal(size=(1, 4))), Embeddings(["t"], rng.normal(size=(1, 4)))
    >>> cohort = Embeddings([f"c{n}" for n in range(50)], rng.normal(size=(50, 4)))
    >>> model = ScoreModel(mu=[0.0, 0.7], alpha=[[0.1], [0.1]], beta=[[0.1], [0.1]], sigma2=[0.2, 0.1])
    >>> normalizer = BilinearNormalizer(model, Cosine().score(cohort, cohort))
    >>> normalizer.normalize(Cosine().score(enroll, test)).scores.round(3)
    array([[1.859]])
    """

    def __init__(self, model: ScoreModel, cohort: Bilinear, labels: Labels | None = None) -> None:
        self.model = model
        self.weights = _weights(model, cohort, labels)
        self._enroll_ids, self._test_ids = frozenset(cohort.enroll_ids), frozenset(cohort.test_ids)
        center = self.weights.center
        self._enroll = _Folded.of(self.weights.enroll, cohort.right, cohort.right_offset, center)
        self._test = _Folded.of(self.weights.test, cohort.left, cohort.left_offset, center)

    def normalize(self, trials: Bilinear) -> ScoreMatrix:
        """Return the log-likelihood ratios of every enrolment against every test."""
        return ScoreMatrix(self.block(trials), trials.enroll_ids, trials.test_ids)

    def block(
        self, trials: Bilinear, rows: Places = slice(None), columns: Places = slice(None)
    ) -> npt.NDArray[np.floating]:
        """Return the log-likelihood ratios of some enrolments against some tests, for work block by block.

        Enrolments and tests are given by slices or positions, as in `Bilinear.block`.
        """
        enroll = self._enroll_shifts(trials, rows) - trials.left_offset[rows]
        test = self._test_shifts(trials, columns) - trials.right_offset[columns]
        scores = product(trials.left[rows], trials.right[columns].T)
        # What is predicted is subtracted from the score, so the offsets of the score go with the prediction.
        return llrs_of_sums(self.weights, scores, enroll.T, test, out=scores)

    def _enroll_shifts(self, trials: Bilinear, rows: Places) -> Float[Array, "2 m"]:
        """Return the enrolments' part of the predicted scores, (S3)."""
        _check_trials(trials, trials.enroll_ids[rows], self._test_ids, self._enroll)
        return self._enroll.apply(trials.left[rows], trials.left_offset[rows]) + self.weights.offset[:, None]

    def _test_shifts(self, trials: Bilinear, columns: Places) -> Float[Array, "2 n"]:
        _check_trials(trials, trials.test_ids[columns], self._enroll_ids, self._test)
        return self._test.apply(trials.right[columns], trials.right_offset[columns])


def _check_trials(trials: Bilinear, ids: Ids, cohort_ids: frozenset[str], folded: _Folded) -> None:
    if trials.dim != folded.vectors.shape[1]:
        raise InputError(f"the trials have {trials.dim} dimensions, but the cohort has {folded.vectors.shape[1]}")
    shared = cohort_ids.intersection(ids.tolist())
    if shared:
        raise InputError(
            f"{shown(sorted(shared))} of the trials stand in the cohort too, so they would be compared with "
            "themselves; make blocks with score_blocks and give them to ScoreModelNormalizer"
        )


def _weights(model: ScoreModel, cohort: Bilinear, labels: Labels | None) -> ScoreWeights:
    """Condition on the cohort, without forming its scores where that can be done."""
    n_rows, n_columns = cohort.shape
    if labels is None:
        labels = Labels.from_speakers(range(n_rows), range(n_rows, n_rows + n_columns))
    labels = labels.align(cohort.enroll_ids, cohort.test_ids)
    sides = (n_columns > 0, n_rows > 0)
    if labels.by_speaker and not labels.n_unknown and all(sides):
        return ScoreWeights.of(model, predict_from_sums(model, cohort_sums(cohort, labels)))
    return ScoreModelNormalizer(model, cohort_matrix(cohort), labels).weights(enroll=sides[0], test=sides[1])
