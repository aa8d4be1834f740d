"""What a classical norm can be asked to do: one record of named options, and the presets of other tools."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from evenscore.errors import InputError
from evenscore.tables.arrays import LARGEST
from evenscore.tables.ids import shown

__all__ = [
    "ADAPTIVE_METHODS",
    "CLASSICAL_METHODS",
    "CONVENTIONS",
    "USUAL",
    "USUAL_PART",
    "USUAL_TOP_K",
    "NormOptions",
    "usual_count",
    "with_usual_top_k",
]

Select = Literal["own", "cross", "profile"]
Statistic = Literal["mean", "trimmed", "median"]
Combine = Literal["mean", "sqrt2"]
ZeroStd = Literal["error", "one"]
Excess = Literal["error", "clip"]
Vanished = Literal["error", "raw", "missing"]

CLASSICAL_METHODS = ("z", "t", "zt", "tz", "s", "as", "at", "az")
ADAPTIVE_METHODS = ("as", "at", "az")

#: What an adaptive norm usually takes: so many, or this part of the cohort where that is fewer; see `usual_count`.
USUAL_TOP_K, USUAL_PART = 300, 0.2
USUAL: Literal["usual"] = "usual"  #: the ``top_k`` that stands for it

#: The options in which a tool differs from the defaults; see `NormOptions.of`.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "wespeaker": {"ddof": 0, "combine": "mean", "select": "own", "excess": "clip"},
        "speechbrain": {"ddof": 1, "combine": "mean", "select": "own", "excess": "error"},
        "espnet": {"ddof": 1, "combine": "mean", "select": "own", "excess": "clip"},
        "asv-subtools": {"ddof": 1, "combine": "mean", "select": "own", "excess": "clip"},
        "hyperion": {"ddof": 0, "combine": "sqrt2", "select": "cross", "excess": "clip", "std_floor": 1e-5},
        "bob": {"ddof": 1, "combine": "mean", "select": "own", "excess": "error", "zero_std": "one"},
    }
)


@dataclass(frozen=True, kw_only=True)
class NormOptions:
    """How a classical norm turns cohort scores into a location and a scale.

    Every value is checked when the record is made; a wrong one is an `InputError` that lists the right ones.

    Parameters
    ----------
    top_k
        How many of the highest cohort scores an adaptive norm (`as`, `at`, `az`) takes: a count (a whole number), a
        fraction of the cohort (a float above 0 and up to 1), or ``"usual"``: 300, or a fifth of the cohort where that
        is fewer (two at least). That is what everything that takes the name of a norm takes if it is not given. A
        trial that has fewer left, because scores are missing or its own speakers are left out, takes all that it has.
    excess
        What to do if ``top_k + drop_top`` is larger than the cohort: ``"error"``, or ``"clip"`` to take all there is.
    drop_top
        How many of the very highest cohort scores to leave out first: they may be hidden targets.
    select
        Who ranks the cohort of an adaptive norm. ``"own"``: each side takes its own highest scores. ``"cross"``: each
        side takes its scores against the members with which the other side scores highest; this needs the same cohort,
        or at least the same speakers, on both sides. ``"profile"``: each side takes its scores against the members
        whose own cohort scores are most like those of the other side; this needs the cohort against itself.
    statistic
        ``"mean"``: mean and standard deviation; ``"trimmed"``: the same without the ``trim`` lowest and highest;
        ``"median"``: median, and the median absolute deviation x 1.4826.
    trim
        Fraction that ``statistic="trimmed"`` leaves out at each end, from 0 to below 0.5.
    ddof
        The variance is the sum of squares over n - ddof: 0 or 1.
    std_floor
        Standard deviations below this are raised to it; 0 switches it off.
    zero_std
        What to do with a cohort whose standard deviation is zero: ``"error"`` names it, ``"one"`` divides by 1. Not
        needed with a floor.
    combine
        How `s` and `as` join the two sides: ``"mean"`` (half the sum) or ``"sqrt2"`` (the sum over the root of 2).
    vanished
        What to do with trials that have no cohort left on a side that the norm needs: ``"error"`` names them,
        ``"raw"`` leaves their scores as they are, ``"missing"`` makes them missing (a trial list loses them).

    Examples
    --------
    >>> NormOptions(top_k=100, select="cross")
    NormOptions(top_k=100, select='cross')
    >>> NormOptions.of(convention="hyperion", top_k=100).combine
    'sqrt2'
    """

    top_k: int | float | Literal["usual"] | None = None  # None: 300, or all; see `evenscore.norms.registry`
    excess: Excess = "error"
    drop_top: int = 0
    select: Select = "own"
    statistic: Statistic = "mean"
    trim: float = 0.1
    ddof: int = 0
    std_floor: float = 0.0
    zero_std: ZeroStd = "error"
    combine: Combine = "mean"
    vanished: Vanished = "error"

    def __post_init__(self) -> None:
        for name, kind in (
            ("excess", Excess),
            ("select", Select),
            ("statistic", Statistic),
            ("zero_std", ZeroStd),
            ("combine", Combine),
            ("vanished", Vanished),
        ):
            if getattr(self, name) not in get_args(kind):
                choices = " or ".join(repr(choice) for choice in get_args(kind))
                raise InputError(f"{name} is {getattr(self, name)!r}, but must be {choices}")
        _check_top_k(self.top_k)
        _check(self.drop_top, "drop_top", "a whole number from 0", _is_whole(self.drop_top) and self.drop_top >= 0)
        _check(self.trim, "trim", "from 0 to below 0.5", _is_number(self.trim) and 0 <= self.trim < 0.5)
        _check(self.ddof, "ddof", "0 or 1", _is_whole(self.ddof) and self.ddof in (0, 1))
        floor = _is_number(self.std_floor) and (self.std_floor == 0 or 1 / LARGEST <= self.std_floor <= LARGEST)
        _check(self.std_floor, "std_floor", f"0, or from {1 / LARGEST:g} to {LARGEST:g}", floor)

    @classmethod
    def of(cls, *, convention: str | None = None, **given: Any) -> NormOptions:
        """Return the options of a tool's convention, with the given ones in place of its own.

        Parameters
        ----------
        convention
            One of ``CONVENTIONS``, or None for the defaults.
        **given
            Options by name.

        Examples
        --------
        >>> NormOptions.of(convention="bob", ddof=0)
        NormOptions(zero_std='one')
        """
        if convention is not None and convention not in CONVENTIONS:
            raise InputError(f"there is no convention {convention!r}; there are {', '.join(CONVENTIONS)}")
        known = {field.name for field in fields(cls)}
        odd = [name for name in given if name not in known]
        if odd:
            raise InputError(f"there is no norm option {shown(odd)}; there are {', '.join(sorted(known))}")
        return cls(**({} if convention is None else dict(CONVENTIONS[convention])) | given)

    def checked_for(self, method: str) -> NormOptions:
        """Return the options of this method; one that the method cannot follow is an error."""
        if method not in CLASSICAL_METHODS:
            raise InputError(f"there is no classical norm {method!r}; there are {', '.join(CLASSICAL_METHODS)}")
        if method in ADAPTIVE_METHODS:
            return self
        if self.top_k is not None:
            adaptive = {"z": "az", "t": "at", "s": "as"}.get(method)
            remedy = f"use {adaptive!r}, or leave out top_k" if adaptive else "leave out top_k"
            raise InputError(f"the norm {method!r} takes the whole cohort, so top_k has no meaning; {remedy}")
        if self.select == "profile":
            raise InputError(f"the norm {method!r} takes the whole cohort, so select has no meaning; leave it out")
        return replace(self, select="own") if self.select == "cross" else self  # a convention may bring it along

    def count(self, method: str, size: int) -> int:
        """Return how many of a cohort of this size the method takes; checks ``excess`` and ``drop_top``."""
        if size == 0:
            return 0
        if self.drop_top >= size:
            raise InputError(f"drop_top is {self.drop_top}, but the cohort has only {size} members; drop fewer")
        left = size - self.drop_top
        if method not in ADAPTIVE_METHODS:
            return left
        if self.top_k is None:
            return min(USUAL_TOP_K, left)
        if isinstance(self.top_k, str):
            return min(usual_count(size), left)
        wanted = max(1, round(self.top_k * size)) if isinstance(self.top_k, float) else int(self.top_k)
        if wanted > left and isinstance(self.top_k, float):
            return left
        if wanted > left and self.excess == "error":
            extra = f" and drop_top {self.drop_top}" if self.drop_top else ""
            raise InputError(
                f"top_k is {wanted}{extra}, but the cohort has only {size} members; "
                "take fewer, or all there are with excess='clip'"
            )
        return min(wanted, left)

    def settled(self, count: int, mean: float, std: float) -> float:
        """Return the standard deviation that one row of cohort scores is divided by; NaN if that cannot be told."""
        if count <= 0:
            return math.nan
        if self.std_floor > 0:
            return max(std, self.std_floor)
        if std > max(1e-14 * abs(mean), 1 / LARGEST):
            return std
        return 1.0 if self.zero_std == "one" else math.nan

    def __repr__(self) -> str:
        changed = (field for field in fields(self) if getattr(self, field.name) != field.default)
        return f"NormOptions({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in changed)})"


def usual_count(size: int) -> int:
    """Return how many of a cohort of this size an adaptive norm usually takes.

    Examples
    --------
    >>> [usual_count(size) for size in (5000, 1500, 200, 4, 1)]
    [300, 300, 40, 2, 1]
    """
    return min(size, USUAL_TOP_K, max(2, round(USUAL_PART * size)))


def with_usual_top_k(method: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a norm, with the usual ``top_k`` where an adaptive norm needs one and none is given.

    Examples
    --------
    >>> with_usual_top_k("as", {"ddof": 1}), with_usual_top_k("s", {"ddof": 1})
    ({'ddof': 1, 'top_k': 'usual'}, {'ddof': 1})
    """
    record = options.get("options")
    if method not in ADAPTIVE_METHODS or options.get("top_k") is not None:
        return dict(options)
    if not isinstance(record, NormOptions):
        return {**options, "top_k": USUAL}
    return {**options, "options": replace(record, top_k=USUAL) if record.top_k is None else record}


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check(value: object, name: str, meaning: str, right: bool) -> None:
    if not right:
        raise InputError(f"{name} is {value!r}, but must be {meaning}")


def _check_top_k(top_k: object) -> None:
    if top_k is None or top_k == USUAL or (_is_whole(top_k) and top_k >= 1):  # type: ignore[operator]
        return
    if isinstance(top_k, float) and 0 < top_k <= 1:
        return
    raise InputError(
        f"top_k is {top_k!r}, but must be a count from 1 (a whole number), a fraction up to 1.0 (a float) or {USUAL!r}"
    )
