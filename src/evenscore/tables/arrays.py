"""What every table does with its arrays: check, freeze, compare, and know them again by a hash."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

__all__ = ["as_scores", "frozen", "hashed", "same_array", "span"]


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a read-only view, or the array if it is one: the caller keeps a writable array only if it held one."""
    if not array.flags.writeable:
        return array  # so that tables that share an array are sent to other processes with one copy of it
    view = array.view()
    view.flags.writeable = False
    return view


def as_scores(values: npt.ArrayLike, what: str, ndim: int) -> npt.NDArray[Any]:
    """Return scores as a float32 or float64 array; float16 and whole numbers become float64.

    A float array is not copied. Whoever changes it afterwards through another reference changes the table.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{what} is ragged: all rows must have the same length") from None
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:
        raise InputError(f"{what} has type {array.dtype}, but must hold real numbers (float32 or float64)")
    if array.ndim != ndim:
        raise InputError(f"{what} must have {ndim} dimension{'s' * (ndim > 1)}, but has shape {array.shape}")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def same_array(a: npt.NDArray[Any] | None, b: npt.NDArray[Any] | None) -> bool:
    """Tell whether two arrays hold the same values, where NaN equals NaN and None only None."""
    if a is None or b is None:
        return a is b
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        return bool(np.array_equal(a, b, equal_nan=True))
    return bool(np.array_equal(a, b))


def span(scores: npt.NDArray[Any]) -> str:
    """Return the range of the scores for a repr, NaN left out."""
    if scores.size == 0 or np.isnan(scores).all():
        return "no scores"
    return f"scores {np.nanmin(scores):.4g} to {np.nanmax(scores):.4g}"


def hashed(*parts: object) -> str:
    """Return a short text that stands for arrays, texts and numbers.

    Examples
    --------
    >>> hashed("a", np.zeros(2)) == hashed("a", np.zeros(2)), hashed("a") == hashed("b")
    (True, False)
    """
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype != object:
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        else:
            digest.update(repr(part.tolist() if isinstance(part, np.ndarray) else part).encode())
        digest.update(b"\0")
    return digest.hexdigest()
