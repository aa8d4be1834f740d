from .by_phrase import normalize_by_phrase as normalize_by_phrase
from .conditions import Conditions as Conditions
from .fitting import (
    FittedNorm as FittedNorm,
    fit_methods as fit_methods,
    fit_norm as fit_norm,
)
from .normalize import (
    normalize as normalize,
    prepare_norm as prepare_norm,
)
from .options import (
    CLASSICAL_METHODS as CLASSICAL_METHODS,
    CONVENTIONS as CONVENTIONS,
    NormOptions as NormOptions,
)
from .registry import (
    METHODS as METHODS,
    Method as Method,
    Normalizer as Normalizer,
    norm_methods as norm_methods,
    register_norm as register_norm,
)
from .residuals import (
    fit_residuals as fit_residuals,
    left_out_residuals as left_out_residuals,
)
