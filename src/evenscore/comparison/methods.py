"""The methods that are compared, by name: ``as``, ``as:top_k=100``, ``lgsm:dim=1``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenscore.errors import InputError
from evenscore.norms import fit_methods
from evenscore.norms.options import ADAPTIVE_METHODS, USUAL, USUAL_PART, USUAL_TOP_K, usual_count
from evenscore.norms.registry import NO_OPTIONS, check_options, method_named
from evenscore.spelling import name_and_options
from evenscore.tables import LabelledBlocks

__all__ = ["RAW", "Method", "as_methods", "listed"]

RAW = "raw"
# lgsm:dim=0 has the Gaussians of lgsm and no norm: between the two stands what the norm does.
_DEFAULT = (RAW, "z", "t", "zt", "tz", "s", "as", "at", "lgsm:dim=0", "lgsm", "evidence")


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


def as_methods(methods: Iterable[str | Method] | None, sides: Iterable[LabelledBlocks]) -> list[Method]:
    """Return the methods in the one order that does not depend on how they were listed; raw is always there.

    ``sides`` have the cohorts, by whose sizes the usual ``top_k`` of an adaptive norm becomes a number.

    Examples
    --------
    >>> [method.name for method in as_methods(["s", "as", "z"], [])]
    ['raw', 'z', 's', 'as:top_k=usual']
    """
    if isinstance(methods, str):
        raise InputError(f"methods is the single text {methods!r}, but must be a list of names")
    usual = fit_methods()
    wanted = [name for name in _DEFAULT if Method.of(name).norm in usual] if methods is None else methods
    sizes = _cohort_sizes(sides)
    found = [_with_top_k(one, sizes) for one in wanted]
    if not any(method.name == RAW for method in found):
        found.append(Method(RAW, RAW))
    for method in found:
        method_named(method.norm)
        if method.name == RAW and (method.norm != RAW or method.options):
            raise InputError("the method called 'raw' must be the raw scores; call yours something else")
        method.check()
    unique = {method.name: method for method in found}
    for method in found:
        if unique[method.name] != method:
            raise InputError(f"two different methods are called {method.name!r}; give them two names")
    known = fit_methods()
    return sorted(unique.values(), key=lambda method: (known.index(method.norm), method.name))


def _with_top_k(one: str | Method, sizes: Sequence[int]) -> Method:
    """Return a method that says what it takes of its cohort; in the name, too, if that is a norm with its options."""
    method = Method.of(one) if isinstance(one, str) else one
    if method.norm not in ADAPTIVE_METHODS or "options" in method.options or method.options.get("top_k") is not None:
        return method
    top_k: int | float | str = USUAL  # unless one number says the same for every cohort
    if sizes and all(usual_count(size) == USUAL_TOP_K for size in sizes):
        top_k = USUAL_TOP_K
    elif sizes and all(usual_count(size) == round(USUAL_PART * size) for size in sizes):
        top_k = USUAL_PART
    name = f"{method.name}:top_k={top_k}" if isinstance(one, str) else method.name
    return Method(name, method.norm, {**method.options, "top_k": top_k})


def _cohort_sizes(sides: Iterable[LabelledBlocks]) -> list[int]:
    return [
        len(ids)
        for part in sides
        for ids in (part.blocks.cohort_enroll_ids, part.blocks.cohort_test_ids)
        if ids is not None
    ]


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
