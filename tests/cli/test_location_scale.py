"""The location-scale model from the command line: the numbers of the library, and a sentence for what cannot be."""

import json

import numpy as np
import pytest

from evenscore import Labels, ScoreBlocks, ScoreMatrix, normalize, read_scores, write
from evenscore.files import load_location_scale
from evenscore.location_scale import fit_location_scale

SPEAKERS = [f"s{n % 8}" for n in range(16)]
OTHERS = [f"n{n % 4}" for n in range(8)]
RNG = np.random.default_rng(5)


def drawn(rows, columns, prefix):
    """Scores of enrolments that differ in spread."""
    ids = [f"{prefix[0]}{n}" for n in range(len(rows))], [f"{prefix[1]}{n}" for n in range(len(columns))]
    labels = Labels.from_speakers(rows, columns, enroll_ids=ids[0], test_ids=ids[1])
    spread = np.exp(0.6 * np.random.default_rng(ord(prefix[0][-1])).normal(size=(len(rows), 1)))
    return ScoreMatrix(4.0 * labels.matrix + spread * RNG.normal(size=labels.shape), *ids), labels


DEV = [drawn(SPEAKERS, SPEAKERS, (f"{p}ce", f"{p}ct")) for p in "ab"]
COHORT = DEV[0][0]
TRIALS, KEY = drawn(OTHERS, OTHERS, ("e", "t"))
ENROLL = ScoreMatrix(RNG.normal(size=(8, 16)), TRIALS.enroll_ids, COHORT.test_ids)
TEST = ScoreMatrix(RNG.normal(size=(16, 8)), COHORT.enroll_ids, TRIALS.test_ids)
FIT = ("fit", "--method", "lssm", "--dim", "1", "--tol", "1e-3", "--enroll-speakers", "utt2spk")
NORMALIZE = ("normalize", "--method", "lssm", "--trials", "trials.npz", "-o", "out.npz")


@pytest.fixture
def files(tmp_path):
    named = {"a": DEV[0][0], "b": DEV[1][0], "trials": TRIALS, "enroll": ENROLL, "test": TEST, "cohort": COHORT}
    for name, table in named.items():
        write(table, tmp_path / f"{name}.npz")
    holes = np.where(np.random.default_rng(1).random(COHORT.shape) < 0.1, np.nan, COHORT.scores)
    write(ScoreMatrix(holes, COHORT.enroll_ids, COHORT.test_ids, missing="nan"), tmp_path / "holes.npz")
    speakers = {}
    for matrix in (DEV[0][0], DEV[1][0]):
        speakers |= dict(zip(matrix.enroll_ids.tolist(), SPEAKERS, strict=True))
        speakers |= dict(zip(matrix.test_ids.tolist(), SPEAKERS, strict=True))
    speakers |= dict(zip((*TRIALS.enroll_ids.tolist(), *TRIALS.test_ids.tolist()), OTHERS * 2, strict=True))
    write(speakers, tmp_path / "utt2spk", format="utt2spk")
    return tmp_path


def test_fit_on_phrases_and_show(cli, files):
    fitted = cli(*FIT, "--scores", "a.npz", "--scores", "b.npz", "-o", "m.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert "nats above the score model" in fitted.stdout
    assert "enrolment's effects" not in fitted.stdout
    model = load_location_scale(files / "m.json")
    expected = fit_location_scale(DEV, 1, tol=1e-3)
    assert model == expected.model
    assert not model.is_linear
    shown = cli("model", "show", "m.json", "--verbose")
    assert shown.exit_code == 0, shown.stderr
    assert "location-scale score model, D = 1" in shown.stdout
    assert f"{model.spread_ratio[0, 0]:.3f}" in shown.stdout
    facts = json.loads(cli("model", "show", "m.json", "--json").stdout)
    assert facts["c"] == model.c.tolist()
    assert facts["info"]["bound"] == pytest.approx(expected.bound[-1])
    assert facts["info"]["scores"] == ["a.npz", "b.npz"]


def test_a_bound_below_the_score_model_is_called_so(cli, tmp_path):
    same = np.random.default_rng(0).normal(size=(16, 16)) + 4.0 * DEV[0][1].matrix  # all of one spread
    write(ScoreMatrix(same, COHORT.enroll_ids, COHORT.test_ids).to_trials(DEV[0][1]), tmp_path / "same.csv")
    args = ("fit", "--method", "lssm", "--dim", "1", "--max-iter", "1", "--scores", "same.csv", "-o", "m.json")
    fitted = cli(*args, "--verbose")
    assert fitted.exit_code == 0, fitted.stderr
    assert "nats below the score model" in fitted.stdout
    assert "enrolment's effects" in fitted.stdout


@pytest.mark.parametrize("names", [("enroll", "test", "cohort"), ("enroll",), ("test", "cohort"), ()])
def test_normalize_with_any_side_of_the_cohort(cli, files, names):
    facts = json.loads(cli(*FIT, "--scores", "holes.npz", "-o", "m.json", "--json").stdout)
    assert sum(facts["scores"].values()) < COHORT.scores.size
    given = [part for name in names for part in (f"--{name}", f"{name}.npz")]
    done = cli(*NORMALIZE, "--model", "m.json", *given)
    assert done.exit_code == 0, done.stderr
    blocks = {"enroll": ENROLL, "test": TEST, "cohort": COHORT}
    expected = normalize(
        ScoreBlocks(TRIALS, **{name: blocks[name] for name in names}),
        "lssm",
        model=load_location_scale(files / "m.json"),
    )
    np.testing.assert_allclose(read_scores(files / "out.npz").scores, expected.scores, rtol=1e-9)


@pytest.mark.slow
def test_compare_knows_it(cli, files):
    args = ("--train", "a.npz", "--trials", "trials.npz", "--enroll", "enroll.npz", "--test", "test.npz")
    done = cli("compare", *args, "--speakers", "utt2spk", "--methods", "lssm,raw", "--bootstrap", "5", "-o", "report")
    assert done.exit_code == 0, done.stderr
    assert "lssm" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"version": 1', '"version": 7', "version 7"),
        ('"c": [', '"c": [1e300, ', "expected 2 numbers"),
        ('"g": [', '"g": [1.0, ', "D = 1 finite numbers"),
        ('"mu"', '"nu"', "mu"),
        ("{", "", "this is not JSON"),
    ],
)
def test_bad_model_files_are_refused_in_a_sentence(cli, files, old, new, reason):
    cli(*FIT, "--scores", "a.npz", "--max-iter", "2", "-o", "m.json")
    text = (files / "m.json").read_text()
    (files / "m.json").write_text(text.replace(old, new, 1))
    for command in (("model", "show", "m.json"), (*NORMALIZE, "--model", "m.json")):
        refused = cli(*command)
        assert refused.exit_code == 2
        assert refused.stderr.startswith("error: m.json")
        assert reason in refused.stderr
    assert not (files / "out.npz").exists()


def test_options_of_other_methods_are_refused(cli, files):
    refused = cli(*FIT, "--scores", "a.npz", "--starts", "5", "-o", "m.json")
    assert refused.exit_code == 2
    assert "--starts is for --method lgsm" in refused.stderr
    assert not (files / "m.json").exists()
    needed = cli(*NORMALIZE)
    assert needed.exit_code == 2
    assert "needs a trained model" in needed.stderr
