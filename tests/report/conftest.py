"""A small comparison, its page, and a browser to look at it."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from evenscore import LabelledBlocks, ScoreModel, compare, simulate, simulate_blocks, write_report

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--window-size=1280,900"),
    "--force-prefers-reduced-motion",  # a click must not meet a page that is still scrolling
)


@pytest.fixture(scope="session")
def comparison():
    model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.1], [0.9]], beta=[[0.8], [0.9]], sigma2=[1.0, 1.6])
    dev, coh, new = ([f"{group}{n // 2}" for n in range(40)] for group in ("dev", "coh", "new"))
    training, evaluation = [], []
    for seed, name in enumerate(("zero", "one")):
        training.append(LabelledBlocks.own_cohort(*simulate(model, dev, dev, seed=seed), name=name))
        evaluation.append(LabelledBlocks(*simulate_blocks(model, new, new, coh, coh, seed=10 + seed), name=name))
    return compare(
        training,
        evaluation,
        ["z", "t", "s", "lgsm"],
        bootstrap=50,
        command="evenscore compare -o report",
    )


@pytest.fixture(scope="session")
def page(comparison, tmp_path_factory):
    """Return the page of the comparison, a file."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(comparison, path)
    return path


def no_browser(reason):
    if os.environ.get("EVENSCORE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{reason}, but EVENSCORE_REQUIRE_BROWSER asks for it")
    pytest.skip(f"{reason} (Debian: apt-get install chromium chromium-driver)")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Start a headless Chromium that keeps what its console and its network say."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        no_browser(f"there is no {'Chromium' if program is None else 'chromedriver'} to look at the report with")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        no_browser("the package selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    started.set_script_timeout(60)
    yield started
    started.quit()
