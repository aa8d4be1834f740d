"""``evenscore calibrate``: the LLRs of the library in the form of the scores, and a reason for every refusal."""

import json

import numpy as np
import pytest

from evenscore import (
    LogisticCalibration,
    PavCalibration,
    ScoreMatrix,
    TrialList,
    cross_calibrate,
    load_calibration,
    read_scores,
    save_calibration,
    write,
)
from evenscore.calibrate import CALIBRATIONS

RNG = np.random.default_rng(7)
SPEAKER = {f"{side}{n}{k}": f"p{n}" for n in range(10) for side, k in (("m", ""), ("t", "-a"), ("t", "-b"))}
MODELS, TESTS = ([name for name in SPEAKER if name[0] == side] for side in "mt")
PAIRS = [(model, test) for model in MODELS for test in TESTS]
LABELS = np.array([SPEAKER[model] == SPEAKER[test] for model, test in PAIRS]).astype(int)
FIRST = RNG.normal(np.where(LABELS, 0.5, 0.1), 0.15)
SECOND = FIRST + RNG.normal(0.0, 0.2, FIRST.size)
SNR = RNG.uniform(5.0, 30.0, FIRST.size)
EVAL_PAIRS = [(f"{model}x", f"{test}x") for model, test in PAIRS[::-1]]
EVAL, EVAL_SECOND = FIRST[::-1] + 0.05, SECOND[::-1] + 0.05


def trials(scores, labels=None, pairs=PAIRS, **measures):
    return TrialList.from_pairs(*zip(*pairs, strict=True), scores=scores, labels=labels, measures=measures)


@pytest.fixture
def files(tmp_path):
    """Training scores of two systems with their key, and other scores to calibrate."""
    write(trials(FIRST), tmp_path / "dev.scores")
    write(trials(SECOND), tmp_path / "dev2.scores")
    write(trials(None, LABELS), tmp_path / "dev.key")
    write(trials(EVAL, pairs=EVAL_PAIRS), tmp_path / "eval.scores")
    write(trials(EVAL_SECOND[::-1], pairs=EVAL_PAIRS[::-1]), tmp_path / "eval2.scores")
    write(SPEAKER, tmp_path / "utt2spk", format="utt2spk")
    return tmp_path


@pytest.fixture
def run(cli, files):
    """Calibrate, and return what was written."""

    def run(*arguments, output="out.npz", warns=False):
        result = cli("calibrate", *arguments, "-o", output)
        assert result.exit_code == 0, result.stderr
        assert bool(result.stderr) == warns, result.stderr
        return read_scores(files / output, infinite="accept")

    return run


@pytest.fixture
def refused(cli, files):
    """Calibrate something that must be refused without an output; return the sentence."""

    def run(*arguments):
        before = sorted(files.iterdir())
        result = cli("calibrate", *arguments)
        assert result.exit_code == 2, result.stdout
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert sorted(files.iterdir()) == before
        return result.stderr

    return run


TRAIN = ("--train", "dev.scores", "--train-key", "dev.key")


@pytest.mark.parametrize("method", CALIBRATIONS)
def test_every_method_gives_the_llrs_of_the_library_in_the_order_of_the_scores(run, method):
    out = run(*TRAIN, "--method", method, "eval.scores")
    who = {}
    if method == "saturating":  # by folds of speakers
        who = {f"{side}_speakers": [SPEAKER[pair[at]] for pair in PAIRS] for at, side in enumerate(("enroll", "test"))}
    assert out.scores.tolist() == CALIBRATIONS[method].fit(FIRST, LABELS, **who)(EVAL).tolist()
    assert [out.pair(place) for place in range(len(out))] == EVAL_PAIRS


@pytest.mark.parametrize(
    ("method", "given", "options"),
    [
        ("logistic", ["--prior", "0.01", "--l2", "0.1"], {"p_target": 0.01, "l2": 0.1}),
        ("gaussian", ["--shared-variance"], {"shared_variance": True}),
        ("bayesian", ["--shared-variance"], {"shared_variance": True}),
        ("pav", ["--smoothing", "0"], {"smoothing": 0.0}),
        ("unsupervised", ["--prior", "0.1", "--shared-variance"], {"p_target": 0.1, "shared_variance": True}),
    ],
)
def test_options_reach_the_fit(run, method, given, options):
    out = run(*TRAIN, "--method", method, *given, "eval.scores")
    assert out.scores.tolist() == CALIBRATIONS[method].fit(FIRST, LABELS, **options)(EVAL).tolist()


@pytest.mark.parametrize("output", ["out.npz", "out.csv", "out.llr", "out.parquet", "out.h5", "out.tsv.gz"])
def test_every_output(run, output):
    out = run(*TRAIN, "eval.scores", output=output)
    matrix = out if isinstance(out, ScoreMatrix) else out.to_matrix()
    expected = trials(LogisticCalibration.fit(FIRST, LABELS)(EVAL), pairs=EVAL_PAIRS).to_matrix()
    assert np.array_equal(matrix.align(expected.enroll_ids, expected.test_ids).scores, expected.scores)


def test_form_labels_and_measures_are_kept(run, files):
    write(trials(EVAL, LABELS[::-1], EVAL_PAIRS, snr=SNR), files / "own.csv")
    out = run(*TRAIN, "own.csv", output="out.csv")
    assert out.labels.tolist() == LABELS[::-1].tolist()
    assert out.measures["snr"].tolist() == SNR.tolist()
    assert run(*TRAIN, "own.csv", output="out.llr").labels.tolist() == LABELS[::-1].tolist()
    write(trials(EVAL, np.where(SNR > 20, -1, LABELS[::-1]), EVAL_PAIRS), files / "some.csv")
    assert run(*TRAIN, "some.csv", output="out.llr").labels is None  # kaldi has no place for them
    holes = np.where(SNR.reshape(10, 20) > 28, np.nan, FIRST.reshape(10, 20))
    write(ScoreMatrix(holes, [f"{m}x" for m in MODELS], [f"{t}x" for t in TESTS], missing="nan"), files / "m.npz")
    out = run(*TRAIN, "m.npz")
    assert isinstance(out, ScoreMatrix)
    assert np.array_equal(out.scores, LogisticCalibration.fit(FIRST, LABELS)(holes), equal_nan=True)


def test_infinite_scores_and_llrs_of_a_staircase(run, files):
    scores = EVAL.copy()
    scores[3] = -np.inf
    write(trials(EVAL, pairs=EVAL_PAIRS).with_scores(scores, allow_infinite=True), files / "sure.scores")
    out = run(*TRAIN, "--method", "pav", "--smoothing", "0", "sure.scores", output="out.llr")
    expected = PavCalibration.fit(FIRST, LABELS, smoothing=0)(scores)
    assert out.scores.tolist() == expected.tolist()
    assert np.isinf(expected[3])


def test_save_and_load(run, cli, files):
    out = run(*TRAIN, "--prior", "0.05", "eval.scores", "--save", "c.json")
    assert load_calibration(files / "c.json") == LogisticCalibration.fit(FIRST, LABELS, p_target=0.05)
    again = run("--load", "c.json", "eval.scores", output="again.npz")
    assert again == out
    result = cli("calibrate", *TRAIN, "--prior", "0.05", "--save", "only.json")
    assert result.exit_code == 0, result.stderr
    assert load_calibration(files / "only.json") == load_calibration(files / "c.json")
    assert json.loads((files / "only.json").read_text())["info"]["n_target"] == 20


def test_fusion(run, files):
    arguments = ("--train", "dev.scores", "--train", "dev2.scores", "--train-key", "dev.key")
    out = run(*arguments, "eval.scores", "eval2.scores", "--save", "c.json")
    fusion = LogisticCalibration.fit(np.column_stack((FIRST, SECOND)), LABELS)
    expected = fusion(np.column_stack((EVAL, EVAL_SECOND)))
    assert np.allclose(out.scores, expected, rtol=1e-12)
    assert run("--load", "c.json", "eval.scores", "eval2.scores").scores.tolist() == out.scores.tolist()


def test_quality_measures_from_the_score_file_and_from_metadata(run, files):
    write(trials(FIRST, snr=SNR), files / "dev.csv")
    write(trials(EVAL, pairs=EVAL_PAIRS, snr=SNR[::-1]), files / "eval.csv")
    seconds = {name: 2.0 + place for place, name in enumerate(TESTS)}
    (files / "meta").write_text("id seconds\n" + "".join(f"{name} {seconds[name]}\n" for name in TESTS))
    (files / "evalmeta").write_text("id seconds\n" + "".join(f"{name}x {seconds[name]}\n" for name in TESTS))
    metadata = ("--metadata", "evalmeta", "--train-metadata", "meta")
    train = ("--train", "dev.csv", "--train-key", "dev.key")
    out = run(*train, "eval.csv", "--quality", "snr,log:test:seconds", *metadata, "--save", "c.json")
    logs = np.log([seconds[test] for _, test in PAIRS])
    fitted = LogisticCalibration.fit(FIRST, LABELS, quality=np.column_stack((SNR, logs)))
    expected = fitted(EVAL, quality=np.column_stack((SNR[::-1], logs[::-1])))
    assert np.allclose(out.scores, expected, rtol=1e-12)
    again = run("--load", "c.json", "eval.csv", "--metadata", "evalmeta")  # the file knows the measures
    assert again.scores.tolist() == out.scores.tolist()


@pytest.mark.parametrize("method", ["logistic", "gaussian", "pav"])
def test_cross_validation_by_speaker(run, method):
    options = {"l2": 0.01} if method == "logistic" else {}
    given = ("--method", method, "--folds", "4", *(("--l2", "0.01") if options else ()))
    arguments = ("--cross-validate", "--key", "dev.key", "dev.scores", *given)
    enroll, test = ([SPEAKER[pair[side]] for pair in PAIRS] for side in (0, 1))
    expected = cross_calibrate(
        FIRST, LABELS, enroll_speakers=enroll, test_speakers=test, calibration=method, folds=4, options=options
    )
    assert np.allclose(run(*arguments, "--enroll-speakers", "utt2spk").scores, expected.llr, rtol=1e-9)
    by_targets = run(*arguments)  # the target trials connect the ids of each speaker
    assert np.allclose(by_targets.scores, expected.llr, rtol=1e-9)
    assert by_targets.labels is None


def test_cross_validation_of_a_fusion_with_own_labels(run, files):
    write(trials(FIRST, LABELS), files / "a.csv")
    write(trials(SECOND[::-1], LABELS[::-1], PAIRS[::-1]), files / "b.csv")
    out = run("--cross-validate", "--l2", "0.01", "a.csv", "b.csv")
    enroll, test = ([SPEAKER[pair[side]] for pair in PAIRS] for side in (0, 1))
    both = np.column_stack((FIRST, SECOND))
    expected = cross_calibrate(both, LABELS, enroll_speakers=enroll, test_speakers=test, options={"l2": 0.01})
    assert np.allclose(out.scores, expected.llr, rtol=1e-9)
    assert out.labels.tolist() == LABELS.tolist()


def test_training_labels_of_the_scores_themselves_and_of_speaker_maps(run, files):
    expected = run(*TRAIN, "eval.scores").scores.tolist()
    write(trials(FIRST, LABELS), files / "own.csv")
    assert run("--train", "own.csv", "eval.scores").scores.tolist() == expected
    assert run("--train", "dev.scores", "--enroll-speakers", "utt2spk", "eval.scores").scores.tolist() == expected


def test_unsupervised_may_train_on_the_scores_themselves(run):
    out = run("--method", "unsupervised", "--prior", "0.1", "dev.scores")
    assert out.scores.tolist() == CALIBRATIONS["unsupervised"].fit(FIRST, p_target=0.1)(FIRST).tolist()


def test_calibrating_the_training_trials_is_called_cheating(cli, files):
    result = cli("calibrate", *TRAIN, "dev.scores", "-o", "out.npz")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: 200 of the 200 calibrated trials were trained on, which is cheating")
    assert "--cross-validate" in result.stderr


def test_what_people_and_programs_are_told(cli, files):
    fitted = LogisticCalibration.fit(FIRST, LABELS)
    result = cli("calibrate", *TRAIN, "eval.scores", "-o", "out.npz")
    first, second = result.stdout.splitlines()
    assert first == f"logistic calibration: llr = {fitted.offset:.4g} {fitted.weights[0]:+.4g} score"
    assert second.startswith("trained on 20 target and 180 non-target trials, their Cllr is 0.")
    facts = json.loads(cli("calibrate", *TRAIN, "eval.scores", "-o", "out.npz", "--json").stdout)
    assert facts["parameters"]["weights"] == fitted.weights.tolist()
    text = cli("calibrate", *TRAIN, "eval.scores", "-o", "-").stdout
    assert len(text.splitlines()) == len(EVAL)
    cross = ("--cross-validate", "--l2", "0.01", "--key", "dev.key", "dev.scores", "-o", "out.npz")
    assert "known from the target trials: Cllr 0." in cli("calibrate", *cross).stdout
    facts = json.loads(cli("calibrate", *cross, "--json").stdout)
    assert (facts["folds"], facts["speakers"], facts["calibrations"]) == (5, 10, 15)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["eval.scores", "-o", "o"], "there is nothing to train on; give --train and --train-key, --load, or"),
        (["dev.scores", "--key", "dev.key", "-o", "o"], "calibrating on the evaluated trials is cheating, so --key"),
        ([*TRAIN, "eval.scores"], "the calibrated scores need a place; give -o FILE"),
        ([*TRAIN, "-o", "o"], "there is nothing to calibrate; give SCORES"),
        ([*TRAIN], "nothing would be written"),
        ([*TRAIN, "eval.scores", "-o", "-", "--json"], "standard output can hold one thing only"),
        ([*TRAIN, "--cross-validate", "eval.scores", "-o", "o"], "both --train and --cross-validate were given"),
        ([*TRAIN, "--load", "c.json", "eval.scores", "-o", "o"], "both --train and --load were given"),
        (["--load", "c.json", "--method", "pav", "eval.scores", "-o", "o"], "--load applies a calibration as it is"),
        (["--load", "absent.json", "eval.scores", "-o", "o"], "absent.json: there is no such file"),
        (["--load", "dev.key", "eval.scores", "-o", "o"], "dev.key:1: this is not JSON"),
        (["--cross-validate", "-k", "dev.key", "dev.scores", "-o", "o", "--save", "c"], "leave out --save"),
        (["--cross-validate", "dev.scores", "-o", "o"], "dev.scores: the scores have no labels"),
        (["--cross-validate", "-k", "dev.key", "dev.scores", "-o", "o", "--folds", "2"], "folds is 2, but"),
        (["--cross-validate", "-k", "dev.key", "dev.scores", "-o", "o", "--folds", "11"], "10 speakers, fewer than 11"),
        (
            ["--train", "dev.scores", "eval.scores", "-o", "o"],
            "dev.scores: the scores have no labels; give --train-key",
        ),
        ([*TRAIN, "eval.scores", "eval2.scores", "-o", "o"], "1 systems to train on and 2 to calibrate"),
        (
            [*TRAIN, "--method", "pav", "--l2", "1", "eval.scores", "-o", "o"],
            "the calibration pav has no option 'l2'; it has smoothing",
        ),
        ([*TRAIN, "--method", "pav", "--quality", "snr", "eval.scores", "-o", "o"], "pav takes none"),
        ([*TRAIN, "--prior", "2", "eval.scores", "-o", "o"], "p_target is 2.0, but must lie between 0 and 1"),
        ([*TRAIN, "--quality", "snr", "eval.scores", "-o", "o"], "the scores have no measure 'snr'"),
        (
            ["--train", "dev.scores", "--train-key", "eval.scores", "eval.scores", "-o", "o"],
            "the key eval.scores has no",
        ),
    ],
)
def test_wrong_use_is_refused_in_one_sentence(refused, arguments, reason):
    assert reason in refused(*arguments)


def test_systems_with_other_trials_are_refused(refused, files):
    fusion = ("--train", "dev.scores", "--train", "dev2.scores", "--train-key", "dev.key")
    write(trials(EVAL_SECOND[1:], pairs=EVAL_PAIRS[1:]), files / "less.scores")
    reason = refused(*fusion, "eval.scores", "less.scores", "-o", "o")
    assert f"less.scores has no score of the trial {EVAL_PAIRS[0]}" in reason
    assert "less.scores has other trials, too" not in reason
    assert "eval.scores has other trials, too" in refused(*fusion, "less.scores", "eval.scores", "-o", "o")


def test_a_loaded_calibration_must_fit_the_files(refused, files):
    save_calibration(LogisticCalibration(weights=[1.0, 1.0], quality_weights=[], offset=0.0), files / "two.json")
    save_calibration(LogisticCalibration(weights=[1.0], quality_weights=[1.0], offset=0.0), files / "q.json")
    assert "two.json is for 2 systems, but there are 1" in refused("--load", "two.json", "eval.scores", "-o", "o")
    assert "q.json uses 1 quality measures, but 0 are" in refused("--load", "q.json", "eval.scores", "-o", "o")


def test_odd_measures_are_refused(refused, files):
    for name, text, reason in (
        ("words", "id x\n" + "".join(f"{t} long\n" for t in TESTS), "words[x]: 'long' is not a number"),
        ("zero", "id x\n" + "".join(f"{t} 0\n" for t in TESTS), "; logarithms and ratios need values above 0"),
        ("lacks", "id,x\n" + "".join(f"{t},\n" for t in TESTS), "has no finite value for the trial ('m0', 't0-a')"),
    ):
        (files / name).write_text(text)
        assert reason in refused(*TRAIN, "--quality", "log:x", "--metadata", name, "eval.scores", "-o", "o")


def test_infinite_scores_are_refused_where_they_have_no_meaning(refused, files):
    (files / "inf.scores").write_text("mx tx 1\nmx ux -inf\n")
    assert "inf.scores:2: score '-inf' is not finite" in refused(*TRAIN, "inf.scores", "-o", "o")
