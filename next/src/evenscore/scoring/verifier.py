"""Scorer, cohort, norm and calibration in one object: enrol once, then two vectors in, a log-likelihood ratio out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration
from evenscore.data.blocks import ScoreBlocks
from evenscore.data.embeddings import Embeddings
from evenscore.data.score_matrix import ScoreMatrix, set_fields
from evenscore.errors import InputError
from evenscore.norms.online import OnlineNorm
from evenscore.norms.options import CLASSICAL, NormOptions
from evenscore.norms.registry import method_named, normalize
from evenscore.parallel import one_blas_thread
from evenscore.scoring.cohorts import LengthNorm, average_embeddings
from evenscore.scoring.projection import Array
from evenscore.scoring.scorers import Scorer, make_scorer

__all__ = ["Enrolled", "Probe", "Verifier"]

Numbers = tuple[float, ...] | Array  #: what a norm keeps of the cohort scores of one side of a trial


@dataclass(frozen=True, eq=False)
class Enrolled:
    """What a `Verifier` keeps of an enrolment; it serves with any verifier that was loaded from the same file."""

    vector: Array  #: and offset: its side of the score
    offset: float = 0.0
    numbers: Numbers = ()  #: what the norm keeps of its cohort scores


@dataclass(frozen=True, eq=False)
class Probe(Enrolled):
    """What a `Verifier` keeps of a test, as `Enrolled` of an enrolment."""


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Verifier:
    """Scores single trials: scorer, cohort, norm and calibration, prepared once.

    It never changes, so that threads may share it, and it holds BLAS to one thread. The numbers are those of
    `score_embeddings` and the calibration. The speakers of the trials must not be in the cohort: none is left out.

    Parameters
    ----------
    scorer
        A name or a scorer, see `make_scorer`.
    cohort
        Embeddings of other speakers, see `make_cohort`; every norm needs them.
    method, **options
        Name of the norm (``"raw"`` for none), and its options: ``top_k=300``, ``model=...``.
    calibration
        Fitted to scores of this scorer and norm; None for norms that return log-likelihood ratios themselves.
    length_norm
        How several vectors of an enrolment are averaged, see `average_embeddings`.

    Examples
    --------
    >>> from evenscore.calibrate import LogisticCalibration
    >>> rng = np.random.default_rng(0)
    >>> cohort = Embeddings([f"c{i}" for i in range(50)], rng.normal(size=(50, 8)))
    >>> calibration = LogisticCalibration(weights=[2.0], offset=-5.0)
    >>> verifier = Verifier(cohort=cohort, method="as", top_k=20, calibration=calibration)
    >>> takes = rng.normal(size=8) + 0.3 * rng.normal(size=(3, 8))
    >>> ann = verifier.enroll(takes[:2])  # once
    >>> round(verifier.llr(ann, takes[2]), 2)
    -0.01
    """

    scorer: Scorer
    cohort: Embeddings | None
    method: str
    options: dict[str, Any]
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
        method_named(method)
        if method == "raw" and (cohort is not None or options):
            raise InputError("a cohort or options of a norm were given, but no norm; name one, such as method='as'")
        if method != "raw" and (cohort is None or not len(cohort)):
            raise InputError(f"the norm {method!r} needs a cohort; give embeddings of other speakers as cohort")
        set_fields(self, scorer=make_scorer(scorer), cohort=cohort, method=method, options=options)
        set_fields(self, calibration=calibration, length_norm=length_norm)
        if cohort is not None:  # what is made on first use is made before there are threads
            self.normalized(self.enroll(cohort.vectors[0]), self.test(cohort.vectors[-1]))

    @property
    def is_llr(self) -> bool:
        """Whether there are log-likelihood ratios: from a calibration, or from a norm with a trained model."""
        return self.calibration is not None or "model" in self.options

    def enroll(self, vectors: npt.ArrayLike) -> Enrolled:
        """Return what is kept of an enrolment: of one vector, or of the mean of several (a row each)."""
        x = self._checked(vectors)
        if x.ndim == 2:
            takes = Embeddings(range(len(x)), x)
            x = average_embeddings(takes, {"enrolment": takes.ids.tolist()}, self.length_norm).vectors[0]
        return Enrolled(*self._prepared(x, self._norm[0]))

    def test(self, vector: npt.ArrayLike) -> Probe:
        """Return what is kept of a test, one vector."""
        x = self._checked(vector)
        if x.ndim != 1:
            raise InputError(f"a test is one vector, but there are {len(x)}; average them, or test each of them")
        return Probe(*self._prepared(x, self._norm[1]))

    def normalized(self, enroll: Enrolled | npt.ArrayLike, test: Probe | npt.ArrayLike) -> float:
        """Return the normalized score of a trial, before the calibration; each side is prepared, or a vector."""
        e = enroll if isinstance(enroll, Enrolled) else self.enroll(enroll)
        t = test if isinstance(test, Enrolled) else self.test(test)
        if type(e) is not Enrolled or type(t) is not Probe:
            raise InputError("the two sides are swapped; give what was enrolled first, then what is tested")
        return self._norm[2](float(e.vector @ t.vector) + e.offset + t.offset, e.numbers, t.numbers)

    def llr(self, enroll: Enrolled | npt.ArrayLike, test: Probe | npt.ArrayLike) -> float:
        """Return the log-likelihood ratio of a trial; each side is prepared, or a vector."""
        if not self.is_llr:
            raise InputError(f"scores of the norm {self.method!r} are no log-likelihood ratios; give a calibration")
        score = self.normalized(enroll, test)
        return score if self.calibration is None else float(self.calibration(score))

    def __repr__(self) -> str:
        cohort = "no cohort" if self.cohort is None else f"cohort {len(self.cohort)} x {self.cohort.dim}"
        end = "no calibration" if self.calibration is None else f"{self.calibration.kind} calibration"
        return f"Verifier({type(self.scorer).__name__}, {cohort}, {self.method}, {end})"

    def _checked(self, vectors: npt.ArrayLike) -> Array:
        """Return one vector, or a row for each of several, in the precision of the cohort."""
        x = np.asarray(vectors)
        if x.dtype.kind not in "fiu" or x.ndim not in (1, 2) or not x.size or not np.isfinite(x).all():
            raise InputError(f"a vector is a list of finite numbers, but this is {x.dtype} of shape {x.shape}")
        if self.cohort is not None and x.shape[-1] != self.cohort.dim:
            raise InputError(f"the vector has {x.shape[-1]} dimensions, but the cohort has {self.cohort.dim}")
        dtype = x.dtype if self.cohort is None else self.cohort.vectors.dtype
        return x.astype(dtype if dtype.kind == "f" else np.float64, copy=False)

    def _prepared(self, vector: Array, numbers: Callable[[Array], Numbers]) -> tuple[Array, float, Numbers]:
        """Return a side of the score, and what the norm keeps of its cohort scores."""
        with one_blas_thread():
            vectors, offsets = self.scorer.side(vector[None])
            offset = 0.0 if offsets is None else float(offsets[0])
            if self.cohort is None:
                return vectors[0], offset, ()
            members, added = self._members
            return vectors[0], offset, numbers((members @ vectors[0]).astype(np.float64) + (added + offset))

    @cached_property
    def _members(self) -> tuple[Array, Array]:
        """The cohort's side of the scores: vectors and offsets."""
        vectors, offsets = self.scorer.side(self.cohort)  # type: ignore[arg-type]
        return vectors, np.zeros(len(vectors)) if offsets is None else offsets

    @cached_property
    def _norm(self) -> tuple[Callable[[Array], Numbers], Callable[[Array], Numbers], Callable[..., float]]:
        """What makes the numbers of an enrolment and of a test, and what normalizes a score with them."""
        if self.cohort is None:
            return np.asarray, np.asarray, lambda score, enroll, test: score
        inner = ScoreMatrix.trusted(self.scorer.bilinear(self.cohort, self.cohort), self.cohort, self.cohort)
        blocks = ScoreBlocks(ScoreMatrix([[0.0]], ["enrolment"], ["test"]), cohort=inner)
        if self.method == "lgsm":
            from evenscore.model.scoring import ScoreModelNormalizer

            return np.asarray, np.asarray, ScoreModelNormalizer(self.options["model"], blocks).normalize_one
        if self.method in CLASSICAL:
            given = dict(self.options)
            how = NormOptions.resolve(given.pop("options", None), given.pop("convention", None), **given)
            chained = blocks.nontargets().cohort if self.method in ("zt", "tz") else None
            norm = OnlineNorm(self.method, how.for_method(self.method), chained and np.asarray(chained.scores))
            if norm.options.select == "own":
                return norm.enroll, norm.test, norm.score
        inner = inner.with_scores(np.asarray(inner.scores))

        def whole_blocks(score: float, enroll: Array, test: Array) -> float:
            trial = ScoreMatrix([[score]], ["enrolment"], ["test"])
            S_e = ScoreMatrix.trusted(enroll[None], trial.enroll, inner.test)
            S_t = ScoreMatrix.trusted(test[:, None], inner.enroll, trial.test)
            one = ScoreBlocks(trial, S_e, S_t, inner)
            return float(np.asarray(normalize(one, self.method, **self.options).scores)[0, 0])

        return np.asarray, np.asarray, whole_blocks
