"""What a model says the scores of each class are distributed like."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import betaln

from evenscore.calibrate.bayesian import BayesianCalibration
from evenscore.calibrate.gaussian import GaussianCalibration
from evenscore.calibrate.unsupervised import UnsupervisedCalibration
from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel

__all__ = ["class_densities"]


def class_densities(model: object, scores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the densities of non-targets and of targets, 2 x k, at k scores.

    Examples
    --------
    >>> model = GaussianCalibration(mean=[0.0, 2.0], variance=[1.0, 4.0])
    >>> class_densities(model, np.array([0.0, 2.0])).round(3)
    array([[0.399, 0.054],
           [0.121, 0.199]])
    """
    if isinstance(model, ScoreModel):
        return _gaussians(scores, model.mu, model.sigma2 + model.variances.nu)
    if isinstance(model, GaussianCalibration | UnsupervisedCalibration):
        return _gaussians(scores, model.mean, model.variance)
    if isinstance(model, BayesianCalibration):
        sides = zip(model.mean, model.scale2, model.df, strict=True)
        return np.array([_student_t(scores, *side) for side in sides])
    raise InputError(
        f"a {type(model).__name__} has no densities of the scores; give a ScoreModel, or a gaussian, bayesian or "
        "unsupervised calibration"
    )


def _gaussians(
    scores: npt.NDArray[np.float64], mean: npt.NDArray[np.float64], variance: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    squares = (scores - mean[:, None]) ** 2 / variance[:, None]
    return np.asarray(np.exp(-squares / 2) / np.sqrt(2 * np.pi * variance[:, None]))


def _student_t(scores: npt.NDArray[np.float64], mean: float, scale2: float, df: float) -> npt.NDArray[np.float64]:
    log_density = -betaln(0.5, df / 2) - 0.5 * np.log(df * scale2)
    return np.asarray(np.exp(log_density - (df + 1) / 2 * np.log1p((scores - mean) ** 2 / (df * scale2))))
