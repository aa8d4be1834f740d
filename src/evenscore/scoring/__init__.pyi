from .cohorts import (
    average_embeddings as average_embeddings,
    make_cohort as make_cohort,
)
from .embeddings import (
    score_embeddings as score_embeddings,
    score_lazily as score_lazily,
)
