"""Scoring with the score model: cohort scores in, log-likelihood ratios out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.cohort import Cohort
from evenscore.model.known_scores import EffectWeights, Known, KnownTrials, SettledOne, settled_one
from evenscore.model.parameters import ScoreModel
from evenscore.model.partial_cohorts import has_missing, score_without_missing, score_without_own
from evenscore.model.precision import refusing_singular
from evenscore.model.prediction import Prediction, predict
from evenscore.model.score_weights import Reading, ScoreWeights, llrs_of_sums, side_shifts
from evenscore.tables import NONTARGET, TARGET, Axis, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids
from evenscore.tables.known_scores import KnownScores
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["HiddenPosterior", "ScoreModelNormalizer", "apply_shifts"]

Array = np.ndarray
_Sides = tuple[bool, bool]  # which of S_e and S_t there are


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenPosterior:
    """Posterior of a trial's hidden variables given its cohort scores.

    Examples
    --------
    >>> from evenscore import ScoreMatrix, ScoreModel, ScoreModelNormalizer
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> cohort = ScoreMatrix([[0.3, -0.2], [0.1, 0.4]], ["d1", "d2"], ["c1", "c2"])
    >>> posterior = ScoreModelNormalizer(model, cohort).posterior(enroll=[1.5, 0.9], test=[0.2, 0.1])
    >>> posterior.enroll.round(3), posterior.test.round(3)
    (array([0.739]), array([0.061]))
    """

    enroll: Float[Array, " d"]  #: mean of x~
    test: Float[Array, " d"]  #: mean of y~
    covariance: Float[Array, "p p"]  #: of (x~, y~)


class ScoreModelNormalizer:
    """A score model prepared for a cohort; turns raw scores into natural-log likelihood ratios.

    Parameters
    ----------
    model
        The trained score model.
    cohort
        Scores S_I of the cohort's enrolments against its tests; or `ScoreBlocks`, whose cohort is taken, with labels,
        speakers and one-sided cohorts; or None for no cohort at all (Gaussian calibration with the whole variance).
    labels
        Labels of ``cohort``; by default all pairs are non-targets. Pairs of unknown label are not used.
    enroll_speakers, test_speakers
        Speakers of the cohort's enrolments and tests. If the blocks to be normalized have speakers too, every row and
        column of the cohort that belongs to one of a trial's two speakers is left out of that trial's evidence.
    reading
        What is read off scores in place of log-likelihood ratios, such as `Residual`; None: those.

    Examples
    --------
    >>> import numpy as np
    >>> from evenscore import ScoreBlocks, ScoreMatrix, ScoreModel
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> cohort = ScoreMatrix([[0.3, -0.2], [0.1, 0.4]], ["d1", "d2"], ["c1", "c2"])
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0]], ["e"], ["t"]),
    ...     enroll=ScoreMatrix([[1.5, 0.9]], ["e"], ["c1", "c2"]),
    ...     test=ScoreMatrix([[0.2], [0.1]], ["d1", "d2"], ["t"]),
    ...     cohort=cohort,
    ... )
    >>> normalizer = ScoreModelNormalizer(model, cohort)
    >>> normalizer.normalize(blocks).scores.round(4)
    array([[0.6008]])
    >>> round(normalizer.normalize_one(3.0, [1.5, 0.9], [0.2, 0.1]), 4)
    0.6008
    """

    def __init__(
        self,
        model: ScoreModel,
        cohort: ScoreMatrix | ScoreBlocks | None = None,
        labels: Labels | None = None,
        *,
        enroll_speakers: Any = None,
        test_speakers: Any = None,
        reading: Reading | None = None,
    ) -> None:
        cohort = ScoreBlocks.of_cohort(cohort, labels, enroll_speakers=enroll_speakers, test_speakers=test_speakers)
        self.model, self.reading = model, reading
        self._cohort = Cohort.of(cohort)
        self._predictions: dict[_Sides, Prediction] = {}
        self._weights: dict[_Sides, ScoreWeights] = {}
        self._settled: dict[tuple[bool, bool, int, int], SettledOne] = {}

    @property
    def cohort_enroll_ids(self) -> Ids:
        """Ids of the cohort's enrolments, in the order of test-side cohort scores."""
        return self._cohort.enroll_ids

    @property
    def cohort_test_ids(self) -> Ids:
        """Ids of the cohort's tests, in the order of enrolment-side cohort scores."""
        return self._cohort.test_ids

    @refusing_singular
    def weights(self, *, enroll: bool = True, test: bool = True) -> ScoreWeights:
        """Return the weights of the cohort scores in the predicted scores; which sides have cohort scores."""
        sides = (enroll, test)
        if sides not in self._weights:
            self._weights[sides] = ScoreWeights.of(self.model, self.prediction(sides), self.reading)
        return self._weights[sides]

    @refusing_singular
    @one_thread_per_product()
    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of `blocks.trials`.

        The cohort of the blocks must be the one this normalizer was prepared for, or be left out of them.
        """
        enroll, test = self._cohort.align(blocks)
        if self.model.dim == 0:  # cohort scores change nothing, so that it does not matter whose they are
            return self._complete(blocks.trials, None, None)
        known = self._cohort.known(blocks)
        own = self._has_own_speakers(blocks)
        if not own and not has_missing(enroll) and not has_missing(test):
            if known == (None, None):
                return self._complete(blocks.trials, enroll, test)
            return self._complete_with_known(blocks.trials, enroll, test, known)
        trials = blocks.trials.to_trials()
        if own:
            llrs = score_without_own(self.model, self._cohort, blocks, trials, enroll, test, known, self.reading)
        else:
            llrs = score_without_missing(self.model, self._cohort, trials, enroll, test, known, self.reading)
        return blocks.trials.with_pairs(trials, llrs)

    def normalize_one(
        self,
        score: float,
        enroll: npt.ArrayLike | None = None,
        test: npt.ArrayLike | None = None,
        *,
        enroll_targets: npt.ArrayLike | None = None,
        test_targets: npt.ArrayLike | None = None,
        enroll_labels: npt.ArrayLike | None = None,
        test_labels: npt.ArrayLike | None = None,
    ) -> float:
        """Return the log-likelihood ratio of one trial, in microseconds.

        Parameters
        ----------
        score
            The trial's raw score.
        enroll
            Scores of the trial's enrolment against the cohort's tests, in the order of `cohort_test_ids`; None if
            there are none; NaN where one is missing.
        test
            Scores of the cohort's enrolments against the trial's test, in the order of `cohort_enroll_ids`.
        enroll_targets, test_targets
            Further scores of the enrolment against recordings that are known to be of its speaker (and of the test
            likewise), which are not in the cohort.
        enroll_labels, test_labels
            Labels of ``enroll`` and ``test``: 1 target, 0 non-target, -1 unknown (not used). By default all are
            non-targets.

        Examples
        --------
        >>> from evenscore import ScoreModel
        >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
        >>> normalizer = ScoreModelNormalizer(model)
        >>> [round(normalizer.normalize_one(2.5, enroll_targets=known), 3) for known in ([], [2.5, 2.2])]
        [0.889, 3.708]
        """
        e, t = _vector(enroll, len(self.cohort_test_ids), "enroll"), _vector(test, len(self.cohort_enroll_ids), "test")
        sides = (enroll is not None, test is not None)
        plain = enroll_labels is None and test_labels is None
        if plain and enroll_targets is None and test_targets is None and self.model.residuals is None:
            from evenscore.model.normalize_kernels import llr_one

            w = self.weights(enroll=sides[0], test=sides[1])
            found = llr_one(float(score), w.center, e, t, w.enroll, w.test, w.offset, w.half, w.constant)
            if not math.isnan(found):
                return float(found)
        targets = _vector(enroll_targets, None, "enroll_targets"), _vector(test_targets, None, "test_targets")
        if plain:
            found = self._one_with_targets(score, e, t, sides, targets)
            if not math.isnan(found):
                return float(found)
        labels = _vector(enroll_labels, len(e), "enroll_labels"), _vector(test_labels, len(t), "test_labels")
        return self._one_in_general(score, (e, t), sides, targets, labels)

    def posterior(self, enroll: npt.ArrayLike | None = None, test: npt.ArrayLike | None = None) -> HiddenPosterior:
        """Return the posterior of the hidden variables of a trial, given its (complete) cohort scores."""
        e, t = _vector(enroll, len(self.cohort_test_ids), "enroll"), _vector(test, len(self.cohort_enroll_ids), "test")
        prediction = self.prediction((enroll is not None, test is not None))
        center = self.model.mu[NONTARGET]
        mean = prediction.offset
        if enroll is not None:
            mean = mean + prediction.enroll @ (e - center)
        if test is not None:
            mean = mean + prediction.test @ (t - center)
        if np.isnan(mean).any():
            raise InputError("a cohort score is missing; the posterior is for complete cohort scores")
        dim = self.model.dim
        return HiddenPosterior(enroll=mean[:dim], test=mean[dim:], covariance=prediction.covariance)

    @refusing_singular
    def prediction(self, sides: _Sides) -> Prediction:
        """Return what the cohort says about a trial's hidden variables; which sides have cohort scores."""
        if sides not in self._predictions:
            self._predictions[sides] = predict(self.model, self._cohort.scores, self._cohort.key, sides)
        return self._predictions[sides]

    def _has_own_speakers(self, blocks: ScoreBlocks) -> bool:
        known = self._cohort.speakers
        sides = (blocks.enroll_speakers, blocks.test_speakers)
        return any(name in known for side in sides if side is not None for name in side)

    def _complete(
        self, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None
    ) -> ScoreMatrix | TrialList:
        w = self.weights(enroll=enroll is not None, test=test is not None)
        return apply_shifts(w, trials, *side_shifts(w, trials, enroll, test))

    def _complete_with_known(
        self, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None, known: Known
    ) -> ScoreMatrix | TrialList:
        (m, n), sides = trials.shape, (enroll is not None, test is not None)
        how = KnownTrials.of(self.model, known, (m, n), self.reading)
        weights = EffectWeights.of(self.model, self.prediction(sides), how.loading)
        rows = weights.enroll_effects(np.empty((m, 0)) if enroll is None else enroll.scores)
        columns = weights.test_effects(np.empty((0, n)) if test is None else test.scores)
        return how.normalized(trials, weights, rows, columns)

    def _one_with_targets(self, score: float, e: Array, t: Array, sides: _Sides, targets: tuple[Array, Array]) -> float:
        """Return the LLR of a trial with complete cohort scores and known targets outside of the cohort."""
        kind = (*sides, targets[0].size, targets[1].size)
        if kind not in self._settled:
            self._settled[kind] = settled_one(self.model, self.prediction(sides), *kind[2:])
        mu, center = self.model.mu, self.model.mu[NONTARGET]
        return self._settled[kind].llr(
            score, e - center, t - center, *(float((part - mu[TARGET]).sum()) for part in targets)
        )

    @refusing_singular
    def _one_in_general(
        self, score: float, both: tuple[Array, Array], sides: _Sides, targets: tuple[Array, Array], labels: Any
    ) -> float:
        """Return the LLR of a trial with any cohort scores: missing, labelled, and with others beside them."""
        trial = TrialList(["e"], ["t"], [0], [0], scores=[score])
        members = Axis(self.cohort_test_ids), Axis(self.cohort_enroll_ids)
        known, left = [], []
        for axis, side, scores, more, label in zip(
            (trial.enroll_axis, trial.test_axis), members, both, targets, labels, strict=True
        ):
            label = label if label.size else np.zeros(len(scores))
            linked = np.flatnonzero((label == TARGET) & ~np.isnan(scores))
            known.append(KnownScores.of_one(axis, side, linked, np.concatenate([scores[linked], more])))
            left.append(np.where(label == NONTARGET, scores, np.nan))
        e = ScoreMatrix(left[0][None, :], ["e"], members[0], missing="nan") if sides[0] else None
        t = ScoreMatrix(left[1][:, None], members[1], ["t"], missing="nan") if sides[1] else None
        return float(score_without_missing(self.model, self._cohort, trial, e, t, (known[0], known[1]))[0])


def apply_shifts(weights: ScoreWeights, trials: Any, rows: Float[Array, "m 2"], columns: Float[Array, "n 2"]) -> Any:
    """Return the log-likelihood ratios of trials, from the two sides' parts of their predicted scores."""
    if trials.scores is None:
        raise InputError("the trials have no scores")
    scores = np.ascontiguousarray(trials.scores)
    sound = np.zeros(len(scores), dtype=bool)
    out = llrs_of_sums(weights, scores, rows, columns.T, trials if trials.listed else None, sound=sound)
    return trials.rescored(out) if sound.all() else trials.with_scores(out)  # which refuses what is no score


def _vector(scores: npt.ArrayLike | None, size: int | None, what: str) -> npt.NDArray[Any]:
    if scores is None:
        return np.empty(0)
    vector = np.asarray(scores, dtype=np.float64)
    if vector.shape != (vector.size if size is None else size,):
        raise InputError(f"{what} has shape {vector.shape}, but the cohort has {size} members")
    return vector
