"""Speech-like sounds: harmonics of a speaker's pitch, shaped by the formants of a phrase's vowels."""

import numpy as np
import soundfile

from recipes.text_dependent import Corpus, Recording

VOWELS = {"a": (750, 1200), "e": (500, 1900), "i": (300, 2300), "o": (500, 900), "u": (320, 750)}
PHRASES = {"aio": "aio", "eua": "eua"}


def utterance(speaker, phrase, session, rate=16000, seconds=0.6):
    """Sound of one take: each speaker has a pitch and a length of vocal tract, each take differs a little."""
    voice = np.random.default_rng(1000 + speaker)
    pitch, tract, tilt = voice.uniform(90, 260), voice.uniform(0.85, 1.2), voice.uniform(0.5, 1.5)
    take = np.random.default_rng([speaker, *phrase.encode(), session])
    pitch *= take.normal(1.0, 0.02)
    each = int(rate * seconds / len(phrase))
    parts = []
    for vowel in phrase:
        time = np.arange(each) / rate
        sound = np.zeros(each)
        for harmonic in range(1, int(rate / 4 / pitch)):
            frequency = harmonic * pitch
            gain = sum(
                1.0 / (1.0 + ((frequency - formant * tract * take.normal(1, 0.01)) / 120) ** 2)
                for formant in VOWELS[vowel]
            )
            sound += gain * harmonic**-tilt * np.sin(2 * np.pi * frequency * time + take.uniform(0, 6.28))
        parts.append(sound)
    speech = np.concatenate(parts)
    speech *= 0.3 / np.abs(speech).max()
    silence = np.zeros(int(0.1 * rate))
    return np.concatenate([silence, speech, silence]) + 1e-4 * take.standard_normal(len(speech) + 2 * len(silence))


def make_corpus(folder, speakers=12, takes=4, rate=16000):
    """Write takes of all phrases as wav; every third speaker is called female, two takes enrol."""
    recordings = []
    for speaker in range(speakers):
        gender = "f" if speaker % 3 == 0 else "m"
        for phrase in PHRASES:
            for take in range(takes):
                path = folder / f"{speaker}_{phrase}_{take}.wav"
                soundfile.write(path, utterance(speaker, phrase, take, rate), rate)
                recordings.append(Recording(f"{gender}{speaker}", gender, phrase, str(take), path))
    return Corpus(recordings, ("0", "1"))
