"""Figures of log-likelihood ratios: cost over the priors, misleading evidence, reliability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics import bayes_error_curve
from evenscore.metrics.cllr import PriorCurve, cllr, ece_curve, min_cllr, posterior_probability
from evenscore.metrics.costs import PointLike, as_operating_points
from evenscore.metrics.points import Floats, LabelsLike, Points, hull_vertices
from evenscore.plot.style import GREY, System, SystemsLike, colours, legend, percent, start_figure, visible_range

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_bayes_error", "plot_ece", "plot_reliability", "plot_tippett"]

_HIGHEST = 1.4  # above 1, decisions by the prior alone are better, and how much better matters little


def plot_bayes_error(
    scores: SystemsLike,
    labels: LabelsLike = None,
    *,
    points: PointLike | Iterable[PointLike] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw normalized Bayes error rates against the prior log-odds: actual, minimum and default.

    The gap between the actual and the minimum rate is what better calibration could gain at that prior; above 1,
    decisions by the prior alone would be better.

    Parameters
    ----------
    scores, labels, ax
        LLRs, or several systems by name, and where to draw, as in `plot_det`.
    points
        Operating points to mark on the axis of priors.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_bayes_error(rng.normal(np.where(labels, 2.0, -2.0), 2.0), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['actual', 'minimum', 'default']
    """
    ax, systems = start_figure(scores, labels, ax)
    curves = [bayes_error_curve(system.trials) for system in systems]
    highest = _draw_over_priors(ax, systems, curves, [system.name for system in systems])
    for point in () if points is None else as_operating_points(points):
        ax.axvline(-point.threshold, color=GREY, linewidth=0.8, zorder=0.9)
    ax.set(xlabel="Prior log-odds", ylabel="Normalized Bayes error rate")
    ax.set_ylim(0, min(1.08 * max(highest, 1.0), _HIGHEST))
    return ax


def plot_ece(scores: SystemsLike, labels: LabelsLike = None, *, ax: Axes | None = None) -> Axes:
    """Draw the empirical cross-entropy against the prior log-odds to the base 10: actual, minimum and of the prior.

    The gap between the actual and the minimum curve is what better calibration could gain at that prior; above the
    curve of the prior alone (default), the LLRs do harm. At log-odds of 0 the curves are Cllr and minCllr. The axis is
    scaled to the systems, so the curve of the prior may leave the figure.

    Parameters
    ----------
    scores, labels, ax
        LLRs, or several systems by name, and where to draw, as in `plot_det`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_ece({"a": rng.normal(np.where(labels, 2.0, -2.0), 2.0)}, labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['a (Cllr 0.525, min 0.499)', 'actual', 'minimum', 'default']
    """
    ax, systems = start_figure(scores, labels, ax)
    curves = [ece_curve(system.trials) for system in systems]
    costs = [f"Cllr {cllr(one.trials):.3f}, min {min_cllr(one.trials):.3f}" for one in systems]
    names = [f"{one.name} ({cost})" if one.name else cost for one, cost in zip(systems, costs, strict=True)]
    highest = _draw_over_priors(ax, systems, curves, names, unit=math.log(10.0))
    ax.set(xlabel="Prior log-odds, base 10", ylabel="Empirical cross-entropy (bits)")
    ax.set_ylim(0, min((1.25 + 0.1 * len(systems)) * highest or 1.0, _HIGHEST))  # with space for the legend
    return ax


def _draw_over_priors(
    ax: Axes, systems: Sequence[System], curves: Sequence[PriorCurve], names: Sequence[str], unit: float = 1.0
) -> float:
    """Draw actual, minimum and default curves over the prior log-odds in units; return the highest actual value."""
    from matplotlib.lines import Line2D

    entries: list[tuple[Artist, str]] = []
    for system, curve, name in zip(systems, curves, names, strict=True):
        marker = system.marker if len(systems) > 1 else ""
        every = max(curve.log_odds.size // 8, 1)  # eight marks, to distinguish systems in grey print
        for rate, line in ((curve.actual, "-"), (curve.minimum, "--")):
            (drawn,) = ax.plot(curve.log_odds / unit, rate, color=system.color, linestyle=line, marker=marker)
            drawn.set(markersize=5, markevery=(every // 2, every))
        if name:
            entries.append((Line2D([], [], color=system.color, marker=marker, markersize=5), name))
    color = GREY if len(systems) > 1 else systems[0].color
    entries += [(Line2D([], [], color=color), "actual"), (Line2D([], [], color=color, linestyle="--"), "minimum")]
    (default,) = ax.plot(curves[0].log_odds / unit, curves[0].default, color=GREY, linestyle=":")
    ax.set_xlim(float(np.min(curves[0].log_odds)) / unit, float(np.max(curves[0].log_odds)) / unit)
    legend(ax, [*entries, (default, "default")])
    return max(float(np.max(curve.actual[np.isfinite(curve.actual)], initial=0.0)) for curve in curves)


def plot_tippett(
    scores: SystemsLike, labels: LabelsLike = None, *, log10: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the share of targets and of non-targets whose LLR is at least so large.

    The legend has the rates of misleading evidence: the shares of targets with an LLR below 0 and of non-targets with
    one of at least 0. Curves end with the data. Of several systems, the targets have the stronger lines.

    Parameters
    ----------
    scores, labels, ax
        LLRs, or several systems by name, and where to draw, as in `plot_det`.
    log10
        Show logarithms to the base 10, as is usual in forensic reports.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_tippett(rng.normal(np.where(labels, 2.0, -2.0), 2.0), labels)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['targets (17.50 % < 0)', 'non-targets (15.56 % ≥ 0)']
    """
    ax, systems = start_figure(scores, labels, ax)
    unit = np.log(10) if log10 else 1.0
    entries: list[tuple[Artist, str]] = []
    for name, trials, color, line, _ in systems:
        at = int(np.searchsorted(trials.score, 0.0))
        misses, false_alarms = percent(float(trials.p_miss[at])), percent(float(trials.p_fa[at]))
        look = (color, line, 1.0) if name else (colours(ax)[1], "--", 1.8)
        x, share = _exceedance(trials.score, trials.target)
        (targets,) = ax.plot(x / unit, share, color=color, linestyle=line, linewidth=1.8, drawstyle="steps-pre")
        x, share = _exceedance(trials.score, trials.nontarget)
        (others,) = ax.plot(x / unit, share, color=look[0], linestyle=look[1], linewidth=look[2], drawstyle="steps-pre")
        if name:
            entries.append((targets, f"{name} ({misses} of targets < 0,\n{false_alarms} of non-targets ≥ 0)"))
        else:
            entries += [(targets, f"targets ({misses} < 0)"), (others, f"non-targets ({false_alarms} ≥ 0)")]
    ax.axvline(0, color=GREY, linewidth=0.8, zorder=0.9)
    low, high = visible_range(system.trials for system in systems)
    ax.set(xlim=(min(low, 0.0) / unit, max(high, 0.0) / unit), ylabel="Share of trials at or above")
    ax.set(ylim=(0, 1.02 + 0.1 * len(entries)), yticks=np.linspace(0, 1, 6))  # with space for the legend
    ax.set_xlabel("Likelihood ratio (log10)" if log10 else "Log-likelihood ratio")
    legend(ax, entries, loc="upper right")
    return ax


def _exceedance(score: npt.NDArray[np.floating], weight: npt.NDArray[np.number]) -> tuple[Floats, Floats]:
    """Return the finite scores of a class and the share at or above each; of many, at even steps of their rank."""
    share = np.cumsum(weight[::-1])[::-1] / weight.sum()
    shown = np.flatnonzero((weight > 0) & np.isfinite(score))
    if shown.size > 2000:
        shown = shown[np.linspace(0, shown.size - 1, 2000).astype(np.intp)]
    return score[shown].astype(np.float64), share[shown]


def plot_reliability(
    scores: SystemsLike, labels: LabelsLike = None, *, p_target: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the LLR that scores turn out to have (by PAV, the best monotone calibration) against what they claim.

    A calibrated system follows the diagonal; below it, LLRs promise too much. Blocks of one class only have an
    infinite LLR and end at the edge of the figure. The band holds 95 % of such curves of trials drawn with replacement;
    since trials share speakers, the truth is a little less certain.

    Parameters
    ----------
    scores, labels, ax
        LLRs, or several systems by name, and where to draw, as in `plot_det`.
    p_target
        Show posterior probabilities of a target at this prior instead of LLRs.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_reliability({"LLRs": rng.normal(np.where(labels, 2.0, -2.0), 2.0)}, labels, p_target=0.1)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('Posterior probability of a target', ['LLRs', '95 % band'])
    """
    if not 0 < (0.5 if p_target is None else p_target) < 1:
        raise InputError(f"p_target is {p_target}, but must lie between 0 and 1")

    def shown(llrs: Floats) -> Floats:
        return np.clip(llrs, -1e6, 1e6) if p_target is None else posterior_probability(llrs, p_target)

    ax, systems = start_figure(scores, labels, ax)
    low, high = visible_range(system.trials for system in systems)
    grid = np.linspace(low, high, 200)
    entries: list[tuple[Artist, str]] = []
    highest = 0.0
    for name, trials, color, style, _ in systems:
        hull = trials.hull
        claimed, found = np.column_stack([hull.low, hull.high]).ravel(), np.repeat(hull.llr, 2)
        highest = max(highest, float(np.max(np.abs(found[np.isfinite(found)]), initial=0.0)))
        (line,) = ax.plot(shown(claimed), shown(found), color=color, linestyle=style)
        entries += [(line, name or "LLRs after PAV")]
        below, above = _band(trials, grid)
        band = ax.fill_between(shown(grid), shown(below), shown(above), color=color, alpha=0.2, linewidth=0, zorder=1)
    entries.append((band, "95 % band"))
    limits = (0.0, 1.0) if p_target is not None else (max(low, -1.6 * highest - 1), min(high, 1.6 * highest + 1))
    ax.plot(limits, limits, color=GREY, linewidth=0.8, zorder=0.9)
    what = "Log-likelihood ratio" if p_target is None else "Posterior probability"
    ax.set(xlabel=what if p_target is None else f"{what} of a target", ylabel=f"{what} after PAV")
    ax.set(xlim=limits, ylim=limits)
    ax.set_aspect("equal", adjustable="box")
    legend(ax, entries)
    return ax


def _band(trials: Points, grid: Floats) -> Floats:
    """Return both ends of the LLRs that PAV gives at the scores of a grid, when trials are drawn with replacement."""
    rng = np.random.default_rng(0)
    starts = np.unique(np.linspace(0, trials.score.size, 20_000, endpoint=False).astype(np.intp))  # of blocks of scores
    score = trials.score[starts]
    target, nontarget = np.add.reduceat(trials.target, starts), np.add.reduceat(trials.nontarget, starts)
    drawn = np.empty((200, grid.size))
    for row in drawn:
        t = rng.multinomial(trials.n_target, target / target.sum())
        n = rng.multinomial(trials.n_nontarget, nontarget / nontarget.sum())
        some = t + n > 0
        below = np.append(0, np.cumsum(t[some])), np.append(0, np.cumsum(n[some]))
        at = hull_vertices(*below)
        with np.errstate(divide="ignore"):  # log(0) = -inf is intended
            llr = np.log(np.diff(below[0][at]) / trials.n_target) - np.log(np.diff(below[1][at]) / trials.n_nontarget)
        row[:] = llr[np.searchsorted(score[some][at[:-1]], grid, side="right").clip(1) - 1]
    return np.quantile(drawn, [0.025, 0.975], axis=0, method="nearest")  # between infinite ones is no number
