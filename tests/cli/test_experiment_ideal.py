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
    assert sorted(os.listdir("out")) == sorted(
        [*figures, "broken.md", "index.md", "killer.md", "norms.csv", "results.json"]
    )
    assert "No norm gains over raw scores" in result.stdout
    assert result.stdout.rstrip().endswith("out/index.md has it all.")
    assert max(map(len, result.stdout.splitlines())) <= 200
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {row["break"] for row in results["norms"]} == {"none", "session-shift"}
    assert "Broken assumptions" in (tmp_path / "out" / "index.md").read_text()


def test_real_scores_get_a_plot_of_their_own(cli, file, tmp_path):
    import numpy as np

    rng = np.random.default_rng(0)
    speakers = np.repeat([f"s{n}" for n in range(16)], 8)
    vectors = 2 * rng.normal(size=(16, 4)).repeat(8, axis=0) + rng.normal(size=(128, 4))
    np.savez(
        tmp_path / "e.npz", ids=[f"u{n}" for n in range(128)], embeddings=vectors, speakers=speakers, word=["a"] * 128
    )
    options = ("--quick", "--break", "little-data", "--embeddings", "e.npz", "--phrase", "word", "--json")
    result = cli("experiment", "ideal", "-o", "out", *options)
    assert result.exit_code == 0, result.stderr
    results = json.loads(result.stdout)
    assert list(results["calibration"]) == ["Scores drawn from the score model", "Real scores"]
    assert results == json.loads((tmp_path / "out" / "results.json").read_text())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--break", "cosines"), "error: there is no break 'cosines'; there are approximation, little-data"),
        (("--scores", "a", "--embeddings", "b"), "error: --scores and --embeddings both say where real scores"),
        (("--scores", "nowhere"), "error: nowhere: there is no such directory"),
        (("--embeddings", "nothing.npz"), "error: nothing.npz: there is no such file"),
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
