from .blocks import ChunkedBlocks as ChunkedBlocks
from .chunked_scores import (
    ChunkedScores as ChunkedScores,
    as_chunked as as_chunked,
)
from .chunked_trials import ChunkedTrials as ChunkedTrials
from .embeddings import score_chunks as score_chunks
from .labelled_chunks import LabelledChunks as LabelledChunks
from .normalize import normalize_chunks as normalize_chunks
from .passes import (
    summarize_chunks as summarize_chunks,
    transform_chunks as transform_chunks,
)
