"""Calibrations as JSON files that a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from evenscore.errors import FileError, InputError
from evenscore.files.json_text import (
    check_header,
    check_keys,
    info_in,
    kind_of,
    number_at,
    read_object,
    shown,
    with_info,
    write_object,
)
from evenscore.files.streams import PathLike

if TYPE_CHECKING:
    from evenscore.calibrate import Calibration

__all__ = ["CalibrationFile", "load_calibration", "read_calibration_file", "save_calibration"]

LARGEST = 1 << 28  # bytes; a PAV calibration takes some 40 for each step of its staircase

_KEYS = ("format", "version", "kind", "parameters", "info")
_INFINITE = ("inf", "-inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationFile:
    """What a calibration file holds: the calibration, and what is known about its training."""

    calibration: Calibration
    info: Mapping[str, Any] = field(default_factory=dict)


def save_calibration(calibration: Calibration, path: PathLike, *, info: Mapping[str, Any] | None = None) -> None:
    r"""Write a calibration as readable JSON; `load_calibration` gives back exactly the same numbers.

    Parameters
    ----------
    calibration
        Of any kind.
    path
        The file, which appears only when all of it is written; ``-`` is standard output.
    info
        Facts about the training: text, finite numbers, truth values, and lists of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import GaussianCalibration
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibration.json"
    >>> save_calibration(GaussianCalibration(mean=[0.0, 5.0], variance=[1.0, 2.0]), path)
    >>> print(path.read_text())
    {
      "format": "evenscore-calibration",
      "version": 1,
      "kind": "gaussian",
      "parameters": {
        "mean": [0.0, 5.0],
        "variance": [1.0, 2.0]
      }
    }
    """
    write_object(path, with_info(calibration.to_dict(), info))


def load_calibration(path: PathLike) -> Calibration:
    """Read a calibration of any kind; anything that does not fit is refused with the key and the reason.

    Parameters
    ----------
    path
        A file written by `save_calibration`, plain or gzip; ``-`` is standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import LogisticCalibration
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibration.json"
    >>> save_calibration(LogisticCalibration(weights=[2.0], quality_weights=[], offset=-1.0), path)
    >>> load_calibration(path)([0.0, 1.0])
    array([-1.,  1.])
    """
    return read_calibration_file(path).calibration


def read_calibration_file(path: PathLike) -> CalibrationFile:
    """Read a calibration with what the file says about its training."""
    from evenscore.calibrate import CALIBRATIONS
    from evenscore.calibrate.calibration import FORMAT, VERSION

    values = read_object(path, largest=LARGEST)
    check_header(path, values, FORMAT, VERSION)
    check_keys(path, values, ("kind", "parameters"), _KEYS, VERSION)
    info, kind, parameters = info_in(path, values), values["kind"], values["parameters"]
    if not isinstance(kind, str) or kind not in CALIBRATIONS:
        known = ", ".join(CALIBRATIONS)
        raise FileError(path, f"there is no calibration {shown(kind)}; known are {known}", part="kind")
    if not isinstance(parameters, dict):
        raise FileError(path, f"expected an object, but found {kind_of(parameters)}", part="parameters")
    names = [parameter.name for parameter in fields(CALIBRATIONS[kind])]
    check_keys(path, parameters, names, names, VERSION, within="parameters.")
    for name, value in parameters.items():
        _check_numbers(path, f"parameters.{name}", value)
    try:
        return CalibrationFile(calibration=CALIBRATIONS[kind].from_dict(values), info=info)
    except InputError as error:
        raise FileError(path, str(error), part="parameters") from None


def _check_numbers(path: PathLike, where: str, value: Any) -> None:
    """Refuse what is neither a number nor a list of numbers; infinite numbers stand as text."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            _check_item(path, f"{where}[{place}]", item)
    else:
        _check_item(path, where, value)


def _check_item(path: PathLike, where: str, value: Any) -> None:
    if not (isinstance(value, str) and value in _INFINITE):
        number_at(path, where, value)
