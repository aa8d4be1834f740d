"""Scores made from embeddings without a matrix of scores."""

from evenscore.sources.bilinear import Bilinear
from evenscore.sources.blocks import score_blocks
from evenscore.sources.normalize import BilinearNormalizer
from evenscore.sources.scorers import Cosine, DotProduct, Scorer

__all__ = ["Bilinear", "BilinearNormalizer", "Cosine", "DotProduct", "Scorer", "score_blocks"]
