"""Everything that is looked at, on one set of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenscore import InputError, ScoreModel
from evenscore.progress import Progress, silent
from recipes.analysis.cohorts import SIZES, draw_orders, run_blocks, run_sizes, sizes_of
from recipes.analysis.effects import SideEffects, effect_rows, side_effects, variance_rows
from recipes.analysis.phrases import run_phrases
from recipes.analysis.residuals import Residuals, likelihood_rows, residual_rows, residuals_of
from recipes.analysis.systems import MODELS, SYSTEMS, check_apart
from recipes.paper.genders import GENDER_NAMES, genders_of
from recipes.paper.systems import train_systems

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["EVERYBODY", "Analysis", "run_analysis"]

EVERYBODY = "everybody"  #: the group of both genders
_ABLATED = (2, 5)  # cohort speakers with which blocks of scores are left out, beside all of them
_LEARNED = tuple(system for system in SYSTEMS if system.name in list(MODELS.values())[1:])


@dataclass(frozen=True, eq=False)
class Analysis:
    """What was found: numbers for tables, and the points of the figures.

    Attributes
    ----------
    numbers
        All numbers, by part of the analysis; they can be written as JSON.
    effects
        By score model and side.
    residuals
        By score model.
    """

    numbers: dict[str, Any]
    effects: Mapping[str, Mapping[str, SideEffects]]
    residuals: Mapping[str, Residuals]


def run_analysis(
    scores: ScoreSet,
    *,
    sizes: Sequence[int] = SIZES,
    draws: int = 20,
    seed: int = 0,
    progress: Progress = silent,
) -> Analysis:
    """Train all systems on the development scores, and look at what they do with the evaluation scores.

    Parameters
    ----------
    scores
        Whose evaluation speakers are not among the development speakers.
    sizes
        Numbers of cohort speakers; the whole cohort is always the largest.
    draws
        How many cohorts of each size are drawn.
    seed
        Of the drawn cohorts and of the folds of cross-validation.
    progress
        Called with a stage name and the fraction done.
    """
    if draws < 1 or not sizes or min(sizes) < 2:
        raise InputError(f"draws is {draws} and sizes are {list(sizes)}, but must be at least 1, and 2 each")
    check_apart(scores)
    trained = train_systems(scores, systems=SYSTEMS, by_gender=False, progress=progress)[""]
    models = {name: system.model for name, system in trained.items() if system.model is not None}
    sizes, orders = sizes_of(scores, sizes), draw_orders(scores, draws, seed)
    numbers: dict[str, Any] = {"seed": seed, "draws": draws}
    numbers["sizes"] = run_sizes(scores, trained, sizes=sizes, orders=orders, progress=progress)
    progress("blocks of cohort scores", 0.0)
    ablated = [size for size in sizes if size in (*_ABLATED, sizes[-1])]
    numbers["blocks"] = run_blocks(scores, trained, sizes=ablated, orders=orders)
    progress("phrases", 0.0)
    numbers["phrases"] = run_phrases(scores, trained)
    progress("hidden variables", 0.0)
    effects = {
        name: {side: side_effects(model, scores.evaluation, side) for side in ("enroll", "test")}
        for name, model in models.items()
        if model.dim
    }
    numbers["effects"] = effect_rows(effects)
    numbers["variances"] = variance_rows([*_named(models), *_by_gender(scores)])
    progress("residuals", 0.0)
    residuals = {name: residuals_of(model, scores.evaluation) for name, model in models.items()}
    numbers["residuals"] = residual_rows(residuals)
    progress("likelihoods", 0.0)
    numbers["likelihood"] = likelihood_rows(scores, models, residuals, seed)
    return Analysis(numbers, effects, residuals)


def _named(models: Mapping[str, ScoreModel], group: str = EVERYBODY) -> list[tuple[str, str, ScoreModel]]:
    return [(group, name, model) for name, model in models.items() if model.dim]


def _by_gender(scores: ScoreSet) -> list[tuple[str, str, ScoreModel]]:
    """Return score models of each gender; none if one has too few speakers, or if there is only one."""
    try:
        kinds = genders_of(scores.gender, {"development": scores.development, "evaluation": scores.evaluation})
    except InputError:
        return []
    if len(kinds) < 2:
        return []
    found = []
    for kind, systems in train_systems(scores, systems=_LEARNED, by_gender=True).items():
        models = {name: system.model for name, system in systems.items() if system.model is not None}
        found += _named(models, GENDER_NAMES.get(kind, kind))
    return found
