"""``evenscore model``: where the variance of the scores comes from, per class and side, and what that means."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_json, print_lines, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evenscore.cli.training_data import MeasuredBeyond
    from evenscore.evidence import CohortEvidence
    from evenscore.files.records import ModelFile
    from evenscore.model import LlrShape, ScoreModel, VarianceTable

__all__ = [
    "COMMANDS",
    "EXAMPLES",
    "GROUP",
    "evidence_facts",
    "model_facts",
    "print_covariances",
    "print_evidence",
    "print_variances",
    "shape_of",
    "show",
]

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
    that cohort scores can help to take away. sigma^2 is what is left. The LLR of two Gaussians has a floor or a
    ceiling; what it is, and how many trials lie beyond it, is told, too. Of a cohort-evidence model it also tells
    what each feature weighs.
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
    if json:
        print_json({"file": file, **evidence_facts(found.model), "info": found.info})
        return
    print_lines([f"{file}: cohort-evidence model, with heads for {', '.join(found.model.heads)}"])
    print_evidence(found.model, verbose=verbose)
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


def evidence_facts(model: CohortEvidence) -> dict[str, Any]:
    """Return what was trained on, what was chosen, and what each feature weighs, ready to become JSON."""
    report, head = model.report, next(iter(model.heads.values()))
    return {
        "method": "evidence",
        "heads": list(model.heads),
        "weights": dict(head.weight),
        "ridges": vars(model.ridges),
        "penalties": vars(head.penalties),
        "trials": {"nontarget": report.n_nontarget, "target": report.n_target},
        "speakers": report.n_speakers,
        "folds": report.folds,
        "cllr": report.loss,
        "without": dict(report.without),
        "tried": {name: dict(losses) for name, losses in report.tried.items()},
        "simple": dict(report.simple),
        "instead": report.instead,
        "errors": dict(report.errors),
    }


def print_evidence(model: CohortEvidence, notes: Sequence[str] = (), *, verbose: bool = False) -> None:
    """Print what was chosen, and what each feature is worth."""
    report, head = model.report, next(iter(model.heads.values()))
    rows = []
    for name, weight in head.weight.items():
        loss = report.without.get(name)
        rows.append((name, f"{weight:+.3f}", "-" if loss is None else f"{loss:.4f}"))
    print_table(rows, header=("feature", "weight", "Cllr without it"), title="Cohort evidence", numbers=True)
    told = 2 + report.separable + (report.instead is not None)
    print_lines([*report.lines()[:told], *(f"! {note}" for note in notes)])
    if verbose:
        print_variances(model.score_model)
        print_covariances(model.score_model)


CLASSES = ("nontarget", "target")
_STRAIGHT = 0.1  # a skew, or a tail's distance from 1, that nobody would see


def model_facts(model: ScoreModel) -> dict[str, Any]:
    """Return the parameters and the variances of a model, ready to become JSON."""
    table = model.variances
    per_class = {
        name: {
            "mu": model.mu[h],
            "variance": table.sigma2[h] + table.nu[h],
            "sigma2": table.sigma2[h],
            "nu": table.nu[h],
            "nu_enroll": table.nu_enroll[h],
            "nu_test": table.nu_test[h],
            "share": table.share[h],
            "variance_with_large_cohort": table.with_large_cohort[h],
        }
        for h, name in enumerate(CLASSES)
    }
    return {
        "dim": model.dim,
        **{name: getattr(model, name) for name in ("mu", "alpha", "beta", "sigma2")},
        "residuals": None if model.residuals is None else vars(model.residuals),
        "variances": per_class,
        "llr": {
            name: _shape_facts(model.llr_shape(large_cohort=large))
            for name, large in (("without_cohort", False), ("with_large_cohort", True))
        },
        "effects": {
            side: {"covariance": covariance, "correlation": _correlation(covariance)}
            for side, covariance in (("enroll", table.enroll_covariance), ("test", table.test_covariance))
        },
    }


def _shape_facts(shape: LlrShape) -> dict[str, Any]:
    bounds = {"vertex": shape.vertex, "floor": shape.floor, "ceiling": shape.ceiling}
    return {**bounds, "expected_beyond": dict(zip(CLASSES, shape.beyond.tolist(), strict=True))}


def print_variances(model: ScoreModel) -> None:
    """Print the table of means and variances."""
    print_table(model.variance_rows(), header=("", "non-target", "target"), numbers=True)


def print_covariances(model: ScoreModel) -> None:
    """Print the covariances of the effects, which are all that scores can tell about the hidden variables."""
    if model.dim == 0:
        return
    table = model.variances
    for side, covariance in (("enrolment", table.enroll_covariance), ("test", table.test_covariance)):
        rows = [(name, *(f"{value:.4g}" for value in row)) for name, row in zip(CLASSES, covariance, strict=True)]
        print_table(rows, header=(f"{side}'s effects", "non-target", "target"), numbers=True)


def meaning_of(model: ScoreModel) -> list[str]:
    """Return plain sentences about what the variances mean, and what they do to the LLR."""
    if model.dim == 0:
        nothing = "The model has no hidden variables (D = 0): it calibrates scores, and cohort scores change nothing."
        return [nothing, *shape_of(model)]
    table = model.variances
    effects = table.nu**0.5
    lines = [
        f"Who is compared shifts non-target scores by about {effects[0]:.3g} and target scores by about "
        f"{effects[1]:.3g} (one standard deviation)."
    ]
    left, before = table.with_large_cohort, table.sigma2 + table.nu
    gain = [f"{100 * (1 - left[h] / before[h]):.0f} %" for h in (0, 1)]
    lines.append(
        f"A large cohort shows these shifts on non-target scores, and so far as the two effects are correlated "
        f"({_correlations(table)}) on target scores too: it takes away up to {gain[0]} of the variance of "
        f"non-target scores and {gain[1]} of that of target scores."
    )
    return [*lines, *shape_of(model)]


def shape_of(model: ScoreModel, measured: MeasuredBeyond | None = None) -> list[str]:
    """Return plain sentences about the LLR: its floor or ceiling, and the densities that do away with it."""
    bounds = _bounds_of(model, measured)
    if model.residuals is None:
        return bounds
    return [
        *_densities_of(model),
        "If they were Gaussian, this would hold (fit --norm lgsm:residuals=gaussian):",
        *bounds,
    ]


def _densities_of(model: ScoreModel) -> list[str]:
    """Return plain sentences about the densities of what the model does not predict."""
    found = model.residuals
    if found is None:
        return []
    lines = ["Densities (sinh-arcsinh) of what the model does not predict, fitted to left-out trials:"]
    for h, name in enumerate(("non-targets", "targets")):
        skew, tail = float(found.skew[h]), float(found.tail[h])
        side = "even" if abs(skew) < _STRAIGHT else f"longer to the {'right' if skew > 0 else 'left'}"
        weight = "as a Gaussian's" if abs(tail - 1) < _STRAIGHT else "heavier" if tail < 1 else "lighter"
        lines.append(f"  {name}: tails {weight} (tail {tail:.2f}), {side} (skew {skew:+.2f})")
    return lines


def _bounds_of(model: ScoreModel, measured: MeasuredBeyond | None = None) -> list[str]:
    """Return plain sentences about the floor or ceiling of the LLR, and the trials beyond it; measured, or expected."""
    alone, known = model.llr_shape(), model.llr_shape(large_cohort=True)
    if alone.vertex is None:
        return ["Without a cohort, the LLR is a straight line: both classes have the same variance."]
    start = "Without a cohort, the" if model.dim else "The"
    side, score = ("below", "lower") if alone.beyond_is_below else ("above", "higher")
    llr = "higher" if math.isfinite(alone.floor) else "lower"
    where = f"{start} LLR has {_bound(alone)}, at the score {alone.vertex:.4g} (its vertex)"
    lines = [f"{where}; {side} it, a {score} score gets a {llr} LLR."]
    if model.dim and known.vertex is not None:
        lines.append(f"With a very large cohort it has {_bound(known)} in an average trial.")
    if measured is not None:
        how = ", each with the other speakers as its cohort" if measured.with_cohort else ", without a cohort"
        shares = _of_classes((measured.nontarget, measured.target))
        return [*lines, f"Of the training trials{how if model.dim else ''}, {shares} lie beyond the vertex."]
    more = f" without a cohort, and {_of_classes(known.beyond)} with a very large one" if model.dim else ""
    return [*lines, f"If scores are as the model says, {_of_classes(alone.beyond)}{more} lie beyond the vertex."]


def _bound(shape: LlrShape) -> str:
    return f"a floor of {shape.floor:.4g}" if math.isfinite(shape.floor) else f"a ceiling of {shape.ceiling:.4g}"


def _of_classes(shares: Any) -> str:
    return f"{100 * shares[0]:.1f} % of the non-targets and {100 * shares[1]:.1f} % of the targets"


def _correlations(table: VarianceTable) -> str:
    sides = (("enrolment", table.enroll_covariance), ("test", table.test_covariance))
    found = [(name, _correlation(covariance)) for name, covariance in sides]
    return ", ".join(f"{name} {'none' if value is None else f'{value:.2f}'}" for name, value in found)


def _correlation(covariance: Any) -> float | None:
    """Return the correlation of the effects on the two classes, None if one has no variance."""
    spread = float(covariance[0, 0]) ** 0.5 * float(covariance[1, 1]) ** 0.5
    return max(-1.0, min(1.0, float(covariance[0, 1]) / spread)) if spread > 0 else None
