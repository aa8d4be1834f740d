"""The methods that are compared, by name: ``as``, ``as:top_k=100``, ``lgsm:dim=1``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenscore.errors import InputError
from evenscore.norms import fit_methods
from evenscore.norms.options import DEFAULT_TOP_K
from evenscore.norms.registry import NO_OPTIONS, check_options
from evenscore.spelling import name_and_options
from evenscore.tables import LabelledBlocks

__all__ = ["RAW", "Method", "as_methods", "default_methods", "listed"]

RAW = "raw"
# lgsm:dim=0 has the Gaussians of lgsm and no norm: between the two stands what the norm does.
_DEFAULT = (RAW, "z", "t", "zt", "tz", "s", "as", "at", "lgsm:dim=0", "lgsm", "evidence")
_ADAPTIVE = ("as", "at")
_PART_OF_COHORT = 0.2  # what adaptive norms take by default of a cohort that is not larger than their usual count


@dataclass(frozen=True)
class Method:
    """A norm with its options, and what it is called in tables.

    Parameters
    ----------
    name
        What it is called.
    norm
        The norm, as `evenscore.fit_norm` knows it.
    options
        Of the norm.

    Examples
    --------
    >>> Method.of("as:top_k=100:select=cross")
    Method(name='as:top_k=100:select=cross', norm='as', options={'top_k': 100, 'select': 'cross'})
    >>> Method("nearest", "as", {"top_k": 50})
    Method(name='nearest', norm='as', options={'top_k': 50})
    """

    name: str
    norm: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Method:
        """Return the method that a text names: the norm, and after colons its options."""
        norm, options = name_and_options(text)
        if any(name in NO_OPTIONS for name in options):
            raise InputError(f"the method {text!r} must be a norm and its options, such as as:top_k=100")
        return cls(text.strip(), norm, options)

    def check(self) -> None:
        """Refuse options that the norm cannot have, whatever the scores are."""
        try:
            check_options(self.norm, self.options)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None


def as_methods(methods: Iterable[str | Method] | None, evaluation: Sequence[LabelledBlocks]) -> list[Method]:
    """Return the methods in the one order that does not depend on how they were listed; raw is always there.

    Examples
    --------
    >>> [method.name for method in as_methods(["s", "z"], [])]
    ['raw', 'z', 's']
    """
    if isinstance(methods, str):
        raise InputError(f"methods is the single text {methods!r}, but must be a list of names")
    wanted = default_methods(evaluation) if methods is None else methods
    found = [one if isinstance(one, Method) else Method.of(one) for one in wanted]
    if not any(method.name == RAW for method in found):
        found.append(Method(RAW, RAW))
    known = fit_methods()
    for method in found:
        if method.norm not in known:
            raise InputError(f"there is no method {method.norm!r}; there are {', '.join(known)}")
        if method.name == RAW and (method.norm != RAW or method.options):
            raise InputError("the method called 'raw' must be the raw scores; call yours something else")
        method.check()
    unique = {method.name: method for method in found}
    for method in found:
        if unique[method.name] != method:
            raise InputError(f"two different methods are called {method.name!r}; give them two names")
    return sorted(unique.values(), key=lambda method: (known.index(method.norm), method.name))


def default_methods(evaluation: Sequence[LabelledBlocks]) -> list[str]:
    """Return the methods that are compared if none are named.

    Adaptive norms take their usual count of the cohort if it is larger, else a part of it, or they would be the same
    as the norms that take all of it.
    """
    known = fit_methods()
    sizes = [
        len(ids)
        for part in evaluation
        for ids in (part.blocks.cohort_enroll_ids, part.blocks.cohort_test_ids)
        if ids is not None
    ]
    small = bool(sizes) and min(sizes) <= DEFAULT_TOP_K
    names = [name for name in _DEFAULT if Method.of(name).norm in known]
    return [f"{name}:top_k={_PART_OF_COHORT}" if small and name in _ADAPTIVE else name for name in names]


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON can hold them; what it cannot hold is described by text."""
    plain = {}
    for name in sorted(options):
        value = options[name]
        try:
            plain[name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            plain[name] = repr(value)
    return plain


def listed(names: tuple[str, ...]) -> str:
    """Return names as a sentence lists them.

    Examples
    --------
    >>> listed(("z", "t", "s"))
    'z, t and s'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
