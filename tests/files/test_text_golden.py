"""Lines as other programs write them: read with and without the name of the format."""

from pathlib import Path

import numpy as np
import pytest

from evenscore.errors import FileError
from evenscore.files import read, read_scores, read_trials

GOLDEN = Path(__file__).parent / "golden"
SCORES = [2.5, -0.75, 0.001]
KEY = [1, 0, 0]

FILES = {
    "kaldi.scores": ("kaldi", SCORES, None),
    "kaldi_bom_crlf.scores": ("kaldi", SCORES, None),
    "kaldi.trials": ("kaldi", None, KEY),
    "kaldi.list": ("kaldi", None, None),
    "bosaris_text.trials": ("kaldi", None, KEY),
    "wespeaker.scores": ("wespeaker", SCORES, KEY),
    "wespeaker_norm.scores": ("wespeaker", SCORES, KEY),
    "wespeaker_factors.scores": ("wespeaker-factors", SCORES, KEY),
    "3dspeaker.scores": ("speechbrain", SCORES, KEY),
    "speechbrain.scores": ("speechbrain", SCORES, KEY),
    "espnet.scores": ("espnet", SCORES, KEY),
    "bob.scores": ("bob", SCORES, KEY),
    "nist_sre18.tsv": ("nist", SCORES, None),
    "nist_sre21.tsv": ("nist", SCORES, None),
    "nist_key.tsv": ("nist", None, KEY),
    "asvspoof5.tsv": ("asvspoof5", SCORES, None),
    "table.csv": ("csv", SCORES, [1, 0, -1]),
    "table.tsv": ("tsv", SCORES, KEY),
}


def same(values, expected):
    return values is None if expected is None else np.array_equal(values, expected)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("named", [False, True])
def test_lines_of_other_programs(name, named):
    format, scores, labels = FILES[name]
    trials = read(GOLDEN / name, format=format if named else None)
    assert [trials.pair(i) for i in range(3)] == [("spk1", "utt1"), ("spk1", "utt2"), ("spk2", "utt1")]
    assert same(trials.scores, scores)
    assert same(trials.labels, labels)


def test_further_columns_are_read():
    assert {*read(GOLDEN / "wespeaker_norm.scores").columns} == {"mag_e", "mag_t", "mu_e", "mu_t"}
    factors = read(GOLDEN / "wespeaker_factors.scores").columns
    assert len(factors) == 12
    np.testing.assert_array_equal(factors["max:dur"], [3, 6, 4])
    np.testing.assert_array_equal(read(GOLDEN / "table.csv").columns["duration"], [3.25, np.nan, 1.5])
    chosen = read_scores(GOLDEN / "asvspoof5.tsv", score_column="cm-score", missing="skip")
    np.testing.assert_array_equal(chosen.scores, [0.25, 0.5])


def test_labels_of_zero_and_one_are_labels_of_a_key_and_scores_of_a_score_file():
    path = GOLDEN / "wespeaker.trials"
    assert read_trials(path).labels.tolist() == KEY
    assert read_scores(path).scores.tolist() == KEY
    with pytest.raises(FileError, match="kaldi or wespeaker"):
        read(path)


def test_paths_are_ids():
    assert read(GOLDEN / "windows.scores").enroll_ids.tolist() == ["C:\\data\\ann.wav"]
    voxceleb = read(GOLDEN / "voxceleb.trials")
    assert voxceleb.pair(2) == ("id3/v4/2.wav", "id1/v2/1.wav")
    assert voxceleb.labels.tolist() == KEY


def test_channels_of_a_recording_are_tests_of_their_own(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("modelid\tsegmentid\tside\tLLR\nm\ts\ta\t1\nm\ts\tb\t2\nm\ts\tA\t3\n")
    with pytest.raises(FileError, match=":4"):
        read(path)
    path.write_text("modelid\tsegmentid\tside\tLLR\nm\ts\ta\t1\nm\ts\tb\t2\n")
    assert read(path).test_ids.tolist() == ["s", "s:b"]
