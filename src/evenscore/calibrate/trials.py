"""The trials that a calibration is fitted to or applied to, from arrays or tables: everything in rows in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN, Labels
from evenscore.data.score_matrix import ScoreMatrix, as_scores
from evenscore.data.side import SpeakersLike, as_strings
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike, Points, ScoresLike, as_labels, as_points

__all__ = ["Floats", "Speakers", "Systems", "Trials", "Weights", "as_tables", "as_trials", "speaker_codes"]
__all__ += ["quality_columns"]

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]
Speakers: TypeAlias = "SpeakersLike | None"
Weights: TypeAlias = "npt.ArrayLike | None"
Table = ScoreMatrix | TrialList
#: Scores of one system, or of several: numbers with a last axis of systems, or a list of tables.
Systems: TypeAlias = "ScoresLike | Sequence[Table]"


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
        classes = [(self.scores[at], self.weights[at]) for at in (self.labels == NONTARGET, self.labels == TARGET)]
        mean = np.array([np.average(scores, weights=weights) for scores, weights in classes])
        variance = [np.average((scores - m) ** 2, weights=w) for (scores, w), m in zip(classes, mean, strict=True)]
        return np.array([weights.sum() for _, weights in classes]), mean, np.array(variance)

    def with_llrs(self, llr: Floats) -> Any:
        """Return LLRs in the form that the scores had: an array, or the first table."""
        if not self.tables:
            return llr.reshape(self.shape)
        trials = self.tables[0].to_trials().with_normalized(llr)
        return trials if self.tables[0].rows is not None else trials.to_matrix()


def as_tables(scores: Any) -> list[Table]:
    """Return the table or tables that scores are; an empty list if they are numbers."""
    found = list(scores) if isinstance(scores, list | tuple) else [scores]
    return found if found and isinstance(found[0], Table) else []


def as_trials(
    scores: Systems,
    labels: LabelsLike = None,
    weights: Weights = None,
    quality: Any = None,
    *,
    labelled: bool = True,
    several: bool | None = None,
) -> Trials:
    """Return what `Calibration.fit` gets as rows; ``several``: the last axis of an array has several systems."""
    if isinstance(scores, Points):
        points = as_points(scores, labels, weights, merge=False)
        labels = np.repeat([TARGET, NONTARGET], points.score.size)
        scores, weights = np.tile(points.score, 2), np.concatenate([points.target, points.nontarget])
    tables, shape = as_tables(scores), ()
    if tables:
        table = tables[0].to_trials()
        values, pairs = _stack([table, *tables[1:]]), (table.rows, table.cols)
        weights = np.asarray(weights)[pairs] if np.ndim(weights) == 2 else weights  # type: ignore[arg-type]
        labels = np.asarray(labels)[pairs] if np.ndim(labels) == 2 else labels  # type: ignore[arg-type]
        key = _key(table, labels) if labelled else np.full(len(table), UNKNOWN, np.int8)
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
        measures = quality_columns(table, np.ravel(quality).tolist())
    if measures.dtype.kind not in "fiu" or measures.size % max(key.size, 1):
        raise InputError(f"quality must be numbers of {key.size} trials, a row for each, or names of a table's columns")
    rows = values.astype(np.float64, copy=False), key.reshape(-1), mass, measures.reshape(key.size, -1)
    return Trials(*rows, shape, tables)


def _key(table: TrialList, labels: LabelsLike) -> npt.NDArray[np.int8]:
    """Return the labels of the trials of a table; those that a key does not have are unknown."""
    if labels is None:
        labels = Labels.from_speakers(table.enroll, table.test) if table.labels is None else table.labels
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


def speaker_codes(trials: Trials, enroll: Speakers, test: Speakers) -> tuple[list[str], Codes, Codes]:
    """Return the names of all speakers, sorted, and for each trial the positions of its two speakers among them."""
    sides = [None if given is None else as_strings(given, "speakers") for given in (enroll, test)]
    if trials.tables:
        table = trials.tables[0].to_trials().with_speakers(enroll, test)
        rows, cols = table.enroll.speakers, table.test.speakers
        sides = [None if rows is None else rows[table.rows], None if cols is None else cols[table.cols]]
    for name, side in zip(("enroll", "test"), sides, strict=True):
        if side is None or len(side) != len(trials.labels) or not all(side.tolist()):
            raise InputError(f"every trial needs a speaker on the {name} side; give {name}_speakers that have all")
    names, code = np.unique(np.concatenate([side for side in sides if side is not None]), return_inverse=True)
    return names.tolist(), code[: len(trials.labels)], code[len(trials.labels) :]


def quality_columns(trials: TrialList, names: Sequence[str]) -> Floats:
    """Return n x q quality measures: numbers that a calibration weighs beside the score, from columns of a table.

    A name is that of a column of the trials or of one side; ``enroll:NAME``, ``test:NAME``; ``min:NAME``, ``max:NAME``,
    ``diff:NAME`` (the higher minus the lower) and ``ratio:NAME`` (the higher over the lower) of the columns of both
    sides, which are called NAME, or NAME_e and NAME_t. ``log:`` before any of them is the logarithm.

    Examples
    --------
    >>> trials = TrialList(["e"], ["t"], columns={"dur_e": [3.0], "dur_t": [6.0]})
    >>> quality_columns(trials, ["test:dur", "ratio:dur"])
    array([[6., 2.]])
    """
    known: dict[str, tuple[npt.NDArray[Any], Any]] = {name: (each, ...) for name, each in trials.columns.items()}
    for side, at, suffix in ((trials.enroll, trials.rows, "_e"), (trials.test, trials.cols, "_t")):
        numbers = {name: values for name, values in side.columns.items() if values.dtype.kind in "fiu"}
        known = {name + suffix: (values, at) for name, values in numbers.items()} | known
    columns = [_measure(name, known) for name in names]
    for name, values in zip(names, columns, strict=True):
        if not np.isfinite(values).all():
            pair = trials.pair(int(np.argmin(np.isfinite(values))))
            raise InputError(f"the quality measure {name!r} of the trial {pair} is not known; leave out such trials")
    return np.stack(columns, axis=-1)


def _measure(name: str, known: dict[str, tuple[npt.NDArray[Any], Any]]) -> Floats:
    prefix, _, rest = name.partition(":") if ":" in name else ("", "", name)
    if prefix == "log":
        values = _measure(rest, known)
        return np.log(values, out=np.full(values.shape, np.nan), where=values > 0)
    enroll, test = f"{rest}_e", f"{rest}_t"
    both = [each for each in ((name,) if name in known else (enroll, test)) if each in known]
    wanted = {"": both if len(both) == 1 else [name], "enroll": [enroll], "test": [test]}.get(prefix, [enroll, test])
    if not {*wanted} <= known.keys() or prefix not in ("", "enroll", "test", "min", "max", "diff", "ratio"):
        there = ", ".join(known) or "none"
        raise InputError(
            f"there is no quality measure {name!r}; write such as log:min:dur; there are the columns {there}"
        )
    columns = [known[each][0].astype(np.float64)[known[each][1]] for each in wanted]
    low, high = np.minimum.reduce(columns), np.maximum.reduce(columns)
    if prefix == "ratio":
        return np.divide(high, low, out=np.full(low.shape, np.nan), where=low > 0)
    return np.asarray(high - low if prefix == "diff" else low if prefix == "min" else high)
