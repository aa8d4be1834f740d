"""The figures that the image tests compare with the baselines; run this file to write them anew, and look at them."""

import functools
import io
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imread

from evenscore import GaussianCalibration
from evenscore.metrics import bootstrap_det
from evenscore.plot import (
    figure_style,
    plot_bayes_error,
    plot_det,
    plot_histograms,
    plot_norm_effect,
    plot_qq,
    plot_reliability,
    plot_tippett,
)

BASELINES = Path(__file__).parent / "baseline"

RNG = np.random.default_rng(7)
ENROLL, TEST = np.repeat(np.arange(80), 80), np.tile(np.arange(80), 80)
LABELS = ENROLL == TEST
LLR = RNG.normal(np.where(LABELS, 5.0, -5.0), np.sqrt(10.0))
RAW = 0.5 * (LLR + RNG.normal(0.0, 2.5, LABELS.size))
BOTH = {"raw": RAW, "normalized": LLR}


@functools.cache
def band():
    """Return the uncertainty of a curve; drawn once, and not when tests are collected."""
    return bootstrap_det(LLR, LABELS, enroll_speakers=ENROLL, test_speakers=TEST, replicates=50)


FIGURES = {
    "det": lambda ax: plot_det(BOTH, LABELS, points=[0.01, (0.05, 10, 1)], band={"normalized": band()}, ax=ax),
    "bayes_error": lambda ax: plot_bayes_error(BOTH, LABELS, points=0.01, ax=ax),
    "histograms": lambda ax: plot_histograms(LLR, LABELS, model=GaussianCalibration.fit(LLR, LABELS), ax=ax),
    "qq": lambda ax: plot_qq(LLR + 0.05 * LLR**2, LABELS, ax=ax),
    "tippett": lambda ax: plot_tippett(BOTH, LABELS, ax=ax),
    "reliability": lambda ax: plot_reliability(BOTH, LABELS, ax=ax),
    "posterior_reliability": lambda ax: plot_reliability(LLR, LABELS, p_target=0.1, ax=ax),
    "norm_effect": lambda ax: plot_norm_effect(RAW, LLR, LABELS, most=1000, ax=ax),
}


def drawn(draw):
    """Return the axes of a new figure."""
    with figure_style():
        figure = Figure()
        FigureCanvasAgg(figure)  # so that `figure.canvas.draw()` really draws
        return draw(figure.subplots())


def picture(ax):
    """Return a small PNG of the figure without text, which looks different in every version of matplotlib."""
    buffer = io.BytesIO()
    ax.figure.set_layout_engine("none")
    ax.set_position((0.03, 0.03, 0.94, 0.94))
    ax.set(xlabel="", ylabel="")
    ax.tick_params(labelbottom=False, labelleft=False)
    if ax.get_legend() is not None:
        ax.get_legend().remove()
    with figure_style():
        ax.figure.savefig(buffer, format="png", dpi=48, metadata={"Software": None})
    return buffer.getvalue()


def pixels(png):
    """Return the picture in blocks of 3 x 3 pixels, so that the fine edges of letters and lines matter less."""
    image = imread(io.BytesIO(png), format="png")[..., :3]
    height, width = (size // 3 for size in image.shape[:2])
    return image[: 3 * height, : 3 * width].reshape(height, 3, width, 3, 3).mean(axis=(1, 3))


if __name__ == "__main__":
    BASELINES.mkdir(exist_ok=True)
    for name, draw in FIGURES.items():
        (BASELINES / f"{name}.png").write_bytes(picture(drawn(draw)))
