"""Raw and normalized scores from embeddings, and the cohorts they need."""

from evenscore.scoring.averages import average_embeddings
from evenscore.scoring.cohorts import make_cohort
from evenscore.scoring.embeddings import EmbeddingScores, score_embeddings

__all__ = ["EmbeddingScores", "average_embeddings", "make_cohort", "score_embeddings"]
