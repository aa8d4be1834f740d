from .bilinear import BilinearScores as BilinearScores
from .densities import ResidualDensities as ResidualDensities
from .fit import (
    FitResult as FitResult,
    fit_lgsm as fit_lgsm,
    fit_score_model as fit_score_model,
    log_likelihood as log_likelihood,
)
from .parameters import (
    LlrBound as LlrBound,
    ScoreModel as ScoreModel,
    VarianceTable as VarianceTable,
)
from .posterior import HiddenPosterior as HiddenPosterior, posterior as posterior
from .scoring import (
    ScoreModelNormalizer as ScoreModelNormalizer,
    lgsm_norm as lgsm_norm,
)
from .simulation import simulate as simulate, simulate_blocks as simulate_blocks
