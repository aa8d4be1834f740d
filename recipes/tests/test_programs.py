"""The recipes are programs: they are run with ``python -m`` at the top of the tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", ["analysis", "paper", "rsr_like", "theory"])
def test_a_recipe_is_run_as_a_module(name):
    run = subprocess.run(
        [sys.executable, "-m", f"recipes.{name}", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert f"Usage: python -m recipes.{name} [OPTIONS]" in run.stdout
    assert run.stderr == ""
    wrong = subprocess.run([sys.executable, "-m", f"recipes.{name}"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "Missing option" in wrong.stderr


def test_make_runs_the_paper():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(BIN)/python -m recipes.paper --corpus audiomnist" in makefile
