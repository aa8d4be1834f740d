"""What a command does when something goes wrong: one sentence on standard error and an exit code."""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn, ParamSpec

import typer

from evenscore.cli.output import printable
from evenscore.errors import EvenscoreError

__all__ = ["DEBUG", "FAILED", "INTERRUPTED", "PIPE_CLOSED", "WRONG_USE", "guarded"]

FAILED = 1  #: exit code: evenscore could not do what it should
WRONG_USE = 2  #: exit code: the options or the files are not right
INTERRUPTED = 130  #: exit code after Ctrl-C, as shells have it
PIPE_CLOSED = 141  #: exit code when nobody reads the output any more, as shells have it
DEBUG = "EVENSCORE_DEBUG"  #: environment variable; with "1" a failure prints its traceback

P = ParamSpec("P")


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with its failures turned into a sentence and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except EvenscoreError as error:
            _fail(str(error), WRONG_USE)
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
