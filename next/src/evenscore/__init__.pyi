from ._version import __version__ as __version__
from .data import (
    LabelledBlocks as LabelledBlocks,
    Labels as Labels,
    ScoreBlocks as ScoreBlocks,
    ScoreMatrix as ScoreMatrix,
    Side as Side,
    TrialList as TrialList,
)
from .errors import (
    EvenscoreError as EvenscoreError,
    FileError as FileError,
    InputError as InputError,
)
