"""What users get wrong with files: each slip is told in one sentence, with file and option, before the work."""

import pickle

import numpy as np
import pytest

from evenscore import Embeddings, TrialList, write

SPEAKERS = [f"s{n // 3}" for n in range(12)]
IDS = [f"u{n}" for n in range(12)]


def vectors(seed, ids, speakers=None, dim=5):
    return Embeddings(ids, np.random.default_rng(seed).normal(size=(len(ids), dim)), speakers)


@pytest.fixture
def files(tmp_path):
    """Utterances with and without speakers, a cohort, trials, scores and their key."""
    write(vectors(1, IDS, SPEAKERS), tmp_path / "x.npz")
    write(vectors(1, IDS), tmp_path / "nobody.npz")
    write(vectors(2, [f"c{n}" for n in range(20)]), tmp_path / "c.npz")
    write(vectors(3, [f"c{n}" for n in range(20)], dim=4), tmp_path / "c4.npz")
    pairs = [(i, j) for i in range(12) for j in range(i + 1, 12)]
    trials = TrialList.from_pairs([IDS[i] for i, _ in pairs], [IDS[j] for _, j in pairs])
    labels = [int(SPEAKERS[i] == SPEAKERS[j]) for i, j in pairs]
    scores = np.random.default_rng(4).normal(size=len(pairs)) + 3 * np.array(labels)
    write(trials.with_scores(scores).with_labels(None), tmp_path / "s", format="kaldi")
    write(trials.with_scores(-scores).with_labels(None), tmp_path / "negative", format="kaldi")
    (tmp_path / "key").write_text("".join(_line(*trials.pair(n), label) for n, label in enumerate(labels)))
    (tmp_path / "swapped").write_text("".join(_line(*trials.pair(n)[::-1], label) for n, label in enumerate(labels)))
    named = ((f"wav/{e}.flac", f"wav/{t}.flac") for e, t in map(trials.pair, range(len(labels))))
    (tmp_path / "wav").write_text("".join(_line(*pair, label) for pair, label in zip(named, labels, strict=True)))
    return tmp_path


def _line(enroll, test, label):
    return f"{enroll} {test} {('nontarget', 'target')[label]}\n"


@pytest.fixture
def refused(cli, files):
    """Run something that must be refused without an output; return the sentence."""

    def run(line):
        before = sorted(files.iterdir())
        result = cli(*line.split())
        assert (result.exit_code, result.stdout) == (2, ""), result.stdout
        assert result.stderr.count("\n") == 1
        assert sorted(files.iterdir()) == before
        return result.stderr.removeprefix("error: ").rstrip()

    return run


X = "--enroll-embeddings x.npz --test-embeddings x.npz"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (f"normalize --norm s {X} --cohort-embeddings c4.npz -o o", "c4.npz (--cohort-embeddings): its embeddings have"
         " 4 dimensions, but those of x.npz (--enroll-embeddings) have 5"),
        (f"score {X} --trials wav -o o", "wav (--trials): enrolment 'wav/u0.flac', 'wav/u1.flac', 'wav/u2.flac' and "
         "8 more not in the embeddings of x.npz (--enroll-embeddings); 'wav/u0.flac' stands there as 'u0'"),
        ("score --enroll-embeddings c.npz --test-embeddings x.npz --trials key -o o",
         "were enrolments and tests swapped?"),
        ("evaluate s --key wav", "s with wav (--key): 66 of the 66 scored trials are not in the key, first ('u0', "
         "'u1'); 'u0' stands there as 'wav/u0.flac': make directories and suffixes agree"),
        ("evaluate s --key swapped", "it stands there the other way round: were enrolments and tests swapped?"),
        ("fit --scores s --key swapped -o m.json", "it stands there the other way round"),
        ("compare --train s --train-key key --trials s --key key --methods as:topk=3 -o r", "no norm option 'topk'"),
        ("choose-cohort --train s --train-key key --norm as:topk=3 --sizes 2", "no norm option 'topk'"),
    ],
)  # fmt: skip
def test_what_is_refused(refused, line, said):
    assert said in refused(line)


@pytest.mark.parametrize(
    "line",
    [
        f"score {X} -o no/o", f"normalize --norm s {X} --cohort-embeddings c.npz -o no/o", f"fit {X} -o no/m.json",
        "plda x.npz -o no/p.json", "convert s no/o", "calibrate --train s --train-key key --save no/c.json",
        "calibrate --train s --train-key key s -o no/o", "plot det s --key key -o no/o.svg",
        "choose-cohort --train s --train-key key --sizes 2 --plot no/o.svg",
    ],
)  # fmt: skip
def test_directories_are_looked_at_before_the_work(refused, line):
    assert "its directory does not exist; create it first" in refused(line)


@pytest.mark.parametrize("line", ["compare --train s --train-key key --trials s --key key -o s", "demo -o s/there",
                                  "simulate --speakers 3 -o s/there"])  # fmt: skip
def test_directories_that_are_files(refused, line):
    assert "s" in refused(line)


def test_a_directory_in_place_of_a_file(refused, files):
    (files / "there").mkdir()
    assert refused(f"score {X} -o there") == "there: this is a directory; name a file in it"


def test_a_cohort_that_has_the_trials_utterances_is_told(cli, files):
    line = "normalize --norm s --trials s --enroll-embeddings {0} --test-embeddings {0} --cohort-embeddings {0} -o o"
    for name, said in (("nobody.npz", True), ("x.npz", False)):
        done = cli(*line.format(name).split())
        assert done.exit_code == 0, done.stderr
        assert ("12 cohort members are utterances of the trials ('u0', 'u1'" in done.stderr) == said


def test_inverted_scores_are_told(cli, files):
    for name, said in (("s", False), ("negative", True)):
        done = cli("evaluate", name, "--key", "key")
        assert done.exit_code == 0
        assert ("negative: a target scores below a non-target more often than above it" in done.stderr) == said


def test_a_bad_file_does_not_keep_others_from_being_shown(cli, files):
    shown = cli("info", "s", "missing", "x.npz", "gone")
    assert shown.exit_code == 2
    assert "kaldi" in shown.stdout and "embeddings" in shown.stdout  # noqa: PT018
    first, second = shown.stderr.splitlines()
    assert first.startswith("error: missing: there is no such file")
    assert second.startswith("error: gone: there is no such file")


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_pickles_are_not_read(cli, file, protocol):
    shown = cli("info", file("v.pkl", pickle.dumps({"u1": [0.5, 1.0]}, protocol=protocol)))
    assert shown.exit_code == 2
    assert "v.pkl: it is a Python pickle, which can run any code when it is read" in shown.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("e t 0,5\ne u -1,25\n", "s:1: the number '0,5' has a comma for a point; write 0.5"),
        ("e t 0.5\ne u -1,25\n", "s:2: "),
        ("enroll;test;score\ne;t;0,5\n", "s:1: the columns are separated by semicolons"),
        ('enroll,test,score\ne,t,"0,5"\n', "score '0,5' is not a number; write a point in place of the comma"),
    ],
)
def test_decimal_commas(cli, file, text, said):
    shown = cli("info", file("s", text))
    assert shown.exit_code == 2
    assert said in shown.stderr
