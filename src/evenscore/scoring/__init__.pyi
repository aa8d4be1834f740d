from .by_folds import (
    ByFolds as ByFolds,
    score_by_folds as score_by_folds,
)
from .cohorts import (
    average_embeddings as average_embeddings,
    enroll_models as enroll_models,
    make_cohort as make_cohort,
)
from .embeddings import (
    embedding_quality as embedding_quality,
    score_embeddings as score_embeddings,
    score_lazily as score_lazily,
)
from .self_centering import (
    SelfCentering as SelfCentering,
    correct_self_centering as correct_self_centering,
    find_self_centering as find_self_centering,
)
from .transforms import (
    Transform as Transform,
    Transformed as Transformed,
    TransformFit as TransformFit,
    fit_transform as fit_transform,
)
