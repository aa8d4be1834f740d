"""Trials whose own speakers are in the cohort: those speakers are left out of the trial's evidence, exactly.

Every row and column of the cohort that belongs to one of the trial's two speakers is dropped, in S_e, S_t and S_I.
Speakers of one shape are exchangeable, so the weights of the smaller cohort depend only on the shapes of the speakers
that are dropped: one factorization for each pair of shapes, and sums of scores for the rest. See docs/math.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.parameters import ScoreModel
from evenscore.model.patterns import SpeakerBlocks, SpeakerShapes
from evenscore.model.prediction import GroupWeights, group_weights

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["SpeakerSums", "TrialSums", "group_columns", "predict_without_own", "speaker_sums"]

Array = np.ndarray
Index = npt.NDArray[np.intp]


@dataclass(frozen=True, kw_only=True, eq=False)
class SpeakerSums:
    """Sums of a cohort's scores (less mu_0) by pairs of speakers, and the speakers' shapes."""

    between: Float[Array, "g g"]  #: sum of the scores of the enrolments of one speaker against the tests of another
    shapes: SpeakerShapes

    @property
    def shape_of(self) -> Index:
        """Which shape each speaker has."""
        return self.shapes.shape_of

    def by_shape(self, values: Array, axis: int) -> Array:
        """Sum an array over the speakers of each shape."""
        indicator = np.zeros((len(self.shapes), len(self.shape_of)))
        indicator[self.shape_of, np.arange(len(self.shape_of))] = 1.0
        return np.moveaxis(np.tensordot(indicator, values, axes=(1, axis)), 0, axis)


def speaker_sums(cohort: npt.NDArray[Any], blocks: SpeakerBlocks, center: float) -> SpeakerSums:
    """Sum the cohort's scores by pairs of speakers."""
    rows = group_columns(cohort, blocks.column_codes, blocks.n_speakers, center)
    return SpeakerSums(
        between=group_columns(rows.T, blocks.row_codes, blocks.n_speakers, 0.0).T,
        shapes=blocks.shapes,
    )


def group_columns(scores: npt.NDArray[Any], codes: Index, n_groups: int, center: float) -> Float[Array, "m g"]:
    """Return for each row the sums of (score - center) over the columns of each group."""
    out = np.zeros((scores.shape[0], n_groups))
    order = np.argsort(codes, kind="stable")
    present, first = np.unique(codes[order], return_index=True)
    if len(present):
        step = max(1, (1 << 22) // max(scores.shape[1], 1))
        for start in range(0, scores.shape[0], step):
            part = scores[start : start + step][:, order].astype(np.float64) - center
            out[start : start + step, present] = np.add.reduceat(part, first, axis=1)
    return out


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialSums:
    """Sums of the trials' cohort scores (less mu_0) by the cohort's speakers, None for a side without scores."""

    enroll: Float[Array, "m g"] | None
    test: Float[Array, "n g"] | None
    enroll_group: Index  #: the cohort speaker who is the speaker of each enrolment, or -1
    test_group: Index


def predict_without_own(
    model: ScoreModel, cohort: SpeakerSums, trials: TrialSums, rows: Index, columns: Index
) -> tuple[Float[Array, "t p"], Float[Array, "c p p"], Index]:
    """Return the mean of (x~, y~) for each listed trial, the distinct covariances, and which one a trial has."""
    e, t = trials.enroll_group[rows], trials.test_group[columns]
    n_speakers = len(cohort.shape_of)
    pairs, pair_of = np.unique((e + 1) * (n_speakers + 1) + t + 1, return_inverse=True)
    first, second = np.divmod(pairs, n_speakers + 1)
    first, second = first - 1, second - 1
    second = np.where(first == second, -1, second)  # a target trial drops one speaker
    shape_code = np.concatenate([cohort.shape_of, [-1]])  # -1: nobody
    patterns, pattern_of = np.unique(
        np.stack([shape_code[first], shape_code[second]], axis=1), axis=0, return_inverse=True
    )
    pattern_of = pattern_of.reshape(-1)
    means = np.empty((len(rows), 2 * model.dim))
    covariances = np.empty((len(patterns), 2 * model.dim, 2 * model.dim))
    sides = (trials.enroll is not None, trials.test is not None)
    for number, dropped in enumerate(patterns):
        weights = _weights_without(model, cohort, dropped, sides)
        covariances[number] = weights.covariance
        mine = np.flatnonzero(pattern_of == number)
        offset = np.empty((len(pairs), 2 * model.dim))
        offset[mine] = _offsets(cohort, weights, first[mine], second[mine])
        at = np.flatnonzero(pattern_of[pair_of] == number)
        means[at] = offset[pair_of[at]] + _evidence(
            cohort, weights, trials, rows[at], columns[at], first[pair_of[at]], second[pair_of[at]]
        )
    return means, covariances, pattern_of[pair_of]


def _weights_without(
    model: ScoreModel, cohort: SpeakerSums, dropped: npt.NDArray[np.intp], sides: tuple[bool, bool]
) -> GroupWeights:
    n_groups = cohort.shapes.n_groups.copy()
    for shape in dropped[dropped >= 0]:
        n_groups[shape] -= 1
    return group_weights(model, cohort.shapes.n_enroll, cohort.shapes.n_test, n_groups, sides)


def _offsets(cohort: SpeakerSums, weights: GroupWeights, first: Index, second: Index) -> Float[Array, "u p"]:
    """Return what the scores between the remaining cohort speakers say, for each pair of dropped speakers."""
    between = cohort.between
    target = np.diag(between)
    in_rows, in_columns = between.sum(axis=1) - target, between.sum(axis=0) - target
    n_shapes = len(cohort.shapes)
    phi = np.empty((len(first), n_shapes, 4))
    phi[:] = np.stack(
        [cohort.shapes.n_groups] + [cohort.by_shape(values, 0) for values in (target, in_rows, in_columns)], axis=1
    )
    to_shape = cohort.by_shape(between, 0)  # shape x speaker: sum over the shape's enrolments
    from_shape = cohort.by_shape(between, 1)  # speaker x shape
    everyone = np.arange(len(first))
    for gone, other in ((first, second), (second, first)):
        real = gone >= 0
        u, q = everyone[real], gone[real]
        s = cohort.shape_of[q]
        phi[u, s, 0] -= 1
        phi[u, s, 1] -= target[q]
        phi[u, s, 2] -= in_rows[q]
        phi[u, s, 3] -= in_columns[q]
        phi[u, :, 2] -= to_shape[:, q].T  # (S6): the other rows lose this speaker's columns
        phi[u, :, 3] -= from_shape[q]
        # ... but what its own rows, and those of the other dropped speaker, had there is gone already
        phi[u, s, 2] += target[q]
        phi[u, s, 3] += target[q]
        both = real & (other >= 0)
        u, q, r = everyone[both], gone[both], other[both]
        phi[u, cohort.shape_of[r], 2] += between[r, q]
        phi[u, cohort.shape_of[r], 3] += between[q, r]
    return np.einsum("usf,spf->up", phi, weights.group)


def _evidence(
    cohort: SpeakerSums,
    weights: GroupWeights,
    trials: TrialSums,
    rows: Index,
    columns: Index,
    first: Index,
    second: Index,
) -> Float[Array, "t p"]:
    """Return what the trials' own cohort scores say, those against the dropped speakers left out."""
    total = np.zeros((len(rows), weights.covariance.shape[0]))
    for sums, index, weight in ((trials.enroll, rows, weights.enroll), (trials.test, columns, weights.test)):
        if sums is None:
            continue
        per_speaker = weight[cohort.shape_of]
        total += (sums @ per_speaker)[index]
        for gone in (first, second):
            at = np.flatnonzero(gone >= 0)
            total[at] -= sums[index[at], gone[at]][:, None] * per_speaker[gone[at]]
    return total
