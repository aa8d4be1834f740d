"""Cross-validation by speaker where there are only summaries: one for each pair of folds that trials fall into.

A trial whose enrolment's speaker is in fold i and whose test's speaker is in fold j is counted in summary (i, j).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evenscore.calibrate.calibration import Calibration
from evenscore.calibrate.cross_validation import without_folds
from evenscore.calibrate.saturating import SaturatingCalibration
from evenscore.errors import InputError
from evenscore.metrics.summary import ScoreSummary
from evenscore.metrics.summary_groups import total
from evenscore.tables import NONTARGET, TARGET

__all__ = ["FoldPairs", "cross_fits", "fit_to_folds", "summary_cllr", "summed_cost"]

FoldPairs = Mapping[tuple[int, int], ScoreSummary]
Llrs = Callable[[Any], Any]


def fit_to_folds(
    kind: type[Any], pairs: FoldPairs, options: Mapping[str, Any], together: ScoreSummary | None = None
) -> Calibration:
    """Fit a calibration to all pairs of folds; one that is chosen by cross-validation uses the folds.

    ``together`` is a summary of all pairs, where there is a finer one than the sum of theirs.

    Examples
    --------
    >>> from evenscore import GaussianCalibration
    >>> from evenscore.metrics import summarize
    >>> fit_to_folds(GaussianCalibration, {(0, 0): summarize([0.0, 2.0, 4.0, 8.0], [0, 0, 1, 1])}, {}).mean
    array([1., 6.])
    """
    extra: dict[str, Any] = {}
    if kind is SaturatingCalibration:
        folds = sorted({fold for pair in pairs for fold in pair})
        parts = [({pair: part for pair, part in pairs.items() if fold not in pair}, fold) for fold in folds]
        extra["fold_summaries"] = [
            (total(others.values()), pairs[fold, fold]) for others, fold in parts if others and (fold, fold) in pairs
        ]
        if not extra["fold_summaries"]:
            raise InputError(
                "the saturating calibration is chosen by folds of speakers, of which too few are left; give more folds "
                "(at least 4), or more speakers"
            )
    fitted: Calibration = kind.fit(total(pairs.values()) if together is None else together, **extra, **options)
    return fitted


def cross_fits(kind: type[Any], pairs: FoldPairs, options: Mapping[str, Any]) -> dict[tuple[int, int], Calibration]:
    """Return for each pair of folds, the lower one first, a fit to the trials of all other folds.

    Examples
    --------
    >>> from evenscore import GaussianCalibration
    >>> from evenscore.metrics import summarize
    >>> parts = {(fold, fold): summarize([0.0, 2.0, 4.0 + fold, 8.0], [0, 0, 1, 1]) for fold in range(3)}
    >>> cross_fits(GaussianCalibration, parts, {})[0, 0].mean
    array([1.  , 6.75])
    """
    fits = {}
    for own in sorted({(min(pair), max(pair)) for pair in pairs}):
        others = {pair: part for pair, part in pairs.items() if not set(pair) & set(own)}
        counts = [sum(getattr(part, name) for part in others.values()) for name in ("n_target", "n_nontarget")]
        with without_folds(*own, *counts):
            fits[own] = fit_to_folds(kind, others, options)
    return fits


def summed_cost(llrs: Llrs, summary: ScoreSummary) -> tuple[float, float]:
    """Return the sums of log(1 + exp(llr)) of the non-targets and of log(1 + exp(-llr)) of the targets, by bins."""
    costs = []
    for label, sign in ((NONTARGET, 1.0), (TARGET, -1.0)):
        means, counts = summary.class_bins(label)
        costs.append(float(counts @ np.logaddexp(0.0, sign * llrs(means))) if means.size else 0.0)
    return costs[0], costs[1]


def summary_cllr(llrs: Llrs, summary: ScoreSummary) -> float:
    """Return the Cllr of scores after a calibration; all scores of a class in a bin have the LLR of their mean.

    Examples
    --------
    >>> from evenscore.metrics import summarize
    >>> summary_cllr(lambda scores: 0 * scores, summarize([2.0, -1.0], [1, 0]))
    1.0
    """
    nontarget, target = summed_cost(llrs, summary)
    return (target / summary.n_target + nontarget / summary.n_nontarget) / (2 * math.log(2))
