"""``evenscore fit``: the same model as from Python, whatever the files look like, and a reason for every refusal."""

import functools
import json
import shutil

import numpy as np
import pytest

from evenscore import (
    PLDA,
    Cosine,
    Embeddings,
    Labels,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    fit_score_model,
    load_model,
    log_likelihood,
    simulate,
    write,
)
from evenscore.files.models import save_plda
from evenscore.scoring import correct_self_centering
from evenscore.sources import LeftOutCenter
from evenscore.sources.blocks import cohort_matrix

TRUTH = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
ENROLL = [f"s{n % 15}" for n in range(30)]
TEST = [f"s{n % 15}" for n in range(45)]
SCORES, LABELS = simulate(TRUTH, ENROLL, TEST, seed=1)
OTHER, OTHER_LABELS = simulate(TRUTH, ENROLL, TEST, seed=2)


COVARIANCES = ("enroll_covariance", "test_covariance")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Scores of two phrases, with keys and speakers."""
    folder = tmp_path_factory.mktemp("files")
    for name, scores, labels in (("a", SCORES, LABELS), ("b", OTHER, OTHER_LABELS)):
        write(scores, folder / f"{name}.npz")
        write(scores, folder / f"{name}.scores", format="kaldi")
        trials = scores.to_trials(labels)
        write(trials, folder / f"{name}.labelled", format="wespeaker")
        key = TrialList(
            trials.enroll_ids, trials.test_ids, trials.enroll_index, trials.test_index, labels=trials.labels
        )
        write(key.select(np.random.default_rng(0).permutation(len(key))), folder / f"{name}.key", format="kaldi")
    write(dict(zip(SCORES.enroll_ids, ENROLL, strict=True)), folder / "enroll2spk", format="utt2spk")
    write(dict(zip(SCORES.test_ids, TEST, strict=True)), folder / "test2spk", format="utt2spk")
    both = dict(zip([*SCORES.enroll_ids, *SCORES.test_ids], [*ENROLL, *TEST], strict=True))
    write(both, folder / "utt2spk", format="utt2spk")
    return folder


@pytest.fixture
def files(written, tmp_path):
    """Return the directory of the test, with a copy of these files."""
    return shutil.copytree(written, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def fit(cli, tmp_path):
    """Train, and return the model and the figures."""

    def run(*arguments):
        result = cli("fit", *arguments, "-o", "m.json", "--json")
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        return load_model(tmp_path / "m.json"), json.loads(result.stdout)

    return run


@pytest.fixture
def refused(cli, tmp_path):
    """Train on something that must be refused without a model file; return the sentence."""

    def run(*arguments):
        result = cli("fit", *arguments, "-o", "m.json")
        assert result.exit_code == 2, result.stdout
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / "m.json").exists()
        return result.stderr

    return run


QUICK = ("--tol", 1e-3)  # where it matters what is fitted, and not how well


def quick_fit(training):
    return fit_score_model(training, tol=1e-3)


@functools.cache
def trained(phrases):
    """Train on the first phrases with the library."""
    return quick_fit([(SCORES, LABELS), (OTHER, OTHER_LABELS)][:phrases])


def same(ours, theirs, rtol=1e-6):
    """Tell whether two models have the same likelihood parameters; loadings may be rotated."""
    a, b = ours.variances, theirs.variances
    pairs = [(ours.mu, theirs.mu), *((getattr(a, n), getattr(b, n)) for n in ("sigma2", *COVARIANCES))]
    return all(np.allclose(one, other, rtol=rtol, atol=1e-8) for one, other in pairs)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scores", "a.npz", "--key", "a.key"),
        ("--scores", "a.scores", "--key", "a.key"),
        ("--scores", "a.labelled"),
        ("--scores", "a.labelled", "-k", "a.labelled"),
        ("--scores", "a.npz", "--enroll-speakers", "enroll2spk", "--test-speakers", "test2spk"),
        ("--scores", "a.scores", "--enroll-speakers", "utt2spk"),
        ("--scores", "a.npz", "--test-speakers", "utt2spk"),
    ],
)
def test_every_way_to_give_labels_gives_the_model_of_the_library(fit, files, arguments):
    model, figures = fit(*QUICK, *arguments)
    expected = trained(1)
    assert same(model, expected.model)
    assert figures["log_likelihood"] == pytest.approx(expected.log_likelihood[-1], rel=1e-10)
    assert figures["scores"] == {"nontarget": 30 * 45 - 90, "target": 90}
    assert figures["converged"] is True
    assert figures["matrices"] == 1
    assert figures["notes"] == []
    assert figures["model"]["variances"]["target"]["nu"] == pytest.approx(model.variances.nu[1])


def test_options_reach_the_training(fit, files):
    model, figures = fit(
        "--scores", "a.npz", "--key", "a.key", "--dim", 1, "--tol", "1e-4", "--max-iter", 3, "--starts", 2,
        "--no-min-divergence",
    )  # fmt: skip
    expected = fit_score_model([(SCORES, LABELS)], 1, tol=1e-4, max_iter=3, starts=2, min_divergence=False)
    assert same(model, expected.model)
    assert len(figures["restarts"]) == 2
    assert figures["iterations"] == expected.n_iter
    assert figures["converged"] is expected.converged
    assert any("not converged" in note for note in figures["notes"]) is not expected.converged
    flat, _ = fit("--scores", "a.npz", "--key", "a.key", "--dim", 0)
    assert flat.dim == 0
    wide, figures = fit("--scores", "a.npz", "--key", "a.key", "--dim", 3)
    assert wide.dim == 3
    assert "the likelihood of D = 2" in figures["notes"][0]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--scores", "a.npz", "--key", "a.key", "--scores", "b.npz", "--key", "b.key"),
        ("--scores", "a.npz", "--scores", "b.scores", "--key", "a.key"),  # the same pairs: one key serves both
        ("--scores", "a.npz", "--scores", "b.npz", "--enroll-speakers", "utt2spk"),
        ("--scores", "a.labelled", "--scores", "b.labelled"),
    ],
)
def test_several_files_are_several_matrices(fit, files, arguments):
    model, figures = fit(*QUICK, *arguments)
    assert same(model, trained(2).model)
    assert figures["matrices"] == 2


def phrased():
    """Both phrases as one matrix: tests of the second have other ids."""
    matrix = ScoreMatrix(
        np.hstack([SCORES.scores, OTHER.scores]),
        SCORES.enroll_ids,
        [*(f"{name}_p1_x" for name in SCORES.test_ids), *(f"{name}_p2_x" for name in OTHER.test_ids)],
    )
    labels = Labels.from_speakers(ENROLL, [*TEST, *TEST], enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
    return matrix, labels


@pytest.mark.parametrize("kind", ["matrix", "list"])
@pytest.mark.parametrize("source", ["re:_(p[0-9])_", "phrases"])
def test_phrases_split_one_input(fit, files, kind, source):
    matrix, labels = phrased()
    trials = matrix.to_trials(labels)
    write(trials, files / "key", format="wespeaker")
    write(matrix if kind == "matrix" else trials, files / "both.npz")
    phrases = {name: "one" if "_p1_" in name else "two" for name in matrix.test_ids}
    write(phrases, files / "phrases", format="utt2spk")
    model, figures = fit(*QUICK, "--scores", "both.npz", "--key", "key", "--phrase-from", source)
    assert same(model, trained(2).model)
    assert figures["matrices"] == 2


def test_trial_lists_with_gaps(fit, files):
    trials = SCORES.to_trials(LABELS)
    rng = np.random.default_rng(3)
    for share in (0.9, 0.3):
        some = trials.select(rng.random(len(trials)) < share)
        write(some, files / "some", format="wespeaker")
        model, _ = fit("--scores", "some", "--starts", 1, "--max-iter", 20)
        expected = fit_score_model(some, starts=1, max_iter=20)
        assert log_likelihood(model, some) == pytest.approx(expected.log_likelihood[-1], rel=1e-9)


def test_missing_pairs_of_a_matrix_need_no_label(fit, files):
    scores = SCORES.scores.copy()
    scores[3, 4] = np.nan
    gappy = ScoreMatrix(scores, SCORES.enroll_ids, SCORES.test_ids, missing="nan")
    write(gappy, files / "gappy.npz")
    trials = gappy.to_trials(LABELS)
    write(trials, files / "key", format="wespeaker")
    model, _ = fit(*QUICK, "--scores", "gappy.npz", "--key", "key")
    assert same(model, quick_fit([(gappy, LABELS)]).model)


def test_a_key_that_covers_a_part(fit, refused, files):
    trials = SCORES.to_trials(LABELS)
    part = trials.select(np.arange(len(trials)) % 3 > 0)
    write(part, files / "part", format="wespeaker")
    for scores in ("a.npz", "a.scores"):
        message = refused("--scores", scores, "--key", "part")
        assert "450 of the 1350 scored trials are not in the key, first ('e0', 't0')" in message
        model, _ = fit("--scores", scores, "--key", "part", "--unmatched", "drop", "--starts", 1, "--max-iter", 20)
        expected = fit_score_model(part, starts=1, max_iter=20)
        assert log_likelihood(model, part) == pytest.approx(expected.log_likelihood[-1], rel=1e-9)
        (files / "m.json").unlink()
    write(part, files / "part.npz")
    assert "450 of the 1350 trials of the key have no score, first" in refused("--scores", "part.npz", "--key", "a.key")
    write(part.to_matrix(), files / "partial.npz")
    assert "450 of the 1350 trials of the key have no score" in refused("--scores", "partial.npz", "--key", "a.key")


VECTORS = np.random.default_rng(5).normal(size=(15, 8))


def vectors(side, speakers, seed):
    rng = np.random.default_rng(seed)
    numbers = [int(name[1:]) for name in speakers]
    made = VECTORS[numbers] + 0.7 * rng.normal(size=(len(speakers), 8))
    return Embeddings([f"{side}{n}" for n in range(len(speakers))], made, speakers)


def test_embeddings(fit, refused, files):
    enroll, test = vectors("e", ENROLL, 1), vectors("t", TEST, 2)
    write(enroll, files / "e.npz")
    write(test, files / "t.npz")
    matrix = Cosine().score(enroll, test).in_memory()
    labels = Labels.from_speakers(ENROLL, TEST)
    model, figures = fit(*QUICK, "--enroll", "e.npz", "--test", "t.npz")
    assert same(model, quick_fit([(matrix, labels)]).model)
    assert figures["notes"] == []
    assert json.loads((files / "m.json").read_text())["info"]["scorer"] == "cosine"
    centered, _ = fit(*QUICK, "--enroll", "e.npz", "--test", "t.npz", "--center", "e.npz", "--scorer", "cosine")
    left_out = LeftOutCenter(enroll).score(enroll, test).in_memory()
    assert same(centered, quick_fit([(left_out, labels)]).model)
    centered, _ = fit(*QUICK, "--enroll", "e.npz", "--test", "t.npz", "--scorer", "cosine:center=e.npz:leave_out=none")
    scored = Cosine(mean=enroll.vectors.mean(axis=0)).score(enroll, test).in_memory()
    assert same(centered, quick_fit([(scored, labels)]).model)
    dot, _ = fit(*QUICK, "--enroll-embeddings", "e.npz", "--test-embeddings", "t.npz", "--scorer", "dot")
    assert same(dot, quick_fit([(enroll.vectors @ test.vectors.T, labels)]).model)
    plda = PLDA(mean=np.zeros(8), between=np.eye(8), within=0.5 * np.eye(8))
    save_plda(plda, files / "plda.json")
    model, _ = fit(*QUICK, "--enroll", "e.npz", "--test", "t.npz", "--scorer", "plda", "--plda", "plda.json")
    assert same(model, quick_fit([(plda.score(enroll, test).in_memory(), labels)]).model)
    (files / "m.json").unlink()
    assert "leave_out is 'all'" in refused(
        "--enroll", "e.npz", "--test", "t.npz", "--scorer", "dot:center=e.npz:leave_out=all"
    )
    assert "there is nothing to leave out" in refused(
        "--enroll", "e.npz", "--test", "t.npz", "--scorer", "dot:leave_out=speakers"
    )
    assert "needs a trained PLDA" in refused("--enroll", "e.npz", "--test", "t.npz", "--scorer", "plda")
    assert "cosine has no option model" in refused("--enroll", "e.npz", "--test", "t.npz", "--plda", "plda.json")
    assert "e.npz" in refused("--enroll", "e.npz", "--test", "t.npz", "--scorer", "plda", "--plda", "e.npz")


def test_embeddings_get_speakers_from_maps_and_trials_from_keys(fit, refused, files):
    enroll, test = vectors("e", ENROLL, 1), vectors("t", TEST, 2)
    for side, name in ((enroll, "e.npz"), (test, "t.npz")):
        write(Embeddings(side.ids, side.vectors), files / name)
    matrix = Cosine().score(enroll, test).in_memory()
    assert "the embeddings of e.npz have no speakers; give --enroll-speakers" in refused(
        "--enroll", "e.npz", "--test", "t.npz"
    )
    by_map, _ = fit(*QUICK, "--enroll", "e.npz", "--test", "t.npz", "--enroll-speakers", "utt2spk")
    expected = quick_fit([(matrix, Labels.from_speakers(ENROLL, TEST))]).model
    assert same(by_map, expected)
    by_key, _ = fit(*QUICK, "--enroll", "e.npz", "--test", "t.npz", "--key", "a.key")
    assert same(by_key, expected)
    (files / "few.utt2spk").write_text("e0 s0\n")
    (files / "m.json").unlink()
    message = refused(
        "--enroll", "e.npz", "--test", "t.npz", "--enroll-speakers", "few.utt2spk", "--test-speakers", "utt2spk"
    )
    assert "few.utt2spk has no speaker for enrolment 'e1', 'e2', 'e3' and 26 more" in message


def test_phrases_of_embeddings(fit, refused, files):
    enroll, test = vectors("e", ENROLL, 1), vectors("t", TEST, 2)
    odd_rows, odd_columns = np.arange(30) % 2, np.arange(45) % 2
    with_word = [
        Embeddings(side.ids, side.vectors, side.speakers, columns={"word": np.where(odd, "yes", "no")})
        for side, odd in ((enroll, odd_rows), (test, odd_columns))
    ]
    write(with_word[0], files / "e.npz")
    write(with_word[1], files / "t.npz")
    write(enroll, files / "plain.npz")
    matrix, labels = Cosine().score(enroll, test).in_memory(), Labels.from_speakers(ENROLL, TEST)

    def parts(rows_of):
        for phrase in (0, 1):
            rows, columns = np.flatnonzero(rows_of == phrase), np.flatnonzero(odd_columns == phrase)
            rows = np.arange(30) if len(rows) == 0 else rows
            yield matrix.take(rows, columns), labels.take(rows, columns)

    brief = ("--starts", 1, "--max-iter", 20)
    model, figures = fit("--enroll", "e.npz", "--test", "t.npz", "--phrase-from", "column:word", *brief)
    assert figures["matrices"] == 2
    assert same(model, fit_score_model(list(parts(odd_rows)), starts=1, max_iter=20).model)
    model, _ = fit("--enroll", "plain.npz", "--test", "t.npz", "--phrase-from", "column:word", *brief)
    assert same(model, fit_score_model(list(parts(np.full(30, -1))), starts=1, max_iter=20).model)
    (files / "m.json").unlink()
    assert "no such column, but 'word'" in refused("--enroll", "e.npz", "--test", "t.npz", "--phrase-from", "column:x")
    assert "no phrase for test" in refused("--enroll", "e.npz", "--test", "t.npz", "--phrase-from", "re:(9)")
    assert "scores have no columns" in refused("--scores", "a.labelled", "--phrase-from", "column:word")


def test_an_utterance_is_not_scored_against_itself(fit, files, refused):
    test = vectors("t", TEST, 2)
    write(test, files / "t.npz")
    brief = ("--enroll", "t.npz", "--test", "t.npz", "--starts", 1, "--max-iter", 5)
    labels, scores = Labels.of_axes(test, test), Cosine().score(test, test)
    for option, matrix in (((), cohort_matrix(scores)), (("--keep-self-pairs",), scores.in_memory())):
        model, figures = fit(*brief, *option)
        told = "were scored against themselves, as targets" if option else "were not scored against themselves"
        assert f"45 ids stand on both sides and {told}" in figures["notes"][-1]
        assert same(model, fit_score_model([(matrix, labels)], starts=1, max_iter=5).model)
    (files / "m.json").unlink()
    assert "--keep-self-pairs is for lgsm" in refused(*brief[:4], "--keep-self-pairs", "--norm", "evidence")


def test_what_a_person_sees(cli, files):
    result = cli("fit", "--scores", "a.npz", "--key", "a.key", "-o", "m.json")
    assert result.exit_code == 0
    assert "unexplained (sigma^2)" in result.stdout
    assert "90 target and 1260 non-target scores in 1 matrix" in result.stdout
    assert "converged after" in result.stdout
    assert "effects" not in result.stdout
    shown = cli("fit", "--scores", "a.npz", "--key", "a.key", "-o", "m.json", "--verbose", "--max-iter", 2)
    assert "enrolment's effects" in shown.stdout
    assert "! not converged after 2 iterations" in shown.stdout
    info = json.loads((files / "m.json").read_text())["info"]
    assert info["scores"] == ["a.npz"]
    assert info["key"] == ["a.key"]
    assert info["n_target"] == 90
    assert info["converged"] is False


def test_the_model_on_standard_output(cli, files):
    result = cli("fit", *QUICK, "--scores", "a.npz", "--key", "a.key", "-o", "-")
    assert json.loads(result.stdout)["format"] == "evenscore-score-model"
    both = cli("fit", "--scores", "a.npz", "--key", "a.key", "-o", "-", "--json")
    assert both.exit_code == 2
    assert "not both" in both.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "there is nothing to train on"),
        (("--enroll", "e.npz"), "there is nothing to train on"),
        (("--scores", "a.npz"), "a.npz: the scores have no labels; give --key"),
        (("--scores", "absent", "--key", "a.key"), "absent: there is no such file"),
        (("--scores", "a.npz", "--key", "absent"), "absent: there is no such file"),
        (("--scores", "a.npz", "--enroll", "x"), "both scores and embeddings"),
        (("--scores", "a.npz", "--key", "a.key", "--enroll-speakers", "utt2spk"), "a key or from speaker maps"),
        (("--scores", "a.npz", "--key", "a.key", "--key", "b.key"), "1 score files and 2 keys"),
        (("--scores", "a.npz", "--key", "a.scores"), "the key a.scores has no labels"),
        (("--scores", "a.npz", "--enroll-speakers", "enroll2spk"), "enroll2spk has no speaker for test 't0'"),
        (("--scores", "a.npz", "--key", "a.key", "--dim", "-1"), "dim is -1, but must be a whole number, 0 or more"),
        (("--scores", "a.npz", "--key", "a.key", "--tol", "nan"), "tol is 'nan'"),
        (("--scores", "a.npz", "--key", "a.key", "--max-iter", "0"), "max_iter is 0"),
        (("--scores", "a.npz", "--key", "a.key", "--phrase-from", "re:("), "not a regular expression"),
        (("--scores", "a.npz", "--key", "a.key", "--phrase-from", "re:t"), "has 0 groups"),
        (("--scores", "a.npz", "--key", "a.key", "--phrase-from", "re:(a)(b)"), "has 2 groups"),
        (("--scores", "a.npz", "--key", "a.key", "--phrase-from", "re:(x)"), "no phrase for test 't0', 't1', 't2'"),
        (("--scores", "a.npz", "--key", "a.key", "--phrase-from", "enroll2spk"), "no phrase for test 't0'"),
        (("--scores", "utt2spk", "--key", "a.key"), "utt2spk"),
    ],
)
def test_refusals(refused, files, arguments, reason):
    assert reason in refused(*arguments)


def test_an_output_without_a_directory_is_refused_before_the_training(cli, files):
    result = cli("fit", "--scores", "no such file", "-o", "absent/m.json")
    assert result.exit_code == 2
    assert "absent/m.json: its directory does not exist" in result.stderr


def test_data_that_cannot_train(refused, files):
    trials = SCORES.to_trials(LABELS)
    for name, made, reason in (
        ("one", trials.select(trials.labels == 0), "there is no target score"),
        ("constant", trials.with_scores(np.ones(len(trials))), "scores are equal"),
        ("unknown", trials.with_labels(np.full(len(trials), -1)), "no score has a known label"),
    ):
        write(made, files / f"{name}.npz")
        assert reason in refused("--scores", f"{name}.npz")
    elsewhere = TrialList.from_pairs(["x"], ["y"], labels=[1])
    write(elsewhere, files / "elsewhere", format="kaldi")
    assert "not in the key" in refused("--scores", "a.npz", "--key", "elsewhere")
    message = refused("--scores", "a.npz", "--key", "elsewhere", "--unmatched", "drop")
    assert "the key has none of these trials" in message


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    ("labels", "speakers_known"),
    [(("--key", "a.key"), True), (("--enroll-speakers", "utt2spk"), True), (("--key", "part.key"), False)],
)
def test_the_share_of_trials_beyond_the_vertex_is_measured(fit, files, dim, labels, speakers_known):
    """With speakers and all their scores, each trial is scored with the other speakers as its cohort."""
    from evenscore import LabelledBlocks, ScoreBlocks, read_trials
    from evenscore.model import share_beyond_vertex

    key = read_trials(files / "a.key")
    write(key.select(np.flatnonzero(np.arange(len(key)) % 7 > 0)), files / "part.key", format="kaldi")
    some = ("--unmatched", "drop") if not speakers_known else ()
    model, figures = fit(*QUICK, "--scores", "a.npz", *labels, *some, "--norm", f"lgsm:dim={dim}")
    with_cohort = bool(dim) and speakers_known
    assert figures["beyond_vertex"]["with_cohort"] is with_cohort
    part = LabelledBlocks.own_cohort(SCORES, LABELS) if with_cohort else None
    if part is None:
        part = LabelledBlocks(ScoreBlocks(SCORES), LABELS if speakers_known else read_trials(files / "part.key"))
    expected = share_beyond_vertex(model, part)
    found = [figures["beyond_vertex"][name] for name in ("nontarget", "target")]
    assert found == pytest.approx(expected.tolist(), abs=1e-12)
    assert json.loads((files / "m.json").read_text())["info"]["nontarget_beyond_vertex"] == found[0]


def test_of_many_trials_some_are_looked_at(fit, files, monkeypatch):
    monkeypatch.setattr("evenscore.cli.training_data.LOOKED_AT", 100)
    _, some = fit(*QUICK, "--scores", "a.npz", "--key", "a.key", "--scores", "b.npz", "--key", "b.key")
    monkeypatch.setattr("evenscore.cli.training_data.LOOKED_AT", 10_000)
    _, every = fit(*QUICK, "--scores", "a.npz", "--key", "a.key", "--scores", "b.npz", "--key", "b.key")
    assert some["beyond_vertex"]["nontarget"] * 100 == pytest.approx(round(some["beyond_vertex"]["nontarget"] * 100))
    assert some["beyond_vertex"]["nontarget"] == pytest.approx(every["beyond_vertex"]["nontarget"], abs=0.05)
    monkeypatch.setattr("evenscore.cli.training_data.WHOLE", 10)
    _, none = fit(*QUICK, "--scores", "a.npz", "--key", "a.key")
    assert none["beyond_vertex"] is None


def test_what_a_person_sees_of_a_model_without_hidden_variables(cli, files):
    result = cli("fit", "--scores", "a.npz", "--key", "a.key", "--norm", "lgsm:dim=0", "--verbose", "-o", "m.json")
    text = result.stdout.replace("\n", " ")
    assert "hidden variables" not in text
    assert "converged after 1 iteration " in text
    assert "The LLR has a " in text
    assert "Of the training trials, " in text
    assert "cohort" not in text


def test_self_centred_scores_are_named_and_corrected_if_asked_for(fit, refused, files):
    enroll, test = vectors("e", ENROLL, 1), vectors("t", TEST, 2)
    both = Embeddings.concat([enroll, test])
    labels = Labels.from_speakers(ENROLL, TEST, enroll_ids=enroll.ids, test_ids=test.ids)
    scores = Cosine(mean=both.vectors.mean(axis=0)).score(enroll, test).in_memory()
    write(scores, files / "own.npz")
    write(scores.to_trials(labels), files / "own.csv", format="csv")
    given = ("--scores", "own.npz", "--key", "own.csv")
    model, figures = fit(*QUICK, *given)
    assert same(model, quick_fit([(scores, labels)]).model)
    assert "centred on their own speakers" in figures["notes"][0]
    model, figures = fit(*QUICK, *given, "--self-centered", "correct")
    assert same(model, quick_fit([(correct_self_centering(scores, labels), labels)]).model)
    assert figures["notes"] == []
    write(Cosine().score(enroll, test).in_memory(), files / "own.npz")
    (files / "m.json").unlink()
    assert "do not look centred on their own speakers" in refused(*given, "--self-centered", "correct")
    twice = ("--scores", "own.npz", "--scores", "own.npz", "--key", "own.csv", "--key", "own.csv")
    assert "for one matrix, but there are 2" in refused(*twice, "--self-centered", "correct")


@pytest.mark.parametrize("stretch", [1.0, 4.0])
def test_how_far_its_own_llrs_are_from_calibrated_ones(fit, cli, files, monkeypatch, stretch):
    """The Cllr is that of plain calls; LLRs that are much too large are named."""
    from evenscore import LabelledBlocks, cllr, cross_calibrate, normalize
    from evenscore.norms import fit_residuals

    part = LabelledBlocks.own_cohort(SCORES, LABELS)
    trials = part.labelled(normalize(part.blocks, "lgsm", model=fit_residuals(trained(1).model, [part])))
    sides = {"enroll_speakers": ENROLL, "test_speakers": TEST}
    llrs = stretch * trials.scores
    expected = (
        cllr(llrs, trials.labels),
        cllr(cross_calibrate(trials.with_scores(llrs), **sides, options={"l2": 1e-5}).llr, trials.labels),
    )
    monkeypatch.setattr("evenscore.norms.normalize", lambda *given, **how: stretched(normalize(*given, **how), stretch))
    _, figures = fit(*QUICK, "--scores", "a.npz", "--key", "a.key")
    assert [figures["own_llrs"][name] for name in ("cllr", "calibrated_cllr")] == pytest.approx(expected, rel=1e-4)
    words = cli("fit", *QUICK, "--scores", "a.npz", "--key", "a.key", "-o", "m.json").stdout
    assert f"{expected[0]:.3f} by the model's own LLRs, {expected[1]:.3f} after logistic calibration" in words
    assert ("calibrate them" in words) == (stretch > 1)
    assert json.loads((files / "m.json").read_text())["info"]["own_cllr"] == pytest.approx(expected[0], rel=1e-4)


def stretched(table, factor):
    return table.with_scores(factor * table.scores)


def test_few_speakers_or_a_list_and_its_own_llrs(fit, cli, files):
    _, figures = fit(*QUICK, "--scores", "a.labelled")
    assert 0 < figures["own_llrs"]["calibrated_cllr"] < 1
    assert not figures["own_llrs"]["with_cohort"]
    few = SCORES.take(np.arange(2), np.arange(2))
    write(few, files / "few.npz")
    some = ("--scores", "few.npz", "--key", "a.key", "--unmatched", "drop")
    assert fit("--norm", "lgsm:dim=0", *some)[1]["own_llrs"] is None
