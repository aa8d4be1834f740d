"""Scores that do not fit into memory, or into one machine: the same functions, tile by tile."""

from evenscore.scale.chunked_scores import ChunkedScores, as_chunked

__all__ = ["ChunkedScores", "as_chunked"]
