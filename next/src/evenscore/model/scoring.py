"""Scoring with the score model: cohort scores in, log-likelihood ratios out.

    LLR = (log v_0 / v_1 + (s - p_0)^2 / v_0 - (s - p_1)^2 / v_1) / 2                                 (S4)

with the predictions p_h, v_h of `prediction.py`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Ids
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import is_dask, map_pairs, map_rows
from evenscore.model.densities import hyperbolic_llr
from evenscore.model.hidden import HiddenPosterior
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern import MISSING, PairLabels
from evenscore.model.prediction import Cohort, Prediction, predict
from evenscore.model.sums import ClassSums, matrix_sums
from evenscore.parallel import one_blas_thread

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ScoreModelNormalizer", "gaussian_llr", "lgsm_norm", "missing_kinds"]

Codes = npt.NDArray[np.int8]
Index = npt.NDArray[np.intp]
_KEPT = 64  # predictions that a normalizer remembers


def lgsm_norm(blocks: ScoreBlocks, model: ScoreModel) -> ScoreMatrix | TrialList:
    """Return the trials with log-likelihood ratios of a score model: the norm "lgsm".

    Examples
    --------
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> lgsm_norm(ScoreBlocks(ScoreMatrix([[3.0]], ["e"], ["t"])), model=model).scores.round(3)
    array([[1.778]])
    """
    if not isinstance(model, ScoreModel):
        raise InputError(
            f"the model is a {type(model).__name__}, but must be a ScoreModel; train one with fit_score_model"
        )
    return ScoreModelNormalizer(model, blocks).normalize(blocks)


def gaussian_llr(s: Any, e0: Any, e1: Any, t0: Any, t1: Any, constant: float, half0: float, half1: float) -> Any:
    """Return the LLR of scores whose predictions are p_h = e_h + t_h, (S4); half_h is 1 / 2 v_h."""
    d0 = s - e0 - t0
    d1 = s - e1 - t1
    return constant + half0 * d0 * d0 - half1 * d1 * d1


class ScoreModelNormalizer:
    """A score model prepared for a cohort; turns raw scores into natural-log likelihood ratios.

    Parameters
    ----------
    model
        The trained score model.
    cohort
        Scores S_I of the cohort's enrolments against its tests: a `ScoreMatrix`, an array or `BilinearScores`; or
        `ScoreBlocks`, whose cohort and its labels are taken; or None for no cohort.
    labels
        Labels of ``cohort``, as `Labels` or a matrix of 1, 0 and -1 (not used); by default all pairs are non-targets.

    Examples
    --------
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> normalizer = ScoreModelNormalizer(model, np.array([[0.3, -0.2], [0.1, 0.4]]))
    >>> round(normalizer.normalize_one(3.0, [1.5, 0.9], [0.2, 0.1]), 4)
    0.6008
    >>> normalizer.llr(np.array([[3.0]]), np.array([[1.5, 0.9]]), np.array([[0.2], [0.1]])).round(4)
    array([[0.6008]])
    """

    def __init__(self, model: ScoreModel, cohort: Any = None, labels: Any = None) -> None:
        if isinstance(cohort, ScoreBlocks):
            labels = cohort.cohort_labels if labels is None else labels
            cohort = cohort.cohort
        self.model = model
        self._table = cohort if isinstance(cohort, ScoreMatrix) else None
        if isinstance(cohort, ScoreMatrix):
            labels = labels.align(cohort.enroll, cohort.test) if isinstance(labels, Labels) else labels
            cohort = cohort.scores
        with one_blas_thread():
            self._cohort = Cohort.from_sums(model, _cohort_sums(np.empty((0, 0)) if cohort is None else cohort, labels))
        self._predictions: dict[tuple[bytes, bytes], Prediction] = {}
        self._complete: dict[tuple[bool, bool], Any] = {}

    @property
    def cohort_enroll_ids(self) -> Ids:
        """Ids of the cohort's enrolments, in the order of test-side cohort scores; positions if there are no ids."""
        return np.arange(self._cohort.shape[0]).astype(object) if self._table is None else self._table.enroll_ids

    @property
    def cohort_test_ids(self) -> Ids:
        """Ids of the cohort's tests, in the order of enrolment-side cohort scores; positions if there are no ids."""
        return np.arange(self._cohort.shape[1]).astype(object) if self._table is None else self._table.test_ids

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the log-likelihood ratios of the trials, in the form of `blocks.trials`.

        The cohort of the blocks must be the one this normalizer was prepared for, or be left out of them.
        """
        trials, labels = blocks.trials, {"enroll_labels": blocks.enroll_labels, "test_labels": blocks.test_labels}
        if self._table is not None and blocks.cohort is not self._table:
            blocks = ScoreBlocks(trials, blocks.enroll, blocks.test, self._table, **labels)  # type: ignore[arg-type]
        arrays = [block and block.scores for block in (blocks.enroll, blocks.test)]
        keys = [labels and labels.matrix for labels in (blocks.enroll_labels, blocks.test_labels)]
        if isinstance(trials, TrialList):
            return trials.with_normalized(self.llr(trials.needs_scores(), *arrays, *keys, trials.rows, trials.cols))
        return trials.with_scores(self.llr(trials.scores, *arrays, *keys))

    def llr(
        self,
        scores: Any,
        enroll: Any = None,
        test: Any = None,
        enroll_labels: Codes | None = None,
        test_labels: Codes | None = None,
        rows: npt.NDArray[np.integer] | None = None,
        cols: npt.NDArray[np.integer] | None = None,
    ) -> Any:
        """Return the log-likelihood ratios of arrays of scores.

        Parameters
        ----------
        scores
            m x n, NumPy, dask or `BilinearScores`; or the scores of listed trials.
        enroll, test
            Cohort scores S_e (m x M) and S_t (N x n); NaN is a missing one. None if there are none.
        enroll_labels, test_labels
            Their labels: 1 target, 0 non-target, -1 not used; by default all are non-targets. Columns of S_e (rows of
            S_t) beyond the cohort are further recordings, which have no scores with the cohort.
        rows, cols
            For listed trials, the positions of each trial's enrolment and test.
        """
        (N, M), scores = self._cohort.shape, scores if is_dask(scores) else np.asarray(scores)
        test, test_labels = (None if part is None else part.T for part in (test, test_labels))
        with one_blas_thread():
            e_kinds, e_of = _kinds(enroll, enroll_labels, M)
            t_kinds, t_of = _kinds(test, test_labels, N)
            if len(e_kinds) == len(t_kinds) == 1:
                return self._apply(self._predict(e_kinds[0], t_kinds[0]), scores, enroll, test, rows, cols)
            e_of = np.zeros(len(scores), np.intp) if enroll is None and rows is None else e_of
            t_of = np.zeros(scores.shape[-1], np.intp) if test is None and rows is None else t_of
            if rows is not None and cols is not None:
                return self._apply_listed(scores, enroll, test, rows, cols, (e_kinds, e_of, t_kinds, t_of))
            return self._apply_by_kinds(scores, enroll, test, (e_kinds, e_of, t_kinds, t_of))

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
        """Return the log-likelihood ratio of one trial, in microseconds if its cohort scores are complete.

        Parameters
        ----------
        score
            The trial's raw score.
        enroll, test
            Scores of the enrolment against the cohort's tests, and of the cohort's enrolments against the test, in the
            order of the cohort; None if there are none; NaN where one is missing.
        enroll_targets, test_targets
            Further scores of the enrolment (and of the test) against recordings that are known to be of its speaker,
            which are not in the cohort.
        enroll_labels, test_labels
            Labels of ``enroll`` and ``test``: 1 target, 0 non-target, -1 not used. By default all are non-targets.

        Examples
        --------
        >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
        >>> normalizer = ScoreModelNormalizer(model)
        >>> [round(normalizer.normalize_one(2.5, enroll_targets=known), 3) for known in ([], [2.5, 2.2])]
        [0.889, 3.708]
        """
        if enroll_targets is None and test_targets is None and enroll_labels is None and test_labels is None:
            w, v, (off0, off1), formula, constants = self._complete_trial(enroll is not None, test is not None)
            e = w[0, :0] if enroll is None else _vector(enroll, w.shape[1], "enroll")
            t = v[0, :0] if test is None else _vector(test, v.shape[1], "test")
            e0, e1 = off0 + float(w[0] @ e), off1 + float(w[1] @ e)
            found = formula(score, e0, e1, float(v[0] @ t), float(v[1] @ t), *constants)
            if found == found:
                return float(found)
        (e, t), labels = self._trial((enroll, enroll_labels, enroll_targets), (test, test_labels, test_targets))
        p = self._predict(*labels)
        (e0, e1), (t0, t1) = p.offset + p.enroll_weights @ e, p.test_weights @ t
        formula, constants = self._formula(p.variance)
        return float(formula(float(score), e0, e1, t0, t1, *constants))

    def posterior(
        self,
        enroll: npt.ArrayLike | None = None,
        test: npt.ArrayLike | None = None,
        *,
        enroll_labels: npt.ArrayLike | None = None,
        test_labels: npt.ArrayLike | None = None,
    ) -> HiddenPosterior:
        """Return the posterior of the hidden variables of a trial, given its cohort scores, as for `normalize_one`."""
        (e, t), labels = self._trial((enroll, enroll_labels, None), (test, test_labels, None))
        p, dim = self._predict(*labels), self.model.dim
        mean = p.constant + p.enroll @ e + p.test @ t  # (S1)
        return HiddenPosterior(enroll=mean[:dim], test=mean[dim:], covariance=p.covariance)

    def _formula(self, variance: Float[np.ndarray, "2"]) -> tuple[Any, tuple[float, ...]]:
        """Return the formula of the LLR, and its constants."""
        if self.model.residuals is not None:
            return hyperbolic_llr, self.model.residuals.constants(variance)
        half = (0.5 / variance).tolist()
        return gaussian_llr, (0.5 * math.log(half[1] / half[0]), *half)

    def _predict(self, enroll_labels: Codes, test_labels: Codes) -> Prediction:
        """Return the prediction of trials with these labels; the last ones are remembered."""
        key = enroll_labels.tobytes(), test_labels.tobytes()
        if key not in self._predictions:
            if len(self._predictions) >= _KEPT:
                self._predictions.clear()
            with one_blas_thread():
                self._predictions[key] = predict(self.model, self._cohort, enroll_labels, test_labels)
        return self._predictions[key]

    def _complete_trial(self, has_enroll: bool, has_test: bool) -> Any:
        """Return what single trials with complete cohort scores need: weights, offsets, formula and its constants."""
        if (has_enroll, has_test) not in self._complete:
            N, M = self._cohort.shape
            e_labels = np.full(M, NONTARGET if has_enroll else MISSING, np.int8)
            p = self._predict(e_labels, np.full(N, NONTARGET if has_test else MISSING, np.int8))
            weights = p.enroll_weights[:, : M * has_enroll], p.test_weights[:, : N * has_test]
            self._complete[has_enroll, has_test] = *weights, p.offset.tolist(), *self._formula(p.variance)
        return self._complete[has_enroll, has_test]

    def _trial(self, enroll: tuple[Any, Any, Any], test: tuple[Any, Any, Any]) -> tuple[list[Any], list[Codes]]:
        """Return the scores of both sides of a single trial, 0 where they are missing, and their labels."""
        found: tuple[list[Any], list[Codes]] = [], []
        for given, size, name in ((enroll, self._cohort.shape[1], "enroll"), (test, self._cohort.shape[0], "test")):
            scores, labels, targets = given
            s = np.full(size, np.nan) if scores is None else _vector(scores, size, name)
            key = np.zeros(size) if labels is None else _vector(labels, size, f"{name}_labels")
            more = np.empty(0) if targets is None else np.asarray(targets, float).ravel()
            s, key = np.concatenate([s, more]), np.concatenate([key, np.full(len(more), TARGET)])
            found[0].append(np.nan_to_num(s))
            found[1].append(np.where(np.isnan(s), MISSING, key).astype(np.int8))
        return found

    def _apply(self, p: Prediction, scores: Any, enroll: Any, test: Any, rows: Any, cols: Any) -> Any:
        """Return the LLRs of trials with one prediction; ``test`` is S_t transposed."""
        m, n = scores.shape if rows is None else (max(rows, default=-1) + 1, max(cols, default=-1) + 1)
        e = p.offset + (np.zeros((m, 2)) if enroll is None else _weighted_rows(enroll, p.enroll_weights))
        t = np.zeros((n, 2)) if test is None else _weighted_rows(test, p.test_weights)
        formula, constants = self._formula(p.variance)
        return map_pairs(formula, scores, [e[:, 0], e[:, 1]], [t[:, 0], t[:, 1]], constants, rows, cols)

    def _apply_listed(self, scores: Any, enroll: Any, test: Any, rows: Any, cols: Any, kinds: Any) -> Any:
        """Return the LLRs of listed trials, those of one prediction together."""
        e_kinds, e_of, t_kinds, t_of = kinds
        e_kind = np.zeros(len(scores), np.intp) if enroll is None else e_of[rows]
        t_kind = np.zeros(len(scores), np.intp) if test is None else t_of[cols]
        kind, out = e_kind * len(t_kinds) + t_kind, np.empty_like(scores)
        order = np.argsort(kind, kind="stable")
        for at in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(order) else []:
            p = self._predict(e_kinds[e_kind[at[0]]], t_kinds[t_kind[at[0]]])
            (e_at, r), (t_at, c) = np.unique(rows[at], return_inverse=True), np.unique(cols[at], return_inverse=True)
            sides = None if enroll is None else enroll[e_at], None if test is None else test[t_at]
            out[at] = self._apply(p, scores[at], *sides, r, c)
        return out

    def _apply_by_kinds(self, scores: Any, enroll: Any, test: Any, kinds: Any) -> Any:
        """Return the LLRs of a matrix, the rows and columns of one kind together."""
        e_kinds, e_of, t_kinds, t_of = kinds
        rows = [np.flatnonzero(e_of == kind) for kind in range(len(e_kinds))]
        cols = [np.flatnonzero(t_of == kind) for kind in range(len(t_kinds))]

        def part(a: int, b: int) -> Any:
            p, r, c = self._predict(e_kinds[a], t_kinds[b]), rows[a], cols[b]
            sides = None if enroll is None else enroll[r], None if test is None else test[c]
            return self._apply(p, scores[r][:, c], *sides, None, None)

        if is_dask(scores):
            import dask.array as da

            whole = da.block([[part(a, b) for b in range(len(cols))] for a in range(len(rows))])
            back = np.argsort(np.concatenate(rows)), np.argsort(np.concatenate(cols))
            return whole[back[0]][:, back[1]].rechunk(scores.chunks)
        out = np.empty_like(scores)
        for a, r in enumerate(rows):
            for b, c in enumerate(cols):
                out[np.ix_(r, c)] = part(a, b)
        return out


def _cohort_sums(cohort: Any, labels: Any) -> ClassSums:
    """Return the sums of S_I; without labels, all its scores are non-targets."""
    cohort = cohort if is_dask(cohort) or hasattr(cohort, "class_sums") else np.asarray(cohort)
    if labels is None:
        none = np.empty(0, np.intp)
        pairs = PairLabels(np.full(cohort.shape[0], -1), np.full(cohort.shape[1], -1), none, none, none.astype(np.int8))
    else:
        pairs = PairLabels.from_labels(labels if isinstance(labels, Labels) else Labels.from_key(labels))
    if pairs.shape != cohort.shape:
        raise InputError(f"labels are {pairs.shape}, but the cohort scores are {cohort.shape}; make them agree")
    return cohort.class_sums(pairs) if hasattr(cohort, "class_sums") else matrix_sums(cohort, pairs)


def _kinds(scores: Any, labels: Codes | None, size: int) -> tuple[list[Codes], Index]:
    """Return the different labels that rows of cohort scores have, and which of them each row has."""
    if scores is None:
        return [np.full(size, MISSING, np.int8)], np.empty(0, np.intp)
    if scores.shape[1] < size:
        raise InputError(
            f"there are {scores.shape[1]} cohort scores of each side of a trial, but {size} cohort members"
        )
    if labels is None:
        return missing_kinds(scores)
    key = np.where(np.isnan(np.asarray(scores)), MISSING, np.asarray(labels)).astype(np.int8)
    kinds, of = np.unique(key, axis=0, return_inverse=True)
    return list(kinds), of.ravel()


def missing_kinds(scores: Any) -> tuple[list[Codes], Index]:
    """Return the labels (0, or -1 for missing) of the different rows of cohort scores, and which of them each row has."""
    complete, of = np.zeros(scores.shape[1], np.int8), np.zeros(scores.shape[0], np.intp)
    if hasattr(scores, "class_sums"):
        return [complete], of
    odd = np.flatnonzero(map_rows(lambda rows: np.isnan(rows.sum(1, keepdims=True, dtype=float)), scores, 1)[:, 0])
    if not len(odd):
        return [complete], of
    kinds, which = np.unique(-np.isnan(np.asarray(scores[odd])).astype(np.int8), axis=0, return_inverse=True)
    of[odd] = which.ravel() + (len(odd) < len(of))
    return ([complete] if len(odd) < len(of) else []) + list(kinds), of


def _weighted_rows(scores: Any, weights: Float[np.ndarray, "2 m"]) -> Float[np.ndarray, "k 2"]:
    """Return the weighted sums of rows of cohort scores; missing ones have weight 0."""
    if hasattr(scores, "weighted_rows"):
        return scores.weighted_rows(weights)

    def sums(rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        found = rows.astype(np.float64) @ weights.T
        return np.nan_to_num(rows.astype(np.float64)) @ weights.T if np.isnan(found).any() else found

    return map_rows(sums, scores, 2)


def _vector(scores: npt.ArrayLike, size: int, what: str) -> npt.NDArray[np.float64]:
    vector = np.asarray(scores, dtype=np.float64)
    if vector.shape != (size,):
        raise InputError(f"{what} has shape {vector.shape}, but the cohort has {size} members")
    return vector
