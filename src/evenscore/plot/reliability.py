"""Reliability: what LLRs say against what they turn out to mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from evenscore.errors import InputError
from evenscore.metrics.hull import Rocch, rocch
from evenscore.plot.style import GREY, SystemsLike, as_systems, axes_or_new, legend, system_look, visible_range

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_reliability"]


def plot_reliability(
    scores: SystemsLike,
    labels: npt.ArrayLike | None = None,
    *,
    p_target: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the LLR that scores turn out to have (by PAV, the best monotone calibration) against what they claim.

    A calibrated system follows the diagonal; below it, LLRs promise too much. Blocks of one class only have an
    infinite LLR and end at the edge of the figure.

    Parameters
    ----------
    scores, labels
        LLRs, as in `evenscore.metrics.validate`, or `SortedScores`; or several systems by name.
    p_target
        Show posterior probabilities of a target at this prior instead of LLRs.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> ax = plot_reliability({"LLRs": rng.normal(np.where(labels, 2.0, -2.0), 2.0)}, labels, p_target=0.1)
    >>> ax.get_xlabel()
    'Posterior probability of a target'
    """
    if p_target is not None and not 0 < p_target < 1:
        raise InputError(f"p_target is {p_target}, but must lie between 0 and 1")
    systems = as_systems(scores, labels)
    ax = axes_or_new(ax)
    low, high = visible_range(*(side for trials in systems.values() for side in (trials.target, trials.nontarget)))
    ends = (low, high) if p_target is None else (0.0, 1.0)
    ax.plot(ends, ends, color=GREY, linewidth=0.8, zorder=0.9)
    entries: list[tuple[Artist, str]] = []
    highest = 0.0
    for place, (name, trials) in enumerate(systems.items()):
        claimed, found = _staircase(rocch(trials))
        if p_target is not None:
            claimed, found = (expit(side + logit(p_target)) for side in (claimed, found))
        finite = found[np.isfinite(found)]
        highest = max(highest, *np.abs(finite)) if finite.size else highest
        beyond = 1e3 * (1 + max(abs(low), abs(high), highest))  # off the figure, but a number
        (line,) = ax.plot(*(np.clip(side, -beyond, beyond) for side in (claimed, found)), **system_look(place))
        entries.append((line, name))
    if p_target is None:
        ends = max(low, -1.6 * highest - 1), min(high, 1.6 * highest + 1)
        ax.set(xlabel="Log-likelihood ratio", ylabel="Log-likelihood ratio after PAV")
    else:
        ax.set(xlabel="Posterior probability of a target", ylabel="Posterior probability after PAV")
    ax.set(xlim=ends, ylim=ends)
    ax.set_aspect("equal", adjustable="box")
    legend(ax, [entry for entry in entries if entry[1]], loc="best")
    return ax


def _staircase(hull: Rocch) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return lowest and highest score of each block in turn, and its LLR at both."""
    claimed = np.column_stack((hull.low, hull.high)).ravel()
    return claimed, np.repeat(hull.llr, 2)
