"""What a command does when something goes wrong: one sentence on standard error and an exit code."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, ParamSpec

import typer

from evenscore.cli.option_records import option_name
from evenscore.cli.output import printable
from evenscore.errors import EvenscoreError

__all__ = ["DEBUG", "FAILED", "INTERRUPTED", "PIPE_CLOSED", "WRONG_USE", "guarded", "with_options"]

FAILED = 1  #: exit code: evenscore could not do what it should
WRONG_USE = 2  #: exit code: the options or the files are not right
INTERRUPTED = 130  #: exit code after Ctrl-C, as shells have it
PIPE_CLOSED = 141  #: exit code when nobody reads the output any more, as shells have it
DEBUG = "EVENSCORE_DEBUG"  #: environment variable; with "1" a failure prints its traceback

_REPAIRING = ("convert", "info")  # commands that read files with repairs
_ARGUMENT = re.compile(
    r"(read it with )?\b(missing|duplicates|score_column|ids|format|unmatched|resume|allow_overlap)=('?)([A-Za-z]+)\3"
)

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with its failures turned into a sentence and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except EvenscoreError as error:
            _fail(with_options(str(error), command.__name__), WRONG_USE)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _discard_output()
            raise typer.Exit(PIPE_CLOSED) from None
        except MemoryError:
            _fail("there is not enough memory for this; use smaller files, or float32 scores", FAILED)
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):  # Exit, Abort and errors of use
                raise
            _fail(f"unexpected {type(error).__name__}: {error}; {DEBUG}=1 shows where it happened", FAILED)

    return run


def with_options(message: str, command: str) -> str:
    """Return a message of the library with the options of a command in place of arguments.

    Examples
    --------
    >>> with_options("score 'nan' is not finite; drop the trial, or read it with missing='skip'", "evaluate")
    "score 'nan' is not finite; drop the trial, or mend it with 'evenscore convert --missing skip IN OUT'"
    >>> with_options("they do not match; leave out the others (unmatched='drop')", "evaluate")
    'they do not match; leave out the others (--unmatched drop)'
    """

    def spelled(found: re.Match[str]) -> str:
        name = "--from" if found[2] == "format" else option_name(found[2])
        option = name if found[4] == "True" else f"{name} {found[4]}"
        if found[1] and command not in _REPAIRING:
            last = found.end() == len(message)  # else the names are told
            names = " ('evenscore formats' lists the names)" if name == "--from" and last else ""
            return f"mend it with 'evenscore convert {option} IN OUT'{names}"
        return f"{found[1] or ''}{option}"

    return _ARGUMENT.sub(spelled, message)


def _fail(message: str, code: int) -> NoReturn:
    if os.environ.get(DEBUG) == "1":
        traceback.print_exc()
    typer.echo(f"error: {printable(message)}", err=True)
    raise typer.Exit(code)


def _discard_output() -> None:
    """Let the interpreter flush into nothing, so that it does not complain about the closed pipe on its way out."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
