"""Scoring with the cohort-evidence model, the norm ``evidence``: blocks of scores in, log-likelihood ratios out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.evidence.features import evidence_features, pattern_of, restricted, with_cohort_speakers
from evenscore.evidence.fit import train_evidence
from evenscore.evidence.head import EvidenceHead
from evenscore.evidence.model import CohortEvidence
from evenscore.evidence.pair_space import PairSpace, pair_space, pair_space_of_vectors
from evenscore.evidence.parts import EvidenceParts
from evenscore.evidence.simple import CalibratedParts, simple_features, simple_parts
from evenscore.evidence.takes import cohort_takes
from evenscore.model.partial_cohorts import has_missing
from evenscore.norms.by_trial import one_trial, row_of
from evenscore.norms.fitting import FittedNorm, ModelNorm, prepare_model
from evenscore.norms.one_by_one import OneByOne
from evenscore.norms.parts import Pass, side_parts, speakers_meet
from evenscore.norms.registry import refuse_unknown_options
from evenscore.norms.score_model import cohort_weights
from evenscore.progress import Progress, silent
from evenscore.sources.bilinear import Products
from evenscore.tables import LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.ids import IdsLike
from evenscore.tables.tile import spans
from evenscore.threads import one_thread_per_product

__all__ = ["EvidenceNormalizer", "fit_evidence_norm", "prepare_evidence"]

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
        self._cohort = None if cohort is None else with_cohort_speakers(cohort)
        self._parts: dict[tuple[str, tuple[float, float]], EvidenceParts] = {}
        self._singles: dict[tuple[int, ...], OneByOne] = {}  # by the sizes of the two cohorts, -1 for none

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of ``blocks.trials``."""
        with one_thread_per_product():
            return self._normalized(blocks)

    def _normalized(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        pattern, head, blocks = self._prepared(blocks)
        trials = blocks.trials
        assert trials.scores is not None  # noqa: S101
        if head.simple is not None:
            return trials.with_scores(head.llr(self._features(blocks, pattern)).astype(trials.scores.dtype))
        missing = pattern == "full" and (has_missing(blocks.enroll) or has_missing(blocks.test))
        if not missing and not speakers_meet(blocks, ("cohort",)):
            parts = self._parts_of(blocks, pattern)
            return parts.apply(trials, *side_parts(parts, blocks, Pass()))
        out = np.empty(trials.scores.shape, dtype=trials.scores.dtype)
        for at, part in _pieces(blocks):
            out[at] = head.llr(self._features(part, pattern))
        return trials.with_scores(out)

    def parts(self, blocks: ScoreBlocks, how: Any = None) -> EvidenceParts | CalibratedParts | None:
        """Return the model prepared for the cohort and the sides of these blocks; None where own speakers are in it."""
        pattern, head, cohort = self._prepared(_without_trials(blocks))
        if head.simple not in (None, "raw"):
            return simple_parts(head.simple, head, restricted(blocks, pattern), how)
        if head.simple is None and speakers_meet(blocks, ("cohort",)):
            return None
        return replace(self._parts_of(cohort, pattern), endless=how is not None and how.endless)

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
        axes = (None, None) if cohort is None else (cohort.cohort_test_axis, cohort.cohort_enroll_axis)
        members, given = {"enroll": axes[0], "test": axes[1]}, {"enroll": enroll, "test": test}
        rows = {side: None if row is None else row_of(row, side, members[side]) for side, row in given.items()}
        known: dict[str, Any] = {}
        if cohort is not None and enroll is not None and test is not None:
            known = {"cohort": cohort.cohort, "cohort_labels": cohort.cohort_labels}
        speakers = {"enroll": enroll_speaker, "test": test_speaker}

        def blocks() -> ScoreBlocks:
            return one_trial(score, rows, members, speakers, **known)

        if enroll_speaker is None and test_speaker is None:
            sizes = tuple(-1 if row is None else len(row) for row in rows.values())
            singles = self._singles.get(sizes) or self._singles.setdefault(sizes, OneByOne.of(self, blocks()))
            e, t = (np.empty(0) if row is None else row for row in rows.values())
            found = singles.meet(float(score), singles.enroll(e), singles.test(t))
            if np.isfinite(found):
                return found
        return float(self.normalize(blocks()).tile.scores[0, 0])

    def features(self, blocks: ScoreBlocks) -> dict[str, npt.NDArray[np.float64]]:
        """Return the features of all trials that the head for these blocks uses, and the raw score."""
        blocks = self._with_cohort(blocks)
        pattern, head = self.model.head_for(pattern_of(blocks))
        found = self._features(restricted(blocks, pattern), pattern)
        return {name: found[name] for name in dict.fromkeys(("raw", *head.views, *head.extras))}

    def _features(self, blocks: ScoreBlocks, pattern: str) -> dict[str, npt.NDArray[np.float64]]:
        model, simple = self.model, self.model.heads[pattern].simple
        if simple is not None:
            return simple_features(simple, blocks)
        return evidence_features(blocks, pattern, model.score_model, model.scales, model.ridges)

    def _parts_of(self, blocks: ScoreBlocks, pattern: str) -> EvidenceParts:
        """Return the model prepared for a cohort; that of this normalizer is prepared once."""
        takes = cohort_takes(blocks, "enroll"), cohort_takes(blocks, "test")
        if (pattern, takes) in self._parts:
            return self._parts[pattern, takes]
        head, weights, space = self.model.heads[pattern], None, None
        if pattern == "full":
            if "score_model" in head.views:
                weights = cohort_weights(self.model.score_model, blocks, Pass())
            if {"b", "w"} & set(head.extras):
                space = _space(blocks, self.model.ridges.rank)
        parts = EvidenceParts.of(self.model, pattern, takes, weights, space)
        own = self._cohort is not None and self._cohort.cohort is not None
        if pattern != "full" or own:
            self._parts[pattern, takes] = parts
        return parts

    def _prepared(self, blocks: ScoreBlocks) -> tuple[str, EvidenceHead, ScoreBlocks]:
        """Return the pattern and the head for these blocks, and what of the blocks they use."""
        blocks = self._with_cohort(blocks)
        pattern, head = self.model.head_for(pattern_of(blocks))
        return pattern, head, blocks if pattern == "full" else restricted(blocks, pattern)

    def with_cohort(self, blocks: ScoreBlocks) -> ScoreBlocks:
        """Return the blocks with the cohort that this was prepared for, where they have none."""
        own = self._cohort
        if own is None or own.cohort is None or blocks.cohort is not None:
            return blocks
        if blocks.enroll is None or blocks.test is None:
            return blocks
        return blocks.replace(cohort=own.cohort, cohort_labels=own.cohort_labels)

    def _with_cohort(self, blocks: ScoreBlocks) -> ScoreBlocks:
        own = None if self._cohort is None else self._cohort.cohort
        if own is not None and blocks.cohort is None:
            return self.with_cohort(blocks)
        if own is not None and blocks.cohort.scores is not own.scores and blocks.cohort != own:
            raise InputError("the cohort scores of the blocks are not those the normalizer was prepared for")
        return with_cohort_speakers(blocks)


def _space(blocks: ScoreBlocks, rank: int) -> PairSpace:
    """Return the coordinates that the whole cohort gives."""
    cohort, speakers = blocks.cohort, blocks.cohort_test_speakers
    if not _of_vectors(cohort):
        return pair_space(cohort.scores, speakers, rank)
    return pair_space_of_vectors(cohort.source.scores.with_axes(cohort.enroll_axis, cohort.test_axis), speakers, rank)


def _of_vectors(cohort: ScoreTable) -> bool:
    """Tell whether cohort scores are products of embeddings that serve both sides, so that they need not be formed."""
    return isinstance(cohort.source, Products) and cohort.enroll_axis.same(cohort.test_axis)


def _pieces(blocks: ScoreBlocks) -> Iterator[tuple[Any, ScoreBlocks]]:
    """Split the trials into parts whose features fit into memory."""
    trials = blocks.trials
    step = max(1, _TRIALS // (1 if trials.listed else max(trials.shape[1], 1)))
    for at in spans(len(trials.tile.scores), step):
        part = (
            trials.select(np.arange(at.start, at.stop)) if trials.listed else trials.take(np.arange(at.start, at.stop))
        )
        yield at, blocks.replace(trials=part)


def _without_trials(blocks: ScoreBlocks) -> ScoreBlocks:
    """Return the cohort of blocks, with its labels and speakers, and no trials; in memory if need be."""
    rows, columns, cohort = blocks.cohort_enroll_axis, blocks.cohort_test_axis, blocks.cohort
    if cohort is not None and not _of_vectors(cohort):
        cohort = cohort.in_memory()
    return ScoreBlocks(
        ScoreMatrix(np.empty((0, 0)), [], []),
        enroll=None if blocks.enroll is None else ScoreMatrix(np.empty((0, len(columns))), [], columns),  # type: ignore[arg-type]
        test=None if blocks.test is None else ScoreMatrix(np.empty((len(rows), 0)), rows, []),  # type: ignore[arg-type]
        cohort=cohort,
        cohort_labels=blocks.cohort_labels,
    )


def prepare_evidence(method: str, **options: Any) -> Any:
    """Return the cohort-evidence model as a norm, see `prepare_model`."""
    return prepare_model(method, CohortEvidence, EvidenceNormalizer, **options)


def fit_evidence_norm(
    method: str, training: Sequence[LabelledBlocks], *, client: Any = None, progress: Progress = silent, **options: Any
) -> FittedNorm:
    """Train the cohort-evidence model; ``options`` are those of `fit_evidence`."""
    if not all(part.is_in_memory for part in training):
        raise InputError("it is trained on scores in memory, but the training side is too large; give a smaller one")
    refuse_unknown_options(method, train_evidence, options)
    fit = train_evidence(training, progress=progress, **options)
    return FittedNorm(
        method=method,
        normalizer=ModelNorm(fit.model, EvidenceNormalizer),
        training_scores=fit.scores,  # of heads that have not met the trials' speakers
        model=fit.model,
        is_llr=True,
        notes=tuple(fit.model.report.lines()),
    )
