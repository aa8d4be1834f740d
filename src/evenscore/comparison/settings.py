"""How every candidate is judged: all of them the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenscore.calibrate import calibration_class
from evenscore.metrics import OperatingPoint

__all__ = ["Judging", "calibration_settings"]

# Small enough to change nothing where the classes overlap, and it keeps the weights finite where they do not.
_PENALTY = 1e-5


@dataclass(frozen=True, kw_only=True)
class Judging:
    """Calibration, operating points, draws of speakers, and folds of the training side."""

    calibration: str
    calibration_options: Mapping[str, Any]
    points: tuple[OperatingPoint, ...]
    replicates: int
    level: float
    seed: int
    folds: int


def calibration_settings(calibration: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the options of a calibration's ``fit``; if none are given, those that weigh scores get a tiny penalty.

    Examples
    --------
    >>> calibration_settings("logistic", None), calibration_settings("gaussian", None)
    ({'l2': 1e-05}, {})
    """
    calibration_class(calibration)
    if options is None:
        return {"l2": _PENALTY} if calibration in ("logistic", "saturating") else {}
    return dict(options)
