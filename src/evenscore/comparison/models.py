"""The models that methods train, as files: each kind by the functions that know it, loaded when they are needed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from evenscore.files.json_text import read_object

__all__ = ["is_saved", "load_trained", "save_trained"]

_LARGEST = 100_000_000  # bytes; only the format is looked at here, the readers have limits of their own

# The class of a model, the format that its file names, and the functions that write and read it.
_KINDS = (
    ("ScoreModel", "evenscore-score-model", "evenscore.files.model_json:save_model", "load_model"),
    (
        "LocationScaleModel",
        "evenscore-location-scale-model",
        "evenscore.files.location_scale_json:save_location_scale",
        "load_location_scale",
    ),
    ("CohortEvidence", "evenscore-evidence", "evenscore.files.evidence_json:save_evidence", "load_evidence"),
)


def is_saved(model: Any) -> bool:
    """Tell whether there is a file format for this kind of model."""
    return any(type(model).__name__ == name for name, *_ in _KINDS)


def save_trained(model: Any, path: Path) -> None:
    """Write a model that `is_saved`."""
    for name, _, writer, _ in _KINDS:
        if type(model).__name__ == name:
            module, _, function = writer.partition(":")
            getattr(import_module(module), function)(model, path)


def load_trained(path: Path) -> Any:
    """Read a model of any kind."""
    found = read_object(path, largest=_LARGEST).get("format")
    for _, format, writer, reader in _KINDS:
        if format == found:
            return getattr(import_module(writer.partition(":")[0]), reader)(path)
    return None
