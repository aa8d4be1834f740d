"""The calibrations by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from evenscore.calibrate.bayesian import BayesianCalibration
from evenscore.calibrate.bounds import BoundedLlrs
from evenscore.calibrate.calibration import Calibration, check_record
from evenscore.calibrate.gaussian import GaussianCalibration
from evenscore.calibrate.logistic import LogisticCalibration
from evenscore.calibrate.pav import PavCalibration
from evenscore.calibrate.saturating import SaturatingCalibration
from evenscore.calibrate.unsupervised import UnsupervisedCalibration
from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

__all__ = ["CALIBRATIONS", "calibration_and_options", "calibration_class", "calibration_from_dict"]

CALIBRATIONS: dict[str, type[Calibration]] = {
    kind.kind: kind
    for kind in (
        GaussianCalibration,
        LogisticCalibration,
        PavCalibration,
        BayesianCalibration,
        UnsupervisedCalibration,
        SaturatingCalibration,
        BoundedLlrs,
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


_OPTIONS = {"p_target": float, "l2": float, "shared_variance": bool, "smoothing": float}  # that a text can give


def calibration_and_options(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of a calibration and the options of its ``fit`` from a text that gives both.

    Examples
    --------
    >>> calibration_and_options("logistic:l2=1e-3")
    ('logistic', {'l2': 0.001})
    """
    name, options = name_and_options(text, "calibration")
    kind: Any = calibration_class(name)
    parameters = inspect.signature(kind.fit).parameters
    known = {option: value for option, value in _OPTIONS.items() if option in parameters}
    return name, checked_options(f"the calibration {name}", options, known)


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
