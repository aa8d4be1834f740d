"""``evenscore model``: look at a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["EXAMPLES", "show"]

EXAMPLES = """
evenscore model show m.json
evenscore model show m.json --json
"""


def show(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Model file, as 'evenscore fit' writes it.")],
    verbose: Annotated[bool, typer.Option("--verbose", help="Print the covariances of the effects, too.")] = False,
    json: opt.Json = False,
) -> None:
    """Show a score model: where the variance of the scores comes from, per class and side, and what that means.

    The variance of a score is sigma^2 + nu. nu is what the hidden variables of enrolment and test explain: the part
    that cohort scores can help to take away. sigma^2 is what is left.
    """
    from evenscore.cli.variance_table import meaning_of, model_facts, print_covariances, print_variances
    from evenscore.files.model_json import read_model_file

    found = read_model_file(file)
    if json:
        print_json({"file": file, **model_facts(found.model), "info": found.info})
        return
    print_lines([f"{file}: score model, D = {found.model.dim}"])
    print_variances(found.model)
    if verbose:
        print_covariances(found.model)
    print_lines(meaning_of(found.model))
    _print_info(found.info)


def _print_info(info: Mapping[str, object]) -> None:
    if info:
        rows = [(str(name).replace("_", " "), _cell(value)) for name, value in info.items()]
        print_table(rows, title="Training")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(_cell(item) for item in value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)
