"""The errors that evenscore raises on purpose.

Every message is one sentence that says what is wrong, where, and what to do about it. The command line prints it
without a traceback and exits with code 2.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

__all__ = ["EvenscoreError", "FileError", "InputError", "printable"]


def printable(text: str) -> str:
    r"""Return the text on one line, with escapes in place of line ends, control codes and marks that nobody sees.

    Examples
    --------
    >>> print(printable("a\tb\x1b[31m [bold]c"))
    a\tb\x1b[31m [bold]c
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class EvenscoreError(Exception):
    """Anything evenscore refuses to do; the message says why and what to do."""


class InputError(EvenscoreError, ValueError):
    """Values that make no sense: wrong shapes, unknown or duplicate ids, non-finite scores, ..."""


class FileError(EvenscoreError):
    """A file that cannot be read or written.

    Parameters
    ----------
    path
        The file; ``-`` is printed as ``<stdin>``.
    problem
        What was found, what was expected, and what to do.
    line
        Line number, counted from 1, for text files.
    part
        Name of the dataset, array or key inside the file, for binary files.

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
        self.problem = problem
        self.line = line
        self.part = part
        where = printable(self.path)
        if line is not None:
            where += f":{line}"
        if part is not None:
            where += f"[{printable(part)}]"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[Any, ...]:  # so that it can come from another process
        return _file_error, (self.path, self.problem, self.line, self.part)


def _file_error(path: str, problem: str, line: int | None, part: str | None) -> FileError:
    return FileError(path, problem, line=line, part=part)
