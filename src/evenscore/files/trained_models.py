"""The models that methods train, as files: each kind by the functions that know it, loaded when they are needed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from evenscore.files.json_text import read_object
from evenscore.files.streams import PathLike

__all__ = ["TRAINED_METHODS", "is_saved", "load_model_of", "load_trained", "save_trained"]

_LARGEST = 100_000_000  # bytes; only the format is looked at here, the readers have limits of their own


@dataclass(frozen=True)
class _Kind:
    """The method, the class of its model, and the module that writes and reads it, with its functions."""

    method: str
    model: str
    module: str
    save: str
    load: str

    def function(self, name: str) -> Any:
        return getattr(import_module(f"evenscore.files.{self.module}"), name)


_KINDS = (
    _Kind("lgsm", "ScoreModel", "model_json", "save_model", "load_model"),
    _Kind("evidence", "CohortEvidence", "evidence_json", "save_evidence", "load_evidence"),
)

TRAINED_METHODS = tuple(kind.method for kind in _KINDS)  #: the norms that need a trained model


def is_saved(model: Any) -> bool:
    """Tell whether there is a file format for this kind of model."""
    return any(type(model).__name__ == kind.model for kind in _KINDS)


def save_trained(model: Any, path: PathLike) -> None:
    """Write a model that `is_saved`."""
    kind = next(kind for kind in _KINDS if type(model).__name__ == kind.model)
    kind.function(kind.save)(model, path)


def load_trained(path: PathLike) -> Any:
    """Read a model of any kind; None if the file is of another kind."""
    found = read_object(path, largest=_LARGEST).get("format")
    for kind in _KINDS:
        if kind.function("FORMAT") == found:
            return kind.function(kind.load)(path)
    return None


def load_model_of(method: str, path: PathLike) -> Any:
    """Read the model of one of the `TRAINED_METHODS`; a file of another kind is refused."""
    kind = next(kind for kind in _KINDS if kind.method == method)
    return kind.function(kind.load)(path)
