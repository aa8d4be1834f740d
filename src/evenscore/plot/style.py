"""The look of the figures: colours that everybody can tell apart, lines that stay apart in grey print, plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from evenscore.errors import EvenscoreError

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

__all__ = [
    "CLASS_LOOK",
    "GREY",
    "MARKERS",
    "PALETTE",
    "axes_or_new",
    "figure_style",
    "legend",
    "literal",
    "percent",
    "require_matplotlib",
    "system_look",
]

#: Okabe and Ito's colours that stand out on white, the darkest first
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#595959"  #: for what belongs to no system
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))

#: colour, line and marker of the targets and of the non-targets
CLASS_LOOK: dict[str, dict[str, Any]] = {
    "target": {"color": PALETTE[0], "linestyle": "-", "marker": "^"},
    "non-target": {"color": PALETTE[1], "linestyle": "--", "marker": "o"},
}

_STYLE: Any = {
    "figure.figsize": (5.2, 4.4),
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.fontsize": 9,
    "legend.framealpha": 0.9,
    "legend.handlelength": 2.6,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def require_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed, and say how to get it."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise EvenscoreError("figures need the package matplotlib; install it: pip install 'evenscore[plot]'") from None


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in the look of evenscore, whatever the user's own settings of matplotlib are."""
    require_matplotlib()
    import matplotlib.style

    with matplotlib.style.context(["default", _STYLE]):
        yield


def axes_or_new(ax: Axes | None) -> Axes:
    """Return the axes, or those of a new figure in the look of evenscore."""
    if ax is not None:
        return ax
    require_matplotlib()
    import matplotlib
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(_STYLE):
        return plt.subplots()[1]


def system_look(place: int) -> dict[str, Any]:
    """Return colour and line of the system at this place; 35 systems look different."""
    return {"color": PALETTE[place % len(PALETTE)], "linestyle": _LINES[place % len(_LINES)]}


def literal(text: Text, content: str) -> None:
    """Show a text that a user gave as it stands: dollars and backslashes are no formulas."""
    text.set_parse_math(False)
    text.set_usetex(False)
    text.set_text(content)


def legend(ax: Axes, entries: Sequence[tuple[Artist, str]], **options: Any) -> None:
    """Give the axes a legend whose texts are shown as they stand, even those that begin with an underscore."""
    if not entries:
        return
    handles, names = zip(*entries, strict=True)
    made = ax.legend(list(handles), [f"entry {place}" for place in range(len(names))], **options)
    for text, name in zip(made.get_texts(), names, strict=True):
        literal(text, name)


def percent(rate: float) -> str:
    """Return a rate as a percentage with two decimals, such as '1.24 %', or two digits if it is tiny.

    Examples
    --------
    >>> percent(0.01239), percent(0.0), percent(0.000012)
    ('1.24 %', '0.00 %', '0.0012 %')
    """
    tiny = 0 < rate < 0.0001
    return f"{float(f'{100 * rate:.2g}'):.12f}".rstrip("0") + " %" if tiny else f"{100 * rate:.2f} %"
