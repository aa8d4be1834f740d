"""``evenscore adapt``: the model of the library, in a file; and a reason for every refusal."""

import json

import numpy as np
import pytest

from evenscore import ScoreModel, adapt_score_model, load_model, save_model, simulate_blocks, write

TRAINED = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
SPEAKERS, COHORT = [f"s{n % 10}" for n in range(20)], [f"c{n}" for n in range(5)]
BLOCKS, LABELS = simulate_blocks(TRAINED.rescaled(1.0, 2.5), SPEAKERS, SPEAKERS, COHORT, COHORT, seed=8)
TRIALS = BLOCKS.trials.to_trials(LABELS)
COMMAND = ("adapt", "--model", "m.json", "--scores", "eval.csv", "--prior", "0.1", "-o", "a.json")


@pytest.fixture
def run(cli, tmp_path):
    save_model(TRAINED, tmp_path / "m.json")
    write(TRIALS, tmp_path / "eval.csv")
    write(BLOCKS.test, tmp_path / "test.npz")
    write(TRIALS.select(np.arange(0, 400, 2)), tmp_path / "some.csv")
    return lambda *more: cli(*COMMAND, *more)


def test_the_adapted_model_is_written_and_explained(run):
    result = run()
    assert result.exit_code == 0, result.stderr
    assert "400 trials without labels, 0 scores with labels" in result.stdout
    expected = adapt_score_model(TRAINED, TRIALS.with_labels(None), prior=0.1).model
    np.testing.assert_allclose(load_model("a.json").mu, expected.mu, rtol=1e-9)
    with open("a.json", encoding="utf-8") as file:
        info = json.load(file)["info"]
    assert (info["adapted_from"], info["prior"], info["trials"]) == ("m.json", 0.1, 400)


@pytest.mark.parametrize(
    ("more", "counts"), [(("--key", "some.csv"), (200, 200)), (("--test", "test.npz"), (400, 100)), ((), (400, 0))]
)
def test_known_labels_and_cohort_scores_are_used(run, more, counts):
    facts = json.loads(run("--json", "--change", "affine", *more).stdout)
    assert (facts["trials"], facts["known"]) == counts
    assert abs(facts["shift"] - 2.5) < 0.4


def test_speakers_of_the_enrolments_make_the_guard_more_careful(run, file):
    file("utt2spk", "".join(f"{name} {who}\n" for name, who in zip(BLOCKS.trials.enroll_ids, SPEAKERS, strict=True)))
    needed = [json.loads(run("--json", *more).stdout)["score_gain_needed"]
              for more in ((), ("--enroll-speakers", "utt2spk"))]  # fmt: skip
    assert needed[0] != pytest.approx(needed[1], rel=1e-3)


def test_without_a_shift_the_trained_model_is_kept(run, tmp_path):
    save_model(TRAINED.rescaled(1.0, 2.5), tmp_path / "m.json")
    result = run()
    assert result.exit_code == 2
    assert "the trained model explains these trials as well" in " ".join(result.stderr.split())
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--prior", "0.001"), "only 0.4 targets are expected"),
        (("--prior", "2"), "prior is 2"),
        (("--key", "m.csv"), "m.csv"),
        (("--test", "test.npz", "--scores", "eval.csv"), "belong to one file of trials"),
        (("-o", "nowhere/a.json"), "its directory does not exist"),
        (("-o", "-", "--json"), "not both"),
    ],
)
def test_refusals_have_a_reason_and_leave_no_file(run, tmp_path, more, reason):
    result = run(*more)
    assert result.exit_code == 2
    assert reason in " ".join(result.stderr.split())
    assert not (tmp_path / "a.json").exists()
