import json
import os
import sys
from pathlib import Path

import pytest

from in_process import run_app

pytest.importorskip("networkx", reason="graphs need the extra 'theory'")
pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")


@pytest.fixture
def cli(tmp_path, monkeypatch):
    """Run the program in an empty directory; returns exit_code, stdout and stderr."""
    from recipes.theory.command import APP

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
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
def test_a_quick_run_writes_tables_figures_and_a_page(cli, tmp_path, two_phrases):
    result = cli("-o", "out", "--quick", "--break", "session-shift", "--scores", two_phrases)
    assert result.exit_code == 0, result.stderr
    drawn = ("broken", "calibration", "dependence", "gain", "killer")
    tables = ("bounds", "broken-session-shift", "calibration", "dependence", "growth", "information", "killer")
    expected = [f"{name}.{ending}" for name in drawn for ending in ("png", "svg")]
    expected += [*(f"{name}.md" for name in tables), "index.md", "norms.csv", "results.json"]
    assert sorted(os.listdir("out")) == sorted(expected)
    assert "No norm gains over raw scores" in result.stdout
    assert result.stdout.rstrip().endswith("out/index.md has it all.")
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["break"] for row in results["norms"]} == {"none", "session-shift"}
    assert list(results["calibration"]) == ["Scores drawn from the score model", "Real scores"]
    assert "Broken assumptions" in (tmp_path / "out" / "index.md").read_text()


@pytest.mark.slow
def test_json_is_what_the_file_holds(cli, tmp_path, two_phrases, monkeypatch):
    monkeypatch.setattr("recipes.theory.command._draw_figures", lambda *_: None)
    options = ("--quick", "--break", "scaled-noise", "--scores", two_phrases, "--json")
    result = cli("-o", "out", *options)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout) == json.loads((tmp_path / "out" / "results.json").read_text())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--break", "cosines"), "error: there is no break 'cosines'; there are approximation, little-data"),
        (("--scores", "nowhere"), "error: nowhere: there is no such directory"),
    ],
)
def test_wrong_options_are_refused_before_the_work(cli, options, message):
    result = cli("-o", "out", "--quick", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)
    assert not os.path.exists("out")


@pytest.mark.parametrize("package", ["networkx", "matplotlib"])
def test_a_missing_package_is_told_before_the_work(cli, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    result = cli("-o", "out", "--quick")
    assert result.exit_code == 2
    assert f"need the package {package}; install it: pip install 'evenscore[" in result.stderr


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("taken", "error: taken: a file of this name exists, but several files are to be written"),
        ("nowhere/out", "error: nowhere/out: its directory does not exist; create it first"),
        ("taken/out", "error: taken/out: it cannot be written: Not a directory"),
    ],
)
def test_a_directory_that_cannot_be_written_is_refused(cli, output, message):
    Path("taken").write_text("something else")
    result = cli("-o", output, "--quick")
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


def test_a_directory_without_permission_is_refused(cli, tmp_path, monkeypatch):
    if os.geteuid() == 0:  # root may write everywhere, and is told what others are told
        monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    (tmp_path / "out").mkdir(mode=0o555)
    result = cli("-o", "out", "--quick")
    assert result.exit_code == 2
    assert "no permission to write there" in result.stderr


def test_fewer_than_two_seeds_are_refused(cli):
    result = cli("-o", "out", "--seeds", 1)
    assert result.exit_code == 2


def test_help_has_examples_of_the_program(cli):
    for option in ("--help", "-h"):
        result = cli(option)
        assert result.exit_code == 0
        assert "python -m recipes.theory -o theory/ --quick" in result.stdout
