"""The recipes are programs: they are run with ``python -m`` at the top of the tree."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run_module(name, *arguments, capsys, monkeypatch):
    """Do what ``python -m`` does, without another interpreter; returns exit code, output and errors."""
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    return ended.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", ["analysis", "paper", "rsr_like", "theory"])
def test_a_recipe_is_run_as_a_module(name, capsys, monkeypatch):
    code, out, err = run_module(f"recipes.{name}", "--help", capsys=capsys, monkeypatch=monkeypatch)
    assert f"Usage: python -m recipes.{name} [OPTIONS]" in out
    assert (code, err) == (0, "")
    code, _, err = run_module(f"recipes.{name}", capsys=capsys, monkeypatch=monkeypatch)
    assert code == 2
    assert "Missing option" in err


def test_make_runs_the_paper():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "$(BIN)/python -m recipes.paper --corpus audiomnist" in makefile
