"""The corpus under RSR2015's names has its tree, and voices that a recognizer can tell apart."""

import os

import numpy as np
import pytest
import soundfile

from evenscore import InputError, TrialList, eer
from in_process import run_app
from recipes.rsr_like.command import APP
from recipes.rsr_like.digits import DigitSpeech
from recipes.rsr_like.synthesizer import Synthesizer
from recipes.rsr_like.tree import TreeOptions, make_tree
from recipes.text_dependent import RecognizerOptions, read_rsr2015, run_recognizer
from recipes.text_dependent.features import FeatureOptions, features

FIRST = {"m": ("m001", "m051", "m101"), "f": ("f001", "f048", "f095")}  # of background, development, evaluation


def test_the_tree_has_the_names_of_rsr2015(tree):
    names = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file()}
    speakers = [
        f"{first[0]}{int(first[1:]) + place:03d}" for firsts in FIRST.values() for first in firsts for place in range(4)
    ]
    sound = {
        f"sph/{'male' if who[0] == 'm' else 'female'}/{who}/{who}_{session:02d}_{phrase:03d}.sph"
        for who in speakers
        for session in range(1, 10)
        for phrase in (1, 2)
    }
    lists = {f"key/part1/trn/3sesspwd_{name}_{gender}.trn" for name in ("dev", "eval") for gender in "mf"}
    lists |= {f"key/part1/ndx/3sess-pwd_{name}_{gender}.ndx" for name in ("dev", "eval") for gender in "mf"}
    assert names == sound | lists
    facts = soundfile.info(tree / "sph" / "male" / "m101" / "m101_09_002.sph")
    assert (facts.format, facts.subtype, facts.samplerate, facts.channels) == ("NIST", "PCM_16", 16000, 1)


def test_lists_mark_speaker_and_phrase(tree):
    trn = (tree / "key" / "part1" / "trn" / "3sesspwd_eval_f.trn").read_text().splitlines()
    files = ",".join(f"female/f095/f095_{session}_001.sph" for session in ("01", "04", "07"))
    assert trn[0] == f"f095_001 {files}"
    assert len(trn) == 4 * 2
    ndx = (tree / "key" / "part1" / "ndx" / "3sess-pwd_eval_f.ndx").read_text().splitlines()
    assert len(ndx) == len(set(ndx))
    for line in ndx:
        model, file, *marks = line.split(",")
        own, right = model[:4] == file[:4], model[5:] == file[-7:-4]
        assert marks == ["NY"[mark] for mark in (own and right, own and not right, right and not own, False)]
        assert file[10:12] in ("02", "03", "05", "06", "08", "09")
    assert sum(",Y,N,N,N" in line for line in ndx) == 4 * 2 * 6  # speakers, phrases, tests
    assert sum(",N,N,Y,N" in line for line in ndx) == 4 * 2 * 6 * 3


def test_the_same_seed_says_the_same():
    said = Synthesizer(seed=3, seconds=0.5).utterance("f001", 2, 5)
    assert (said == Synthesizer(seed=3, seconds=0.5).utterance("f001", 2, 5)).all()
    others = [("f002", 2, 5), ("f001", 1, 5), ("f001", 2, 6)]
    for other in [Synthesizer(seed=3, seconds=0.5).utterance(*one) for one in others]:
        assert len(other) != len(said) or not np.allclose(other, said)


def test_sessions_of_one_device_sound_alike():
    source = Synthesizer(seconds=1.0)
    plain = FeatureOptions(normalize="none", delta_orders=0)

    def colour(session):
        return np.mean(
            [features(source.utterance("m001", phrase, session), plain)[:, 1:].mean(axis=0) for phrase in range(1, 5)],
            axis=0,
        )

    same = np.linalg.norm(colour(1) - colour(4)) + np.linalg.norm(colour(1) - colour(7))
    other = np.linalg.norm(colour(1) - colour(2)) + np.linalg.norm(colour(1) - colour(3))
    assert same < other


def test_a_recognizer_tells_the_voices_apart(tree):
    corpus = read_rsr2015(tree)
    scores = run_recognizer(corpus, options=RecognizerOptions(n_gaussians=8, rank=2))
    trials = TrialList.concat([part.labelled(part.blocks.trials) for part in scores.evaluation])
    assert eer(trials) < 0.25


def test_the_command_tells_what_it_made(tmp_path):
    out = tmp_path / "tree"
    result = run_app(APP, "-o", out, "--speakers", 2, "--phrases", 1, "--sessions", 2)
    assert result.exit_code == 0, result.stderr
    row = next(line for line in result.stdout.splitlines() if "evaluation, m" in line)
    assert row.split()[-4:] == ["2", "4", "2", "2"]  # speakers, recordings, target and non-target trials
    corpus = read_rsr2015(out)
    assert corpus.enroll_sessions == ("01",)
    assert len(corpus.recordings) == 2 * 3 * 2 * 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"--speakers": "1"}, "speakers is 1, but must be at least 2, as a trial has two"),
        ({"--phrases": "31"}, "phrases is 31, but must be from 1 to 30"),
        ({"--sessions": "1"}, "sessions is 1, but must be from 2 to 9, as the first one enrols"),
        ({"--audiomnist": "nowhere"}, "nowhere: there is no such directory; check the name"),
        ({"-o": "taken"}, "taken: a file of this name exists, but a directory is needed; choose another name"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(tmp_path, monkeypatch, change, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    options = {"-o": "out"} | change
    result = run_app(APP, *(part for pair in options.items() for part in pair))
    assert result.exit_code == 2
    assert result.stderr == f"error: {message}\n"


@pytest.fixture(scope="module")
def audiomnist():
    data = os.environ.get("EVENSCORE_DATA")
    if not data or not os.path.isdir(os.path.join(data, "audiomnist")):
        pytest.skip("AudioMNIST is not here: set EVENSCORE_DATA to a directory with audiomnist/")
    return os.path.join(data, "audiomnist")


def test_digits_of_audiomnist_play_rsr2015(audiomnist, tmp_path):
    source = DigitSpeech(audiomnist)
    assert (source.people("m"), source.people("f")) == (16, 4)
    sizes = make_tree(tmp_path, source, TreeOptions(speakers=5, phrases=1, sessions=2))
    assert [len(size.speakers) for size in sizes] == [4, 5] * 3
    corpus = read_rsr2015(tmp_path)
    assert corpus.split.development == ("f048", "f049", "f050", "f051", "m051", "m052", "m053", "m054", "m055")
    seconds = [soundfile.info(recording.path).duration for recording in corpus.recordings]
    assert 2.0 < np.median(seconds) < 4.5  # five digits
    players = {source._who(name) for size in sizes for name in size.speakers}
    assert len(players) == 27  # nobody plays two
    with pytest.raises(InputError, match="too few speakers to play f005; ask for at most 4"):
        source.utterance("f005", 1, 1)
    with pytest.raises(InputError, match="no take 13 of digit"):
        source.utterance("f001", 1, 13)
