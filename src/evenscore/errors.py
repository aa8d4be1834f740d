"""The errors that evenscore raises on purpose.

A message is one sentence: what is wrong, where, and what to do. The command line prints it and exits with code 2.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from os import PathLike

__all__ = ["EvenscoreError", "FileError", "InputError", "quoted"]


class EvenscoreError(Exception):
    """Anything that evenscore refuses to do."""


class InputError(EvenscoreError, ValueError):
    """Values that cannot be used: wrong shapes, unknown or repeated ids, infinite scores."""


class FileError(EvenscoreError):
    """A file that cannot be read or written.

    Examples
    --------
    >>> print(FileError("dev.scores", "score 'abc' is not a number", line=182))
    dev.scores:182: score 'abc' is not a number
    >>> print(FileError("dev.h5", "the dataset is missing", part="/ID/row_ids"))
    dev.h5[/ID/row_ids]: the dataset is missing
    """

    def __init__(
        self, path: str | PathLike[str], problem: str, *, line: int | None = None, part: str | None = None
    ) -> None:
        self.path = "<stdin>" if str(path) == "-" else str(path)
        self.problem, self.line, self.part = problem, line, part
        where = self.path + ("" if line is None else f":{line}") + ("" if part is None else f"[{part}]")
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[object, ...]:  # errors travel between the processes of a cluster
        return partial(FileError, line=self.line, part=self.part), (self.path, self.problem)


def quoted(values: Iterable[object], most: int = 3) -> str:
    """Return some values for a message: the first ones, and how many more there are.

    Examples
    --------
    >>> quoted("abcde")
    "'a', 'b', 'c' and 2 more"
    """
    values = [str(value) for value in values]
    shown = ", ".join(map(repr, values[:most]))
    return shown if len(values) <= most else f"{shown} and {len(values) - most} more"
