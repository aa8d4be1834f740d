from .classical import (
    as_norm as as_norm,
    at_norm as at_norm,
    az_norm as az_norm,
    s_norm as s_norm,
    t_norm as t_norm,
    tz_norm as tz_norm,
    z_norm as z_norm,
    zt_norm as zt_norm,
)
from .folds import (
    assign_folds as assign_folds,
    normalize_by_folds as normalize_by_folds,
)
from .online import (
    OnlineNorm as OnlineNorm,
    prepare_norm as prepare_norm,
)
from .options import (
    CLASSICAL as CLASSICAL,
    CONVENTIONS as CONVENTIONS,
    NormOptions as NormOptions,
)
from .registry import (
    METHODS as METHODS,
    FittedNorm as FittedNorm,
    fit_norm as fit_norm,
    normalize as normalize,
    register_norm as register_norm,
)
