"""The trials that a calibration is fitted to or applied to, from arrays or tables: everything in rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import ScoreMatrix, as_scores
from evenscore.data.side import Side, SpeakersLike, as_strings
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike, ScoresLike, as_labels

__all__ = ["Floats", "SystemsLike", "Trials", "as_tables", "as_trials", "quality_columns", "speaker_codes"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Table = ScoreMatrix | TrialList
#: Scores of one system, or of several: numbers with a last axis of systems, or a list of tables.
SystemsLike: TypeAlias = "ScoresLike | Sequence[Table]"


@dataclass(frozen=True, eq=False)
class Trials:
    """Trials in memory, one row each; those of a matrix are listed row by row."""

    scores: Floats  #: n, or n x k of k systems
    labels: npt.NDArray[np.int8]  #: 1 (target), 0 (non-target), -1 (not used)
    weights: Floats  #: how many trials each trial counts for
    measures: Floats  #: n x q quality measures
    shape: tuple[int, ...] = ()  #: of the array that they were
    tables: Sequence[Table] = ()  #: or the tables

    def take(self, mask: npt.NDArray[np.bool_]) -> Trials:
        """Return some of the trials."""
        return Trials(self.scores[mask], self.labels[mask], self.weights[mask], self.measures[mask])

    def moments(self) -> tuple[Floats, Floats, Floats]:
        """Return number, mean and variance of the scores of non-targets and of targets."""
        found = []
        for label in (NONTARGET, TARGET):
            scores, weights = self.scores[self.labels == label], self.weights[self.labels == label]
            mean = np.average(scores, weights=weights)
            found.append((weights.sum(), mean, np.average((scores - mean) ** 2, weights=weights)))
        number, mean, variance = np.array(found, np.float64).T
        return number, mean, variance

    def with_llrs(self, llr: Floats) -> Any:
        """Return LLRs in the form that the scores had: an array, or the first table."""
        if not self.tables:
            return llr.reshape(self.shape)
        trials = self.tables[0].to_trials().with_normalized(llr)
        return trials if self.tables[0].rows is not None else trials.to_matrix()


def as_tables(scores: object) -> list[Table]:
    """Return the table or tables that scores are; an empty list if they are numbers."""
    found = list(scores) if isinstance(scores, list | tuple) else [scores]
    return found if found and isinstance(found[0], Table) else []


def as_trials(
    scores: SystemsLike,
    labels: LabelsLike = None,
    weights: npt.ArrayLike | None = None,
    quality: Any = None,
    *,
    labelled: bool = True,
    several: bool | None = None,
) -> Trials:
    """Return trials as rows.

    Labels and weights are those of `Calibration.fit`; ``labelled`` tells whether labels are needed, ``several`` whether
    the last axis of an array has several systems, by default if labels have one axis less.
    """
    tables, shape = as_tables(scores), ()
    if tables:
        table = tables[0].to_trials()
        values, weights = _stack([table, *tables[1:]]), _listed(weights, table)
        key = _key(table, _listed(labels, table)) if labelled else np.full(len(table), UNKNOWN, np.int8)
    else:
        values = as_scores(scores, ndim=np.ndim(scores))  # type: ignore[arg-type]
        several = labels is not None and np.ndim(labels) < values.ndim if several is None else several  # type: ignore[arg-type]
        shape = values.shape[:-1] if several else values.shape
        if labels is None and labelled:
            raise InputError("labels are missing; give one label per trial: 1 (target), 0 (non-target), -1 (unknown)")
        key = np.full(shape, UNKNOWN, np.int8) if labels is None else as_labels(labels, shape)
        values = values.reshape(key.size, -1) if several and values.shape[-1] != 1 else values.reshape(key.size)
    mass = np.ones(key.size) if weights is None else np.asarray(weights, np.float64).reshape(-1)
    if mass.size != key.size or not np.isfinite(mass).all() or mass.min(initial=0) < 0:
        raise InputError(f"weights must be finite and not negative, one for each of {key.size} trials")
    measures = np.empty((key.size, 0)) if quality is None else np.asarray(quality)
    if measures.dtype.kind == "U" and tables:
        measures = quality_columns(table, measures.reshape(-1).tolist())
    if measures.dtype.kind not in "fiu" or measures.size % max(key.size, 1):
        raise InputError(f"quality must be numbers of {key.size} trials, a row for each, or names of a table's columns")
    rows = values.astype(np.float64, copy=False), key.reshape(-1), mass, measures.reshape(key.size, -1)
    return Trials(*rows, shape, tables)


def _listed(values: Any, table: TrialList) -> Any:
    """Return numbers of all pairs of a matrix as those of its trials; all else as it is."""
    return np.asarray(values)[table.rows, table.cols] if np.ndim(values) == 2 else values


def _key(table: TrialList, labels: LabelsLike) -> npt.NDArray[np.int8]:
    """Return the labels of the trials of a table; those that a key does not have are unknown."""
    if labels is None and table.labels is not None:
        return table.labels
    if labels is None:
        labels = Labels.from_speakers(table.enroll, table.test)
    if isinstance(labels, Labels):
        return labels.align(table.enroll, table.test).pairs(table.rows, table.cols)
    if not isinstance(labels, TrialList):
        return as_labels(labels, (len(table),))
    if labels.labels is None:
        raise InputError("the key has no labels; give a list of trials with labels")
    at = table.find(labels)
    return np.where(at < 0, UNKNOWN, labels.labels[at]).astype(np.int8)


def _stack(tables: Sequence[Table]) -> npt.NDArray[np.floating]:
    """Return the scores of several tables on the trials of the first one, found by id: one column each."""
    first = tables[0].to_trials()
    columns = [first.needs_scores()]
    for number, table in enumerate(tables[1:], 2):
        system = table.to_trials()
        at = first.find(system)
        if len(system) != len(first) or (at < 0).any():
            raise InputError(f"system {number} does not have the trials of the first one; give all the same trials")
        columns.append(system.needs_scores()[at])
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=-1)


def speaker_codes(
    trials: Trials, enroll: SpeakersLike | None, test: SpeakersLike | None
) -> tuple[list[str], Codes, Codes]:
    """Return the names of all speakers, sorted, and for each trial the positions of its two speakers among them.

    Speakers are one per trial; for a table one per id, a mapping from id to speaker, or None if it knows them.
    """
    sides = [None if given is None else as_strings(given, "speakers") for given in (enroll, test)]
    if trials.tables:
        table = trials.tables[0].to_trials().with_speakers(enroll, test)
        rows, cols = table.enroll.speakers, table.test.speakers
        sides = [None if rows is None else rows[table.rows], None if cols is None else cols[table.cols]]
    for name, side in zip(("enroll", "test"), sides, strict=True):
        if side is None or len(side) != len(trials.labels) or not all(side.tolist()):
            raise InputError(f"every trial needs a speaker on the {name} side; give {name}_speakers that have all")
    names, code = np.unique(np.concatenate(sides), return_inverse=True)  # type: ignore[arg-type]
    return names.tolist(), code[: len(trials.labels)], code[len(trials.labels) :]


def quality_columns(trials: TrialList, names: Sequence[str]) -> Floats:
    """Return n x q quality measures: numbers that a calibration weighs beside the score, from columns of a table.

    A name is that of a column of the trials or of one side; ``enroll:NAME``, ``test:NAME``; ``min:NAME``, ``max:NAME``,
    ``diff:NAME`` (the higher minus the lower) and ``ratio:NAME`` (the higher over the lower) of the columns of both
    sides, which are called NAME, or NAME_e and NAME_t. ``log:`` before any of them is the logarithm.

    Examples
    --------
    >>> enroll, test = Side(["e"], columns={"dur": [3.0]}), Side(["t1", "t2"], columns={"dur": [1.0, 6.0]})
    >>> quality_columns(TrialList(["e", "e"], ["t1", "t2"]).with_sides(enroll, test), ["test:dur", "ratio:dur"])
    array([[1., 3.],
           [6., 2.]])
    """
    columns = [_measure(trials, name) for name in names]
    for name, values in zip(names, columns, strict=True):
        if not np.isfinite(values).all():
            pair = trials.pair(int(np.argmin(np.isfinite(values))))
            raise InputError(f"the quality measure {name!r} of the trial {pair} is not known; leave out such trials")
    return np.stack(columns, axis=-1)


def _measure(trials: TrialList, name: str) -> Floats:
    prefix, _, rest = name.partition(":") if ":" in name else ("", "", name)
    if prefix == "log":
        values = _measure(trials, rest)
        return np.log(values, out=np.full(values.shape, np.nan), where=values > 0)
    if prefix not in ("", "enroll", "test", "min", "max", "diff", "ratio"):
        raise InputError(f"there is no quality measure {name!r}; use log:, enroll:, test:, min:, max:, diff: or ratio:")
    if name in trials.columns:
        return trials.columns[name].astype(np.float64)
    sides = [] if prefix == "test" else [_of_side(trials, rest, trials.enroll, trials.rows, "_e")]
    sides += [] if prefix == "enroll" else [_of_side(trials, rest, trials.test, trials.cols, "_t")]
    known = [values for values in sides if values is not None]
    if not known or (prefix and len(known) < len(sides)):
        there = " and ".join(", ".join(side.columns) or "none" for side in (trials.enroll, trials.test))
        raise InputError(f"the quality measure {name!r} needs numbers in a column {rest!r}; the sides have {there}")
    if not prefix and len(known) > 1:
        raise InputError(f"both sides have a column {name!r}; say enroll:{name}, test:{name} or min:{name}")
    low, high = np.minimum.reduce(known), np.maximum.reduce(known)
    if prefix == "ratio":
        return np.divide(high, low, out=np.full(low.shape, np.nan), where=low > 0)
    return np.asarray(high - low if prefix == "diff" else low if prefix == "min" else high)


def _of_side(trials: TrialList, name: str, side: Side, at: npt.NDArray[np.int32], suffix: str) -> Floats | None:
    """Return the column of the trials for a side, or that of each trial's id; None if there are no such numbers."""
    if name + suffix in trials.columns:
        return trials.columns[name + suffix].astype(np.float64)
    for known in (name, name.removesuffix(suffix)):
        if known in side.columns and side.columns[known].dtype.kind in "fiu":
            return side.columns[known].astype(np.float64)[at]
    return None
