"""The command ``evenscore``: its options, and the list of its commands."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from evenscore._version import __version__
from evenscore.cli import convert, demo, formats, info
from evenscore.cli.failures import guarded

__all__ = ["add_command", "app", "main"]

app = typer.Typer(
    name="evenscore",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_command(group: typer.Typer, name: str, command: Callable[..., None], examples: str) -> None:
    """Add a command: its docstring is its help, and the examples stand below its options."""
    group.command(name, help=_reflowed(command.__doc__ or ""), epilog=_examples(examples))(guarded(command))


def main() -> None:
    """Run the command line; the entry point of the installed program."""
    _prepare_streams()
    app(prog_name="evenscore")


def _prepare_streams() -> None:
    """Let output be written whole, and let a terminal that cannot show an id not stop the work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # With PYTHONUNBUFFERED=1 a large write to a pipe can end half-way without an error.
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(sys.stdout.buffer, io.RawIOBase):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(sys.stdout.detach()), encoding, errors, write_through=True)


def _reflowed(docstring: str) -> str:
    """Join the lines of each paragraph, so that the help fits any width."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.strip().split("\n\n"))


def _examples(lines: str) -> str:
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines.strip().splitlines())


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenscore {__version__}")
        raise typer.Exit


_EXAMPLES = """
evenscore demo                                # a first look
evenscore info dev.scores --key dev.trials    # what is in it, what is odd
evenscore convert dev.scores dev.npz          # another format
"""


@app.callback(epilog=_examples(_EXAMPLES))
def evenscore(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Turn raw speaker-verification scores into normalized, calibrated log-likelihood ratios."""


add_command(app, "info", info.info, info.EXAMPLES)
add_command(app, "convert", convert.convert, convert.EXAMPLES)
add_command(app, "formats", formats.formats, formats.EXAMPLES)
add_command(app, "demo", demo.demo, demo.EXAMPLES)
