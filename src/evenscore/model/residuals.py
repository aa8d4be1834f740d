"""Fitting the densities of residuals to training trials whose own speakers are left out.

Speakers are dealt out to three folds. The trials of folds a and b are predicted from the scores of the others, as a
trial with a cohort is. A sample of parts and speakers is enough, so that this costs no more than training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from evenscore.data.labels import NONTARGET, TARGET, Labels
from evenscore.model.densities import Formula, ResidualDensities, Values
from evenscore.model.parameters import ScoreModel
from evenscore.model.pattern import Array, Index, connected
from evenscore.model.scoring import ScoreModelNormalizer, missing_kinds
from evenscore.model.sums import Part, Scores

__all__ = ["fit_residuals"]

_FOLDS = 3
_PARTS = 20  # phrases differ: four of ten digits gave a Cllr that was a third too high
_MOST = 1200  # enrolments, and tests, of the speakers in the sample
_KINDS = 6  # patterns of missing scores of enrolments, and of tests, in a pair of folds: each takes a prediction
_FEWEST_SPEAKERS = 4
_PER_SPEAKER = 10  # trials of one speaker are not independent: so many count
_BINS = 64  # in a unit of arsinh z
_PRIOR_MEAN = np.array([0.0, 0.0, 0.0, 3.0])  # of location, log scale, skew, log tail: nearly a Gaussian
_PRIOR_STD = np.array([0.7, 0.5, 0.5, 2.0])


def fit_residuals(model: ScoreModel, parts: Sequence[Part]) -> ResidualDensities | None:
    """Fit hyperbolic densities to residuals of labelled scores; None, Gaussian, if there are too few speakers.

    Why: own Cllr relative to that after logistic calibration on left-out training LLRs, both ways between two halves of
    the speakers (centred cosine; the cohort is the training half), Gaussian / hyperbolic: Common Voice 2.11 1.43 /
    1.09 .97, its validated clips 1.72 1.07 / .99 1.01, Arabic words 1.25 .94 / .90 .94, AudioMNIST .97 .90 / 1.03 .98,
    GE2E .57 .61 / .82 .88, where Gaussian LLRs are better (own Cllr .013 .015 against .017 .021).
    """
    plain, bins, n_speakers = replace(model, residuals=None), [np.zeros((2, 0)), np.zeros((2, 0))], 0
    for part in parts[:: -(-len(parts) // _PARTS)]:
        scores, key, row_group, col_group = _sample(*part)
        n_speakers += len(np.intersect1d(row_group, col_group))
        for h, z in enumerate(_left_out(plain, scores, key, row_group, col_group)):
            place, number = np.unique(np.floor(np.arcsinh(z) * _BINS), return_counts=True)
            bins[h] = np.concatenate([bins[h], [np.sinh((place + 0.5) / _BINS), number]], axis=1)
    if n_speakers < _FEWEST_SPEAKERS or not all(number.sum() for _, number in bins):
        return None
    location, log_scale, skew, log_tail = np.stack([_fit_class(z, number, n_speakers) for z, number in bins], axis=1)
    return ResidualDensities(location=location, scale=np.exp(log_scale), skew=skew, tail=np.exp(log_tail))


def _sample(scores: Scores, labels: Labels | None) -> tuple[Array, Array, Index, Index]:
    """Return scores, labels, and the speakers of rows and columns, for as many speakers as fit into the sample."""
    if labels is None:
        target = np.asarray(scores.labels) == TARGET
        row_group, col_group = connected(scores.rows[target], scores.cols[target], scores.shape)
    elif labels.by_speaker:
        row_group, col_group, _ = labels.speaker_codes
    else:
        i, j = np.nonzero(labels.matrix == TARGET)
        row_group, col_group = connected(i, j, labels.shape)
    known = np.concatenate([row_group, col_group])
    speakers = np.random.default_rng(0).permutation(np.unique(known[known >= 0]))
    sizes = [np.bincount(group[group >= 0], minlength=known.max() + 1)[speakers] for group in (row_group, col_group)]
    kept = speakers[: max(2 * _FOLDS, int((np.cumsum(sizes, 1).max(0) <= _MOST).sum()))]
    rows, cols = np.flatnonzero(np.isin(row_group, kept)), np.flatnonzero(np.isin(col_group, kept))
    if labels is None:
        trials = scores.select(np.isin(scores.rows, rows) & np.isin(scores.cols, cols))
        rows, cols = scores.enroll.find(trials.enroll_ids), scores.test.find(trials.test_ids)
        values, key = trials.to_matrix().scores.astype(float), Labels.from_trials(trials).matrix
    else:
        values, key = np.array(scores[rows][:, cols], dtype=float), labels.take(rows, cols).matrix
    values[key < 0] = np.nan
    return values, np.maximum(key, 0), row_group[rows], col_group[cols]


def _residual_of(label: int, variance: Array) -> Formula:
    """Return the standardized residual of one class, in place of the LLR."""

    def residual(s: Values, e0: Values, e1: Values, t0: Values, t1: Values, scale: float) -> Values:
        return (s - e1 - t1) * scale if label else (s - e0 - t0) * scale

    return residual, (float(variance[label] ** -0.5),)


def _left_out(model: ScoreModel, scores: Array, key: Array, row_group: Index, col_group: Index) -> list[Array]:
    """Return the residuals of non-targets and targets, predicted from the scores of other folds."""
    of = np.unique(np.concatenate([row_group, col_group]), return_inverse=True)[1]
    fold = np.argsort(np.argsort(-np.bincount(of), kind="stable"))[of] % _FOLDS  # the largest first
    row_fold, col_fold = fold[: len(row_group)], fold[len(row_group) :]
    found: list[list[Array]] = [[np.empty(0)], [np.empty(0)]]
    for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)):
        rows, cols = np.flatnonzero(row_fold == a), np.flatnonzero(col_fold == b)
        others_r, others_c = np.flatnonzero(~np.isin(row_fold, (a, b))), np.flatnonzero(~np.isin(col_fold, (a, b)))
        rows = rows[_common_kinds(scores[np.ix_(rows, others_c)])]
        cols = cols[_common_kinds(scores[np.ix_(others_r, cols)].T)]
        cohort, trials = np.ix_(others_r, others_c), np.ix_(rows, cols)
        normalizer = ScoreModelNormalizer(model, scores[cohort], key[cohort])
        S_e, S_t = scores[np.ix_(rows, others_c)], scores[np.ix_(others_r, cols)]
        for h in (NONTARGET, TARGET):
            z = normalizer.llr(scores[trials], S_e, S_t, formula=partial(_residual_of, h))
            found[h].append(z[(key[trials] == h) & ~np.isnan(z)])
    return [np.concatenate(parts) for parts in found]


def _common_kinds(scores: Array) -> Index:
    """Return the rows whose scores are missing in one of the commonest ways."""
    _, of = missing_kinds(scores)
    commonest = np.argsort(-np.bincount(of), kind="stable")[:_KINDS] if len(of) else of
    return np.flatnonzero(np.isin(of, commonest))


def _fit_class(z: Array, number: Array, n_speakers: int) -> Array:
    """Return location, log scale, skew and log tail of the largest posterior likelihood."""
    from scipy.optimize import minimize

    share, effective = number / number.sum(), min(number.sum(), _PER_SPEAKER * n_speakers)

    def loss(p: Array) -> float:
        location, log_scale, skew, log_tail = np.repeat(p[:, None], 2, axis=1)
        density = ResidualDensities(location=location, scale=np.exp(log_scale), skew=skew, tail=np.exp(log_tail))
        prior = 0.5 * (((p - _PRIOR_MEAN) / _PRIOR_STD) ** 2).sum()
        return float(prior - effective * (share @ density.log_density(z, NONTARGET)))

    bounds = [(-5.0, 5.0), (-3.0, 3.0), (-3.0, 3.0), (-5.0, 10.0)]
    runs = [minimize(loss, [0.0, -0.1, 0.0, tail], method="L-BFGS-B", bounds=bounds) for tail in (0.0, 2.5)]
    return np.asarray(min(runs, key=lambda run: float(run.fun)).x)
