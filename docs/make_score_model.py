"""Draw the figure of docs/score-model.md: two Gaussians on real scores, and the parabola that their LLR is.

``python docs/make_score_model.py`` writes docs/figures/llr_floor.svg from the scores that come with evenscore.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from evenscore import (
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    TrialList,
    fit_norm,
    load_audiomnist_scores,
)
from evenscore.plot import figure_style, plot_histograms, save_figure

GREY = "#595959"
LOW, HIGH = -1.6, 2.4  # scores that are shown


def draw(figure: Figure) -> None:
    """Draw histograms with the model's Gaussians, and below them the LLR of each score."""
    development = load_audiomnist_scores().development
    trials = TrialList.concat([part.trials for part in development])
    model = fit_norm("lgsm", development, dim=0).model
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.3))
    plot_histograms(trials.scores, trials.labels, model=model, bins=120, ax=top)
    top.set(xlabel="", ylim=(0, 2))  # with a place for the legend
    _draw_llr(bottom, model, LogisticCalibration.fit(trials))
    for ax in (top, bottom):
        ax.axvspan(LOW, model.llr_shape().vertex, color=GREY, alpha=0.15, linewidth=0)
    bottom.set_xlim(LOW, HIGH)


def _draw_llr(ax: Any, model: ScoreModel, straight: LogisticCalibration) -> None:
    shape, scores = model.llr_shape(), np.linspace(LOW, HIGH, 401)
    table = ScoreMatrix(scores[None, :], ["e"], [str(place) for place in range(len(scores))])
    ax.plot(scores, ScoreModelNormalizer(model).normalize(ScoreBlocks(table)).scores[0], label="score model, D = 0")
    ax.plot(scores, straight(scores), linestyle="--", label="logistic calibration")
    ax.axhline(shape.floor, color=GREY, linewidth=1)
    ax.plot(shape.vertex, shape.floor, "o", color=GREY)
    ax.text(HIGH - 0.04, shape.floor - 0.4, f"floor {shape.floor:.2f}", ha="right", va="top")
    ax.text((LOW + shape.vertex) / 2, 7, "a lower score gets\na higher LLR", ha="center", va="center")
    ax.set(xlabel="Score", ylabel="LLR", ylim=(-12, 15))
    ax.legend(loc="upper left", bbox_to_anchor=(0.42, 1.0))


def main(folder: Path) -> None:
    """Write the figure into a folder."""
    with figure_style():
        figure = Figure(figsize=(6.4, 6.0))
        draw(figure)
        save_figure(figure, folder / "llr_floor.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "figures")
