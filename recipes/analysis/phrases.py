"""How phrases differ: error rates of each, and where its raw scores lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore import LabelledBlocks
from evenscore.tables import NONTARGET, TARGET
from recipes.analysis.systems import measured, scored
from recipes.paper.systems import TrainedSystem

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["run_phrases"]

_CLASSES = {"non": NONTARGET, "tar": TARGET}


def run_phrases(scores: ScoreSet, trained: Mapping[str, TrainedSystem]) -> list[dict[str, Any]]:
    """Return for each phrase the metrics of every system, and mean and standard deviation of its raw scores.

    Calibrations are those of all phrases together, trained on development trials.
    """
    rows = []
    for own, part in zip(scores.development, scores.evaluation, strict=True):
        systems = {
            name: measured(
                scored(system.fitted.normalizer, [part]), {"cllr_whole": system.calibration}, system.fitted.is_llr
            )
            for name, system in trained.items()
        }
        raw = {"development": _moments(own), "evaluation": _moments(part)}
        rows.append({"phrase": part.name, "systems": systems, "raw": raw})
    return rows


def _moments(part: LabelledBlocks) -> dict[str, float]:
    trials = part.trials
    values, labels = np.asarray(trials.scores, dtype=float), np.asarray(trials.labels)
    found: dict[str, float] = {}
    for name, label in _CLASSES.items():
        side = values[labels == label]
        found |= {f"mean_{name}": float(side.mean()), f"std_{name}": float(side.std(ddof=1))}
    return found
