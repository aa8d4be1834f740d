"""How norms and calibrations are written in one word: ``as``, ``as:top_k=300:select=cross``, ``logistic:l2=1e-3``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evenscore.errors import InputError

__all__ = ["checked_options", "name_and_options"]

_EXAMPLES = {
    "norm": "as:top_k=100",
    "calibration": "logistic:l2=1e-3",
    "cohort unit": "speaker:size=300",
    "number of draws": "1000:level=0.9:seed=3",
    "adaptation": "kaldi:within=0.3:between=0.7",
}
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def name_and_options(text: str, what: str = "norm") -> tuple[str, dict[str, Any]]:
    """Return the name that a text begins with, and the options that follow after colons.

    Parameters
    ----------
    text
        Such as ``as:top_k=300:select=cross``.
    what
        What it names, for messages.

    Examples
    --------
    >>> name_and_options("as:top_k=300:select=cross")
    ('as', {'top_k': 300, 'select': 'cross'})
    >>> name_and_options("gaussian:shared_variance=true", "calibration")
    ('gaussian', {'shared_variance': True})
    """
    name, *pieces = text.strip().split(":")
    options: dict[str, Any] = {}
    for piece in pieces:
        option, mark, value = piece.partition("=")
        if not name or not mark or not option or option in options:
            raise InputError(f"{text!r} must be a {what} and its options, such as {_EXAMPLES[what]}")
        options[option] = _value(value)
    return name, options


def checked_options(owner: str, options: Mapping[str, Any], kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return options of their owner's kinds: float, int, bool or str; others, and values of other kinds, are refused.

    Examples
    --------
    >>> checked_options("the calibration logistic", {"l2": "much"}, {"p_target": float, "l2": float})
    Traceback (most recent call last):
    evenscore.errors.InputError: l2 is 'much', but must be a number
    """
    meanings = {float: "a number", int: "a whole number", bool: "true or false", str: "a word", list: "a list"}
    for option, value in options.items():
        if option not in kinds:
            raise InputError(f"{owner} has no option {option!r}; it has {', '.join(kinds)}")
        accepted = (int, float) if kinds[option] is float else (kinds[option],)
        if type(value) not in accepted:
            raise InputError(f"{option} is {value!r}, but must be {meanings[kinds[option]]}")
    return {option: kinds[option](value) for option, value in options.items()}


def _value(text: str) -> Any:
    """Return a number, a truth value or a text."""
    if _NUMBER.fullmatch(text):
        return float(text) if any(mark in text for mark in ".eE") else int(text)
    return {"true": True, "false": False}.get(text.lower(), text)
