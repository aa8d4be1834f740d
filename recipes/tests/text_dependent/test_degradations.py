"""Degradations do what they say, and the same to the same recording."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError
from recipes.tests.synthetic_speech import utterance
from recipes.text_dependent import AdditiveNoise, Codec, TelephoneBand
from recipes.text_dependent.degradations import made_from, with_background

SPEECH = utterance(1, "aio", 0)
ALL = [TelephoneBand(), AdditiveNoise(10.0), *(Codec(kind) for kind in ("mu-law", "a-law", "gsm", "opus"))]


def power(samples):
    return np.mean(samples**2)


def share(samples, low, high):
    """Return the share of power between two frequencies."""
    spectrum = np.abs(np.fft.rfft(samples)) ** 2
    frequency = np.fft.rfftfreq(len(samples), 1 / 16000)
    return spectrum[(frequency >= low) & (frequency < high)].sum() / spectrum.sum()


@given(st.floats(-10, 40), st.integers(0, 3))
def test_noise_has_the_stated_ratio(snr_db, seed):
    noise = AdditiveNoise(snr_db, seed=seed).apply(SPEECH, "a") - SPEECH
    assert 10 * np.log10(power(SPEECH) / power(noise)) == pytest.approx(snr_db, abs=1e-6)


@pytest.mark.parametrize("kind", ["speech-shaped", "babble"])
def test_noise_is_made_from_background_speech(corpus, kind):
    noisy = with_background(AdditiveNoise(5.0, kind), corpus.of(corpus.speakers[:3]))
    assert noisy.sources
    assert set(noisy.sources) <= {str(one.path) for one in corpus.of(corpus.speakers[:3])}
    noise = noisy.apply(SPEECH, "a") - SPEECH
    assert 10 * np.log10(power(SPEECH) / power(noise)) == pytest.approx(5.0, abs=1e-6)
    assert share(noise, 0, 3000) > 0.9  # as the made-up speech, where white noise has 3/8
    assert with_background(noisy, corpus.recordings) is noisy
    with pytest.raises(InputError, match="made from background speech"):
        AdditiveNoise(5.0, kind).apply(SPEECH, "a")
    with pytest.raises(InputError, match="made from background speech, but there is none"):
        with_background(AdditiveNoise(5.0, kind), [])


def test_other_recordings_and_seeds_get_other_noise():
    noisy = AdditiveNoise(10.0)
    assert np.array_equal(noisy.apply(SPEECH, "a"), noisy.apply(SPEECH, "a"))
    assert not np.allclose(noisy.apply(SPEECH, "a"), noisy.apply(SPEECH, "b"))
    assert not np.allclose(noisy.apply(SPEECH, "a"), AdditiveNoise(10.0, seed=1).apply(SPEECH, "a"))


def test_the_telephone_lets_its_band_through():
    noise = np.random.default_rng(1).normal(size=64000)
    heard = TelephoneBand().apply(noise, "a")
    assert share(heard, 300, 3400) > 0.98
    assert power(heard) == pytest.approx(3100 / 8000, rel=0.1)  # the band's share of white noise
    inside = np.sin(2 * np.pi * 1000 * np.arange(16000) / 16000)
    assert power(TelephoneBand().apply(inside, "a")[2000:-2000]) == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize("degradation", ALL, ids=lambda one: one.name)
def test_length_stays_and_nothing_is_left_to_chance(degradation):
    spoilt = degradation.apply(SPEECH, "a")
    assert spoilt.shape == SPEECH.shape
    assert np.isfinite(spoilt).all()
    assert np.array_equal(spoilt, degradation.apply(SPEECH, "a"))
    assert not np.allclose(spoilt, SPEECH, atol=1e-3)
    assert len(degradation.apply(SPEECH[:400], "a")) == 400


@pytest.mark.parametrize(("kind", "least_db"), [("mu-law", 20.0), ("a-law", 20.0), ("gsm", 3.0)])
def test_codecs_keep_the_speech(kind, least_db):
    band = SPEECH - np.mean(SPEECH)
    coded = Codec(kind).apply(band, "a")
    assert 10 * np.log10(power(band) / power(coded - band)) > least_db


def test_loud_sums_are_not_clipped_by_codecs():
    loud = 10.0 * SPEECH
    assert power(loud) / power(Codec("mu-law").apply(loud, "a") - loud) > 100.0


def test_silence_stays_silence():
    assert AdditiveNoise(0.0).apply(np.zeros(1000), "a").tolist() == [0.0] * 1000


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AdditiveNoise(float("nan")),
        lambda: AdditiveNoise(1.0, "pink"),
        lambda: Codec("mp3"),
        lambda: TelephoneBand(3000.0, 300.0),
    ],
)
def test_wrong_settings_are_refused(wrong):
    with pytest.raises(InputError):
        wrong()


def test_each_has_its_own_key():
    keys = [made_from(one) for one in (None, *ALL, AdditiveNoise(10.0, seed=1), TelephoneBand(200.0))]
    assert len({str(key) for key in keys}) == len(keys)


@dataclass(frozen=True)
class Chain:
    parts: tuple


def test_what_is_made_of_others_has_their_keys():
    assert made_from(Chain((TelephoneBand(), Codec("gsm")))) == {
        "kind of": "Chain",
        "parts": [
            {"kind of": "TelephoneBand", "low_hz": 300.0, "high_hz": 3400.0},
            {"kind of": "Codec", "kind": "gsm"},
        ],
    }
