"""What stands in the files of models of embeddings: PLDA, and transforms before the cosine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenscore.files.records import KeyPlace, RecordFormat, numbers, optional, plain, truth
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from evenscore.plda import PLDA
    from evenscore.plda.projection import Projection
    from evenscore.scoring import Transform

__all__ = ["PLDA_MODEL", "TRANSFORM"]

_LARGE = 1 << 28  # bytes; a PLDA of 1024 dimensions takes about 60 MB
_PROJECTION = {"center": numbers(None), "projection": optional(numbers(None, None)), "length_normalize": truth}
_PLDA = {**_PROJECTION, "mean": numbers(None), "between": numbers(None, None), "within": numbers(None, None)}
_LATER = {"model_length": truth}


def _projection(at: KeyPlace, found: dict[str, Any]) -> Projection:
    """Return the projection among the values of an object, which are taken out of them."""
    from evenscore.plda.projection import Projection

    center, matrix = found.pop("center"), found.pop("projection")
    if not center:
        at.key("center").refuse("it is empty")
    if matrix is not None and len(matrix) != len(center):
        at.key("projection").refuse(f"it has {len(matrix)} rows, but center has {len(center)} components")
    return Projection(
        center=frozen(np.array(center)),
        matrix=None if matrix is None else frozen(np.array(matrix)),
        length_normalize=found.pop("length_normalize"),
    )


def _projection_values(projection: Projection) -> dict[str, Any]:
    values = plain(projection)
    return {"center": values["center"], "projection": values["matrix"], "length_normalize": values["length_normalize"]}


def _plda(at: KeyPlace, value: Any) -> PLDA:
    from evenscore.plda import PLDA

    found = at.fields(value, _PLDA | _LATER, optional=tuple(_LATER))
    projection = _projection(at, found)
    with at.blamed():
        return PLDA(**found, projection=projection)


def _plda_values(plda: PLDA) -> dict[str, Any]:
    values = plain(plda) | _projection_values(plda.projection)
    return {name: values[name] for name in (*_PLDA, *(_LATER if plda.model_length else ()))}


def _transform(at: KeyPlace, value: Any) -> Transform:
    from evenscore.scoring import Transform

    found, place = value["steps"], at.key("steps")
    if not isinstance(found, list) or not found:
        place.expected("a list of steps", found)
    steps = []
    for number, step in enumerate(found):
        here = place.item(number)
        steps.append(_projection(here, here.fields(step, _PROJECTION)))
        if number and len(steps[-1].center) != steps[-2].dim:
            here.refuse(f"it takes {len(steps[-1].center)} dimensions, but the step before gives {steps[-2].dim}")
    return Transform(tuple(steps))


PLDA_MODEL = RecordFormat(
    name="evenscore-plda",
    keys=tuple(_PLDA),
    model=_plda,
    values=_plda_values,
    largest=_LARGE,
    optional=tuple(_LATER),
)
TRANSFORM = RecordFormat(
    name="evenscore-transform",
    keys=("steps",),
    model=_transform,
    values=lambda transform: {"steps": [_projection_values(step) for step in transform.steps]},
    largest=_LARGE,
)
