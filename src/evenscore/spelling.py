"""The mini-language ``NAME:option=value`` of norms, calibrations and scorers."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

from evenscore.errors import InputError

__all__ = ["parse_name"]


def parse_name(text: str, known: Sequence[str] | None = None) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of ``NAME:option=value:option=value``; numbers, true and false are such.

    Examples
    --------
    >>> parse_name("as:top_k=300:select=cross")
    ('as', {'top_k': 300, 'select': 'cross'})
    """
    name, *settings = text.split(":")
    options: dict[str, Any] = {}
    for setting in settings:
        option, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} in {text!r} must be OPTION=VALUE, such as top_k=300")
        if known is not None and option not in known:
            plain = {one.replace("_", ""): one for one in known}
            close = plain.get(option.lower().replace("_", "").replace("-", "").replace("topn", "topk"))
            close = close or next(iter(get_close_matches(option, known, 1)), None)
            hint = f"did you mean {close!r}?" if close else f"there are {', '.join(known)}"
            raise InputError(f"{name!r} has no option {option!r}; {hint}")
        try:
            options[option] = int(value) if value.lstrip("+-").isdigit() else float(value)
        except ValueError:
            options[option] = {"true": True, "false": False}.get(value.lower(), value)
    return name, options
