"""What every table does with its arrays: check, freeze, compare, and know them again by a hash."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError

__all__ = [
    "LARGEST",
    "LARGEST_COMPONENT",
    "LARGEST_SQUARE",
    "Extremes",
    "as_scores",
    "check_vectors",
    "extremes",
    "frozen",
    "hashed",
    "in_type",
    "near_zero",
    "no_score",
    "same_array",
    "span",
    "usable",
]

#: No score is larger, and scores that differ at all differ by more than its reciprocal: so squares, quotients of
#: squares, and squares of these stay within what float64 holds, and nothing behind the tables needs to ask. It is a
#: number that float32 holds, too.
LARGEST = float(np.float32(1e30))
#: No component of a vector is larger, so that products of vectors are scores.
LARGEST_COMPONENT = 1e12
#: No parameter is larger, and no variance smaller than its reciprocal: a variance is the square of a score.
LARGEST_SQUARE = LARGEST**2
_AT_A_TIME = 1 << 20
_FAR = 16  # standard deviations from 0


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


class Extremes(NamedTuple):
    """The lowest and the highest number of an array, and how many of it are NaN."""

    low: float
    high: float
    n_nan: int

    @property
    def are_scores(self) -> bool:
        """Whether none is too large to be a score."""
        return self.low >= -LARGEST and self.high <= LARGEST

    def refuse_tiny_spread(self, what: str) -> None:
        """Refuse numbers that differ, but by so little that the square of it is lost."""
        if 0 < self.high - self.low < 1 / LARGEST:
            raise InputError(
                f"{what} differ by {self.high - self.low:.2g} at most, whose square is beyond what can be worked with; "
                "multiply them by a constant"
            )


def extremes(array: npt.NDArray[Any]) -> Extremes:
    """Look through an array once, without a temporary of its size.

    Examples
    --------
    >>> extremes(np.array([3.0, np.nan, -1.0]))
    Extremes(low=-1.0, high=3.0, n_nan=1)
    """
    low, high, n_nan = np.inf, -np.inf, 0
    step = max(1, _AT_A_TIME // max(array[0].size, 1)) if array.size else 1
    for start in range(0, len(array) if array.size else 0, step):
        part = array[start : start + step]
        least, most = part.min(), part.max()
        if np.isnan(least):
            n_nan += int(np.count_nonzero(np.isnan(part)))
            least, most = np.fmin.reduce(part, axis=None), np.fmax.reduce(part, axis=None)
        low, high = min(low, float(least)), max(high, float(most))  # NaN, of nothing but NaN, changes neither
    return Extremes(low, high, n_nan) if low <= high else Extremes(0.0, 0.0, n_nan)


def usable(scores: npt.NDArray[Any], *, infinite: bool = False) -> npt.NDArray[np.bool_]:
    """Tell which numbers are scores; infinite ones only where they are accepted."""
    with np.errstate(invalid="ignore"):
        found: npt.NDArray[np.bool_] = abs(scores) <= LARGEST
    return found | np.isinf(scores) if infinite else found


def no_score(value: float) -> str:
    """Return why a number is no score, and what to do, for a message."""
    if np.isfinite(value):
        return f"is {value:g}, but scores must lie between {-LARGEST:g} and {LARGEST:g}"
    return f"is {value}, but scores must be finite"


def check_vectors(vectors: npt.NDArray[Any], ids: npt.NDArray[Any]) -> float:
    """Refuse vectors whose products are no scores; ``ids`` name them. Return the size of the largest component."""
    found = extremes(vectors)
    largest = max(-found.low, found.high)
    if found.n_nan or largest > LARGEST_COMPONENT:
        good = (abs(vectors) <= LARGEST_COMPONENT).all(axis=1)
        odd = f"the vector of {ids[int(np.argmin(good))]!r} has a value that is not finite, or above"
        raise InputError(f"{odd} {LARGEST_COMPONENT:g}; drop it, or divide all vectors by a constant")
    return largest


def in_type(results: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return results in the type of the scores that they are of; what that cannot hold becomes infinite.

    Whoever takes the results refuses it by its ids.
    """
    with np.errstate(over="ignore"):
        return results.astype(dtype, copy=False)


def near_zero(scores: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], float]:
    """Return scores less a level, and the level: 0, but for float32 numbers so far from 0 that products lose digits.

    Examples
    --------
    >>> near_zero(np.array([[1000.0, 1001.0]], dtype=np.float32))
    (array([[-0.5,  0.5]], dtype=float32), 1000.5)
    """
    if scores.dtype != np.float32 or not scores.size:
        return scores, 0.0
    some = scores[0].astype(np.float64)
    level = np.float32(some.mean())
    if not abs(level) > _FAR * some.std():  # also if a score is missing: those are centred one by one
        return scores, 0.0
    return scores - level, float(level)


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
