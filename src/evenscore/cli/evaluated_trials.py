"""What can be evaluated of labelled scores: the trials of known class, if they tell anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.cli.embedded_scores import Source
from evenscore.cli.inputs import open_tiles
from evenscore.cli.labelled import LabelledScores, LabelSources, labelled_scores
from evenscore.cli.scale_options import ScaleChoices
from evenscore.cli.suspicions import FEW_TRIALS
from evenscore.errors import InputError
from evenscore.tables import UNKNOWN, TrialList

__all__ = ["EvaluatedTrials", "evaluated", "open_labelled", "refuse_one_class", "warnings_about"]


@dataclass(frozen=True, kw_only=True)
class EvaluatedTrials:
    """The trials of one score file whose class is known, and how many others there were."""

    path: str
    trials: TrialList
    n_unknown: int


def open_labelled(
    paths: Sequence[Source], sources: LabelSources, scale: ScaleChoices | None = None
) -> list[LabelledScores]:
    """Read scores and their labels; with ``scale``, scores that can be read tile by tile stay where they are."""
    return labelled_scores(paths, [open_tiles(path, scale, infinite=True) for path in paths], sources)


def evaluated(file: LabelledScores) -> EvaluatedTrials:
    """Return the trials whose class is known, in memory; refuse those that tell nothing."""
    trials = file.trials()
    target, nontarget, unknown = trials.counts
    refuse_one_class(file.path, target, nontarget)
    assert trials.labels is not None  # noqa: S101
    known = trials.select(trials.labels != UNKNOWN) if unknown else trials
    assert known.scores is not None  # noqa: S101
    if np.min(known.scores) == np.max(known.scores):
        raise InputError(
            f"{file.path}: all {len(known)} scores are {known.scores[0]:g}, so they cannot tell targets from "
            "non-targets; check how they were made"
        )
    return EvaluatedTrials(path=file.path, trials=known, n_unknown=unknown)


def refuse_one_class(path: str, target: int, nontarget: int) -> None:
    """Refuse trials of which nothing can be measured."""
    if not target or not nontarget:
        absent = "target" if not target else "non-target"
        raise InputError(
            f"{path}: there are {target} target and {nontarget} non-target trials, and without {absent} trials nothing "
            "can be measured; check the key"
        )


def warnings_about(system: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each class with few trials, given what was measured of a system."""
    pooled = system["pooled"]
    counts = (("target", pooled["n_target"]), ("non-target", pooled["n_nontarget"]))
    return [
        f"{system['scores']} has only {count} {name} trial{'s' * (count != 1)}: error rates are very uncertain"
        for name, count in counts
        if count < FEW_TRIALS
    ]
