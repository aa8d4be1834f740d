from .blocks import ScoreBlocks as ScoreBlocks
from .embeddings import Embeddings as Embeddings
from .labelled_blocks import LabelledBlocks as LabelledBlocks
from .labels import (
    NONTARGET as NONTARGET,
)
from .labels import (
    TARGET as TARGET,
)
from .labels import (
    UNKNOWN as UNKNOWN,
)
from .labels import (
    Labels as Labels,
)
from .score_matrix import ScoreMatrix as ScoreMatrix
from .trial_list import TrialList as TrialList
