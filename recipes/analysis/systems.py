"""The systems that are looked at, trained once on development scores, and what is measured of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from evenscore import InputError, LabelledBlocks, LogisticCalibration, TrialList, cllr, eer, min_cllr
from evenscore.norms import Normalizer
from recipes.paper.systems import System

if TYPE_CHECKING:
    from evenscore.files import ScoreSet

__all__ = ["DIMS", "ITERATIONS", "MODELS", "PENALTY", "SYSTEMS", "check_apart", "measured", "scored"]

DIMS = (0, 1, 2)  #: of the score models
MODELS = MappingProxyType({dim: f"LGSM {dim}D" for dim in DIMS})  #: their names
ITERATIONS = 1000  #: most of a training; a handful of speakers may have no optimum within reach

#: AS takes the nearer half of each cohort, as in the paper's experiment.
SYSTEMS = (
    System("raw", "raw"),
    System("Z", "z"),
    System("T", "t"),
    System("ZT", "zt"),
    System("S", "s"),
    System("AS", "as", MappingProxyType({"top_k": 0.5})),
    *(
        System(name, "lgsm", MappingProxyType({"dim": dim, "max_iter": ITERATIONS, "residuals": "gaussian"}))
        for dim, name in MODELS.items()
    ),
)

PENALTY = 1e-4  #: of calibrations; keeps them finite where classes do not overlap, and is not felt elsewhere


def scored(normalizer: Normalizer, parts: Iterable[LabelledBlocks]) -> TrialList:
    """Return the labelled trials of all parts with a system's scores."""
    return TrialList.concat([part.labelled(normalizer.normalize(part.blocks)) for part in parts])


def measured(
    trials: TrialList, calibrations: Mapping[str, LogisticCalibration | None], is_llr: bool
) -> dict[str, float | None]:
    """Return EER, min Cllr, Cllr if the scores are log-likelihood ratios, and Cllr after each calibration."""
    figures: dict[str, float | None] = {
        "eer": eer(trials),
        "min_cllr": min_cllr(trials),
        "cllr": cllr(trials) if is_llr else None,
    }
    for name, calibration in calibrations.items():
        if calibration is None or trials.scores is None:
            figures[name] = None
        else:
            figures[name] = cllr(trials.with_scores(calibration(trials.scores)))
    return figures


def check_apart(scores: ScoreSet) -> None:
    """Refuse evaluation speakers who are in their own cohort: nothing here leaves a trial's own speakers out."""
    for part in scores.evaluation:
        blocks = part.blocks
        sides = (blocks.enroll_speakers, blocks.test_speakers)
        cohorts = (blocks.cohort_enroll_speakers, blocks.cohort_test_speakers)
        known = [[set(names) for names in group if names is not None] for group in (sides, cohorts)]
        if any(len(group) < 2 for group in known):
            raise InputError(f"the speakers of {part.name!r} are not known; the analysis needs those of all scores")
        both = set.union(*known[0]) & set.union(*known[1])
        if both:
            raise InputError(
                f"{min(both)!r} is an evaluation and a development speaker of {part.name!r}; keep the two sets apart"
            )
