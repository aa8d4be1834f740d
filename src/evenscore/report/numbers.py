"""How figures are written on the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["count", "difference", "figure", "json_numbers", "percent", "share", "span"]


def figure(metric: str, value: float) -> str:
    """Return a metric as text: an error rate in percent, a cost with three decimals.

    Examples
    --------
    >>> figure("eer", 0.01234), figure("cllr", 0.12345), figure("cllr", float("inf"))
    ('1.23 %', '0.123', '∞')
    """
    if metric == "eer":
        return percent(value)
    return "∞" if value == math.inf else f"{value:.3f}"


def span(metric: str, low: float, high: float) -> str:
    """Return an interval of a metric, without repeating the unit.

    Examples
    --------
    >>> span("eer", 0.01, 0.0234)
    '1.00 to 2.34'
    """
    ends = [figure(metric, end).removesuffix(" %") for end in (low, high)]
    return f"{ends[0]} to {ends[1]}"


def difference(metric: str, value: float) -> str:
    """Return a difference of a metric with its sign; that of error rates is in percentage points.

    Examples
    --------
    >>> difference("eer", -0.0012), difference("cllr", 0.5), difference("cllr", 0.0)
    ('−0.12', '+0.500', '0.000')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else ("+∞" if value > 0 else "−∞")
    text = f"{100 * value:.2f}" if metric == "eer" else f"{value:.3f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return f"+{text}" if value > 0 else text.replace("-", "−")


def percent(rate: float) -> str:
    """Return a rate in percent, with two decimals or, where it is tiny, two digits.

    Examples
    --------
    >>> percent(0.5), percent(0.0), percent(0.000012)
    ('50.00 %', '0.00 %', '0.0012 %')
    """
    tiny = 0 < rate < 0.0001
    return f"{float(f'{100 * rate:.2g}'):.8f}".rstrip("0") + " %" if tiny else f"{100 * rate:.2f} %"


def share(part: float) -> str:
    """Return a share in whole percents.

    Examples
    --------
    >>> share(0.256), share(0.001), share(0.9999), share(1.0)
    ('26 %', 'below 1 %', 'above 99 %', '100 %')
    """
    if 0 < part < 0.005:
        return "below 1 %"
    return "above 99 %" if 0.995 <= part < 1 else f"{100 * part:.0f} %"


def count(number: int) -> str:
    """Return a number with thin spaces between thousands.

    Examples
    --------
    >>> count(1234567)
    '1\u202f234\u202f567'
    """
    return f"{number:,}".replace(",", "\u202f")


def json_numbers(values: npt.ArrayLike, digits: int = 4) -> list[Any]:
    """Return short numbers for JSON, which knows no infinity: None stands there.

    Examples
    --------
    >>> json_numbers([0.123456, float("inf"), 2.0], 3)
    [0.123, None, 2.0]
    """
    rounded: Sequence[float] = np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist()
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in rounded]
