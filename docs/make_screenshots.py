"""Take the pictures of docs/report.md from the report of simulated scores, with Chromium.

``python docs/make_screenshots.py`` needs chromium, chromedriver and the package selenium.
"""

from __future__ import annotations

import base64
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from evenscore import LabelledBlocks, ScoreModel, compare, simulate, simulate_blocks, write_report
from evenscore.comparison import Comparison

FIGURES = Path(__file__).parent / "figures"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars")
# Name, colour scheme, width, height, where the picture begins, pixels per unit.
PICTURES = (
    ("report.png", "light", 1180, 1130, "body", 1.0),
    ("report-dark.png", "dark", 1180, 900, "#det", 1.0),
    ("report-phone.png", "light", 390, 780, "#results", 1.5),
)


def comparison() -> Comparison:
    """Compare all norms on simulated scores of two phrases."""
    model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.1], [0.9]], beta=[[0.8], [0.9]], sigma2=[1.0, 1.6])
    dev, coh, new = ([f"{group}{n // 3}" for n in range(150)] for group in ("dev", "coh", "new"))
    training, evaluation = [], []
    for seed, name in enumerate(("zero", "one")):
        training.append(LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=seed), name=name))
        evaluation.append(LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=10 + seed), name=name))
    methods = ["z", "t", "zt", "s", "as:top_k=50", "lgsm"]
    return compare(training, evaluation, methods, command="evenscore compare --train dev --trials eval -o report/")


def browser(profile: str) -> Any:
    """Start Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def take(driver: Any, name: str, scheme: str, width: int, height: int, start: str, scale: float) -> None:
    """Take one picture."""
    size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme_wish = {"name": "prefers-color-scheme", "value": scheme}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme_wish]})
    time.sleep(2)  # until all is drawn
    top = driver.execute_script("return document.querySelector(arguments[0]).getBoundingClientRect().top", start)
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (FIGURES / name).write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    """Take all pictures."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        write_report(comparison(), page)
        driver = browser(str(Path(folder) / "profile"))
        driver.get(page.as_uri())
        while not driver.execute_script("return document.documentElement.dataset.ready"):
            time.sleep(0.1)
        for picture in PICTURES:
            take(driver, *picture)
        driver.quit()


if __name__ == "__main__":
    main()
