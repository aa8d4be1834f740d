"""The options of the classical norms, and the conventions of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from evenscore.errors import InputError, quoted

__all__ = ["ADAPTIVE", "CLASSICAL", "CONVENTIONS", "NormOptions"]

CLASSICAL = ("z", "t", "zt", "tz", "s", "as", "at", "az")  #: the names of the classical norms
ADAPTIVE = ("as", "at", "az")  #: those that use the highest cohort scores only

#: The options in which a tool differs from our defaults.
CONVENTIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "wespeaker": {"excess": "clip"},
        "speechbrain": {"ddof": 1},
        "espnet": {"ddof": 1, "excess": "clip"},
        "asv-subtools": {"ddof": 1, "excess": "clip"},
        "hyperion": {"combine": "sqrt2", "select": "cross", "excess": "clip", "std_floor": 1e-5},
        "bob": {"ddof": 1, "zero_std": "one"},
    }
)

_CHOICES = {
    "excess": ("error", "clip"),
    "select": ("own", "cross", "profile"),
    "statistic": ("mean", "trimmed", "median"),
    "zero_std": ("error", "one"),
    "combine": ("mean", "sqrt2"),
    "empty": ("error", "raw", "missing"),
    "ddof": (0, 1),
}


@dataclass(frozen=True, kw_only=True)
class NormOptions:
    """How a classical norm turns cohort scores into a mean and a standard deviation.

    Parameters
    ----------
    top_k
        Number of the highest cohort scores that an adaptive norm (`as`, `at`, `az`) uses: a count, or a fraction of the
        cohort (a float up to 1). By default 300, or a fifth of the cohort where that is fewer (at least two). Where
        scores are missing, all others up to this number.
    excess
        If ``top_k + drop_top`` is larger than the cohort: ``"error"``, or ``"clip"`` to use the whole cohort.
    drop_top
        Number of the very highest cohort scores to leave out first: they may be hidden targets.
    select
        How an adaptive norm ranks the cohort of a side. ``"own"``: by the side's own scores. ``"cross"``: by the scores
        of the trial's other side; both sides need the same cohort, or the same speakers. ``"profile"``: by how close a
        member's cohort scores are to those of the other side; needs the cohort against itself.
    statistic
        ``"mean"``: mean and standard deviation; ``"trimmed"``: the same without the fraction ``trim`` at each end;
        ``"median"``: median, and 1.4826 times the median absolute deviation.
    trim
        See ``statistic``; from 0 to below 0.5.
    ddof
        The variance is the sum of squares over n - ddof: 0 or 1.
    std_floor
        Smaller standard deviations are raised to this.
    zero_std
        If all cohort scores are equal: ``"error"``, or ``"one"`` to divide by 1.
    combine
        How `s` and `as` combine the two sides: ``"mean"`` (half the sum) or ``"sqrt2"`` (the sum over the root of 2).
    empty
        For trials without cohort scores: ``"error"``, ``"raw"`` to keep their scores, or ``"missing"`` to set them to
        NaN (a list drops them).

    Examples
    --------
    >>> NormOptions(top_k=100, select="cross")
    NormOptions(top_k=100, select='cross')
    >>> NormOptions.from_convention("hyperion", top_k=100).combine
    'sqrt2'
    """

    top_k: int | float | None = None
    excess: Literal["error", "clip"] = "error"
    drop_top: int = 0
    select: Literal["own", "cross", "profile"] = "own"
    statistic: Literal["mean", "trimmed", "median"] = "mean"
    trim: float = 0.1
    ddof: int = 0
    std_floor: float = 0.0
    zero_std: Literal["error", "one"] = "error"
    combine: Literal["mean", "sqrt2"] = "mean"
    empty: Literal["error", "raw", "missing"] = "error"

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} is {getattr(self, name)!r}, but must be one of {quoted(choices)}")
        k, drop, trim, floor = (getattr(self, name) for name in ("top_k", "drop_top", "trim", "std_floor"))
        count_or_share = k >= 1 if isinstance(k, int | np.integer) else isinstance(k, float) and 0 < k <= 1
        in_range = isinstance(floor, int | float) and (floor == 0 or 1e-30 <= floor <= 1e30)
        for name, value, right, meaning in (
            ("top_k", k, k is None or count_or_share, "a count, or a fraction up to 1.0"),
            ("drop_top", drop, isinstance(drop, int | np.integer) and drop >= 0, "a whole number from 0"),
            ("trim", trim, isinstance(trim, int | float) and 0 <= trim < 0.5, "from 0 to below 0.5"),
            ("std_floor", floor, in_range, "from 0 to 1e30"),
        ):
            if not right or isinstance(value, bool):
                raise InputError(f"{name} is {value!r}, but must be {meaning}")

    @classmethod
    def resolve(cls, options: NormOptions | None, convention: str | None, **given: Any) -> NormOptions:
        """Return ``options``, or those of a tool in ``CONVENTIONS`` with the single options that are given instead."""
        if options is not None and (given or convention is not None):
            raise InputError(f"give `options` or single options, not both: {quoted([*given, convention or 'options'])}")
        if options is not None:
            return options
        if convention is not None and convention not in CONVENTIONS:
            raise InputError(f"there is no convention {convention!r}; there are {', '.join(CONVENTIONS)}")
        names = [field.name for field in fields(cls)]
        odd = [name for name in given if name not in names]
        if odd:
            raise InputError(f"there is no norm option {quoted(odd)}; there are {', '.join([*names, 'convention'])}")
        return cls(**{**CONVENTIONS.get(convention or "", {}), **given})

    @classmethod
    def from_convention(cls, convention: str | None = None, **given: Any) -> NormOptions:
        """Return the options of a tool in ``CONVENTIONS``, with single options that are given instead."""
        return cls.resolve(None, convention, **given)

    def for_method(self, method: str) -> NormOptions:
        """Return the options for one norm; an option that has no meaning for it is an error."""
        if method in ADAPTIVE:
            return self
        if self.top_k is not None:
            adaptive = {"z": "use 'az'", "t": "use 'at'", "s": "use 'as'"}.get(method, "leave it out")
            raise InputError(f"the norm {method!r} uses the whole cohort, so top_k has no meaning; {adaptive}")
        if self.select == "profile":
            raise InputError(f"the norm {method!r} uses the whole cohort, so select has no meaning; leave it out")
        return replace(self, select="own")

    def count(self, method: str, size: int) -> int | None:
        """Return how many scores of a cohort of this size a norm uses, after ``drop_top``; None for all."""
        left = size - self.drop_top
        if size and left <= 0:
            raise InputError(f"drop_top is {self.drop_top}, but the cohort has only {size} members; drop fewer")
        if method not in ADAPTIVE:
            return None
        if self.top_k is None:
            return min(left, 300, max(2, round(0.2 * size)))
        if isinstance(self.top_k, float):
            return min(left, max(1, round(self.top_k * size)))
        if self.top_k > left and size and self.excess == "error":
            dropped = f" and drop_top {self.drop_top}" if self.drop_top else ""
            raise InputError(
                f"top_k is {self.top_k}{dropped}, but the cohort has only {size} members; use fewer, or excess='clip'"
            )
        return min(self.top_k, left)

    def __repr__(self) -> str:
        changed = (field for field in fields(self) if getattr(self, field.name) != field.default)
        return f"NormOptions({', '.join(f'{field.name}={getattr(self, field.name)!r}' for field in changed)})"
