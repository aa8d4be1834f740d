"""How every candidate is judged: all of them the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenscore.calibrate import calibration_and_options
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


def calibration_settings(calibration: str, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """Return a calibration and the options of its ``fit``; without any, those that weigh scores get a tiny penalty.

    Examples
    --------
    >>> calibration_settings("logistic"), calibration_settings("logistic:l2=0.1"), calibration_settings("gaussian")
    (('logistic', {'l2': 1e-05}), ('logistic', {'l2': 0.1}), ('gaussian', {}))
    """
    name, spelled = calibration_and_options(calibration)
    if options is None and not spelled:
        return name, {"l2": _PENALTY} if name in ("logistic", "saturating") else {}
    return name, {**spelled, **(options or {})}
