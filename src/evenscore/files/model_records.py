"""What stands in the file of each kind of model; docs/schema/score_model.schema.json describes the score model's."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.files.json_text import shown
from evenscore.files.records import KeyPlace, RecordFormat, count, number, numbers, optional, plain, truth, typed, where
from evenscore.model.parameters import ScoreModel
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from evenscore.calibrate import Calibration
    from evenscore.evidence.head import EvidenceHead
    from evenscore.evidence.model import CohortEvidence
    from evenscore.plda import PLDA

__all__ = ["CALIBRATION", "EVIDENCE", "PLDA_MODEL", "SCORE_MODEL"]

_CLASSES = " (non-target, target)"
_LARGE = 1 << 28  # bytes; a PLDA of 1024 dimensions takes about 60 MB, a PAV calibration 40 bytes for each step
_RIDGE = where(number, lambda ridge: ridge > 0, "a ridge must be above 0")
_RANK = where(count, lambda rank: rank > 0, "the rank must be a whole number from 1")
_SHARE = where(number, lambda share: 0 <= share < 0.5, "a share must be from 0 to below 0.5")
_VARIANCE = where(number, lambda variance: variance > 0, "a variance must be positive")
_PARAMETERS = {
    "mu": numbers(2, note=_CLASSES),
    "alpha": numbers(2, None, note=_CLASSES),
    "beta": numbers(2, None, note=_CLASSES),
    "sigma2": numbers(2, note=_CLASSES, of=_VARIANCE),
}
_PLDA = {
    "center": numbers(None),
    "projection": optional(numbers(None, None)),
    "length_normalize": truth,
    "mean": numbers(None),
    "between": numbers(None, None),
    "within": numbers(None, None),
}


def _score_model(at: KeyPlace, value: Any) -> ScoreModel:
    found = at.fields(value, _PARAMETERS)
    alpha, beta = found["alpha"], found["beta"]
    if len(alpha[0]) != len(beta[0]):
        problem = f"its rows have {len(beta[0])} numbers, but those of alpha have {len(alpha[0])}; both have D"
        at.key("beta").refuse(problem)
    with at.blamed():
        return ScoreModel(**found)


def _evidence(at: KeyPlace, value: Any) -> CohortEvidence:
    from evenscore.evidence.model import CohortEvidence, TrainingReport
    from evenscore.evidence.own_pairs import Ridges

    kind = typed(
        CohortEvidence,
        score_model=_score_model,
        ridges=typed(Ridges, impostor=_RIDGE, within=_RIDGE, rank=_RANK),
        heads=_heads,
        report=typed(TrainingReport, loss=optional(number, math.nan)),
    )
    return kind(at, value)


def _heads(at: KeyPlace, value: Any) -> dict[str, EvidenceHead]:
    from evenscore.evidence.features import PATTERNS

    found = at.object(value)
    for name in found:
        if name not in PATTERNS:
            at.refuse(f"there is no pattern {name!r}; there are {', '.join(PATTERNS)}")
    return {name: _head(at.key(name), name, item) for name, item in found.items()}


def _head(at: KeyPlace, pattern: str, value: Any) -> EvidenceHead:
    from evenscore.evidence.features import EXTRAS, VIEWS
    from evenscore.evidence.head import BEND, EvidenceHead

    head = typed(EvidenceHead, target_outliers=_SHARE, nontarget_outliers=_SHARE)(at, value)
    views, extras = head.views, head.extras
    odd = [name for name in views if name not in VIEWS[pattern]] + [n for n in extras if n not in EXTRAS[pattern]]
    if odd or not views:
        at.refuse(f"{odd[0]!r} is no feature of the pattern {pattern!r}" if odd else "no view")
    weighed = (*views, BEND, *extras)
    for name, expected in (("intercept", views), ("share", views), ("center", extras), ("weight", weighed)):
        at.key(name).fields(getattr(head, name), dict.fromkeys(expected, number))
    return head


def _calibration(at: KeyPlace, value: Any) -> Calibration:
    from evenscore.calibrate import CALIBRATIONS
    from evenscore.calibrate.calibration import FORMAT, VERSION

    kind, parameters = value["kind"], at.key("parameters")
    if not isinstance(kind, str) or kind not in CALIBRATIONS:
        at.key("kind").refuse(f"there is no calibration {shown(kind)}; known are {', '.join(CALIBRATIONS)}")
    names = [parameter.name for parameter in fields(CALIBRATIONS[kind])]
    parameters.fields(value["parameters"], dict.fromkeys(names, _numbers_or_one))
    with parameters.blamed():
        return CALIBRATIONS[kind].from_dict({"format": FORMAT, "version": VERSION, **value})


def _number_or_infinite(at: KeyPlace, value: Any) -> Any:
    """JSON has no infinite numbers, so they stand as text."""
    return value if isinstance(value, str) and value in ("inf", "-inf") else number(at, value)


def _numbers_or_one(at: KeyPlace, value: Any) -> Any:
    return (numbers(None, of=_number_or_infinite) if isinstance(value, list) else _number_or_infinite)(at, value)


def _plda(at: KeyPlace, value: Any) -> PLDA:
    from evenscore.plda import PLDA
    from evenscore.plda.projection import Projection

    found = at.fields(value, _PLDA)
    center, matrix = found.pop("center"), found.pop("projection")
    if not center:
        at.key("center").refuse("it is empty")
    if matrix is not None and len(matrix) != len(center):
        at.key("projection").refuse(f"it has {len(matrix)} rows, but center has {len(center)} components")
    before = Projection(
        center=frozen(np.array(center)),
        matrix=None if matrix is None else frozen(np.array(matrix)),
        length_normalize=found.pop("length_normalize"),
    )
    with at.blamed():
        return PLDA(**found, projection=before)


def _plda_values(plda: PLDA) -> dict[str, Any]:
    values = plain(plda)
    before = values["projection"]
    values |= before | {"projection": before["matrix"]}
    return {name: values[name] for name in _PLDA}


SCORE_MODEL = RecordFormat(name="evenscore-score-model", keys=tuple(_PARAMETERS), model=_score_model)
EVIDENCE = RecordFormat(
    name="evenscore-evidence", keys=("score_model", "scales", "ridges", "heads", "report"), model=_evidence
)
CALIBRATION = RecordFormat(
    name="evenscore-calibration",
    keys=("kind", "parameters"),
    model=_calibration,
    values=lambda calibration: calibration.to_dict(),
    largest=_LARGE,
)
PLDA_MODEL = RecordFormat(
    name="evenscore-plda",
    keys=tuple(_PLDA),
    model=_plda,
    values=_plda_values,
    largest=_LARGE,
)
