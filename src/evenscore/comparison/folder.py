"""Results on disk: each method in a folder of its own, so that a run that was stopped can go on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.comparison.comparison import Comparison, Figures, MethodResult
from evenscore.comparison.fingerprint import array_digest, fingerprint_of, inputs_digest
from evenscore.comparison.judging import Judged, Judging, Sides
from evenscore.comparison.layout import CALIBRATION, MODEL, RECORD, RESULTS, method_folders, score_files
from evenscore.comparison.methods import Method
from evenscore.comparison.results import plain, results_of
from evenscore.comparison.trials import ComparedTrials
from evenscore.errors import EvenscoreError
from evenscore.files import read_scores, write
from evenscore.files.calibration_json import load_calibration, save_calibration
from evenscore.files.json_text import check_header, read_object, write_object
from evenscore.files.streams import PathLike, writing
from evenscore.files.trained_models import is_saved, load_trained, save_trained
from evenscore.tables.arrays import frozen

__all__ = ["ResultFolder", "save_comparison", "write_results"]

_FORMAT, _VERSION = "evenscore-comparison-method", 1
_LARGEST = 500_000_000  # bytes of a record: millions of draws of speakers
_INFINITE = {"inf": np.inf, "-inf": -np.inf}  # JSON has no infinite numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class ResultFolder:
    """A folder of finished methods, each with the fingerprint of all that its results depend on."""

    places: Mapping[str, Path]  #: of each method
    how: Judging
    trials: ComparedTrials
    inputs: str

    @classmethod
    def of(cls, directory: PathLike, methods: Sequence[Method], sides: Sides, how: Judging) -> ResultFolder:
        """Return the folder, and make it if it is not there."""
        root = _made(Path(directory))
        folders = method_folders(method.name for method in methods)
        return cls(
            places={name: root / folder for name, folder in folders.items()},
            how=how,
            trials=sides.trials,
            inputs=inputs_digest([sides.training, sides.evaluation]),
        )

    def store(self, judged: Judged) -> None:
        """Keep the results of a method; its record appears only when all the rest is there."""
        place = self.places[judged.method.name]
        _write_method(place, self.trials, judged)
        record = {
            "format": _FORMAT,
            "version": _VERSION,
            "fingerprint": fingerprint_of(judged.method, self.how, self.inputs),
            "digests": {kind: array_digest(getattr(judged, kind)) for kind in ("scores", "llrs")},
            "figures": _record(judged.figures),
            "conditions": {name: _record(figures) for name, figures in judged.conditions.items()},
            "uncalibrated": _record(judged.uncalibrated),
            "training": _record(judged.training),
            "replicates": judged.replicates,
            "is_llr": judged.is_llr,
            "notes": judged.notes,
            "seconds": judged.seconds,
        }
        write_object(place / RECORD, plain(record))

    def load(self, method: Method) -> Judged | None:
        """Return the results of a finished method; None if there are none of just this data and these options."""
        place = self.places[method.name]
        if not (place / RECORD).is_file():
            return None
        try:
            return self._loaded(method, place)
        except (EvenscoreError, KeyError, TypeError, ValueError):  # damaged, or changed by hand: do it again
            return None

    def _loaded(self, method: Method, place: Path) -> Judged | None:
        record = read_object(place / RECORD, largest=_LARGEST)
        check_header(place / RECORD, record, _FORMAT, _VERSION)
        if record["fingerprint"] != fingerprint_of(method, self.how, self.inputs):
            return None
        values = {kind: self._read_scores(place, kind) for kind in ("scores", "llrs")}
        if any(array_digest(array) != record["digests"][kind] for kind, array in values.items()):
            return None
        return Judged(
            method=method,
            **values,
            figures=_figures(record["figures"]),
            conditions={name: _figures(one) for name, one in record["conditions"].items()},
            uncalibrated=None if record["uncalibrated"] is None else _figures(record["uncalibrated"]),
            training=None if record["training"] is None else _figures(record["training"]),
            replicates={name: frozen(np.array(_numbers(drawn))) for name, drawn in record["replicates"].items()},
            calibration=load_calibration(place / CALIBRATION),
            model=load_trained(place / MODEL) if (place / MODEL).is_file() else None,
            is_llr=record["is_llr"],
            notes=tuple(record["notes"]),
            seconds=record["seconds"],
        )

    def _read_scores(self, place: Path, kind: str) -> npt.NDArray[Any]:
        tables = [read_scores(place / name, infinite="accept") for name in score_files(kind, self.trials.names)]
        return frozen(np.concatenate([np.asarray(table.scores) for table in tables]))


def save_comparison(comparison: Comparison, directory: PathLike) -> None:
    """Write scores, log-likelihood ratios, calibrations and models of all methods, and ``results.json``."""
    root = _made(Path(directory))
    folders = method_folders(method.name for method in comparison.methods)
    for method in comparison.methods:
        _write_method(root / folders[method.name], comparison.trials, method)
    write_results(comparison, root)


def write_results(comparison: Comparison, directory: PathLike) -> None:
    """Write ``results.json``."""
    write_object(_made(Path(directory)) / RESULTS, results_of(comparison))


def _made(directory: Path) -> Path:
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
    return directory


def _write_method(place: Path, trials: ComparedTrials, result: Judged | MethodResult) -> None:
    _made(place)
    with writing(place):
        for name in (RECORD, MODEL):  # from now on they would belong to other scores
            (place / name).unlink(missing_ok=True)
    for kind in ("scores", "llrs"):
        lists = trials.split(getattr(result, kind))
        for name, part in zip(score_files(kind, trials.names), lists, strict=True):
            write(part, place / name)
    save_calibration(result.calibration, place / CALIBRATION)
    if is_saved(result.model):
        save_trained(result.model, place / MODEL)


def _record(figures: Figures | None) -> Any:
    return None if figures is None else {"values": figures.values, "intervals": figures.intervals}


def _figures(record: Mapping[str, Any]) -> Figures:
    return Figures(values=_numbers(record["values"]), intervals=_numbers(record["intervals"]))


def _numbers(value: Any) -> Any:
    """Return what `plain` made of infinite numbers as numbers again."""
    if isinstance(value, dict):
        return {name: _numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return _INFINITE.get(value, value) if isinstance(value, str) else value
