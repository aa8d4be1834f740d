"""Adaptive norms in which each side takes its scores against the members that are nearest to the other side."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evenscore.compiled import few
from evenscore.errors import InputError
from evenscore.norms.few_scores import best_members
from evenscore.norms.options import NormOptions
from evenscore.norms.sides import Codes, Side
from evenscore.norms.statistics import Summary, cross_statistics
from evenscore.norms.trial_scores import TrialScores
from evenscore.tables.axis import Axis
from evenscore.tables.ids import shown
from evenscore.threads import in_parallel

__all__ = ["add_cross_side"]


def add_cross_side(
    table: TrialScores, side: Side, other: Side, method: str, options: NormOptions, factor: float
) -> None:
    """Add one side's normalized scores, times a factor, where the other side's elements rank the cohort."""
    place = _shared_cohort(side, other)
    summary = Summary.of(options, method, side.shape[1])
    most = int(side.groups.sizes[side.groups.present(side.speaker)].max(initial=0))
    length = min(side.shape[1], summary.k + summary.drop + most)
    picked, taken = _ranked_members(other, length)
    picked = place[picked]
    column = np.arange(other.shape[0])
    for rows in side.pieces(beside=42 * other.shape[0]):
        X = side.scores(rows)
        needed = table.needed(side.name, rows, column, other.shape[0])
        needed = np.ones((len(X), other.shape[0]), dtype=bool) if needed is None else needed
        members = (side.groups.code, side.speaker[rows], picked, taken, needed)
        found = cross_statistics(X, members, summary, side.shape[0]).settled(options, side.ids[rows], side.what)
        at, mean, std = table.look_up(side.name, rows, column, found.mean, found.std)
        table.out[at] += factor * ((table.raw(at) - mean) / std)


def _ranked_members(side: Side, length: int) -> tuple[npt.NDArray[np.int32], Codes]:
    """Return the cohort members that score highest with each element of a side, best first, and how many there are."""
    picked = np.zeros((side.shape[0], length), dtype=np.int32)
    taken = np.zeros(side.shape[0], dtype=np.int64)
    for rows in side.pieces():
        X = side.scores(rows)
        if few(*side.shape):
            picked[rows], taken[rows] = best_members(X, length)
            continue
        from evenscore.norms.kernel_ranks import ranked_members

        ranks, lengths = picked[rows], taken[rows]
        in_parallel(lambda start, stop: ranked_members(X, start, stop, ranks, lengths), *X.shape)  # noqa: B023
    return picked, taken


def _shared_cohort(side: Side, other: Side) -> npt.NDArray[np.int32]:
    """Return where each cohort member of the other side stands in this side's cohort."""
    odd = set(side.cohort_ids) ^ set(other.cohort_ids)
    if odd:
        raise InputError(
            "select='cross' needs the same cohort on both sides, but "
            f"{shown(sorted(odd))} {'is' if len(odd) == 1 else 'are'} only in one of them; use select='own'"
        )
    return Axis(side.cohort_ids).find(other.cohort_ids).astype(np.int32)
