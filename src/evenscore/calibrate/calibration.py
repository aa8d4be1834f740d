"""What all calibrations share: the call, and a dictionary to keep them in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.trials import is_lazy
from evenscore.tables.arrays import LARGEST, LARGEST_SQUARE, as_scores, extremes, frozen, no_score

__all__ = ["FORMAT", "VERSION", "Calibration", "as_input", "finite", "positive"]

FORMAT = "evenscore-calibration"
VERSION = 1

C = TypeVar("C", bound="Calibration")


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """A function from scores to natural-log likelihood ratios.

    Every kind has a classmethod ``fit(scores, labels, ...)``, is called with scores, and goes to and from a
    dictionary of plain numbers that JSON can hold. Its fields are the parameters. ``fit`` takes tables
    that are not in memory, too, with labels as in `labels_for`; `calibrated` applies a calibration to them.

    Examples
    --------
    >>> from evenscore.calibrate import CALIBRATIONS
    >>> calibration = CALIBRATIONS["gaussian"].fit([0.0, 2.0, 4.0, 8.0], [0, 0, 1, 1])
    >>> calibration.to_dict()["parameters"]
    {'mean': [1.0, 6.0], 'variance': [1.0, 4.0]}
    """

    kind: ClassVar[str]

    def __call__(self, scores: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the LLR of each score, in the shape of the scores."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return format, version, kind and parameters as plain numbers, texts and lists."""
        parameters = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"format": FORMAT, "version": VERSION, "kind": self.kind, "parameters": parameters}

    @classmethod
    def from_dict(cls: type[C], record: Mapping[str, Any]) -> C:
        """Return the calibration that `to_dict` described; anything odd is refused with the reason."""
        kind, parameters = check_record(record)
        if kind != cls.kind:
            raise InputError(f"this is a {kind!r} calibration, not a {cls.kind!r} one; use calibration_from_dict")
        names = [field.name for field in fields(cls)]
        absent = [name for name in names if name not in parameters]
        unknown = [name for name in parameters if name not in names]
        if absent or unknown:
            problem = f"lacks {absent[0]!r}" if absent else f"has an unknown parameter {unknown[0]!r}"
            raise InputError(f"the {kind} calibration {problem}; its parameters are {', '.join(names)}")
        for field in fields(cls):
            if field.type == "float" and isinstance(parameters[field.name], list):
                raise InputError(f"parameter {field.name!r} is {parameters[field.name]!r}, but must be a number")
        return cls(**{name: _number(name, parameters[name]) for name in names})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Calibration):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


def check_record(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return kind and parameters of a calibration's dictionary, or refuse it."""
    if not isinstance(record, Mapping) or record.get("format") != FORMAT:
        raise InputError(f"this is not a calibration: its 'format' is not {FORMAT!r}")
    if record.get("version") != VERSION:
        raise InputError(
            f"the calibration has version {record.get('version')!r}, but this evenscore reads version {VERSION}; "
            "update evenscore, or fit the calibration again"
        )
    for name, form in (("kind", str), ("parameters", Mapping)):
        if not isinstance(record.get(name), form):
            raise InputError(f"the calibration has no {name!r}; it is incomplete")
    return record["kind"], record["parameters"]


_INFINITE = {"inf": np.inf, "-inf": -np.inf}  # JSON has no infinite numbers


def _plain(value: Any) -> Any:
    """Return a number or a (nested) list of numbers; infinite ones become text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and np.isinf(value) else value


def _number(name: str, value: Any) -> Any:
    """Return what `_plain` made, as a float or an array; only real numbers and 'inf' are understood."""
    if isinstance(value, list) and not any(isinstance(item, list) for item in value):
        return np.array([_number(name, item) for item in value], dtype=np.float64)
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
    except OverflowError:  # JSON knows whole numbers of any size
        number = math.nan
    if math.isnan(number):
        shown = repr(value) if not isinstance(value, int) or value.bit_length() < 1100 else "too large"
        raise InputError(f"parameter {name!r} is {shown}, but must be a number or a list of numbers")
    return number


def positive(name: str, value: npt.ArrayLike, shape: tuple[int, ...] | None = None) -> npt.NDArray[np.float64]:
    """Return a read-only array of finite numbers above 0: variances that scores can have, or numbers like them."""
    array = finite(name, value, shape)
    if not (array >= 1 / LARGEST_SQUARE).all():
        least = "0" if (array <= 0).any() else f"{1 / LARGEST_SQUARE:g}"
        raise InputError(f"{name} is {array.tolist()}, but must be above {least}")
    return array


def finite(name: str, value: npt.ArrayLike, shape: tuple[int, ...] | None = None) -> npt.NDArray[np.float64]:
    """Return a read-only array of finite numbers."""
    array = np.array(value, dtype=np.float64)
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, but must have shape {shape}")
    if not (abs(array) <= LARGEST_SQUARE).all():
        raise InputError(f"{name} is {array.tolist()}, but must be finite, and {LARGEST_SQUARE:g} at most")
    return frozen(array)


def as_input(scores: npt.ArrayLike, *, infinite: bool = False) -> npt.NDArray[np.float64]:
    """Return scores of any shape as float64; NaN (missing) is kept, other numbers that are no scores are refused."""
    if is_lazy(scores):
        raise InputError("these scores are not in memory; calibrate them tile by tile: calibrated(scores, calibration)")
    array = np.asarray(scores)
    values = as_scores(array.reshape(-1), "scores", ndim=1).reshape(array.shape).astype(np.float64, copy=False)
    if not infinite:
        found = extremes(values.reshape(-1))
        largest = max(-found.low, found.high)
        if np.isinf(largest):
            problem = "a score is infinite, but this calibration needs finite scores (or NaN where one is missing)"
            raise InputError(problem)
        if largest > LARGEST:
            raise InputError(f"a score {no_score(largest)}; drop the trial")
    return values
