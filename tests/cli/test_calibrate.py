"""`evenscore calibrate` beside the acceptance cases: probabilities, self-pairs, options that exclude each other."""

import numpy as np
import pytest

from evenscore import LogisticCalibration, posterior_probability, read_scores, read_trials

TRAIN = "--train $D/dev/scores.scores --train-key $D/dev/key.trials"
EVAL = "$D/eval/trials.scores"
REFUSED = {
    f"{TRAIN} {EVAL}": "-o",
    f"{TRAIN} -o out": "SCORES",
    TRAIN: "--save",
    f"{EVAL} -o out": "--train",
    f"{TRAIN} --load c.json {EVAL} -o out": "--load",
    f"{TRAIN} --key $D/eval/key.trials {EVAL} -o out": "--cross-validate",
    f"--train $D/dev/scores.scores {EVAL} -o out": "--train-key",
    f"--cross-validate 5 {EVAL} -o out": "--key",
    f"--cross-validate 2 --key $D/eval/key.trials {EVAL} -o out": "--cross-validate",
    f"{TRAIN} {EVAL} -o out --posterior 0.1": "--posterior",
    f"{TRAIN} {EVAL} -o out.csv --posterior 7": "--posterior",
    f"{TRAIN} {EVAL} {EVAL} -o out": "1 systems",
    f"{TRAIN} --calibration gaussian:l2=1 {EVAL} -o out": "'l2'",
    f"{TRAIN} --quality dur {EVAL} -o out": "'dur'",
    f"{TRAIN} --calibration logistc {EVAL} -o out": "logistic",
}


@pytest.mark.parametrize("line", REFUSED)
def test_wrong_use_is_named(line, run, tmp_path):
    assert REFUSED[line] in " ".join(run(f"calibrate {line}", code=2).stderr.split())
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize("output", ["out.csv", "out.tsv", "out.parquet", "out.npz"])
def test_posterior_is_a_column_beside_the_llrs(output, run, data):
    run(f"calibrate {TRAIN} {EVAL} -o {output} --posterior 0.01")
    found, trials = read_scores(output), read_scores(data / "dev/scores.scores")
    fit = LogisticCalibration.fit(trials.to_trials().join(read_trials(data / "dev/key.trials")))
    assert np.allclose(found.scores, fit(read_scores(data / "eval/trials.scores").to_trials()).scores)
    assert np.allclose(found.columns["posterior"], posterior_probability(found.scores, 0.01))


def test_an_id_on_both_sides_is_a_warning(run, tmp_path):
    pairs = [(a, b) for a in range(9) for b in range(9)]
    rng = np.random.default_rng(0)
    (tmp_path / "s").write_text("".join(f"u{a} u{b} {rng.normal(2 * (a == b)):.3f}\n" for a, b in pairs))
    (tmp_path / "k").write_text("".join(f"u{a} u{b} {'target' if a == b else 'nontarget'}\n" for a, b in pairs))
    assert run("calibrate --train s --train-key k --save c.json").stderr.startswith("warning: in 9 trials")
    assert run(f"calibrate {TRAIN} --save d.json").stderr == ""


def test_speakers_of_a_cross_validation_follow_from_target_trials(run):
    command = "calibrate --cross-validate 4 --calibration logistic:l2=0.1 --key $D/dev/key.trials $D/dev/scores.scores"
    run(f"{command} -o a.npz")
    run(f"{command} --speakers $D/dev/utt2spk -o b.npz")
    a, b = read_scores("a.npz").to_trials(), read_scores("b.npz").to_trials()
    assert len(a) == len(b)
    assert np.corrcoef(a.scores, b.scores)[0, 1] > 0.99
