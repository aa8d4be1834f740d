"""From scores to natural-log likelihood ratios: one interface, six calibrations, and honest cross-validation."""

from evenscore.calibrate.bayesian import BayesianCalibration, NormalGammaPrior
from evenscore.calibrate.calibration import Calibration
from evenscore.calibrate.cross_validation import CrossCalibration, cross_calibrate
from evenscore.calibrate.gaussian import GaussianCalibration
from evenscore.calibrate.logistic import LogisticCalibration
from evenscore.calibrate.pav import PavCalibration
from evenscore.calibrate.registry import CALIBRATIONS, calibration_class, calibration_from_dict
from evenscore.calibrate.saturating import SaturatingCalibration
from evenscore.calibrate.unsupervised import UnsupervisedCalibration

__all__ = [
    "CALIBRATIONS",
    "BayesianCalibration",
    "Calibration",
    "CrossCalibration",
    "GaussianCalibration",
    "LogisticCalibration",
    "NormalGammaPrior",
    "PavCalibration",
    "SaturatingCalibration",
    "UnsupervisedCalibration",
    "calibration_class",
    "calibration_from_dict",
    "cross_calibrate",
]
