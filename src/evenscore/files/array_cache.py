"""A directory of arrays that took long to compute, each file under the hash of what it was made from."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.files.npz import write_members
from evenscore.files.streams import PathLike, writing

__all__ = ["ArrayCache"]


class ArrayCache:
    """Arrays on disk that are found again by what they were made from.

    Files are npz archives without pickles. They appear when they are complete, so that several processes may share a
    cache; a file that is damaged counts as absent and is written again.

    Parameters
    ----------
    directory
        Is created if there is none.

    Examples
    --------
    >>> import tempfile
    >>> cache = ArrayCache(tempfile.mkdtemp())
    >>> recipe = {"file": "a.wav", "size": 1234, "rate": 16000}
    >>> cache.get(recipe) is None
    True
    >>> cache.put(recipe, {"frames": np.zeros((3, 2))})
    >>> cache.get(recipe)["frames"].shape
    (3, 2)
    >>> cache.get({**recipe, "rate": 8000}) is None
    True
    """

    def __init__(self, directory: PathLike) -> None:
        self.directory = Path(directory)
        with writing(directory):
            self.directory.mkdir(parents=True, exist_ok=True)

    def path(self, recipe: object) -> Path:
        """Return the file for a recipe: numbers, texts, lists and dictionaries that say how arrays are made."""
        text = json.dumps(recipe, sort_keys=True, ensure_ascii=True, allow_nan=False)
        return self.directory / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.npz"

    def get(self, recipe: object) -> dict[str, npt.NDArray[Any]] | None:
        """Return the arrays that were made by a recipe, None if they are not there."""
        try:
            with open(self.path(recipe), "rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
            return None

    def put(self, recipe: object, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Keep arrays of numbers or text; what was there for the recipe is replaced."""
        write_members({name: np.asarray(values) for name, values in arrays.items()}, self.path(recipe))
