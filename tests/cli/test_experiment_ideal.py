import json
import os

import pytest

pytest.importorskip("networkx", reason="graphs need the extra 'theory'")
pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")


def test_a_quick_run_writes_tables_figures_and_a_page(cli, tmp_path):
    result = cli("experiment", "ideal", "-o", "out", "--quick", "--break", "session-shift")
    assert result.exit_code == 0, result.stderr
    figures = [
        f"{name}.{ending}"
        for name in ("broken", "calibration", "dependence", "gain", "killer")
        for ending in ("png", "svg")
    ]
    tables = [
        f"{name}.md"
        for name in ("broken-session-shift", "calibration", "dependence", "growth", "information", "killer")
    ]
    assert sorted(os.listdir("out")) == sorted([*figures, *tables, "index.md", "norms.csv", "results.json"])
    assert "No norm gains over raw scores" in result.stdout
    assert result.stdout.rstrip().endswith("out/index.md has it all.")
    assert max(map(len, result.stdout.splitlines())) <= 200
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["break"] for row in results["norms"]} == {"none", "session-shift"}
    assert "Broken assumptions" in (tmp_path / "out" / "index.md").read_text()


def test_other_real_scores_can_be_given(cli, tmp_path):
    from evenscore import load_audiomnist_scores
    from evenscore.recipes.text_dependent import ScoreSet, save_score_set

    real = load_audiomnist_scores()
    save_score_set(ScoreSet(real.development[:2], real.evaluation[:2], real.gender), tmp_path / "two")
    options = ("--quick", "--break", "little-data", "--scores", "two", "--json")
    result = cli("experiment", "ideal", "-o", "out", *options)
    assert result.exit_code == 0, result.stderr
    results = json.loads(result.stdout)
    assert list(results["calibration"]) == ["Scores drawn from the score model", "Real scores"]
    assert results == json.loads((tmp_path / "out" / "results.json").read_text())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--break", "cosines"), "error: there is no break 'cosines'; there are approximation, little-data"),
        (("--scores", "nowhere"), "error: nowhere: there is no such directory"),
    ],
)
def test_wrong_options_are_refused_before_the_work(cli, options, message):
    result = cli("experiment", "ideal", "-o", "out", "--quick", *options)
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("taken", "error: taken: a file of this name exists, but several files are to be written"),
        ("nowhere/out", "error: nowhere/out: its directory does not exist; create it first"),
        ("taken/out", "error: taken/out: it cannot be written: Not a directory"),
    ],
)
def test_a_directory_that_cannot_be_written_is_refused(cli, file, output, message):
    file("taken", "something else")
    result = cli("experiment", "ideal", "-o", output, "--quick")
    assert result.exit_code == 2
    assert result.stderr.startswith(message)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_is_refused(cli, tmp_path):
    (tmp_path / "out").mkdir(mode=0o555)
    result = cli("experiment", "ideal", "-o", "out", "--quick")
    assert result.exit_code == 2
    assert "no permission to write there" in result.stderr


def test_fewer_than_two_seeds_are_refused(cli):
    result = cli("experiment", "ideal", "-o", "out", "--seeds", 1)
    assert result.exit_code == 2
