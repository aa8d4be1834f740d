"""Every figure looks like its baseline, which somebody has looked at."""

import numpy as np
import pytest
from drawn_figures import BASELINES, BOTH, FIGURES, LABELS, RAW, band, drawn, picture, pixels

from evenscore.plot import plot_det

TOLERANCE = 0.005  # root of the mean squared difference, where white is 1; matplotlib 3.8 and 3.11 draw the same


def difference(one, other):
    return float(np.sqrt(np.mean((one - other) ** 2)))


def baseline(name):
    return pixels((BASELINES / f"{name}.png").read_bytes())


@pytest.mark.parametrize("name", FIGURES)
def test_the_figure_looks_like_its_baseline(name):
    ours, theirs = pixels(picture(drawn(FIGURES[name]))), baseline(name)
    assert ours.shape == theirs.shape
    assert difference(ours, theirs) < TOLERANCE


@pytest.mark.parametrize(
    "change",
    [
        {"band": None},
        {"points": None},
        {"points": [0.01, 0.2]},
        {"scores": {"raw": RAW + 0.5 * LABELS, "normalized": BOTH["normalized"]}},
    ],
    ids=["no band", "no points", "other points", "other scores"],
)
def test_a_change_of_the_figure_is_seen(change):
    options = {"scores": BOTH, "points": [0.01, (0.05, 10, 1)], "band": {"normalized": band()}} | change
    scores = options.pop("scores")
    changed = pixels(picture(drawn(lambda ax: plot_det(scores, LABELS, **options, ax=ax))))
    assert difference(changed, baseline("det")) > TOLERANCE


def test_baselines_are_small_and_all_used():
    files = list(BASELINES.iterdir())
    assert {file.stem for file in files} == set(FIGURES)
    assert max(file.stat().st_size for file in files) < 30_000
