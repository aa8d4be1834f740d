"""Draw the figures of docs/score-model.md from the scores that come with evenscore.

``python docs/make_score_model.py`` writes docs/figures/llr_floor.svg, two Gaussians and the parabola that their LLR is,
and docs/figures/residuals.svg, what the model leaves on left-out and on new speakers, and its densities.
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
from evenscore.norms import left_out_residuals
from evenscore.plot import figure_style, plot_histograms, plot_qq, save_figure

GREY = "#595959"
LOW, HIGH = -1.6, 2.4  # scores that are shown


def draw(figure: Figure) -> None:
    """Draw histograms with the model's Gaussians, and below them the LLR of each score."""
    development = load_audiomnist_scores().development
    trials = TrialList.concat([part.trials for part in development])
    model = fit_norm("lgsm", development, dim=0, residuals="gaussian").model
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


def draw_residuals(figure: Figure) -> None:
    """Draw the residuals of left-out training trials, to which densities are fitted, and those of new speakers."""
    scores = load_audiomnist_scores()
    model = fit_norm("lgsm", scores.development).model
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for ax, data, title in zip(
        axes, (scores.development, scores.evaluation), ("training", "new speakers"), strict=True
    ):
        residuals = left_out_residuals(model, data)
        plot_qq(residuals.scores, residuals.labels, densities=model.residuals, ax=ax)
        ax.set(title=title, ylabel="Residual (standard deviations)" if ax is axes[0] else "")


def main(folder: Path) -> None:
    """Write the figures into a folder."""
    with figure_style():
        figure = Figure(figsize=(6.4, 6.0))
        draw(figure)
        save_figure(figure, folder / "llr_floor.svg")
        figure = Figure(figsize=(8.4, 4.2))
        draw_residuals(figure)
        save_figure(figure, folder / "residuals.svg")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "figures")
