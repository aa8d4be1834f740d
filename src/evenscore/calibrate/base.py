"""What all calibrations share: fitting, the call on arrays and tables, and intervals by a bootstrap over speakers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.trials import Floats, Speakers, Systems, Trials, Weights, as_tables, as_trials, speaker_codes
from evenscore.data.labels import NONTARGET, TARGET, UNKNOWN
from evenscore.data.score_matrix import LARGEST_SCORE, as_scores
from evenscore.errors import InputError
from evenscore.metrics.points import LabelsLike

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["CALIBRATIONS", "Calibration", "Pair", "calibration_class"]

CALIBRATIONS = ("logistic", "gaussian", "pav", "bayesian", "unsupervised", "saturating")  #: their names
Pair = npt.NDArray[np.float64]  #: of non-targets and of targets
_LARGEST = LARGEST_SCORE**2  # squares of scores are parameters
_LIMITS = {"p_target": (1e-300, 1 - 2**-53)}  # smallest and largest values of parameters and options
_LIMITS |= dict.fromkeys(("variance", "scale2", "df"), (1 / _LARGEST, _LARGEST))
_LIMITS |= dict.fromkeys(("l2", "smoothing"), (0.0, _LARGEST))
_LIMITS |= dict.fromkeys(("target_outliers", "nontarget_outliers"), (0.0, 0.5))
_LIMITS |= dict.fromkeys(("llr", "edges"), (-math.inf, math.inf))


@dataclass(frozen=True, kw_only=True, eq=False)
class Calibration:
    """A function from scores to natural-log likelihood ratios; its fields are its parameters.

    Examples
    --------
    >>> calibration_class("gaussian").fit([0.0, 2.0, 4.0, 8.0], [0, 0, 1, 1], shared_variance=False)
    GaussianCalibration(mean=array([1., 6.]), variance=array([1., 4.]))
    """

    kind: ClassVar[str]
    supervised: ClassVar[bool] = True
    accepts_infinite: ClassVar[bool] = False
    fuses: ClassVar[bool] = False  #: several systems, and quality measures

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.type in ("float", "Floats", "Pair"):
                value = _checked(each.name, getattr(self, each.name))
                if value.ndim != (each.type != "float") or (each.type == "Pair" and value.shape != (2,)):
                    raise InputError(f"{each.name} has shape {value.shape}, but must be a {each.type.lower()}")
                vars(self)[each.name] = float(value) if value.ndim == 0 else value

    @classmethod
    def fit(
        cls,
        scores: Systems,
        labels: LabelsLike = None,
        weights: Weights = None,
        quality: Any = None,
        **options: Any,
    ) -> Self:
        """Fit to labelled scores.

        Parameters
        ----------
        scores, labels
            Arrays of one shape; a table with labels or speakers, or with a key or `Labels`; or `Points`. Labels are 1
            (target), 0 (non-target), -1 (not used). Several systems are n x k numbers, or a list of tables.
        weights
            How many trials each trial counts for; by default 1.
        quality, **options
            Quality measures (n x q numbers, or names as in `quality_columns`), and options of the kind of calibration.
        """
        trials = as_trials(scores, labels, weights, quality, labelled=cls.supervised)
        found = cls._fit_used(trials, options)
        vars(found)["_training"] = trials, options
        if np.asarray(quality).dtype.kind == "U":
            vars(found)["quality_names"] = tuple(np.atleast_1d(quality).tolist())
        return found

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Return the names of the options of `fit`."""
        return tuple(signature(cls._fit).parameters)[1:]

    @classmethod
    def _fit_used(cls, trials: Trials, options: Mapping[str, Any]) -> Self:
        """Fit to the trials with a label and a weight above 0."""
        for name, value in options.items():
            if name not in cls.option_names():
                raise InputError(f"{cls.kind} has no option {name!r}; it has {', '.join(cls.option_names())}")
            _checked(name, 0.25 if value is None else value)
        if not cls.fuses and (trials.scores.ndim > 1 or trials.measures.size):
            raise InputError(f"several systems and quality measures are for the logistic calibration, not {cls.kind}")
        keep = trials.weights > 0
        keep &= trials.labels != UNKNOWN if cls.supervised else ~np.isnan(trials.scores)
        found = trials if keep.all() else trials.take(keep)
        targets, nontargets = (int(np.count_nonzero(found.labels == label)) for label in (TARGET, NONTARGET))
        if cls.supervised and not (targets and nontargets):
            raise InputError(f"there are {targets} target and {nontargets} non-target trials, but both are needed")
        if np.isnan(cls._valid(found.scores)).any() or np.isnan(cls._valid(found.measures)).any():
            raise InputError("a score or a quality measure to fit to is nan; drop the trial or label it -1")
        return cls._fit(found, **options)

    @classmethod
    def _fit(cls, trials: Trials, *args: Any, **options: Any) -> Self:
        """Fit to trials with known labels; the further arguments of a kind are its options."""
        raise NotImplementedError

    def _llr(self, scores: Floats) -> Floats:
        """Return the LLRs of valid scores; NaN for NaN."""
        raise NotImplementedError

    def __call__(self, scores: Any) -> Any:
        """Return the LLR of each score: numbers of any shape, or a table for a table (NumPy or dask); NaN for NaN."""
        tables = as_tables(scores)
        if len(tables) > 1:
            raise InputError(f"this {self.kind} calibration is of one system, but there are {len(tables)}; give one")
        return tables[0].map(lambda part: self._llr(self._valid(part))) if tables else self._llr(self._valid(scores))

    @classmethod
    def _valid(cls, scores: npt.ArrayLike) -> Floats:
        """Return scores of any shape as float64."""
        values = as_scores(scores, ndim=np.ndim(scores)).astype(np.float64, copy=False)
        bad = np.abs(values) > LARGEST_SCORE
        if bad.any() and not (cls.accepts_infinite and np.isinf(values[bad]).all()):
            raise InputError(f"a score is {values[bad].flat[0]:g}, but must be finite, or NaN where one is missing")
        return values

    def interval(
        self,
        scores: npt.ArrayLike,
        speakers: tuple[Speakers, Speakers] = (None, None),
        level: float = 0.95,
        *,
        replicates: int = 200,
        seed: int = 0,
    ) -> tuple[Floats, Floats]:
        """Return the ends of an interval for the LLR of each score, by a bootstrap over the training speakers.

        Speakers are drawn with replacement, and the calibration is fitted to the trials of those drawn: one of two
        speakers that were drawn m and n times counts m n times, one of a single speaker m times. Draws that cannot be
        fitted are drawn again. ``speakers`` are the enrolled and the tested ones of the *training* trials: one per
        trial; if the calibration was fitted to a table, one per id, a mapping, or None where the table knows them.

        Examples
        --------
        >>> enroll, test = np.repeat(np.arange(12), 12), np.tile(np.arange(12), 12)
        >>> scores = np.random.default_rng(0).normal(3.0 * (enroll == test), 1.0)
        >>> calibration = calibration_class("logistic").fit(scores, enroll == test)
        >>> low, high = calibration.interval(2.0, (enroll, test))
        >>> bool(low < calibration(2.0) < high)
        True
        """
        if "_training" not in self.__dict__:
            raise InputError("the training trials of this calibration are not in memory; fit it again for intervals")
        trials, options = self.__dict__["_training"]
        names, enroll, test = speaker_codes(trials, *speakers)
        rng, llrs = np.random.default_rng(seed), []
        for _ in range(10 * replicates):
            times = rng.multinomial(len(names), np.full(len(names), 1 / len(names)))
            weights = trials.weights * times[enroll] * np.where(enroll == test, 1, times[test])
            try:
                llrs.append(self._fit_used(replace(trials, weights=weights), options)(scores))
            except InputError:
                continue
            if len(llrs) == replicates:
                return tuple(np.quantile(llrs, [(1 - level) / 2, (1 + level) / 2], axis=0, method="inverted_cdf"))
        raise InputError(f"most draws of the {len(names)} speakers cannot be fitted; give trials of more speakers")

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and the parameters as numbers, text and lists."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: np.asarray(value).tolist() for name, value in found.items() if value is not None}
        return {"kind": self.kind, "parameters": plain}

    def __getstate__(self) -> dict[str, Any]:  # training trials do not travel to other processes
        return {each.name: getattr(self, each.name) for each in fields(self)}


def calibration_class(name: str) -> type[Calibration]:
    """Return the class of a calibration by its name."""
    if name not in CALIBRATIONS:
        raise InputError(f"there is no calibration {name!r}; choose one of {', '.join(CALIBRATIONS)}")
    found: type[Calibration] = getattr(import_module("evenscore.calibrate"), f"{name.capitalize()}Calibration")
    return found


def _checked(name: str, value: npt.ArrayLike) -> Floats:
    """Return a parameter or an option as a read-only array of numbers within their limits."""
    low, high = _LIMITS.get(name, (-_LARGEST, _LARGEST))
    array = np.array(value, np.float64)
    if not ((array >= low) & (array <= high)).all():
        raise InputError(f"{name} is {array.tolist()}, but must be from {low:g} to {high:g}")
    array.flags.writeable = False
    return array
