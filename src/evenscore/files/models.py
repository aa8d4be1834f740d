"""Models as JSON: ``format``, ``version``, the fields of a record, and ``info`` about the training.

A record is a dataclass of numbers, text, arrays, tuples, dictionaries and other records. A verifier is an npz file: its
cohort as embeddings, and the rest as JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from evenscore.errors import FileError, InputError
from evenscore.files.arrays import from_arrays, parsing, read_archive, to_arrays, write_archive
from evenscore.files.formats import ReadOptions
from evenscore.files.kaldi import read_plda
from evenscore.files.streams import PathLike, atomic_output, open_input
from evenscore.norms.registry import METHODS

__all__ = ["load_verifier", "read_model", "read_model_and_info", "save_verifier", "write_model"]

VERSION = 1
_INFINITE = {"inf": math.inf, "-inf": -math.inf}  # JSON has no infinite numbers
#: Where the class of each format is, and of each record in one.
_CLASSES = {
    "evenscore-score-model": "model.parameters:ScoreModel",
    "evenscore-residuals": "model.densities:ResidualDensities",
    "evenscore-sinh-arcsinh": "model.densities:SinhArcsinhDensities",
    "evenscore-evidence": "evidence.fit:EvidenceModel",
    "evenscore-evidence-head": "evidence.head:Head",
    "evenscore-scale-prior": "evidence.features:ScalePrior",
    "evenscore-plda": "scoring.plda:PLDA",
    "evenscore-cosine": "scoring.scorers:CosineScorer",
    "evenscore-dot": "scoring.scorers:DotScorer",
    "evenscore-projection": "scoring.projection:Projection",
    "evenscore-verifier": "scoring.verifier:Verifier",
    "evenscore-calibration": "calibrate.base:Calibration",
}


def write_model(model: Any, path: PathLike, info: Mapping[str, Any] | None = None) -> None:
    r"""Write a score model, a calibration, a PLDA or an evidence model to a JSON file, or a verifier to an npz file.

    Models of other norms need `register_norm`. ``info`` are facts about the training: numbers, text, lists of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import ScoreModel
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> write_model(ScoreModel(mu=[0.0, 2.0], alpha=[[0.1], [0.3]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0]), path)
    >>> read_model(path).alpha.tolist()
    [[0.1], [0.3]]
    """
    record = _plain(model)
    if not isinstance(record, dict) or "format" not in record:
        raise InputError(f"a {type(model).__name__} cannot be written to a file; write its parameters")
    record = {"format": record["format"], "version": VERSION, **record, **({"info": _plain(info)} if info else {})}
    try:
        lines = [f"  {json.dumps(name)}: {json.dumps(value, allow_nan=False)}" for name, value in record.items()]
        if record["format"] != "evenscore-verifier":
            _object({name: value for name, value in record.items() if name != "info"})
    except (TypeError, ValueError) as error:
        allowed = "finite numbers, text, arrays, and tuples or dictionaries of these"
        problem = f"a {type(model).__name__} could not be read again ({error}); its fields must be {allowed}"
        raise InputError(problem) from None
    text = ("{\n" + ",\n".join(lines) + "\n}\n").encode()
    if record["format"] == "evenscore-verifier":
        cohort = {} if model.cohort is None else to_arrays(model.cohort)
        write_archive({"verifier": np.array(text), **cohort}, path)
        return
    with atomic_output(path) as stream:
        stream.write(text)


def read_model(path: PathLike, expected: type | None = None) -> Any:
    """Read a model of any kind that `write_model` has written; a PLDA may also be a file of Kaldi.

    Parameters
    ----------
    path
        File of the model.
    expected
        Class that the model must have; None for any.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import LogisticCalibration
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibration.json"
    >>> write_model(LogisticCalibration(weights=[2.0], quality_weights=[], offset=-1.0), path)
    >>> read_model(path, LogisticCalibration)([0.5, 1.0])
    array([0., 1.])
    """
    model, _ = read_model_and_info(path)
    if expected is not None and not isinstance(model, expected):
        raise FileError(path, f"expected a {expected.__name__}, but it holds a {type(model).__name__}; give another")
    return model


def read_model_and_info(path: PathLike) -> tuple[object, dict[str, object]]:
    """Read a model, and the facts about its training that the file has."""
    with open_input(path) as stream, parsing(path, "a model"):
        data, cohort = stream.read(), {}
        if data.startswith(b"PK"):
            arrays = read_archive(path)
            data = arrays.pop("verifier", np.array(b"{}")).tobytes().rstrip(b"\0")
            cohort = {"cohort": from_arrays(arrays, path, ReadOptions())} if arrays else {}
        if b"<Plda>" in data[:8]:
            mean, transform, psi = read_plda(path)
            basis = np.linalg.inv(transform)
            record: dict[str, Any] = {"mean": mean, "between": basis * psi @ basis.T, "within": basis @ basis.T}
            record |= {"format": "evenscore-plda", "version": VERSION, "model_length": True}  # as Kaldi scores
        else:
            record = json.loads(data, parse_constant=_refuse_constant)
        name, version = (record.pop(key, None) for key in ("format", "version"))
        if name not in _classes():
            raise FileError(path, f"its format {name!r} is unknown; give one of 'evenscore fit', or register its norm")
        if version != VERSION:
            raise FileError(path, f"it is {version!r}, but {VERSION} is known; train it again", part="version")
        info = dict(record.pop("info", None) or {})
        try:
            return _object({"format": name, **_of_today(record), **cohort}), info
        except TypeError as error:  # a field is absent, or unknown
            problem = f"its fields are not those of {name} in this version ({error}); train it again"
            raise FileError(path, problem) from None


load_verifier, save_verifier = read_model, write_model


def _classes() -> dict[str, Any]:
    """Return the class of each format, or where it is: our own, and those of the models of registered norms."""
    return _CLASSES | {f"norm:{name}": method.model for name, method in METHODS.items() if method.model is not None}


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a finite number")


def _plain(value: Any) -> Any:
    """Return a record, and whatever is in it, as numbers, text, lists and dictionaries."""
    place = f"{type(value).__module__.removeprefix('evenscore.')}:{type(value).__name__}"
    if place.startswith("calibrate."):
        value = {"format": "evenscore-calibration", "version": VERSION, **value.to_dict()}
    elif is_dataclass(value):
        names = [name for name, known in _classes().items() if known in (place, type(value))]
        parts = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "cohort"}
        value = {**dict(zip(["format"], names, strict=False)), **{k: v for k, v in parts.items() if v is not None}}
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _object(value: Any) -> Any:
    """Return what plain values stand for: a record that names its format, an array of numbers, a tuple."""
    if isinstance(value, dict) and value.get("format") == "evenscore-calibration":
        from evenscore.calibrate.base import calibration_class

        return calibration_class(value["kind"])(**_object(value["parameters"]))
    if isinstance(value, dict):
        parts = {name: _object(part) for name, part in value.items() if name not in ("format", "version")}
        if "format" not in value:
            return parts
        kind = _classes()[value["format"]]
        module, _, name = str(kind).partition(":")
        made = getattr(import_module(f"evenscore.{module}"), name) if isinstance(kind, str) else kind
        return made(**(parts.pop("options", {}) if value["format"] == "evenscore-verifier" else {}), **parts)
    if isinstance(value, list):
        items = [_object(item) for item in value]
        texts = any(isinstance(item, str | dict) or is_dataclass(item) for item in items)
        if None in value:
            raise ValueError("null stands in a list of numbers")
        return tuple(items) if texts else np.array(items, float)
    return _INFINITE.get(value, value) if isinstance(value, str) else value


def _of_today(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of the first edition with the names of this one."""
    if "center" in record:  # a PLDA
        names = {"center": "center", "matrix": "projection", "length_normalize": "length_normalize"}
        record["projection"] = {"format": "evenscore-projection"} | {new: record.pop(old) for new, old in names.items()}
    if isinstance(record.get("residuals"), dict):
        record["residuals"] = {"format": "evenscore-sinh-arcsinh", **record["residuals"]}
    if "norm" in record:  # a verifier
        norm, scorer = record.pop("norm"), record["scorer"]
        record |= {"method": norm["name"], "options": norm["options"]}
        record["options"] |= {} if norm["model"] is None else {"model": _of_today(norm["model"])}
        center = {"projection": {"format": "evenscore-projection", "center": scorer.get("mean")}}
        record["scorer"] = _of_today(scorer.get("model") or {"format": f"evenscore-{scorer['name']}", **center})
    return record
