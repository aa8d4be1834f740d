"""Histograms of the scores of each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from evenscore.calibrate.bayesian import BayesianCalibration
from evenscore.calibrate.gaussian import GaussianCalibration
from evenscore.calibrate.unsupervised import UnsupervisedCalibration
from evenscore.errors import InputError
from evenscore.metrics.trials import ScoresLike, sort_scores
from evenscore.model.parameters import ScoreModel
from evenscore.plot.style import CLASS_LOOK, axes_or_new, legend, visible_range

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["class_densities", "class_moments", "plot_histograms"]

_GAUSSIAN = (ScoreModel, GaussianCalibration, UnsupervisedCalibration)  # models whose classes are Gaussian


def plot_histograms(
    scores: ScoresLike,
    labels: npt.ArrayLike | None = None,
    *,
    model: object | None = None,
    bins: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a histogram of the scores of each class, and the densities that a model has for them.

    Each class has area 1, but for scores far out (0.05 % at either end) and infinite ones, which are not shown.

    Parameters
    ----------
    scores, labels
        As in `evenscore.metrics.validate`, or `SortedScores`.
    model
        A `ScoreModel` or a Gaussian, Bayesian or unsupervised calibration of these scores; its densities are drawn
        as lines.
    bins
        How many, by default up to 100, fewer for fewer trials.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> from evenscore import GaussianCalibration
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> scores = rng.normal(3.0 * labels)
    >>> ax = plot_histograms(scores, labels, model=GaussianCalibration.fit(scores, labels))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['1800 non-targets', '200 targets', 'non-targets, model', 'targets, model']
    """
    if bins is not None and bins < 1:
        raise InputError(f"bins is {bins}, but there must be at least 1")
    trials = sort_scores(scores, labels)
    sides = {"non-target": (trials.nontarget, trials.nontarget_mass), "target": (trials.target, trials.target_mass)}
    low, high = visible_range(trials.target, trials.nontarget)
    least = min(trials.target.size, trials.nontarget.size)
    edges = np.linspace(low, high, 1 + (bins or int(np.clip(4 * least ** (1 / 3), 10, 100))))
    curve = np.linspace(low, high, 500)
    if model is not None:
        from evenscore.plot.histograms import class_densities

        densities = class_densities(model, curve)
    ax = axes_or_new(ax)
    entries: list[tuple[Artist, str]] = []
    highest = 0.0
    for name, (side, mass) in sides.items():
        look = CLASS_LOOK[name]
        heights = _heights(side, mass, edges)
        filled = ax.stairs(heights, edges, fill=True, color=look["color"], alpha=0.3, linewidth=0)
        ax.stairs(heights, edges, color=look["color"], linestyle=look["linestyle"], linewidth=0.8)
        highest = max(highest, float(heights.max()))
        entries.append((filled, f"{side.size} {name}s"))
    if model is not None:
        for name, density in zip(sides, densities, strict=True):
            look = CLASS_LOOK[name]
            (line,) = ax.plot(curve, density, color=look["color"], linestyle=look["linestyle"])
            entries.append((line, f"{name}s, model"))
            highest = max(highest, float(density.max()))
    ax.set_xlim(low, high)
    ax.set_ylim(0, 1.22 * highest or 1.0)  # with room for the legend
    ax.set_xlabel("Score")
    ax.set_ylabel("Density")
    legend(ax, entries, loc="upper center", ncols=2)
    return ax


def _heights(
    scores: npt.NDArray[np.floating], mass: npt.NDArray[np.float64] | None, edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the density in each bin; the scores are sorted, so only the edges are looked up."""
    below = np.searchsorted(scores, edges)
    share = below / scores.size if mass is None else mass[below]
    return np.asarray(np.diff(share) / np.diff(edges))


def class_densities(model: object, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the densities of non-targets and of targets, 2 x k, at k scores.

    Examples
    --------
    >>> model = GaussianCalibration(mean=[0.0, 2.0], variance=[1.0, 4.0])
    >>> class_densities(model, np.array([0.0, 2.0])).round(3)
    array([[0.399, 0.054],
           [0.121, 0.199]])
    """
    if isinstance(model, BayesianCalibration):
        sides = zip(model.mean, model.scale2, model.df, strict=True)
        return np.array([_student_t(scores, *side) for side in sides])
    if not isinstance(model, _GAUSSIAN):
        raise InputError(
            f"a {type(model).__name__} has no densities of the scores; give a ScoreModel, or a gaussian, bayesian or "
            "unsupervised calibration"
        )
    return _gaussians(scores, *class_moments(model))


def class_moments(model: object) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return means and variances of the scores of non-targets and targets in a model with Gaussian classes.

    Examples
    --------
    >>> class_moments(ScoreModel(mu=[0, 2], alpha=[[1], [1]], beta=[[0], [1]], sigma2=[1, 1]))
    (array([0., 2.]), array([2., 3.]))
    """
    if isinstance(model, ScoreModel):
        return model.mu, model.sigma2 + model.variances.nu
    if isinstance(model, GaussianCalibration | UnsupervisedCalibration):
        return model.mean, model.variance
    raise InputError(
        f"the classes of a {type(model).__name__} are not Gaussian; give a ScoreModel, or a gaussian or unsupervised "
        "calibration"
    )


def _gaussians(
    scores: npt.NDArray[np.float64], mean: npt.NDArray[np.float64], variance: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    squares = (scores - mean[:, None]) ** 2 / variance[:, None]
    return np.asarray(np.exp(-squares / 2) / np.sqrt(2 * np.pi * variance[:, None]))


def _student_t(scores: npt.NDArray[np.float64], mean: float, scale2: float, df: float) -> npt.NDArray[np.float64]:
    log_density = -betaln(0.5, df / 2) - 0.5 * np.log(df * scale2)
    return np.asarray(np.exp(log_density - (df + 1) / 2 * np.log1p((scores - mean) ** 2 / (df * scale2))))
