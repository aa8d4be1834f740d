"""Writing scores that a command made, in the format that keeps most of them."""

from __future__ import annotations

from evenscore.files import FORMATS, write
from evenscore.tables import ScoreMatrix, TrialList

__all__ = ["write_scores"]


def write_scores(scores: ScoreMatrix | TrialList, output: str, to_format: str | None) -> None:
    """Write scores; labels that are known for all trials choose a text format that has a place for them."""
    endings = tuple(ending for format in FORMATS.values() for ending in format.extensions)
    has_labels = isinstance(scores, TrialList) and scores.labels is not None and not scores.n_unknown
    if to_format is None and has_labels and not output.lower().removesuffix(".gz").endswith(endings):
        to_format = "wespeaker"  # the usual format for such names has no place for labels
    write(scores, output, format=to_format)
