"""The tables that flow through the program: immutable, checked once where they are made."""

from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.labelled_blocks import LabelledBlocks
from evenscore.tables.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = [
    "NONTARGET",
    "TARGET",
    "UNKNOWN",
    "Embeddings",
    "LabelledBlocks",
    "Labels",
    "ScoreBlocks",
    "ScoreMatrix",
    "TrialList",
]
