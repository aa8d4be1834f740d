"""Classical score norms, and the registry in which every norm stands."""

from evenscore.norms.conditions import Conditions
from evenscore.norms.fitting import FittedNorm, fit_methods, fit_norm, register_trainer
from evenscore.norms.options import CLASSICAL_METHODS, CONVENTIONS, NormOptions
from evenscore.norms.registry import Normalizer, norm_methods, normalize, prepare_norm, register_norm

__all__ = [
    "CLASSICAL_METHODS",
    "CONVENTIONS",
    "Conditions",
    "FittedNorm",
    "NormOptions",
    "Normalizer",
    "fit_methods",
    "fit_norm",
    "norm_methods",
    "normalize",
    "prepare_norm",
    "register_norm",
    "register_trainer",
]
