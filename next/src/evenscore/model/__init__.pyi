from .bilinear import BilinearScores as BilinearScores
from .densities import ResidualDensities as ResidualDensities
from .fit import (
    FitResult as FitResult,
    fit_score_model as fit_score_model,
    log_likelihood as log_likelihood,
)
from .hidden import HiddenPosterior as HiddenPosterior, posterior as posterior
from .parameters import (
    LlrBound as LlrBound,
    ScoreModel as ScoreModel,
    VarianceTable as VarianceTable,
)
from .scoring import (
    ScoreModelNormalizer as ScoreModelNormalizer,
    lgsm_norm as lgsm_norm,
)
from .simulation import simulate as simulate, simulate_blocks as simulate_blocks
