"""The command ``evenscore``. A command that fails says why in one sentence on standard error, with an exit code."""

from __future__ import annotations

import functools
import inspect
import io
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Annotated, Any, ParamSpec

import typer
from typer.core import TyperCommand, TyperGroup

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
_HELP_ALL = "--help-all"

P = ParamSpec("P")


class _Command(TyperCommand):
    """A command whose help fits on a screen: rare options, those with a panel, are listed by ``--help-all``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; an option of a norm that was given as one of the command is explained."""
        if _HELP_ALL in args:
            ctx.meta[_HELP_ALL], args = True, ["--help"]
        for given in (arg.partition("=")[0] for arg in args if arg.startswith("--")):
            plain = re.sub("[-_]", "", given).replace("topn", "topk")
            if plain in ("topk", "droptop", "dim", "tol", "maxiter") and given not in self._names():
                name = {"topk": "as:top_k=300", "droptop": "as:drop_top=5"}.get(plain, "lgsm:dim=2")
                ctx.fail(f"there is no option {given}; options of a norm follow its name: --norm {name}")
        return super().parse_args(ctx, args)

    def _names(self) -> list[str]:
        return [name for param in self.params for name in param.opts]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """List the options of everybody, then the rare ones, or only their names."""
        records = [(param, param.get_help_record(ctx)) for param in self.get_params(ctx)]
        rare = [record for param, record in records if record and getattr(param, "rich_help_panel", None)]
        with formatter.section("Options"):
            formatter.write_dl([record for _, record in records if record and record not in rare], col_max=27)
        if rare and ctx.meta.get(_HELP_ALL):
            with formatter.section("Large data and rare options"):
                formatter.write_dl(rare)
        elif rare:
            names = ", ".join(record[0].split()[0].rstrip(",") for record in rare)
            formatter.write_paragraph()
            formatter.write_text(f"More options, see {_HELP_ALL}: {names}")


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
        lines = "\n".join(f"  {line}" for line in module.EXAMPLES.strip().splitlines())
        text = f"\b\nExamples:\n{lines}\n\n{inspect.cleandoc(function.__doc__ or '')}"
        command = guarded(function, getattr(module, "OPTIONS", {}))
        made.command(cmd_name, cls=_Command, help=text, context_settings=_CONTEXT)(command)
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


def guarded(command: Callable[P, None], options: Mapping[str, str]) -> Callable[P, None]:
    """Return the command with its failures turned into a sentence and an exit code.

    Messages of the library have arguments in backticks; here they become options of the command line: those of
    ``options``, else the option of that name.
    """
    own = {name: "--" + name.replace("_", "-") for name in inspect.signature(command).parameters} | dict(options)

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except EvenscoreError as error:
            code, message = WRONG_USE, re.sub(r"`(\w+)`", lambda found: own.get(found[1], found[1]), str(error))
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
