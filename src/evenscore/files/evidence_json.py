"""Cohort-evidence models as JSON files that a person can read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

from evenscore.errors import FileError, InputError
from evenscore.evidence.features import EXTRAS, PATTERNS, VIEWS, Scales
from evenscore.evidence.head import BEND, EvidenceHead, Penalties
from evenscore.evidence.model import CohortEvidence, TrainingReport
from evenscore.evidence.moments import ScalePrior
from evenscore.evidence.own_pairs import Ridges
from evenscore.files.json_text import (
    check_header,
    check_keys,
    info_in,
    kind_of,
    number_at,
    read_object,
    with_info,
    write_object,
)
from evenscore.files.model_json import PARAMETERS, ModelFile, parameters_of, score_model_in
from evenscore.files.streams import PathLike
from evenscore.model.parameters import ScoreModel

__all__ = ["load_evidence", "read_evidence_file", "save_evidence"]

FORMAT = "evenscore-evidence"
VERSION = 1
LARGEST = 1_000_000  # bytes; a model takes some 6000

_KEYS = ("format", "version", "score_model", "scales", "ridges", "heads", "report", "info")
_TABLES = ("slope", "intercept", "share", "center", "unit", "weight")
_NUMBERS = ("offset", "target_outliers", "nontarget_outliers")
_COUNTS = ("n_target", "n_nontarget", "n_speakers", "folds")


def save_evidence(model: CohortEvidence, path: PathLike, *, info: Mapping[str, Any] | None = None) -> None:
    """Write a cohort-evidence model as readable JSON; `load_evidence` gives back exactly the same numbers.

    Parameters
    ----------
    model
        The model.
    path
        The file, which appears only when all of it is written; ``-`` is standard output.
    info
        Facts about the training: text, finite numbers, truth values, and lists of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import LabelledBlocks, ScoreModel, fit_evidence, simulate
    >>> model = ScoreModel(mu=[0.0, 4.0], alpha=[[1.0], [1.0]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    >>> speakers = [f"s{n % 12}" for n in range(36)]
    >>> dev = LabelledBlocks.own_cohort(*simulate(model, speakers[:12], speakers, seed=1))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "evidence.json"
    >>> evidence = fit_evidence([dev])
    >>> save_evidence(evidence, path)
    >>> load_evidence(path).heads["full"].weight == evidence.heads["full"].weight
    True
    """
    report = asdict(model.report)
    if math.isnan(report["loss"]):  # it was not measured
        report["loss"] = None
    values = {
        "format": FORMAT,
        "version": VERSION,
        "score_model": parameters_of(model.score_model),
        "scales": asdict(model.scales),
        "ridges": asdict(model.ridges),
        "heads": {name: _head_values(head) for name, head in model.heads.items()},
        "report": report,
    }
    write_object(path, with_info(values, info))


def load_evidence(path: PathLike) -> CohortEvidence:
    """Read a cohort-evidence model; anything that does not fit is refused with the key and the reason.

    Parameters
    ----------
    path
        A file written by `save_evidence`, plain or gzip; ``-`` is standard input.

    Examples
    --------
    >>> load_evidence("no.json")
    Traceback (most recent call last):
    evenscore.errors.FileError: no.json: there is no such file; check the name
    """
    return read_evidence_file(path).model


def read_evidence_file(path: PathLike) -> ModelFile[CohortEvidence]:
    """Read a cohort-evidence model with what the file says about its training."""
    values = read_object(path, largest=LARGEST)
    check_header(path, values, FORMAT, VERSION)
    check_keys(path, values, _KEYS[2:-1], _KEYS, VERSION)
    try:
        model = CohortEvidence(
            score_model=_score_model(path, values["score_model"]),
            scales=Scales(**_records(path, "scales", values["scales"], Scales, ScalePrior)),
            ridges=_ridges(path, values["ridges"]),
            heads=_heads(path, values["heads"]),
            report=_report(path, values["report"]),
        )
    except InputError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(path, str(error)) from None
    return ModelFile(model=model, info=info_in(path, values))


def _head_values(head: EvidenceHead) -> dict[str, Any]:
    values: dict[str, Any] = {name: dict(getattr(head, name)) for name in _TABLES}
    values |= {name: getattr(head, name) for name in _NUMBERS}
    return values | {"penalties": asdict(head.penalties)}


def _object(path: PathLike, where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileError(path, f"expected an object, but found {kind_of(value)}", part=where)
    return value


def _numbers(path: PathLike, where: str, value: Any, names: tuple[str, ...] | None = None) -> dict[str, float]:
    """Return an object of numbers, with just the names that are expected."""
    found = _object(path, where, value)
    if names is not None:
        check_keys(path, found, names, names, VERSION, within=f"{where}.")
    return {name: number_at(path, f"{where}.{name}", item) for name, item in found.items()}


def _score_model(path: PathLike, value: Any) -> ScoreModel:
    found = _object(path, "score_model", value)
    check_keys(path, found, PARAMETERS, PARAMETERS, VERSION, within="score_model.")
    return score_model_in(path, found, within="score_model.")


def _records(path: PathLike, where: str, value: Any, outer: type, inner: type) -> dict[str, Any]:
    names = tuple(one.name for one in fields(outer))
    parts = tuple(one.name for one in fields(inner))
    found = _object(path, where, value)
    check_keys(path, found, names, names, VERSION, within=f"{where}.")
    return {name: inner(**_numbers(path, f"{where}.{name}", found[name], parts)) for name in names}


def _ridges(path: PathLike, value: Any) -> Ridges:
    found = _numbers(path, "ridges", value, ("impostor", "within", "rank"))
    if found["rank"] < 1 or found["rank"] != int(found["rank"]):
        raise FileError(path, f"the rank is {found['rank']:g}, but must be a whole number from 1", part="ridges.rank")
    for name in ("impostor", "within"):
        if found[name] <= 0:
            raise FileError(path, f"a ridge must be above 0, but is {found[name]:g}", part=f"ridges.{name}")
    return Ridges(impostor=found["impostor"], within=found["within"], rank=int(found["rank"]))


def _heads(path: PathLike, value: Any) -> dict[str, EvidenceHead]:
    found = _object(path, "heads", value)
    for name in found:
        if name not in PATTERNS:
            raise FileError(path, f"there is no pattern {name!r}; there are {', '.join(PATTERNS)}", part="heads")
    return {name: _head(path, name, f"heads.{name}", item) for name, item in found.items()}


def _head(path: PathLike, pattern: str, where: str, value: Any) -> EvidenceHead:
    found = _object(path, where, value)
    keys = (*_TABLES, *_NUMBERS, "penalties")
    check_keys(path, found, keys, keys, VERSION, within=f"{where}.")
    tables = {name: _numbers(path, f"{where}.{name}", found[name]) for name in _TABLES}
    views, extras = tuple(tables["slope"]), tuple(tables["unit"])
    odd = [name for name in views if name not in VIEWS[pattern]] + [n for n in extras if n not in EXTRAS[pattern]]
    if odd or not views:
        raise FileError(path, f"{odd[0]!r} is no feature of the pattern {pattern!r}" if odd else "no view", part=where)
    for name, expected in (("intercept", views), ("share", views), ("center", extras)):
        check_keys(path, tables[name], expected, expected, VERSION, within=f"{where}.{name}.")
    weighed = (*views, BEND, *extras)
    check_keys(path, tables["weight"], weighed, weighed, VERSION, within=f"{where}.weight.")
    plain = {name: number_at(path, f"{where}.{name}", found[name]) for name in _NUMBERS}
    for name in _NUMBERS[1:]:
        if not 0 <= plain[name] < 0.5:
            problem = f"a share must be from 0 to below 0.5, but is {plain[name]:g}"
            raise FileError(path, problem, part=f"{where}.{name}")
    penalties = _numbers(path, f"{where}.penalties", found["penalties"], tuple(f.name for f in fields(Penalties)))
    return EvidenceHead(**tables, **plain, penalties=Penalties(**penalties))  # type: ignore[arg-type]


def _report(path: PathLike, value: Any) -> TrainingReport:
    found = _object(path, "report", value)
    names = tuple(one.name for one in fields(TrainingReport))
    check_keys(path, found, names, names, VERSION, within="report.")
    counts = {name: int(number_at(path, f"report.{name}", found[name])) for name in _COUNTS}
    loss = float("nan") if found["loss"] is None else number_at(path, "report.loss", found["loss"])
    tried = {
        name: _numbers(path, f"report.tried.{name}", item)
        for name, item in _object(path, "report.tried", found["tried"]).items()
    }
    return TrainingReport(**counts, loss=loss, without=_numbers(path, "report.without", found["without"]), tried=tried)
