"""Scoring with the location-scale model: cohort scores in, log-likelihood ratios out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.location_scale.prediction import Predicted, TrialSide, predict_trials, predictive_llr
from evenscore.location_scale.prepared_cohort import prepare_cohort
from evenscore.model.cohort import Cohort
from evenscore.tables import Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids
from evenscore.tables.rescore import as_list, rescored_pairs

__all__ = ["LocationScaleNormalizer"]

Array = np.ndarray


class LocationScaleNormalizer:
    """A location-scale model prepared for a cohort; turns raw scores into natural-log likelihood ratios.

    Parameters
    ----------
    model
        The trained model.
    cohort
        Scores S_I of the cohort's enrolments against its tests; or `ScoreBlocks`, whose cohort is taken, with labels,
        speakers and one-sided cohorts; or None for no cohort at all.
    labels
        Labels of ``cohort``; by default all pairs are non-targets. Pairs of unknown label are not used.
    enroll_speakers, test_speakers
        Speakers of the cohort's enrolments and tests. If the blocks to be normalized have speakers too, every row and
        column of the cohort that belongs to one of a trial's two speakers is left out of that trial's evidence.

    Examples
    --------
    >>> from evenscore import ScoreModel
    >>> location = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> cohort = ScoreMatrix([[0.3, -0.2], [0.1, 0.4]], ["d1", "d2"], ["c1", "c2"])
    >>> linear = LocationScaleNormalizer(LocationScaleModel(location), cohort)
    >>> round(linear.normalize_one(3.0, [1.5, 0.9], [0.2, 0.1]), 4)
    0.6008
    >>> wide = LocationScaleNormalizer(LocationScaleModel(location, c=[0.8, 0.8]), cohort)
    >>> round(wide.normalize_one(3.0, [6.5, -5.9], [0.2, 0.1]), 4)  # an enrolment whose scores are far apart
    0.3915
    """

    def __init__(
        self,
        model: LocationScaleModel,
        cohort: ScoreMatrix | ScoreBlocks | None = None,
        labels: Labels | None = None,
        *,
        enroll_speakers: Any = None,
        test_speakers: Any = None,
    ) -> None:
        cohort = ScoreBlocks.of_cohort(cohort, labels, enroll_speakers=enroll_speakers, test_speakers=test_speakers)
        self.model = model
        self._cohort = Cohort.of(cohort)
        self._prepared = prepare_cohort(model, self._cohort)

    @property
    def cohort_enroll_ids(self) -> Ids:
        """Ids of the cohort's enrolments, in the order of test-side cohort scores."""
        return self._cohort.enroll_ids

    @property
    def cohort_test_ids(self) -> Ids:
        """Ids of the cohort's tests, in the order of enrolment-side cohort scores."""
        return self._cohort.test_ids

    def predict(self, blocks: ScoreBlocks) -> Predicted:
        """Return what the cohort scores say about the score of each trial, in the order of the list of trials."""
        return self._predict(blocks, as_list(blocks.trials))

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of `blocks.trials`.

        The cohort of the blocks must be the one this normalizer was prepared for, or be left out of them.
        """
        trials = as_list(blocks.trials)
        assert trials.scores is not None  # noqa: S101
        llrs = predictive_llr(trials.scores.astype(np.float64), self._predict(blocks, trials))
        return rescored_pairs(blocks.trials, trials, llrs)

    def normalize_one(
        self, score: float, enroll: npt.ArrayLike | None = None, test: npt.ArrayLike | None = None
    ) -> float:
        """Return the log-likelihood ratio of one trial.

        Parameters
        ----------
        score
            The trial's raw score.
        enroll
            Scores of the trial's enrolment against the cohort's tests, in the order of `cohort_test_ids`; None if
            there are none; NaN where one is missing.
        test
            Scores of the cohort's enrolments against the trial's test, in the order of `cohort_enroll_ids`.
        """
        sides = [
            TrialSide(scores=_row(scores, len(ids), what), speaker=np.full(1, -1, dtype=np.intp))
            for scores, ids, what in (
                (enroll, self.cohort_test_ids, "enroll"),
                (test, self.cohort_enroll_ids, "test"),
            )
        ]
        zero = np.zeros(1, dtype=np.intp)
        predicted = predict_trials(self.model, self._prepared, sides[0], sides[1], zero, zero)
        return float(predictive_llr(np.array([float(score)]), predicted)[0])

    def _predict(self, blocks: ScoreBlocks, trials: TrialList) -> Predicted:
        enroll, test = self._cohort.align(blocks)
        sides = (
            TrialSide(
                scores=None if enroll is None else enroll.scores.astype(np.float64),
                speaker=self._cohort.numbers_of(blocks.enroll_speakers, len(trials.enroll_ids)),
            ),
            TrialSide(
                scores=None if test is None else test.scores.T.astype(np.float64),
                speaker=self._cohort.numbers_of(blocks.test_speakers, len(trials.test_ids)),
            ),
        )
        i, j = trials.enroll_index.astype(np.intp), trials.test_index.astype(np.intp)
        return predict_trials(self.model, self._prepared, *sides, i, j)


def _row(scores: npt.ArrayLike | None, size: int, what: str) -> npt.NDArray[np.float64] | None:
    if scores is None:
        return None
    vector = np.asarray(scores, dtype=np.float64)
    if vector.shape != (size,):
        raise InputError(f"{what} has shape {vector.shape}, but the cohort has {size} members")
    return vector[None, :]
