"""What the commands of ``evenscore plot`` share: the systems to draw, and the file to draw them into."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

import typer

from evenscore.cli.evaluated_trials import evaluated, open_labelled
from evenscore.cli.labelled import LabelSources
from evenscore.errors import InputError
from evenscore.plot.style import figure_style, literal, save_figure
from evenscore.tables import TrialList

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FigureFile", "names_of", "read_systems", "size_of"]

_SMALLEST, _LARGEST = 1.0, 100.0  # inches


@dataclass(frozen=True)
class FigureFile:
    """A figure that is still to be drawn."""

    path: str
    title: str | None = None
    size: tuple[float, float] | None = None
    dpi: int = 200

    def draw(self, plot: Callable[[Axes], Axes]) -> None:
        """Draw on new axes, and write the file when the figure is done."""
        with figure_style():
            from matplotlib.figure import Figure

            ax = plot(Figure(figsize=self.size).subplots())
            if self.title is not None:
                literal(ax.set_title(""), self.title)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                save_figure(ax, self.path, dpi=self.dpi)
        if any("Glyph" in str(warning.message) for warning in caught):
            typer.echo("warning: the font lacks letters of a name or the title; boxes stand in their place", err=True)


def size_of(text: str) -> tuple[float, float]:
    """Return width and height in inches from a text such as '5x4'.

    Examples
    --------
    >>> size_of("5.5x4")
    (5.5, 4.0)
    """
    parts = text.lower().split("x")
    try:
        width, height = (float(part) for part in parts)
    except ValueError:
        raise InputError(f"the size is {text!r}, but must be width x height in inches, such as 5x4") from None
    if not all(_SMALLEST <= side <= _LARGEST for side in (width, height)):
        raise InputError(f"the size is {text!r}, but a figure has from {_SMALLEST:g} to {_LARGEST:g} inches a side")
    return width, height


def names_of(paths: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the systems: those given, else the files' names, with folders where they are equal.

    Examples
    --------
    >>> names_of(["a/dev.scores", "b/dev.scores"], [])
    ['a/dev.scores', 'b/dev.scores']
    >>> names_of(["a/raw.scores", "a/norm.npz"], [])
    ['raw.scores', 'norm.npz']
    """
    if not names:
        short = [PurePath(path).name for path in paths]
        names = short if len(set(short)) == len(short) else list(paths)
    elif len(names) != len(paths):
        raise InputError(f"there are {len(paths)} files of scores, but {len(names)} names; give one --name for each")
    repeated = [name for name in names if list(names).count(name) > 1]
    if repeated:
        raise InputError(f"two systems are called {repeated[0]!r}; give them different names with --name")
    return list(names)


def read_systems(paths: Sequence[str], names: Sequence[str], labels: LabelSources) -> dict[str, TrialList]:
    """Read labelled scores by name of system; one system for which no name is given has the empty name."""
    shown = [""] if len(paths) == 1 and not names else names_of(paths, names)
    files = open_labelled(paths, labels)
    return {name: evaluated(file).trials for name, file in zip(shown, files, strict=True)}
