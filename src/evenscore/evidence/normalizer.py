"""Scoring with the cohort-evidence model: four blocks of scores in, log-likelihood ratios out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.evidence.features import evidence_features, pattern_of, restricted, views_of_one
from evenscore.evidence.head import EvidenceHead
from evenscore.evidence.matrices import llr_matrix_of
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.own_pairs import cohort_space, meets_cohort
from evenscore.evidence.pair_space import PairSpace, impostor_prediction, within_speaker_part
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.model.partial_cohorts import has_missing
from evenscore.tables import Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import IdsLike

__all__ = ["EvidenceNormalizer"]

_TRIALS = 1 << 21  # whose features are kept at a time


class EvidenceNormalizer:
    """A cohort-evidence model prepared for a cohort; turns raw scores into natural-log likelihood ratios.

    Parameters
    ----------
    model
        The trained model.
    cohort
        Scores S_I of the cohort's enrolments against its tests; or `ScoreBlocks`, whose cohort is taken.
    labels, enroll_speakers, test_speakers
        Of a cohort that is given as a score matrix. A trial's own speakers are left out of its cohort.

    Examples
    --------
    >>> from evenscore import LabelledBlocks, ScoreModel, fit_evidence, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 12}" for n in range(36)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers[:12], speakers, seed=1))
    >>> normalizer = EvidenceNormalizer(fit_evidence([dev]), dev.blocks)
    >>> enroll, test = dev.blocks.cohort.scores[0], dev.blocks.cohort.scores[:, 1]
    >>> low, high = (normalizer.normalize_one(score, enroll, test) for score in (0.0, 5.0))
    >>> low < 0 < high
    True
    """

    def __init__(
        self,
        model: CohortEvidence,
        cohort: ScoreMatrix | ScoreBlocks | None = None,
        labels: Labels | None = None,
        *,
        enroll_speakers: IdsLike | None = None,
        test_speakers: IdsLike | None = None,
    ) -> None:
        cohort = ScoreBlocks.of_cohort(cohort, labels, enroll_speakers=enroll_speakers, test_speakers=test_speakers)
        self.model = model
        self._cohort = cohort
        self._score_model: ScoreModelNormalizer | None = None
        self._space: PairSpace | None = None

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        blocks = self._with_cohort(blocks)
        pattern, head = self.model.head_for(pattern_of(blocks))
        blocks = restricted(blocks, pattern)
        trials = blocks.trials
        assert trials.scores is not None  # noqa: S101
        partial = meets_cohort(blocks) or has_missing(blocks.enroll) or has_missing(blocks.test)
        if isinstance(trials, ScoreMatrix) and not partial:
            return trials.with_scores(self._whole(blocks, pattern, head))
        out = np.empty(trials.scores.shape, dtype=trials.scores.dtype)
        for at, part in _pieces(blocks):
            out[at] = head.llr(self._features(part, pattern))
        return trials.with_scores(out)

    def normalize_one(
        self,
        score: float,
        enroll: npt.ArrayLike | None = None,
        test: npt.ArrayLike | None = None,
        *,
        enroll_speaker: str | None = None,
        test_speaker: str | None = None,
    ) -> float:
        """Return the log-likelihood ratio of one trial.

        Parameters
        ----------
        score
            The trial's raw score.
        enroll, test
            Scores of its enrolment against the cohort's tests, and of the cohort's enrolments against its test, in the
            order of the cohort; None if there are none, NaN where one is missing.
        enroll_speaker, test_speaker
            The trial's speakers, to be left out of the cohort.
        """
        cohort = self._cohort
        if enroll_speaker is None and test_speaker is None and self._space is not None:
            found = self._quick(float(score), enroll, test)
            if found is not None:
                return found
        rows = _vector(enroll, None if cohort is None else cohort.cohort_test_ids, "enroll")
        columns = _vector(test, None if cohort is None else cohort.cohort_enroll_ids, "test")
        has_cohort = cohort is not None and rows is not None and columns is not None
        blocks = ScoreBlocks(
            ScoreMatrix([[float(score)]], ["enrolment"], ["test"]),
            enroll=None if rows is None else ScoreMatrix(rows[0][None, :], ["enrolment"], rows[1], missing="nan"),
            test=None if columns is None else ScoreMatrix(columns[0][:, None], columns[1], ["test"], missing="nan"),
            cohort=cohort.cohort if has_cohort and cohort is not None else None,
            cohort_labels=cohort.cohort_labels if has_cohort and cohort is not None else None,
            enroll_speakers=None if enroll_speaker is None else [enroll_speaker],
            test_speakers=None if test_speaker is None else [test_speaker],
            cohort_enroll_speakers=None if cohort is None or columns is None else cohort.cohort_enroll_speakers,
            cohort_test_speakers=None if cohort is None or rows is None else cohort.cohort_test_speakers,
        )
        llrs = self.normalize(blocks).scores
        assert llrs is not None  # noqa: S101
        return float(llrs[0, 0])

    def _quick(self, score: float, enroll: npt.ArrayLike | None, test: npt.ArrayLike | None) -> float | None:
        """Return the log-likelihood ratio of a trial with complete cohort scores on both sides, else None."""
        space, prepared = self._space, self._score_model
        sides = {"enroll": enroll, "test": test}
        if space is None or prepared is None or enroll is None or test is None or "full" not in self.model.heads:
            return None
        vectors = {side: np.asarray(values, dtype=np.float64) for side, values in sides.items()}
        lengths = (len(space.enroll_map), len(space.test_map))
        if tuple(vector.shape for vector in vectors.values()) != tuple((length,) for length in lengths):
            return None
        if not all(np.isfinite(vector).all() for vector in vectors.values()):
            return None
        features = views_of_one(score, vectors, self.model.scales)
        features["score_model"] = np.array([prepared.normalize_one(score, vectors["enroll"], vectors["test"])])
        x, y = space.enroll(vectors["enroll"][None]), space.test(vectors["test"][None])
        ridges = self.model.ridges
        features["b"] = impostor_prediction(space, x, y, ridges.impostor)[0]
        features["w"] = within_speaker_part(space, x, y, ridges.within)[0]
        return float(self.model.heads["full"].llr(features)[0])

    def features(self, blocks: ScoreBlocks) -> dict[str, npt.NDArray[np.float64]]:
        """Return the features of all trials that the head for these blocks uses, and the raw score."""
        blocks = self._with_cohort(blocks)
        pattern, head = self.model.head_for(pattern_of(blocks))
        found = self._features(restricted(blocks, pattern), pattern)
        return {name: found[name] for name in dict.fromkeys(("raw", *head.views, *head.extras))}

    def _features(self, blocks: ScoreBlocks, pattern: str) -> dict[str, npt.NDArray[np.float64]]:
        model = self.model
        return evidence_features(blocks, pattern, model.score_model, model.scales, model.ridges)

    def _whole(self, blocks: ScoreBlocks, pattern: str, head: EvidenceHead) -> npt.NDArray[Any]:
        weights = space = None
        if pattern == "full":
            weights = self._prepared(blocks).weights()
            if {"b", "w"} & set(head.extras):
                if self._space is None:
                    self._space = cohort_space(blocks, self.model.ridges.rank)
                space = self._space
        return llr_matrix_of(self.model, head, blocks, weights, space)

    def _prepared(self, blocks: ScoreBlocks) -> ScoreModelNormalizer:
        if self._score_model is None:
            self._score_model = ScoreModelNormalizer(self.model.score_model, blocks)
        return self._score_model

    def _with_cohort(self, blocks: ScoreBlocks) -> ScoreBlocks:
        """Return the blocks with the cohort that this was prepared for, where they have none."""
        own = self._cohort
        if own is None or own.cohort is None or blocks.cohort is not None:
            if own is not None and own.cohort is not None and blocks.cohort is not own.cohort:
                return self._checked(blocks, own)
            return blocks
        if blocks.enroll is None or blocks.test is None:
            return blocks
        return ScoreBlocks(
            blocks.trials,
            enroll=blocks.enroll,
            test=blocks.test,
            cohort=own.cohort,
            cohort_labels=own.cohort_labels,
            enroll_speakers=blocks.enroll_speakers,
            test_speakers=blocks.test_speakers,
            cohort_enroll_speakers=own.cohort_enroll_speakers,
            cohort_test_speakers=own.cohort_test_speakers,
        )

    def _checked(self, blocks: ScoreBlocks, own: ScoreBlocks) -> ScoreBlocks:
        if blocks.cohort != own.cohort:
            raise InputError("the cohort scores of the blocks are not those the normalizer was prepared for")
        return blocks


def _vector(
    scores: npt.ArrayLike | None, ids: npt.NDArray[Any] | None, what: str
) -> tuple[npt.NDArray[np.float64], Any] | None:
    if scores is None:
        return None
    vector = np.asarray(scores, dtype=np.float64)
    size = len(vector) if ids is None else len(ids)
    if vector.shape != (size,):
        raise InputError(f"{what} has shape {vector.shape}, but the cohort has {size} members")
    return vector, [str(at) for at in range(size)] if ids is None else ids


def _pieces(blocks: ScoreBlocks) -> Iterator[tuple[Any, ScoreBlocks]]:
    """Split the trials into parts whose features fit into memory."""
    trials = blocks.trials
    assert trials.scores is not None  # noqa: S101
    if trials.scores.size <= _TRIALS:
        yield slice(None), blocks
        return
    if isinstance(trials, ScoreMatrix):
        step = max(1, _TRIALS // trials.shape[1])
        parts: list[Any] = [slice(at, at + step) for at in range(0, trials.shape[0], step)]
        chosen: list[Any] = [trials.take(rows=np.arange(trials.shape[0])[part]) for part in parts]
    else:
        parts = [slice(at, at + _TRIALS) for at in range(0, len(trials), _TRIALS)]
        chosen = [trials.select(np.arange(len(trials))[part]) for part in parts]
    for part, some in zip(parts, chosen, strict=True):
        yield part, _with_trials(blocks, some)


def _with_trials(blocks: ScoreBlocks, trials: Any) -> ScoreBlocks:
    def speakers(names: npt.NDArray[Any] | None, ids: npt.NDArray[Any]) -> dict[str, Any] | None:
        return None if names is None else dict(zip(ids.tolist(), names.tolist(), strict=True))

    enroll, test = blocks.enroll, blocks.test
    return ScoreBlocks(
        trials,
        enroll=None if enroll is None else enroll.select(trials.enroll_ids),
        test=None if test is None else test.select(None, trials.test_ids),
        cohort=blocks.cohort,
        cohort_labels=blocks.cohort_labels,
        enroll_speakers=speakers(blocks.enroll_speakers, blocks.trials.enroll_ids),
        test_speakers=speakers(blocks.test_speakers, blocks.trials.test_ids),
        cohort_enroll_speakers=blocks.cohort_enroll_speakers,
        cohort_test_speakers=blocks.cohort_test_speakers,
    )
