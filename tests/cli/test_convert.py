import gzip

import numpy as np
import pytest

from evenscore import Embeddings, ScoreMatrix, TrialList
from evenscore.files import read, write

SCORES = "ann utt1 4.2\nann utt2 -1.5\nbob utt1 -0.7\n"
KEY = "bob utt1 nontarget\nann utt1 target\nann utt2 nontarget\n"


@pytest.fixture
def convert(cli):
    def run(*arguments, input=None):
        result = cli("convert", *arguments, input=input)
        assert result.exit_code == 0, result.stderr
        assert result.stderr == ""
        return result.stdout

    return run


@pytest.fixture
def refused(cli, tmp_path):
    """Run a conversion that must be refused without leaving anything behind; return its sentence."""

    def run(*arguments, input=None):
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        result = cli("convert", *arguments, input=input)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
        return result.stderr

    return run


@pytest.mark.parametrize(
    "name", ["out.npz", "out.csv", "out.tsv", "out.h5", "out.scores", "out.scores.gz", "out.parquet"]
)
def test_there_and_back(convert, file, name):
    assert convert(file("dev.scores", SCORES), name) == ""
    assert convert(name, "-", "--to", "kaldi") == SCORES


def test_gzip_is_packed(convert, file, tmp_path):
    convert(file("dev.scores", SCORES), "out.scores.gz")
    assert gzip.decompress((tmp_path / "out.scores.gz").read_bytes()).decode() == SCORES


def test_pipe(convert):
    assert convert("-", "-", "--to", "tsv", input=SCORES).splitlines()[:2] == ["enroll\ttest\tscore", "ann\tutt1\t4.2"]
    assert convert("-", "-", input=gzip.compress(SCORES.encode())) == SCORES


def test_a_key_adds_labels(convert, file):
    file("dev.trials", KEY)
    out = convert(file("dev.scores", SCORES), "-", "--to", "csv", "--key", "dev.trials")
    assert out == "enroll,test,score,label\nann,utt1,4.2,target\nann,utt2,-1.5,nontarget\nbob,utt1,-0.7,nontarget\n"


def test_labels_that_were_asked_for_are_written(convert, file):
    file("dev.trials", KEY)
    out = convert(file("dev.scores", SCORES), "-", "--key", "dev.trials")
    assert out.splitlines()[0] == "ann utt1 4.2 target"
    assert convert("dev.scores", "-", "--key", "dev.trials", "--to", "kaldi") == SCORES


def test_a_key_that_does_not_fit(convert, refused, file, tmp_path):
    file("dev.scores", SCORES)
    short = file("short.trials", "ann utt1 target\n")
    message = refused("dev.scores", "out.csv", "--key", short)
    assert "2 of the 3 scored trials are not in the key, first ('ann', 'utt2')" in message
    assert "--unmatched drop" in message
    long = file("long.trials", KEY + "eve utt9 target\n")
    assert "1 of the 4 trials of the key have no score, first ('eve', 'utt9')" in refused(
        "dev.scores", "out.csv", "--key", long
    )
    assert len(convert("dev.scores", "-", "--key", short, "--unmatched", "drop").splitlines()) == 1
    assert len(convert("dev.scores", "-", "--key", long, "--unmatched", "drop").splitlines()) == 3


def test_speakers_label_trials_and_embeddings(convert, refused, file, tmp_path):
    file("utt2spk", "ann a\nutt1 a\nutt2 b\nbob b\n")
    out = convert(file("dev.scores", SCORES), "-", "--speakers", "utt2spk")
    assert [line.split()[-1] for line in out.splitlines()] == ["target", "nontarget", "nontarget"]
    write(Embeddings(["utt1", "utt2"], np.eye(2)), tmp_path / "x.npz")
    convert("x.npz", "y.npz", "--speakers", "utt2spk")
    assert read(tmp_path / "y.npz").speakers.tolist() == ["a", "b"]
    few = file("few", "ann a\nutt1 a\nbob b\n")
    assert "no speaker for test 'utt2'" in refused("dev.scores", "z.npz", "--speakers", few, "--to", "npz")
    assert "leave out --speakers" in refused("utt2spk", "z", "--speakers", "utt2spk")
    labelled = file("labelled.txt", "ann utt2 1.0 target\nann utt1 2.0 target\n")
    message = refused(labelled, "z.npz", "--speakers", "utt2spk", "--from", "wespeaker")
    assert "1 labels do not agree with the speaker map, first that of ('ann', 'utt2')" in message
    key = file("key", "ann utt1 nontarget\nann utt2 target\n")
    message = refused(labelled, "z.npz", "--key", key, "--from", "wespeaker")
    assert "1 labels do not agree with the key, first that of ('ann', 'utt1')" in message


def test_matrix_and_list(convert, refused, file, tmp_path):
    file("dev.scores", SCORES)
    convert("dev.scores", "m.npz", "--matrix")
    matrix = read(tmp_path / "m.npz")
    assert isinstance(matrix, ScoreMatrix)
    assert matrix.n_missing == 1
    convert("m.npz", "l.npz", "--list")
    assert isinstance(read(tmp_path / "l.npz"), TrialList)
    convert("m.npz", "same.npz")
    assert read(tmp_path / "same.npz") == matrix
    assert "only scores can become a matrix" in refused(file("utt2spk", "u1 a\nu2 b\n"), "z.npz", "--matrix")
    assert "it cannot become a score matrix" in refused(file("dev.trials", KEY), "z.npz", "--matrix")


def test_a_matrix_with_labels_is_wrong_use(cli, file):
    result = cli("convert", file("dev.scores", SCORES), "m.npz", "--matrix", "--key", file("dev.trials", KEY))
    assert result.exit_code == 2
    assert "a matrix holds no labels" in result.stderr


def test_several_inputs_become_one(convert, refused, file, tmp_path):
    head, tail = SCORES.split("bob")
    file("a.scores", head)
    file("b.scores", "bob" + tail)
    assert convert("a.scores", "b.scores", "-") == SCORES
    convert("b.scores", "b.npz", "--matrix")
    assert convert("a.scores", "b.npz", "-", "--to", "kaldi") == SCORES
    assert "('ann', 'utt1') is listed more than once" in refused("a.scores", "a.scores", "out.npz")
    file("u1", "x ann\ny ann\n")
    file("u2", "z bob\n")
    assert convert("u1", "u2", "-", "--from", "utt2spk", "--to", "utt2spk") == "x ann\ny ann\nz bob\n"
    file("u3", "x eve\n")
    assert "'x' has two speakers, 'ann' and 'eve'" in refused("u1", "u3", "out", "--from", "utt2spk")
    assert "some of the files have scores" in refused("a.scores", file("k", "eve utt1 target\n"), "out.npz")
    write(Embeddings(["u"], [[1.0]]), tmp_path / "x.npz")
    assert "different kinds of things" in refused("a.scores", "x.npz", "out.npz")
    write(Embeddings(["v"], [[2.0]]), tmp_path / "y.npz")
    convert("x.npz", "y.npz", "xy.npz")
    assert read(tmp_path / "xy.npz").ids.tolist() == ["u", "v"]


def test_options_of_the_readers(convert, refused, file):
    file("nan.scores", "ann utt1 4.2\nann utt2 nan\n")
    assert refused("nan.scores", "out.npz").startswith("error: nan.scores:2: ")
    assert convert("nan.scores", "-", "--missing", "skip") == "ann utt1 4.2\n"
    file("twice.scores", "ann utt1 4.2\nann utt2 1.0\nann utt1 4.2\n")
    assert refused("twice.scores", "out.npz").startswith("error: twice.scores:3: ")
    assert convert("twice.scores", "-", "--duplicates", "drop") == "ann utt1 4.2\nann utt2 1.0\n"
    file("two.csv", "enroll,test,cosine,plda\nann,utt1,0.5,4.2\n")
    assert convert("two.csv", "-", "--to", "kaldi", "--score-column", "plda") == "ann utt1 4.2\n"


def test_an_output_over_its_input(convert, file, tmp_path):
    convert(file("dev.scores", SCORES), "dev.scores", "--to", "csv")
    assert (tmp_path / "dev.scores").read_text().startswith("enroll,test,score\n")


def test_formats_that_cannot_hold_the_table_are_refused(refused, file):
    file("dev.scores", SCORES)
    assert refused("dev.scores", "out.ark", "--to", "kaldi-ark").startswith("error: out.ark: ")
    assert refused("dev.scores", "out.scores", "--to", "sidekit").startswith("error: ")
    assert "there is no format 'nonsense'" in refused("dev.scores", "out", "--to", "nonsense")
