"""The cohort-evidence model and the saturating calibration from the command line: the numbers of the library."""

import json

import numpy as np
import pytest
from tests.evidence.material import evaluation, training

from evenscore import (
    Embeddings,
    LabelledBlocks,
    SaturatingCalibration,
    fit_evidence,
    load_calibration,
    normalize,
    read_scores,
    write,
)
from evenscore.files import load_evidence, save_evidence

PART, NEW = training(), evaluation()
SPEAKERS = {
    name: speaker
    for ids, speakers in (
        (PART.blocks.trials.enroll_ids, PART.blocks.enroll_speakers),
        (PART.blocks.trials.test_ids, PART.blocks.test_speakers),
        (NEW.trials.enroll_ids, NEW.enroll_speakers),
        (NEW.trials.test_ids, NEW.test_speakers),
    )
    for name, speaker in zip(ids, speakers, strict=True)
}
ALL = ("--enroll", "enroll.npz", "--test", "test.npz", "--cohort", "cohort.npz", "--speakers", "utt2spk")


@pytest.fixture(scope="module", autouse=True)
def few_iterations():
    """Stop the training of score models early, here and in the commands: these tests compare the two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evenscore.evidence.fit._TOLERANCE", 1e-4)
        yield


@pytest.fixture
def files(tmp_path):
    write(PART.blocks.trials, tmp_path / "dev.npz")
    write(PART.trials, tmp_path / "dev.key", format="wespeaker")
    for name in ("trials", "enroll", "test", "cohort"):
        write(getattr(NEW, name), tmp_path / f"{name}.npz")
    write(SPEAKERS, tmp_path / "utt2spk", format="utt2spk")
    return tmp_path


@pytest.fixture(scope="module")
def trained():
    """Train with the library what the command line trains."""
    return fit_evidence([LabelledBlocks.own_cohort(PART.blocks.trials, PART.labels)])


def test_fit_and_normalize(cli, files, trained):
    fitted = cli("fit", "--method", "evidence", "--scores", "dev.npz", "--enroll-speakers", "utt2spk", "-o", "e.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert "cross-validated Cllr" in fitted.stdout
    assert "score_model" in fitted.stdout
    model = load_evidence(files / "e.json")
    assert model.heads["full"].weight == pytest.approx(trained.heads["full"].weight)
    done = cli("normalize", "--method", "evidence", "--model", "e.json", "--trials", "trials.npz", *ALL, "-o", "o.npz")
    assert done.exit_code == 0, done.stderr
    assert read_scores(files / "o.npz").scores == pytest.approx(normalize(NEW, "evidence", model=model).scores)
    for options, message in (
        (("--method", "evidence"), "the norm evidence needs a trained model"),
        (("--method", "evidence", "--model", "e.json", "--top-k", "3"), "top_k is for the classical norms"),
        (("--method", "evidence", "--model", "dev.key"), "dev.key"),
        (("--model", "e.json"), "but found 'evenscore-evidence', a model of the method evidence"),
    ):
        refused = cli("normalize", *options, "--trials", "trials.npz", *ALL, "-o", "no.npz")
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_a_key_tells_the_speakers_and_json_the_facts(cli, files):
    args = ("--method", "evidence", "--scores", "dev.npz", "--key", "dev.key")
    fitted = cli("fit", *args, "-o", "e.json", "--json")
    assert fitted.exit_code == 0, fitted.stderr
    facts = json.loads(fitted.stdout)
    assert facts["heads"] == ["full", "pair", "enroll", "test", "none"]
    assert set(facts["without"]) <= set(facts["weights"])
    listed = cli("fit", "--method", "evidence", "--scores", "dev.key", "-o", "list.json")
    assert listed.exit_code == 0, listed.stderr
    assert load_evidence(files / "list.json").report.n_speakers == 14


def test_score_embeddings(cli, files, trained):
    save_evidence(trained, files / "e.json")
    rng = np.random.default_rng(0)
    write(Embeddings(["a", "b"], rng.normal(size=(2, 6))), files / "x.npz")
    names = [f"s{n // 2}" for n in range(20)]
    write(Embeddings([f"c{n}" for n in range(20)], rng.normal(size=(20, 6)), speakers=names), files / "c.npz")
    args = ("--enroll", "x.npz", "--test", "x.npz", "--cohort", "c.npz", "--norm", "evidence", "--model", "e.json")
    done = cli("score", *args, "-o", "out.npz")
    assert done.exit_code == 0, done.stderr
    assert np.isfinite(read_scores(files / "out.npz").scores).all()


def test_train_on_embeddings(cli, files, monkeypatch):
    rng = np.random.default_rng(0)
    speakers = np.repeat(np.arange(12), 3)
    vectors = rng.normal(size=(12, 6))[speakers] + 0.5 * rng.normal(size=(36, 6))
    takes = Embeddings([f"u{n}" for n in range(36)], vectors, [f"s{n}" for n in speakers])
    write(takes, files / "x.npz")
    args = ("fit", "--method", "evidence", "--enroll", "x.npz", "--test", "x.npz", "--dim", "1")
    fitted = cli(*args, "-o", "e.json")
    assert fitted.exit_code == 0, fitted.stderr
    assert "36 ids stand on both sides" in fitted.stdout.replace("\n", " ")
    assert "not scored against themselves" in fitted.stdout.replace("\n", " ")
    report = load_evidence(files / "e.json").report
    assert (report.n_target, report.n_nontarget) == (12 * 3 * 2, 36 * 33)
    monkeypatch.setattr("evenscore.cli.training_data.WHOLE", 100)
    monkeypatch.setattr("evenscore.cli.training_data.SAMPLE", 500)
    assert cli(*args, "-o", "sampled.json").exit_code == 0
    sampled = load_evidence(files / "sampled.json").report
    assert sampled.n_target == 72
    assert 400 < sampled.n_nontarget < 600
    monkeypatch.setattr("evenscore.cli.training_data.LIMIT", 1000.0)
    refused = cli(*args, "-o", "no.json")
    assert refused.exit_code == 2
    assert "train on fewer speakers" in refused.stderr.replace("\n", " ")


def test_saturate(cli, files):
    args = ("--train", "dev.npz", "--train-key", "dev.key", "--enroll-speakers", "utt2spk")
    done = cli("calibrate", "--calibration", "saturating", *args, "trials.npz", "-o", "llr.npz", "--save", "c.json")
    assert done.exit_code == 0, done.stderr
    calibration = load_calibration(files / "c.json")
    assert isinstance(calibration, SaturatingCalibration)
    assert "between" in done.stdout
    assert read_scores(files / "llr.npz").scores == pytest.approx(calibration(NEW.trials.scores))


def test_options_of_the_score_model_are_refused(cli, files):
    args = ("fit", "--method", "evidence", "--scores", "dev.npz", "--enroll-speakers", "utt2spk", "-o", "e.json")
    failed = cli(*args, "--tol", "0.1")
    assert failed.exit_code == 2
    assert "the norm evidence has no option 'tol'; it has dim" in failed.stderr
    assert not (files / "e.json").exists()
