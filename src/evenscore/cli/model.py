"""``evenscore model``: look at a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evenscore.evidence import CohortEvidence
    from evenscore.files.records import ModelFile
    from evenscore.model import ScoreModel

__all__ = ["COMMANDS", "EXAMPLES", "GROUP", "show"]

GROUP = "Look at model files."

EXAMPLES = """
evenscore model show m.json
evenscore model show m.json --json
"""


def show(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Model file, as 'evenscore fit' writes it.")],
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            help="Print the covariances of the effects, too; of a cohort-evidence model its whole score model.",
        ),
    ] = False,
    json: opt.Json = False,
) -> None:
    """Show a model: where the variance of the scores comes from, per class and side, and what that means.

    The variance of a score is sigma^2 + nu. nu is what the hidden variables of enrolment and test explain: the part
    that cohort scores can help to take away. sigma^2 is what is left. Of a cohort-evidence model it also tells what
    each feature weighs.
    """
    from evenscore.files.models import EVIDENCE, SCORE_MODEL
    from evenscore.files.records import read_json

    values = read_json(file, largest=SCORE_MODEL.largest)
    if values.get("format") == EVIDENCE.name:
        _show_evidence(file, EVIDENCE.model_in(file, values), verbose, json)
    else:
        _show_score_model(file, SCORE_MODEL.model_in(file, values), verbose, json)


COMMANDS = (("show", show, EXAMPLES),)


def _show_score_model(file: str, found: ModelFile[ScoreModel], verbose: bool, json: bool) -> None:
    from evenscore.cli.variance_table import meaning_of, model_facts, print_covariances, print_variances

    if json:
        print_json({"file": file, **model_facts(found.model), "info": found.info})
        return
    print_lines([f"{file}: score model, D = {found.model.dim}"])
    print_variances(found.model)
    if verbose:
        print_covariances(found.model)
    print_lines(meaning_of(found.model))
    _print_info(found.info)


def _show_evidence(file: str, found: ModelFile[CohortEvidence], verbose: bool, json: bool) -> None:
    from evenscore.cli.evidence_training import evidence_facts, print_evidence

    if json:
        print_json({"file": file, **evidence_facts(found.model), "info": found.info})
        return
    print_lines([f"{file}: cohort-evidence model, with heads for {', '.join(found.model.heads)}"])
    print_evidence(found.model, (), verbose=verbose)
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
