"""The look of all figures, and the systems that they show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from evenscore.errors import EvenscoreError, InputError
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_points

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

__all__ = ["GREY", "System", "SystemsLike", "colours", "figure_style", "legend", "new_axes", "start_figure"]

SystemsLike: TypeAlias = "ScoresLike | Mapping[str, ScoresLike]"
Location = Literal["best", "upper left", "upper center", "upper right"]
GREY = "#7F7F7F"  #: for what belongs to no system; visible on a white and on a dark background


class System(NamedTuple):
    """A system in a figure; one that is drawn alone has the empty name."""

    name: str
    trials: Points
    color: str
    line: Any  #: as matplotlib's linestyle
    marker: str


_STYLE: Any = {
    "figure.figsize": (5.2, 4.4),
    "figure.constrained_layout.use": True,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.fontsize": 9,
}


@contextmanager
def figure_style(*, dark: bool = False) -> Iterator[None]:
    """Draw on a white or a dark background, whatever the user's settings of matplotlib are.

    Examples
    --------
    >>> with figure_style(dark=True):
    ...     ax = new_axes(None)
    """
    try:
        import matplotlib.style
    except ImportError:
        raise EvenscoreError("figures need the package matplotlib; install it: pip install 'evenscore[plot]'") from None
    with matplotlib.style.context(["dark_background" if dark else "default", _STYLE]):
        yield


def new_axes(ax: Axes | None) -> Axes:
    """Return the axes, or those of a new figure in our style, on the background that the user has chosen."""
    if ax is not None:
        return ax
    import matplotlib
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(_STYLE):
        return plt.subplots()[1]


def colours(ax: Axes) -> tuple[str, ...]:
    """Return the colours of Okabe and Ito, safe for colour-blind readers, that contrast with the background."""
    from matplotlib.colors import to_rgb

    if np.dot(to_rgb(ax.get_facecolor()), (0.3, 0.6, 0.1)) < 0.5:
        return ("#56B4E9", "#E69F00", "#2BC29A", "#E9A5CB", "#F0E442", "#FF8A4C", "#FFFFFF")
    return ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def start_figure(
    scores: SystemsLike, labels: LabelsLike, ax: Axes | None, *, thresholds: Sequence[float] | None = None
) -> tuple[Axes, list[System]]:
    """Return the axes, and the systems with their look; those whose rates only matter at thresholds may be merged."""
    how = {"merge": False} if thresholds is None else {"thresholds": thresholds}
    named = {str(name): system for name, system in scores.items()} if isinstance(scores, Mapping) else {"": scores}
    if not named:
        raise InputError("there is no system to draw; give at least one")
    systems, lines, markers = [], ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1))), ("o", "s", "^", "D", "v", "P", "X")
    for at, (name, system) in enumerate(named.items()):
        try:
            trials = as_points(system, None if isinstance(system, Points) else labels, **how)
        except InputError as error:
            raise InputError(f"system {name!r}: {error}" if name else str(error)) from None
        systems.append(System(name, trials, "", lines[at % len(lines)], markers[at % len(markers)]))
    ax = new_axes(ax)
    palette = colours(ax)
    return ax, [one._replace(color=palette[at % len(palette)]) for at, one in enumerate(systems)]


def literal(text: Text, content: str) -> None:
    """Set a text that a user has given, without reading dollars and backslashes as formulas."""
    text.set(parse_math=False, usetex=False, text=content)


def legend(ax: Axes, entries: Sequence[tuple[Artist, str]], *, loc: Location = "best", ncols: int = 1) -> None:
    """Add a legend whose texts are shown literally, even those that begin with an underscore."""
    made = ax.legend([handle for handle, _ in entries], ["-"] * len(entries), loc=loc, ncols=ncols)
    for text, (_, name) in zip(made.get_texts(), entries, strict=True):
        literal(text, name)


def percent(rate: float) -> str:
    """Return a rate as a percentage with two decimals, or with two digits if it is tiny."""
    tiny = 0 < rate < 0.0001
    return f"{float(f'{100 * rate:.2g}'):.12f}".rstrip("0") + " %" if tiny else f"{100 * rate:.2f} %"


def visible_range(all_trials: Iterable[Points]) -> tuple[float, float]:
    """Return a range that shows all finite scores but 0.05 % at either end of each class."""
    ends = []
    for trials in all_trials:
        for weight in (trials.target, trials.nontarget):
            finite = np.isfinite(trials.score) & (weight > 0)
            if finite.any():
                below = np.cumsum(weight[finite]) / weight[finite].sum()
                at = np.searchsorted(below, [5e-4, 1 - 5e-4], side="right").clip(max=below.size - 1)
                ends.append(trials.score[finite][at])
    low, high = (float(np.min(ends)), float(np.max(ends))) if ends else (-1.0, 1.0)
    margin = 0.03 * (high - low) or max(abs(low), 1.0) / 2
    return low - margin, high + margin
