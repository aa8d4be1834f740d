"""Two-covariance PLDA: log-likelihood ratios from embeddings."""

from evenscore.plda.fit import PLDAFit, fit_plda
from evenscore.plda.model import PLDA

__all__ = ["PLDA", "PLDAFit", "fit_plda"]
