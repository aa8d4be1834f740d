"""The score model as one of the norms, under the name ``lgsm``, whole and by parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.bilinear_sums import cohort_sums
from evenscore.model.known_scores import EffectWeights, KnownTrials, PlainTrials, trials_with
from evenscore.model.normalizer import ScoreModelNormalizer, apply_shifts
from evenscore.model.own_speakers import SpeakerSums, TrialSums, group_columns
from evenscore.model.parameters import ScoreModel
from evenscore.model.partial_cohorts import knows_only_own, score_by_sums
from evenscore.model.patterns import Exceptions, LabelledSums, SpeakerBlocks
from evenscore.model.precision import refusing_singular
from evenscore.model.prediction import Prediction, predict_from_sums
from evenscore.model.score_weights import Reading, ScoreWeights, enroll_shifts, test_shifts
from evenscore.model.sums import ClassSums
from evenscore.model.table_sums import sum_cohort
from evenscore.norms.conditions import coded
from evenscore.norms.fitting import FittedNorm, ModelNorm, fitted_model, prepare_model, training_data
from evenscore.norms.parts import Part, Parts, Pass, speakers_meet, table_fits
from evenscore.norms.registry import refuse_unknown_options
from evenscore.progress import Progress, silent
from evenscore.sources.bilinear import Products
from evenscore.tables import LabelledBlocks, Place, ScoreBlocks, ScoreTable
from evenscore.tables.arrays import in_type
from evenscore.tables.axis import Axis
from evenscore.tables.score_table import Source

__all__ = [
    "KnownScoreModelParts",
    "OwnScoreModelParts",
    "PreparedScoreModel",
    "ScoreModelParts",
    "checked_residuals",
    "cohort_weights",
    "fit_score_model_norm",
    "prepare_score_model",
]

RESIDUALS = ("sinh-arcsinh", "gaussian")  #: densities of what the score model does not predict
_PIECE = 1 << 20  # scores that are worked on at once
_MOST_SPEAKERS = 5000  # in the cohort: the sums of pairs of them take 200 MB


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnScoreModelParts:
    """The score model; an element's numbers are its speaker's number in the cohort (-1: none), and its sums by speaker.

    It holds for a complete cohort whose targets are its same-speaker pairs.
    """

    model: ScoreModel
    cohort: SpeakerSums
    blocks: SpeakerBlocks  #: the cohort's speakers, numbered
    own: dict[str, npt.NDArray[np.intp]]  #: the number of each enrolment's and each test's speaker
    sides: tuple[bool, bool]  #: which cohort scores there are
    known: PlainTrials | KnownTrials

    @classmethod
    def of(
        cls, model: ScoreModel, blocks: ScoreBlocks, how: Pass, reading: Reading | None = None
    ) -> OwnScoreModelParts | None:
        """Sum the cohort's scores by speaker; None if it is not such a cohort, or if tables would be too large."""
        found = _speaker_blocks(blocks)
        if found is None:
            return None
        cohort, names = found
        fits = cohort.n_speakers <= _MOST_SPEAKERS and table_fits(blocks, 1 + cohort.n_speakers)
        between = _between(blocks, cohort, float(model.mu[0]), how) if fits else np.full((1, 1), np.nan)
        if np.isnan(between).any():
            return None
        own = {}
        for side, axis in (("enroll", blocks.trials.enroll_axis), ("test", blocks.trials.test_axis)):
            own[side] = coded(axis.speakers, names, len(axis))
        members = {"enroll": cohort.column_codes, "test": cohort.row_codes}
        known = {"enroll": blocks.enroll_known, "test": blocks.test_known}
        if not all(knows_only_own(known[side], own[side], members[side]) for side in known):
            return None
        outside = tuple(None if part is None else part.outside() for part in known.values())
        return cls(
            model=model,
            cohort=SpeakerSums(between=between, shapes=cohort.shapes),
            blocks=cohort,
            own=own,
            sides=(blocks.enroll is not None, blocks.test is not None),
            known=trials_with(model, outside, blocks.trials.shape, reading),  # type: ignore[arg-type]
        )

    sides_alike = False

    @property
    def width(self) -> int:
        """How many numbers an element has."""
        return self._first + self.blocks.n_speakers

    @property
    def _first(self) -> int:
        """Where the sums begin: behind the speaker's number, and what is known beside the cohort's scores."""
        return 1 if isinstance(self.known, PlainTrials) else 5

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the numbers of some enrolments."""
        return self._part("enroll", scores, rows, self.blocks.column_codes, self.sides[0])

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the numbers of some tests."""
        return self._part("test", scores.T, columns, self.blocks.row_codes, self.sides[1])

    def _part(self, side: str, scores: npt.NDArray[Any], at: slice, codes: npt.NDArray[np.intp], there: bool) -> Part:
        own = self.own[side][at]
        part = np.zeros((len(own), self.width))
        part[:, 0] = own
        if isinstance(self.known, KnownTrials):
            part[:, 1:5] = getattr(self.known, side)[at]
        if there:
            center = float(self.model.mu[0])
            if np.isnan(scores.sum()):  # scores of the element's own speaker may lack, as they are not used
                scores = np.where(np.isnan(scores) & (own[:, None] == codes), center, scores)
            part[:, self._first :] = group_columns(scores, codes, self.blocks.n_speakers, center)
        return part

    @refusing_singular
    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials."""
        first, known = self._first, self.known
        sums = TrialSums(
            enroll=np.ascontiguousarray(enroll[:, first:]) if self.sides[0] else None,
            test=np.ascontiguousarray(test[:, first:]) if self.sides[1] else None,
            enroll_group=enroll[:, 0].astype(np.intp),
            test_group=test[:, 0].astype(np.intp),
        )
        if isinstance(known, KnownTrials):
            known = replace(known, enroll=enroll[:, 1:5], test=test[:, 1:5])
        if trials.listed:
            scores = np.asarray(trials.scores)
            pairs = trials.enroll_index, trials.test_index
            return trials.with_scores(in_type(score_by_sums(known, self.cohort, sums, *pairs, scores), scores.dtype))
        out = np.empty_like(trials.scores)
        n_columns = trials.shape[1]
        step = max(1, _PIECE // max(n_columns, 1))
        for start in range(0, trials.shape[0], step):
            part = trials.scores[start : start + step]
            rows, columns = (
                np.repeat(np.arange(start, start + len(part)), n_columns),
                np.tile(np.arange(n_columns), len(part)),
            )
            found = score_by_sums(known, self.cohort, sums, rows, columns, part.reshape(-1))
            out[start : start + step] = in_type(found.reshape(part.shape), out.dtype)
        return trials.with_scores(out)  # which refuses what is no score


def _speaker_blocks(blocks: ScoreBlocks) -> tuple[SpeakerBlocks, dict[str, int]] | None:
    """Return the cohort as blocks of speakers and the speakers' numbers, if its labels are those of its speakers."""
    labels = blocks.cohort_labels
    rows, columns = blocks.cohort_enroll_speakers, blocks.cohort_test_speakers
    if labels is None or rows is None or columns is None or not labels.by_speaker or labels.n_unknown:
        return None
    assert labels.enroll_speakers is not None and labels.test_speakers is not None  # noqa: S101, PT018
    if not (np.array_equal(labels.enroll_speakers, rows) and np.array_equal(labels.test_speakers, columns)):
        return None
    row_codes, column_codes, number = labels.speaker_codes
    names = {
        **dict(zip(rows.tolist(), row_codes.tolist(), strict=True)),
        **dict(zip(columns.tolist(), column_codes.tolist(), strict=True)),
    }
    return SpeakerBlocks(row_codes=row_codes, column_codes=column_codes, n_speakers=number), names


@dataclass(frozen=True, eq=False)
class _Cohort:
    source: Source
    column_codes: npt.NDArray[np.intp]
    number: int
    center: float


def _between(blocks: ScoreBlocks, cohort: SpeakerBlocks, center: float, how: Pass) -> npt.NDArray[np.float64]:
    """Return the sums of the cohort's scores by pairs of speakers, in one pass; NaN where a score is missing."""
    assert blocks.cohort is not None  # noqa: S101  (there are labels of it)
    between = np.zeros((cohort.n_speakers, cohort.n_speakers))
    task = _Cohort(blocks.cohort.source, cohort.column_codes, cohort.n_speakers, center)
    parts: dict[int, tuple[Place, npt.NDArray[np.float64]]] = {}
    awaited = 0
    places = blocks.cohort.layout.whole_rows()
    found = how.engine.map(_sum_rows, task, places, stage="cohort against itself", progress=how.progress)
    for place, part in found:
        parts[place.number] = (place, part)
        while awaited in parts:  # added in order, so that sums do not depend on who is quicker
            ready, sums = parts.pop(awaited)
            np.add.at(between, cohort.row_codes[ready.rows], sums)
            awaited += 1
    return between


def _sum_rows(task: _Cohort, place: Place) -> npt.NDArray[np.float64]:
    return group_columns(task.source.read(place).scores, task.column_codes, task.number, task.center)


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreModelParts:
    """The score model; the numbers are each side's part of the predicted score of either class."""

    width = 2
    sides_alike = False

    weights: ScoreWeights

    def from_vectors(self, side: str, table: ScoreTable) -> Part | None:
        """Fold the cohort into one vector per class, (B3): two dot products for each element, whatever its size."""
        source = table.source
        if not isinstance(source, Products) or source.own is not None:
            return None
        weights, scores = self.weights, source.scores
        if side == "enroll":
            sums = scores.weighted_rows(weights.enroll) + weights.offset[:, None]
            return (sums - weights.center * weights.enroll.sum(axis=1)[:, None]).T
        return (scores.weighted_columns(weights.test) - weights.center * weights.test.sum(axis=1)[:, None]).T

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the enrolments' part of the predicted scores."""
        return _nan_where_missing(enroll_shifts(self.weights, scores), scores, axis=1)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the tests' part of the predicted scores."""
        return _nan_where_missing(test_shifts(self.weights, scores), scores, axis=0)

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials."""
        return apply_shifts(self.weights, trials, enroll, test)

    def meet(self, score: float, enroll: Part, test: Part) -> float:
        """Return the log-likelihood ratio of a single trial, from the numbers of its two sides."""
        weights = self.weights
        if weights.reading is not None:
            return float(weights.reading.of_trials(np.array([score]), (enroll + test)[None], weights.variance)[0])
        (e0, e1), (t0, t1), (half0, half1) = enroll.tolist(), test.tolist(), weights.half.tolist()
        return float(weights.constant + half0 * (score - e0 - t0) ** 2 - half1 * (score - e1 - t1) ** 2)


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownScoreModelParts:
    """The score model, where some scores are known beside the cohort's.

    The numbers are each side's part of the four effects, and what is known of it.
    """

    width = 8
    sides_alike = False

    weights: EffectWeights
    known: KnownTrials

    def enroll_part(self, scores: npt.NDArray[Any], rows: slice) -> Part:
        """Return the enrolments' part of the effects, and what is known of them."""
        part = _nan_where_missing(self.weights.enroll_effects(scores), scores, axis=1)
        return np.concatenate([part, self.known.enroll[rows]], axis=1)

    def test_part(self, scores: npt.NDArray[Any], columns: slice) -> Part:
        """Return the tests' part of the effects, and what is known of them."""
        part = _nan_where_missing(self.weights.test_effects(scores), scores, axis=0)
        return np.concatenate([part, self.known.test[columns]], axis=1)

    def apply(self, trials: Any, enroll: Part, test: Part) -> Any:
        """Return the log-likelihood ratios of the trials."""
        known = replace(self.known, enroll=enroll[:, 4:], test=test[:, 4:])
        return known.normalized(trials, self.weights, enroll[:, :4], test[:, :4])


def _nan_where_missing(part: Part, scores: npt.NDArray[Any], axis: int) -> Part:
    if not np.isnan(scores.sum()):
        return part
    return np.where(np.isnan(scores).any(axis=axis)[:, None], np.nan, part)


def cohort_weights(model: ScoreModel, blocks: ScoreBlocks, how: Pass) -> ScoreWeights:
    """Condition a score model on the cohort of blocks, from sums of its scores."""
    return ScoreWeights.of(model, _cohort_prediction(model, blocks, how))


def _cohort_prediction(model: ScoreModel, blocks: ScoreBlocks, how: Pass) -> Prediction:
    sides = blocks.enroll is not None, blocks.test is not None
    return predict_from_sums(model, _cohort_sums(blocks, how), sides)


def _prepared_prediction(normalizer: ScoreModelNormalizer, blocks: ScoreBlocks) -> Prediction:
    """Return what a cohort that is in memory predicts, in the order of the blocks' cohort scores."""
    prediction = normalizer.prediction((blocks.enroll is not None, blocks.test is not None))
    changed = {}
    for side, block, ids in (("enroll", blocks.enroll, "test_ids"), ("test", blocks.test, "enroll_ids")):
        if block is not None:
            known = Axis(getattr(normalizer, f"cohort_{ids}"))
            at = known.positions(getattr(block, ids), "cohort member", "the cohort of this normalizer")
            changed[side] = getattr(prediction, side)[:, at]
    return replace(prediction, **changed)


def _cohort_sums(blocks: ScoreBlocks, how: Pass) -> LabelledSums:
    cohort, labels = blocks.cohort, blocks.cohort_labels
    if cohort is not None and labels is not None and min(cohort.shape):
        if isinstance(cohort.source, Products) and labels.by_speaker and not labels.n_unknown:
            return cohort_sums(cohort.source.scores.with_axes(cohort.enroll_axis, cohort.test_axis), labels)
        return sum_cohort(cohort, labels, client=how.client, progress=how.progress)
    n, m = (0 if ids is None else len(ids) for ids in (blocks.cohort_enroll_ids, blocks.cohort_test_ids))
    row, column = np.zeros((2, n)), np.zeros((2, m))
    sums = ClassSums(center=0.0, rows=row, columns=column, squares=np.zeros(2), row_counts=row, column_counts=column)
    if not min(n, m):  # one of the cohorts, or both, has no members, so no pair is missing
        speakers = SpeakerBlocks(row_codes=np.arange(n), column_codes=np.arange(m), n_speakers=max(n, m))
        return LabelledSums(sums=sums, pattern=speakers)
    no, label = np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int8)
    pattern = Exceptions(n_rows=n, n_columns=m, background=False, rows=no, columns=no, labels=label)
    return LabelledSums(sums=sums, pattern=pattern)


class PreparedScoreModel(ScoreModelNormalizer):
    """A score model prepared for a cohort, or for none, that can be taken apart."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Which cohort scores change anything; none without hidden variables."""
        return ("enroll", "test") if self.model.dim else ()

    @refusing_singular
    def parts(self, blocks: ScoreBlocks, how: Pass) -> Parts | None:
        """Return the norm by parts, for its own cohort or for that of the blocks; None where it has none for these."""
        if self.model.dim == 0:
            return ScoreModelParts(weights=self.weights(enroll=False, test=False))
        prepared = len(self.cohort_enroll_ids) or len(self.cohort_test_ids)
        if speakers_meet(blocks, ("cohort",)):
            return None if prepared else OwnScoreModelParts.of(self.model, blocks, how, self.reading)
        found = _prepared_prediction(self, blocks) if prepared else _cohort_prediction(self.model, blocks, how)
        trials = trials_with(self.model, (blocks.enroll_known, blocks.test_known), blocks.trials.shape, self.reading)
        if isinstance(trials, PlainTrials):
            return ScoreModelParts(weights=ScoreWeights.of(self.model, found, self.reading))
        weights = EffectWeights.of(self.model, found, trials.loading)
        return KnownScoreModelParts(weights=weights, known=trials)


def prepare_score_model(method: str, **options: Any) -> Any:
    """Return the score model as a norm, see `prepare_model`.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, ScoreMatrix
    >>> model = ScoreModel(mu=[0, 4], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1, 1])
    >>> norm = prepare_score_model("lgsm", model=model)
    >>> norm.normalize(ScoreBlocks(ScoreMatrix([[2.0, 3.0]], ["e"], ["t1", "t2"]))).scores.round(3)
    array([[0.   , 1.333]])
    """
    return prepare_model(method, ScoreModel, PreparedScoreModel, **options)


def checked_residuals(residuals: str | None, dim: int) -> str:
    """Return the name of a density of residuals: the one that was named, or that of such a model.

    Examples
    --------
    >>> checked_residuals(None, 2), checked_residuals(None, 0), checked_residuals("gaussian", 2)
    ('sinh-arcsinh', 'gaussian', 'gaussian')
    """
    if residuals not in (None, *RESIDUALS):
        raise InputError(f"residuals are {residuals!r}, but must be {' or '.join(RESIDUALS)}")
    return residuals or (RESIDUALS[0] if dim else RESIDUALS[1])


def fit_score_model_norm(
    method: str,
    training: Sequence[LabelledBlocks],
    *,
    client: Any = None,
    progress: Progress = silent,
    residuals: str | None = None,
    **options: Any,
) -> FittedNorm:
    """Train the score model; ``options`` are those of `fit_score_model`, and the density of residuals.

    ``residuals`` are ``"sinh-arcsinh"``, fitted by `fit_residuals`, or ``"gaussian"``, as in the paper. By default they
    are the former, but for a model without hidden variables, which is known as Gaussian calibration.
    """
    from evenscore.model.fit import fit_score_model

    refuse_unknown_options(method, fit_score_model, options)
    residuals = checked_residuals(residuals, options.get("dim", 2))
    result = fit_score_model(training_data(training), client=client, progress=progress, **options)
    model = result.model
    if residuals != "gaussian":
        from evenscore.norms.residuals import fit_residuals

        model = fit_residuals(model, training, client=client, progress=progress)
    return fitted_model(method, ModelNorm(model, PreparedScoreModel), training, result.notes, progress, client)
