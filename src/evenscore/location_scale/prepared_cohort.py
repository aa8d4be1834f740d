"""A cohort as the location-scale model sees it: what is inferred from its scores alone, once for all trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.location_scale.em import MatrixPosterior, precision_of
from evenscore.location_scale.fit import settle
from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.model.cohort import Cohort
from evenscore.model.dense_scores import DenseScores
from evenscore.model.patterns import components, exceptions_of_key
from evenscore.tables import NONTARGET, UNKNOWN

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["CohortSide", "PreparedCohort", "prepare_cohort"]

Array = np.ndarray
Index = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class CohortSide:
    """One side of the cohort, as the cohort scores of a trial's other side meet it."""

    speaker: Index  #: number of each member's speaker, -1 if it is not known
    center: Float[Array, " n"]  #: expected score against a trial without effects
    spread: Float[Array, " n"]  #: variance of that expectation
    weight: Float[Array, " n"]  #: precision of a score against a trial of average scale
    factor: Float[Array, " n"]  #: factor of the precision in the cohort's own scores
    sums: Float[Array, "g 2 n"]  #: sums of precisions over the other side, by its speakers; at the end over all
    gamma: Float[Array, "g 2 n"]  #: sums of weighted residuals likewise
    prior: Float[Array, "n d"]  #: prior means of the hidden variables, which the log-scales give
    pointers: Index  #: where the components begin among `members`
    members: Index


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedCohort:
    """The cohort's own posterior, in the form that the kernels work on."""

    n_speakers: int
    background: bool  #: whether observed non-targets are the rule
    precision: Float[Array, "2 n m"]
    rows: CohortSide
    columns: CohortSide


def prepare_cohort(model: LocationScaleModel, cohort: Cohort) -> PreparedCohort:
    """Infer the hidden variables of the cohort's members from the scores between them."""
    key = cohort.key
    scores = np.where(key == UNKNOWN, 0.0, cohort.scores).astype(np.float64)
    state = settle(model, DenseScores(scores=scores, present=key != UNKNOWN, key=key))
    P = precision_of(model, state)
    weighted = P * (scores - model.location.mu[:, None, None])
    rows = cohort.numbers_of(cohort.enroll_speakers, key.shape[0])
    columns = cohort.numbers_of(cohort.test_speakers, key.shape[1])
    pattern = exceptions_of_key(key)
    batches = components(pattern)
    row_parts = [part for batch in batches for part in batch.rows]
    column_parts = [part for batch in batches for part in batch.columns]
    n_speakers = len(cohort.speakers)
    return PreparedCohort(
        n_speakers=n_speakers,
        background=pattern.background,
        precision=P,
        rows=_side(model, state, 0, rows, row_parts, *(_by_speaker(v, columns, n_speakers) for v in (P, weighted))),
        columns=_side(
            model,
            state,
            1,
            columns,
            column_parts,
            *(_by_speaker(v.transpose(0, 2, 1), rows, n_speakers) for v in (P, weighted)),
        ),
    )


def _side(
    model: LocationScaleModel,
    state: MatrixPosterior,
    side: int,
    speaker: Index,
    parts: list[Index],
    sums: Float[Array, "g 2 n"],
    gamma: Float[Array, "g 2 n"],
) -> CohortSide:
    location, post = model.location, state.post
    assert post is not None  # noqa: S101
    sigma2 = location.sigma2[NONTARGET]
    if side == 0:
        effect, mean, covariance, scales, loading = location.alpha, post.x, post.x_covariance, state.rows, model.c
    else:
        effect, mean, covariance, scales, loading = location.beta, post.y, post.y_covariance, state.columns, model.d
    effect = effect[NONTARGET]
    return CohortSide(
        speaker=speaker,
        center=location.mu[NONTARGET] + mean @ effect,
        spread=np.einsum("ide,d,e->i", covariance, effect, effect),
        weight=scales.inverse_variance(loading[NONTARGET]) / sigma2,
        factor=scales.precision(loading)[NONTARGET] / (sigma2 if side == 0 else 1.0),
        sums=sums,
        gamma=gamma,
        prior=np.outer(scales.mean, model.f if side == 0 else model.g),
        pointers=np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.intp),
        members=np.concatenate([np.empty(0, np.intp), *parts]).astype(np.intp),
    )


def _by_speaker(values: Float[Array, "2 n m"], speakers: Index, n_speakers: int) -> Float[Array, "g 2 n"]:
    """Sum over the other side: the members of each speaker, and at the end all members."""
    known = np.flatnonzero(speakers >= 0)
    indicator = np.zeros((len(speakers), n_speakers + 1))
    indicator[known, speakers[known]] = 1.0
    indicator[:, -1] = 1.0
    return np.ascontiguousarray((values @ indicator).transpose(2, 0, 1))
