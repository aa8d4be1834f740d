"""Figures of ``accuracy.py``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["draw", "draw_speakers"]

SHOWN = ("raw", "s", "as", "lgsm", "lgsm+log", "evidence")


def draw(records: Sequence[dict[str, Any]], methods: Sequence[str], path: Path) -> None:
    """Draw the Cllr of some methods, relative to the best classical norm, setting by setting."""
    import matplotlib.pyplot as plt

    from evenscore.plot.style import MARKERS, PALETTE, figure_style

    shown = [method for method in ("raw", "s", "as", "lgsm+log", "evidence") if method in methods]
    sets = list(dict.fromkeys(row["set"] for row in records))
    with figure_style():
        figure, ax = plt.subplots(figsize=(7.5, 0.75 * len(sets) + 1.6))
        for place, name in enumerate(sets):
            for at, method in enumerate(shown):
                ratios = [row["ratio"] for row in records if row["set"] == name and row["method"] == method]
                height = place + 0.14 * (at - len(shown) / 2 + 0.5)
                ax.plot(
                    ratios,
                    [height] * len(ratios),
                    linestyle="none",
                    marker=MARKERS[at],
                    markersize=4.5,
                    color=PALETTE[at],
                    label=method if place == 0 else None,
                )
        ax.axvline(1.0, color="black", linewidth=1)
        ax.axvline(0.9, color="black", linewidth=0.8, linestyle=":")
        ax.set_yticks(range(len(sets)), sets)
        ax.invert_yaxis()
        ax.set_xscale("log")
        ticks = [0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(0.4, 2.5)
        ax.set_xlabel("Cllr, relative to the best classical norm of the setting")
        ax.legend(loc="lower right", ncols=2)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def draw_speakers(records: Sequence[dict[str, Any]], methods: Sequence[str], path: Path) -> None:
    """Draw the mean Cllr of some methods over the number of training speakers, a panel for each set."""
    import matplotlib.pyplot as plt

    from evenscore.plot.style import MARKERS, PALETTE, figure_style

    shown = [method for method in SHOWN if method in methods]
    sets = list(dict.fromkeys(row["set"].split(", ")[0] for row in records))
    with figure_style():
        figure, panels = plt.subplots(-(-len(sets) // 2), 2, figsize=(7.5, 2.4 * -(-len(sets) // 2)), squeeze=False)
        for ax, name in zip(panels.flat, sets, strict=False):
            rows = [row for row in records if row["set"].split(", ")[0] == name]
            numbers = sorted({row["training_speakers"] for row in rows})
            for at, method in enumerate(shown):
                means = [
                    np.mean([r["cllr"] for r in rows if r["method"] == method and r["training_speakers"] == number])
                    for number in numbers
                ]
                ax.plot(numbers, means, marker=MARKERS[at], markersize=4, color=PALETTE[at], label=method)
            ax.set_xscale("log")
            ax.set_yscale("log")
            ax.set_xticks(numbers, [str(number) for number in numbers])
            ax.minorticks_off()
            ax.set_title(name, fontsize=8)
        for ax in panels.flat[len(sets) :]:
            ax.set_axis_off()
        figure.supxlabel("training speakers")
        figure.supylabel("Cllr")
        panels.flat[0].legend(fontsize=7)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
