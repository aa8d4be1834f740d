"""``evenscore verifier``: the digits of normalize and calibrate, from one file."""

import numpy as np
import pytest

from evenscore import read_scores, save_calibration, save_model, write
from evenscore.files import load_verifier
from online_data import CALIBRATION, COHORT, ENROLLED, SIMPLE, TESTED

SIDES = ("--enroll-embeddings", "e.npz", "--test-embeddings", "t.npz")


@pytest.fixture(autouse=True)
def files(tmp_path):
    for name, table in (("c", COHORT), ("e", ENROLLED), ("t", TESTED)):
        write(table, tmp_path / f"{name}.npz")
    save_calibration(CALIBRATION, tmp_path / "cal.json")
    save_model(SIMPLE, tmp_path / "m.json")


def run(cli, *arguments, code=0):
    result = cli(*arguments)
    assert result.exit_code == code, result.stderr
    return result.stdout + result.stderr


@pytest.mark.parametrize(
    "norm",
    [
        ("--norm", "as:top_k=9", "--scorer", "cosine:center=c.npz"),
        ("--norm", "as:top_k=5:select=cross", "--cohort-unit", "speaker"),
        ("--norm", "zt", "--scorer", "dot"),
        ("--norm", "lgsm", "--model", "m.json"),
    ],
)
def test_the_digits_of_the_batch_commands(cli, tmp_path, norm):
    run(cli, "normalize", *norm, *SIDES, "--cohort-embeddings", "c.npz", "-o", "norm.npz")
    run(cli, "calibrate", "--load", "cal.json", "norm.npz", "-o", "batch.npz")
    said = run(cli, "verifier", *norm, "--cohort-embeddings", "c.npz", "--calibration", "cal.json", "-o", "v.npz")
    assert "logistic calibration" in said
    run(cli, "score", "--scorer", "verifier:model=v.npz", *SIDES, "-o", "online.npz")
    batch, online = (read_scores(tmp_path / f"{name}.npz").scores for name in ("batch", "online"))
    np.testing.assert_allclose(online, batch, rtol=1e-9)
    llr = load_verifier(tmp_path / "v.npz").llr(ENROLLED.vectors[2], TESTED.vectors[1])
    assert llr == pytest.approx(batch[2, 1])


def test_listed_trials_in_their_order(cli):
    run(cli, "verifier", "--norm", "raw", "--calibration", "cal.json", "-o", "v.npz")
    lines = run(cli, "score", "--scorer", "verifier:model=v.npz", *SIDES, "-o", "-").splitlines()
    assert len(lines) == 20
    assert lines[0].startswith("e0 t0 ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--norm", "as"), "needs a cohort; give --cohort-embeddings"),
        (("--norm", "raw", "--cohort-embeddings", "c.npz"), "leave out --cohort-embeddings"),
        (("--norm", "lgsm", "--cohort-embeddings", "c.npz"), "give --model"),
        (("--cohort-embeddings", "c.npz"), "only 36 members"),
        (("--norm", "raw", "--calibration", "m.json"), "evenscore-calibration"),
        (("--norm", "raw", "--scorer", "verifier"), "give verifier:model=FILE"),
    ],
)
def test_what_cannot_be_bundled_is_refused(cli, tmp_path, arguments, message):
    if arguments[0] == "--cohort-embeddings":
        arguments = (*arguments, "--norm", "as:top_k=300")
    assert message in run(cli, "verifier", *arguments, "-o", "v.npz", code=2)
    assert not (tmp_path / "v.npz").exists()


def test_without_calibration_it_says_that_these_are_no_llrs(cli):
    said = run(cli, "verifier", "--norm", "s", "--cohort-embeddings", "c.npz", "-o", "v.npz")
    assert "no LLRs: give --calibration" in said


def test_it_is_not_normalized_again(cli, tmp_path):
    run(cli, "verifier", "--norm", "s", "--cohort-embeddings", "c.npz", "-o", "v.npz")
    given = ("--scorer", "verifier:model=v.npz", *SIDES, "--cohort-embeddings", "c.npz", "-o", "twice.npz")
    assert "for 'evenscore score' alone" in run(cli, "normalize", "--norm", "s", *given, code=2)
    assert not (tmp_path / "twice.npz").exists()
