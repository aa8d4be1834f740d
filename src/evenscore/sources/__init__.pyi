from .as_table import as_table as as_table
from .bilinear import Bilinear as Bilinear
from .blocks import score_blocks as score_blocks
from .left_out import LeftOutCenter as LeftOutCenter
from .scorers import (
    Cosine as Cosine,
    DotProduct as DotProduct,
    Scorer as Scorer,
)
