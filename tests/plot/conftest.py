"""Make `drawn_figures` importable, and draw without a screen."""

import sys
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")
matplotlib.use("Agg")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
