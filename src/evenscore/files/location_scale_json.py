"""Location-scale score models as small JSON files that a person can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenscore.errors import FileError, InputError
from evenscore.files.json_text import check_header, check_keys, info_in, read_object, with_info, write_object
from evenscore.files.model_json import (
    LARGEST,
    PARAMETERS,
    ModelFile,
    numbers,
    pair_of_numbers,
    parameters_of,
    score_model_in,
)
from evenscore.files.streams import PathLike
from evenscore.location_scale.parameters import LocationScaleModel

__all__ = ["load_location_scale", "read_location_scale_file", "save_location_scale"]

FORMAT = "evenscore-location-scale-model"
VERSION = 1
_SCALES = ("c", "d", "f", "g")
_KEYS = ("format", "version", *PARAMETERS, *_SCALES, "info")


def save_location_scale(model: LocationScaleModel, path: PathLike, *, info: Mapping[str, Any] | None = None) -> None:
    """Write a location-scale model as readable JSON; `load_location_scale` gives back exactly the same numbers.

    Parameters
    ----------
    model
        The model.
    path
        The file, which appears only when all of it is written; ``-`` is standard output.
    info
        Facts about the training, such as the bound: text, finite numbers, truth values, and lists of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> from evenscore import ScoreModel
    >>> location = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> save_location_scale(LocationScaleModel(location, c=[0.3, 0.1], d=[0.2, 0.0]), path)
    >>> print(path.read_text())
    {
      "format": "evenscore-location-scale-model",
      "version": 1,
      "mu": [-2.0, 3.0],
      "alpha": [[0.5], [1.0]],
      "beta": [[0.1], [0.7]],
      "sigma2": [1.0, 2.0],
      "c": [0.3, 0.1],
      "d": [0.2, 0.0],
      "f": [0.0],
      "g": [0.0]
    }
    """
    scales = {name: getattr(model, name).tolist() for name in _SCALES}
    values = {"format": FORMAT, "version": VERSION, **parameters_of(model.location), **scales}
    write_object(path, with_info(values, info))


def load_location_scale(path: PathLike) -> LocationScaleModel:
    """Read a location-scale model; anything that does not fit is refused with the key and the reason.

    Parameters
    ----------
    path
        A file written by `save_location_scale`, plain or gzip; ``-`` is standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> from evenscore import ScoreModel
    >>> location = ScoreModel(mu=[0.0, 2.0], alpha=[[0.1], [0.3]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
    >>> save_location_scale(LocationScaleModel(location, c=[0.4, 0.2]), path)
    >>> load_location_scale(path).c
    array([0.4, 0.2])
    """
    return read_location_scale_file(path).model


def read_location_scale_file(path: PathLike) -> ModelFile[LocationScaleModel]:
    """Read a location-scale model with what the file says about its training."""
    values = read_object(path, largest=LARGEST)
    check_header(path, values, FORMAT, VERSION)
    check_keys(path, values, (*PARAMETERS, *_SCALES), _KEYS, VERSION)
    info = info_in(path, values)
    location = score_model_in(path, values)
    c, d = (pair_of_numbers(path, name, values[name]) for name in ("c", "d"))
    f, g = (numbers(path, name, values[name]) for name in ("f", "g"))
    try:
        return ModelFile(model=LocationScaleModel(location, c=c, d=d, f=f, g=g), info=info)
    except InputError as error:
        raise FileError(path, str(error)) from None
