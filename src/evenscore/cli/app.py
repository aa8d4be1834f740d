"""The command ``evenscore``. A command that fails says why in one sentence on standard error, with an exit code."""

from __future__ import annotations

import inspect
import io
import os
import re
import sys
import textwrap
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from evenscore._version import __version__
from evenscore.errors import EvenscoreError
from evenscore.parallel import Progress

__all__ = ["app", "main", "progress_bar"]

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
_HELP_ALL = "--help-all"
Click = Any  # objects of click, which typer brings along without a name of theirs
#: Options of `convert` by the arguments of `files.read` that messages name in backticks.
_READING = {name: f"--{name}" for name in ("missing", "infinite", "duplicates")} | {"format": "--from"}
_NORM_OPTIONS = {"topk": "as:top_k=300", "topn": "as:top_k=300", "droptop": "as:drop_top=5", "dim": "lgsm:dim=2"}


class _Command(TyperCommand):
    """A command whose help fits on a screen, and whose failures are a sentence on standard error and an exit code."""

    arguments: Mapping[str, str]  #: options of the command line by arguments of the library, for messages

    def parse_args(self, ctx: Click, args: list[str]) -> list[str]:
        """Parse the command line; an option of a norm that was given as one of the command is explained."""
        if _HELP_ALL in args:
            ctx.meta[_HELP_ALL], args = True, ["--help"]
        names = [name for param in self.params for name in param.opts]
        for given in (arg.partition("=")[0] for arg in args if arg.startswith("--")):
            example = _NORM_OPTIONS.get(re.sub("[-_]", "", given))
            if example is not None and given not in names:
                ctx.fail(f"there is no option {given}; options of a norm follow its name: --norm {example}")
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Click, formatter: Click) -> None:
        """List the options of everybody, then the rare ones (those with a panel), or only their names."""
        records = [(param, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        rare = [record for param, record in records if record and getattr(param, "rich_help_panel", None)]
        with formatter.section("Options"):
            formatter.write_dl([record for _, record in records if record and record not in rare], col_max=27)
        if rare and ctx.meta.get(_HELP_ALL):
            with formatter.section("Large data and rare options"):
                formatter.write_dl(rare)
        elif rare:
            names = ", ".join(record[0].split()[0].rstrip(",") for record in rare)
            text = f"More options, see {_HELP_ALL}: {names}"
            formatter.write("\n" + textwrap.fill(text, formatter.width, break_on_hyphens=False) + "\n")

    def _as_option(self, found: re.Match[str]) -> str:
        """Return an argument that a message has in backticks as an option; one of reading is there in 'convert'."""
        named = {param.name: param.opts[0] for param in self.params} | dict(self.arguments)
        value, reading = found[2] and f" {found[2]}", _READING.get(found[1], "")
        if any(reading in param.opts for param in self.params):
            named[found[1]] = reading
        if found[1] not in named and reading and value:
            return f"'evenscore convert {reading}{value}'"
        return named.get(found[1], found[1]) + (value or "")

    def invoke(self, ctx: Click) -> Click:
        """Run the command.

        Messages of the library have arguments in backticks; here they become options of the command line.
        """
        try:
            super().invoke(ctx)
            sys.stdout.flush()
            return
        except EvenscoreError as error:
            cause: BaseException = error
            code, message = WRONG_USE, re.sub(r"`(\w+)`(?:='?(\w+)'?)?", self._as_option, str(error))
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes on its way out
            raise typer.Exit(PIPE_CLOSED) from None
        except MemoryError as error:
            cause = error
            code, message = FAILED, "there is not enough memory; use smaller files, or float32 scores in a zarr store"
        except Exception as error:
            if type(error).__module__.startswith(("typer", "click")):  # errors of use, and the end of a command
                raise
            cause = error
            code, message = FAILED, f"unexpected {type(error).__name__}: {error}; EVENSCORE_DEBUG=1 shows where"
            if type(error).__name__ == "KilledWorker":
                message = "a worker died again and again, most likely of too little memory; raise --memory-limit"
        if os.environ.get("EVENSCORE_DEBUG") == "1":
            traceback.print_exception(cause)
        printable = "".join(one if one.isprintable() else repr(one)[1:-1] for one in message)
        typer.echo(f"error: {printable}", err=True)
        raise typer.Exit(code)


class _Commands(TyperGroup):
    """The commands by name."""

    def list_commands(self, ctx: Click) -> list[str]:
        """Return their names."""
        return list(COMMANDS)

    def get_command(self, ctx: Click, cmd_name: str) -> Click:
        """Return a command; a name that is close to one is suggested."""
        if cmd_name not in COMMANDS:
            close = get_close_matches(cmd_name, COMMANDS, 1)
            ctx.fail(f"there is no command '{cmd_name}'" + (f"; did you mean '{close[0]}'?" if close else ""))
        module = import_module(f"evenscore.cli.{cmd_name}")
        function = getattr(module, cmd_name)
        lines = "\n".join(f"  {line}" for line in module.EXAMPLES.strip().splitlines())
        text = f"\b\nExamples:\n{lines}\n\n{inspect.cleandoc(function.__doc__ or '')}"
        made = typer.Typer(**_PLAIN)
        made.command(cmd_name, cls=_Command, help=text, context_settings=_CONTEXT)(function)
        command: Click = typer.main.get_command(made)
        command.arguments = getattr(module, "OPTIONS", {})
        return command

    def format_commands(self, ctx: Click, formatter: Click) -> None:
        """List the commands without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def main() -> None:
    """Run the command line; the entry point of the installed program."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        os.environ.setdefault("MKL_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):  # an id that a terminal cannot show must not stop the work
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.argv[1:] == ["--version"]:
        typer.echo(f"evenscore {__version__}")
    else:
        app(prog_name="evenscore")


_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_SUMMARY = """Turn raw speaker-verification scores into normalized, calibrated log-likelihood ratios.

'evenscore COMMAND --help' shows examples and the options of a command, 'evenscore --version' the version."""
_PLAIN: Any = {"add_completion": False, "rich_markup_mode": None, "pretty_exceptions_enable": False}
app = typer.Typer(name="evenscore", cls=_Commands, no_args_is_help=True, context_settings=_CONTEXT, **_PLAIN)
app.callback(help=_SUMMARY)(lambda: None)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Give a callback that draws a bar on standard error and removes it at the end, or None without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    drawn = time.monotonic() + 1.0  # most work is done before a bar is worth drawing

    def show(done: int, total: int) -> None:
        nonlocal drawn
        if time.monotonic() - drawn > 0.1:
            drawn = time.monotonic()
            bar = "#" * (30 * done // max(total, 1))
            typer.echo(f"\r{what} [{bar:30}] {done} of {total}\x1b[K", err=True, nl=False)

    try:
        yield show
    finally:
        typer.echo("\r\x1b[K", err=True, nl=False)
