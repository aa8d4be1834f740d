from .base import (
    CALIBRATIONS as CALIBRATIONS,
    Calibration as Calibration,
    calibration_class as calibration_class,
)
from .cross_validation import (
    CrossValidation as CrossValidation,
    cross_validate as cross_validate,
)
from .gaussian import (
    BayesianCalibration as BayesianCalibration,
    GaussianCalibration as GaussianCalibration,
)
from .logistic import LogisticCalibration as LogisticCalibration
from .pav import PavCalibration as PavCalibration
from .saturating import SaturatingCalibration as SaturatingCalibration
from .trials import quality_columns as quality_columns
from .unsupervised import UnsupervisedCalibration as UnsupervisedCalibration
