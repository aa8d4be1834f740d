"""Axes on which the errors of Gaussian scores are straight lines; rates in, percentages on the ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, Locator, NullLocator
from scipy.special import ndtr, ndtri

__all__ = ["SMALLEST_RATE", "ProbitLocator", "probit", "set_probit_axes"]

SMALLEST_RATE = 1e-12  #: rates of 0 and 1, which are infinitely far away, are drawn here and at 1 minus it

# The usual ticks of DET plots; where they would be crowded, the first ones stay.
_TICKS = (
    *(0.01, 0.1, 0.4, 0.001, 0.0001, 0.00001, 0.05, 0.2, 0.02, 0.005, 0.8, 0.95, 0.99, 0.6, 0.9, 0.98),
    *(0.002, 0.0005, 0.0002, 0.00005, 0.00002, 0.000005, 0.000002, 0.000001, 0.995, 0.998, 0.999),
)
_ROOM = {"x": 34.0, "y": 15.0}  # points of length that a label needs


def probit(rate: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the quantile of the standard normal distribution."""
    return np.asarray(ndtri(np.clip(rate, SMALLEST_RATE, 1 - SMALLEST_RATE)))


class ProbitLocator(Locator):
    """Ticks at round percentages, as many as there is room for."""

    axis: Any  # given by matplotlib

    def __call__(self) -> Sequence[float]:
        """Return the ticks of the range that is shown."""
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        """Return the ticks between two rates."""
        low, high = sorted(probit([vmin, vmax]).tolist())
        least = (high - low) / self._most()
        kept: dict[float, float] = {}
        for rate in _TICKS:
            place = float(probit(rate))
            within = low - 1e-9 <= place <= high + 1e-9
            if within and all(abs(place - other) >= least for other in kept.values()):
                kept[rate] = place
        return sorted(kept)

    def _most(self) -> float:
        """Return how many labels the axis has room for."""
        box = self.axis.axes.get_window_extent()
        length = box.width if self.axis.axis_name == "x" else box.height
        return max(length * 72 / self.axis.axes.figure.dpi / _ROOM[self.axis.axis_name], 2.0)


def set_probit_axes(ax: Axes, low: tuple[float, float], high: tuple[float, float]) -> None:
    """Make both axes probit axes from the rates ``low`` to the rates ``high``, with the same unit on both."""
    functions: Any = (probit, ndtr)
    for axis, set_scale, set_limits, ends in (
        (ax.xaxis, ax.set_xscale, ax.set_xlim, (low[0], high[0])),
        (ax.yaxis, ax.set_yscale, ax.set_ylim, (low[1], high[1])),
    ):
        set_limits(*ends)  # before the scale: its inverse knows rates only
        set_scale("function", functions=functions)
        set_limits(*ends)
        axis.set_major_locator(ProbitLocator())
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda rate, _: f"{100 * rate:.6g}"))
    ax.set_aspect("equal", adjustable="box")
