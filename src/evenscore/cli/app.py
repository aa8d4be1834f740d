"""The command ``evenscore``: its options, and the list of its commands.

A command that fails says why in one sentence on standard error, and ends with an exit code.
"""

from __future__ import annotations

import functools
import io
import os
import re
import sys
import traceback
from collections.abc import Callable
from copy import copy
from importlib import import_module
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from evenscore._version import __version__
from evenscore.cli.old_spellings import modern
from evenscore.cli.option_records import option_name
from evenscore.cli.output import printable
from evenscore.errors import EvenscoreError
from evenscore.files.panics import hide_panics
from evenscore.threads import BLAS_THREADS

__all__ = ["DEBUG", "EXAMPLES", "add_command", "app", "main", "program", "run_program", "with_options"]

#: In the order of the help; a command is imported when it is called.
COMMANDS = (
    *(
        "info",
        "convert",
        "fit",
        "score",
        "normalize",
        "adapt",
        "model",
        "plda",
        "transform",
        "calibrate",
        "evaluate",
        "compare",
    ),
    *("verifier", "choose-cohort", "simulate", "plot", "formats", "demo"),
)

FAILED = 1  #: exit code: evenscore could not do what it should
WRONG_USE = 2  #: exit code: the options or the files are not right
INTERRUPTED = 130  #: exit code after Ctrl-C, as shells have it
PIPE_CLOSED = 141  #: exit code when nobody reads the output any more, as shells have it
DEBUG = "EVENSCORE_DEBUG"  #: environment variable; with "1" a failure prints its traceback

_REPAIRING = ("convert", "info")  # commands that read files with repairs
_ARGUMENT = re.compile(
    r"(read it with )?\b(missing|duplicates|score_column|ids|format|unmatched|resume|allow_overlap)=('?)([A-Za-z]+)\3"
)
_CONTEXT = {"help_option_names": ["-h", "--help"]}

P = ParamSpec("P")


class _Commands(TyperGroup):
    """The commands by name; those of whole modules are groups."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; all of them are loaded where one is misspelt, so that its likes can be told."""
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.commands[name] = _loaded(name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of a line; `score` with a norm is `normalize`, which did not take embeddings once."""
        if args[0] == "score":
            spelled = modern("score", args[1:])
            if {word.partition("=")[0] for word in spelled} & {"--norm", "--cohort-embeddings"}:
                args = ["normalize", *spelled]
        return super().resolve_command(ctx, args)


class _Command(TyperCommand):
    """A command that understands the options of earlier versions, too, and whose help is text without markup."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options as they are spelled now."""
        return super().parse_args(ctx, modern(self.name or "", args))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help; brackets, as in evenscore[plot], are no markup of rich."""
        from rich.markup import escape

        shown = copy(self)
        shown.help, shown.params = escape(self.help or ""), [copy(parameter) for parameter in self.params]
        for parameter in shown.params:
            parameter.help = escape(getattr(parameter, "help", None) or "")  # type: ignore[attr-defined]
        super(_Command, shown).format_help(ctx, formatter)


app = typer.Typer(
    name="evenscore",
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)


def _loaded(name: str) -> Any:
    module = import_module(f"evenscore.cli.{name.replace('-', '_')}")
    commands: tuple[tuple[str, Callable[..., None], str], ...] = getattr(module, "COMMANDS", ())
    if not commands:
        made = program(name, getattr(module, name.replace("-", "_")), module.EXAMPLES)
    else:
        made = _app(no_args_is_help=True, help=_help(module.GROUP, module.EXAMPLES))
        made.callback()(lambda: None)  # a group, even of one command
        for each in commands:
            add_command(made, *each)
    loaded = get_command(made)
    loaded.name = name
    return loaded


def _app(**options: Any) -> typer.Typer:
    return typer.Typer(add_completion=False, rich_markup_mode="rich", pretty_exceptions_enable=False, **options)


def add_command(group: typer.Typer, name: str, command: Callable[..., None], examples: str) -> None:
    """Add a command: its docstring and the examples are its help."""
    text = _help(command.__doc__ or "", examples)
    group.command(name, cls=_Command, help=text, context_settings=_CONTEXT)(guarded(command))


def program(name: str, command: Callable[..., None], examples: str) -> typer.Typer:
    """Return a program of one command; those of the recipes are made this way, too."""
    made = _app()
    add_command(made, name, command, examples)
    return made


def run_program(program: typer.Typer, name: str) -> None:
    """Run a program under the name that its help shows."""
    _prepare_streams()
    program(prog_name=name)


def main() -> None:
    """Run the command line; the entry point of the installed program."""
    if "numpy" not in sys.modules:  # nobody else's process
        for name in BLAS_THREADS:
            os.environ.setdefault(name, "1")
        hide_panics()
    run_program(app, "evenscore")


def _prepare_streams() -> None:
    """Let output be written whole, and let a terminal that cannot show an id not stop the work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # With PYTHONUNBUFFERED=1 a large write to a pipe can end half-way without an error.
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.detach()), encoding, errors, write_through=True)
        sys.__stdout__ = sys.stdout  # type: ignore[misc]  # which is asked how wide the terminal is


def _help(docstring: str, examples: str) -> str:
    """Join the lines of each paragraph, so that the help fits any width, but keep those of the examples."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in docstring.strip().split("\n\n")]
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    return "\n\n".join([*paragraphs, f"\b\nExamples:\n{lines}"])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenscore {__version__}")
        raise typer.Exit


EXAMPLES = """
evenscore demo                                # a first look
evenscore info dev.scores --key dev.trials    # what is in it, what is odd
evenscore convert dev.scores dev.npz          # another format
"""


@app.callback(
    help=_help("Turn raw speaker-verification scores into normalized, calibrated log-likelihood ratios.", EXAMPLES)
)
def evenscore(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


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
