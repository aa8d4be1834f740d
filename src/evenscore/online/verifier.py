"""Scorer, cohort, norm and calibration in one object: enrol once, then two vectors in, a log-likelihood ratio out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate import Calibration
from evenscore.errors import InputError
from evenscore.norms.normalize import prepare_norm
from evenscore.norms.one_by_one import OneByOne, Row
from evenscore.norms.options import NormOptions
from evenscore.norms.registry import METHODS, method_named
from evenscore.online.sides import Half, half_of, numbers_of, products
from evenscore.scoring.cohorts import LengthNorm, average_embeddings
from evenscore.scoring.embeddings import cohort_blocks, scorer_named
from evenscore.sources import Scorer
from evenscore.sources.computed import ComputedScores, Places
from evenscore.tables import Axis, Embeddings, ScoreMatrix
from evenscore.tables.arrays import LARGEST_COMPONENT, frozen, hashed

__all__ = ["Enrolled", "Probe", "Verifier"]

_NO_NUMBERS: Row = frozen(np.empty(0))
_MEMORY = 4e9  # bytes that the cohort against itself may take, for the methods that need all of it


@dataclass(frozen=True, eq=False)
class Enrolled(Half):
    """What a `Verifier` keeps of an enrolment: its side of the score, and what the cohort says about it.

    Its three fields are all there is to store, as in a data base of speakers: ``Enrolled(vector, offset, numbers)``
    serves with a verifier of the same file again.

    Examples
    --------
    >>> ann = Verifier().enroll([3.0, 4.0])
    >>> ann.vector, ann.offset
    (array([0.6, 0.8]), 0.0)
    """

    numbers: Row = field(default_factory=lambda: _NO_NUMBERS)  #: that the norm keeps of it


@dataclass(frozen=True, eq=False)
class Probe(Enrolled):
    """What a `Verifier` keeps of a test, as `Enrolled` of an enrolment.

    Examples
    --------
    >>> Verifier().test([0.0, 2.0]).vector
    array([0., 1.])
    """


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Verifier:
    """Scores single trials online: scorer, cohort, norm and calibration, prepared once.

    It never changes, so that any number of threads may share it. The numbers are those of `score_embeddings` and the
    calibration. `save_verifier` and `load_verifier` keep all of it in one file. The speakers of the trials must not be
    in the cohort: nobody is left out of it.

    Parameters
    ----------
    scorer
        ``"cosine"``, ``"dot"``, or a scorer such as ``Cosine(mean=...)`` or a `PLDA`.
    cohort
        Embeddings of other speakers, see `make_cohort`; every norm needs them.
    method
        Name of the norm, or ``"raw"`` for none.
    calibration
        Fitted to scores of this scorer and norm; None for norms that return log-likelihood ratios themselves.
    length_norm
        Whether several vectors of an enrolment are brought to length 1 before they are averaged, see
        `average_embeddings`.
    **options
        Of the norm, as in `prepare_norm`: ``top_k=300``, ``model=...``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> cohort = Embeddings([f"c{i}" for i in range(50)], rng.normal(size=(50, 8)))
    >>> from evenscore import LogisticCalibration
    >>> calibration = LogisticCalibration(weights=[2.0], quality_weights=[], offset=-5.0)
    >>> verifier = Verifier(cohort=cohort, method="as", top_k=20, calibration=calibration)
    >>> takes = rng.normal(size=8) + 0.3 * rng.normal(size=(3, 8))
    >>> ann = verifier.enroll(takes[:2])  # once
    >>> round(verifier.llr(ann, takes[2]), 2)
    -0.01
    >>> other = verifier.test(rng.normal(size=8))  # once, to be compared with many
    >>> round(verifier.llr(ann, other), 2)
    -2.76
    """

    scorer: Scorer
    cohort: Embeddings | None
    method: str
    options: Mapping[str, Any]
    calibration: Calibration | None
    length_norm: LengthNorm

    def __init__(
        self,
        scorer: str | Scorer = "cosine",
        *,
        cohort: Embeddings | None = None,
        method: str = "raw",
        calibration: Calibration | None = None,
        length_norm: LengthNorm = "none",
        **options: Any,
    ) -> None:
        if isinstance(options.get("options"), NormOptions):
            options |= asdict(options.pop("options"))
        _refuse_odd(method, cohort, calibration, options)
        for name, value in {
            "scorer": scorer_named(scorer),
            "cohort": cohort,
            "method": method,
            "options": MappingProxyType(dict(options)),
            "calibration": calibration,
            "length_norm": length_norm,
        }.items():
            object.__setattr__(self, name, value)
        if cohort is not None:  # loops are loaded, and what is made on first use is made before there are threads
            self.normalized(self.enroll(cohort.vectors[:1]), self.test(cohort.vectors[-1]))

    @property
    def is_llr(self) -> bool:
        """Whether there are log-likelihood ratios: from a calibration, or from a norm with a trained model."""
        return self.calibration is not None or METHODS[self.method].record is not None

    @property
    def dim(self) -> int | None:
        """Number of components of a vector, None if any will do."""
        return None if self.cohort is None else self.cohort.dim

    def enroll(self, vectors: npt.ArrayLike) -> Enrolled:
        """Return what is kept of an enrolment: of one vector, or of the mean of several (a row each)."""
        array = self._checked(vectors)
        if array.ndim == 2:
            takes = Embeddings([str(row) for row in range(len(array))], array)
            mean = average_embeddings(takes, {"enrolment": takes.ids.tolist()}, length_norm=self.length_norm)
            array = mean.vectors[0]
        half = self._halves["enroll"](array)
        return Enrolled(half.vector, half.offset, self._numbers["enroll"](half))

    def test(self, vector: npt.ArrayLike) -> Probe:
        """Return what is kept of a test, one vector."""
        array = self._checked(vector)
        if array.ndim != 1:
            raise InputError(f"a test is one vector, but there are {len(array)}; average them, or test each of them")
        half = self._halves["test"](array)
        return Probe(half.vector, half.offset, self._numbers["test"](half))

    def normalized(self, enroll: Enrolled | npt.ArrayLike, test: Probe | npt.ArrayLike) -> float:
        """Return the normalized score of a trial, before the calibration; each side is prepared, or a vector."""
        e = enroll if isinstance(enroll, Enrolled) else self.enroll(enroll)
        t = test if isinstance(test, Enrolled) else self.test(test)
        if type(e) is not Enrolled or type(t) is not Probe:
            raise InputError("the two sides are swapped; give what was enrolled first, then what is tested")
        if e.vector.shape != t.vector.shape:
            raise InputError(
                f"the enrolment has {e.vector.size} dimensions, but the test has {t.vector.size}; both must come from "
                "the same verifier"
            )
        score = float(e.vector @ t.vector) + e.offset + t.offset
        return score if self._norm is None else self._norm.meet(score, e.numbers, t.numbers)

    def llr(self, enroll: Enrolled | npt.ArrayLike, test: Probe | npt.ArrayLike) -> float:
        """Return the log-likelihood ratio of a trial; each side is prepared, or a vector."""
        if not self.is_llr:
            raise InputError(
                f"scores of the norm {self.method!r} are no log-likelihood ratios; give a calibration, or ask for "
                "`normalized`"
            )
        score = self.normalized(enroll, test)
        return score if self.calibration is None else float(self.calibration(score))

    def score(self, enroll: Embeddings, test: Embeddings) -> ComputedScores:
        """Return the table of all trials, one by one when they are read: to check what a service will say.

        So a verifier is a scorer. The scores are log-likelihood ratios, or normalized scores if there are none.
        """
        return _Table(self, enroll.vectors, test.vectors, enroll.axis, test.axis)

    def __repr__(self) -> str:
        cohort = "no cohort" if self.cohort is None else f"cohort {len(self.cohort)} x {self.cohort.dim}"
        end = "no calibration" if self.calibration is None else f"{self.calibration.kind} calibration"
        return f"Verifier({type(self.scorer).__name__}, {cohort}, {self.method}, {end})"

    def _checked(self, vectors: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return one vector, or a row for each of several, in the precision of the cohort."""
        array = np.asarray(vectors)
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or not array.size:
            raise InputError(f"a vector is a list of numbers, but this is {array.dtype} of shape {array.shape}")
        if self.cohort is not None and array.shape[-1] != self.cohort.dim:
            raise InputError(
                f"the vector has {array.shape[-1]} dimensions, but the cohort has {self.cohort.dim}; both must "
                "come from the same extractor"
            )
        if not (abs(array) <= LARGEST_COMPONENT).all():
            raise InputError(f"a vector has a value that is not finite, or above {LARGEST_COMPONENT:g}; drop it")
        if self.cohort is not None:
            return array.astype(self.cohort.vectors.dtype, copy=False)
        return array if array.dtype.kind == "f" else array.astype(np.float64)

    @cached_property
    def _halves(self) -> dict[str, Callable[[npt.NDArray[Any]], Half]]:
        return {side: half_of(self.scorer, side) for side in ("enroll", "test")}

    @cached_property
    def _numbers(self) -> dict[str, Callable[[Half], Row]]:
        """What finds the numbers that the norm keeps of a side."""
        if self._norm is None or self.cohort is None:
            return dict.fromkeys(("enroll", "test"), lambda half: _NO_NUMBERS)
        cohort = products(self.scorer, self.cohort, self.cohort)
        return {side: numbers_of(self._norm, cohort, side) for side in ("enroll", "test")}

    @cached_property
    def _norm(self) -> OneByOne | None:
        if self.method == "raw" or self.cohort is None:
            return None
        norm = prepare_norm(self.method, **self.options)
        ann, take = (Embeddings([name], self.cohort.vectors[:1]) for name in ("enrolment", "test"))
        trial = ScoreMatrix([[0.0]], ann.axis, take.axis)
        blocks = cohort_blocks(self.scorer, ann, take, self.cohort, trial, self.method, _MEMORY, self.options)
        found = OneByOne.of(norm, blocks)
        return found if found.parts is not None else OneByOne.of(_with_cohort(norm, blocks, self), blocks)


def _with_cohort(norm: Any, blocks: Any, verifier: Verifier) -> Any:
    """Return a norm that keeps all cohort scores of either side, and so must know the cohort itself."""
    if "cohort" not in getattr(norm, "reads", ()):
        return norm
    return prepare_norm(
        verifier.method, **verifier.options, cohort=blocks.cohort.in_memory(), cohort_labels=blocks.cohort_labels
    )


def _refuse_odd(
    method: str, cohort: Embeddings | None, calibration: Calibration | None, options: Mapping[str, Any]
) -> None:
    """Refuse what cannot work together, before anything is prepared."""
    method_named(method)
    if method == "raw" and (cohort is not None or options):
        raise InputError("a cohort or options of a norm were given, but no norm; name one with method, such as 'as'")
    if method != "raw" and (cohort is None or not len(cohort)):
        raise InputError(f"the norm {method!r} needs a cohort; give embeddings of other speakers as cohort")
    odd = [name for name in ("conditions", "cohort_labels", "cohort_enroll_speakers") if name in options]
    if odd:
        raise InputError(f"a verifier knows no {odd[0]}; leave it out, or normalize whole tables")
    if calibration is not None:
        try:
            calibration(0.0)
        except InputError as error:
            raise InputError(f"the calibration does not take one score alone: {error}") from None


@dataclass(frozen=True, eq=False, repr=False)
class _Table(ComputedScores):
    """What a verifier says of every enrolment against every test."""

    verifier: Verifier
    left: npt.NDArray[Any]
    right: npt.NDArray[Any]
    enroll_axis: Axis
    test_axis: Axis

    def block(self, rows: Places = slice(None), columns: Places = slice(None)) -> npt.NDArray[Any]:
        """Return the scores of some enrolments against some tests."""
        tests = [self.verifier.test(vector) for vector in self.right[columns]]
        enrolled = [self.verifier.enroll(vector) for vector in self.left[rows]]
        return np.array([[self._one(e, t) for t in tests] for e in enrolled]).reshape(len(enrolled), len(tests))

    def pairs(self, rows: npt.NDArray[np.integer], columns: npt.NDArray[np.integer]) -> npt.NDArray[Any]:
        """Return the scores of listed pairs."""
        enrolled = {at: self.verifier.enroll(self.left[at]) for at in np.unique(rows).tolist()}
        tests = {at: self.verifier.test(self.right[at]) for at in np.unique(columns).tolist()}
        pairs = zip(rows.tolist(), columns.tolist(), strict=True)
        return np.array([self._one(enrolled[row], tests[column]) for row, column in pairs], dtype=np.float64)

    def _one(self, enroll: Enrolled, test: Probe) -> float:
        return self.verifier.llr(enroll, test) if self.verifier.is_llr else self.verifier.normalized(enroll, test)

    @property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """Always float64."""
        return np.dtype(np.float64)

    def numbers_identity(self) -> str:
        """Return a hash of vectors and verifier."""
        cohort = None if self.verifier.cohort is None else self.verifier.cohort.vectors
        return hashed(self.left, self.right, cohort, repr(self.verifier), repr(dict(self.verifier.options)))
