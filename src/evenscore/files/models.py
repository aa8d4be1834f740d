"""Models as JSON files that a person can read: score models, evidence, calibrations, PLDA, and whatever norms train.

A method that is registered with a ``record`` (a class with ``to_dict`` and ``from_dict``) is written as its dictionary
under the name of the method; the others have formats in `model_records`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenscore.errors import InputError
from evenscore.files.json_text import read_object
from evenscore.files.model_records import CALIBRATION, EVIDENCE, PLDA_MODEL, SCORE_MODEL
from evenscore.files.records import KeyPlace, RecordFormat
from evenscore.files.streams import PathLike
from evenscore.model.parameters import ScoreModel
from evenscore.norms.registry import METHODS, Named, loaded

if TYPE_CHECKING:
    from evenscore.calibrate import Calibration
    from evenscore.evidence.model import CohortEvidence
    from evenscore.plda import PLDA

__all__ = [
    "is_saved",
    "load_calibration",
    "load_evidence",
    "load_model",
    "load_model_of",
    "load_plda",
    "load_trained",
    "save_calibration",
    "save_evidence",
    "save_model",
    "save_plda",
    "save_trained",
    "trained_methods",
]

Info = Mapping[str, Any] | None

_OWN: dict[str, RecordFormat[Any]] = {"lgsm": SCORE_MODEL, "evidence": EVIDENCE}  # the others have none of their own
_LARGEST = 100_000_000  # bytes of the file of any method


def save_model(model: ScoreModel, path: PathLike, *, info: Info = None) -> None:
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
    SCORE_MODEL.write(model, path, info)


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
    return SCORE_MODEL.read(path).model


def save_evidence(model: CohortEvidence, path: PathLike, *, info: Info = None) -> None:
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
    EVIDENCE.write(model, path, info)


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
    return EVIDENCE.read(path).model


def save_calibration(calibration: Calibration, path: PathLike, *, info: Info = None) -> None:
    r"""Write a calibration as readable JSON; `load_calibration` gives back exactly the same numbers.

    Parameters
    ----------
    calibration
        Of any kind.
    path
        The file, which appears only when all of it is written; ``-`` is standard output.
    info
        Facts about the training: text, finite numbers, truth values, and lists of them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import GaussianCalibration
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibration.json"
    >>> save_calibration(GaussianCalibration(mean=[0.0, 5.0], variance=[1.0, 2.0]), path)
    >>> print(path.read_text())
    {
      "format": "evenscore-calibration",
      "version": 1,
      "kind": "gaussian",
      "parameters": {
        "mean": [0.0, 5.0],
        "variance": [1.0, 2.0]
      }
    }
    """
    CALIBRATION.write(calibration, path, info)


def load_calibration(path: PathLike) -> Calibration:
    """Read a calibration of any kind; anything that does not fit is refused with the key and the reason.

    Parameters
    ----------
    path
        A file written by `save_calibration`, plain or gzip; ``-`` is standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import LogisticCalibration
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "calibration.json"
    >>> save_calibration(LogisticCalibration(weights=[2.0], quality_weights=[], offset=-1.0), path)
    >>> load_calibration(path)([0.0, 1.0])
    array([-1.,  1.])
    """
    return CALIBRATION.read(path).model


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
    PLDA_MODEL.write(plda, path)


def load_plda(path: PathLike) -> PLDA:
    """Read a PLDA model that `save_plda` wrote; anything that does not fit is refused with the key and the reason.

    Examples
    --------
    >>> load_plda("absent.json")
    Traceback (most recent call last):
    evenscore.errors.FileError: absent.json: there is no such file; check the name
    """
    return PLDA_MODEL.read(path).model


def trained_methods() -> tuple[str, ...]:
    """Return the norms whose trained models have files.

    Examples
    --------
    >>> trained_methods()
    ('lgsm', 'evidence')
    """
    return tuple(_records())


def is_saved(model: Any) -> bool:
    """Tell whether there is a file format for this kind of model."""
    return _method_of(model) is not None


def save_trained(model: Any, path: PathLike) -> None:
    """Write a model that `is_saved`."""
    method = _method_of(model)
    if method is None:
        raise InputError(f"there is no file format for a {type(model).__name__}; register its method with a record")
    _format_of(method).write(model, path)


def load_trained(path: PathLike) -> Any:
    """Read a model of any kind; None if the file is of another kind."""
    values = read_object(path, largest=_LARGEST)
    formats = {format.name: format for format in map(_format_of, trained_methods())}
    found = formats.get(str(values.get("format")))
    return None if found is None else found.model_in(path, values).model


def load_model_of(method: str, path: PathLike) -> Any:
    """Read the model of one of the `trained_methods`; a file of another kind is refused."""
    return _format_of(method).read(path).model


def _records() -> dict[str, Named]:
    return {name: method.record for name, method in METHODS.items() if method.record is not None}


def _method_of(model: Any) -> str | None:
    """Return the method that trains models of this kind."""
    return next((name for name, record in _records().items() if isinstance(model, loaded(record))), None)


def _format_of(method: str) -> RecordFormat[Any]:
    if method in _OWN:
        return _OWN[method]
    record = loaded(_records()[method])

    def model(at: KeyPlace, value: dict[str, Any]) -> Any:
        with at.key("model").blamed():
            return record.from_dict(value["model"])

    return RecordFormat(
        name=f"evenscore-norm-{method}",
        keys=("model",),
        model=model,
        values=lambda model: {"model": model.to_dict()},
        largest=_LARGEST,
    )
