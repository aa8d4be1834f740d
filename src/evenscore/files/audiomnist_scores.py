"""Real scores that come with evenscore: those of the paper's experiment on AudioMNIST."""

from __future__ import annotations

from pathlib import Path

from evenscore.files.score_set import ScoreSet, load_score_set

__all__ = ["load_audiomnist_scores"]

_FOLDER = Path(__file__).resolve().parent.parent / "data" / "audiomnist_gmm"


def load_audiomnist_scores() -> ScoreSet:
    """Return the scores of a GMM-UBM recognizer on AudioMNIST, with the cohort scores of the paper's experiment.

    20 development and 20 other evaluation speakers (16 men and 4 women each) say ten digits; a digit is a phrase. Each
    speaker enrols a digit with three takes and has nine test takes of it. ``evenscore/data/audiomnist_gmm/README.md``
    tells where the scores come from, and their licence.

    Examples
    --------
    >>> from evenscore import load_audiomnist_scores
    >>> scores = load_audiomnist_scores()
    >>> scores
    ScoreSet(10 phrases, 36000 development and 36000 evaluation trials, 40 speakers)
    >>> scores.evaluation[7].name, scores.evaluation[7].blocks.trials.shape
    ('7', (20, 180))
    """
    return load_score_set(_FOLDER)
