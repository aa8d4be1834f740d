"""Scores made from embeddings without a matrix of scores."""

from evenscore.sources.bilinear import Bilinear
from evenscore.sources.scorers import Cosine, DotProduct, Scorer

__all__ = ["Bilinear", "Cosine", "DotProduct", "Scorer"]
