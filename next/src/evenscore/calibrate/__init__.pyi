from .base import (
    CALIBRATIONS as CALIBRATIONS,
    Calibration as Calibration,
    calibration_class as calibration_class,
    calibration_from_dict as calibration_from_dict,
)
from .bayesian import (
    BayesianCalibration as BayesianCalibration,
    NormalGammaPrior as NormalGammaPrior,
)
from .cross_validation import (
    CrossCalibration as CrossCalibration,
    cross_calibrate as cross_calibrate,
)
from .gaussian import GaussianCalibration as GaussianCalibration
from .logistic import LogisticCalibration as LogisticCalibration
from .pav import PavCalibration as PavCalibration
from .quality import quality_columns as quality_columns
from .saturating import (
    SaturatingCalibration as SaturatingCalibration,
    saturate as saturate,
)
from .unsupervised import UnsupervisedCalibration as UnsupervisedCalibration
