"""What stands in the file of a cohort-evidence model."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from evenscore.evidence.features import EXTRAS, PATTERNS, SIMPLE, VIEWS, ScalePrior, Scales
from evenscore.evidence.head import BEND, EvidenceHead
from evenscore.evidence.model import CohortEvidence, TrainingReport
from evenscore.evidence.own_pairs import Ridges
from evenscore.files.records import KeyPlace, Kind, count, number, optional, typed, where

__all__ = ["REPORTED_LATER", "evidence_kind"]

REPORTED_LATER = ("simple", "instead", "errors")  #: what reports of older files do not have

_RIDGE = where(number, lambda ridge: ridge > 0, "a ridge must be above 0")
_RANK = where(count, lambda rank: rank > 0, "the rank must be a whole number from 1")
_SHARE = where(number, lambda share: 0 <= share < 0.5, "a share must be from 0 to below 0.5")


def evidence_kind(score_model: Kind) -> Callable[[KeyPlace, Any], CohortEvidence]:
    """Return the kind of a cohort-evidence model, given that of the score model in it."""
    prior = typed(ScalePrior, "alike")
    return typed(
        CohortEvidence,
        score_model=score_model,
        scales=typed(Scales, **dict.fromkeys(("enroll", "test", "enroll_top", "test_top"), prior)),
        ridges=typed(Ridges, impostor=_RIDGE, within=_RIDGE, rank=_RANK),
        heads=_heads,
        report=typed(TrainingReport, *REPORTED_LATER, loss=optional(number, math.nan), instead=optional(_norm)),
    )


def _norm(at: KeyPlace, value: Any) -> str:
    known = sorted({norm for norms in SIMPLE.values() for norm in norms})
    return value if value in known else at.expected(f"one of {', '.join(known)}", value)


def _heads(at: KeyPlace, value: Any) -> dict[str, EvidenceHead]:
    found = at.object(value)
    for name in found:
        if name not in PATTERNS:
            at.refuse(f"there is no pattern {name!r}; there are {', '.join(PATTERNS)}")
    return {name: _head(at.key(name), name, item) for name, item in found.items()}


def _head(at: KeyPlace, pattern: str, value: Any) -> EvidenceHead:
    head = typed(EvidenceHead, target_outliers=_SHARE, nontarget_outliers=_SHARE)(at, value)
    views, extras = head.views, head.extras
    alone = len(views) == 1 and not extras and head.weight.get(BEND) == 0
    known = SIMPLE[pattern] if alone and views[0] in SIMPLE[pattern] else VIEWS[pattern]
    odd = [*(name for name in views if name not in known), *(name for name in extras if name not in EXTRAS[pattern])]
    if odd or not views:
        at.refuse(f"{odd[0]!r} is no feature of the pattern {pattern!r}" if odd else "no view")
    weighed = (*views, BEND, *extras)
    for name, expected in (("intercept", views), ("share", views), ("center", extras), ("weight", weighed)):
        at.key(name).fields(getattr(head, name), dict.fromkeys(expected, number))
    return head
