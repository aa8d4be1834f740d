"""What the command ``evaluate`` adds to the library: labels, conditions, thresholds, remarks."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import evenscore.cli.evaluate as command
from evenscore import ScoreMatrix, TrialList, evaluate, write
from evenscore.cli.app import app
from evenscore.metrics import miss_rate_at

IDS = [f"s{speaker}-{take}" for speaker in range(6) for take in range(3)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Scores of every utterance against every other one, a key, a speaker map and a table of genders."""
    rng = np.random.default_rng(3)
    pairs = [(a, b) for a in IDS for b in IDS if a != b]
    labels = [int(a[:2] == b[:2]) for a, b in pairs]
    trials = TrialList(*zip(*pairs, strict=True), scores=rng.normal(3.0 * np.array(labels), 1.0), labels=labels)
    monkeypatch.chdir(tmp_path)
    write(trials.with_labels(None), "raw.scores", format="kaldi")
    write(trials, "own.csv")
    (tmp_path / "key").write_text(
        "".join(f"{a} {b} {('nontarget', 'target')[k]}\n" for (a, b), k in zip(pairs, labels, strict=True))
    )
    (tmp_path / "utt2spk").write_text("".join(f"{name} {name[:2]}\n" for name in IDS))
    (tmp_path / "meta.csv").write_text("id,gender\n" + "".join(f"{name},{'fm'[int(name[1]) % 2]}\n" for name in IDS))
    matrix = trials.to_matrix()
    write(ScoreMatrix(matrix.scores, matrix.enroll_ids, matrix.test_ids), "raw.zarr")
    return trials


def run(*arguments):
    """Run evaluate; returns its exit code, JSON or text, and standard error."""
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)])
    out = json.loads(result.stdout) if "--json" in arguments and result.exit_code == 0 else result.stdout
    return result.exit_code, out, result.stderr


@pytest.mark.parametrize(
    "source", [("raw.scores", "--key", "key"), ("raw.scores", "--speakers", "utt2spk"), ("own.csv",)]
)
def test_labels_come_from_a_key_from_speakers_or_from_the_scores(folder, source):
    code, found, _ = run(*source, "--json")
    assert code == 0
    assert found["pooled"]["eer"] == pytest.approx(evaluate(folder).eer)
    assert found["pooled"]["n_target"] == 36


@pytest.mark.parametrize("source", [("--key", "key"), ("--speakers", "utt2spk")])
def test_large_matrices_are_read_in_chunks(folder, monkeypatch, source):
    small = run("raw.zarr", *source, "--json", "--metadata", "meta.csv", "--by", "enroll:gender")[1]
    monkeypatch.setattr(command, "_LISTED", 0)
    if "--key" not in source:  # an utterance against itself has no score, so speakers are enough
        assert small["pooled"]["n_target"] == 36
    code, large, _ = run("raw.zarr", *source, "--json", "--metadata", "meta.csv", "--by", "enroll:gender")
    assert code == 0
    for one, two in (
        (small["pooled"], large["pooled"]),
        *((small["conditions"]["enroll:gender"][g], large["conditions"]["enroll:gender"][g]) for g in "fm"),
    ):
        for name in ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr", "n_target", "n_nontarget"):
            assert one[name] == pytest.approx(two[name], rel=1e-6), name


def test_a_threshold_at_a_false_alarm_rate_with_its_interval(folder):
    _, found, _ = run("raw.scores", "--key", "key", "--at-far", 0.05, "--bootstrap", 50, "--json")
    at, expected = found["pooled"]["at_far"], miss_rate_at(folder, p_fa=0.05)
    assert (at["threshold"], at["p_miss"]) == pytest.approx((expected.threshold, expected.p_miss))
    assert at["interval"][0] <= at["p_miss"] <= at["interval"][1]
    assert found["pooled"]["intervals"]["n_speakers"] == 6
    assert "miss rate" in run("raw.scores", "--key", "key", "--at-far", 0.05)[1]


def test_uncalibrated_scores_get_a_remedy_and_self_trials_a_warning(folder):
    assert "logistic:p_target=0.5" in run("raw.scores", "--key", "key", "--points", 0.5)[1]
    best = evaluate(folder, points=0.5).costs[0].min_threshold
    write(folder.with_scores(folder.scores - best + 1e-6).with_labels(None), "llr.scores", format="kaldi")
    code, text, err = run("llr.scores", "--key", "key", "--points", 0.5)
    assert (code, err) == (0, "")
    assert "logistic" not in text
    Path("self.scores").write_text("a a 3.5\na b 2.5\nb a 1.0\n")
    Path("self.key").write_text("a a target\na b nontarget\nb a nontarget\n")
    code, _, err = run("self.scores", "--key", "self.key")
    assert code == 0
    assert "warning" in err


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("raw.scores",), "raw.scores"),
        (("raw.scores", "--key", "key", "--by", "gender", "--metadata", "meta.csv"), "enroll:gender"),
        (("raw.scores", "--key", "key", "--by", "enroll:age", "--metadata", "meta.csv"), "age"),
        (("raw.scores", "--key", "key", "--preset", "sre77"), "sre77"),
        (("raw.scores", "--key", "key", "--preset", "sre16"), "num_enroll_segs"),
        (("raw.scores", "--key", "key", "--spoof", "1,2"), "1,2"),
        (("raw.scores", "--key", "key", "--equalize"), "--by"),
        (("raw.scores", "--key", "key", "--points", "2"), "2"),
        (("raw.scores", "--key", "key", "--eer", "best"), "best"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_cause(folder, arguments, culprit):
    code, _, err = run(*arguments)
    assert code == 2
    assert culprit in err
