"""PLDA models as JSON files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenscore.errors import FileError, InputError
from evenscore.files.json_text import read_object, write_object
from evenscore.files.streams import PathLike

if TYPE_CHECKING:
    from evenscore.plda import PLDA

__all__ = ["load_plda", "save_plda"]

LARGEST = 1 << 28  # bytes; two covariances and a projection of 1024 dimensions take about 60 MB


def save_plda(plda: PLDA, path: PathLike) -> None:
    """Write a PLDA model as JSON; `load_plda` gives back exactly the same numbers.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import PLDA
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plda.json"
    >>> save_plda(PLDA(mean=[0.0], between=[[3.0]], within=[[1.0]]), path)
    >>> load_plda(path).between
    array([[3.]])
    """
    write_object(path, plda.to_dict())


def load_plda(path: PathLike) -> PLDA:
    """Read a PLDA model that `save_plda` wrote; anything that does not fit is refused with the reason.

    Examples
    --------
    >>> load_plda("absent.json")
    Traceback (most recent call last):
    evenscore.errors.FileError: absent.json: there is no such file; check the name
    """
    from evenscore.plda import PLDA

    values = read_object(path, largest=LARGEST)
    try:
        return PLDA.from_dict(values)
    except InputError as error:
        raise FileError(path, str(error)) from None
