"""What a norm or a calibration does to the scores, trial by trial."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.error_rates import equal_error_rate
from evenscore.metrics.trials import validate
from evenscore.plot.style import CLASS_LOOK, GREY, axes_or_new, legend, literal, percent
from evenscore.tables import NONTARGET, TARGET, TrialList

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plot_norm_effect"]

_MOST_VECTORS = 2000  # points; more are drawn as a picture, or files would be large and slow


def plot_norm_effect(
    before: npt.ArrayLike | TrialList,
    after: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    names: tuple[str, str] = ("Score before", "Score after"),
    most: int = 5000,
    ax: Axes | None = None,
) -> Axes:
    """Draw the score of each trial after a norm against the one before, coloured by class.

    Dashed lines are the thresholds at the EER; trials in the upper left and lower right quarter are those whose
    decision the norm changes.

    Parameters
    ----------
    before, after, labels
        Scores of the same trials in the same order, as in `evenscore.metrics.validate`; or two `TrialList`, matched by
        id, the first of which has labels.
    names
        What to write beside the two axes.
    most
        Trials of each class that are drawn; of more, always the same ones are drawn at random.
    ax
        Where to draw; by default on a new figure.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> labels = np.arange(2000) % 10 == 0
    >>> after = rng.normal(3.0 * labels)
    >>> ax = plot_norm_effect(after + rng.normal(size=2000), after, labels, most=500)
    >>> ax.get_xlabel(), [text.get_text() for text in ax.get_legend().get_texts()]
    ('Score before (EER 13.94 %)', ['500 of 1800 non-targets', '200 targets', 'threshold at the EER'])
    """
    if most < 1:
        raise InputError(f"most is {most}, but at least 1 trial must be drawn")
    x, key = validate(before, labels)
    y, _ = validate(_same_trials(before, after), key)
    ax = axes_or_new(ax)
    entries: list[tuple[Artist, str]] = []
    for name, label in (("non-target", NONTARGET), ("target", TARGET)):
        look = CLASS_LOOK[name]
        places = np.flatnonzero((key == label) & np.isfinite(x) & np.isfinite(y))
        shown = _some(places, most)
        style: dict[str, Any] = {"color": look["color"], "marker": look["marker"], "markersize": 3, "alpha": 0.5}
        flat = shown.size > _MOST_VECTORS
        (drawn,) = ax.plot(x[shown], y[shown], linestyle="", markeredgewidth=0, rasterized=flat, **style)
        share = f"{shown.size} of {places.size}" if shown.size < places.size else f"{places.size}"
        entries.append((drawn, f"{share} {name}s"))
    rates = [equal_error_rate(side, key) for side in (x, y)]
    lines = [
        draw(rate.threshold, color=GREY, linestyle="--", linewidth=0.9)
        for draw, rate in zip((ax.axvline, ax.axhline), rates, strict=True)
        if np.isfinite(rate.threshold)
    ]
    entries += [(line, "threshold at the EER") for line in lines[:1]]
    for text, name, rate in zip((ax.xaxis.label, ax.yaxis.label), names, rates, strict=True):
        literal(text, f"{name} (EER {percent(rate.eer)})")
    legend(ax, entries, loc="upper left")
    return ax


def _same_trials(before: npt.ArrayLike | TrialList, after: npt.ArrayLike | TrialList) -> npt.ArrayLike:
    """Return the scores after in the order of those before."""
    if not isinstance(after, TrialList):
        return after
    if not isinstance(before, TrialList) or after.scores is None:
        raise InputError("give two arrays of scores, or two trial lists with scores")
    match = before.match(after)
    if (match < 0).any():
        pair = before.pair(int(np.argmin(match)))
        raise InputError(f"the trial {pair} has a score before, but none after; give the scores of the same trials")
    return np.asarray(after.scores[match])


def _some(places: npt.NDArray[np.intp], most: int) -> npt.NDArray[np.intp]:
    """Return at most so many of the places, always the same ones, in their order."""
    if places.size <= most:
        return places
    return np.sort(np.random.default_rng(0).choice(places, most, replace=False))
