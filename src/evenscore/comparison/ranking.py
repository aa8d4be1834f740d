"""Methods against each other: paired differences on the same draws of speakers, and the order that follows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from evenscore.comparison.comparison import METRICS, MethodResult
from evenscore.comparison.judging import Judged
from evenscore.comparison.methods import RAW
from evenscore.metrics import Interval, PairedTest
from evenscore.metrics.uncertainty import Metric

__all__ = ["ranked"]


def ranked(judged: Sequence[Judged], rank_by: Metric, level: float, n_speakers: int) -> tuple[MethodResult, ...]:
    """Return the results, best first; methods that are equally good stay in the order in which they come."""
    order = sorted(judged, key=lambda one: one.figures.values[rank_by])
    raw = next(one for one in judged if one.method.name == RAW)
    shares = _best_shares(order, rank_by)
    return tuple(
        MethodResult(
            name=one.method.name,
            norm=one.method.norm,
            options=one.method.options,
            scores=one.measured.scores,
            llrs=one.measured.llrs,
            summaries=one.measured.summaries,
            figures=one.figures,
            conditions=one.measured.conditions,
            uncalibrated=one.measured.uncalibrated,
            training=one.training,
            to_raw={metric: paired(one, raw, metric, level, n_speakers) for metric in METRICS},
            to_best={metric: paired(one, order[0], metric, level, n_speakers) for metric in METRICS},
            best_share=share,
            calibration=one.calibration,
            model=one.model,
            is_llr=one.is_llr,
            notes=one.notes,
            seconds=one.seconds,
        )
        for one, share in zip(order, shares, strict=True)
    )


def paired(a: Judged, b: Judged, metric: Metric, level: float, n_speakers: int) -> PairedTest:
    """Return what `evenscore.paired_test` says of two methods, from the draws that both were measured on."""
    first, second = a.replicates[metric], b.replicates[metric]
    with np.errstate(invalid="ignore"):  # two infinite Cllr: no difference can be seen
        differences = np.nan_to_num(first - second, nan=0.0, posinf=np.inf, neginf=-np.inf)
    x, y = a.figures.values[metric], b.figures.values[metric]
    against = min(np.count_nonzero(differences <= 0), np.count_nonzero(differences >= 0))
    return PairedTest(
        metric=metric,
        a=x,
        b=y,
        difference=x - y if x != y else 0.0,
        interval=Interval.of(differences, level),
        p_value=float(min(1.0, 2 * (1 + against) / (1 + len(differences)))),
        replicates=len(differences),
        n_speakers=n_speakers,
    )


def _best_shares(order: Sequence[Judged], rank_by: Metric) -> list[float]:
    """Return in which share of the draws each method is as good as the best; equal methods share."""
    values: npt.NDArray[np.float64] = np.stack([one.replicates[rank_by] for one in order])
    return [float(share) for share in (values == values.min(axis=0)).mean(axis=1)]
