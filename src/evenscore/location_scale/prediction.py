"""What the cohort says about a trial: its log-scales, then its shifts, then the density of its score in each class.

Equation numbers as in docs/location-scale.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenscore.location_scale.parameters import LocationScaleModel
from evenscore.location_scale.prepared_cohort import CohortSide, PreparedCohort
from evenscore.location_scale.scales import ScalePosterior, update_scales
from evenscore.model.missing_evidence import missing_patterns
from evenscore.tables import NONTARGET, TARGET

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["Predicted", "TrialSide", "predict_trials", "predictive_llr"]

Array = np.ndarray
Index = npt.NDArray[np.intp]
_STEP = 0.1  # of the logarithm of a precision's factor: the shift of a trial depends on it only through its shrinkage
_ROUNDS = 50  # of inferring a trial's shift and log-scale in turn
_NODES = 24  # of the quadrature over the log-scale
_LEAST_SQUARE = np.exp(-10.0)  # mean square of a member's residuals at least: cohort scores that are all alike ...
# ... would make it infinitely precise, so that its spread is not taken to be below e^-5 of the usual one
_CHUNK = 1 << 17  # trials whose densities are worked on at once


@dataclass(frozen=True, kw_only=True, eq=False)
class TrialSide:
    """One side of the trials: its cohort scores (None: no cohort there), NaN where missing, and its speakers."""

    scores: Float[Array, "k n"] | None
    speaker: Index  #: number of the cohort speaker who is the speaker of each member, or -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Predicted:
    """Predicted score of each trial in each class: mean, its variance, and the log-variance around it."""

    mean: Float[Array, "t 2"]
    variance: Float[Array, "t 2"]  #: of the mean
    log_scale: Float[Array, "t 2"]  #: expected log of the variance of a score around its mean
    log_scale_variance: Float[Array, "t 2"]
    slope: Float[Array, "t 2"]  #: by how much the mean moves with the log of the variance


@dataclass(frozen=True, kw_only=True, eq=False)
class _SideScales:
    """Log-scales of one side of the trials; one for each member and other speaker who is left out."""

    posterior: ScalePosterior
    which: Index  #: of each trial
    bin: Index  #: of each trial: rounded logarithm of the factor of its precision
    pattern: Index  #: of each member: which cohort scores are missing
    mask: npt.NDArray[np.bool_]  #: pattern x cohort member: whether there is a score

    @property
    def of_trials(self) -> tuple[Float[Array, "t 1"], Float[Array, "t 1"]]:
        """Means and variances of the log-scale of each trial."""
        return self.posterior.mean[self.which, None], self.posterior.variance[self.which, None]


def predict_trials(
    model: LocationScaleModel, cohort: PreparedCohort, enroll: TrialSide, test: TrialSide, i: Index, j: Index
) -> Predicted:
    """Predict the scores of trials (i, j) from their cohort scores, their own speakers left out of the cohort."""
    first, second = enroll.speaker[i], test.speaker[j]
    location = model.location
    e = _side_scales(cohort.columns, enroll, i, second, location.alpha[NONTARGET], model.f, model.c[NONTARGET])
    t = _side_scales(cohort.rows, test, j, first, location.beta[NONTARGET], model.g, model.d[NONTARGET])
    mean, variance, by_u, by_v = _locations(model, cohort, enroll, test, i, j, e, t)
    (u, u_var), (v, v_var) = e.of_trials, t.of_trials
    spread = u_var * model.c**2 + v_var * model.d**2
    together = u_var * model.c * by_u + v_var * model.d * by_v  # covariance of the mean and the log of the variance
    slope = np.divide(together, spread, out=np.zeros_like(spread), where=spread > 0)
    return Predicted(
        mean=mean,
        variance=variance + np.maximum(u_var * by_u**2 + v_var * by_v**2 - slope * together, 0.0),
        log_scale=np.log(location.sigma2) + u * model.c + v * model.d,
        log_scale_variance=spread,
        slope=slope,
    )


def _side_scales(
    cohort: CohortSide,
    side: TrialSide,
    index: Index,
    other: Index,
    effect: Float[Array, " d"],
    f: Float[Array, " d"],
    loading: float,
) -> _SideScales:
    """Infer the log-scale of each member of one side from its cohort scores, own speakers left out, (P1)."""
    size, width = len(side.speaker), len(cohort.weight)
    if side.scores is None:
        prior = ScalePosterior.prior(size)
        empty = np.zeros((1, width), dtype=bool)
        zero = np.zeros(len(index), dtype=np.intp)
        return _SideScales(posterior=prior, which=index, bin=zero, pattern=np.zeros(size, np.intp), mask=empty)
    absent, pattern = missing_patterns(np.isnan(side.scores))
    n_speakers = max(int(max(cohort.speaker.max(initial=-1), other.max(initial=-1), side.speaker.max(initial=-1))), 0)
    codes, which = np.unique(index * (n_speakers + 2) + other + 1, return_inverse=True)
    member, gone = np.divmod(codes, n_speakers + 2)
    sums = _evidence(cohort, side, n_speakers + 1)
    own, gone = side.speaker[member], gone - 1
    n, g, r, rr = sums[:, member, -1]
    for left_out in (own, np.where(gone == own, -1, gone)):
        real = left_out >= 0
        at = member[real], left_out[real]
        n[real], g[real], r[real], rr[real] = (
            value[real] - part for value, part in zip((n, g, r, rr), sums[:, at[0], at[1]], strict=True)
        )
    posterior = _infer(np.rint(n), g, r, rr, float(effect @ effect), float(effect @ f), loading)
    factor = -loading * posterior.mean + 0.5 * loading**2 * posterior.variance
    bins = np.rint(factor / _STEP).astype(np.intp)
    which = which.reshape(-1)
    return _SideScales(posterior=posterior, which=which, bin=bins[which], pattern=pattern, mask=~absent)


def _evidence(cohort: CohortSide, side: TrialSide, n_speakers: int) -> Float[Array, "4 k g"]:
    """Return numbers, precisions, weighted residuals and their squares by speaker of the cohort; at the end of all."""
    assert side.scores is not None  # noqa: S101
    seen = ~np.isnan(side.scores)
    residual = np.where(seen, side.scores - cohort.center, 0.0)
    indicator = np.zeros((len(cohort.weight), n_speakers + 1))
    known = np.flatnonzero(cohort.speaker >= 0)
    indicator[known, cohort.speaker[known]] = 1.0
    indicator[:, -1] = 1.0
    weighted = cohort.weight[:, None] * indicator
    return np.stack(
        [
            seen @ indicator,
            seen @ weighted,
            residual @ weighted,
            residual**2 @ weighted + seen @ (cohort.spread[:, None] * weighted),
        ]
    )


def _infer(
    n: Array, g: Array, r: Array, rr: Array, effect_variance: float, effect_slope: float, loading: float
) -> ScalePosterior:
    """Infer shift and log-scale in turn until they rest, for many members at once.

    The shift alpha_0'x~ has the prior N(effect_slope u~, effect_variance); other directions of x~ are integrated out.
    """
    scales = ScalePosterior.prior(len(n))
    if loading == 0 and effect_slope == 0:
        return scales
    both, zero = np.array([loading, 0.0]), np.zeros_like(n)
    grip = effect_slope**2 / effect_variance if effect_variance > 0 else 0.0
    for _ in range(_ROUNDS):
        before = scales.mean
        factor = scales.precision(both)[0]
        variance = effect_variance / (1 + effect_variance * factor * g)
        expected = effect_slope * before
        shift = expected + variance * factor * (r - g * expected)
        squares = np.maximum(rr - 2 * shift * r + (shift**2 + variance) * g, _LEAST_SQUARE * n)
        pull = effect_slope * shift / effect_variance if effect_variance > 0 else 0.0
        scales = update_scales(scales, both, np.stack([n, zero]), np.stack([squares, zero]), pull, grip)
        if np.abs(scales.mean - before).max(initial=0.0) < 1e-8:
            break
    unseen = n == 0  # nothing is inferred from nothing, but the factorized posterior would be surer than its prior
    return ScalePosterior(mean=np.where(unseen, 0.0, scales.mean), variance=np.where(unseen, 1.0, scales.variance))


def _locations(
    model: LocationScaleModel,
    cohort: PreparedCohort,
    enroll: TrialSide,
    test: TrialSide,
    i: Index,
    j: Index,
    e: _SideScales,
    t: _SideScales,
) -> tuple[Float[Array, "t 2"], ...]:
    """Return mean and variance of the predicted means of both classes, from the posterior of (x~, y~), (P2).

    And by how much the means move with u~ and with v~.
    """
    from evenscore.location_scale.kernels import trial_effects

    location = model.location
    sides = np.stack([enroll.speaker[i], test.speaker[j], e.pattern[i], t.pattern[j], e.bin, t.bin], axis=1)
    cells, cell_of = np.unique(sides, axis=0, return_inverse=True)
    cell_of = cell_of.reshape(-1)
    order = np.argsort(cell_of, kind="stable")
    pointers = np.concatenate([[0], np.cumsum(np.bincount(cell_of, minlength=len(cells)))]).astype(np.intp)
    factors = np.exp(_STEP * cells[:, 4:].astype(float))
    effects, information = np.empty((len(i), 2)), np.zeros((len(cells), 5))
    rows, columns = cohort.rows, cohort.columns
    mu = location.mu[NONTARGET]
    trial_effects(
        location.alpha,
        location.beta,
        cohort.background,
        cohort.precision,
        rows.factor,
        columns.factor,
        rows.sums,
        rows.gamma,
        columns.sums,
        columns.gamma,
        rows.prior,
        columns.prior,
        rows.pointers,
        rows.members,
        columns.pointers,
        columns.members,
        rows.speaker,
        columns.speaker,
        columns.weight,
        rows.weight,
        np.ascontiguousarray(cells[:, :4]),
        factors,
        pointers,
        i[order],
        j[order],
        _centered(enroll, mu, len(columns.weight)),
        _centered(test, mu, len(rows.weight)),
        e.mask,
        t.mask,
        int((np.diff(rows.pointers) + np.diff(columns.pointers)).max(initial=0)) * model.dim,
        effects,
        information,
    )
    loading, covariance = _trial_covariances(location.alpha, location.beta, information)
    gain = loading @ covariance
    towards = np.zeros((len(loading[0]), 4))  # evidence about xi and eta, and the priors that u~ and v~ give
    towards[:, :2] = _directions(location.alpha, location.beta)
    towards[: model.dim, 2], towards[model.dim :, 3] = model.f, model.g
    moves = (gain @ towards)[cell_of]
    evidence = np.empty((len(i), 4))
    evidence[order, :2] = effects
    evidence[:, 2:3], evidence[:, 3:] = e.of_trials[0], t.of_trials[0]
    mean = location.mu + np.einsum("ths,ts->th", moves, evidence)
    variance = np.einsum("chp,hp->ch", gain, loading)[cell_of]
    return mean, variance, moves[:, :, 2], moves[:, :, 3]


def _directions(alpha: Float[Array, "2 d"], beta: Float[Array, "2 d"]) -> Float[Array, "p 2"]:
    """Return how evidence about (xi, eta) points at (x~, y~)."""
    dim = alpha.shape[1]
    directions = np.zeros((2 * dim, 2))
    directions[:dim, 0], directions[dim:, 1] = alpha[NONTARGET], beta[NONTARGET]
    return directions


def _trial_covariances(
    alpha: Float[Array, "2 d"], beta: Float[Array, "2 d"], information: Float[Array, "c 5"]
) -> tuple[Float[Array, "2 p"], Float[Array, "c p p"]]:
    """Return the loadings of both classes and the covariance of (x~, y~) in each cell."""
    directions = _directions(alpha, beta)
    n_e, n_t, k11, k12, k22 = information.T
    inner = np.stack([np.stack([n_e - k11, -k12], axis=1), np.stack([-k12, n_t - k22], axis=1)], axis=2)
    precision = np.eye(len(directions)) + directions @ inner @ directions.T
    return np.concatenate([alpha, beta], axis=1), np.linalg.inv(precision)


def _centered(side: TrialSide, mu: float, width: int) -> Float[Array, "k n"]:
    if side.scores is None:
        return np.zeros((len(side.speaker), width))
    return np.ascontiguousarray(np.nan_to_num(side.scores - mu, nan=0.0))


def predictive_llr(scores: Float[Array, " t"], predicted: Predicted) -> Float[Array, " t"]:
    """Return the log-likelihood ratios: the log-scale is integrated out by Gauss-Hermite quadrature, (P3)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    log_weights = np.log(weights / weights.sum())
    out = np.empty(len(scores))
    for start in range(0, len(scores), _CHUNK):
        part = slice(start, start + _CHUNK)
        density = [_log_density(scores[part], predicted, part, h, nodes, log_weights) for h in (NONTARGET, TARGET)]
        out[part] = density[TARGET] - density[NONTARGET]
    return out


def _log_density(
    scores: Float[Array, " t"], predicted: Predicted, part: slice, h: int, nodes: Array, log_weights: Array
) -> Float[Array, " t"]:
    width = np.sqrt(predicted.log_scale_variance[part, h])
    residual = scores - predicted.mean[part, h]
    total = np.full(len(scores), -np.inf)
    for node, log_weight in zip(nodes, log_weights, strict=True):
        square = (residual - predicted.slope[part, h] * width * node) ** 2
        variance = np.exp(predicted.log_scale[part, h] + width * node) + predicted.variance[part, h]
        total = np.logaddexp(total, log_weight - 0.5 * (square / variance + np.log(variance)))
    return total
