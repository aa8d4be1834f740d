"""``evenscore simulate``: what it writes is what the library draws."""

import numpy as np
import pytest

from evenscore import ScoreModel, read_scores, read_speakers, read_trials, save_model, simulate, simulate_blocks

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.3], [0.7]], sigma2=[1.0, 2.0])


@pytest.fixture
def model_file(tmp_path):
    save_model(MODEL, tmp_path / "m.json")
    return "m.json"


def named(group, count, each):
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


def test_scores_key_and_speakers_are_those_of_the_library(cli, tmp_path, model_file):
    result = cli(
        "simulate", "--model", model_file, "--speakers", 5, "--enroll-per-speaker", 2, "--test-per-speaker", 3,
        "--seed", 7, "-o", "train",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == ["train/scores.npz", "train/key.trials", "train/utt2spk"]
    scores, labels = simulate(MODEL, named("spk", 5, 2), named("spk", 5, 3), seed=7)
    assert read_scores(tmp_path / "train/scores.npz") == scores
    key = read_trials(tmp_path / "train/key.trials")
    assert key.scores is None
    assert np.array_equal(scores.to_trials().join(key).labels, labels.matrix.ravel())
    speakers = read_speakers(tmp_path / "train/utt2spk")
    assert speakers["e0"] == "spk0"
    assert speakers["t14"] == "spk4"


def test_a_whole_experiment(cli, tmp_path, model_file):
    arguments = ("--model", model_file, "--speakers", 4, "--cohort-speakers", 6, "--seed", 3, "-o", "eval")
    assert cli("simulate", *arguments).exit_code == 0
    blocks, labels = simulate_blocks(
        MODEL, named("spk", 4, 2), named("spk", 4, 4), named("coh", 6, 2), named("coh", 6, 4), seed=3
    )
    for name in ("trials", "enroll", "test", "cohort"):
        assert read_scores(tmp_path / f"eval/{name}.npz") == getattr(blocks, name)
    assert read_trials(tmp_path / "eval/key.trials").n_target == labels.n_target
    assert read_trials(tmp_path / "eval/cohort.trials").n_target == 6 * 2 * 4
    assert len(read_speakers(tmp_path / "eval/utt2spk")) == 4 * 6 + 6 * 6


@pytest.mark.parametrize(("name", "extra"), [("one.csv", ()), ("one.npz", ()), ("-", ()), ("one.csv.gz", ())])
def test_one_file_holds_scores_and_labels(cli, tmp_path, name, extra):
    result = cli("simulate", "--speakers", 3, "-o", name, *extra)
    assert result.exit_code == 0, result.stderr
    if name == "-":
        (tmp_path / "one").write_text(result.stdout)
        name = "one"
    trials = read_scores(tmp_path / name)
    assert len(trials) == 6 * 12
    assert trials.n_target == 3 * 2 * 4


def test_text_formats_and_a_directory_that_is_there(cli, tmp_path):
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "mine").write_text("keep")
    assert cli("simulate", "--speakers", 3, "-o", "train", "--to", "kaldi").exit_code == 0
    assert len(read_scores(tmp_path / "train/scores.scores")) == 72
    assert (tmp_path / "train" / "mine").read_text() == "keep"


def test_a_file_in_the_place_of_the_directory(cli, tmp_path):
    (tmp_path / "train").write_text("keep")
    result = cli("simulate", "--speakers", 3, "-o", "train")
    assert result.exit_code == 2
    assert "a directory is needed" in result.stderr
    assert (tmp_path / "train").read_text() == "keep"


def test_seeds_differ_and_repeat(cli, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        cli("simulate", "--speakers", 3, "--seed", seed, "-o", f"{name}.csv")
    a, b, c = ((tmp_path / f"{name}.csv").read_text() for name in "abc")
    assert a == b != c


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--speakers", 3, "--cohort-speakers", 2, "-o", "x.csv"], "name a directory"),
        (["--speakers", 10_000_000, "-o", "x"], "simulate fewer speakers"),
        (["--model", "absent.json", "-o", "x"], "absent.json: there is no such file"),
        (["--speakers", 3, "-o", "a/b"], "a/b: its directory does not exist"),
        (["--speakers", 3, "-o", "x", "--to", "nonsense"], "there is no format 'nonsense'"),
    ],
)
def test_refusals(cli, tmp_path, arguments, reason):
    result = cli("simulate", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert reason in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--speakers", 0], ["--enroll-per-speaker", 0], ["--seed", -1]])
def test_numbers_out_of_range_are_wrong_use(cli, arguments):
    assert cli("simulate", *arguments, "-o", "x").exit_code == 2
