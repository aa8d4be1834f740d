from .conditions import Conditions as Conditions
from .fitting import (
    FittedNorm as FittedNorm,
)
from .fitting import (
    fit_methods as fit_methods,
)
from .fitting import (
    fit_norm as fit_norm,
)
from .fitting import (
    register_trainer as register_trainer,
)
from .options import (
    CLASSICAL_METHODS as CLASSICAL_METHODS,
)
from .options import (
    CONVENTIONS as CONVENTIONS,
)
from .options import (
    NormOptions as NormOptions,
)
from .registry import (
    Normalizer as Normalizer,
)
from .registry import (
    norm_methods as norm_methods,
)
from .registry import (
    normalize as normalize,
)
from .registry import (
    prepare_norm as prepare_norm,
)
from .registry import (
    register_norm as register_norm,
)
