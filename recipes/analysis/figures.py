"""The figures of the analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import GaussianCalibration
from evenscore.plot import figure_style, plot_qq
from recipes.analysis.effects import CLASSES, SideEffects, agreement
from recipes.analysis.residuals import Residuals
from recipes.analysis.run import Analysis
from recipes.analysis.systems import MODELS, SYSTEMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["analysis_figures"]

_GREY = "#595959"
# Okabe and Ito's colours, as in the other figures of the recipes; the score models share theirs.
_LOOK: dict[str, dict[str, Any]] = {
    "raw": {"color": "#000000", "marker": "", "linestyle": "--"},
    "Z": {"color": "#56B4E9", "marker": "v"},
    "T": {"color": "#CC79A7", "marker": "^"},
    "ZT": {"color": "#E69F00", "marker": "D"},
    "S": {"color": "#009E73", "marker": "s"},
    "AS": {"color": "#0072B2", "marker": "P"},
    MODELS[0]: {"color": "#D55E00", "marker": "", "linestyle": ":"},
    MODELS[1]: {"color": "#D55E00", "marker": "o", "linestyle": "--", "markerfacecolor": "white"},
    MODELS[2]: {"color": "#D55E00", "marker": "o", "linestyle": "-"},
}
_CLASS_LOOK: dict[str, dict[str, Any]] = {
    "non-target": {"color": "#D55E00", "marker": "o"},
    "target": {"color": "#0072B2", "marker": "^"},
}
_STANDARD = GaussianCalibration(mean=np.zeros(2), variance=np.ones(2))
_SIDES = {"enroll": "enrolments", "test": "tests"}
_EFFECTS = {("enroll", 0): "α'x, non-target", ("enroll", 1): "α'x, target"}
_EFFECTS |= {("test", 0): "β'y, non-target", ("test", 1): "β'y, target"}


def analysis_figures(found: Analysis) -> dict[str, Figure]:
    """Return the figures by name of file."""
    drawings: dict[str, tuple[tuple[float, float], Callable[[Figure], None]]] = {
        "sizes.svg": ((11.0, 4.6), lambda figure: _draw_sizes(figure, found.numbers["sizes"])),
        "phrases.svg": ((8.0, 3.8), lambda figure: _draw_phrases(figure, found.numbers["phrases"])),
        "effects.svg": ((8.4, 7.4), lambda figure: _draw_effects(figure, found.effects[MODELS[2]])),
        "residuals.svg": ((9.6, 4.4), lambda figure: _draw_residuals(figure, found.residuals)),
    }
    figures = {}
    with figure_style():
        from matplotlib.figure import Figure

        for name, (size, draw) in drawings.items():
            figures[name] = Figure(figsize=size)
            draw(figures[name])
    return figures


def _draw_sizes(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw EER and Cllr over the number of cohort speakers, with bars from the least to the greatest of the draws."""
    titles = {
        "eer": "EER (%)",
        "cllr_same": "Cllr, calibrated\nwith a cohort of the same size",
        "cllr_whole": "Cllr, calibrated with the whole cohort\n(LGSM: own LLRs)",
    }
    for ax, (metric, title) in zip(figure.subplots(1, 3), titles.items(), strict=True):
        for system in SYSTEMS:
            own = metric == "cllr_whole" and system.name in MODELS.values()
            _curve(ax, [row for row in rows if row["system"] == system.name], "cllr" if own else metric)
        sizes = list(dict.fromkeys(row["size"] for row in rows))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
        _plain_ticks(ax)
        ax.set_xlabel("Cohort speakers")
        ax.set_title(title)
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))


def _curve(ax: Axes, rows: Sequence[Mapping[str, Any]], metric: str) -> None:
    known = [row for row in rows if row[metric] is not None]
    unit = 100.0 if metric == "eer" else 1.0
    mean, least, most = (unit * np.array([row[metric][name] for row in known]) for name in ("mean", "min", "max"))
    bars = np.maximum([mean - least, most - mean], 0.0)  # equal figures may differ in the last digit
    look = {"linewidth": 1.3, "markersize": 4, "capsize": 2, "elinewidth": 0.8, **_LOOK[known[0]["system"]]}
    ax.errorbar([row["size"] for row in known], mean, bars, label=known[0]["system"], **look)


def _plain_ticks(ax: Axes) -> None:
    """Write the ticks of a logarithmic axis as plain numbers, a few in each decade."""
    low, high = ax.get_ylim()
    steps = [float(f"{digit}e{power}") for power in range(-3, 3) for digit in (1, 2, 5)]
    ticks = [step for step in steps if low <= step <= high]
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def _draw_phrases(figure: Figure, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw mean and standard deviation of the raw scores of each class and phrase, development beside evaluation."""
    ax = figure.subplots()
    sides = {"development": (-0.12, "white"), "evaluation": (0.12, None)}
    for name, end in (("non-target", "non"), ("target", "tar")):
        for side, (offset, face) in sides.items():
            mean, std = ([row["raw"][side][f"{what}_{end}"] for row in rows] for what in ("mean", "std"))
            look: dict[str, Any] = {
                "linestyle": "",
                "capsize": 2,
                "elinewidth": 0.9,
                "markersize": 5,
                **_CLASS_LOOK[name],
            }
            look |= {"markerfacecolor": face} if face else {}
            ax.errorbar(np.arange(len(rows)) + offset, mean, std, label=f"{name}s, {side}", **look)
    ax.set_xticks(range(len(rows)), [row["phrase"] for row in rows])
    ax.set_xlabel("Phrase")
    ax.set_ylabel("Raw score")
    figure.legend(loc="outside upper center", ncols=2)


def _draw_effects(figure: Figure, effects: Mapping[str, SideEffects]) -> None:
    """Draw what the evaluation trials show of each enrolment and test against what its cohort scores foretell."""
    for line, (side, found) in zip(figure.subplots(2, 2), effects.items(), strict=True):
        for ax, (name, label) in zip(line, CLASSES.items(), strict=True):
            there = np.isfinite(found.measured[label])
            x, y = found.predicted[label][there], found.measured[label][there]
            ax.plot(x, y, linestyle="", markersize=3, alpha=0.5, rasterized=x.size > 500, **_CLASS_LOOK[name])
            ends = np.array([x.min(), x.max()])
            ax.plot(ends, ends, color=_GREY, linewidth=1)
            close = agreement(found, label)
            ax.set_title(
                f"{x.size} {_SIDES[side]}: correlation {close['correlation']:.2f},\n"
                f"{close['correlation_within']:.2f} within phrases"
            )
            ax.set_xlabel(f"Posterior mean of {_EFFECTS[side, label]}")
            ax.set_ylabel(f"Mean {name} score less µ")


def _draw_residuals(figure: Figure, residuals: Mapping[str, Residuals]) -> None:
    """Draw the quantiles of standardized residuals without and with hidden variables."""
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, name in zip(axes, (MODELS[0], MODELS[2]), strict=True):
        plot_qq(residuals[name].standardized, residuals[name].labels, model=_STANDARD, ax=ax)
        ax.set_title(name)
        ax.set_ylabel("Quantile of the residuals (predicted deviations)")
    axes[1].set_ylabel("")
