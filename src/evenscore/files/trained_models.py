"""The models that methods train, as files.

The score model and the cohort-evidence model have formats of their own; any other method that is registered with a
``record`` (a class with ``to_dict`` and ``from_dict``) is written as its dictionary under the name of the method.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evenscore.errors import FileError, InputError
from evenscore.files.json_text import check_header, read_object, write_object
from evenscore.files.streams import PathLike
from evenscore.norms.registry import METHODS, loaded

__all__ = ["is_saved", "load_model_of", "load_trained", "save_trained", "trained_methods"]

_LARGEST = 100_000_000  # bytes; only the format is looked at here, the readers have limits of their own
_VERSION = 1

# The class of the model, and where it is written and read, for the methods with formats of their own.
_OWN = {
    "lgsm": ("ScoreModel", "model_json", "save_model", "load_model"),
    "evidence": ("CohortEvidence", "evidence_json", "save_evidence", "load_evidence"),
}


def trained_methods() -> tuple[str, ...]:
    """Return the norms whose trained models have files.

    Examples
    --------
    >>> trained_methods()
    ('lgsm', 'evidence')
    """
    return tuple(name for name, method in METHODS.items() if name in _OWN or method.record is not None)


def is_saved(model: Any) -> bool:
    """Tell whether there is a file format for this kind of model."""
    return _method_of(model) is not None


def save_trained(model: Any, path: PathLike) -> None:
    """Write a model that `is_saved`."""
    method = _method_of(model)
    if method is None:
        raise InputError(f"there is no file format for a {type(model).__name__}; register its method with a record")
    if method in _OWN:
        _own(method, 2)(model, path)
    else:
        write_object(path, {"format": _format(method), "version": _VERSION, "model": model.to_dict()})


def load_trained(path: PathLike) -> Any:
    """Read a model of any kind; None if the file is of another kind."""
    found = read_object(path, largest=_LARGEST).get("format")
    method = next((name for name in trained_methods() if _format(name) == found), None)
    return None if method is None else load_model_of(method, path)


def load_model_of(method: str, path: PathLike) -> Any:
    """Read the model of one of the `trained_methods`; a file of another kind is refused."""
    if method in _OWN:
        return _own(method, 3)(path)
    values = read_object(path, largest=_LARGEST)
    check_header(path, values, _format(method), _VERSION)
    record = METHODS[method].record
    assert record is not None  # noqa: S101  (it is one of `trained_methods`)
    try:
        return loaded(record).from_dict(values.get("model", {}))
    except InputError as error:
        raise FileError(path, str(error), part="model") from None


def _method_of(model: Any) -> str | None:
    """Return the method that trains models of this kind."""
    for name in trained_methods():
        record = METHODS[name].record
        if (name in _OWN and type(model).__name__ == _OWN[name][0]) or (
            record is not None and isinstance(model, loaded(record))
        ):
            return name
    return None


def _format(method: str) -> str:
    """Return what a model file of this method says about itself."""
    return str(_module(method).FORMAT) if method in _OWN else f"evenscore-norm-{method}"


def _own(method: str, function: int) -> Any:
    return getattr(_module(method), _OWN[method][function])


def _module(method: str) -> Any:
    return import_module(f"evenscore.files.{_OWN[method][1]}")
