"""Scores that do not fit into memory, or into one machine: the same functions, tile by tile."""

from evenscore.scale.blocks import ChunkedBlocks
from evenscore.scale.chunked_scores import ChunkedScores, as_chunked
from evenscore.scale.chunked_trials import ChunkedTrials
from evenscore.scale.embeddings import score_chunks
from evenscore.scale.labelled_chunks import LabelledChunks
from evenscore.scale.normalize import normalize_chunks
from evenscore.scale.passes import summarize_chunks, transform_chunks

__all__ = [
    "ChunkedBlocks",
    "ChunkedScores",
    "ChunkedTrials",
    "LabelledChunks",
    "as_chunked",
    "normalize_chunks",
    "score_chunks",
    "summarize_chunks",
    "transform_chunks",
]
