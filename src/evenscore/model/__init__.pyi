from .adapt import (
    AdaptResult as AdaptResult,
    adapt_score_model as adapt_score_model,
)
from .beyond_vertex import share_beyond_vertex as share_beyond_vertex
from .bilinear_normalizer import BilinearNormalizer as BilinearNormalizer
from .fit import (
    FitResult as FitResult,
    fit_score_model as fit_score_model,
    log_likelihood as log_likelihood,
)
from .llr_shape import LlrShape as LlrShape
from .normalizer import (
    HiddenPosterior as HiddenPosterior,
    ScoreModelNormalizer as ScoreModelNormalizer,
)
from .parameters import (
    ScoreModel as ScoreModel,
    VarianceTable as VarianceTable,
)
from .residuals import ResidualDensities as ResidualDensities
from .simulation import simulate as simulate, simulate_blocks as simulate_blocks
