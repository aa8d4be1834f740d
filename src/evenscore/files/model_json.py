"""Score models as small JSON files that a person can read; docs/schema/score_model.schema.json describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from evenscore.errors import FileError, InputError
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
from evenscore.files.streams import PathLike
from evenscore.model.parameters import ScoreModel

__all__ = [
    "LARGEST",
    "PARAMETERS",
    "ModelFile",
    "load_model",
    "numbers",
    "pair_of_numbers",
    "parameters_of",
    "read_model_file",
    "save_model",
    "score_model_in",
]

Model = TypeVar("Model")

FORMAT = "evenscore-score-model"
VERSION = 1
LARGEST = 1_000_000  # bytes; a model of D = 2 takes 500

PARAMETERS = ("mu", "alpha", "beta", "sigma2")
_KEYS = ("format", "version", *PARAMETERS, "info")
_CLASSES = ("non-target", "target")


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelFile(Generic[Model]):
    """What a model file holds: the model, and what is known about its training."""

    model: Model
    info: Mapping[str, Any] = field(default_factory=dict)


def save_model(model: ScoreModel, path: PathLike, *, info: Mapping[str, Any] | None = None) -> None:
    r"""Write a score model as readable JSON; `load_model` gives back exactly the same numbers.

    Parameters
    ----------
    model
        The model.
    path
        The file, which appears only when all of it is written; ``-`` is standard output.
    info
        Facts about the training, such as the log-likelihood: text, finite numbers, truth values, and lists of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> model = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5], [1.0]], beta=[[0.1], [0.7]], sigma2=[1.0, 2.0])
    >>> save_model(model, path)
    >>> print(path.read_text())
    {
      "format": "evenscore-score-model",
      "version": 1,
      "mu": [-2.0, 3.0],
      "alpha": [[0.5], [1.0]],
      "beta": [[0.1], [0.7]],
      "sigma2": [1.0, 2.0]
    }
    """
    write_object(path, with_info({"format": FORMAT, "version": VERSION, **parameters_of(model)}, info))


def load_model(path: PathLike) -> ScoreModel:
    """Read a score model; anything that does not fit is refused with the key and the reason.

    Parameters
    ----------
    path
        A file written by `save_model`, plain or gzip; ``-`` is standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> save_model(ScoreModel(mu=[0.0, 2.0], alpha=[[0.1], [0.3]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0]), path)
    >>> load_model(path).alpha
    array([[0.1],
           [0.3]])
    """
    return read_model_file(path).model


def read_model_file(path: PathLike) -> ModelFile[ScoreModel]:
    """Read a score model with what the file says about its training."""
    values = read_object(path, largest=LARGEST)
    check_header(path, values, FORMAT, VERSION)
    check_keys(path, values, PARAMETERS, _KEYS, VERSION)
    return ModelFile(info=info_in(path, values), model=score_model_in(path, values))


def parameters_of(model: ScoreModel) -> dict[str, Any]:
    """Return the parameters of a score model as lists of numbers."""
    return {name: getattr(model, name).tolist() for name in PARAMETERS}


def score_model_in(path: PathLike, values: Mapping[str, Any], within: str = "") -> ScoreModel:
    """Return the score model whose parameters stand in an object; ``within`` tells where that is."""
    mu, sigma2 = (pair_of_numbers(path, within + name, values[name]) for name in ("mu", "sigma2"))
    alpha, beta = (two_rows(path, within + name, values[name]) for name in ("alpha", "beta"))
    if len(alpha[0]) != len(beta[0]):
        problem = f"its rows have {len(beta[0])} numbers, but those of alpha have {len(alpha[0])}"
        raise FileError(path, f"{problem}; both have D", part=f"{within}beta")
    for place, value in enumerate(sigma2):
        if not value > 0:
            raise FileError(path, f"a variance must be positive, but is {value!r}", part=f"{within}sigma2[{place}]")
    try:
        return ScoreModel(mu=mu, alpha=alpha, beta=beta, sigma2=sigma2)
    except InputError as error:
        raise FileError(path, str(error)) from None


def pair_of_numbers(path: PathLike, name: str, value: Any) -> list[float]:
    """Return one number per class, or say what stands there instead."""
    if not isinstance(value, list) or len(value) != len(_CLASSES):
        found = f"{len(value)} values" if isinstance(value, list) else kind_of(value)
        raise FileError(path, f"expected 2 numbers (non-target, target), but found {found}", part=name)
    return [number_at(path, f"{name}[{place}]", item) for place, item in enumerate(value)]


def numbers(path: PathLike, name: str, value: Any) -> list[float]:
    """Return a row of D numbers, or say what stands there instead."""
    if not isinstance(value, list):
        raise FileError(path, f"expected a list of D numbers, but found {kind_of(value)}", part=name)
    return [number_at(path, f"{name}[{at}]", item) for at, item in enumerate(value)]


def two_rows(path: PathLike, name: str, value: Any) -> list[list[float]]:
    """Return one row of D numbers per class, or say what stands there instead."""
    if not isinstance(value, list) or len(value) != len(_CLASSES):
        found = f"{len(value)} rows" if isinstance(value, list) else kind_of(value)
        raise FileError(path, f"expected 2 rows of D numbers (non-target, target), but found {found}", part=name)
    rows = [numbers(path, f"{name}[{place}]", row) for place, row in enumerate(value)]
    if len(rows[0]) != len(rows[1]):
        raise FileError(path, f"its rows have {len(rows[0])} and {len(rows[1])} numbers, but need D each", part=name)
    return rows
