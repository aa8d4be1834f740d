"""What each feature of a method adds to the LLRs of some example trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.report.content import Contributions, Table
from evenscore.report.numbers import json_numbers

if TYPE_CHECKING:
    from evenscore.comparison.comparison import Comparison

__all__ = ["FeatureContributions", "contribution_numbers", "contribution_section", "contributions_of"]


class FeatureContributions(Protocol):
    """What a method's result may have as its attribute ``contributions``."""

    @property
    def features(self) -> Sequence[str]:
        """Names of the features."""

    @property
    def trials(self) -> Sequence[str]:
        """Names of the example trials, such as "worst target: anna-1, anna-7"."""

    @property
    def values(self) -> npt.ArrayLike:
        """What each feature (column) adds to the LLR of each trial (row)."""


def contributions_of(comparison: Comparison) -> tuple[str, FeatureContributions] | None:
    """Return the best method that knows its contributions, with its name."""
    for method in comparison.methods:
        found: FeatureContributions | None = getattr(method, "contributions", None)
        if found is not None and len(found.trials):
            return method.name, found
    return None


def contribution_section(name: str, found: FeatureContributions) -> Contributions:
    """Return the section of the page."""
    values = np.asarray(found.values, dtype=np.float64)
    rows = [
        [trial, *(f"{value:+.3f}" for value in row), f"{row.sum():+.3f}"]
        for trial, row in zip(found.trials, values, strict=True)
    ]
    return Contributions(
        trials=list(found.trials),
        description=f"Bars: what each of {len(found.features)} features of {name} adds to the LLR of the chosen trial.",
        table=Table(caption=f"Contributions to the LLR, {name}", head=["Trial", *found.features, "Sum"], rows=rows),
    )


def contribution_numbers(found: FeatureContributions) -> dict[str, Any]:
    """Return what the scripts draw, ready for JSON."""
    values = np.asarray(found.values, dtype=np.float64)
    return {
        "features": list(found.features),
        "values": [json_numbers(row) for row in values],
        "totals": json_numbers(values.sum(axis=1)),
    }
