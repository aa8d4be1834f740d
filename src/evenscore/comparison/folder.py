"""Results on disk: each method in a folder of its own, so that a run that was stopped can go on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from evenscore._version import __version__
from evenscore.calibrate import Calibration
from evenscore.comparison.comparison import Comparison, Figures, Judging, MethodResult
from evenscore.comparison.data import Sides
from evenscore.comparison.layout import (
    CALIBRATION,
    MODEL,
    RECORD,
    RESULTS,
    load_summaries,
    method_folders,
    save_summaries,
    score_files,
    stored_tables,
    write_tables,
)
from evenscore.comparison.measuring import calibrated_tables
from evenscore.comparison.methods import RAW, Method, plain_options
from evenscore.comparison.results import plain, results_of
from evenscore.comparison.trials import ComparedTrials
from evenscore.errors import EvenscoreError
from evenscore.files import read_scores, write
from evenscore.files.models import is_saved, load_calibration, load_trained, save_calibration, save_trained
from evenscore.files.records import check_header, read_json, write_object
from evenscore.files.streams import PathLike, writing
from evenscore.norms import METHODS
from evenscore.progress import Progress, silent
from evenscore.tables import LabelledBlocks, ScoreTable
from evenscore.tables.arrays import frozen, hashed

__all__ = ["ResultFolder", "save_comparison", "write_results"]

_FORMAT, _VERSION = "evenscore-comparison-method", 1
_DIGEST = "digest"
_LARGEST = 500_000_000  # bytes of a record: millions of draws of speakers
_KEPT = ("replicates", "is_llr", "notes", "seconds")  # of a result, as they are
_INFINITE = {"inf": np.inf, "-inf": -np.inf}  # JSON has no infinite numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultFolder:
    """A folder of finished methods, each with the fingerprint of all that its results depend on."""

    places: Mapping[str, Path]  #: of each method
    how: Judging
    sides: Sides
    inputs: str
    with_scores: bool  #: whether scores that are not in memory are kept

    @classmethod
    def of(
        cls, directory: PathLike, methods: Sequence[Method], sides: Sides, how: Judging, *, with_scores: bool = True
    ) -> ResultFolder:
        """Return the folder, and make it if it is not there."""
        root = _made(Path(directory))
        folders = method_folders(method.name for method in methods)
        return cls(
            places={name: root / folder for name, folder in folders.items()},
            how=how,
            sides=sides,
            inputs=inputs_digest([sides.training, sides.evaluation]),
            with_scores=with_scores,
        )

    def keep_scores(self, method: Method, tables: Sequence[ScoreTable], progress: Progress) -> Sequence[ScoreTable]:
        """Write normalized scores that are not in memory; the raw ones stay where they are."""
        if not self.with_scores or method.norm == RAW:
            return tables
        place = self.places[method.name]
        _begin(place)
        return write_tables(place, tables, self.sides.trials.names, client=self.sides.client, progress=progress)

    def store(self, result: MethodResult) -> MethodResult:
        """Keep the results of a method, and return them as they are kept; the record appears when the rest is there."""
        place = self.places[result.name]
        fingerprint = fingerprint_of(Method(result.name, result.norm, result.options), self.how, self.inputs)
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "fingerprint": fingerprint,
            "figures": vars(result.figures),
            "conditions": {name: vars(figures) for name, figures in result.conditions.items()},
            "uncalibrated": result.uncalibrated and vars(result.uncalibrated),
            "training": result.training and vars(result.training),
            **{name: getattr(result, name) for name in _KEPT},
        }
        _write_files(place, self.sides.trials, result)
        if result.summaries is None:
            record["digests"] = {kind: hashed(getattr(result, kind)) for kind in ("scores", "llrs")}
        else:
            save_summaries(place, fingerprint, result.summaries)
        kept = plain(record)
        write_object(place / RECORD, {**kept, _DIGEST: _digest(kept)})
        if result.summaries is None or self.with_scores or result.norm == RAW:
            return result
        return replace(result, scores=(), llrs=())

    def load(self, method: Method) -> MethodResult | None:
        """Return the results of a finished method; None if there are none of just this data and these options."""
        place = self.places[method.name]
        if not (place / RECORD).is_file():
            return None
        try:
            return self._loaded(method, place)
        except (
            EvenscoreError,
            KeyError,
            OverflowError,
            TypeError,
            ValueError,
        ):  # damaged, or changed by hand: do it again
            return None

    def _loaded(self, method: Method, place: Path) -> MethodResult | None:
        record = read_json(place / RECORD, largest=_LARGEST)
        check_header(place / RECORD, record, _FORMAT, _VERSION)
        fingerprint = fingerprint_of(method, self.how, self.inputs)
        if record.pop(_DIGEST) != _digest(record) or record["fingerprint"] != fingerprint:
            return None
        calibration = load_calibration(place / CALIBRATION)
        trials = self.sides.trials
        if trials.is_in_memory:
            scores = _read_scores(place, trials, record["digests"])
        else:
            scores = self._stored_scores(method, place, trials, calibration, fingerprint)
        if scores is None:
            return None
        return MethodResult(
            **vars(method),
            **scores,
            **{kind: _figures(record[kind]) for kind in ("figures", "uncalibrated", "training")},
            conditions={name: _figures(figures) for name, figures in record["conditions"].items()},
            replicates={name: frozen(np.array(_numbers(drawn))) for name, drawn in record["replicates"].items()},
            calibration=calibration,
            model=load_trained(place / MODEL) if (place / MODEL).is_file() else None,
            is_llr=record["is_llr"],
            notes=tuple(record["notes"]),
            seconds=float(record["seconds"]),
        )

    def _stored_scores(
        self, method: Method, place: Path, trials: ComparedTrials, calibration: Calibration, fingerprint: str
    ) -> dict[str, Any] | None:
        """Return scores and LLRs as tables, and their summaries; no tables where they were not kept."""
        summaries = load_summaries(place, fingerprint, self.how.points)
        tables: Sequence[ScoreTable] | None = [part.blocks.trials for part in trials.parts]
        if method.norm != RAW:
            tables = stored_tables(place, tables or (), trials.names) if self.with_scores else ()
        if summaries is None or tables is None:
            return None
        llrs = calibrated_tables(tables, [calibration] * len(tables))
        return {"scores": tuple(tables), "llrs": llrs, "summaries": summaries}


def _digest(record: Mapping[str, Any]) -> str:
    """Return a hash of a record but for its time, so that damaged values are not taken for what was computed."""
    lasting = {name: value for name, value in record.items() if name != "seconds"}
    return hashlib.sha256(json.dumps(lasting, sort_keys=True).encode()).hexdigest()


def _read_scores(place: Path, trials: ComparedTrials, digests: Mapping[str, str]) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for kind in ("scores", "llrs"):
        tables = [read_scores(place / name, infinite="accept") for name in score_files(kind, trials.names)]
        found[kind] = frozen(np.concatenate([np.asarray(table.scores) for table in tables]))
    return found if all(hashed(array) == digests[kind] for kind, array in found.items()) else None


def save_comparison(comparison: Comparison, directory: PathLike) -> None:
    """Write scores, log-likelihood ratios, calibrations and models of all methods, and ``results.json``."""
    root = _made(Path(directory))
    folders = method_folders(method.name for method in comparison.methods)
    for method in comparison.methods:
        place = root / folders[method.name]
        _write_files(place, comparison.trials, method)
        if isinstance(method.scores, tuple) and method.scores and method.norm != RAW:
            write_tables(place, method.scores, comparison.trials.names, client=None, progress=silent)
    write_results(comparison, root)


def write_results(comparison: Comparison, directory: PathLike) -> None:
    """Write ``results.json``."""
    write_object(_made(Path(directory)) / RESULTS, results_of(comparison))


def _made(directory: Path) -> Path:
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def _begin(place: Path) -> None:
    """Make the folder of a method; what would belong to other scores from now on goes."""
    _made(place)
    with writing(place):
        for name in (RECORD, MODEL):
            (place / name).unlink(missing_ok=True)


def _write_files(place: Path, trials: ComparedTrials, result: MethodResult) -> None:
    """Write calibration and model of a method, and those scores that are in memory."""
    _begin(place)
    if result.summaries is None:
        for kind in ("scores", "llrs"):
            for name, part in zip(score_files(kind, trials.names), trials.split(getattr(result, kind)), strict=True):
                write(part, place / name)
    save_calibration(result.calibration, place / CALIBRATION)
    if is_saved(result.model):
        save_trained(result.model, place / MODEL)


def _figures(record: Any) -> Any:
    return (
        None if record is None else Figures(values=_numbers(record["values"]), intervals=_numbers(record["intervals"]))
    )


def _numbers(value: Any) -> Any:
    """Return what `plain` made of infinite numbers as numbers again."""
    if isinstance(value, dict):
        return {name: _numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return _INFINITE.get(value, value) if isinstance(value, str) else value


def fingerprint_of(method: Method, how: Judging, inputs: str) -> str:
    """Return the fingerprint of one method's results."""
    facts = {
        "evenscore": __version__,
        "norm": method.norm,
        "options": plain_options(method.options),
        "how": {**asdict(how), "calibration_options": plain_options(how.calibration_options)},
        "inputs": inputs,
    }
    version = METHODS[method.norm].version if method.norm in METHODS else ""
    facts |= {"version": version} if version else {}
    return hashlib.blake2b(json.dumps(facts, sort_keys=True).encode(), digest_size=20).hexdigest()


def inputs_digest(sides: Sequence[Sequence[LabelledBlocks]]) -> str:
    """Return the digest of all scores, ids, labels, speakers and names of the data.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, TrialList
    >>> def digest(score):
    ...     trials = TrialList.from_pairs(["e"], ["t"], scores=[score], labels=[1])
    ...     return inputs_digest([[LabelledBlocks(ScoreBlocks(trials))]])
    >>> digest(1.0) == digest(1.0), digest(1.0) == digest(1.5)
    (True, False)
    """
    seen: dict[int, str] = {}  # a matrix that is its own cohort is read once
    facts = [[_facts(part, seen) for part in side] for side in sides]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=20).hexdigest()


def _facts(part: LabelledBlocks, seen: dict[int, str]) -> list[Any]:
    blocks = part.blocks
    tables = [_table_facts(table, seen) for table in (blocks.trials, blocks.enroll, blocks.test, blocks.cohort)]
    cohort = None if blocks.cohort_labels is None else blocks.cohort_labels.identity()
    return [part.name, part.unmatched, part.values.identity(), cohort, tables]


def _table_facts(table: ScoreTable | None, seen: dict[int, str]) -> list[str] | None:
    if table is None:
        return None
    where = id(table.numbers)
    if where not in seen:
        seen[where] = table.source.identity()
    axes = (table.enroll_axis, table.test_axis)
    return [seen[where], *(hashed(axis.ids, axis.speakers) for axis in axes)]
