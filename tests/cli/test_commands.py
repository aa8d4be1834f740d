"""What normalize, fit, simulate and model do that the acceptance cases do not look at."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenscore import read_scores, read_speakers, read_trials

SIDES = "--enroll-embeddings $D/x.npz --test-embeddings $D/x.npz"
VECTORS = f"{SIDES} --cohort-embeddings $D/c.npz"
BLOCKS = "--trials $D/eval/trials.scores --enroll-cohort $D/eval/enroll.scores --test-cohort $D/eval/test.scores"
INNER = "--cohort $D/eval/cohort.scores --cohort-key $D/eval/cohort.trials --speakers $D/eval/utt2spk"
TRAIN = "--scores $D/dev/scores.scores --key $D/dev/key.trials"


def test_the_default_norm_is_as(run):
    run(f"normalize {BLOCKS} -o default.scores")
    run(f"normalize --norm as {BLOCKS} -o named.scores")
    assert read_scores("default.scores") == read_scores("named.scores")


@pytest.mark.parametrize(
    ("made_by", "given", "suggested"),
    [
        ("cosine:center=$D/c.npz", "cosine", "cosine:center="),
        ("dot", "cosine", "dot"),
        ("cosine", "dot", "cosine"),
        ("dot:center=$D/c.npz", "dot", "dot:center="),
        ("cosine:center=$D/x.npz", "cosine", "center=FILE"),
        ("cosine", "cosine", None),
        ("cosine:center=$D/c.npz", "cosine:center=$D/c.npz", None),
    ],
)
def test_scores_that_the_scorer_does_not_make_are_noticed(made_by, given, suggested, run):
    run(f"score {SIDES} --trials $D/x.trials --scorer {made_by} -o raw.csv")
    lines = [line.split(",") for line in Path("raw.csv").read_text().splitlines()]
    Path("raw.scores").write_text("".join(f"{a} {b} {float(score):.4f}\n" for a, b, score, *_ in lines[1:]))
    said = run(f"normalize --trials raw.scores {VECTORS} --scorer {given} -o out.scores").stderr
    if suggested is None:
        assert said == ""
    else:
        assert said.startswith("warning: ")
        assert suggested in said


def test_raw_scores_are_normalized_as_those_that_the_scorer_makes(run):
    run(f"score {SIDES} --trials $D/x.trials -o raw.csv")
    run(f"normalize --norm s --trials raw.csv {VECTORS} -o known.csv")
    run(f"normalize --norm s --trials $D/x.trials {VECTORS} -o made.csv")
    np.testing.assert_allclose(read_scores("known.csv").scores, read_scores("made.csv").scores, rtol=1e-9)


def test_a_model_that_fit_makes_is_used_and_shown(run):
    told = json.loads(run(f"fit --norm lgsm:dim=1 {TRAIN} -o m.json --json").stdout)
    assert told["scores"] == {"nontarget": 24 * 48 - 96, "target": 96}
    assert told["converged"]
    shown = json.loads(run("model show m.json --json").stdout)
    assert shown.pop("info")["converged"]
    assert shown == told["model"]
    assert shown["dim"] == 1
    run(f"normalize --norm lgsm --model m.json {BLOCKS} -o out.npz")
    llr = read_scores("out.npz").to_trials().join(read_trials("out.npz").join(key_of(run)))
    assert llr.scores[llr.labels == 1].mean() > 1 > -1 > llr.scores[llr.labels == 0].mean()


def key_of(run):
    run("convert $D/eval/key.trials key.csv")
    return read_trials("key.csv")


def test_evidence_is_trained_and_used_with_own_speakers(run):
    run(f"fit --norm evidence {TRAIN} -o m.json")
    run(f"normalize --norm evidence --model m.json {BLOCKS} {INNER} --folds 3 -o out.scores")
    llr = read_scores("out.scores").join(key_of(run))
    assert llr.scores[llr.labels == 1].mean() > llr.scores[llr.labels == 0].mean() + 1


def test_fit_takes_labels_from_keys_maps_and_files(run):
    lines = [
        run(f"fit --norm lgsm:residuals=gaussian {data} -o m.json").stdout
        for data in (
            TRAIN,
            "--scores $D/dev/scores.scores --speakers $D/dev/utt2spk",
        )
    ]
    run("convert $D/dev/scores.scores labelled.csv --key $D/dev/key.trials")
    lines.append(run("fit --norm lgsm:residuals=gaussian --scores labelled.csv -o m.json").stdout)
    assert lines[0] == lines[1] == lines[2]
    assert "log-likelihood" in lines[0]


def test_what_the_data_do_not_determine_is_said(run):
    run("simulate --speakers 30 --enroll-per-speaker 1 --test-per-speaker 1 --to kaldi -o one")
    told = run("fit --norm lgsm:residuals=gaussian --scores one/scores.scores --key one/key.trials -o m.json").stdout
    assert "note: no enrolment has two target scores" in told


def test_a_simulated_experiment_agrees_with_itself(run):
    run("simulate --speakers 4 --cohort-speakers 3 --seed 7 -o sim")
    speakers, key = read_speakers("sim/utt2spk"), read_trials("sim/key.trials")
    trials = read_scores("sim/trials.npz")
    for number in range(len(key)):
        enroll, test = key.pair(number)
        assert key.labels[number] == (speakers[enroll] == speakers[test])
    assert trials.shape == (8, 16)
    assert read_scores("sim/enroll.npz").test_ids.tolist() == read_scores("sim/cohort.npz").test_ids.tolist()
    run("simulate --speakers 4 --cohort-speakers 3 --seed 7 -o again")
    assert read_scores("again/trials.npz") == trials
    run("simulate --speakers 4 --cohort-speakers 3 --seed 8 -o other")
    assert read_scores("other/trials.npz") != trials
