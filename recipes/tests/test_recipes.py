"""The recipes in a small form: the recognizer against loops over frames, the experiment on made-up speech."""

import json

import numpy as np
import pytest
from scipy.stats import norm

from evenscore import FileError, InputError, LabelledBlocks, ScoreModel, simulate
from recipes import choose_cohort, corpora, paper, theory
from recipes.recognizer import Recognizer, _channel_factors, _class_offsets, fit_mixture, train_recognizer

VOWELS = {"a": (750, 1200), "e": (500, 1900), "i": (300, 2300), "o": (500, 900), "u": (320, 750)}
RATE = 16_000


def utterance(speaker, phrase, take):
    """Return harmonics of a speaker's pitch, shaped by the formants of a phrase's vowels; takes differ a little."""
    voice, chance = np.random.default_rng(1000 + speaker), np.random.default_rng([speaker, *phrase.encode(), take])
    pitch, tract = voice.uniform(90, 260) * chance.normal(1.0, 0.02), voice.uniform(0.85, 1.2)
    time, parts = np.arange(RATE // 5) / RATE, []
    for vowel in phrase:
        sound = np.zeros(len(time))
        for frequency in np.arange(pitch, RATE / 4, pitch):
            gain = sum(1 / (1 + ((frequency - formant * tract) / 120) ** 2) for formant in VOWELS[vowel])
            sound += gain * np.sin(2 * np.pi * frequency * time + chance.uniform(0, 6.28))
        parts.append(sound)
    speech = np.pad(np.concatenate(parts), RATE // 10)
    return 0.3 * speech / np.abs(speech).max() + 1e-4 * chance.standard_normal(len(speech))


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Write takes of 24 speakers, and their list."""
    soundfile = pytest.importorskip("soundfile", reason="speech needs evenscore[speech]")
    pytest.importorskip("kaldi_native_fbank", reason="speech needs evenscore[speech]")
    folder = tmp_path_factory.mktemp("speech")
    lines = ["speaker,gender,phrase,session,path"]
    for speaker in range(24):
        gender = "f" if speaker % 2 else "m"
        for phrase in ("aio", "eua"):
            for take in range(3):
                name = f"{speaker}_{phrase}_{take}.wav"
                soundfile.write(folder / name, utterance(speaker, phrase, take), RATE)
                lines.append(f"{gender}{speaker},{gender},{phrase},{take},{name}")
    (folder / "list.csv").write_text("\n".join(lines) + "\n")
    return folder / "list.csv"


def test_paper_from_recordings_to_tables(manifest, tmp_path, capsys):
    arguments = ["--corpus", "manifest", "--root", str(manifest), "--enroll", "0", "-o", str(tmp_path)]
    small = ["--gaussians", "4", "--rank", "2", "--splits", "1", "--shift", "noise:20", "--jobs", "1"]
    assert paper.main([*arguments, *small]) == 0
    assert "| raw |" in capsys.readouterr().out
    found = json.loads((tmp_path / "results.json").read_text())["splits"][0]
    clean, noisy = (found["joint"]["figures"][shift]["pooled"]["raw"]["eer"] for shift in ("clean", "noise:20"))
    assert 0 <= clean < 0.4
    assert clean < noisy
    assert (tmp_path / "det_pooled.svg").stat().st_size > 1000


def test_a_line_of_a_manifest_that_cannot_be_used_is_named(tmp_path):
    path = tmp_path / "list.csv"
    path.write_text("speaker,gender,phrase,session,path\nann,f,one,1,a.wav\nbob,x,one,1,b.wav\n")
    with pytest.raises(FileError, match=r"list\.csv:3"):
        corpora.read_corpus("manifest", path, ["1"])


def test_rsr2015_has_its_usual_sets(tmp_path):
    for name in ("m001", "m051", "m157", "f047", "f048", "f143"):
        for session in ("01", "02"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / f"{name}_{session}_001.sph").touch()
    split = corpora.read_corpus("rsr2015", tmp_path).split
    assert split == corpora.Split(("f047", "m001"), ("f048", "m051"), ("f143", "m157"))


def test_statistics_frame_by_frame():
    rng = np.random.default_rng(0)
    mixture = fit_mixture(rng.normal(size=(200, 3)) + rng.integers(0, 2, (200, 1)) * 4, 3)
    recordings = [rng.normal(size=(length, 3)) for length in (5, 1, 9)]
    n, f = mixture.statistics(recordings)
    for r, frames in enumerate(recordings):
        shares = np.array(
            [
                mixture.weights * norm.pdf(frame, mixture.means, np.sqrt(mixture.variances)).prod(axis=1)
                for frame in frames
            ]
        )
        shares /= shares.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(n[r], shares.sum(axis=0), rtol=1e-5)
        offsets = (frames[:, None] - mixture.means) / np.sqrt(mixture.variances)
        np.testing.assert_allclose(f[r], (shares[:, :, None] * offsets).sum(axis=0), rtol=1e-4, atol=1e-5)


def test_em_of_the_mixture_never_lowers_the_likelihood():
    frames = np.random.default_rng(1).normal(size=(300, 2)) ** 3
    found = [fit_mixture(frames, 4, iterations=count).posteriors(frames)[1].sum() for count in range(1, 8)]
    assert min(np.diff(found)) > -1e-8


def test_channel_factors_and_offsets_with_all_matrices_written_out():
    rng = np.random.default_rng(2)
    n, f, loadings = rng.uniform(0.1, 5, (4, 3)), rng.normal(size=(4, 3, 2)), rng.normal(size=(3, 2, 2))
    stacked, found = loadings.reshape(6, 2), _channel_factors(n, f, loadings)[0]
    for r in range(4):
        precision = np.eye(2) + stacked.T @ np.diag(np.repeat(n[r], 2)) @ stacked
        np.testing.assert_allclose(found[r], np.linalg.solve(precision, stacked.T @ f[r].ravel()))
    classes = np.array([0, 1, 0, 1])
    offsets = _class_offsets(n, f, classes, 8.0)
    expected = (f[0] + f[2]) / (n[0] + n[2] + 8.0)[:, None]
    np.testing.assert_allclose(offsets[0], expected)


def test_eigenchannels_take_off_what_differs_between_takes():
    rng = np.random.default_rng(3)
    channel = rng.normal(size=4)
    frames, classes = [], []
    for speaker in range(8):
        voice = rng.normal(size=4)
        for _ in range(4):
            frames.append(voice + 2 * rng.normal() * channel + rng.normal(size=(60, 4)))
            classes.append(speaker)
    found = train_recognizer(frames, np.array(classes), n_gaussians=2, rank=1)
    plain = Recognizer(found.mixture, np.zeros((2, 4, 0), np.float32))

    def separation(recognizer):
        scores = recognizer.enroll(frames[::4], np.arange(8)) @ recognizer.test(frames[1::4]).T
        own = np.diag(scores)
        return (own.mean() - scores[~np.eye(8, dtype=bool)].mean()) / scores[~np.eye(8, dtype=bool)].std()

    assert separation(found) > separation(plain)


def test_no_norm_gains_on_ideal_scores_and_s_norm_gains_where_sessions_shift():
    ideal = theory.cllr_of_norms(theory.BREAKS["noise"](0, 1), 1, 30, 40)
    assert ideal["raw"] < min(ideal[name] for name in ("Z", "T", "ZT", "S", "AS"))
    shifted = theory.cllr_of_norms(theory.BREAKS["shift"](4, 1), 1, 30, 40)
    assert shifted["truth"] < shifted["S"] < shifted["raw"]


def test_theory_names_an_unknown_break(capsys):
    assert theory.main(["--breaks", "luck"]) == 2
    assert "luck" in capsys.readouterr().err


def test_a_cohort_of_three_speakers_is_worse_than_all():
    truth = ScoreModel(mu=[0.0, 3.0], alpha=[[1.0], [1.0]], beta=[[0.8], [0.8]], sigma2=[1.0, 1.0])
    people = [f"s{n // 2}" for n in range(40)]
    training = LabelledBlocks.own_cohort(*simulate(truth, people, people, seed=1))
    best, worst = choose_cohort.choose_cohort(training, sizes=[3, None], replicates=50)
    assert (best.name, worst.name) == ("all", "3 speakers")
    assert best.cllr < worst.cllr
    assert worst.difference[0] > 0


def test_a_corpus_without_speech_is_refused(tmp_path):
    with pytest.raises(InputError, match="no recordings"):
        corpora.read_corpus("rsr2015", tmp_path)
