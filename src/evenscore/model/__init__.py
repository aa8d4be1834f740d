"""The score model: parameters, training, likelihood, scoring."""

from evenscore.model.fit import FitResult, fit_score_model, log_likelihood
from evenscore.model.normalizer import HiddenPosterior, ScoreModelNormalizer, leave_one_speaker_out
from evenscore.model.parameters import ScoreModel, VarianceTable

__all__ = [
    "FitResult",
    "HiddenPosterior",
    "ScoreModel",
    "ScoreModelNormalizer",
    "VarianceTable",
    "fit_score_model",
    "leave_one_speaker_out",
    "log_likelihood",
]
