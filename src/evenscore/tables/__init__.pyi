from .axis import Axis as Axis
from .blocks import ScoreBlocks as ScoreBlocks
from .embeddings import Embeddings as Embeddings
from .labelled_blocks import LabelledBlocks as LabelledBlocks
from .labels import (
    NONTARGET as NONTARGET,
    TARGET as TARGET,
    UNKNOWN as UNKNOWN,
    Labels as Labels,
)
from .pair_values import labels_for as labels_for
from .score_matrix import ScoreMatrix as ScoreMatrix
from .score_table import (
    LazyScores as LazyScores,
    ScoreTable as ScoreTable,
)
from .tile import (
    Place as Place,
    Tile as Tile,
)
from .trial_list import TrialList as TrialList
