"""The command ``evenscore``. A command that fails says why in one sentence on standard error, with an exit code."""

from __future__ import annotations

import functools
import inspect
import io
import os
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import typer
from typer.core import TyperGroup

from evenscore._version import __version__
from evenscore.errors import EvenscoreError

__all__ = ["app", "main"]

#: In the order of the help; the module of a command is imported when it is called.
COMMANDS = {
    "normalize": "Normalize trial scores with cohort scores.",
    "fit": "Train a score model on labelled scores.",
    "calibrate": "Turn scores into calibrated log-likelihood ratios; fuse systems.",
    "evaluate": "Measure EER, DCF, Cllr and more of scores with a key.",
    "compare": "Compare norms on your data, with intervals, a verdict and a report.",
    "score": "Score embeddings: cosine, dot product, PLDA.",
    "plda": "Train or adapt a PLDA.",
    "plot": "Draw DET, Tippett, ECE and other figures.",
    "convert": "Convert scores, trials, keys, embeddings or speaker maps to another format.",
    "info": "Show what is in files, and whether scores and key agree.",
    "trials": "Make a list of trials from a speaker map.",
    "simulate": "Draw scores from a score model.",
    "model": "Show a model file.",
    "demo": "Compare all norms on data that ships with the program.",
    "formats": "List the file formats.",
}

FAILED, WRONG_USE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141  # exit codes
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

P = ParamSpec("P")


class _Commands(TyperGroup):
    """The commands by name."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; a name that is close to one is suggested."""
        if cmd_name not in COMMANDS:
            close = get_close_matches(cmd_name, COMMANDS, 1)
            ctx.fail(f"there is no command '{cmd_name}'" + (f"; did you mean '{close[0]}'?" if close else ""))
        made = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        module = import_module(f"evenscore.cli.{cmd_name}")
        function = getattr(module, cmd_name)
        made.command(cmd_name, help=_help(function, module.EXAMPLES), context_settings=_CONTEXT)(guarded(function))
        return typer.main.get_command(made)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


app = typer.Typer(
    name="evenscore",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenscore {__version__}")
        raise typer.Exit


@app.callback(help="Turn raw speaker-verification scores into normalized, calibrated log-likelihood ratios.")
def evenscore(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options before a command."""


def main() -> None:
    """Run the command line; the entry point of the installed program."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("MKL_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):  # an id that a terminal cannot show must not stop the work
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="evenscore")


def _help(function: Callable[..., None], examples: str) -> str:
    """Return the examples, then the docstring, as click wants them."""
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    return f"\b\nExamples:\n{lines}\n\n{inspect.cleandoc(function.__doc__ or '')}"


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with its failures turned into a sentence and an exit code."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except EvenscoreError as error:
            code, message = WRONG_USE, str(error)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes on its way out
            raise typer.Exit(PIPE_CLOSED) from None
        except MemoryError:
            code, message = FAILED, "there is not enough memory; use smaller files, or float32 scores in a zarr store"
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")):  # errors of use, and the end of a command
                raise
            code = FAILED
            message = f"unexpected {type(error).__name__}: {error}; EVENSCORE_DEBUG=1 shows where it happened"
        else:
            return
        if os.environ.get("EVENSCORE_DEBUG") == "1":
            traceback.print_exc()
        printable = "".join(one if one.isprintable() else repr(one)[1:-1] for one in message)
        typer.echo(f"error: {printable}", err=True)
        raise typer.Exit(code)

    return run
