from .fit import (
    PLDAFit as PLDAFit,
)
from .fit import (
    fit_plda as fit_plda,
)
from .model import PLDA as PLDA
