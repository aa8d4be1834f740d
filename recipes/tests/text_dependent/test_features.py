"""Features: right numbers, any kind of file, the same from a cache and from several processes."""

import os
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from hypothesis import given, strategies as st

from evenscore import EvenscoreError, FileError, InputError
from recipes.tests.reference.naive_recognizer import deltas as naive_deltas
from recipes.tests.synthetic_speech import utterance
from recipes.text_dependent import AdditiveNoise, FeatureOptions, Recording, extract_features
from recipes.text_dependent.audio import read_audio
from recipes.text_dependent.features import deltas, features, mfcc, normalized, speech_frames

SMALL = FeatureOptions(n_ceps=5, n_mels=10, delta_orders=1)


def recording(path, speaker="ann"):
    return Recording(speaker, "f", "hi", path.stem, path)


@given(st.integers(1, 12), st.integers(0, 100))
def test_deltas_are_slopes_of_five_frames(length, seed):
    values = np.random.default_rng(seed).normal(size=(length, 2))
    assert deltas(values) == pytest.approx(naive_deltas(values), abs=1e-12)


def test_frames_of_speech_are_those_near_the_loudest():
    loud = np.log(1e9)
    energy = np.array([loud, loud - 2.2, loud - 2.4, loud - 20])  # 10 dB are 2.303
    assert speech_frames(energy, 10.0).tolist() == [True, True, False, False]
    assert not speech_frames(np.full(4, 1.0), 10.0).any()  # quieter than 16 bits can say
    assert speech_frames(np.zeros(0), 10.0).shape == (0,)


@pytest.mark.parametrize("how", ["none", "mean", "mean-variance"])
def test_features_are_normalized_over_speech(how):
    frames = np.random.default_rng(1).normal(3.0, 2.0, size=(50, 4))
    frames[:, 3] = 7.0
    found = normalized(frames, how)
    if how == "none":
        assert found is frames
    else:
        assert found.mean(axis=0) == pytest.approx(0, abs=1e-12)
        assert found[:, :3].std(axis=0) == pytest.approx(
            1.0 if how == "mean-variance" else frames[:, :3].std(axis=0), rel=1e-9
        )


def test_silence_around_the_speech_is_left_out():
    sound = utterance(1, "aio", 0)
    options = FeatureOptions()
    found = features(sound, options)
    assert found.dtype == np.float32
    assert found.shape[1] == options.dimension == 40
    assert 55 <= len(found) <= 66  # 0.6 of 0.8 seconds
    assert len(mfcc(sound, options)) == 78
    padded = np.concatenate([np.zeros(16000), sound, np.zeros(16000)])
    assert len(features(padded, options)) == pytest.approx(len(found), abs=2)


def test_energy_is_the_first_coefficient():
    sound = utterance(1, "aio", 0)
    louder = mfcc(2.0 * sound, SMALL) - mfcc(sound, SMALL)
    assert louder[:, 0] == pytest.approx(np.log(4.0), abs=1e-3)
    assert louder[:, 1:] == pytest.approx(0, abs=1e-2)


@pytest.mark.parametrize("kind", [("wav", 8000), ("wav", 48000), ("flac", 44100), ("wav", 16000)])
def test_any_rate_is_read_at_16_khz(tmp_path, kind):
    suffix, rate = kind
    time = np.arange(rate) / rate
    path = tmp_path / f"tone.{suffix}"
    soundfile.write(path, 0.5 * np.sin(2 * np.pi * 1000 * time), rate)
    found = read_audio(path)
    assert len(found) == 16000
    expected = 0.5 * np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    assert found[500:-500] == pytest.approx(expected[500:-500], abs=5e-3)


def test_channels_are_averaged(tmp_path):
    left, right = utterance(1, "aio", 0), utterance(2, "aio", 0)
    soundfile.write(tmp_path / "two.wav", np.stack([left, right], axis=1), 16000, subtype="DOUBLE")
    assert read_audio(tmp_path / "two.wav") == pytest.approx((left + right) / 2)


def sphere(path, sound, coding="pcm"):
    """Write a SPHERE file by hand: a header of 1024 bytes of text, then the samples, low byte first."""
    facts = {"sample_count": ("-i", len(sound)), "sample_rate": ("-i", 16000), "channel_count": ("-i", 1)}
    facts |= {"sample_n_bytes": ("-i", 2), "sample_byte_format": ("-s2", "01")}
    facts |= {"sample_coding": (f"-s{len(coding)}", coding)}
    lines = ["NIST_1A", "   1024", *(f"{name} {kind} {value}" for name, (kind, value) in facts.items()), "end_head", ""]
    path.write_bytes("\n".join(lines).encode().ljust(1024) + (sound * 32767).astype("<i2").tobytes())


def test_sphere_files_are_read(tmp_path):
    sound = utterance(1, "aio", 0)
    sphere(tmp_path / "a.sph", sound)
    assert read_audio(tmp_path / "a.sph") == pytest.approx(sound, abs=1e-4)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for sph2pipe is a shell script")
def test_compressed_sphere_files_are_unpacked_by_sph2pipe(tmp_path, monkeypatch):
    sound = utterance(1, "aio", 0)
    sphere(tmp_path / "a.sph", sound, coding="pcm,embedded-shorten-v2.00")
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    for _ in range(2):  # the cache does not remember it
        with pytest.raises(EvenscoreError, match=r"a.sph is a compressed SPHERE file; install sph2pipe"):
            extract_features([recording(tmp_path / "a.sph")], SMALL, skip_unreadable=True, cache=tmp_path / "cache")
    soundfile.write(tmp_path / "unpacked.wav", sound, 16000)
    program = programs / "sph2pipe"
    program.write_text(f'#!/bin/sh\n[ "$*" = "-p -f wav {tmp_path}/a.sph" ] && exec /bin/cat {tmp_path}/unpacked.wav\n')
    program.chmod(0o755)
    assert read_audio(tmp_path / "a.sph") == pytest.approx(sound, abs=1e-4)
    program.write_text("#!/bin/sh\necho first >&2\necho no samples >&2\nexit 1\n")
    with pytest.raises(FileError, match=r"sph2pipe cannot unpack it \(no samples\); copy the file again"):
        read_audio(tmp_path / "a.sph")


def damaged(folder):
    """Return files that cannot be used, and what is said about each."""
    sound = utterance(1, "aio", 0)
    soundfile.write(folder / "whole.flac", sound, 16000)
    data = (folder / "whole.flac").read_bytes()
    (folder / "cut.flac").write_bytes(data[: len(data) // 2])
    (folder / "text.wav").write_text("no sound")
    (folder / "empty.wav").write_bytes(b"")
    soundfile.write(folder / "nothing.wav", np.zeros(0), 16000)
    soundfile.write(folder / "silent.wav", np.zeros(16000), 16000)
    soundfile.write(folder / "short.wav", sound[2000:2500], 16000)
    soundfile.write(folder / "nan.wav", np.full(16000, np.nan), 16000, subtype="FLOAT")
    return {
        "cut.flac": "cut off|cannot be read as audio",
        "text.wav": "cannot be read as audio",
        "empty.wav": "cannot be read as audio",
        "nothing.wav": "no sound in it",
        "silent.wav": "there are 0 frames of speech in it",
        "short.wav": "there are 1 frames of speech in it, but at least 10 are needed",
        "nan.wav": "not finite",
        "absent.wav": "there is no such file",
    }


def test_files_that_cannot_be_used_are_named(tmp_path):
    for name, problem in damaged(tmp_path).items():
        with pytest.raises(FileError, match=problem) as caught:
            extract_features([recording(tmp_path / name)], SMALL)
        assert caught.value.path == str(tmp_path / name)


def test_files_that_cannot_be_used_are_skipped_on_request(tmp_path):
    problems = damaged(tmp_path)
    recordings = [recording(tmp_path / name) for name in (*problems, "whole.flac")]
    for _ in range(2):  # computed, then from the cache
        found = extract_features(recordings, SMALL, skip_unreadable=True, cache=tmp_path / "cache")
        assert [one.path.name for one in found.frames] == ["whole.flac"]
        assert {one.path.name for one in found.skipped} == set(problems)
    with pytest.raises(FileError, match="no such file"):
        extract_features(recordings, SMALL, cache=tmp_path / "cache")


def same(one, other):
    assert list(one.frames) == list(other.frames)
    for key in one.frames:
        np.testing.assert_array_equal(one.frames[key], other.frames[key])


@pytest.mark.parametrize("degradation", [None, AdditiveNoise(10.0)], ids=["clean", "noisy"])
def test_the_cache_changes_nothing(corpus, tmp_path, degradation):
    recordings = corpus.recordings[:24]
    plain = extract_features(recordings, SMALL, degradation=degradation)
    for _ in range(2):
        same(extract_features(recordings[::-1], SMALL, degradation=degradation, cache=tmp_path), plain)


def test_processes_change_nothing(corpus, tmp_path):
    recordings = corpus.recordings[:24]
    extract_features(recordings[8:16], SMALL, cache=tmp_path)  # one of three speakers is in the cache
    steps = []
    found = extract_features(
        recordings, SMALL, cache=tmp_path, jobs=2, progress=lambda stage, done: steps.append((stage, done))
    )
    same(found, extract_features(recordings, SMALL))
    assert steps == [("features", 1 / 3), ("features", 2 / 3), ("features", 1.0)]


def test_the_cache_notices_other_files_settings_and_damage(tmp_path):
    path = tmp_path / "a.wav"
    cache = tmp_path / "cache"
    soundfile.write(path, utterance(1, "aio", 0), 16000)
    first = extract_features([recording(path)], SMALL, cache=cache)
    extract_features([recording(path)], replace(SMALL, normalize="none"), cache=cache)
    extract_features([recording(path)], SMALL, degradation=AdditiveNoise(10.0), cache=cache)
    assert len(list(cache.iterdir())) == 3
    for file in cache.iterdir():
        file.write_bytes(file.read_bytes()[:100])
    same(extract_features([recording(path)], SMALL, cache=cache), first)
    soundfile.write(path, utterance(2, "aio", 0)[:-1], 16000)
    other = extract_features([recording(path)], SMALL, cache=cache)
    assert not np.array_equal(other.frames[recording(path)], first.frames[recording(path)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_ceps": 30},
        {"high_hz": 9000.0},
        {"delta_orders": 3},
        {"normalize": "median"},
        {"min_frames": 0},
        {"speech_db": -1.0},
    ],
)
def test_options_are_checked(wrong):
    with pytest.raises(InputError):
        FeatureOptions(**wrong)
