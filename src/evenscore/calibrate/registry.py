"""The calibrations by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenscore.calibrate.bayesian import BayesianCalibration
from evenscore.calibrate.calibration import Calibration, check_record
from evenscore.calibrate.gaussian import GaussianCalibration
from evenscore.calibrate.logistic import LogisticCalibration
from evenscore.calibrate.pav import PavCalibration
from evenscore.calibrate.saturating import SaturatingCalibration
from evenscore.calibrate.unsupervised import UnsupervisedCalibration
from evenscore.errors import InputError

__all__ = ["CALIBRATIONS", "calibration_class", "calibration_from_dict"]

CALIBRATIONS: dict[str, type[Calibration]] = {
    kind.kind: kind
    for kind in (
        GaussianCalibration,
        LogisticCalibration,
        PavCalibration,
        BayesianCalibration,
        UnsupervisedCalibration,
        SaturatingCalibration,
    )
}  #: the calibrations by name


def calibration_class(calibration: str | type[Calibration]) -> type[Calibration]:
    """Return the class of a calibration that is given by name, or as a class."""
    if isinstance(calibration, str):
        found = CALIBRATIONS.get(calibration)
        if found is None:
            raise InputError(f"there is no calibration {calibration!r}; choose one of {', '.join(CALIBRATIONS)}")
        return found
    return calibration


def calibration_from_dict(record: Mapping[str, Any]) -> Calibration:
    """Return the calibration of any kind that its ``to_dict`` described.

    Examples
    --------
    >>> calibration = GaussianCalibration(mean=[0.0, 5.0], variance=[1.0, 1.0])
    >>> calibration_from_dict(calibration.to_dict()) == calibration
    True
    """
    kind, _ = check_record(record)
    return calibration_class(kind).from_dict(record)
