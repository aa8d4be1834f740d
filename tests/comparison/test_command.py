"""``evenscore compare`` on files gives what `compare` gives on tables."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from comparison.conftest import MODEL, make_sides
from evenscore import Embeddings, ScoreMatrix, simulate_blocks, write
from evenscore.cli.app import app
from evenscore.comparison import compare


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def command(line, code=0):
        result = CliRunner().invoke(app, line.split())
        assert result.exit_code == code, result.output
        return result.output if code else json.loads((tmp_path / "out" / "results.json").read_text())

    return command


def write_sides(folder, training, evaluation, prefix=""):
    """Write the scores of both sides, and who speaks."""
    blocks = evaluation.blocks
    write(training.blocks.trials, folder / f"{prefix}train.npz")
    for name in ("trials", "enroll", "test"):
        write(getattr(blocks, name), folder / f"{prefix}{name}.npz")
    sides = [blocks.trials.enroll, blocks.trials.test, training.blocks.trials.enroll, training.blocks.trials.test]
    return {name: speaker for side in sides for name, speaker in zip(side.ids, side.speakers, strict=True)}


def test_scores_of_several_conditions(run, tmp_path):
    pairs = [make_sides(seed, n_training=20, n_evaluation=10, name=name) for seed, name in ((1, "a"), (2, "b"))]
    maps = [write_sides(tmp_path, *pair, prefix) for pair, prefix in zip(pairs, "ab", strict=True)]
    write(maps[0] | maps[1], tmp_path / "utt2spk")
    files = " ".join(f"--train {x}train.npz --trials {x}trials.npz --enroll-cohort {x}enroll.npz" for x in "ab")
    tests = "--test-cohort atest.npz --test-cohort btest.npz"
    found = run(f"compare {files} {tests} --speakers utt2spk --methods s,zt --bootstrap 9 --scores -o out")
    expected = compare([pair[0] for pair in pairs], [pair[1] for pair in pairs], ["s", "zt"], bootstrap=9)
    for name in ("raw", "s", "zt"):
        assert found["methods"][name]["figures"]["cllr"] == pytest.approx(expected[name].figures.evaluation.cllr)
    assert set(found["methods"]["s"]["conditions"]) == {"atrials", "btrials"}
    assert (tmp_path / "out" / "methods" / "zt" / "llrs-atrials.npz").exists()
    assert found["run"]["command"].startswith("evenscore")


def test_a_cohort_of_others_is_found_by_its_ids(run, tmp_path):
    groups = [[f"{group}{n // 2}" for n in range(40)] for group in ("known", "new", "other")]
    everybody = [name for group in groups for name in group]
    blocks, _ = simulate_blocks(MODEL, everybody, everybody, groups[0][:2], groups[0][:2], seed=4)
    scores = blocks.trials
    sides = (scores.enroll, scores.test)
    write(
        {name: who for side in sides for name, who in zip(side.ids, side.speakers, strict=True)}, tmp_path / "utt2spk"
    )
    known, new, other = (np.arange(40) + 40 * n for n in range(3))
    for name, rows, cols in (("train", known, known), ("trials", new, new)):
        write(scores.take(rows, cols), tmp_path / f"{name}.npz")
    keep = np.full(scores.shape, np.nan)
    for rows, cols in ((known, other), (other, known), (new, other), (other, new), (other, other)):
        keep[np.ix_(rows, cols)] = scores.scores[np.ix_(rows, cols)]
    write(ScoreMatrix(keep, scores.enroll, scores.test), tmp_path / "pool.npz")
    line = "compare --train train.npz --trials trials.npz --cohort pool.npz --speakers utt2spk --bootstrap 9 -o out"
    found = run(f"{line} --methods s,zt,lgsm")
    assert found["failed"] == {}
    assert found["data"]["cohort_speakers"] == 20
    assert found["methods"]["s"]["figures"]["cllr"] < found["methods"]["raw"]["figures"]["cllr"]


def test_embeddings_are_centred_without_the_speakers_of_a_training_trial(run, tmp_path):
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(44), 3)
    vectors = 1.5 + rng.normal(size=(44, 10))[speakers] + 0.6 * rng.normal(size=(132, 10))
    everybody = Embeddings([f"u{n}" for n in range(132)], vectors, [f"s{n}" for n in speakers])
    write(everybody.take(slice(0, 66)), tmp_path / "dev.npz")
    write(everybody.take(slice(66, 132)), tmp_path / "eval.npz")
    new = "--enroll-embeddings eval.npz --test-embeddings eval.npz"
    line = f"compare --train-embeddings dev.npz {new} --bootstrap 9 -o out"
    plain = run(f"{line} --methods s")
    centred = run(f"{line} --methods s,lgsm --scorer cosine:center=dev.npz")
    assert centred["failed"] == {}
    assert centred["data"]["evaluation"]["trials"] == 66 * 66 - 66
    assert centred["methods"]["raw"]["figures"]["cllr"] < plain["methods"]["raw"]["figures"]["cllr"]


@pytest.mark.parametrize(
    ("line", "culprit"),
    [
        ("--trials x -o out", "--train"),
        ("--train train.npz --trials trials.npz --methods asnorm -o out", "'as'"),
        ("--train train.npz --trials trials.npz --points 0.1,2 -o out", "--points"),
        ("--train train.npz --trials train.npz --speakers utt2spk -o out", "--allow-overlap"),
        ("--train train.npz --train train.npz --trials trials.npz --speakers utt2spk -o out", "--trials"),
        ("--train-embeddings e.npz -o out", "--enroll-embeddings"),
        ("--train train.npz --trials trials.npz --speakers utt2spk -o train.npz", "train.npz"),
    ],
)
def test_refusals_name_options_and_leave_nothing(run, tmp_path, sides, line, culprit):
    write(write_sides(tmp_path, *sides), tmp_path / "utt2spk")
    before = sorted(tmp_path.iterdir())
    assert culprit in run(f"compare {line} --bootstrap 9", code=2)
    assert sorted(tmp_path.iterdir()) == before
