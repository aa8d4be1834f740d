"""A verifier in one npz file: its cohort as embeddings, and all else as JSON in the array ``verifier``.

So the file can be read as embeddings, too. Nothing in it is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from evenscore.errors import FileError, InputError
from evenscore.files.models import CALIBRATION, format_of
from evenscore.files.named_arrays import from_arrays, to_arrays
from evenscore.files.numpy_files import storable, stored_arrays, write_members
from evenscore.files.records import KeyPlace, RecordFormat, json_object, numbers, optional, shown
from evenscore.files.registry import ReadOptions
from evenscore.files.streams import PathLike, listed
from evenscore.files.vector_records import PLDA_MODEL, TRANSFORM
from evenscore.norms.registry import METHODS
from evenscore.online import Verifier
from evenscore.sources import Cosine, DotProduct, Scorer
from evenscore.tables import Embeddings

__all__ = ["load_verifier", "save_verifier"]

_SCORERS: dict[str, Any] = {"cosine": Cosine, "dot": DotProduct}  #: those that have a mean, and nothing else


def save_verifier(verifier: Verifier, path: PathLike) -> None:
    """Write scorer, cohort, norm and calibration to one npz file, which appears when all of it is written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "verifier.npz"
    >>> cohort = Embeddings(["c1", "c2", "c3"], [[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> save_verifier(Verifier(cohort=cohort, method="s"), path)
    >>> load_verifier(path)
    Verifier(Cosine, cohort 3 x 2, s, no calibration)
    """
    arrays: dict[str, Any] = {}
    if verifier.cohort is not None:
        cohort = Embeddings(verifier.cohort.ids, verifier.cohort.vectors, verifier.cohort.speakers)
        arrays = {name: storable(values, path, name) for name, values in to_arrays(cohort, path).items()}
    text = json.dumps(_record(_VERIFIER, verifier), allow_nan=False)
    write_members({"verifier": np.array(text.encode()), **arrays}, path)


def load_verifier(path: PathLike) -> Verifier:
    """Read a verifier that `save_verifier` wrote, ready for use; anything that does not fit is refused.

    Examples
    --------
    >>> load_verifier("absent.npz")
    Traceback (most recent call last):
    evenscore.errors.FileError: absent.npz: there is no such file; check the name
    """
    with stored_arrays(path) as arrays:
        if "verifier" not in arrays:
            raise FileError(path, f"it holds no verifier, but {listed(arrays)}; give a file of `save_verifier`")
        text = arrays["verifier"]
        if text.shape != () or text.dtype.kind != "S":
            raise FileError(path, f"expected one text, but found {text.dtype} of shape {text.shape}", part="verifier")
        settings = _VERIFIER.model_in(path, json_object(path, text.tobytes().rstrip(b"\0"))).model
        cohort: Any = from_arrays(arrays, path, ReadOptions(kind="embeddings")) if "embeddings" in arrays else None
        return Verifier(cohort=cohort, **settings)


def _record(format: RecordFormat[Any], value: Any) -> dict[str, Any]:
    """Return a model as the object that its own file would hold, too."""
    return {**format.header, **format.values(value)}


def _values(verifier: Verifier) -> dict[str, Any]:
    options, method = dict(verifier.options), verifier.method
    model = options.pop("model", None)
    odd = [name for name, value in options.items() if not isinstance(value, str | int | float | bool | None)]
    if odd:
        raise InputError(
            f"the option {odd[0]} of the norm {method!r} cannot be kept in a file; it is no number or text"
        )
    return {
        "scorer": _scorer_values(verifier.scorer),
        "norm": {
            "name": method,
            "options": options,
            "model": None if model is None else _record(format_of(method), model),
        },
        "length_norm": verifier.length_norm,
        "calibration": None if verifier.calibration is None else _record(CALIBRATION, verifier.calibration),
    }


def _scorer_values(scorer: Scorer) -> dict[str, Any]:
    from evenscore.plda import PLDA
    from evenscore.scoring import Transformed

    if isinstance(scorer, PLDA):
        return {"name": "plda", "model": _record(PLDA_MODEL, scorer)}
    if isinstance(scorer, Transformed):
        return {
            "name": "transformed",
            "transform": _record(TRANSFORM, scorer.transform),
            "scorer": _scorer_values(scorer.scorer),
        }
    for name, kind in _SCORERS.items():
        if type(scorer) is kind:
            mean = getattr(scorer, "mean", None)
            return {"name": name, "mean": None if mean is None else mean.tolist()}
    raise InputError(f"a scorer of the kind {type(scorer).__name__} cannot be kept in a file; use cosine, dot or PLDA")


def _scorer(at: KeyPlace, value: Any) -> Scorer:
    name = at.object(value).get("name")
    if name == "plda":
        model: Scorer = at.fields(value, {"name": _any, "model": _model_of(PLDA_MODEL)})["model"]
        return model
    if name == "transformed":
        from evenscore.scoring import Transformed

        parts = at.fields(value, {"name": _any, "transform": _model_of(TRANSFORM), "scorer": _scorer})
        return Transformed(parts["transform"], parts["scorer"])
    if not isinstance(name, str) or name not in _SCORERS:
        at.key("name").refuse(f"there is no scorer {shown(name)}; known are {', '.join(_SCORERS)}, plda, transformed")
    mean = at.fields(value, {"name": _any, "mean": optional(numbers(None))})["mean"]
    found: Scorer = _SCORERS[name](mean=mean)
    return found


def _norm(at: KeyPlace, value: Any) -> dict[str, Any]:
    found = at.fields(value, {"name": _any, "options": KeyPlace.object, "model": _any})
    name, model = found["name"], found["model"]
    if not isinstance(name, str) or name not in METHODS:
        at.key("name").refuse(f"there is no norm {shown(name)}; known are {', '.join(METHODS)}")
    if (model is not None) != (METHODS[name].record is not None):
        at.key("model").refuse(f"the norm {name} {'needs a model' if model is None else 'has no model'}")
    trained = {} if model is None else {"model": _model_of(format_of(name))(at.key("model"), model)}
    return {"method": name, **found["options"], **trained}


def _verifier(at: KeyPlace, value: Any) -> dict[str, Any]:
    """Return what a verifier is made of, but for its cohort."""
    found = at.fields(value, {"scorer": _scorer, "norm": _norm, "length_norm": _any, "calibration": _any})
    calibration = optional(_model_of(CALIBRATION))(at.key("calibration"), found["calibration"])
    return {
        "scorer": found["scorer"],
        "calibration": calibration,
        "length_norm": found["length_norm"],
        **found["norm"],
    }


def _model_of(format: RecordFormat[Any]) -> Callable[[KeyPlace, Any], Any]:
    return lambda at, value: format.model_in(at.path, at.object(value)).model


def _any(at: KeyPlace, value: Any) -> Any:
    return value


_VERIFIER: RecordFormat[Any] = RecordFormat(
    name="evenscore-verifier",
    keys=("scorer", "norm", "length_norm", "calibration"),
    model=_verifier,
    values=_values,
)
