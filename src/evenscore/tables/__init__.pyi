from .blocks import ScoreBlocks as ScoreBlocks
from .embeddings import Embeddings as Embeddings
from .labelled_blocks import LabelledBlocks as LabelledBlocks
from .labels import (
    NONTARGET as NONTARGET,
    TARGET as TARGET,
    UNKNOWN as UNKNOWN,
    Labels as Labels,
)
from .score_matrix import ScoreMatrix as ScoreMatrix
from .trial_list import TrialList as TrialList
