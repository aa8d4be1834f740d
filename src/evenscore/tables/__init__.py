"""The tables that flow through the program: immutable, checked once where they are made."""

from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = [
    "NONTARGET",
    "TARGET",
    "UNKNOWN",
    "Embeddings",
    "Labels",
    "ScoreBlocks",
    "ScoreMatrix",
    "TrialList",
]
