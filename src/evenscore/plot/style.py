"""The look of the figures: colours that everybody can tell apart, lines that stay apart in grey print, plain text.

And what all of them share: the systems that they show, and files that are the same for the same figure.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.errors import EvenscoreError, FileError, InputError
from evenscore.metrics.trials import ScoresLike, SortedScores, sort_scores

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    from evenscore.files.streams import PathLike

__all__ = [
    "CLASS_LOOK",
    "FIGURE_FORMATS",
    "GREY",
    "MARKERS",
    "PALETTE",
    "SystemsLike",
    "as_systems",
    "axes_or_new",
    "figure_format",
    "figure_style",
    "legend",
    "literal",
    "percent",
    "require_matplotlib",
    "save_figure",
    "system_look",
    "visible_range",
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

FIGURE_FORMATS = ("svg", "pdf", "png")  #: endings of the names of figures
# Nothing in a file may depend on the time or on chance.
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
_FIXED: Any = {"svg.hashsalt": "evenscore", "pdf.fonttype": 42}
SystemsLike: TypeAlias = "ScoresLike | Mapping[str, ScoresLike]"
_TAIL = 5e-4  # share of the scores of a class that may lie beyond either end of an axis of scores


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


def figure_format(path: PathLike) -> str:
    """Return the format that the name of a figure asks for.

    Examples
    --------
    >>> figure_format("det.SVG")
    'svg'
    """
    ending = PurePath(path).suffix.lower().removeprefix(".")
    if ending not in FIGURE_FORMATS:
        known = ", ".join(f".{name}" for name in FIGURE_FORMATS)
        raise FileError(path, f"a figure's name must end in one of {known}; choose another name")
    return ending


def save_figure(figure: Figure | Axes, path: PathLike, *, dpi: float = 200) -> None:
    """Write a figure as SVG, PDF or PNG, by the ending of the name; the same figure gives the same bytes.

    The file appears under its name only when all of it is written.

    Parameters
    ----------
    figure
        The figure, or axes in it.
    path
        The file.
    dpi
        Dots per inch of PNG, and of pictures within SVG and PDF.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore.plot import plot_det
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "det.svg"
    >>> save_figure(plot_det([-1.0, 0.0, 0.5, 2.0], [0, 1, 0, 1]), path)
    >>> path.read_bytes()[:5]
    b'<?xml'
    """
    ending = figure_format(path)
    require_matplotlib()
    import matplotlib

    from evenscore.files.streams import atomic_output

    whole: Any = getattr(figure, "figure", None) or figure
    buffer = io.BytesIO()
    with matplotlib.rc_context(_FIXED):
        whole.savefig(buffer, format=ending, dpi=dpi, metadata=_METADATA[ending])
    with atomic_output(path) as stream:
        stream.write(buffer.getvalue())


def as_systems(scores: SystemsLike, labels: npt.ArrayLike | None) -> dict[str, SortedScores]:
    """Return sorted scores by name of system; one system alone has the empty name.

    Examples
    --------
    >>> as_systems({"raw": [1.0, 2.0], "normalized": [-1.0, 1.0]}, [0, 1])
    {'raw': SortedScores(1 targets, 1 non-targets, float64), 'normalized': SortedScores(1 targets, ...)}
    """
    if not isinstance(scores, Mapping):
        return {"": sort_scores(scores, labels)}
    if not scores:
        raise InputError("there is no system to draw; give at least one")
    return {str(name): _sorted(str(name), system, labels) for name, system in scores.items()}


def _sorted(name: str, system: ScoresLike, labels: npt.ArrayLike | None) -> SortedScores:
    try:
        return sort_scores(system, None if isinstance(system, SortedScores) else labels)
    except InputError as error:
        raise InputError(f"system {name!r}: {error}") from None


def visible_range(*sides: npt.NDArray[np.floating]) -> tuple[float, float]:
    """Return a range that shows nearly all finite scores, so that a few far ones do not squeeze the rest.

    The scores of each side are sorted.
    """
    lows, highs = [], []
    for side in sides:
        finite = side[np.searchsorted(side, -np.inf, side="right") : np.searchsorted(side, np.inf)]
        if finite.size:
            last = finite.size - 1
            lows.append(float(finite[int(_TAIL * last)]))
            highs.append(float(finite[last - int(_TAIL * last)]))
    if not lows:
        return -1.0, 1.0
    low, high = min(lows), max(highs)
    margin = 0.03 * (high - low) or max(abs(low), 1.0) / 2
    return low - margin, high + margin
