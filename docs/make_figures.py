"""Draw the figures of docs/plots.md from simulated scores.

``python docs/make_figures.py`` writes them into docs/figures; one version of matplotlib always writes the same files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from evenscore import ScoreModel, ScoreModelNormalizer, normalize, simulate_blocks
from evenscore.metrics import bootstrap_det
from evenscore.plot import (
    figure_style,
    plot_bayes_error,
    plot_det,
    plot_ece,
    plot_histograms,
    plot_norm_effect,
    plot_qq,
    plot_reliability,
    plot_tippett,
    save_figure,
)

MODEL = ScoreModel(mu=[-5.0, 8.0], alpha=[[1.8, 0.0], [1.4, 1.0]], beta=[[1.6, 0.0], [1.2, 0.9]], sigma2=[6.0, 7.0])
SPEAKERS = [f"s{n}" for n in range(80)]
ENROLL, TEST = SPEAKERS * 2, SPEAKERS * 5
COHORT = [f"c{n % 100}" for n in range(200)]


def figures() -> dict[str, Callable[[Any], Any]]:
    """Return the functions that draw on given axes, by name of file."""
    blocks, key = simulate_blocks(MODEL, ENROLL, TEST, COHORT, COHORT, seed=5)
    labels = key.matrix.ravel()
    model_llr = ScoreModelNormalizer(MODEL, blocks.cohort, blocks.cohort_labels).normalize(blocks)
    systems = {
        "raw": blocks.trials.scores.ravel(),
        "AS-norm": normalize(blocks, "as", top_k=50).scores.ravel(),
        "score model": model_llr.scores.ravel(),
    }
    speakers = {"enroll_speakers": np.repeat(ENROLL, len(TEST)), "test_speakers": np.tile(TEST, len(ENROLL))}
    band = bootstrap_det(systems["score model"], labels, **speakers, replicates=300)
    raw, llr = systems["raw"], systems["score model"]
    llrs = {"score model": llr, "overconfident": 1.6 * llr + 1.0}
    return {
        "det.svg": lambda ax: plot_det(systems, labels, points=0.01, band={"score model": band}, ax=ax),
        "bayes.svg": lambda ax: plot_bayes_error(llrs, labels, points=0.01, ax=ax),
        "ece.svg": lambda ax: plot_ece(llrs, labels, ax=ax),
        "hist.svg": lambda ax: plot_histograms(raw, labels, model=MODEL, ax=ax),
        "qq.svg": lambda ax: plot_qq(raw, labels, model=MODEL, ax=ax),
        "tippett.svg": lambda ax: plot_tippett(llr, labels, ax=ax),
        "reliability.svg": lambda ax: plot_reliability(llrs, labels, ax=ax),
        "effect.png": lambda ax: plot_norm_effect(raw, llr, labels, names=("Raw score", "LLR"), most=2000, ax=ax),
    }


def main(folder: Path) -> None:
    """Write the figures into a folder."""
    folder.mkdir(exist_ok=True)
    with figure_style():
        for name, draw in figures().items():
            save_figure(draw(Figure().subplots()), folder / name, dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "figures")
