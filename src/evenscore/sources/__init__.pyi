from .bilinear import Bilinear as Bilinear
from .blocks import score_blocks as score_blocks
from .normalize import BilinearNormalizer as BilinearNormalizer
from .scorers import (
    Cosine as Cosine,
    DotProduct as DotProduct,
    Scorer as Scorer,
)
