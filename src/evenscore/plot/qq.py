"""Quantiles of the scores of each class against those of a Gaussian: where the tails are not what a model says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from evenscore.metrics.trials import ScoresLike, sort_scores
from evenscore.plot.histograms import class_moments
from evenscore.plot.style import CLASS_LOOK, GREY, axes_or_new, legend

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from evenscore.model.residuals import ResidualDensities

__all__ = ["plot_qq"]

_MOST = 400  # quantiles of a class that are drawn


def plot_qq(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    model: object | None = None,
    densities: ResidualDensities | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the quantiles of each class, in standard deviations from its mean, against those of a Gaussian.

    Gaussian scores follow the diagonal. Ends that bend away from it, down at the left and up at the right, are tails
    heavier than a Gaussian's; ends that both bend up or both bend down are skew. Infinite scores are not shown.

    Parameters
    ----------
    scores, labels
        As in `evenscore.metrics.validate`, or `SortedScores`.
    model
        A `ScoreModel` or a Gaussian or unsupervised calibration of these scores, whose means and standard deviations
        are taken; by default those of the scores themselves. For residuals that are standardized already it is
        ``GaussianCalibration(mean=[0, 0], variance=[1, 1])``.
    densities
        For standardized residuals (`left_out_residuals`): the densities of a score model, whose quantiles are drawn as
        dashed lines. The scores are then taken as they are.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_qq(rng.normal(3.0 * labels), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['1800 non-targets', '200 targets', 'Gaussian']
    """
    trials = sort_scores(scores, labels)
    sides = {"non-target": (trials.nontarget, trials.nontarget_mass), "target": (trials.target, trials.target_mass)}
    places = {name: _gaussian_places(*side) for name, side in sides.items()}
    if densities is not None:
        moments = [(0.0, 1.0), (0.0, 1.0)]
    elif model is None:
        moments = [_own_moments(*side) for side in sides.values()]
    else:
        moments = [(float(mean), float(variance) ** 0.5) for mean, variance in zip(*class_moments(model), strict=True)]
    ax = axes_or_new(ax)
    entries: list[tuple[Artist, str]] = []
    furthest = 0.0
    for name, (mean, deviation) in zip(sides, moments, strict=True):
        finite = np.isfinite(sides[name][0])
        theory, values = places[name][finite], (sides[name][0][finite] - mean) / deviation
        shown = _spread_out(theory)
        look = {**CLASS_LOOK[name], "linestyle": ""}
        (points,) = ax.plot(theory[shown], values[shown], markersize=3, markerfacecolor="none", **look)
        entries.append((points, f"{sides[name][0].size} {name}s"))
        furthest = max(furthest, float(np.abs(theory[shown]).max(initial=1.0)))
        if densities is not None:
            even = np.linspace(theory.min(initial=-1.0), theory.max(initial=1.0), 200)
            fitted = densities.quantile(even, list(sides).index(name))
            ax.plot(even, fitted, color=look["color"], linestyle="--", linewidth=1.2)
    (line,) = ax.plot([-furthest, furthest], [-furthest, furthest], color=GREY, linewidth=1, zorder=1)
    entries.append((line, "Gaussian"))
    ax.set_xlabel("Quantile of a Gaussian")
    ax.set_ylabel("Quantile of the scores (standard deviations)")
    legend(ax, entries, loc="upper left")
    return ax


def _gaussian_places(scores: npt.NDArray[np.floating], mass: npt.NDArray[np.float64] | None) -> npt.NDArray[np.float64]:
    """Return the Gaussian quantile at the middle of each score's share of the class."""
    shares = (np.arange(scores.size) + 0.5) / scores.size if mass is None else (mass[1:] + mass[:-1]) / 2
    return np.asarray(ndtri(shares))


def _own_moments(scores: npt.NDArray[np.floating], mass: npt.NDArray[np.float64] | None) -> tuple[float, float]:
    """Return mean and standard deviation of the finite scores; the latter is 1 if they do not differ."""
    finite = np.isfinite(scores)
    weights = np.ones(scores.size) if mass is None else np.diff(mass)
    if not weights[finite].sum():
        return 0.0, 1.0
    values, weights = scores[finite].astype(np.float64), weights[finite]
    mean = float(np.average(values, weights=weights))
    largest = float(np.abs(values - mean).max()) or 1.0  # whose square may be too large for a number
    return mean, largest * float(np.average(((values - mean) / largest) ** 2, weights=weights)) ** 0.5 or 1.0


def _spread_out(places: npt.NDArray[np.float64]) -> npt.NDArray[np.intp]:
    """Return which of many quantiles to draw: evenly spaced on the axis of the Gaussian, with all of the ends."""
    if places.size <= _MOST:
        return np.arange(places.size)
    even = np.linspace(places[0], places[-1], _MOST)
    ends = np.r_[:20, places.size - 20 : places.size]
    near = np.clip(np.searchsorted(places, even), 0, places.size - 1)
    return np.unique(np.concatenate([ends, near]))
