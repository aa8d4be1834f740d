"""How the evaluations of NIST are scored: operating points, and partitions of the trials that weigh the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.metrics.evaluation import evaluate_by
from evenscore.metrics.evaluation_records import EvaluationBy
from evenscore.metrics.operating_points import OperatingPoint, as_points
from evenscore.metrics.trials import validate
from evenscore.tables import NONTARGET, UNKNOWN, TrialList

__all__ = ["NIST_PRESETS", "NistPreset", "evaluate_nist"]

_SAME_PHONE = ("phone_num_match", "Y")  # non-targets of it are left out, so that the partition has no false alarms
_CTS, _AV = (0.01, 0.005), (0.05,)
_ENROLLED = {"num_enroll_segs": ("1", "3"), "phone_num_match": ("Y", "N"), "gender": ("male", "female")}


@dataclass(frozen=True)
class NistPreset:
    """How one evaluation is scored.

    Attributes
    ----------
    points
        The operating points whose mean cost is C_primary.
    partitions
        Columns of the trial key and their values; each combination is a partition. No values: any.
    """

    points: tuple[OperatingPoint, ...]
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


#: sre18 and sre18-vast are as in NIST's scoring software of 2018, and sre19 is on the same collection; the partitions
#: of sre16 and sre21 are written down from memory of the evaluation plans.
NIST_PRESETS: Mapping[str, NistPreset] = {
    "sre16": NistPreset(as_points(_CTS), {**_ENROLLED, "language": ()}),
    "sre18": NistPreset(as_points(_CTS), {**_ENROLLED, "source_type": ("pstn", "voip")}),
    "sre18-vast": NistPreset(as_points(_AV), {"data_source": ("vast",)}),
    "sre19": NistPreset(as_points(_CTS), {**_ENROLLED, "source_type": ("pstn", "voip")}),
    "sre19-av": NistPreset(as_points(_AV)),
    "sre21": NistPreset(as_points(_CTS), {**_ENROLLED, "source_type_match": ("Y", "N"), "language_match": ("Y", "N")}),
}


def evaluate_nist(
    scores: npt.ArrayLike | TrialList,
    labels: npt.ArrayLike | None = None,
    *,
    preset: str,
    columns: Mapping[str, npt.ArrayLike] | None = None,
) -> EvaluationBy:
    """Score trials as an evaluation of NIST does: the primary metric is ``pooled.act_c_primary``.

    At each threshold, Pmiss and Pfa are plain means over the partitions; one that lacks a class has no part in the mean
    of that class's errors. Non-target trials over one phone number are left out, and so are trials of values that the
    evaluation does not name. The EER is that of straight lines between neighbouring points of the ROC.

    Parameters
    ----------
    scores, labels
        As in `validate`; scores are LLRs.
    preset
        ``sre16``, ``sre18`` (CMN2), ``sre18-vast``, ``sre19`` (CTS), ``sre19-av`` or ``sre21``.
    columns
        The columns of the trial key that make the partitions, by name, with a text for each trial.

    Examples
    --------
    >>> result = evaluate_nist([5.0, 4.0, 6.0, -7.0, 5.0], [1, 1, 1, 0, 0], preset="sre19-av")
    >>> result.pooled.act_c_primary == 0.95 / 0.05 / 2
    True
    """
    if preset not in NIST_PRESETS:
        raise InputError(f"there is no evaluation {preset!r}; choose one of {', '.join(NIST_PRESETS)}")
    how = NIST_PRESETS[preset]
    values, key = validate(scores, labels)
    known = {name: _texts(columns, name, len(key)) for name in how.partitions}
    used = key != UNKNOWN
    for name, wanted in how.partitions.items():
        if wanted:
            used &= np.isin(known[name], wanted)
        if name == _SAME_PHONE[0]:
            used &= ~((known[name] == _SAME_PHONE[1]) & (key == NONTARGET))
    if not used.any():
        raise InputError(f"no trial is of a partition of {preset}: {_named(how.partitions)}; check the columns")
    parts = [" ".join(row) for row in zip(*known.values(), strict=True)] if known else ["all"] * len(key)
    return evaluate_by(
        values[used],
        key[used],
        conditions=np.array(parts)[used],
        equalize=True,
        points=how.points,
        eer_method="interpolated",
    )


def _texts(columns: Mapping[str, npt.ArrayLike] | None, name: str, length: int) -> npt.NDArray[np.str_]:
    if columns is None or name not in columns:
        raise InputError(f"the column {name!r} is missing, by which this evaluation parts its trials; give it")
    texts = np.asarray(columns[name]).astype(str)
    if texts.shape != (length,):
        raise InputError(f"the column {name!r} has shape {texts.shape}, but there are {length} trials; give one each")
    return texts


def _named(partitions: Mapping[str, tuple[str, ...]]) -> str:
    return ", ".join(f"{name} {' or '.join(values) or 'of any value'}" for name, values in partitions.items())
