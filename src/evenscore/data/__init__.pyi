from .blocks import (
    LabelledBlocks as LabelledBlocks,
    ScoreBlocks as ScoreBlocks,
)
from .embeddings import Embeddings as Embeddings
from .labels import (
    NONTARGET as NONTARGET,
    TARGET as TARGET,
    UNKNOWN as UNKNOWN,
    Labels as Labels,
)
from .score_matrix import ScoreMatrix as ScoreMatrix
from .side import Side as Side
from .trial_list import TrialList as TrialList
