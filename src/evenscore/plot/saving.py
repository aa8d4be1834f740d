"""Writing figures so that the same figure always gives the same file."""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from evenscore.errors import FileError
from evenscore.plot.style import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from evenscore.files.streams import PathLike

__all__ = ["FIGURE_FORMATS", "figure_format", "save_figure"]

FIGURE_FORMATS = ("svg", "pdf", "png")  #: endings of the names of figures

# Nothing in a file may depend on the time or on chance.
_METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
_FIXED: Any = {"svg.hashsalt": "evenscore", "pdf.fonttype": 42}


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
