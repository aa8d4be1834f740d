"""Adaptive norms whose cohort is ranked by the other side of a trial: statistics of each trial, not of each side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from evenscore.errors import InputError
from evenscore.large import Array, Scores
from evenscore.norms.options import NormOptions
from evenscore.norms.statistics import Statistics, location_scale, nonzero_std
from evenscore.parallel import run_blocks

__all__ = ["profile_rankings", "ranked_statistics", "rankings_by_name"]


def ranked_statistics(
    method: str,
    S_e: Scores,
    S_t: Scores,
    S_I: Scores,
    how: NormOptions,
    counts: tuple[int | None, int | None],
    rankings: tuple[Array, Array] | None,
    rows: Array | None,
    cols: Array | None,
) -> tuple[Statistics | tuple[()], Statistics | tuple[()]]:
    """Return mean and standard deviation of each side's scores against the members that the other side ranks highest.

    ``rankings`` are M x n values by which tests rank the test cohort, and m x N values by which enrolments rank the
    enrolment cohort, highest first. By default these are the scores of the other side, S_t and S_e; both cohorts must
    then have the same members in the same order. The statistics are m x n matrices, or one value per listed trial.
    """
    if how.select == "profile":
        if S_I is None:
            raise InputError("select='profile' needs the cohort against itself (S_I); give it")
        rankings = profile_rankings(np.asarray(S_e), np.asarray(S_t), np.asarray(S_I))
    elif rankings is None and (S_e is None or S_t is None or S_e.shape[1] != S_t.shape[0]):
        raise InputError("select='cross' needs the same cohort on both sides; give both, or another select")
    S_e, S_t = np.asarray(S_e), np.asarray(S_t)
    by_test, by_enroll = (S_t, S_e) if rankings is None else rankings
    enroll: Statistics | tuple[()] = ()
    test: Statistics | tuple[()] = ()
    if method in ("as", "az"):
        enroll = _statistics_by_ranking(S_e, by_test, counts[0], how, rows, cols, "enrolment")
    if method in ("as", "at"):
        mean, std = _statistics_by_ranking(S_t.T, by_enroll.T, counts[1], how, cols, rows, "test")
        test = (mean.T, std.T)
    return enroll, test


def _statistics_by_ranking(
    scores: Array,
    ranking: Array,
    k: int | None,
    how: NormOptions,
    rows: Array | None,
    cols: Array | None,
    side: str,
) -> Statistics:
    """Return statistics of rows of ``scores`` (p x M) over the top k members by each column of ``ranking`` (M x q)."""
    plain, n_cols = replace(how, drop_top=0), ranking.shape[1]
    if rows is None or cols is None:
        mean, std = np.empty((2, len(scores), n_cols))
        places: list[Any] = [(slice(None), col) for col in range(n_cols)]
        rows_of: list[Any] = [slice(None)] * n_cols
    else:
        mean, std = np.empty((2, len(rows)))
        order = np.argsort(cols, kind="stable")
        places = np.split(order, np.searchsorted(cols[order], np.arange(1, n_cols)))
        rows_of = [rows[at] for at in places]

    def work(block: slice) -> None:
        for col in range(block.start, block.stop):
            order = np.argsort(-ranking[:, col], kind="stable")  # NaN is last
            order = order[how.drop_top : np.count_nonzero(~np.isnan(ranking[:, col]))]
            members = order if k is None else order[:k]
            chosen = scores[rows_of[col]][:, members]
            mean[places[col]], std[places[col]] = location_scale(np.array(chosen), plain)

    run_blocks(work, n_cols, scores.size, 1 << 22)
    return mean, nonzero_std(mean, std, how, side, rows)


def rankings_by_name(S_e: Array, S_t: Array, cohort_enroll: Array, cohort_test: Array) -> tuple[Array, Array]:
    """Return rankings for ``select="cross"`` where the two cohorts differ, from the names of their members.

    Names are ids or speakers, None where one is unknown. A member is ranked by the mean of the scores that the other
    side has with members of the same name.
    """
    same = (cohort_test[:, None] == cohort_enroll) & (cohort_test[:, None] != np.array(None))  # M x N
    return _mean_over(same, S_t), _mean_over(same.T, S_e.T).T


def _mean_over(same: Array, scores: Array) -> Array:
    present = ~np.isnan(scores)
    with np.errstate(invalid="ignore"):
        return (same.astype(float) @ np.where(present, scores, 0.0)) / (same.astype(float) @ present)


def profile_rankings(S_e: Array, S_t: Array, S_I: Array) -> tuple[Array, Array]:
    """Return rankings by minus the mean absolute difference of cohort scores, over the members that both have."""
    by_test = _proximity(S_t.T, S_I.T).T  # tests against the cohort's tests, over the enrolment cohort
    return by_test, _proximity(S_e, S_I)  # enrolments against the cohort's enrolments, over the test cohort


def _proximity(scores: Array, cohort: Array) -> Array:
    """Return minus the mean distance of rows of ``scores`` from rows of ``cohort``; NaN where no column has both."""
    out = np.empty((len(scores), len(cohort)))

    def work(block: slice) -> None:
        for row in range(block.start, block.stop):
            distance = np.abs(cohort - scores[row])
            shared = ~np.isnan(distance)
            with np.errstate(invalid="ignore"):
                out[row] = -np.where(shared, distance, 0.0).sum(axis=1, dtype=np.float64) / shared.sum(axis=1)

    run_blocks(work, len(scores), cohort.size, 1 << 20)
    return out
