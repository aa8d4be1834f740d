"""``evenscore model show``: what a model file says."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenscore.cli.options import Json

if TYPE_CHECKING:
    from evenscore.model.parameters import ScoreModel

__all__ = ["EXAMPLES", "describe", "model", "model_lines"]

EXAMPLES = """
evenscore model show m.json
evenscore model show m.json --json
"""
CLASSES = ("nontarget", "target")
_BEYOND = 0.01  # share of trials beyond the vertex from which it is worth a line


def model(
    _action: Annotated[Literal["show"], typer.Argument(metavar="show", help="What to do.")],
    path: Annotated[str, typer.Argument(metavar="FILE", help="A model of 'fit', 'calibrate' or 'plda'.")],
    as_json: Json = False,
) -> None:
    """Show a model: of a score model, where the variance of the scores comes from, by class and side."""
    from evenscore.files.models import read_model_and_info
    from evenscore.model.parameters import ScoreModel

    found, info = read_model_and_info(path)
    notes = [f"  {name}: {_short(value)}" for name, value in info.items()]
    notes = ["Of the training:", *notes] if notes else []
    if as_json:
        typer.echo(json.dumps({**describe(found), **({"info": info} if info else {})}, indent=2))
    elif isinstance(found, ScoreModel):
        typer.echo("\n".join([f"{path}: score model, D = {found.dim}", *model_lines(found), *notes]))
    else:
        lines = [f"  {name}: {_short(value)}" for name, value in describe(found).items()]
        typer.echo("\n".join([f"{path}: {type(found).__name__}", *lines, *notes]))


def describe(model: Any) -> Any:
    """Return what a model says as numbers, text, lists and dictionaries; of a score model with its variances."""
    if hasattr(model, "tolist"):
        return model.tolist()
    if isinstance(model, tuple | list):
        return [describe(item) for item in model]
    if isinstance(model, dict):
        return {name: describe(item) for name, item in model.items()}
    if not is_dataclass(model):
        return model
    record = {field.name: describe(getattr(model, field.name)) for field in fields(model)}
    table = getattr(model, "variances", None)
    return record if table is None else {"dim": getattr(model, "dim", 0), **record, "variances": _variances(model)}


def _variances(model: Any) -> dict[str, dict[str, float]]:
    """Return the variance table by class."""
    table = model.variances
    columns = {
        "mu": model.mu,
        "variance": table.sigma2 + table.nu,
        "sigma2": table.sigma2,
        "nu": table.nu,
        "nu_enroll": table.nu_enroll,
        "nu_test": table.nu_test,
        "share": table.share,
        "variance_with_large_cohort": table.with_large_cohort,
    }
    return {name: {key: float(values[h]) for key, values in columns.items()} for h, name in enumerate(CLASSES)}


def model_lines(model: ScoreModel) -> list[str]:
    """Return the variance table of a score model, and what it means."""
    nontarget, target = _variances(model).values()
    names = {
        "mu": "mean score (mu)",
        "variance": "variance",
        "sigma2": "  unexplained (sigma^2)",
        "nu": "  hidden variables (nu)",
        "nu_enroll": "    of the enrolment",
        "nu_test": "    of the test",
    }
    lines = [f"{'':26}{'non-target':>12}{'target':>12}"]
    lines += [f"{name:26}{nontarget[key]:12.5g}{target[key]:12.5g}" for key, name in names.items()]
    lines.append(f"{'share of nu':26}{nontarget['share']:12.1%}{target['share']:12.1%}")
    left = [1 - row["variance_with_large_cohort"] / row["variance"] for row in (nontarget, target)]
    lines.append(
        f"A large cohort takes away up to {left[0]:.0%} of the variance of non-target scores and {left[1]:.0%} of that "
        "of target scores."
    )
    for what, large in (("Without a cohort", False), ("With a large cohort", True)):
        bound = model.llr_bound(large_cohort=large)
        if max(bound.beyond) > _BEYOND:
            kind = "floor" if target["variance"] > nontarget["variance"] else "ceiling"
            lines.append(
                f"{what}, the LLR has a {kind} of {bound.extreme:.4g} at the score {bound.vertex:.4g}, and about "
                f"{bound.beyond[0]:.1%} of the non-targets and {bound.beyond[1]:.1%} of the targets lie beyond it."
            )
    if model.residuals is not None:
        lines.append("Densities of what the model does not predict were fitted to left-out trials; see --json.")
    return lines


def _short(value: Any) -> str:
    """Return a value for a line: the beginning of a long one."""
    text = json.dumps(value)
    return text if len(text) <= 90 else f"{text[:87]}..."
