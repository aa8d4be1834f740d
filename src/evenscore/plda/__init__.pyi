from .adaptation import adapt_plda as adapt_plda
from .fit import (
    PLDAFit as PLDAFit,
    fit_plda as fit_plda,
)
from .model import PLDA as PLDA
