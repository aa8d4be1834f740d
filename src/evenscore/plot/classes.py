"""The scores of each class: histograms, quantiles, and what a norm does to each trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics import Points, as_points, equal_error_rate
from evenscore.metrics.points import LabelsLike, ScoresLike, labelled_scores
from evenscore.plot.style import GREY, colours, legend, literal, new_axes, percent, visible_range

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_histograms", "plot_norm_effect", "plot_qq"]


def plot_histograms(
    scores: ScoresLike,
    labels: LabelsLike = None,
    *,
    moments: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a histogram of the scores of each class, and the Gaussians that a model has for them.

    Each class has area 1, but for scores far out (0.05 % at either end) and infinite ones, which are not shown.

    Parameters
    ----------
    scores, labels, ax
        As in `plot_det`, one system.
    moments
        Means and variances of non-targets and targets in a model, such as ``(calibration.mean, calibration.variance)``
        or ``(model.mu, model.sigma2 + model.variances.nu)``; their Gaussians are drawn as lines.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_histograms(rng.normal(3.0 * labels), labels, moments=([0.0, 3.0], [1.0, 1.0]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['1800 non-targets', '200 targets', 'non-targets, model', 'targets, model']
    """
    trials = as_points(scores, labels, merge=False)
    low, high = visible_range([trials])
    edges = np.linspace(low, high, 1 + int(np.clip(4 * min(trials.n_target, trials.n_nontarget) ** (1 / 3), 10, 100)))
    curve = np.linspace(low, high, 500)
    ax = new_axes(ax)
    entries: list[tuple[Artist, str]] = []
    for name, weight, count, color, line, _ in _by_class(trials, ax):
        heights = np.histogram(trials.score, edges, weights=weight)[0] / (weight.sum() * np.diff(edges))
        filled = ax.stairs(heights, edges, fill=True, color=color, alpha=0.3, linewidth=0)
        ax.stairs(heights, edges, color=color, linestyle=line, linewidth=0.8)
        entries.append((filled, f"{count} {name}"))
    model = np.empty((0, 2)) if moments is None else np.transpose(np.asarray(moments, np.float64))
    for (name, _, _, color, line, _), (mean, variance) in zip(_by_class(trials, ax), model.tolist(), strict=False):
        density = np.exp(-((curve - mean) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
        (drawn,) = ax.plot(curve, density, color=color, linestyle=line)
        entries.append((drawn, f"{name}, model"))
    ax.set(xlabel="Score", ylabel="Density", xlim=(low, high), ylim=(0, 1.2 * ax.get_ylim()[1]))  # space for the legend
    legend(ax, entries, loc="upper center", ncols=2)
    return ax


def plot_qq(scores: ScoresLike, labels: LabelsLike = None, *, ax: Axes | None = None) -> Axes:
    """Draw the quantiles of each class, in standard deviations from its mean, against those of a Gaussian.

    Gaussian scores follow the diagonal. Ends that bend away from it, down at the left and up at the right, are tails
    heavier than a Gaussian's; ends that both bend up or both bend down are skew. Infinite scores are not shown.

    Parameters
    ----------
    scores, labels, ax
        As in `plot_det`, one system.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_qq(rng.normal(3.0 * labels), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['1800 non-targets', '200 targets', 'Gaussian']
    """
    from scipy.special import ndtri

    trials = as_points(scores, labels, merge=False)
    ax = new_axes(ax)
    entries: list[tuple[Artist, str]] = []
    most, furthest = 400, 1.0  # quantiles of a class, beside the 20 at either end; the outermost one
    for name, weight, count, color, _, marker in _by_class(trials, ax):
        some = np.flatnonzero((weight > 0) & np.isfinite(trials.score))
        values = trials.score[some].astype(np.float64)
        mean = np.average(values, weights=weight[some]) if some.size else 0.0
        deviation = np.sqrt(np.average((values - mean) ** 2, weights=weight[some])) if some.size else 1.0
        theory = ndtri((np.cumsum(weight) - weight / 2) / weight.sum())[some]  # the middle of each score's share
        if some.size > most:
            near = np.searchsorted(theory, np.linspace(theory[0], theory[-1], most)).clip(max=some.size - 1)
            shown = np.unique(np.concatenate([np.r_[:20, some.size - 20 : some.size], near]))
            theory, values = theory[shown], values[shown]
        (drawn,) = ax.plot(theory, (values - mean) / (deviation or 1.0), marker, color=color, markersize=3)
        drawn.set_markerfacecolor("none")
        entries.append((drawn, f"{count} {name}"))
        furthest = float(np.abs(theory).max(initial=furthest))
    (line,) = ax.plot([-furthest, furthest], [-furthest, furthest], color=GREY, linewidth=1, zorder=1)
    ax.set(xlabel="Quantile of a Gaussian", ylabel="Quantile of the scores (standard deviations)")
    legend(ax, [*entries, (line, "Gaussian")], loc="upper left")
    return ax


def _by_class(trials: Points, ax: Axes) -> tuple[tuple[str, npt.NDArray[np.number], int, str, str, str], ...]:
    """Return name, weights, number, colour, line and marker of the non-targets and of the targets."""
    of_target, of_nontarget = colours(ax)[:2]
    return (
        ("non-targets", trials.nontarget, trials.n_nontarget, of_nontarget, "--", "o"),
        ("targets", trials.target, trials.n_target, of_target, "-", "^"),
    )


def plot_norm_effect(
    before: npt.ArrayLike | ScoreMatrix | TrialList,
    after: npt.ArrayLike | ScoreMatrix | TrialList,
    labels: LabelsLike = None,
    *,
    names: tuple[str, str] = ("Score before", "Score after"),
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of each trial after a norm against the one before, coloured by class.

    Dashed lines are the thresholds at the EER; trials in the upper left and lower right quarter are those whose
    decision the norm changes. At most 5000 trials of each class are drawn.

    Parameters
    ----------
    before, after, labels, ax
        Scores of the same trials in the same order, and labels; or two tables, matched by id, and a key.
    names
        What to write beside the two axes.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> after = rng.normal(3.0 * labels)
    >>> ax = plot_norm_effect(after + rng.normal(size=2000), after, labels)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('Score before (EER 13.94 %)', ['1800 non-targets', '200 targets', 'threshold at the EER'])
    """
    if isinstance(before, ScoreMatrix | TrialList) and isinstance(after, ScoreMatrix | TrialList):
        before, after, labels = _by_id(before, after, labels)
    x, key = labelled_scores(before, labels)
    y, _ = labelled_scores(after, key)
    ax = new_axes(ax)
    entries: list[tuple[Artist, str]] = []
    for name, label, at, marker in (("non-targets", NONTARGET, 1, "o"), ("targets", TARGET, 0, "^")):
        members = np.flatnonzero((key == label) & np.isfinite(x) & np.isfinite(y))
        shown, count = members, f"{members.size}"
        if members.size > 5000:  # always the same ones
            shown = np.random.default_rng(0).choice(members, 5000, replace=False)
            count = f"5000 of {members.size}"
        (drawn,) = ax.plot(x[shown], y[shown], marker, color=colours(ax)[at], markersize=3, alpha=0.5)
        drawn.set(markeredgewidth=0, rasterized=shown.size > 2000)  # as vectors, files would be large and slow
        entries.append((drawn, f"{count} {name}"))
    rates = equal_error_rate(x, key), equal_error_rate(y, key)
    for draw, text, name, rate in zip(
        (ax.axvline, ax.axhline), (ax.xaxis.label, ax.yaxis.label), names, rates, strict=True
    ):
        literal(text, f"{name} (EER {percent(rate.eer)})")
        if np.isfinite(rate.threshold):
            line = draw(rate.threshold, color=GREY, linestyle="--", linewidth=0.9)
            entries = [*entries[:2], (line, "threshold at the EER")]
    legend(ax, entries, loc="upper left")
    return ax


def _by_id(
    before: ScoreMatrix | TrialList, after: ScoreMatrix | TrialList, labels: Any
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating], npt.NDArray[np.int8] | None]:
    """Return both scores and the label of each trial of ``before``."""
    first, second = before.to_trials(), after.to_trials()
    first = first if labels is None else first.join(labels, unmatched="drop")
    at = first.find(second)
    if (at < 0).any():
        pair = first.pair(int(np.argmin(at)))
        raise InputError(f"the trial {pair} has a score before, but none after; give the scores of the same trials")
    return first.needs_scores(), second.needs_scores()[at], first.labels
