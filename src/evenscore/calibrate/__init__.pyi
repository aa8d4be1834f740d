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
    UnsupervisedCalibration as UnsupervisedCalibration,
)
from .logistic import (
    LogisticCalibration as LogisticCalibration,
    SaturatingCalibration as SaturatingCalibration,
)
from .pav import PavCalibration as PavCalibration
from .trials import quality_columns as quality_columns
