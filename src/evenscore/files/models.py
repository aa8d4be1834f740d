"""Models as JSON files that a person can read: score models, evidence, calibrations, PLDA, and whatever norms train.

A method that is registered with a ``record`` (a class with ``to_dict`` and ``from_dict``) is written as its dictionary
under the name of the method; what stands in the files of the others is told here, and that of the score model in
docs/schema/score_model.schema.json, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from evenscore.errors import InputError
from evenscore.files.records import (
    KeyPlace,
    RecordFormat,
    number,
    numbers,
    optional,
    plain,
    read_json,
    shown,
    where,
)
from evenscore.files.streams import PathLike
from evenscore.files.vector_records import PLDA_MODEL, TRANSFORM
from evenscore.model.parameters import ScoreModel
from evenscore.model.residuals import ResidualDensities
from evenscore.norms.registry import METHODS, Named, loaded

if TYPE_CHECKING:
    from evenscore.calibrate import Calibration
    from evenscore.evidence.model import CohortEvidence
    from evenscore.plda import PLDA
    from evenscore.scoring import Transform

__all__ = [
    *("CALIBRATION", "EVIDENCE", "SCORE_MODEL"),
    *("load_calibration", "load_evidence", "load_model", "load_plda", "load_transform"),
    *("save_calibration", "save_evidence", "save_model", "save_plda", "save_transform"),
    *("format_of", "is_saved", "load_model_of", "load_trained", "save_trained", "trained_methods"),
]

Info = Mapping[str, Any] | None

_LARGEST = 100_000_000  # bytes of the file of any method
_CLASSES = " (non-target, target)"
_LARGE = 1 << 28  # bytes; a PLDA of 1024 dimensions takes about 60 MB, a PAV calibration 40 bytes for each step
_VARIANCE = where(number, lambda variance: variance > 0, "a variance must be positive")
_PARAMETERS = {
    "mu": numbers(2, note=_CLASSES),
    "alpha": numbers(2, None, note=_CLASSES),
    "beta": numbers(2, None, note=_CLASSES),
    "sigma2": numbers(2, note=_CLASSES, of=_VARIANCE),
}
_RESIDUALS = {
    "location": numbers(2, note=_CLASSES),
    "scale": numbers(2, note=_CLASSES, of=where(number, lambda scale: scale > 0, "a scale must be positive")),
    "skew": numbers(2, note=_CLASSES),
    "tail": numbers(2, note=_CLASSES, of=where(number, lambda tail: tail > 0, "a tail must be positive")),
}


def _residuals(at: KeyPlace, value: Any) -> ResidualDensities:
    found = at.fields(value, _RESIDUALS)
    with at.blamed():
        return ResidualDensities(**found)


def _score_model(at: KeyPlace, value: Any) -> ScoreModel:
    found = at.fields(value, _PARAMETERS | {"residuals": optional(_residuals)}, optional=("residuals",))
    alpha, beta = found["alpha"], found["beta"]
    if len(alpha[0]) != len(beta[0]):
        problem = f"its rows have {len(beta[0])} numbers, but those of alpha have {len(alpha[0])}; both have D"
        at.key("beta").refuse(problem)
    with at.blamed():
        return ScoreModel(**found)


def _evidence(at: KeyPlace, value: Any) -> CohortEvidence:
    from evenscore.files.evidence_record import evidence_kind

    return evidence_kind(_score_model)(at, value)


def _calibration(at: KeyPlace, value: Any) -> Calibration:
    from evenscore.calibrate import CALIBRATIONS
    from evenscore.calibrate.calibration import FORMAT, VERSION

    kind, parameters = value["kind"], at.key("parameters")
    if not isinstance(kind, str) or kind not in CALIBRATIONS:
        at.key("kind").refuse(f"there is no calibration {shown(kind)}; known are {', '.join(CALIBRATIONS)}")
    names = [parameter.name for parameter in fields(CALIBRATIONS[kind])]
    parameters.fields(value["parameters"], dict.fromkeys(names, _numbers_or_one))
    with parameters.blamed():
        return CALIBRATIONS[kind].from_dict({"format": FORMAT, "version": VERSION, **value})


def _number_or_infinite(at: KeyPlace, value: Any) -> Any:
    """JSON has no infinite numbers, so they stand as text."""
    return value if isinstance(value, str) and value in ("inf", "-inf") else number(at, value)


def _numbers_or_one(at: KeyPlace, value: Any) -> Any:
    return (numbers(None, of=_number_or_infinite) if isinstance(value, list) else _number_or_infinite)(at, value)


def _score_model_values(model: ScoreModel) -> dict[str, Any]:
    """Return the parameters; densities of residuals only if there are some, so that other files stay as they were."""
    values: dict[str, Any] = plain(model)
    return {name: value for name, value in values.items() if name != "residuals" or value is not None}


def _evidence_values(model: CohortEvidence) -> dict[str, Any]:
    """Return a cohort-evidence model; what older files do not know only if there is some."""
    from evenscore.files.evidence_record import REPORTED_LATER

    values: dict[str, Any] = plain(model) | {"score_model": _score_model_values(model.score_model)}
    report = values["report"]
    values["report"] = {name: report[name] for name in report if name not in REPORTED_LATER or report[name]}
    return values


SCORE_MODEL = RecordFormat(
    name="evenscore-score-model",
    keys=tuple(_PARAMETERS),
    model=_score_model,
    values=_score_model_values,
    optional=("residuals",),
)
EVIDENCE = RecordFormat(
    name="evenscore-evidence",
    keys=("score_model", "scales", "ridges", "heads", "report"),
    model=_evidence,
    values=_evidence_values,
)
CALIBRATION = RecordFormat(
    name="evenscore-calibration",
    keys=("kind", "parameters"),
    model=_calibration,
    values=lambda calibration: calibration.to_dict(),
    largest=_LARGE,
)
_OWN: dict[str, RecordFormat[Any]] = {"lgsm": SCORE_MODEL, "evidence": EVIDENCE}  # the others have none of their own


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
    """Write a cohort-evidence model as readable JSON; the parameters are those of `save_model`.

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
    """Read a cohort-evidence model that `save_evidence` wrote, like `load_model`.

    Examples
    --------
    >>> load_evidence("no.json")
    Traceback (most recent call last):
    evenscore.errors.FileError: no.json: there is no such file; check the name
    """
    return EVIDENCE.read(path).model


def save_calibration(calibration: Calibration, path: PathLike, *, info: Info = None) -> None:
    r"""Write a calibration of any kind as readable JSON; the parameters are those of `save_model`.

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
    """Read a calibration of any kind that `save_calibration` wrote, like `load_model`.

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


def save_plda(plda: PLDA, path: PathLike, *, info: Info = None) -> None:
    """Write a PLDA model as JSON; the parameters are those of `save_model`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import PLDA
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "plda.json"
    >>> save_plda(PLDA(mean=[0.0], between=[[3.0]], within=[[1.0]]), path)
    >>> load_plda(path).between
    array([[3.]])
    """
    PLDA_MODEL.write(plda, path, info)


def load_plda(path: PathLike) -> PLDA:
    """Read a PLDA model that `save_plda` or Kaldi's ``ivector-compute-plda`` (text or binary) wrote, like `load_model`.

    Examples
    --------
    >>> load_plda("absent.json")
    Traceback (most recent call last):
    evenscore.errors.FileError: absent.json: there is no such file; check the name
    """
    from evenscore.files.kaldi_objects import is_kaldi_plda, read_kaldi_plda

    return read_kaldi_plda(path) if is_kaldi_plda(path) else PLDA_MODEL.read(path).model


def save_transform(transform: Transform, path: PathLike, *, info: Info = None) -> None:
    """Write a transform of embeddings as JSON; the parameters are those of `save_model`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from evenscore import Embeddings
    >>> from evenscore.scoring import fit_transform
    >>> takes = Embeddings(range(4), [[1.0, 0.0], [1.5, 0.1], [0.0, 1.0], [0.2, 2.0]], ["a", "a", "b", "b"])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "transform.json"
    >>> save_transform(fit_transform(takes, ["center"]).transform, path)
    >>> load_transform(path).steps[0].center
    array([0.675, 0.775])
    """
    TRANSFORM.write(transform, path, info)


def load_transform(path: PathLike) -> Transform:
    """Read a transform that `save_transform` wrote, like `load_model`."""
    return TRANSFORM.read(path).model


def trained_methods() -> tuple[str, ...]:
    """Return the norms whose trained models have files."""
    return tuple(_records())


def is_saved(model: Any) -> bool:
    """Tell whether there is a file format for this kind of model."""
    return _method_of(model) is not None


def save_trained(model: Any, path: PathLike) -> None:
    """Write a model that `is_saved`."""
    method = _method_of(model)
    if method is None:
        raise InputError(f"there is no file format for a {type(model).__name__}; register its method with a record")
    format_of(method).write(model, path)


def load_trained(path: PathLike) -> Any:
    """Read a model of any kind; None if the file is of another kind."""
    values = read_json(path, largest=_LARGEST)
    formats = {format.name: format for format in map(format_of, trained_methods())}
    found = formats.get(str(values.get("format")))
    return None if found is None else found.model_in(path, values).model


def load_model_of(method: str, path: PathLike) -> Any:
    """Read the model of one of the `trained_methods`; a file of another kind is refused."""
    return format_of(method).read(path).model


def _records() -> dict[str, Named]:
    return {name: method.record for name, method in METHODS.items() if method.record is not None}


def _method_of(model: Any) -> str | None:
    """Return the method that trains models of this kind."""
    return next((name for name, record in _records().items() if isinstance(model, loaded(record))), None)


def format_of(method: str) -> RecordFormat[Any]:
    """Return the file format of the models that a method trains."""
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
