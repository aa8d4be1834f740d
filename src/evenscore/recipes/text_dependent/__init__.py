"""Text-dependent speaker recognition from speech to score tables, after the experiment of the paper.

A GMM-UBM recognizer with eigenchannels (after Kenny et al., 2014) on RSR2015 part I, AudioMNIST, or recordings of your
own. Speech needs the extra ``evenscore[speech]``; score sets are read without it, as names load when they are first
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenscore.recipes.text_dependent.corpora import (
        CORPORA,
        read_audiomnist,
        read_corpus,
        read_manifest,
        read_rsr2015,
    )
    from evenscore.recipes.text_dependent.degradations import (
        AdditiveNoise,
        Codec,
        Degradation,
        TelephoneBand,
        with_background,
    )
    from evenscore.recipes.text_dependent.extraction import Extracted, extract_features
    from evenscore.recipes.text_dependent.features import FeatureOptions
    from evenscore.recipes.text_dependent.recognizer import Recognizer, RecognizerOptions, train_recognizer
    from evenscore.recipes.text_dependent.recordings import (
        Corpus,
        Recording,
        Split,
        role_permutations,
        split_speakers,
    )
    from evenscore.recipes.text_dependent.score_set import ScoreSet, load_score_set, save_score_set
    from evenscore.recipes.text_dependent.system import TextDependentSystem, run_recognizer

_HOME = {
    "corpora": ("CORPORA", "read_audiomnist", "read_corpus", "read_manifest", "read_rsr2015"),
    "degradations": ("AdditiveNoise", "Codec", "Degradation", "TelephoneBand", "with_background"),
    "extraction": ("Extracted", "extract_features"),
    "features": ("FeatureOptions",),
    "recognizer": ("Recognizer", "RecognizerOptions", "train_recognizer"),
    "recordings": ("Corpus", "Recording", "Split", "role_permutations", "split_speakers"),
    "score_set": ("ScoreSet", "load_score_set", "save_score_set"),
    "system": ("TextDependentSystem", "run_recognizer"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: PLE0604, RUF100
    "CORPORA",
    "AdditiveNoise",
    "Codec",
    "Corpus",
    "Degradation",
    "Extracted",
    "FeatureOptions",
    "Recognizer",
    "RecognizerOptions",
    "Recording",
    "ScoreSet",
    "Split",
    "TelephoneBand",
    "TextDependentSystem",
    "extract_features",
    "load_score_set",
    "read_audiomnist",
    "read_corpus",
    "read_manifest",
    "read_rsr2015",
    "role_permutations",
    "run_recognizer",
    "save_score_set",
    "split_speakers",
    "train_recognizer",
    "with_background",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
