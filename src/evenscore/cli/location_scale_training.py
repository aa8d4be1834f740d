"""Training of the location-scale model from files, for ``evenscore fit --method lssm``, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenscore.cli.output import print_json, print_lines, print_table
from evenscore.cli.variance_table import model_facts, print_covariances, print_variances
from evenscore.errors import InputError
from evenscore.location_scale import LocationScaleFit, LocationScaleModel, fit_location_scale
from evenscore.progress import Progress
from evenscore.scale import ChunkedScores, ChunkedTrials
from evenscore.sources import Bilinear

__all__ = ["location_scale_facts", "print_location_scale", "print_scales", "train_from", "write_location_scale"]


def train_from(data: Sequence[Any], dim: int, how: Mapping[str, Any], progress: Progress) -> LocationScaleFit:
    """Train on labelled scores; scores of embeddings, and those on disk, come into memory."""
    for name in ("starts", "min_divergence"):
        if name in how:
            raise InputError(f"--{name.replace('_', '-')} is for --method lgsm; leave it out")
    return fit_location_scale([_in_memory(item) for item in data], dim, **how, progress=progress)


def _in_memory(item: Any) -> Any:
    if isinstance(item, ChunkedTrials):
        return item.gather()
    if not isinstance(item, tuple):
        return item
    scores, labels = item
    return (scores.matrix() if isinstance(scores, Bilinear | ChunkedScores) else scores), labels


def write_location_scale(result: LocationScaleFit, path: str, inputs: Mapping[str, Any]) -> None:
    """Write the model with what it was trained on."""
    from evenscore._version import __version__
    from evenscore.files.location_scale_json import save_location_scale

    info = {
        "evenscore": __version__,
        **inputs,
        "n_nontarget": result.n_scores[0],
        "n_target": result.n_scores[1],
        "bound": float(result.bound[-1]),
        "score_model_log_likelihood": result.linear_log_likelihood,
        "iterations": result.n_iter,
        "converged": result.converged,
    }
    save_location_scale(result.model, path, info=info)


def location_scale_facts(model: LocationScaleModel) -> dict[str, Any]:
    """Return the parameters and the variances of a model, ready to become JSON."""
    scales = {name: getattr(model, name) for name in ("c", "d", "f", "g")}
    return {"method": "lssm", **model_facts(model.location), **scales, "spread_ratio": model.spread_ratio}


def print_scales(model: LocationScaleModel) -> None:
    """Print the variances of members of the usual spread (u = v = 0), then how much wider others are."""
    print_variances(model.location)
    if model.is_linear:
        print_lines(["The spread of the scores does not differ: this is the score model (lgsm)."])
        return
    rows = [
        (f"of the {side}", *(f"{value:.3f}" for value in ratio))
        for side, ratio in zip(("enrolment", "test"), model.spread_ratio, strict=True)
    ]
    print_table(rows, header=("factor of the spread at u = v = 1", "non-target", "target"), numbers=True)


def print_location_scale(
    result: LocationScaleFit, n_matrices: int, notes: Sequence[str], *, verbose: bool, json: bool
) -> None:
    """Print what was learned."""
    every_note = (*result.notes, *notes)
    if json:
        facts = {
            "model": location_scale_facts(result.model),
            "matrices": n_matrices,
            "scores": {"nontarget": result.n_scores[0], "target": result.n_scores[1]},
            "bound": result.bound[-1],
            "score_model_log_likelihood": result.linear_log_likelihood,
            "iterations": result.n_iter,
            "converged": result.converged,
            "notes": list(every_note),
        }
        print_json(facts)
        return
    print_scales(result.model)
    if verbose:
        print_covariances(result.model.location)
    matrices = "1 matrix" if n_matrices == 1 else f"{n_matrices} matrices"
    end = "converged" if result.converged else "not converged"
    gain = float(result.bound[-1] - result.linear_log_likelihood)
    story = f"{abs(gain):.1f} nats {'above' if gain >= 0 else 'below'} the score model"
    print_lines(
        [
            f"{result.n_scores[1]} target and {result.n_scores[0]} non-target scores in {matrices}",
            f"bound {result.bound[-1]:.4f}, {story}, {end} after {result.n_iter} iterations",
            *(f"! {note}" for note in every_note),
        ]
    )
