"""Figures of matplotlib as files; the same figure gives the same bytes."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from evenscore.errors import FileError
from evenscore.files.streams import PathLike, atomic_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_format", "save_figure"]

_METADATA = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def figure_format(path: PathLike) -> str:
    """Return svg, pdf or png, as the name of a figure ends."""
    ending = PurePath(path).suffix.lower().removeprefix(".")
    if ending not in _METADATA:
        raise FileError(path, "a figure is written as .svg, .pdf or .png; choose another name")
    return ending


def save_figure(figure: Figure, path: PathLike) -> None:
    """Write a figure as SVG, PDF or PNG (200 dots per inch), by the ending of its name, without empty margins."""
    import matplotlib

    ending = figure_format(path)
    with matplotlib.rc_context({"svg.hashsalt": "evenscore", "pdf.fonttype": 42}), atomic_output(path) as stream:
        figure.savefig(stream, format=ending, dpi=200, bbox_inches="tight", metadata=_METADATA[ending])
