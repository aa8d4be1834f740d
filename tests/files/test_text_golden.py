"""Hand-written files, one per format, and exactly what is in them.

The lines follow the published formats: Kaldi, wespeaker (cosine scores, after AS-norm, for its
calibration), SpeechBrain, 3D-Speaker,
ESPnet, NIST SRE18/SRE21, Bob's four columns, ASVspoof5, VoxCeleb.
"""

from pathlib import Path

import numpy as np
import pytest

from evenscore import TrialList, read, read_scores, read_speakers, read_trials
from evenscore.files import sniff

GOLDEN = Path(__file__).parent / "golden"

PAIRS = (["spk1", "spk1", "spk2"], ["utt1", "utt2", "utt1"])
SCORES = [2.5, -0.75, 0.001]
LABELS = [1, 0, 0]
NORM = {
    "mag_e": [0.3102, 0.3102, 0.2801],
    "mag_t": [0.2977, 0.3055, 0.2977],
    "mu_e": [0.0121, 0.0121, -0.0065],
    "mu_t": [-0.0034, 0.0002, -0.0034],
}


def trials(*, scores=None, labels=None, measures=None):
    return TrialList.from_pairs(*PAIRS, scores=scores, labels=labels, measures=measures)


FACTORS = {
    "min:dur": [2.5, 3.0, 2.5],
    "max:dur": [3.0, 6.0, 4.0],
    "diff:dur": [0.5, 3.0, 1.5],
    "ratio:dur": [1.2, 2.0, 1.6],
    "min:mag": [0.2977, 0.3055, 0.2801],
    "max:mag": [0.3102, 0.3102, 0.2977],
    "diff:mag": [0.0125, 0.0047, 0.0176],
    "ratio:mag": [1.042, 1.0154, 1.0628],
    "min:mu": [0.0034, 0.0002, 0.0034],
    "max:mu": [0.0121, 0.0121, 0.0065],
    "diff:mu": [0.0087, 0.0119, 0.0031],
    "ratio:mu": [3.5588, 60.5, 1.9118],
}

EXPECTED = {
    "kaldi.scores": ("kaldi", trials(scores=SCORES)),
    "kaldi_bom_crlf.scores": ("kaldi", trials(scores=SCORES)),
    "kaldi.trials": ("kaldi", trials(labels=LABELS)),
    "kaldi.list": ("kaldi", trials()),
    "bosaris_text.trials": ("kaldi", trials(labels=LABELS)),
    "wespeaker.scores": ("wespeaker", trials(scores=SCORES, labels=LABELS)),
    "wespeaker_norm.scores": ("wespeaker", trials(scores=SCORES, labels=LABELS, measures=NORM)),
    "wespeaker_factors.scores": ("wespeaker-factors", trials(scores=SCORES, labels=LABELS, measures=FACTORS)),
    "speechbrain.scores": ("speechbrain", trials(scores=SCORES, labels=LABELS)),
    "3dspeaker.scores": ("speechbrain", trials(scores=SCORES, labels=LABELS)),
    "espnet.scores": ("espnet", trials(scores=SCORES, labels=LABELS)),
    "nist_sre18.tsv": ("nist", trials(scores=SCORES)),
    "nist_sre21.tsv": ("nist", trials(scores=SCORES)),
    "nist_key.tsv": ("nist", trials(labels=LABELS)),
    "bob.scores": ("bob", trials(scores=SCORES, labels=LABELS)),
    "asvspoof5.tsv": ("asvspoof5", trials(scores=SCORES, measures={"cm-score": [0.25, 0.5, np.nan]})),
    "table.csv": ("csv", trials(scores=SCORES, labels=[1, 0, -1], measures={"duration": [3.25, np.nan, 1.5]})),
    "table.tsv": ("tsv", trials(scores=SCORES, labels=LABELS)),
    "voxceleb.trials": (
        "voxceleb",
        TrialList.from_pairs(
            ["id1/v1/1.wav", "id1/v1/1.wav", "id3/v4/2.wav"],
            ["id1/v2/1.wav", "id2/v9/7.wav", "id1/v2/1.wav"],
            labels=LABELS,
        ),
    ),
    "windows.scores": (
        "kaldi",
        TrialList.from_pairs([r"C:\data\ann.wav"] * 2, [r"D:\eval\a:1.wav", r"D:\eval\b.wav"], scores=[2.5, -0.75]),
    ),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_golden_file_is_recognized_and_read(name):
    format, table = EXPECTED[name]
    assert sniff(GOLDEN / name).name == format
    assert read(GOLDEN / name) == table
    assert read(GOLDEN / name, format=format) == table


def test_zeros_and_ones_in_the_third_column_are_what_the_reader_asks_for():
    path = GOLDEN / "wespeaker.trials"
    assert read(path, format="wespeaker") == read_trials(path) == trials(labels=LABELS)
    assert read(path, format="kaldi") == read_scores(path) == trials(scores=[1.0, 0.0, 0.0])


def test_the_score_of_asvspoof5_can_be_chosen():
    table = read(GOLDEN / "asvspoof5.tsv", score_column="cm-score", missing="skip")
    assert table == TrialList.from_pairs(
        ["spk1", "spk1"], ["utt1", "utt2"], scores=[0.25, 0.5], measures={"sasv-score": [2.5, -0.75]}
    ), table


def test_a_key_with_scores_is_a_key():
    assert read_trials(GOLDEN / "wespeaker.scores").labels.tolist() == LABELS


@pytest.mark.parametrize("name", ["utt2spk", "spk2utt"])
def test_speaker_maps(name):
    expected = {"ann-1": "ann", "ann-2": "ann", "bob-1": "bob"}
    assert sniff(GOLDEN / name).name == name
    assert read_speakers(GOLDEN / name) == read(GOLDEN / name) == expected


def test_the_second_channel_of_a_recording_is_another_test(tmp_path):
    path = tmp_path / "sre10.tsv"
    path.write_text("modelid\tsegmentid\tside\tLLR\nm1\tseg\ta\t1\nm1\tseg\tb\t2\n")
    assert read(path) == TrialList.from_pairs(["m1", "m1"], ["seg", "seg:b"], scores=[1.0, 2.0])
