"""The command ``evenscore``: its options, and the list of its commands."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from evenscore._version import __version__
from evenscore.cli import (
    adapt,
    calibrate,
    choose_cohort,
    compare,
    convert,
    demo,
    evaluate,
    experiment,
    experiment_paper,
    fit,
    formats,
    info,
    model,
    normalize,
    plda,
    plot,
    score,
    simulate,
)
from evenscore.cli.failures import guarded

__all__ = ["add_command", "add_group", "app", "main"]

app = typer.Typer(
    name="evenscore",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def add_command(group: typer.Typer, name: str, command: Callable[..., None], examples: str) -> None:
    """Add a command: its docstring and the examples are its help."""
    group.command(name, help=_help(command.__doc__ or "", examples))(guarded(command))


def add_group(group: typer.Typer, name: str, text: str, examples: str) -> typer.Typer:
    """Add a group of commands, such as ``evenscore model``, and return it."""
    new = typer.Typer(no_args_is_help=True, help=_help(text, examples))
    group.add_typer(new, name=name)
    return new


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


def _help(docstring: str, examples: str) -> str:
    """Join the lines of each paragraph, so that the help fits any width, but keep those of the examples."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in docstring.strip().split("\n\n")]
    lines = "\n".join(f"  {line}" for line in examples.strip().splitlines())
    return "\n\n".join([*paragraphs, f"\b\nExamples:\n{lines}"])


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"evenscore {__version__}")
        raise typer.Exit


_EXAMPLES = """
evenscore demo                                # a first look
evenscore info dev.scores --key dev.trials    # what is in it, what is odd
evenscore convert dev.scores dev.npz          # another format
"""


@app.callback(
    help=_help("Turn raw speaker-verification scores into normalized, calibrated log-likelihood ratios.", _EXAMPLES)
)
def evenscore(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


add_command(app, "info", info.info, info.EXAMPLES)
add_command(app, "convert", convert.convert, convert.EXAMPLES)
add_command(app, "fit", fit.fit, fit.EXAMPLES)
add_command(app, "score", score.score, score.EXAMPLES)
add_command(app, "normalize", normalize.normalize, normalize.EXAMPLES)
add_command(app, "adapt", adapt.adapt, adapt.EXAMPLES)
models = add_group(app, "model", "Look at model files.", model.EXAMPLES)
add_command(models, "show", model.show, model.EXAMPLES)
add_command(app, "plda", plda.plda, plda.EXAMPLES)
add_command(app, "calibrate", calibrate.calibrate, calibrate.EXAMPLES)
add_command(app, "evaluate", evaluate.evaluate, evaluate.EXAMPLES)
add_command(app, "compare", compare.compare, compare.EXAMPLES)
add_command(app, "choose-cohort", choose_cohort.choose_cohort, choose_cohort.EXAMPLES)
add_command(app, "simulate", simulate.simulate, simulate.EXAMPLES)
plots = add_group(app, "plot", "Draw figures of labelled scores.", plot.EXAMPLES)
for name, command, examples in plot.COMMANDS:
    add_command(plots, name, command, examples)
experiments = add_group(app, "experiment", "Run the experiments of the theory and of the paper.", experiment.EXAMPLES)
add_command(experiments, "ideal", experiment.ideal, experiment.IDEAL_EXAMPLES)
add_command(experiments, "paper", experiment_paper.paper, experiment_paper.EXAMPLES)
add_command(app, "formats", formats.formats, formats.EXAMPLES)
add_command(app, "demo", demo.demo, demo.EXAMPLES)
