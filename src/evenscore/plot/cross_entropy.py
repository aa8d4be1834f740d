"""Empirical cross-entropy of LLRs over a range of priors: the ECE plot of forensic reports."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy.typing as npt

from evenscore.metrics.forensic import ece_curve
from evenscore.plot.bayes_error import draw_over_priors
from evenscore.plot.style import SystemsLike, as_systems, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_ece"]

_HIGHEST = 1.4  # bits; above 1, LLRs mislead at even odds, and how much matters little


def plot_ece(
    scores: SystemsLike,
    labels: npt.ArrayLike | None = None,
    *,
    log_odds: npt.ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the empirical cross-entropy against the prior log-odds to the base 10: actual, minimum and of the prior.

    The gap between the actual and the minimum curve is what better calibration could gain at that prior; above the
    curve of the prior alone, the LLRs do harm.

    Parameters
    ----------
    scores, labels
        LLRs, as in `evenscore.metrics.validate`, or `SortedScores`; or several systems by name.
    log_odds
        Prior log-odds, natural logarithms, as in `evenscore.metrics.ece_curve`.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_ece(rng.normal(np.where(labels, 2.0, -2.0), 2.0), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['actual', 'minimum', 'default']
    """
    curves = {name: ece_curve(trials, log_odds=log_odds) for name, trials in as_systems(scores, labels).items()}
    ax = draw_over_priors(curves, axes_or_new(ax), unit=math.log(10.0), loc="upper right")
    ax.set_ylim(0, min(ax.get_ylim()[1], _HIGHEST))
    ax.set_xlabel("Prior log-odds, base 10")
    ax.set_ylabel("Empirical cross-entropy (bits)")
    return ax
