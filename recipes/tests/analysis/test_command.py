"""``python -m recipes.analysis``: what it writes, and what it refuses."""

import json
import os
import sys
from pathlib import Path

import pytest

from in_process import run_app

pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run the program in an empty directory; returns exit_code, stdout and stderr."""
    from recipes.analysis.command import APP

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("EVENSCORE_DEBUG", raising=False)
    return lambda *arguments: run_app(APP, *arguments)


@pytest.fixture
def two_phrases(tmp_path):
    """Save a part of the real scores, as a user would bring other ones."""
    from evenscore import load_audiomnist_scores
    from evenscore.files import ScoreSet, save_score_set

    real = load_audiomnist_scores()
    save_score_set(ScoreSet(real.development[:2], real.evaluation[:2], real.gender), tmp_path / "two")
    return "two"


@pytest.mark.slow
def test_a_small_run_writes_tables_figures_and_a_page(cli, tmp_path, two_phrases):
    result = cli("-o", "out", "--scores", two_phrases, "--draws", 2, "--sizes", "3")
    assert result.exit_code == 0, result.stderr
    figures = {"sizes.svg", "phrases.svg", "effects.svg", "residuals.svg"}
    written = set(os.listdir("out"))
    assert figures | {"index.md", "results.json", "sizes-eer.md", "likelihood.md"} <= written
    page = Path("out/index.md").read_text(encoding="utf-8")
    assert all(f"({name})" in page for name in figures)
    tables = [Path("out", name).read_text(encoding="utf-8") for name in written if name.endswith(".md")]
    assert all(table.rstrip() in page for table in tables)
    results = json.loads(Path("out/results.json").read_text(encoding="utf-8"))
    assert [row["size"] for row in results["sizes"] if row["system"] == "raw"] == [3, 20]
    assert {row["group"] for row in results["variances"]} == {"everybody", "female", "male"}
    assert results["format"] == "evenscore-analysis"
    assert result.stdout.rstrip().endswith("wrote out/index.md")
    assert "LGSM 2D" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "two"), "error: --sizes is 'two', but must be whole numbers from 2"),
        (("--sizes", "1,5"), "error: --sizes is '1,5', but must be whole numbers from 2"),
        (("--scores", "nowhere"), "error: nowhere: there is no such directory"),
    ],
)
def test_wrong_options_are_refused_before_the_work(cli, options, message):
    result = cli("-o", "out", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert not os.path.exists("out")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("taken", "error: taken: a file of this name exists, but several files are to be written"),
        ("nowhere/out", "error: nowhere/out: its directory does not exist; create it first"),
    ],
)
def test_a_directory_that_cannot_be_written_is_refused(cli, output, message):
    Path("taken").write_text("something else")
    result = cli("-o", output)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_a_missing_package_is_told_before_the_work(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = cli("-o", "out")
    assert result.exit_code == 2
    assert "need the package matplotlib; install it: pip install 'evenscore[" in result.stderr


def test_help_has_examples_of_the_program(cli):
    result = cli("--help")
    assert result.exit_code == 0
    assert "python -m recipes.analysis -o out/ --scores my-scores/" in result.stdout
