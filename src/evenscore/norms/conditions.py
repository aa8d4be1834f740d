"""Conditions, such as gender or channel, that restrict the cohort of each enrolment and of each test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.tables.ids import Ids, as_speakers, shown

__all__ = ["NO_GROUP", "Codes", "Conditions", "coded"]

Map = Mapping[str, str | None]
Codes = npt.NDArray[np.int64]
NO_GROUP = -1


def coded(values: Ids | None, codes: dict[str, int], size: int) -> Codes:
    """Return the number of each value, NO_GROUP where it has none."""
    if values is None or not codes:
        return np.full(size, NO_GROUP, dtype=np.int64)
    return np.fromiter((codes.get(name, NO_GROUP) for name in values.tolist()), dtype=np.int64, count=size)


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Maps from id to condition; each enrolment and each test keeps only the cohort members of its own condition.

    An enrolment or test whose condition is None or '' keeps the whole cohort. A cohort member whose condition is not
    known serves only these.

    Parameters
    ----------
    enroll, test
        Condition of each enrolment and of each test of the trials; None if that side is not restricted.
    cohort_enroll, cohort_test
        Condition of each member of the enrolment cohort and of the test cohort.

    Examples
    --------
    >>> Conditions(enroll={"e1": "f"}, cohort_test={"c1": "f", "c2": "m"}).enroll
    {'e1': 'f'}
    """

    enroll: Map | None = None
    test: Map | None = None
    cohort_enroll: Map | None = None
    cohort_test: Map | None = None

    def __post_init__(self) -> None:
        for side, cohort in (("enroll", "cohort_test"), ("test", "cohort_enroll")):
            if getattr(self, side) is not None and getattr(self, cohort) is None:
                raise InputError(f"conditions of `{side}` need those of `{cohort}`, the cohort that they choose from")

    def codes(self, name: str, ids: Ids, cohort_name: str, cohort_ids: Ids) -> tuple[Codes | None, Codes | None]:
        """Return the conditions of rows and columns as numbers, None if the rows are not restricted."""
        rows, columns = getattr(self, name), getattr(self, cohort_name)
        if rows is None or columns is None:
            return None, None
        row, column = _looked_up(rows, ids, name), _looked_up(columns, cohort_ids, cohort_name)
        numbers = {value: at for at, value in enumerate(sorted({*row, *column} - {None}))}
        return coded(row, numbers, len(row)), coded(column, numbers, len(column))


def _looked_up(conditions: Map, ids: Ids, what: str) -> Ids:
    absent = [name for name in ids if name not in conditions]
    if absent:
        raise InputError(f"the conditions of `{what}` lack {shown(absent)}; add them, or map them to None")
    return as_speakers([conditions[name] for name in ids], f"conditions of `{what}`")
