"""``evenscore plot``: a figure for every kind, and a reason for every refusal."""

import functools
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest

from evenscore import (
    GaussianCalibration,
    LogisticCalibration,
    ScoreMatrix,
    ScoreModel,
    TrialList,
    save_calibration,
    save_model,
    write,
)

pytest.importorskip("matplotlib", reason="figures need the extra 'plot'")

KINDS = ("det", "bayes", "ece", "hist", "qq", "tippett", "reliability")
RNG = np.random.default_rng(2)
ENROLL, TEST = np.repeat([f"e{n}" for n in range(12)], 24), np.tile([f"t{n}" for n in range(24)], 12)
SPEAKERS = {f"e{n}": f"s{n}" for n in range(12)} | {f"t{n}": f"s{n % 12}" for n in range(24)}
LABELS = np.array([SPEAKERS[e] == SPEAKERS[t] for e, t in zip(ENROLL, TEST, strict=True)])
SCORES = RNG.normal(np.where(LABELS, 2.0, -2.0), 2.0)
MODEL = ScoreModel(mu=[-2.0, 2.0], alpha=[[1.0], [1.0]], beta=[[1.0], [1.0]], sigma2=[2.0, 2.0])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write good files of scores, and bad ones."""
    folder = tmp_path_factory.mktemp("files")
    trials = TrialList.from_pairs(ENROLL, TEST, scores=SCORES, labels=LABELS)
    write(trials, folder / "raw.scores", format="kaldi")
    write(trials.with_scores(SCORES + RNG.normal(size=SCORES.size)), folder / "norm.scores", format="kaldi")
    write(trials, folder / "labelled", format="wespeaker")
    write(TrialList.from_pairs(ENROLL, TEST, labels=LABELS), folder / "key", format="kaldi")
    write(trials.to_matrix(), folder / "matrix.npz")
    write(SPEAKERS, folder / "utt2spk", format="utt2spk")
    save_model(MODEL, folder / "m.json")
    save_calibration(GaussianCalibration.fit(SCORES, LABELS), folder / "c.json")
    half = np.arange(LABELS.size) < LABELS.size // 2
    for name, part in (("half", half), ("fewer", half), ("targets", LABELS), ("nontargets", ~LABELS)):
        write(trials.select(part), folder / name, format="wespeaker")
    write(TrialList.from_pairs(["x"], ["y"], labels=[1]), folder / "other", format="kaldi")
    write({"e0": "s0", "e1": "s0"}, folder / "short", format="utt2spk")
    write(dict.fromkeys(SPEAKERS, "s0"), folder / "alone", format="utt2spk")
    save_calibration(LogisticCalibration.fit(SCORES, LABELS), folder / "logistic.json")
    return folder


@pytest.fixture(autouse=True)
def _files(written, tmp_path):
    shutil.copytree(written, tmp_path, dirs_exist_ok=True)


@pytest.fixture
def drawn(cli, tmp_path, monkeypatch):
    """Draw, and return the axes; what was written must be a whole figure. Most of the time goes into writing."""
    from evenscore.plot import style

    kept = []
    save_figure = style.save_figure

    def run(*arguments, output="out.svg", written=True):
        def save(ax, path, **options):
            kept.append(ax)
            if written:
                save_figure(ax, path, **options)

        monkeypatch.setattr(style, "save_figure", save)
        result = cli("plot", *arguments, "-o", output)
        assert result.exit_code == 0, result.stderr
        assert result.stdout == ""
        assert result.stderr == ""
        if output.endswith(".svg") and written:
            assert ElementTree.parse(tmp_path / output).getroot().tag.endswith("svg")  # noqa: S314
        return kept[-1]

    return run


@pytest.fixture
def axes(drawn):
    """Draw what others write, and return the axes."""
    return functools.partial(drawn, written=False)


@pytest.fixture
def refused(cli, tmp_path):
    """Draw something that must be refused without an output; return the sentence."""

    def run(*arguments, output="out.svg"):
        result = cli("plot", *arguments, "-o", output)
        assert result.exit_code == 2, result.stdout
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert not (tmp_path / output).is_file()
        return result.stderr

    return run


def texts(ax):
    legend = ax.get_legend()
    return [] if legend is None else [text.get_text() for text in legend.get_texts()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "scores", [("raw.scores", "--key", "key"), ("labelled",), ("matrix.npz", "--enroll-speakers", "utt2spk")]
)
def test_every_kind_is_drawn_from_every_form_of_scores(drawn, kind, scores):
    ax = drawn(kind, *scores, written=scores == ("labelled",))
    assert ax.lines or ax.patches
    assert not any("scores" in text for text in texts(ax))  # one system needs no name


@pytest.mark.parametrize("kind", ["det", "bayes", "ece", "tippett", "reliability"])
def test_systems_have_the_names_of_their_files_or_given_ones(drawn, axes, kind):
    files = (kind, "raw.scores", "norm.scores", "--key", "key")
    assert [text.split(" (")[0] for text in texts(axes(*files))[:2]] == ["raw.scores", "norm.scores"]
    named = texts(drawn(*files, "--name", "$a_", "--name", "_b"))
    assert [text.split(" (")[0] for text in named[:2]] == ["$a_", "_b"]


def test_effect(drawn, axes):
    ax = drawn("effect", "raw.scores", "norm.scores", "--key", "key", "--most", 20, "--name", "raw", "--name", "AS")
    assert ax.get_xlabel().startswith("raw (EER ")
    assert ax.get_ylabel().startswith("AS (EER ")
    assert texts(ax)[0] == "20 of 264 non-targets"
    assert axes("effect", "labelled", "norm.scores", "--key", "key").get_xlabel().startswith("labelled (EER ")


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_the_ending_says_the_format(cli, tmp_path, ending):
    """That the same figure is the same file each time, is looked at where figures are saved."""
    assert cli("plot", "det", "labelled", "-o", f"a.{ending}", "--dpi", "60").exit_code == 0
    data = (tmp_path / f"a.{ending}").read_bytes()
    assert data.startswith({"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending])


def test_size_title_and_resolution(drawn, tmp_path):
    from matplotlib.image import imread

    ax = drawn("bayes", "labelled", "--size", "6x3", "--dpi", "50", "--title", "$5_<b>", output="out.png")
    assert ax.get_title() == "$5_<b>"
    assert imread(tmp_path / "out.png").shape[:2] == (150, 300)


def test_operating_points(drawn, axes):
    ax = drawn("det", "labelled", "--points", "0.1", "--points", "0.05,10,1")
    assert texts(ax)[1:3] == ["min (open), act DCF, p = 0.1", "min (open), act DCF, p = 0.05, costs 10:1"]
    places = [line.get_xdata()[0] for line in axes("bayes", "labelled", "--points", "0.5").lines]
    assert places[-1] == pytest.approx(0.0)


def test_bands_by_maps_or_by_target_trials(drawn, axes):
    maps = ("--enroll-speakers", "utt2spk")
    shapes = []
    for more in (maps, ()):
        ax = axes("det", "raw.scores", "norm.scores", "--key", "key", "--bootstrap", 30, *more)
        assert len(ax.collections) == 2
        shapes.append(ax.collections[0].get_paths()[0].vertices)
    assert np.allclose(*shapes)  # here the target trials tell as much as the map
    narrow = drawn("det", "labelled", "--bootstrap", 30, "--level", 0.5).collections[0].get_paths()[0].vertices
    assert np.nanmin(narrow[:, 1]) >= np.nanmin(shapes[0][:, 1])


def test_densities(drawn, axes):
    assert texts(drawn("hist", "labelled", "--model", "m.json"))[2:] == ["non-targets, model", "targets, model"]
    assert len(axes("hist", "labelled", "--calibration", "c.json", "--bins", "7").lines) == 2
    assert len(axes("hist", "labelled", "--bins", "7").patches[0].get_data()[0]) == 7


def test_quantiles_are_those_of_the_model_if_one_is_given(axes):
    own, known = (axes("qq", "labelled", *more).lines[0].get_ydata() for more in ((), ("--model", "m.json")))
    deviation = SCORES[~LABELS].std()
    assert np.allclose(known, (own * deviation + SCORES[~LABELS].mean() + 2.0) / 2.0, atol=1e-5)


def test_other_views(drawn):
    assert drawn("tippett", "labelled", "--log10").get_xlabel() == "Likelihood ratio (log10)"
    assert drawn("reliability", "labelled", "--p-target", "0.1").get_xlim()[1] == 1


def test_infinite_llrs_can_be_drawn(drawn, file):
    words = np.where(LABELS, "target", "nontarget")
    texts = np.where(np.arange(SCORES.size) == 5, "-inf", SCORES.round(3).astype(str))
    file("infinite", "".join(f"{e} {t} {s} {w}\n" for e, t, s, w in zip(ENROLL, TEST, texts, words, strict=True)))
    for kind in KINDS:
        assert drawn(kind, "infinite") is not None


def test_letters_that_the_font_lacks_are_said(cli, tmp_path):
    result = cli("plot", "det", "labelled", "--title", "\U0001f9ff中", "-o", "out.png")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: the font lacks letters of a name or the title")
    assert result.stderr.count("\n") == 1
    assert (tmp_path / "out.png").exists()


@pytest.mark.parametrize("name", ["out.jpg", "out", "out.svg.gz", "-"])
def test_unknown_endings_are_refused_before_anything_is_read(refused, name):
    assert "must end in one of .svg, .pdf, .png" in refused("det", "absent", output=name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("det", "absent"), "absent: there is no such file"),
        (("det", "raw.scores"), "raw.scores: the scores have no labels; give --key"),
        (("det", "matrix.npz"), "matrix.npz: the scores have no labels"),
        (("det", "labelled", "--key", "half"), "144 of the 288 scored trials are not in the key"),
        (("bayes", "labelled", "--key", "other"), "not in the key"),
        (("hist", "labelled", "--key", "other", "--unmatched", "drop"), "do the two files belong together?"),
        (("tippett", "targets"), "24 target and 0 non-target trials"),
        (("reliability", "nontargets"), "0 target and 264 non-target trials"),
        (("det", "labelled", "labelled"), "two systems are called 'labelled'; give them different names"),
        (("det", "labelled", "--name", "a", "--name", "b"), "there are 1 files of scores, but 2 names"),
        (("effect", "labelled", "raw.scores"), "raw.scores: the scores have no labels"),
        (("effect", "labelled", "fewer"), "has a score before, but none after"),
        (("det", "labelled", "--size", "big"), "the size is 'big', but must be width x height"),
        (("det", "labelled", "--size", "5"), "the size is '5', but must be width x height"),
        (("det", "labelled", "--size", "0.1x4"), "from 1 to 100 inches a side"),
        (("det", "labelled", "--size", "nanx4"), "from 1 to 100 inches a side"),
        (("det", "labelled", "--points", "a"), "the operating point 'a' must be a prior"),
        (("bayes", "labelled", "--points", "1.5"), "p_target is 1.5, but must lie between 0 and 1"),
        (("det", "labelled", "--bootstrap", "9", "--enroll-speakers", "short"), "short has no speaker for"),
        (("det", "labelled", "--bootstrap", "9", "--enroll-speakers", "alone"), "all trials are of one speaker"),
        (("det", "labelled", "--bootstrap", "9", "--level", "2"), "level is 2"),
        (("hist", "labelled", "--calibration", "logistic.json"), "LogisticCalibration has no densities"),
        (("hist", "labelled", "--model", "other"), "other:1: this is not JSON"),
        (("hist", "labelled", "raw.scores"), "hist draws 1 file of scores, but there are 2"),
        (("effect", "labelled"), "effect draws 2 files of scores, but there are 1"),
        (("hist", "labelled", "--points", "0.1"), "--points is for det and bayes, not for hist"),
        (("bayes", "labelled", "--bootstrap", "9"), "--bootstrap is for det, not for bayes"),
        (
            ("hist", "labelled", "--name", "a"),
            "--name is for det and bayes and ece and tippett",
        ),
        (("reliability", "labelled", "--p-target", "0"), "p_target is 0.0, but must lie between 0 and 1"),
    ],
)
def test_a_refusal_is_one_sentence(refused, arguments, message):
    assert message in refused(*arguments)


def test_an_output_that_cannot_be_written_is_refused(refused, tmp_path):
    assert "its directory does not exist" in refused("det", "labelled", output="absent/out.svg")
    (tmp_path / "old.svg").mkdir()
    assert "this is a directory" in refused("det", "labelled", output="old.svg")


def test_missing_scores_of_a_matrix_are_left_out(drawn, tmp_path):
    matrix = TrialList.from_pairs(ENROLL, TEST, scores=SCORES).to_matrix()
    holes = matrix.scores.copy()
    holes[0, :3] = np.nan
    write(ScoreMatrix(holes, matrix.enroll_ids, matrix.test_ids, missing="nan"), tmp_path / "holes.npz")
    assert drawn("hist", "holes.npz", "--key", "key", "--unmatched", "drop").patches


def test_without_matplotlib_the_remedy_is_named(refused, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'evenscore[plot]'" in refused("det", "labelled")
