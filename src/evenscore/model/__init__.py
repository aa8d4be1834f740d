"""The score model: parameters, training, likelihood, scoring."""

from evenscore.model.adapt import AdaptResult, adapt_score_model
from evenscore.model.fit import FitResult, fit_score_model, log_likelihood
from evenscore.model.normalizer import HiddenPosterior, ScoreModelNormalizer, leave_one_speaker_out
from evenscore.model.parameters import ScoreModel, VarianceTable

__all__ = [
    "AdaptResult",
    "FitResult",
    "HiddenPosterior",
    "ScoreModel",
    "ScoreModelNormalizer",
    "VarianceTable",
    "adapt_score_model",
    "fit_score_model",
    "leave_one_speaker_out",
    "log_likelihood",
]
