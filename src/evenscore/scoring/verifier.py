"""Scorer, cohort, norm and calibration in one object: enrol once, then two vectors in, a log-likelihood ratio out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.calibrate.base import Calibration
from evenscore.data.blocks import ScoreBlocks
from evenscore.data.embeddings import Embeddings
from evenscore.data.score_matrix import ScoreMatrix
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


class Probe(Enrolled):
    """What a `Verifier` keeps of a test, as `Enrolled` of an enrolment."""


@dataclass(frozen=True, eq=False, init=False)
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
        if (method == "raw") != (cohort is None) or (cohort is None and options):
            raise InputError("a norm needs a cohort, and a cohort needs a norm; give both, such as method='as'")
        vars(self).update(scorer=make_scorer(scorer), cohort=cohort, method=method, options=options)
        vars(self).update(calibration=calibration, length_norm=length_norm)
        if cohort is not None:  # what is made on first use is made before there are threads
            self.normalized(self.enroll(cohort.vectors[0]), self.test(cohort.vectors[-1]))

    def enroll(self, vectors: npt.ArrayLike) -> Enrolled:
        """Return what is kept of an enrolment: of one vector, or of the mean of several (a row each)."""
        x = np.atleast_2d(np.asarray(vectors))
        if len(x) > 1:
            takes = Embeddings(range(len(x)), x)
            x = average_embeddings(takes, {"enrolment": takes.ids.tolist()}, self.length_norm).vectors
        return Enrolled(*self._prepared(x, self._norm[0]))

    def test(self, vector: npt.ArrayLike) -> Probe:
        """Return what is kept of a test, one vector."""
        return Probe(*self._prepared(np.atleast_2d(np.asarray(vector)), self._norm[1]))

    def normalized(self, enroll: Enrolled | npt.ArrayLike, test: Probe | npt.ArrayLike) -> float:
        """Return the normalized score of a trial, before the calibration; each side is prepared, or a vector."""
        with one_blas_thread():  # once for both sides
            e = enroll if isinstance(enroll, Enrolled) else self.enroll(enroll)
            t = test if isinstance(test, Enrolled) else self.test(test)
        if isinstance(e, Probe) or not isinstance(t, Probe):
            raise InputError("the two sides are swapped; give what was enrolled first, then what is tested")
        return self._norm[2](float(e.vector @ t.vector) + e.offset + t.offset, e.numbers, t.numbers)

    def llr(self, enroll: Enrolled | npt.ArrayLike, test: Probe | npt.ArrayLike) -> float:
        """Return the log-likelihood ratio of a trial; each side is prepared, or a vector."""
        score = self.normalized(enroll, test)
        if self.calibration is not None:
            return float(self.calibration(score))
        if "model" not in self.options:
            raise InputError(f"scores of the norm {self.method!r} are no log-likelihood ratios; give a calibration")
        return score

    def _prepared(self, x: npt.NDArray[Any], numbers: Callable[[Array], Numbers]) -> tuple[Array, float, Numbers]:
        """Return the side of the score of one vector, and what the norm keeps of its cohort scores."""
        if x.dtype.kind not in "fiu" or x.ndim != 2 or len(x) != 1 or not x.size or not np.isfinite(x).all():
            raise InputError(f"one vector of finite numbers is wanted, but this is {x.dtype} of shape {x.shape}")
        if self.cohort is not None and x.shape[1] != self.cohort.dim:
            raise InputError(f"the vector has {x.shape[1]} dimensions, but the cohort has {self.cohort.dim}")
        with one_blas_thread():
            vectors, offsets = self.scorer.side(x if self.cohort is None else x.astype(self.cohort.vectors.dtype))
            offset = 0.0 if offsets is None else float(offsets[0])
            if self._members is None:
                return vectors[0], offset, ()
            members, theirs = self._members
            scores = members @ vectors[0]
            if offset or theirs is not None:
                scores = scores.astype(np.float64) + (offset if theirs is None else offset + theirs)
            return vectors[0], offset, numbers(scores)

    @cached_property
    def _members(self) -> tuple[Array, Array | None] | None:
        return None if self.cohort is None else self.scorer.side(self.cohort)

    @cached_property
    def _norm(self) -> tuple[Callable[[Array], Numbers], Callable[[Array], Numbers], Callable[..., float]]:
        """What makes the numbers of an enrolment and of a test, and what normalizes a score with them."""
        as_numbers = partial(np.asarray, dtype=np.float64)
        if self.cohort is None:
            return as_numbers, as_numbers, lambda score, enroll, test: score
        inner = ScoreMatrix.trusted(self.scorer.bilinear(self.cohort, self.cohort), self.cohort, self.cohort)
        blocks = ScoreBlocks(ScoreMatrix([[0.0]], ["enrolment"], ["test"]), cohort=inner)
        if self.method == "lgsm":
            from evenscore.model.scoring import ScoreModelNormalizer

            return as_numbers, as_numbers, ScoreModelNormalizer(self.options["model"], blocks).normalize_one
        if self.method in CLASSICAL:
            given = dict(self.options)
            how = NormOptions.resolve(given.pop("options", None), given.pop("convention", None), **given)
            others = np.asarray(blocks.nontargets().cohort.scores) if self.method in ("zt", "tz") else None  # type: ignore[union-attr]
            norm = OnlineNorm(self.method, how.for_method(self.method), others)
            if norm.options.select == "own":
                return norm.enroll, norm.test, norm.score
        inner = inner.with_scores(np.asarray(inner.scores))

        def whole_blocks(score: float, enroll: Array, test: Array) -> float:
            trial = ScoreMatrix([[score]], ["enrolment"], ["test"])
            S_e = ScoreMatrix.trusted(enroll[None], trial.enroll, inner.test)
            S_t = ScoreMatrix.trusted(test[:, None], inner.enroll, trial.test)
            table = normalize(ScoreBlocks(trial, S_e, S_t, inner), self.method, **self.options)
            return float(np.asarray(table.scores)[0, 0])

        return as_numbers, as_numbers, whole_blocks
