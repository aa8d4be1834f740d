"""The text formats for the registry."""

from __future__ import annotations

from functools import partial

from evenscore.files.formats import Format, ReadOptions, Table
from evenscore.files.streams import PathLike
from evenscore.files.text.layouts import LAYOUTS, Layout
from evenscore.tables import ScoreMatrix, TrialList

__all__ = ["FORMATS"]


def _read(path: PathLike, options: ReadOptions, *, layout: Layout) -> Table:
    from evenscore.files.text.read import read_trials_text

    return read_trials_text(path, options, layout)


def _write(table: ScoreMatrix | TrialList, path: PathLike, *, layout: Layout) -> None:
    from evenscore.files.text.write import write_trials_text

    write_trials_text(table, path, layout)


FORMATS = tuple(
    Format(
        name=layout.name,
        kinds=layout.kinds,
        layout=layout.line,
        extensions=layout.extensions,
        read=partial(_read, layout=layout),
        write=partial(_write, layout=layout),
    )
    for layout in LAYOUTS.values()
)
