"""How figures are written on the page."""

from __future__ import annotations

import math

from evenscore.plot.style import percent

__all__ = ["count", "difference", "figure", "interval", "share"]


def figure(metric: str, value: float) -> str:
    """Return a metric as text: an error rate in percent, a cost with three decimals.

    Examples
    --------
    >>> figure("eer", 0.01234), figure("cllr", 0.12345), figure("cllr", float("inf"))
    ('1.23 %', '0.123', '∞')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞"
    return percent(value) if metric == "eer" else f"{value:.3f}"


def interval(metric: str, low: float, high: float) -> str:
    """Return an interval of a metric, without its unit.

    Examples
    --------
    >>> interval("eer", 0.01, 0.0234)
    '1.00 to 2.34'
    """
    return f"{figure(metric, low)} to {figure(metric, high)}".replace(" %", "")


def difference(metric: str, value: float) -> str:
    """Return a difference of a metric with its sign; that of error rates is in percentage points.

    Examples
    --------
    >>> difference("eer", -0.0012), difference("cllr", 0.5), difference("cllr", 0.0)
    ('−0.12', '+0.500', '0.000')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else f"{value:+f}".replace("inf", "∞").replace("-", "−")
    text = f"{100 * value:.2f}" if metric == "eer" else f"{value:.3f}"
    if float(text) == 0:
        return text.removeprefix("-")
    return f"+{text}" if value > 0 else text.replace("-", "−")


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
    """Return a number with thin spaces between thousands."""
    return f"{number:,}".replace(",", "\u202f")
