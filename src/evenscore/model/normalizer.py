"""Scoring with the score model: cohort scores in, log-likelihood ratios out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxtyping import Float

from evenscore.errors import InputError
from evenscore.model.missing_evidence import effect_posterior, missing_patterns, without_missing
from evenscore.model.own_speakers import TrialSums, group_columns, predict_without_own, speaker_sums
from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import SpeakerBlocks
from evenscore.model.prediction import Prediction, predict
from evenscore.tables import NONTARGET, TARGET, UNKNOWN, Labels, ScoreBlocks, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids

__all__ = ["HiddenPosterior", "ScoreModelNormalizer", "leave_one_speaker_out"]

Array = np.ndarray
_CHUNK = 1 << 20  # trials that are worked on at once where every trial needs numbers of its own


@dataclass(frozen=True, kw_only=True, eq=False)
class HiddenPosterior:
    """Posterior of a trial's hidden variables given its cohort scores."""

    enroll: Float[Array, " d"]  #: mean of x~
    test: Float[Array, " d"]  #: mean of y~
    covariance: Float[Array, "2d 2d"]  #: of (x~, y~)


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
    array([[0.2007]])
    >>> round(normalizer.normalize_one(3.0, [1.5, 0.9], [0.2, 0.1]), 4)
    0.2007
    """

    def __init__(
        self,
        model: ScoreModel,
        cohort: ScoreMatrix | ScoreBlocks | None = None,
        labels: Labels | None = None,
        *,
        enroll_speakers: Any = None,
        test_speakers: Any = None,
    ) -> None:
        if isinstance(cohort, ScoreMatrix):
            nobody = TrialList([], [], [], [], scores=[])
            cohort = ScoreBlocks(
                nobody,
                cohort=cohort,
                cohort_labels=labels,
                cohort_enroll_speakers=enroll_speakers,
                cohort_test_speakers=test_speakers,
            )
        elif labels is not None or enroll_speakers is not None or test_speakers is not None:
            raise InputError("labels and speakers belong to a cohort given as a score matrix; put them into the blocks")
        self.model = model
        none: Ids = np.empty(0, dtype=object)
        rows = cohort.cohort_enroll_ids if cohort is not None else None
        columns = cohort.cohort_test_ids if cohort is not None else None
        self.cohort_enroll_ids: Ids = none if rows is None else rows
        self.cohort_test_ids: Ids = none if columns is None else columns
        self._row_speakers = None if cohort is None else cohort.cohort_enroll_speakers
        self._column_speakers = None if cohort is None else cohort.cohort_test_speakers
        shape = (len(self.cohort_enroll_ids), len(self.cohort_test_ids))
        if cohort is None or cohort.cohort is None or cohort.cohort_labels is None:
            self._scores: npt.NDArray[Any] = np.full(shape, np.nan)
            self._key = np.full(shape, UNKNOWN, dtype=np.int8)
        else:
            self._scores, key = cohort.cohort.scores, cohort.cohort_labels.matrix
            self._key = np.where(cohort.cohort.missing, np.int8(UNKNOWN), key) if cohort.cohort.n_missing else key
        self._predictions: dict[tuple[bool, bool], Prediction] = {}

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of `blocks.trials`.

        The cohort of the blocks must be the one this normalizer was prepared for (or be left out of them).
        """
        enroll, test = self._cohort_scores(blocks)
        rows, columns = self._own_groups(blocks)
        if rows is not None and columns is not None and ((rows >= 0).any() or (columns >= 0).any()):
            return self._without_own_speakers(blocks, enroll, test, rows, columns)
        if _has_missing(enroll) or _has_missing(test):
            return self._with_missing(blocks.trials, enroll, test)
        return self._complete(blocks.trials, enroll, test)

    def normalize_one(
        self, score: float, enroll: npt.ArrayLike | None = None, test: npt.ArrayLike | None = None
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
        """
        from evenscore.model.normalize_kernels import llr_one

        e, t = _vector(enroll, len(self.cohort_test_ids), "enroll"), _vector(test, len(self.cohort_enroll_ids), "test")
        online = self._online((enroll is not None, test is not None))
        llr = llr_one(
            float(score), online.center, e, t, online.enroll, online.test, online.offset, online.half, online.constant
        )
        if np.isnan(llr):
            llr = self._one_with_missing(score, None if enroll is None else e, None if test is None else t)
        return float(llr)

    def posterior(self, enroll: npt.ArrayLike | None = None, test: npt.ArrayLike | None = None) -> HiddenPosterior:
        """Return the posterior of the hidden variables of a trial, given its (complete) cohort scores."""
        e, t = _vector(enroll, len(self.cohort_test_ids), "enroll"), _vector(test, len(self.cohort_enroll_ids), "test")
        prediction = self._prediction((enroll is not None, test is not None))
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

    # -- preparation ---------------------------------------------------------------------------------------------

    def _prediction(self, sides: tuple[bool, bool]) -> Prediction:
        if sides not in self._predictions:
            self._predictions[sides] = predict(self.model, self._scores, self._key, sides)
        return self._predictions[sides]

    def _online(self, sides: tuple[bool, bool]) -> _Online:
        cached: dict[tuple[bool, bool], _Online] = self.__dict__.setdefault("_online_cache", {})
        if sides not in cached:
            cached[sides] = _Online.of(self.model, self._prediction(sides))
        return cached[sides]

    @cached_property
    def _blocks(self) -> tuple[SpeakerBlocks, Ids] | None:
        """The cohort as blocks of speakers, with their names, if it is complete and labelled so."""
        if self._row_speakers is None or self._column_speakers is None or (self._key == UNKNOWN).any():
            return None
        labels = Labels.from_speakers(self._row_speakers, self._column_speakers)
        if labels.n_unknown or not np.array_equal(labels.matrix, self._key):
            return None
        rows, columns, number = labels.speaker_codes
        names = np.empty(number, dtype=object)
        names[rows], names[columns] = self._row_speakers, self._column_speakers
        return SpeakerBlocks(row_codes=rows, column_codes=columns, n_speakers=number), names

    def _cohort_scores(self, blocks: ScoreBlocks) -> tuple[ScoreMatrix | None, ScoreMatrix | None]:
        enroll, test = blocks.enroll, blocks.test
        try:
            if enroll is not None:
                enroll = _same_members(enroll, "test_ids", self.cohort_test_ids)
            if test is not None:
                test = _same_members(test, "enroll_ids", self.cohort_enroll_ids)
        except InputError as error:
            raise InputError(f"the blocks do not fit the cohort of this normalizer: {error}") from None
        return enroll, test

    def _own_groups(self, blocks: ScoreBlocks) -> tuple[npt.NDArray[np.intp] | None, npt.NDArray[np.intp] | None]:
        """Return a number for the speaker of each enrolment and test of the trials who is in the cohort, else -1."""
        names: dict[str, int] = {}
        for speakers in (self._row_speakers, self._column_speakers):
            for name in () if speakers is None else speakers:
                if name is not None:
                    names.setdefault(name, len(names))
        if self._blocks is not None:
            names = {name: number for number, name in enumerate(self._blocks[1])}
        if not names or (blocks.enroll_speakers is None and blocks.test_speakers is None):
            return None, None

        def codes(speakers: Ids | None, size: int) -> npt.NDArray[np.intp]:
            if speakers is None:
                return np.full(size, -1, dtype=np.intp)
            return np.fromiter((names.get(name, -1) for name in speakers), dtype=np.intp, count=size)

        return (
            codes(blocks.enroll_speakers, len(blocks.trials.enroll_ids)),
            codes(blocks.test_speakers, len(blocks.trials.test_ids)),
        )

    # -- the ways of scoring ---------------------------------------------------------------------------------------

    def _sides(self, enroll: ScoreMatrix | None, test: ScoreMatrix | None) -> tuple[bool, bool]:
        return enroll is not None, test is not None

    def _shifts(
        self, online: _Online, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None
    ) -> tuple[Float[Array, "m 2"], Float[Array, "n 2"]]:
        """Return each enrolment's and each test's part of the two predicted scores."""
        from evenscore.model.normalize_kernels import weigh_columns, weigh_rows

        rows, columns = np.zeros((len(trials.enroll_ids), 2)), np.zeros((len(trials.test_ids), 2))
        if enroll is not None:
            weigh_rows(np.ascontiguousarray(enroll.scores), online.center, online.enroll, rows)
        if test is not None:
            weigh_columns(np.ascontiguousarray(test.scores), online.center, online.test, columns)
        return rows + online.offset, columns

    def _complete(
        self, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None
    ) -> ScoreMatrix | TrialList:
        from evenscore.model.normalize_kernels import llr_list, llr_matrix

        online = self._online(self._sides(enroll, test))
        rows, columns = self._shifts(online, trials, enroll, test)
        columns = np.ascontiguousarray(columns.T)
        scores = np.ascontiguousarray(_scores_of(trials))
        out = np.empty_like(scores)
        if isinstance(trials, ScoreMatrix):
            llr_matrix(scores, rows, columns, online.half, online.constant, out)
        else:
            index = (trials.enroll_index, trials.test_index)
            llr_list(scores, rows, columns, *index, online.half, online.constant, out)
        return trials.with_scores(out)

    def _with_missing(
        self, trials: ScoreMatrix | TrialList, enroll: ScoreMatrix | None, test: ScoreMatrix | None
    ) -> ScoreMatrix | TrialList:
        sides = self._sides(enroll, test)
        online = self._online(sides)
        rows, columns = self._shifts(online, trials, enroll, test)
        effects = effect_posterior(self.model, self._scores, self._key, sides)
        n_tests = len(self.cohort_test_ids)
        loading = np.concatenate([online.enroll, online.test], axis=1)
        e_patterns, e_which, e_effects = self._side_effects(
            None if enroll is None else enroll.scores, effects.covariance[:n_tests], len(trials.enroll_ids)
        )
        t_patterns, t_which, t_effects = self._side_effects(
            None if test is None else test.scores.T, effects.covariance[n_tests:], len(trials.test_ids)
        )
        i, j = _pairs(trials)
        scores = _scores_of(trials)[i, j] if isinstance(trials, ScoreMatrix) else _scores_of(trials)
        out = np.empty(len(i))
        cells, cell_of = np.unique(e_which[i] * len(t_patterns) + t_which[j], return_inverse=True)
        order, bounds = _split(cell_of, len(cells))
        for number, cell in enumerate(cells):
            at = order[bounds[number] : bounds[number + 1]]
            pe, pt = np.divmod(cell, len(t_patterns))
            absent = np.concatenate([np.flatnonzero(e_patterns[pe]), n_tests + np.flatnonzero(t_patterns[pt])])
            mean = rows[i[at]] + columns[j[at]]
            variance = online.variance
            if len(absent):
                predicted = effects.offset[absent] + e_effects[i[at]][:, absent] + t_effects[j[at]][:, absent]
                more, wider = without_missing(self.model, effects, loading, absent, predicted)
                mean, variance = mean + more, variance + wider
            out[at] = _llr(scores[at], mean, variance)
        return _filled(trials, out)

    def _side_effects(
        self, scores: npt.NDArray[Any] | None, covariance: Float[Array, "c o"], size: int
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp], Float[Array, "m o"]]:
        """Return the patterns of missing scores of one side, and what its scores say about all effects."""
        if scores is None:
            members = covariance.shape[0]
            return (
                np.zeros((1, members), dtype=bool),
                np.zeros(size, dtype=np.intp),
                np.zeros((size, covariance.shape[1])),
            )
        patterns, which = missing_patterns(np.isnan(scores))
        centered = np.nan_to_num(scores.astype(np.float64) - self.model.mu[NONTARGET], nan=0.0)
        return patterns, which, centered @ covariance / self.model.sigma2[NONTARGET]

    def _without_own_speakers(
        self,
        blocks: ScoreBlocks,
        enroll: ScoreMatrix | None,
        test: ScoreMatrix | None,
        rows: npt.NDArray[np.intp],
        columns: npt.NDArray[np.intp],
    ) -> ScoreMatrix | TrialList:
        if self._blocks is None or _has_missing(enroll) or _has_missing(test):
            return self._pair_by_pair(blocks, enroll, test, rows, columns)
        cohort, number = self._blocks[0], self._blocks[0].n_speakers
        center = float(self.model.mu[NONTARGET])
        sums = speaker_sums(self._scores, cohort, center)
        trial_sums = TrialSums(
            enroll=None if enroll is None else group_columns(enroll.scores, cohort.column_codes, number, center),
            test=None if test is None else group_columns(test.scores.T, cohort.row_codes, number, center),
            enroll_group=rows,
            test_group=columns,
        )
        loading = np.concatenate([self.model.alpha, self.model.beta], axis=1)
        i, j = _pairs(blocks.trials)
        scores = _scores_of(blocks.trials)
        scores = scores[i, j] if isinstance(blocks.trials, ScoreMatrix) else scores
        out = np.empty(len(i))
        for start in range(0, len(i), _CHUNK):
            part = slice(start, start + _CHUNK)
            means, covariances, which = predict_without_own(self.model, sums, trial_sums, i[part], j[part])
            variance = self.model.sigma2 + np.einsum("hp,npq,hq->nh", loading, covariances, loading)
            out[part] = _llr(scores[part], self.model.mu + means @ loading.T, variance[which])
        return _filled(blocks.trials, out)

    def _pair_by_pair(
        self,
        blocks: ScoreBlocks,
        enroll: ScoreMatrix | None,
        test: ScoreMatrix | None,
        rows: npt.NDArray[np.intp],
        columns: npt.NDArray[np.intp],
    ) -> ScoreMatrix | TrialList:
        """Score the trials of each pair of speakers with the cohort that is left: any pattern, one by one."""
        i, j = _pairs(blocks.trials)
        scores = _scores_of(blocks.trials)
        scores = scores[i, j] if isinstance(blocks.trials, ScoreMatrix) else scores
        out = np.empty(len(i))
        number = int(max(rows.max(initial=-1), columns.max(initial=-1))) + 2
        cells, cell_of = np.unique((rows[i] + 1) * number + columns[j] + 1, return_inverse=True)
        order, bounds = _split(cell_of, len(cells))
        for n in range(len(cells)):
            at = order[bounds[n] : bounds[n + 1]]
            own = {
                name
                for speakers, index in ((blocks.enroll_speakers, i[at[0]]), (blocks.test_speakers, j[at[0]]))
                if speakers is not None and (name := speakers[index]) is not None
            }
            kept_rows = _others(self._row_speakers, own, len(self.cohort_enroll_ids))
            kept_columns = _others(self._column_speakers, own, len(self.cohort_test_ids))
            smaller = ScoreModelNormalizer(self.model, None)
            smaller.cohort_enroll_ids = self.cohort_enroll_ids[kept_rows]
            smaller.cohort_test_ids = self.cohort_test_ids[kept_columns]
            smaller._scores = self._scores[np.ix_(kept_rows, kept_columns)]
            smaller._key = self._key[np.ix_(kept_rows, kept_columns)]
            e, e_index = np.unique(i[at], return_inverse=True)
            t, t_index = np.unique(j[at], return_inverse=True)
            trials = TrialList(
                blocks.trials.enroll_ids[e], blocks.trials.test_ids[t], e_index, t_index, scores=scores[at]
            )
            sub_enroll = None if enroll is None else enroll.take(e, kept_columns)
            sub_test = None if test is None else test.take(kept_rows, t)
            some = _has_missing(sub_enroll) or _has_missing(sub_test)
            done = (smaller._with_missing if some else smaller._complete)(trials, sub_enroll, sub_test)
            out[at] = _scores_of(done)
        return _filled(blocks.trials, out)

    def _one_with_missing(self, score: float, enroll: npt.NDArray[Any] | None, test: npt.NDArray[Any] | None) -> float:
        trial = ScoreMatrix([[score]], ["enrolment"], ["test"])
        e = None if enroll is None else ScoreMatrix(enroll[None, :], ["enrolment"], self.cohort_test_ids, missing="nan")
        t = None if test is None else ScoreMatrix(test[:, None], self.cohort_enroll_ids, ["test"], missing="nan")
        return float(_scores_of(self._with_missing(trial, e, t))[0, 0])


@dataclass(frozen=True, kw_only=True, eq=False)
class _Online:
    """The prediction of the two scores (non-target, target), ready for the kernels."""

    center: float
    offset: Float[Array, " 2"]
    enroll: Float[Array, "2 M"]
    test: Float[Array, "2 N"]
    variance: Float[Array, " 2"]
    half: Float[Array, " 2"]  #: 1 / (2 variance)
    constant: float

    @classmethod
    def of(cls, model: ScoreModel, prediction: Prediction) -> _Online:
        """Project the hidden variables on the effects of the two classes, (S3)."""
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


def leave_one_speaker_out(model: ScoreModel, scores: ScoreMatrix, labels: Labels) -> ScoreMatrix:
    """Normalize a labelled matrix by itself: the cohort of a trial is everything but the trial's two speakers.

    Parameters
    ----------
    model
        The score model, usually trained on these scores.
    scores
        The scores; they are trials and cohort at the same time.
    labels
        Their labels, by speaker.

    Examples
    --------
    >>> from evenscore import Labels, ScoreMatrix, ScoreModel, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> scores, labels = simulate(model, ["a", "b", "c"], ["a", "b", "b", "c"], seed=1)
    >>> leave_one_speaker_out(model, scores, labels).shape
    (3, 4)
    """
    labels = labels.align(scores.enroll_ids, scores.test_ids)
    if not labels.by_speaker:
        raise InputError("leaving one speaker out needs speakers; make the labels with Labels.from_speakers")
    blocks = ScoreBlocks(
        scores,
        enroll=scores,
        test=scores,
        cohort=scores,
        cohort_labels=labels,
        enroll_speakers=labels.enroll_speakers,
        test_speakers=labels.test_speakers,
        cohort_enroll_speakers=labels.enroll_speakers,
        cohort_test_speakers=labels.test_speakers,
    )
    result = ScoreModelNormalizer(model, blocks).normalize(blocks)
    assert isinstance(result, ScoreMatrix)  # noqa: S101
    return result


def _has_missing(block: ScoreMatrix | None) -> bool:
    return block is not None and block.n_missing > 0


def _same_members(block: ScoreMatrix, side: str, ids: Ids) -> ScoreMatrix:
    if len(getattr(block, side)) != len(ids):
        raise InputError(f"{len(getattr(block, side))} cohort members instead of {len(ids)}")
    rows, columns = (block.enroll_ids, ids) if side == "test_ids" else (ids, block.test_ids)
    return block.align(rows, columns)


def _vector(scores: npt.ArrayLike | None, size: int, what: str) -> npt.NDArray[Any]:
    if scores is None:
        return np.empty(0)
    vector = np.asarray(scores)
    if vector.shape != (size,):
        raise InputError(f"{what} has shape {vector.shape}, but the cohort has {size} members")
    return vector if vector.dtype in (np.float32, np.float64) else vector.astype(np.float64)


def _scores_of(trials: ScoreMatrix | TrialList) -> npt.NDArray[Any]:
    if trials.scores is None:
        raise InputError("the trials have no scores")
    return trials.scores


def _pairs(trials: ScoreMatrix | TrialList) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    if isinstance(trials, TrialList):
        return trials.enroll_index.astype(np.intp), trials.test_index.astype(np.intp)
    rows, columns = np.divmod(np.arange(trials.scores.size), max(trials.shape[1], 1))
    return rows, columns


def _split(codes: npt.NDArray[np.intp], number: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    from evenscore.model.sums import group_order

    return group_order(codes.reshape(-1), number)


def _others(speakers: Ids | None, own: set[str], size: int) -> npt.NDArray[np.intp]:
    if speakers is None:
        return np.arange(size)
    return np.flatnonzero([name not in own for name in speakers])


def _llr(scores: npt.NDArray[Any], mean: Float[Array, "t 2"], variance: Array) -> Float[Array, " t"]:
    """Return log N(s; target) - log N(s; non-target), (S4)."""
    squares = (scores[:, None] - mean) ** 2 / variance + np.log(variance)
    return 0.5 * (squares[:, NONTARGET] - squares[:, TARGET])


def _filled(trials: ScoreMatrix | TrialList, values: Float[Array, " t"]) -> ScoreMatrix | TrialList:
    scores = values.astype(_scores_of(trials).dtype)
    return trials.with_scores(scores.reshape(trials.shape) if isinstance(trials, ScoreMatrix) else scores)
