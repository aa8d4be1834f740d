"""Adaptive norms whose cohort is ranked by the other side of a trial: statistics of each trial, not of each side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenscore.errors import InputError
from evenscore.large import Array, Scores
from evenscore.norms.options import NormOptions
from evenscore.norms.statistics import Statistics, location_scale, nonzero_std, row_statistics
from evenscore.parallel import run_blocks

__all__ = ["ranked_statistics", "rankings_by_name"]


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
        S_e, S_t, S_I = np.asarray(S_e), np.asarray(S_t), np.asarray(S_I)
        # Of tests and the cohort's tests, over the enrolment cohort; of enrolments and its enrolments, over the tests.
        rankings = _proximity(S_t.T, S_I.T).T, _proximity(S_e, S_I)
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
    chosen, size = np.zeros(ranking.T.shape, bool), len(ranking)
    first, stop = 0 if k is None else max(size - how.drop_top - k, 0), size - how.drop_top

    def choose(block: slice) -> None:
        values = ranking.T[block]
        ends = np.partition(values, [first, stop - 1], axis=1)[:, [first, stop - 1]]
        found = (values >= ends[:, :1]) & (values <= ends[:, 1:])
        odd = (found.sum(axis=1) != stop - first) | np.isnan(values).any(axis=1)  # of equals, the first ones are chosen
        found[odd] = False
        order = np.argsort(-values[odd], axis=1, kind="stable")  # NaN is last
        for at, members in zip(np.flatnonzero(odd), order[:, how.drop_top : size - first], strict=True):
            found[at, members] = ~np.isnan(values[at, members])
        chosen[block] = found

    if first < stop:
        run_blocks(choose, len(chosen), size, 1 << 18)
    if rows is not None and cols is not None:
        mean, std = _listed_statistics(scores, chosen, how, rows, cols)
    elif how.statistic == "mean":
        mean, std = _mean_std_by_products(scores, chosen, how)
    else:
        i, j = np.indices((len(scores), len(chosen))).reshape(2, -1)
        mean, std = np.reshape(_listed_statistics(scores, chosen, how, i, j), (2, len(scores), len(chosen)))
    return mean, nonzero_std(mean, std, how, side, rows)


def _mean_std_by_products(scores: Array, chosen: Array, how: NormOptions) -> Statistics:
    """Return mean and standard deviation of each row of ``scores`` over the members of each row of ``chosen``.

    Sums over chosen members are products with 0 and 1. They are taken of deviations from the mean of the whole row; a
    pair whose own mean is so far from it that digits are lost is computed by itself.
    """
    center, scale = row_statistics(scores, NormOptions(zero_std="one"), None, "row")
    deviations = ((scores - center[:, None]) / scale[:, None]).astype(scores.dtype)
    present = ~np.isnan(deviations)
    deviations[~present] = 0.0
    squares, complete = deviations**2, present.all()
    mean, std = np.empty((2, len(scores), len(chosen)))

    def work(block: slice) -> None:
        members = chosen[block].T.astype(scores.dtype)
        count = members.sum(axis=0, dtype=np.float64) if complete else present.astype(scores.dtype) @ members
        with np.errstate(invalid="ignore", divide="ignore"):
            shift = (deviations @ members) / count
            spread = (squares @ members) / count - shift**2
            factor = np.sqrt(count / np.maximum(count - how.ddof, 1))
        mean[:, block] = center[:, None] + shift * scale[:, None]
        lost = spread < 0.01 * shift**2
        std[:, block] = np.where(lost, np.inf, np.sqrt(np.maximum(spread, 0.0)) * factor * scale[:, None])

    run_blocks(work, len(chosen), chosen.shape[1], 1 << 18)
    rows, cols = np.nonzero(np.isinf(std))
    mean[rows, cols], std[rows, cols] = _listed_statistics(scores, chosen, how, rows, cols)
    return mean, std


def _listed_statistics(scores: Array, chosen: Array, how: NormOptions, rows: Array, cols: Array) -> Statistics:
    """Return the statistics of row ``rows[t]`` of ``scores`` over the members of row ``cols[t]`` of ``chosen``."""
    (mean, std), plain = np.empty((2, len(rows))), replace(how, drop_top=0)
    order = np.argsort(cols, kind="stable")
    places = np.split(order, np.searchsorted(cols[order], np.arange(1, len(chosen))))

    def work(block: slice) -> None:
        for at, members in zip(places[block], chosen[block], strict=True):
            if len(at):
                mean[at], std[at] = location_scale(scores[rows[at][:, None], np.flatnonzero(members)], plain)

    run_blocks(work, len(chosen), scores.size, 1 << 22)
    return mean, std


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


def _proximity(scores: Array, cohort: Array) -> Array:
    """Return minus the mean absolute difference of rows of ``scores`` and ``cohort``; NaN where no column has both."""
    out = np.empty((len(scores), len(cohort)))

    def work(block: slice) -> None:
        for row in range(block.start, block.stop):
            distance = np.abs(cohort - scores[row])
            shared = ~np.isnan(distance)
            with np.errstate(invalid="ignore"):
                out[row] = -np.where(shared, distance, 0.0).sum(axis=1, dtype=np.float64) / shared.sum(axis=1)

    run_blocks(work, len(scores), cohort.size, 1 << 20)
    return out
