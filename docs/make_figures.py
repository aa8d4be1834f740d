"""Draw the figures that the pages and the README show.

``python docs/make_figures.py`` writes them into docs/figures; one version of matplotlib always writes the same files.
Pictures of the report need chromium, chromedriver and the package selenium, and are left as they are without these.
Those of the research pages are of the first edition.
"""

from __future__ import annotations

import base64
import importlib.util
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from evenscore import ScoreModel, normalize, simulate_blocks
from evenscore.cli.demo import _read_audiomnist
from evenscore.comparison import DEFAULT_METHODS, compare
from evenscore.files import save_figure
from evenscore.metrics import bootstrap_det
from evenscore.plot import figure_style, plot_det, plot_tippett
from evenscore.report import render_report

if TYPE_CHECKING:
    from evenscore.comparison import Comparison

FIGURES = Path(__file__).resolve().parent / "figures"
MODEL = ScoreModel(mu=[-5.0, 8.0], alpha=[[1.8, 0.0], [1.4, 1.0]], beta=[[1.6, 0.0], [1.2, 0.9]], sigma2=[6.0, 7.0])
SHOWN = ("raw", "zt", "lgsm", "s", "evidence")  # DET curves of the demo
# Name, colour scheme, width, height, where the picture begins, pixels per unit.
PICTURES = (
    ("report.png", "light", 1100, 1390, "body", 1.0),
    ("report-dark.png", "dark", 1100, 900, "#det", 1.0),
    ("report-phone.png", "light", 390, 760, "#results", 1.0),
)
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")


def main() -> None:
    """Draw all figures."""
    FIGURES.mkdir(exist_ok=True)
    draw_plots()
    comparison = compare(*_read_audiomnist(), DEFAULT_METHODS, bootstrap=200, command="evenscore demo")
    systems = {name: comparison[name].llrs for name in SHOWN}
    with figure_style():
        save_figure(plot_det(systems, comparison.labels, ax=Figure().subplots()).figure, FIGURES / "demo_det.svg")
    print_table(comparison)
    if shutil.which("chromium") and shutil.which("chromedriver") and importlib.util.find_spec("selenium"):
        take_pictures(render_report(comparison))


def draw_plots() -> None:
    """Draw the figures of howto/plots.md from simulated scores."""
    speakers, members = [f"s{n}" for n in range(80)], [f"c{n % 100}" for n in range(200)]
    enroll, test = speakers * 2, speakers * 5
    blocks, key = simulate_blocks(MODEL, enroll, test, members, members, seed=5)
    labels, llr = key.matrix.ravel(), normalize(blocks, "lgsm", model=MODEL).scores.ravel()
    normalized = normalize(blocks, "as", top_k=50).scores.ravel()
    systems = {"raw": blocks.trials.scores.ravel(), "AS-norm": normalized, "score model": llr}
    named = {"enroll_speakers": np.repeat(enroll, len(test)), "test_speakers": np.tile(test, len(enroll))}
    band = {"score model": bootstrap_det(llr, labels, **named, replicates=300)}
    with figure_style():
        axes = plot_det(systems, labels, points=0.01, band=band, ax=Figure().subplots())
        save_figure(axes.figure, FIGURES / "det.svg")
        save_figure(plot_tippett(llr, labels, ax=Figure().subplots()).figure, FIGURES / "tippett.svg")


def print_table(comparison: Comparison) -> None:
    """Print the table of the README, lowest Cllr first."""
    for method in comparison.methods:
        figures, test = method.figures, method.to_raw["cllr"]
        numbers = [f"{figures.value(metric):.3f}" for metric in ("min_dcf", "act_dcf", "cllr", "min_cllr")]
        ends = f"[{test.interval.low:+.3f}, {test.interval.high:+.3f}]"
        gain = "" if method.name == "raw" else f"{test.difference:+.3f} {ends}"
        print("|", " | ".join([method.name, f"{100 * figures.value('eer'):.2f}", *numbers, gain]), "|")


def take_pictures(page: str) -> None:
    """Take pictures of the report with Chromium."""
    from selenium import webdriver

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "report.html"
        file.write_text(page, encoding="utf-8")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        driver.get(file.as_uri())
        for picture in PICTURES:
            take_picture(driver, *picture)
        driver.quit()


def take_picture(driver: Any, name: str, scheme: str, width: int, height: int, start: str, scale: float) -> None:
    """Take one picture."""
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wanted]})
    top = driver.execute_script("return document.querySelector(arguments[0]).getBoundingClientRect().top", start)
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (FIGURES / name).write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
