"""evenscore choose-cohort through the command line."""

import json
import sys

import numpy as np
import pytest

from evenscore import (
    Embeddings,
    LabelledBlocks,
    ScoreMatrix,
    ScoreModel,
    choose_cohort,
    simulate,
    simulate_blocks,
    write,
)

MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[0.9], [0.7]], beta=[[0.8], [0.6]], sigma2=[1.0, 1.5])
QUICK = ("--bootstrap", "20", "--repeats", "2")


def people(group, count, each):
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


@pytest.fixture
def dev(tmp_path):
    rows, columns = people("s", 16, 1), people("s", 16, 2)
    scores, labels = simulate(MODEL, rows, columns, seed=1)
    write(scores, tmp_path / "dev.npz")
    known = dict(zip([*scores.enroll_ids, *scores.test_ids], [*rows, *columns], strict=True))
    write(known, tmp_path / "utt2spk", format="utt2spk")
    write(scores.to_trials(labels), tmp_path / "dev.csv")
    return LabelledBlocks.own_cohort(scores, labels)


TRAIN = ("--train", "dev.npz", "--train-speakers", "utt2spk")


def test_sizes(cli, dev, tmp_path):
    pytest.importorskip("matplotlib")
    run = cli("choose-cohort", *TRAIN, "--method", "s", "--sizes", "4,8,all", *QUICK, "--plot", "sizes.svg")
    assert run.exit_code == 0, run.stderr
    expected = choose_cohort([dev], "s", sizes=[4, 8, None], bootstrap=20, repeats=2)
    assert expected.text in run.stdout
    for candidate in expected.candidates:
        assert f"{candidate.mean:.3f}" in run.stdout
    assert "mean and spread (standard deviation) of 2 random cohorts" in run.stdout
    assert (tmp_path / "sizes.svg").read_text().startswith("<?xml")


def test_json_of_top_k_and_labels_of_the_file(cli, dev):
    run = cli("choose-cohort", "--train", "dev.csv", "--top-k", "3,0.5,900", *QUICK, "--json", "--metric", "eer")
    assert run.exit_code == 0, run.stderr
    found = json.loads(run.stdout)
    expected = choose_cohort([dev], "as", top_k=[3, 0.5], bootstrap=20, repeats=2, metric="eer")
    assert [row["mean"] for row in found["candidates"]] == pytest.approx([one.mean for one in expected.candidates])
    assert found["best"] in found["candidates"]
    assert list(found["not_run"]) == ["all, top_k 900"]
    assert found["metric"] == "eer"


def test_candidates(cli, dev, file):
    file("few", "s1\ns2\ns3\ns4\ns5\ns6\n")
    run = cli("choose-cohort", *TRAIN, "--method", "s", "--candidates", "few=few", "--candidates", "everybody")
    assert run.exit_code == 0, run.stderr
    assert "few " in run.stdout
    assert "everybody " in run.stdout


def test_a_cohort_of_others(cli, tmp_path):
    rows, columns = people("s", 12, 1), people("s", 12, 2)
    blocks, labels = simulate_blocks(MODEL, rows, columns, people("c", 10, 1), people("c", 10, 2), seed=4)
    write(blocks.trials.to_trials(labels), tmp_path / "dev.csv")
    write(ScoreMatrix.concat([blocks.enroll, blocks.test]), tmp_path / "coh.npz")
    known = dict(zip([*blocks.trials.enroll_ids, *blocks.trials.test_ids], [*rows, *columns], strict=True))
    write(known, tmp_path / "utt2spk", format="utt2spk")
    command = ("--train", "dev.csv", "--train-speakers", "utt2spk", "--cohort", "coh.npz", "--method", "s")
    run = cli("choose-cohort", *command, "--sizes", "5,all", "--folds", "3", *QUICK, "--json")
    assert run.exit_code == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["unit"] == "members"
    assert [row["members"] for row in found["candidates"]] == [5, 15]


def test_embeddings(cli, tmp_path):
    rng = np.random.default_rng(2)
    for group, count in (("dev", 12), ("coh", 10)):
        names = people(group, count, 3)
        vectors = np.repeat(rng.normal(size=(count, 6)), 3, axis=0) + rng.normal(size=(3 * count, 6))
        write(
            Embeddings([f"{name}-{n % 3}" for n, name in enumerate(names)], vectors, names), tmp_path / f"{group}.npz"
        )
    command = ("--train-embeddings", "dev.npz", "--cohort-embeddings", "coh.npz", "--folds", "3", *QUICK)
    run = cli("choose-cohort", *command, "--method", "s", "--sizes", "5,10", "--cohort-unit", "speaker", "--json")
    assert run.exit_code == 0, run.stderr
    assert [row["members"] for row in json.loads(run.stdout)["candidates"]] == [5, 10]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (TRAIN, "there is nothing to choose from; give --sizes"),
        ((*TRAIN, "--sizes", ","), "--sizes is empty"),
        ((*TRAIN, "--sizes", "4,x"), "--sizes has 'x'"),
        ((*TRAIN, "--top-k", "a"), "--top-k has 'a'"),
        ((*TRAIN, "--candidates", "x="), "must be a name and a list of ids"),
        ((*TRAIN, "--candidates", "x", "--candidates", "x"), "two candidates are called 'x'"),
        ((*TRAIN, "--candidates", "x=nowhere"), "nowhere: there is no such file"),
        (("--sizes", "3"), "give the training side with one of"),
        (("--train", "dev.npz", "--sizes", "3"), "dev.npz: the scores have no labels; give --train-key"),
        ((*TRAIN, "--sizes", "3", "--method", "raw"), "there is no norm 'raw' that uses a cohort"),
    ],
)
def test_bad_input_is_refused(cli, dev, arguments, message):
    run = cli("choose-cohort", *arguments)
    assert run.exit_code == 2
    assert message in run.stderr


def test_a_figure_without_matplotlib_is_refused_before_the_work(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    run = cli("choose-cohort", *TRAIN, "--sizes", "4", "--plot", "sizes.svg")  # there is nothing to read, either
    assert run.exit_code == 2
    assert "figures need the package matplotlib; install it: pip install 'evenscore[plot]'" in run.stderr
