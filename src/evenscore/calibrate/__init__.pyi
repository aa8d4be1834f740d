from .bayesian import (
    BayesianCalibration as BayesianCalibration,
    NormalGammaPrior as NormalGammaPrior,
)
from .bounds import BoundedLlrs as BoundedLlrs
from .calibration import Calibration as Calibration
from .cross_validation import (
    CrossCalibration as CrossCalibration,
    cross_calibrate as cross_calibrate,
)
from .gaussian import GaussianCalibration as GaussianCalibration
from .logistic import LogisticCalibration as LogisticCalibration
from .pav import PavCalibration as PavCalibration
from .quality import (
    Quality as Quality,
    quality_measures as quality_measures,
)
from .registry import (
    CALIBRATIONS as CALIBRATIONS,
    calibration_and_options as calibration_and_options,
    calibration_class as calibration_class,
    calibration_from_dict as calibration_from_dict,
)
from .saturating import SaturatingCalibration as SaturatingCalibration
from .tables import (
    calibrated as calibrated,
    cross_calibrated as cross_calibrated,
)
from .unsupervised import UnsupervisedCalibration as UnsupervisedCalibration
