"""The figures of the experiment, each drawn on a figure that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.plot import plot_bayes_error
from recipes.theory.breaks import BREAKS
from recipes.theory.calibration import LOG_ODDS, Checked
from recipes.theory.ideal import COMPARED, GAUSSIAN, ORACLE, REFERENCE, SCORE_MODEL, Estimate, Ideal, Level
from recipes.theory.tables import TITLES

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_broken", "draw_calibration", "draw_gain", "draw_killer"]

_GREY = "#595959"
# Okabe and Ito's colours; every system keeps its own in all figures.
_LOOK: dict[str, dict[str, Any]] = {
    "raw": {"color": "#000000", "marker": "o"},
    "z": {"color": "#56B4E9", "marker": "v"},
    "t": {"color": "#CC79A7", "marker": "^"},
    "zt": {"color": "#E69F00", "marker": "D"},
    "s": {"color": "#009E73", "marker": "s"},
    "as": {"color": "#0072B2", "marker": "P"},
    GAUSSIAN: {"color": "#D55E00", "marker": "x", "linestyle": ":"},  # the score model's colour: it is a part of it
    SCORE_MODEL: {"color": "#D55E00", "marker": "X"},
    ORACLE: {"color": _GREY, "marker": "", "linestyle": "--"},
}
_AXIS_TITLES = {"eer": "EER, norm minus raw (%)", "cllr": "Cllr, norm minus raw"}


def draw_killer(figure: Figure, ideal: Ideal) -> None:
    """Draw how each norm differs from raw ideal scores, with intervals; to the right of 0 it does harm."""
    for ax, metric in zip(figure.subplots(1, 2, sharey=True), ("eer", "cllr"), strict=True):
        unit = 100 if metric == "eer" else 1
        for place, name in enumerate(reversed(COMPARED)):
            found = ideal.killer.differences[name][metric]
            ax.errorbar(unit * found.value, place, xerr=unit * _bars([found]), capsize=3, **_LOOK[name])
        ax.axvline(0, color=_GREY, linewidth=1)
        ax.set_yticks(range(len(COMPARED)), [TITLES[name] for name in reversed(COMPARED)])
        ax.set_xlabel(_AXIS_TITLES[metric])
        ax.set_ylim(-0.6, len(COMPARED) - 0.4)


def draw_broken(figure: Figure, ideal: Ideal, metric: str = "cllr") -> None:
    """Draw the Cllr of raw scores, S-norm, LGSM with and without a norm, and the true parameters, at each level."""
    for ax, levels in _panels(figure, ideal):
        highest = max(levels[-1].values[system][metric].value for system in (REFERENCE, ORACLE))
        for system in (REFERENCE, "s", GAUSSIAN, SCORE_MODEL, ORACLE):
            _curve(ax, [level.values[system][metric] for level in levels], system)
        ax.set_ylim(0, min(1.25 * highest, max(highest, 1.0)))
        ax.set_ylabel("Cllr")
    _legend(figure)


def draw_gain(figure: Figure, ideal: Ideal, metric: str = "cllr") -> None:
    """Draw how each norm differs from raw scores over the levels of each break; below 0 it gains."""
    for ax, levels in _panels(figure, ideal):
        for system in COMPARED:
            _curve(ax, [level.differences[system][metric] for level in levels], system)
        ax.axhline(0, color=_GREY, linewidth=1)
        ax.set_ylabel(_AXIS_TITLES[metric])
        _limit(ax, levels, metric)
    _legend(figure)


def draw_calibration(figure: Figure, checked: Mapping[str, Checked]) -> None:
    """Draw the Bayes error plots of several sets of scores side by side."""
    for ax, (title, found) in zip(figure.subplots(1, len(checked), squeeze=False).flat, checked.items(), strict=True):
        labels = next(iter(found.systems.values())).labels
        plot_bayes_error(
            {name: trials.scores for name, trials in found.systems.items()}, labels, log_odds=LOG_ODDS, ax=ax
        )
        ax.set_title(title)


def _panels(figure: Figure, ideal: Ideal) -> list[tuple[Axes, Sequence[Level]]]:
    """Return axes for each break, with its title, and its levels as ticks."""
    columns = min(3, len(ideal.broken))
    rows = -(-len(ideal.broken) // columns)
    axes = figure.subplots(rows, columns, squeeze=False).flat
    panels = []
    for ax, (name, levels) in zip(axes, ideal.broken.items(), strict=False):
        ticks = [level.name.replace(" ", "\n") for level in levels]
        ax.set_xticks(range(len(levels)), ticks, fontsize=7 if name == "approximation" else None)
        ax.set_xlabel(BREAKS[name].scale)
        ax.set_title(BREAKS[name].assumption.replace(", ", ",\n").replace(": ", ":\n"))
        panels.append((ax, levels))
    for ax in axes:  # what is left over
        ax.set_axis_off()
    return panels


def _curve(ax: Axes, values: Sequence[Estimate], system: str) -> None:
    middle = [value.value for value in values]
    look = {"capsize": 2, "markersize": 4, "label": TITLES[system], **_LOOK[system]}
    ax.errorbar(range(len(values)), middle, _bars(values), **look)


def _legend(figure: Figure) -> None:
    """Put one legend for all axes below them."""
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))


def _bars(values: Sequence[Estimate]) -> Float[np.ndarray, "2 n"]:
    """Return the lengths of error bars: none where there is no interval, nor to the side where it does not reach."""
    bars = np.array([[value.value - value.low, value.high - value.value] for value in values]).T
    return np.where(np.isfinite(bars), np.maximum(bars, 0.0), 0.0)


def _limit(ax: Axes, levels: Sequence[Level], metric: str) -> None:
    """Keep a norm that goes completely wrong from hiding all others."""
    values = [level.differences[name][metric].value for level in levels for name in COMPARED]
    if max(values) > 3 * abs(min(values)) and max(values) > 0.3:
        ax.set_ylim(min(values) - 0.02, 0.3)
