"""Example trials whose LLR a method can take apart, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.comparison.comparison import MethodResult
from evenscore.comparison.trials import ComparedTrials
from evenscore.tables import NONTARGET, TARGET, LabelledBlocks

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["ExampleContributions", "with_examples"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ExampleContributions:
    """What each feature of a method adds to the LLR of some example trials.

    Attributes
    ----------
    features
        Their meanings.
    trials
        What each example is, such as ``"worst target: anna-1, anna-7"``.
    values
        What each feature (column) adds to the LLR of each trial (row).
    """

    features: Sequence[str]
    trials: Sequence[str]
    values: Float[np.ndarray, "t f"]


def with_examples(method: MethodResult, trials: ComparedTrials, evaluation: Sequence[LabelledBlocks]) -> MethodResult:
    """Return the result with contributions if its model can tell them and its scores are in memory, else as it is."""
    from evenscore.evidence import CohortEvidence, contributions
    from evenscore.evidence.contributions import MEANING

    if not isinstance(method.model, CohortEvidence) or not all(part.blocks.is_in_memory for part in evaluation):
        return method
    assert isinstance(method.scores, np.ndarray)  # noqa: S101
    names, found = [], []
    starts = np.cumsum([0, *map(len, trials.lists)])  # of the trials of each condition
    for kind, place in _examples(method.scores, trials).items():
        part = int(np.searchsorted(starts, place, side="right")) - 1
        pair = trials.lists[part].pair(int(place - starts[part]))
        found.append(contributions(method.model, evaluation[part].blocks, pair).terms)
        where = f" ({trials.names[part]})" if len(trials.lists) > 1 and trials.names[part] else ""
        names.append(f"{kind}: {', '.join(pair)}{where}")
    features = [name for name in MEANING if any(name in terms for terms in found)]
    values = np.array([[terms.get(name, 0.0) for name in features] for terms in found])
    meanings = [MEANING[name] for name in features]
    return replace(method, contributions=ExampleContributions(features=meanings, trials=names, values=values))


def _examples(llrs: npt.NDArray[np.floating], trials: ComparedTrials) -> dict[str, np.intp]:
    """Return the places of the trials that say most: the worst of each class, and the middle ones."""
    target, nontarget = (np.flatnonzero(trials.labels == label) for label in (TARGET, NONTARGET))
    targets, nontargets = (at[np.argsort(llrs[at], kind="stable")] for at in (target, nontarget))
    return {
        "worst target": targets[0],
        "worst non-target": nontargets[-1],
        "typical target": targets[len(targets) // 2],
        "typical non-target": nontargets[len(nontargets) // 2],
    }
