import json

import numpy as np
import pytest

from evenscore import Embeddings, ScoreMatrix, TrialList
from evenscore.cli.findings import compare_with_key, facts_of, suspicions_of
from evenscore.files import write

SCORES = "ann utt1 4.2\nann utt2 -1.5\nbob utt1 -0.7\nbob utt2 3.1\n"
KEY = "bob utt2 target\nann utt1 target\nann utt2 nontarget\nbob utt1 nontarget\n"


def report(cli, *arguments, input=None):
    result = cli("info", *arguments, "--json", input=input)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_scores(cli, file):
    (facts,) = report(cli, file("dev.scores", SCORES))
    assert facts["kind"] == "scores"
    assert facts["format"] == "kaldi"
    assert (facts["enrolments"], facts["tests"], facts["trials"], facts["missing"]) == (2, 2, 4, 0)
    assert facts["scores"]["all"] == pytest.approx(
        {"count": 4, "min": -1.5, "mean": 1.275, "max": 4.2, "std": 2.4231952}
    )


def test_a_key_adds_labels_and_classes(cli, file):
    (facts,) = report(cli, file("dev.scores", SCORES), "--key", file("dev.trials", KEY))
    assert facts["labels"] == {"target": 2, "nontarget": 2, "unknown": 0}
    assert facts["scores"]["target"]["mean"] == pytest.approx(3.65)
    assert facts["scores"]["nontarget"]["max"] == pytest.approx(-0.7)
    assert facts["key"]["in_both"] == 4


def test_several_files_of_several_kinds(cli, file, tmp_path):
    write(Embeddings(["u1", "u2"], np.eye(2), ["ann", "bob"]), tmp_path / "x.npz")
    write(ScoreMatrix(np.eye(2), ["a", "b"], ["x", "y"]), tmp_path / "m.npz")
    kinds = [
        (facts["file"], facts["kind"], facts["format"])
        for facts in report(cli, "x.npz", "m.npz", file("dev.trials", KEY), file("utt2spk", "u1 ann\nu2 ann\n"))
    ]
    assert kinds == [
        ("x.npz", "embeddings", "npz"),
        ("m.npz", "scores", "npz"),
        ("dev.trials", "trials", "kaldi"),
        ("utt2spk", "speakers", "utt2spk"),
    ]


def test_standard_input(cli):
    (facts,) = report(cli, "-", input=SCORES)
    assert facts["trials"] == 4


def test_people_get_a_table(cli, file):
    result = cli("info", file("[bold]dev.scores", SCORES), "--key", file("dev.trials", KEY))
    assert result.exit_code == 0
    assert "[bold]dev.scores" in result.stdout
    assert "2 target, 2 nontarget, 0 unknown" in result.stdout
    assert "! only 2 target trials" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())


def test_from_names_the_format(cli, file):
    name = file("trials", "1 a/x.wav b/y.wav\n0 a/x.wav c/z.wav\n")
    (facts,) = report(cli, name, "--from", "voxceleb")
    assert facts["labels"] == {"target": 1, "nontarget": 1, "unknown": 0}
    result = cli("info", name, "--from", "voxcelob")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: there is no format 'voxcelob'; known are ")


def test_a_key_for_things_that_are_no_trials_is_refused(cli, file):
    result = cli("info", file("utt2spk", "u1 ann\nu2 ann\n"), "--key", file("dev.trials", KEY))
    assert result.exit_code == 2
    assert result.stderr.startswith("error: utt2spk: it holds no trials")
    unlabelled = cli("info", file("dev.scores", SCORES), "--key", "dev.scores")
    assert unlabelled.exit_code == 2
    assert "no labels" in unlabelled.stderr


# What looks wrong


def notes_on(table):
    return "\n".join(suspicions_of(table, facts_of(table)))


def trials(scores=None, labels=None, enroll=None, test=None, size=100):
    enroll = [f"e{i}" for i in range(size)] if enroll is None else enroll
    test = [f"t{i}" for i in range(size)] if test is None else test
    return TrialList.from_pairs(enroll, test, scores=scores, labels=labels)


LABELS = np.arange(100) < 40
USUAL = LABELS + np.linspace(0, 1, 100)


def test_usual_trials_are_not_suspicious():
    assert notes_on(trials(USUAL, LABELS)) == ""


@pytest.mark.parametrize(
    ("table", "note"),
    [
        (trials(np.ones(100)), "all 100 scores are 1"),
        (trials(-USUAL, LABELS), "targets score lower"),
        (trials(np.arange(100) % 3.0, LABELS), "targets score no higher than non-targets"),
        (trials(USUAL, ~LABELS), "more targets (60) than non-targets (40)"),
        (trials(USUAL, np.ones(100, bool)), "all labels are target"),
        (trials(USUAL, np.zeros(100, bool)), "all labels are non-target"),
        (trials(USUAL, -np.ones(100, int)), "no trial has a label"),
        (trials(USUAL, np.arange(100) < 5), "only 5 target trials"),
        (trials(np.append(USUAL[1:], -1e10)), "the score -1e+10 is far from all others"),
        (trials(np.arange(2000) % 2.0, size=2000), "only 2 different values in 2000 scores: decisions"),
        (trials(np.arange(2000) % 10.0, size=2000), "only 10 different values in 2000 scores: rounded?"),
        (trials(USUAL, enroll=["E1 ", *[f"e{i}" for i in range(99)]]), "differ only in case or blanks: 'E1 ' and 'e1'"),
        (
            trials(labels=[1] * 60 + [0] * 40, enroll=[f"t{i}" for i in range(100)]),
            "compare an id with itself, first 't0'",
        ),
        (trials(labels=[1] * 60 + [0] * 40, enroll=[f"t{i}" for i in range(100)]), "'t60' against itself is labelled"),
        (trials(enroll=["odd", *[f"t{i}" for i in range(99)]]), "1 of 100 ids stand only on the enrolment side"),
        (trials(enroll=["odd", *[f"t{i}" for i in range(99)]]), "1 of 100 ids stand only on the test side"),
        (TrialList.from_pairs([], [], scores=[]), "there are no scores"),
        (ScoreMatrix([[1.0, np.nan]], ["a"], ["x", "y"], missing="nan"), "1 test ids have no score at all: 'y'"),
        (ScoreMatrix(np.ones((2, 2)), ["a", "b"], ["x", "y"]), "all 4 scores are 1"),
        (Embeddings(["a", "b"], [[0.0, 0.0], [3.0, 4.0]]), "1 vectors are all zero: 'a'"),
        (Embeddings(["a", "b"], [[1.0, 0.0], [3.0, 4.0]]), "lengths go from 1 to 5: not length-normalized"),
        (Embeddings(["a", "b"], [[1.0, 0.0], [1.0, 4.0]]), "1 of 2 components are the same in all vectors"),
        (Embeddings(["a", "b"], [[1.0, 0.0], [1.0, 0.0]]), "1 vectors equal an earlier one, first 'a' and 'b'"),
        (Embeddings(["a", "b"], np.eye(2), ["x", "y"]), "every speaker has only one utterance"),
        (Embeddings(["a", "b"], np.eye(2), ["x", "x"]), "there is only one speaker"),
        (Embeddings(["a", "b"], np.eye(2), ["x", None]), "1 utterances have no speaker"),
        (Embeddings([], np.zeros((0, 2))), "there are no vectors"),
        ({"u1": "ann", "u2": "ann", "u3": "bob"}, "1 of 2 speakers have only one utterance: 'bob'"),
        ({"u1": "ann", "u2": "ann", "u3": "Ann", "u4": "Ann"}, "speaker ids that differ only in case"),
    ],
)
def test_suspicious(table, note):
    assert note in notes_on(table)


def test_very_unequal_classes():
    table = TrialList(["e"], np.arange(30_000), np.zeros(30_000, int), np.arange(30_000), labels=np.arange(30_000) < 1)
    assert "29999 non-targets for each target" in notes_on(table)


def test_normalized_vectors_are_not_suspicious():
    angles = np.linspace(0, 3, 7)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert notes_on(Embeddings([f"u{i}" for i in range(7)], vectors, list("aabbccc"))) == ""


# Keys


def pairs(text, labels=None):
    enroll, test = zip(*(pair.split() for pair in text.split(",")), strict=True)
    return TrialList.from_pairs(enroll, test, labels=labels)


@pytest.mark.parametrize(
    ("ours", "theirs", "note"),
    [
        ("a x,b y", "a x", "1 trials of the file are not in the key, first ('b', 'y')"),
        ("a x,b y", "a x", "1 enrolment ids are only in the file: 'b'"),
        ("a x", "a x,b y", "1 trials of the key are not in the file, first ('b', 'y')"),
        ("a x", "x a", "are the two sides swapped?"),
        ("a x", "A X", "without regard to case"),
        ("a x", "a.wav x.wav", "without regard to file endings"),
        ("a x", r"C:\one\a.wav C:\two\x.wav", "without regard to folders and file endings"),
    ],
)
def test_a_key_that_does_not_fit_is_explained(ours, theirs, note):
    facts, notes, joined = compare_with_key(pairs(ours), pairs(theirs, [1] * (theirs.count(",") + 1)))
    assert note in "\n".join(notes)
    assert len(joined) == facts["in_both"]


def test_a_key_that_fits_is_not_suspicious():
    facts, notes, joined = compare_with_key(pairs("a x,b y"), pairs("b y,a x", [0, 1]))
    assert notes == []
    assert joined.labels.tolist() == [1, 0]
    assert facts["only_in_file"] == facts["only_in_key"] == {"count": 0, "first": []}


def test_labels_that_contradict_the_key_are_named():
    _, notes, joined = compare_with_key(pairs("a x,b y,c z", [1, 0, -1]), pairs("c z,b y,a x", [1, 1, 1]))
    assert notes == ["1 labels of the file do not agree with the key, first that of ('b', 'y')"]
    assert joined.labels.tolist() == [1, 1, 1]
