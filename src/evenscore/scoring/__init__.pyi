from .cohorts import (
    average_embeddings as average_embeddings,
    enroll_models as enroll_models,
    make_cohort as make_cohort,
)
from .plda import (
    PLDA as PLDA,
    PldaFit as PldaFit,
    adapt_plda as adapt_plda,
    fit_plda as fit_plda,
)
from .projection import (
    Projection as Projection,
    fit_center as fit_center,
    fit_lda as fit_lda,
    fit_wccn as fit_wccn,
)
from .score import (
    embedding_blocks as embedding_blocks,
    embedding_quality as embedding_quality,
    make_trials as make_trials,
    score_by_folds as score_by_folds,
    score_embeddings as score_embeddings,
)
from .scorers import (
    SCORERS as SCORERS,
    BilinearScores as BilinearScores,
    CosineScorer as CosineScorer,
    DotScorer as DotScorer,
    Scorer as Scorer,
    make_scorer as make_scorer,
)
from .verifier import Verifier as Verifier
