"""What all calibrations share: the call, a dictionary of their parameters, and intervals by a bootstrap."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, overload

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.training import Floats, Training, trial_speakers
from evenscore.data.score_matrix import LARGEST_SCORE, ScoreMatrix, as_scores
from evenscore.data.side import SpeakersLike
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.large import is_dask
from evenscore.parallel import run_blocks

__all__ = ["CALIBRATIONS", "Calibration", "LlrInterval", "calibration_class", "calibration_from_dict"]
__all__ += ["as_input", "check_prior", "finite", "positive"]

_FORMAT, _VERSION = "evenscore-calibration", 1
_LARGEST = LARGEST_SCORE**2  # of parameters: squares of scores
_BLOCK = 1 << 16  # scores of a table at a time, so that intermediate results stay in the cache
_INFINITE = {"inf": math.inf, "-inf": -math.inf}  # JSON has no infinite numbers


@dataclass(frozen=True)
class LlrInterval:
    """Two LLRs for each score, between which the middle ``level`` of the bootstrap replicates lies."""

    low: Floats
    high: Floats
    level: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """A function from scores to natural-log likelihood ratios.

    Every kind has a classmethod ``fit(scores, labels, weights=None, ...)``. The fields are its parameters, which
    `to_dict` returns as plain numbers.

    Examples
    --------
    >>> calibration = CALIBRATIONS["gaussian"].fit([0.0, 2.0, 4.0, 8.0], [0, 0, 1, 1])
    >>> calibration.to_dict()["parameters"]
    {'mean': [1.0, 6.0], 'variance': [1.0, 4.0]}
    >>> calibration(ScoreMatrix([[1.0, 6.0]], ["e"], ["t1", "t2"])).scores.round(3)
    array([[-3.818, 11.807]])
    """

    kind: ClassVar[str]
    accepts_infinite: ClassVar[bool] = False

    @classmethod
    def fit(cls, scores: Any, labels: Any = None, weights: npt.ArrayLike | None = None) -> Self:
        """Fit to labelled scores.

        Parameters
        ----------
        scores, labels
            Arrays of one shape; a table with labels, a key or `Labels`; or `Points`. Labels are 1 (target),
            0 (non-target) or -1 (not used).
        weights
            How many trials each trial counts for; by default 1.
        """
        raise NotImplementedError

    def _llr(self, scores: Floats) -> Floats:
        """Return the LLRs of valid scores."""
        raise NotImplementedError

    @overload
    def __call__(self, scores: ScoreMatrix) -> ScoreMatrix: ...
    @overload
    def __call__(self, scores: TrialList) -> TrialList: ...
    @overload
    def __call__(self, scores: npt.ArrayLike) -> Floats: ...
    def __call__(self, scores: Any) -> Any:
        """Return the LLR of each score; a table for a table, and NaN for NaN.

        Parameters
        ----------
        scores
            Numbers of any shape, a `TrialList` or a `ScoreMatrix` (NumPy or dask), which keeps its precision.
        """
        if isinstance(scores, ScoreMatrix):
            if is_dask(scores.scores):
                return scores.with_scores(scores.scores.map_blocks(self._in_blocks, dtype=scores.scores.dtype))
            return scores.with_scores(self._in_blocks(scores.scores))
        if isinstance(scores, TrialList):
            return scores.with_scores(self._in_blocks(scores.needs_scores()), infinite=True)
        return self._llr(as_input(scores, infinite=self.accepts_infinite))

    def _in_blocks(self, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
        out = np.empty_like(scores)

        def work(block: slice) -> None:
            out[block] = self._llr(as_input(scores[block], infinite=self.accepts_infinite))

        run_blocks(work, len(scores), max(scores.size // max(len(scores), 1), 1), _BLOCK)
        return out

    def interval(
        self,
        scores: npt.ArrayLike,
        speakers: tuple[SpeakersLike | None, SpeakersLike | None] | None = None,
        level: float = 0.95,
        *,
        replicates: int = 200,
        seed: int = 0,
    ) -> LlrInterval:
        """Return an interval for the LLR of each score: how much it depends on the speakers of the training trials.

        Speakers are drawn with replacement, and the calibration is fitted to the trials of those drawn: one of two
        speakers that were drawn m and n times counts m n times, one of a single speaker m times. Draws that cannot
        be fitted are drawn again.

        Parameters
        ----------
        scores
            Scores to calibrate, any shape.
        speakers
            Speakers of the *training* trials, enrolment and test: one per trial; for a table that was fitted to, one
            per id, a mapping from id to speaker, or nothing if the table knows its speakers.
        level
            Share of the replicates inside the interval.
        replicates, seed
            Number of draws, and the seed of the random numbers.

        Raises
        ------
        InputError
            If this calibration was read from a file: the training trials are kept in memory only.

        Examples
        --------
        >>> enroll, test = np.repeat(np.arange(12), 12), np.tile(np.arange(12), 12)
        >>> scores = np.random.default_rng(0).normal(3.0 * (enroll == test), 1.0)
        >>> calibration = CALIBRATIONS["logistic"].fit(scores, enroll == test)
        >>> found = calibration.interval([2.0], (enroll, test))
        >>> bool(found.low[0] < calibration([2.0])[0] < found.high[0])
        True
        """
        if not 0 < level < 1:
            raise InputError(f"level is {level}, but must lie between 0 and 1, such as 0.95")
        if replicates < 1:
            raise InputError(f"replicates is {replicates}, but must be at least 1; 200 is usual")
        found: tuple[Training, dict[str, Any]] | None = self.__dict__.get("_training")
        if found is None:
            raise InputError("the training trials of this calibration are not in memory; fit it again for intervals")
        training, options = found
        names, enroll, test = trial_speakers(training, *(speakers or (None, None)))
        rng, given, llrs = np.random.default_rng(seed), 1.0 if training.weights is None else training.weights, []
        for _ in range(10 * replicates):
            times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)))
            weights = given * times[enroll] * np.where(enroll == test, 1, times[test])
            try:
                again = type(self).fit(training.scores, training.labels, weights, **options)
            except InputError:
                continue
            llrs.append(again(scores))
            if len(llrs) == replicates:
                ends = [(1 - level) / 2, (1 + level) / 2]
                low, high = np.quantile(np.stack(llrs), ends, axis=0, method="inverted_cdf")
                return LlrInterval(np.asarray(low), np.asarray(high), level)
        raise InputError(f"most draws of the {len(names)} speakers cannot be fitted; give trials of more speakers")

    def _fitted_to(self, training: Training, **options: Any) -> Self:
        """Keep a reference to the trials and options of the fit, for `interval`."""
        object.__setattr__(self, "_training", (training, options))
        return self

    def __getstate__(self) -> dict[str, Any]:  # training trials do not travel to other processes
        return {name: value for name, value in self.__dict__.items() if name != "_training"}

    def to_dict(self) -> dict[str, Any]:
        """Return format, version, kind and parameters as plain numbers, texts and lists."""
        parameters = {field.name: _plain(getattr(self, field.name)) for field in fields(self)}
        return {"format": _FORMAT, "version": _VERSION, "kind": self.kind, "parameters": parameters}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the calibration that `to_dict` described; further keys, such as ``info``, are ignored."""
        kind, parameters = _check_record(record)
        if kind != cls.kind:
            raise InputError(f"this is a {kind!r} calibration, not a {cls.kind!r} one; use calibration_from_dict")
        names = [field.name for field in fields(cls)]
        absent = [name for name in names if name not in parameters]
        unknown = [name for name in parameters if name not in names]
        if absent or unknown:
            problem = f"lacks {absent[0]!r}" if absent else f"has an unknown parameter {unknown[0]!r}"
            raise InputError(f"the {kind} calibration {problem}; its parameters are {', '.join(names)}")
        for field in fields(cls):
            if field.type == "float" and isinstance(parameters[field.name], list):
                raise InputError(f"parameter {field.name!r} is {parameters[field.name]!r}, but must be a number")
        return cls(**{name: _number(name, parameters[name]) for name in names})

    def __eq__(self, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, Calibration) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class _Registry(Mapping[str, type[Calibration]]):
    """The calibrations by name; a module is imported when its calibration is asked for."""

    _classes: ClassVar[dict[str, str]] = {
        name: f"{name.capitalize()}Calibration"
        for name in ("gaussian", "logistic", "pav", "bayesian", "unsupervised", "saturating")
    }

    def __getitem__(self, name: str) -> type[Calibration]:
        found = getattr(importlib.import_module(f"evenscore.calibrate.{name}"), self._classes[name])
        return found  # type: ignore[no-any-return]

    def __contains__(self, name: object) -> bool:
        return name in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


CALIBRATIONS: Mapping[str, type[Calibration]] = _Registry()  #: the calibrations by name


def calibration_class(calibration: str | type[Calibration]) -> type[Calibration]:
    """Return the class of a calibration that is given by name, or as a class.

    Examples
    --------
    >>> calibration_class("pav").__name__
    'PavCalibration'
    """
    if not isinstance(calibration, str):
        return calibration
    if calibration not in CALIBRATIONS:
        raise InputError(f"there is no calibration {calibration!r}; choose one of {', '.join(CALIBRATIONS)}")
    return CALIBRATIONS[calibration]


def calibration_from_dict(record: Mapping[str, Any]) -> Calibration:
    """Return the calibration of any kind that its ``to_dict`` described.

    Examples
    --------
    >>> calibration = CALIBRATIONS["gaussian"](mean=[0.0, 5.0], variance=[1.0, 1.0])
    >>> calibration_from_dict(calibration.to_dict()) == calibration
    True
    """
    return calibration_class(_check_record(record)[0]).from_dict(record)


def _check_record(record: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    if not isinstance(record, Mapping) or record.get("format") != _FORMAT:
        raise InputError(f"this is not a calibration: its 'format' is not {_FORMAT!r}")
    if record.get("version") != _VERSION:
        raise InputError(
            f"the calibration has version {record.get('version')!r}, but this evenscore reads version {_VERSION}; "
            "update evenscore, or fit the calibration again"
        )
    for name, form in (("kind", str), ("parameters", Mapping)):
        if not isinstance(record.get(name), form):
            raise InputError(f"the calibration has no {name!r}; it is incomplete")
    return record["kind"], record["parameters"]


def _plain(value: Any) -> Any:
    """Return a number or a list of numbers; infinite ones become text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, float) and math.isinf(value) else value


def _number(name: str, value: Any) -> Any:
    """Return a float or an array; only real numbers and 'inf' are accepted."""
    if isinstance(value, list) and not any(isinstance(item, list) for item in value):
        return np.array([_number(name, item) for item in value], dtype=np.float64)
    if isinstance(value, str) and value in _INFINITE:
        return _INFINITE[value]
    real = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if not real:
        raise InputError(f"parameter {name!r} is {str(value)[:60]}, but must be a number or a list of numbers")
    return float(value)


def finite(name: str, value: npt.ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    """Return a read-only array of finite numbers."""
    array = np.array(value, dtype=np.float64)
    if shape is not None and array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, but must have shape {shape}")
    if not (abs(array) <= _LARGEST).all():
        raise InputError(f"{name} is {array.tolist()}, but must be finite, and {_LARGEST:g} at most")
    array.flags.writeable = False
    return array


def positive(name: str, value: npt.ArrayLike, shape: tuple[int, ...] | None = None) -> Floats:
    """Return a read-only array of finite numbers above 0."""
    array = finite(name, value, shape)
    if not (array >= 1 / _LARGEST).all():
        raise InputError(f"{name} is {array.tolist()}, but must be above {1 / _LARGEST:g}")
    return array


def check_prior(p_target: float) -> None:
    """Raise an error unless a prior lies between 0 and 1."""
    if not 0 < p_target < 1:
        raise InputError(f"p_target is {p_target}, but must lie between 0 and 1")


def as_input(scores: npt.ArrayLike, *, infinite: bool = False) -> Floats:
    """Return scores of any shape as float64; NaN (missing) is kept, other numbers that are no scores are refused."""
    values = as_scores(scores, ndim=np.ndim(scores)).astype(np.float64, copy=False)
    size = np.abs(values)
    bad = size > LARGEST_SCORE
    if infinite:
        bad &= ~np.isinf(size)
    if bad.any():
        found = values[bad].flat[0]
        raise InputError(f"a score is {found:g}, but this calibration needs finite scores, or NaN where one is missing")
    return values
