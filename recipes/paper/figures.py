"""The figures of the paper's experiment: DET curves on the paper's axes, Bayes error rates, error over shift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from evenscore import TrialList, eer
from evenscore.metrics import p_miss_at, roc, sort_scores
from evenscore.plot import plot_bayes_error
from recipes.paper.systems import POOLED, Groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_bayes", "draw_det", "draw_mean_det", "draw_shift"]

# Axes and ticks as the paper's figure has them: quantiles of the normal distribution, and percentages as labels.
_X_TICKS = (-4.26489, -3.29053, -2.57583, -2.05375, -1.64485, -1.28155, -0.841621, -0.253347)
_X_LABELS = ("0.001", "0.05", "0.5", "2", "5", "10", "20", "40")
_X_RANGE = (-4.5, -0.85)
_Y_TICKS = (-3.29053, -2.87816, -2.57583, -2.32635, -2.05375, -1.64485, -1.28155, -0.841621, -0.253347, 0.841621)
_Y_LABELS = ("0.05", "0.2", "0.5", "1", "2", "5", "10", "20", "40", "80")
_Y_RANGE = (-3.3, -0.8)

#: Colours of the paper; systems that it does not have are drawn in the figures of our own only.
COLORS = {
    "raw": "black",
    "ZT": "blue",
    "LGSM 0D": "#7F7F7F",
    "LGSM 1D": "green",
    "LGSM 2D": "red",
    "S": "#E69F00",
    "S shift": "#8C564B",
    "AS": "#CC79A7",
}
_MARKERS = dict(zip(COLORS, "os*^Dv<P", strict=True))
_OF_PAPER = ("raw", "ZT", "LGSM 1D", "LGSM 2D")
_IN_BAYES = ("raw", "ZT", "LGSM 0D", "LGSM 1D", "LGSM 2D")
_LINES = {"female": "-", "male": "--", "all": "-"}
_SHORT = {"female": "fem", "male": "male", "all": "all"}
_FURTHEST = 1e-9  # rates of 0 are drawn here, far outside
_MOST_POINTS = 700  # of a curve
_STYLE: Any = {
    "figure.constrained_layout.use": True,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "font.size": 10,
    "legend.fontsize": 8,
}


def draw_det(groups: Groups) -> Figure:
    """Draw the paper's figure: four systems, men dashed and women solid, on the paper's axes."""
    curves = {}
    for group, system in _shown(groups):
        trials = groups[group][system].trials
        curves[group, system] = (*_curve(trials), eer(trials))
    return _det(curves, "")


def draw_mean_det(runs: Sequence[Groups]) -> Figure:
    """Draw the same with the mean miss rate of several splits at each false-alarm rate, and the mean EER."""
    rates = np.geomspace(1e-6, 0.5, 400)
    curves = {}
    for group, system in _shown(runs[0]):
        parts = [sort_scores(groups[group][system].trials) for groups in runs]
        missed = np.mean([[p_miss_at(rate, part) for rate in rates] for part in parts], axis=0)
        curves[group, system] = (rates, missed, float(np.mean([eer(part) for part in parts])))
    return _det(curves, f"mean of {len(runs)} splits")


def _shown(groups: Groups) -> list[tuple[str, str]]:
    """Return groups and systems in the order of the paper's legend."""
    kinds = [name for name in ("male", "female", "all") if name in groups]
    return [(kind, system) for kind in kinds for system in _OF_PAPER if system in groups[kind]]


def _curve(trials: TrialList) -> tuple[np.ndarray, np.ndarray]:
    curve = roc(trials)
    if curve.p_fa.size <= _MOST_POINTS:
        return curve.p_fa, curve.p_miss
    path = _probit(curve.p_miss) - _probit(curve.p_fa)  # never falls along the curve
    keep = np.unique(np.searchsorted(path, np.linspace(path[0], path[-1], _MOST_POINTS)))
    return curve.p_fa[keep], curve.p_miss[keep]


def _det(curves: Mapping[tuple[str, str], tuple[np.ndarray, np.ndarray, float]], title: str) -> Figure:
    with _style():
        figure, ax = _new((5.6, 4.6))
        for (group, system), (p_fa, p_miss, rate) in curves.items():
            ax.plot(
                _probit(p_fa),
                _probit(p_miss),
                color=COLORS[system],
                linestyle=_LINES[group],
                linewidth=1.0,
                label=f"{_SHORT[group]}, {system}, EER={100 * rate:.2f}%",
            )
        ax.set_xticks(_X_TICKS, _X_LABELS)
        ax.set_yticks(_Y_TICKS, _Y_LABELS)
        ax.set_xlim(*_X_RANGE)
        ax.set_ylim(*_Y_RANGE)
        ax.set_xlabel("False Alarm Probability (%)")
        ax.set_ylabel("Miss Probability (%)")
        ax.set_title(title)
        ax.legend(loc="best", fontsize=6.5)
    return figure


def draw_bayes(groups: Groups) -> Figure:
    """Draw Bayes error rates of all groups: LLRs of the score models as they are, and calibrated raw and ZT scores."""
    shown = [name for name in ("female", "male", "all", POOLED) if name in groups]
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.6 * len(shown), 4.2))
        for ax, group in zip(np.atleast_1d(figure.subplots(1, len(shown), sharey=True)), shown, strict=True):
            systems = {
                name if groups[group][name].is_llr else f"{name}, calibrated": (
                    groups[group][name].trials if groups[group][name].is_llr else groups[group][name].calibrated
                )
                for name in _IN_BAYES
                if name in groups[group]
            }
            plot_bayes_error(systems, points=0.01, ax=ax)
            ax.set_title(group)
    return figure


def draw_shift(shifts: Sequence[Mapping[str, Any]], models: str = "joint") -> Figure:
    """Draw EER and Cllr of each system under the shifts, with bars of a standard deviation over the splits.

    Parameters
    ----------
    shifts
        ``shifts`` of the experiment's results.
    models
        Whose score models and cohorts: ``"joint"`` or ``"per-gender"``.
    """
    summaries = [shift["summary"][models] for shift in shifts]
    group = POOLED if POOLED in summaries[0] else next(iter(summaries[0]))
    with _style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10.5, 4.2))
        left, right = figure.subplots(1, 2)
        for place, system in enumerate(summaries[0][group]):
            found = [summary[group][system] for summary in summaries]
            _draw_spread(left, place, system, [100 * _ends(one["eer"]) for one in found])
            _draw_spread(right, place, system, [_ends(one.get("cllr", one["cllr_calibrated"])) for one in found])
        for ax, text in ((left, "EER (%)"), (right, "Cllr (all but LGSM: calibrated on clean speech)")):
            ax.set_xticks(range(len(shifts)), [shift["name"] for shift in shifts], fontsize=8)
            ax.set_ylim(bottom=0)
            ax.set_ylabel(text)
        right.axhline(1.0, color="#595959", linestyle=":", linewidth=1.0)  # what decisions by the prior alone cost
        left.legend(loc="best")
    return figure


def _ends(figures: Mapping[str, float]) -> np.ndarray:
    return np.array([figures["mean"], figures["std"]])


def _draw_spread(ax: Axes, place: int, system: str, figures: Sequence[np.ndarray]) -> None:
    mean, std = np.transpose(figures)
    ax.errorbar(
        np.arange(len(mean)) + 0.1 * (place - (len(COLORS) - 1) / 2),
        mean,
        std,
        color=COLORS[system],
        marker=_MARKERS[system],
        markersize=5,
        linestyle="",
        linewidth=1.0,
        label=system,
    )


def _probit(rate: np.ndarray) -> np.ndarray:
    return np.asarray(ndtri(np.clip(rate, _FURTHEST, 1 - _FURTHEST)))


def _style() -> Any:
    import matplotlib

    return matplotlib.rc_context(_STYLE)


def _new(size: tuple[float, float]) -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size)
    return figure, figure.subplots()
