from .adapt import (
    AdaptResult as AdaptResult,
)
from .adapt import (
    adapt_score_model as adapt_score_model,
)
from .fit import (
    FitResult as FitResult,
)
from .fit import (
    fit_score_model as fit_score_model,
)
from .fit import (
    log_likelihood as log_likelihood,
)
from .normalizer import (
    HiddenPosterior as HiddenPosterior,
)
from .normalizer import (
    ScoreModelNormalizer as ScoreModelNormalizer,
)
from .normalizer import (
    leave_one_speaker_out as leave_one_speaker_out,
)
from .parameters import (
    ScoreModel as ScoreModel,
)
from .parameters import (
    VarianceTable as VarianceTable,
)
from .simulation import simulate as simulate
from .simulation import simulate_blocks as simulate_blocks
