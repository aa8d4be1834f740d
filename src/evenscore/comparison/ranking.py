"""Methods against each other: paired differences on the same draws of speakers, and the order that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from evenscore.comparison.comparison import METRICS, Measured, MethodResult
from evenscore.comparison.methods import RAW
from evenscore.metrics import PairedTest
from evenscore.metrics.uncertainty import Metric

__all__ = ["ranked"]


def ranked(judged: Sequence[MethodResult], rank_by: Metric, level: float, n_speakers: int) -> tuple[MethodResult, ...]:
    """Return the results, best first; methods that are equally good stay in the order in which they come."""
    order = sorted(judged, key=lambda one: one.figures.values[rank_by])
    raw = next(one for one in judged if one.name == RAW)
    return tuple(
        replace(
            one,
            to_raw={metric: _paired(one, raw, metric, level, n_speakers) for metric in METRICS},
            to_best={metric: _paired(one, order[0], metric, level, n_speakers) for metric in METRICS},
            best_share=share,
        )
        for one, share in zip(order, _best_shares(order, rank_by), strict=True)
    )


def _paired(a: Measured, b: Measured, metric: Metric, level: float, n_speakers: int) -> PairedTest:
    """Return what `evenscore.paired_test` says of two methods, from the draws that both were measured on."""
    values = a.figures.values[metric], b.figures.values[metric]
    return PairedTest.of(metric, values, (a.replicates[metric], b.replicates[metric]), level, n_speakers)


def _best_shares(order: Sequence[Measured], rank_by: Metric) -> list[float]:
    """Return in which share of the draws each method is as good as the best; equal methods share."""
    values: npt.NDArray[np.float64] = np.stack([one.replicates[rank_by] for one in order])
    return [float(share) for share in (values == values.min(axis=0)).mean(axis=1)]
