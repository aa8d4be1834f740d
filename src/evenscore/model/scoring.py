"""Scoring with the score model: cohort scores in, log-likelihood ratios out.

The cohort scores do not depend on the hypothesis, so it is enough to condition on them once:

    (x~, y~) | S_I, s_e, s_t ~ N(m, V),   m = constant + F s_e + G s_t                                (S1)
    p_h = mu_h + [alpha_h beta_h] m,      v_h = sigma_h^2 + [alpha_h beta_h] V [alpha_h beta_h]'      (S2)
    LLR = (log(v_0/v_1) + (s - p_0)^2 / v_0 - (s - p_1)^2 / v_1) / 2                                  (S3)

V, F and G depend only on which scores there are, and of which class: on the labels of s_e and s_t. So all trials of a
matrix with the same labels take two thin products, which give p_h = e_h + t_h, and one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.labels import NONTARGET
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import is_dask, map_pairs, map_rows
from evenscore.model.densities import Formula, gaussian_llr
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern import MISSING, Array, Index, PairLabels, Pattern, find_pattern, refine
from evenscore.model.posterior import background_core, factorize, solve
from evenscore.model.statistics import lay_out
from evenscore.model.sums import Scores, labelled_parts, matrix_sums
from evenscore.parallel import one_blas_thread

__all__ = ["ScoreModelNormalizer", "lgsm_norm", "missing_kinds"]

Codes = npt.NDArray[np.int8]
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
        raise InputError(f"the model is a {type(model).__name__}, but must be a ScoreModel; see fit_score_model")
    return ScoreModelNormalizer(model, blocks).normalize(blocks)


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
            cohort, labels = cohort.cohort, cohort.cohort_labels if labels is None else labels
        self.model, self._table = model, cohort if hasattr(cohort, "enroll") else None
        scores = np.empty((0, 0)) if cohort is None else cohort if self._table is None else cohort.scores
        scores = scores if is_dask(scores) or hasattr(scores, "class_sums") else np.asarray(scores)
        if labels is None:
            pairs = PairLabels.from_exceptions(scores.shape, *np.empty((3, 0), np.intp))
        else:
            pairs = PairLabels.from_labels(labelled_parts(cohort, labels)[0][1])  # type: ignore[arg-type]
        with one_blas_thread():
            center = float(model.mu[0])
            sums = scores.class_sums(pairs) if hasattr(scores, "class_sums") else matrix_sums(scores, pairs, center)
        sums, self._pattern = sums.moved(model.mu), find_pattern(sums.labels)
        self._gamma = sums.rows / model.sigma2 @ model.alpha, sums.cols / model.sigma2 @ model.beta  # (E2)
        self._predictions: dict[tuple[bytes, bytes], Prediction] = {}

    def normalize(self, blocks: ScoreBlocks) -> ScoreMatrix | TrialList:
        """Return the LLRs of the trials; the cohort of the blocks must be that of this normalizer, or be left out."""
        trials = blocks.trials
        if self._table is not None and blocks.cohort is not self._table:
            labels = {"enroll_labels": blocks.enroll_labels, "test_labels": blocks.test_labels}
            blocks = ScoreBlocks(trials, blocks.enroll, blocks.test, self._table, **labels)  # type: ignore[arg-type]
        enroll, test = blocks.enroll and blocks.enroll.scores, blocks.test and blocks.test.scores
        e_key, t_key = (None if k is None else k.matrix for k in (blocks.enroll_labels, blocks.test_labels))
        return trials.with_normalized(self.llr(trials.scores, enroll, test, e_key, t_key, trials.rows, trials.cols))

    def llr(
        self,
        scores: Scores,
        enroll: Scores | None = None,
        test: Scores | None = None,
        enroll_labels: Codes | None = None,
        test_labels: Codes | None = None,
        rows: Index | None = None,
        cols: Index | None = None,
        formula: Callable[[Array], Formula] | None = None,
        out: Array | None = None,
    ) -> Scores:
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
        formula
            In place of the LLR, another function of scores, predictions and their variance.
        out
            Array of the shape of the scores, or these themselves, where the LLRs go; new memory takes as long as they.
        """
        formula, columns = self.formula if formula is None else formula, None if test is None else test.T
        if not is_dask(scores) and not hasattr(scores, "class_sums"):
            scores = np.asarray(scores)
            scores = scores if scores.dtype.kind == "f" else scores.astype(float)  # the LLRs of whole numbers are not
        if out is not None and (is_dask(scores) or out.shape != scores.shape or out.dtype.kind != "f"):
            raise InputError(f"out must be an array of {scores.shape} floating-point numbers, and scores not of dask")
        m, n = scores.shape if rows is None or cols is None else (rows.max(initial=-1) + 1, cols.max(initial=-1) + 1)

        def apply(p: Prediction, s: Scores, S_e: Scores, S_t: Scores, m: int, n: int, *where: Array | None) -> Scores:
            e = p.offset + (np.zeros((m, 2)) if S_e is None else _weighted_rows(S_e, p.enroll))
            t = np.zeros((n, 2)) if S_t is None else _weighted_rows(S_t, p.test)
            function, constants = formula(p.variance)
            return map_pairs(function, s, [e[:, 0], e[:, 1]], [t[:, 0], t[:, 1]], constants, *where)

        with one_blas_thread():
            e_kinds, e_of = _kinds(enroll, enroll_labels, m, len(self._gamma[1]))
            t_kinds, t_of = _kinds(columns, None if test_labels is None else test_labels.T, n, len(self._gamma[0]))
            if len(e_kinds) == len(t_kinds) == 1:
                return apply(self._predict(e_kinds[0], t_kinds[0]), scores, enroll, columns, m, n, rows, cols, out)
            if is_dask(scores):
                return self._llr_of_chunks(scores, enroll, test, enroll_labels, test_labels)
            i, j = (part.ravel() for part in np.indices(scores.shape)) if rows is None or cols is None else (rows, cols)
            kind, flat = e_of[i] * len(t_kinds) + t_of[j], np.asarray(scores).ravel()
            found, order = np.empty_like(flat), np.argsort(kind, kind="stable")
            for at in np.split(order, np.flatnonzero(np.diff(kind[order])) + 1) if len(order) else []:
                p = self._predict(e_kinds[e_of[i[at[0]]]], t_kinds[t_of[j[at[0]]]])
                (e_at, r), (t_at, c) = np.unique(i[at], return_inverse=True), np.unique(j[at], return_inverse=True)
                some = None if enroll is None else enroll[e_at], None if columns is None else columns[t_at]
                found[at] = apply(p, flat[at], *some, len(e_at), len(t_at), r, c)
            return np.positive(found.reshape(scores.shape), out=out)

    def _llr_of_chunks(self, scores: Scores, *sides: Scores | None) -> Scores:
        """Return the LLRs of a dask array whose cohort scores have several patterns; these are held in memory."""
        enroll, test, e_labels, t_labels = (part if part is None else np.asarray(part) for part in sides)

        def chunk(part: Scores, block_info: Any) -> Scores:
            r, c = (slice(*ends) for ends in block_info[0]["array-location"])
            e, e_key = (side if side is None else side[r] for side in (enroll, e_labels))
            t, t_key = (side if side is None else side[:, c] for side in (test, t_labels))
            return self.llr(part, e, t, e_key, t_key)

        return scores.map_blocks(chunk, dtype=scores.dtype, meta=np.empty((0, 0), scores.dtype))

    def formula(self, variance: Array) -> Formula:
        """Return the LLR of scores whose predictions have this variance, and its constants."""
        if self.model.residuals is not None:
            return self.model.residuals.formula(variance)
        half = (0.5 / variance).tolist()
        return gaussian_llr, (0.5 * math.log(half[1] / half[0]), *half)

    def normalize_one(
        self,
        score: float,
        enroll: npt.ArrayLike | None = None,
        test: npt.ArrayLike | None = None,
        *,
        enroll_labels: npt.ArrayLike | None = None,
        test_labels: npt.ArrayLike | None = None,
    ) -> float:
        """Return the log-likelihood ratio of one trial, in microseconds if its cohort scores are complete.

        Takes its score, its cohort scores in the order of the cohort (NaN where one is missing, None if there are
        none), and labels of these, as `llr` does. Further scores, behind those of the cohort, need labels: 1 for those
        against other recordings that are known to be of its speaker.

        Examples
        --------
        >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
        >>> normalizer = ScoreModelNormalizer(model)
        >>> round(normalizer.normalize_one(2.5), 3)
        0.889
        >>> round(normalizer.normalize_one(2.5, [2.5, 2.2], enroll_labels=[1, 1]), 3)
        3.708
        """
        e, e_key = _one_side(enroll, enroll_labels, len(self._gamma[1]), "enroll")
        t, t_key = _one_side(test, test_labels, len(self._gamma[0]), "test")
        p = self._predict(e_key, t_key)
        p0, p1 = (p.enroll @ e + p.test @ t + p.offset).tolist()
        formula, constants = self.formula(p.variance)
        return float(formula(float(score), p0, p1, 0.0, 0.0, *constants))

    def _predict(self, enroll_labels: Codes, test_labels: Codes) -> Prediction:
        """Return the prediction of trials with these labels; the last ones are remembered."""
        key = enroll_labels.tobytes(), test_labels.tobytes()
        if key not in self._predictions:
            if len(self._predictions) >= _KEPT:
                self._predictions.clear()
            with one_blas_thread():
                self._predictions[key] = predict(self.model, self._pattern, self._gamma, enroll_labels, test_labels)
        return self._predictions[key]


def _one_side(scores: npt.ArrayLike | None, labels: npt.ArrayLike | None, size: int, name: str) -> tuple[Array, Codes]:
    """Return the cohort scores of one side of a single trial, 0 where they are missing, and their labels."""
    s = np.full(size, np.nan) if scores is None else np.asarray(scores, np.float64)
    key = np.zeros(size, np.int8) if labels is None else np.asarray(labels, np.int8)
    if s.shape != key.shape or s.ndim != 1 or len(s) < size:
        raise InputError(f"{name} has shape {s.shape} and its labels {key.shape}, but the cohort has {size} members")
    complete = s.dot(s) >= 0  # the fastest way to find NaN
    return (s, key) if complete else (np.where(np.isnan(s), 0.0, s), np.where(np.isnan(s), np.int8(MISSING), key))


def _kinds(scores: Scores | None, labels: Codes | None, number: int, size: int) -> tuple[list[Codes], Index]:
    """Return the different labels that rows of cohort scores have, and which of them each row has."""
    if scores is None:
        return [np.full(size, MISSING, np.int8)], np.zeros(number, np.intp)
    if scores.shape[1] < size:
        raise InputError(f"a side of the trials has {scores.shape[1]} cohort scores, but the cohort {size} members")
    if labels is None:
        return missing_kinds(scores)
    key = np.where(np.isnan(np.asarray(scores)), MISSING, np.asarray(labels)).astype(np.int8)
    kinds, of = np.unique(key, axis=0, return_inverse=True)
    return list(kinds), of.ravel()


def missing_kinds(scores: Scores) -> tuple[list[Codes], Index]:
    """Return the labels (0, or -1 for missing) of the different rows of cohort scores, and which of them a row has."""
    complete, of = np.full(scores.shape[1], NONTARGET, np.int8), np.zeros(scores.shape[0], np.intp)
    if hasattr(scores, "class_sums"):
        return [complete], of
    odd = np.flatnonzero(map_rows(lambda rows: np.isnan(rows.sum(1, keepdims=True, dtype=float)), scores, 1)[:, 0])
    if not len(odd):
        return [complete], of
    kinds, which = np.unique(-np.isnan(np.asarray(scores[odd])).astype(np.int8), axis=0, return_inverse=True)
    of[odd] = which.ravel() + (len(odd) < len(of))
    return ([complete] if len(odd) < len(of) else []) + list(kinds), of


class Prediction(NamedTuple):
    """What a cohort says about trials whose cohort scores have the same labels, (S2)."""

    offset: Array  #: p_h where all cohort scores are 0
    enroll: Array  #: weights of s_e in p_h, 2 x M
    test: Array  #: weights of s_t in p_h, 2 x N
    variance: Array  #: v_h


def _weighted_rows(scores: Scores, weights: Array) -> Array:
    """Return the weighted sums of rows of cohort scores; missing ones have weight 0."""
    if hasattr(scores, "weighted_rows"):
        return np.asarray(scores.weighted_rows(weights))

    def sums(rows: npt.NDArray[np.floating]) -> Array:
        found = rows.astype(np.float64) @ weights.T
        return np.nan_to_num(rows.astype(np.float64)) @ weights.T if np.isnan(found).any() else found

    return map_rows(sums, scores, 2)


def predict(
    model: ScoreModel, pattern: Pattern, gamma: tuple[Array, Array], enroll_labels: Codes, test_labels: Codes
) -> Prediction:
    """Condition a trial's hidden variables on all cohort scores: those of N x M pairs, with their evidence, (E2).

    The first M labels of s_e (and N of s_t) are those of the cohort's members; others are labels of scores against
    further recordings, which have no scores with the cohort. x~ and y~ are solved for last.
    """
    N, M, D = len(gamma[0]), len(gamma[1]), model.dim
    pattern = refine(pattern, test_labels[:N] % 3, enroll_labels[:M] % 3)
    row_label, col_label = np.empty(len(pattern.row_size), np.int8), np.empty(len(pattern.col_size), np.int8)
    row_label[pattern.row_class], col_label[pattern.col_class] = test_labels[:N], enroll_labels[:M]
    row_z, col_z, known = _solve_cohort(model, pattern, row_label, col_label)
    # A recording that has a score with this trial only adds its own hidden variable to the noise of that score, (S4).
    alone_e, alone_t = model.sigma2 + (model.beta**2).sum(1), model.sigma2 + (model.alpha**2).sum(1)
    parts = enroll_labels[:M], enroll_labels[M:], test_labels[:N], test_labels[N:]
    e, e_more, t, t_more = (np.bincount(part + 1, minlength=3)[1:] for part in parts)  # scores of each class
    precision = np.eye(2 * D) - known
    precision[:D, :D] += (model.alpha.T * (e / model.sigma2 + e_more / alone_e)) @ model.alpha
    precision[D:, D:] += (model.beta.T * (t / model.sigma2 + t_more / alone_t)) @ model.beta
    V = np.linalg.inv(precision)  # (S1)
    row_cov, col_cov = -row_z @ V, -col_z @ V  # of the cohort's hidden variables with (x~, y~), by class
    F, G = np.empty((2 * D, len(enroll_labels))), np.empty((2 * D, len(test_labels)))
    F[:, :M] = _weights(model.sigma2, model.alpha, model.beta, col_label, V[:D], col_cov)[:, pattern.col_class]
    F[:, M:] = _weights(alone_e, model.alpha, model.beta, enroll_labels[M:], V[:D])
    G[:, :N] = _weights(model.sigma2, model.beta, model.alpha, row_label, V[D:], row_cov)[:, pattern.row_class]
    G[:, N:] = _weights(alone_t, model.beta, model.alpha, test_labels[N:], V[D:])
    constant = np.zeros(2 * D) - F @ model.mu[np.maximum(enroll_labels, 0)] - G @ model.mu[np.maximum(test_labels, 0)]
    for d in range(D):
        constant += np.bincount(pattern.row_class, gamma[0][:, d], len(row_label)) @ row_cov[:, d]
        constant += np.bincount(pattern.col_class, gamma[1][:, d], len(col_label)) @ col_cov[:, d]
    both = np.concatenate([model.alpha, model.beta], axis=1)
    return Prediction(model.mu + both @ constant, both @ F, both @ G, model.sigma2 + ((both @ V) * both).sum(1))  # (S2)


def _weights(v: Array, mine: Array, theirs: Array, labels: Codes, own: Array, others: Array | None = None) -> Array:
    """Return the weights of cohort scores in m: a score adds its loadings / v to the evidence of its two sides.

    ``own`` is the covariance of the trial's side with (x~, y~), ``others`` that of the cohort's members.
    """
    h = np.maximum(labels, 0)
    found = mine[h] @ own + (0.0 if others is None else (theirs[h][:, :, None] * others).sum(1))
    return (found * ((labels != MISSING) / v[h])[:, None]).T


def _solve_cohort(model: ScoreModel, pattern: Pattern, row_label: Codes, col_label: Codes) -> tuple[Array, ...]:
    """Return Lambda_c^-1 B for the members of every class (R x D x P and C x D x P), and B' Lambda_c^-1 B.

    Lambda_c is the precision of the cohort's hidden variables, s_e and s_t included, and B couples them with (x~, y~).
    """
    D, layout = model.dim, lay_out(pattern, ordered=False)
    row_u, col_u = np.sqrt(pattern.row_size), np.sqrt(pattern.col_size)
    c = np.concatenate([model.score_precision()[2], np.zeros((1, D, D))])  # the last one is for missing scores
    row_B, col_B = np.zeros((len(row_u), 2 * D, D)), np.zeros((len(col_u), 2 * D, D))
    row_B[:, D:] = (row_u[:, None, None] * c[row_label]).swapaxes(1, 2)  # x_i with y~
    col_B[:, :D] = col_u[:, None, None] * c[col_label]  # y_j with x~
    row_n = pattern.row_n + np.stack([row_label == 0, row_label == 1], 1)  # with the scores of s_t and s_e
    col_n = pattern.col_n + np.stack([col_label == 0, col_label == 1], 1)
    W, t, solved = np.zeros((2 * D, 2 * D)), np.zeros((2 * D, 2 * D)), []  # U' P^-1 U and U' P^-1 B
    for n in range(len(layout.shapes)):
        u, v = layout.rows(n, row_u), layout.cols(n, col_u)
        f = factorize(model, layout.coupling(n, u, v)[0], layout.rows(n, row_n), layout.cols(n, col_n), u, v)
        x, y = solve(f, layout.rows(n, row_B).swapaxes(1, 2), layout.cols(n, col_B).swapaxes(1, 2))
        W += f.UPU.sum(0)
        t[:D] += np.tensordot(u, x, ((0, 1), (0, 2))).T
        t[D:] += np.tensordot(v, y, ((0, 1), (0, 2))).T
        solved.append((f, x, y))
    shift = background_core(model, W[None], np.array([pattern.background == NONTARGET]))[0][0] @ t
    row_z, col_z = np.empty(row_B.shape), np.empty(col_B.shape)
    for n, (f, x, y) in enumerate(solved):
        rows, cols = layout.row_place[0] == n, layout.col_place[0] == n
        x, y = x - (f.row_pu @ shift).transpose(0, 3, 1, 2), y - (f.col_pu @ shift).transpose(0, 3, 1, 2)  # (E3)
        row_z[rows] = x[layout.row_place[1, rows], :, layout.row_place[2, rows]]
        col_z[cols] = y[layout.col_place[1, cols], :, layout.col_place[2, cols]]
    known = np.tensordot(row_B, row_z, ((0, 2), (0, 2))) + np.tensordot(col_B, col_z, ((0, 2), (0, 2)))
    row_z, col_z = row_z / row_u[:, None, None], col_z / col_u[:, None, None]
    return row_z.swapaxes(1, 2), col_z.swapaxes(1, 2), known
