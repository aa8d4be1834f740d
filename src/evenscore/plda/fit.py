"""Training PLDA: moments, or EM, exact for any numbers of utterances per speaker; shrunk where speakers are few."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenscore.errors import InputError
from evenscore.plda.model import PLDA, diagonalize
from evenscore.plda.projection import (
    Projection,
    SpeakerScatter,
    check_full_rank,
    fit_projection,
    scatter_by_speaker,
    speaker_codes,
)
from evenscore.plda.shrinkage import Chosen, choose_shrinkage, share_up_to, shrunk
from evenscore.tables import Embeddings
from evenscore.tables.arrays import frozen
from evenscore.threads import one_thread_per_product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PLDAFit", "fit_plda"]

Array = np.ndarray
_MOST = 0.999  # shrinkage: the prior has no weight for 1
_ROUNDING = 1e-10  # of the smallest variance
_NOTHING = 1e-9  # ratio of between to within where speakers do not differ
_START = 1e-3  # smallest ratio of between to within that EM starts from: it cannot leave a variance of zero


@dataclass(frozen=True, kw_only=True, eq=False)
class PLDAFit:
    """A trained PLDA and how the training went.

    Examples
    --------
    >>> data = Embeddings(range(6), [[1.0], [1.2], [-0.5], [-0.8], [0.1], [0.3]], ["a", "a", "b", "b", "c", "c"])
    >>> fit_plda(data, length_normalize=False, method="moments")
    PLDAFit(dimension 1, 0 iterations, converged)
    """

    model: PLDA
    log_likelihood: Float[Array, " n"]  #: of the projected vectors, with the prior that shrinks; the start comes first
    converged: bool  #: whether an iteration gained less than the tolerance
    n_iter: int  #: number of EM iterations
    shrinkage: float = 0.0  #: share of the covariances that equal variances replaced
    inflation: float = 1.0  #: what the covariances were multiplied with in the end

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return f"PLDAFit(dimension {len(self.model.mean)}, {self.n_iter} iterations, {end})"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Covariances:
    """The parameters of (P1) and (P2)."""

    mean: Float[Array, " d"]
    between: Float[Array, "d d"]
    within: Float[Array, "d d"]


def fit_plda(
    embeddings: Embeddings,
    *,
    center: bool = True,
    lda_dim: int | None = None,
    whiten: bool = False,
    length_normalize: bool = True,
    method: Literal["em", "moments"] = "em",
    shrinkage: float | Literal["auto"] = "auto",
    inflation: float | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
    progress: Callable[[str, float], None] | None = None,
) -> PLDAFit:
    """Train PLDA on embeddings with known speakers.

    Parameters
    ----------
    embeddings
        Training embeddings; every one needs its speaker, and some speakers more than one embedding.
    center
        Whether the mean of the training embeddings is subtracted first.
    lda_dim
        Keep this many directions in which speakers differ most, scaled to a within-speaker covariance of I.
    whiten
        Scale all directions to a within-speaker covariance of I; `lda_dim` includes it.
    length_normalize
        Whether vectors are scaled to length 1 after that.
    method
        ``"em"`` is maximum likelihood, exact for unequal numbers of embeddings per speaker; ``"moments"`` is its
        starting point, in closed form.
    shrinkage
        Share of the covariances, from 0 to 0.999, that equal variances in all directions replace. ``"auto"`` takes
        the share that tells left-out training speakers apart best; 0 is maximum likelihood.
    inflation
        What the covariances are multiplied with in the end; above 1, ratios are less sure. None is 1, or with
        ``"auto"`` what gives the left-out speakers the least Cllr.
    tol
        EM stops when an iteration gains less than this, in nats per embedding.
    max_iter
        Most EM iterations.
    progress
        Called with a stage name and the fraction done.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(50), 4)
    >>> vectors = 2 * rng.normal(size=(50, 3))[speakers] + rng.normal(size=(200, 3))
    >>> fit = fit_plda(Embeddings(range(200), vectors, speakers), length_normalize=False, shrinkage=0)
    >>> fit.converged, fit.model.within.diagonal().round(1)
    (True, array([1. , 1.2, 0.9]))
    """
    _refuse_unusable(method, inflation, tol, max_iter)
    speaker_codes(embeddings)
    steps: dict[str, Any] = {
        "center": center,
        "lda_dim": lda_dim,
        "whiten": whiten,
        "length_normalize": length_normalize,
    }
    with one_thread_per_product():
        if shrinkage == "auto":
            found = choose_shrinkage(
                embeddings, lambda part, share: _by_moments(part, steps, share), inflate=True, progress=progress
            )
        else:
            found = Chosen(share_up_to(shrinkage, _MOST))
        share = found.shrinkage
        projection, scatter = _prepared(embeddings, steps, share)
        start = _moments(scatter, share, smallest_ratio=_START if method == "em" else _NOTHING)
        parameters, trace, converged = _em(start, scatter, share, tol, max_iter if method == "em" else 0, progress)
    by = found.inflation if inflation is None else inflation
    model = PLDA(mean=parameters.mean, between=parameters.between, within=parameters.within, projection=projection)
    return PLDAFit(
        model=model if by == 1 else model.inflated(by),
        log_likelihood=frozen(np.array(trace)),
        converged=converged,
        n_iter=len(trace) - 1,
        shrinkage=share,
        inflation=by,
    )


def _refuse_unusable(method: str, inflation: float | None, tol: float, max_iter: int) -> None:
    if method not in ("em", "moments"):
        raise InputError(f"method is {method!r}, but must be 'em' or 'moments'")
    if not tol >= 0 or max_iter < 1:
        raise InputError(f"tol is {tol} and max_iter is {max_iter}, but they must be at least 0 and 1")
    if inflation is not None and not 0 < inflation < np.inf:
        raise InputError(f"inflation is {inflation!r}, but must be above 0")


def _prepared(embeddings: Embeddings, steps: Mapping[str, Any], share: float) -> tuple[Projection, SpeakerScatter]:
    codes = speaker_codes(embeddings)
    projection = fit_projection(embeddings, codes, **steps, shrinkage=share)
    return projection, scatter_by_speaker(projection.apply_all(embeddings), codes)


def _by_moments(embeddings: Embeddings, steps: Mapping[str, Any], share: float) -> PLDA | None:
    """Return the model in closed form; None if the data are too few for so little shrinkage."""
    most = len(set(embeddings.speakers)) - 1  # type: ignore[arg-type]
    if steps["lda_dim"] is not None:
        steps = {**steps, "lda_dim": min(steps["lda_dim"], most)}
    try:
        projection, scatter = _prepared(embeddings, steps, share)
        found = _moments(scatter, share, smallest_ratio=_NOTHING)
    except InputError:
        return None
    return PLDA(mean=found.mean, between=found.between, within=found.within, projection=projection)


def _moments(scatter: SpeakerScatter, share: float, smallest_ratio: float) -> _Covariances:
    """Return unbiased covariances, shrunk; between is at least this small a share of within in every direction."""
    raw = scatter.within / (scatter.count - scatter.n_speakers)
    within = shrunk(raw, share)
    if not share:
        check_full_rank(within, scatter)
    mean = scatter.means.mean(axis=0)
    spread = scatter.means - mean
    apparent = spread.T @ spread / (scatter.n_speakers - 1) - raw * np.mean(1 / scatter.sizes)
    V, psi = diagonalize(shrunk(apparent, share), within)
    back = np.linalg.inv(V)
    return _Covariances(mean=mean, between=(back.T * np.maximum(psi, smallest_ratio)) @ back, within=within)


def _em(
    start: _Covariances,
    scatter: SpeakerScatter,
    share: float,
    tol: float,
    max_iter: int,
    progress: Callable[[str, float], None] | None,
) -> tuple[_Covariances, list[float], bool]:
    """Return the parameters in the end, the log-likelihood at the start and after each iteration, and convergence.

    In coordinates z = V'(phi - mean), where within is I and between diag(psi), all speakers share the axes of their
    posteriors: component k of a speaker with n utterances of mean z has the posterior mean n psi z / (1 + n psi) and
    variance psi / (1 + n psi).                                                               (P4)

    All sums stay in these coordinates, which turn a little in each iteration. Shrinking both covariances in each M-step
    is the mode of a posterior with inverse-Wishart priors, whose logarithm counts to the log-likelihood.
    """
    V, psi = diagonalize(start.between, start.within)
    frame = _Frame(V, psi, (scatter.means - start.mean) @ V, V.T @ scatter.within @ V)
    prior = _Prior.of(start, scatter, share)
    trace = [frame.log_likelihood(scatter, prior)]
    while len(trace) <= max_iter:
        frame = frame.turned(*frame.m_step(scatter, prior))
        trace.append(frame.log_likelihood(scatter, prior))
        if progress is not None:
            progress("plda", (len(trace) - 1) / max_iter)
        if trace[-1] - trace[-2] <= tol * scatter.count:
            break
    converged = not max_iter or trace[-1] - trace[-2] <= tol * scatter.count
    if len(trace) == 1:
        return start, trace, converged
    back = np.linalg.inv(frame.V)
    mean = scatter.means.mean(axis=0) - frame.z.mean(axis=0) @ back
    return _Covariances(mean=mean, between=(back.T * frame.psi) @ back, within=back.T @ back), trace, converged


@dataclass(frozen=True, eq=False)
class _Prior:
    """What shrinks: imaginary speakers and utterances, with equal variances in all directions."""

    share: float
    between: float  #: variance in each direction
    within: float
    speakers: float  #: how many imaginary ones
    utterances: float

    @classmethod
    def of(cls, start: _Covariances, scatter: SpeakerScatter, share: float) -> _Prior:
        weight = share / (1 - share)
        between, within = (float(np.trace(each)) / len(each) for each in (start.between, start.within))
        return cls(share, between, within, weight * scatter.n_speakers, weight * scatter.count)


@dataclass(frozen=True, eq=False)
class _Frame:
    """The sums in coordinates where within is I and between is diag(psi)."""

    V: Float[Array, "d d"]
    psi: Float[Array, " d"]
    z: Float[Array, "g d"]  #: means of the speakers
    within: Float[Array, "d d"]  #: scatter within them

    def log_likelihood(self, scatter: SpeakerScatter, prior: _Prior) -> float:
        n, log_det = scatter.sizes[:, None], -2 * np.linalg.slogdet(self.V)[1]
        spread = 1 + n * self.psi
        value = (
            scatter.count * (len(self.psi) * np.log(2 * np.pi) + log_det)
            + np.trace(self.within)
            + np.sum(np.log(spread) + n * self.z**2 / spread)
        )
        if prior.share:
            precisions = np.einsum("ij,ij->j", self.V, self.V)
            value += prior.utterances * (log_det + prior.within * precisions.sum())
            value += prior.speakers * (log_det + np.sum(np.log(self.psi) + prior.between * precisions / self.psi))
        return float(-0.5 * value)

    def m_step(
        self, scatter: SpeakerScatter, prior: _Prior
    ) -> tuple[Float[Array, " d"], Float[Array, "d d"], Float[Array, "d d"]]:
        """Return what the mean moves by, between and within, all in these coordinates."""
        n = scatter.sizes[:, None]
        spread = 1 + n * self.psi
        y = n * self.psi * self.z / spread  # (P4)
        variance = self.psi / spread
        mean = y.mean(axis=0)
        inner, rest = y - mean, np.sqrt(n) * (self.z - y)
        between = (inner.T @ inner + np.diag(variance.sum(axis=0))) / scatter.n_speakers
        within = (self.within + rest.T @ rest + np.diag((n * variance).sum(axis=0))) / scatter.count
        if prior.share:
            equal = prior.share * (self.V.T @ self.V)
            between = (1 - prior.share) * between + prior.between * equal
            within = (1 - prior.share) * within + prior.within * equal
        return mean, between, within

    def turned(self, mean: Float[Array, " d"], between: Float[Array, "d d"], within: Float[Array, "d d"]) -> _Frame:
        """Return the frame of the next parameters, which are given in this one.

        Where all speakers have the same number of utterances, and nothing is shrunk, its axes stay as they are.
        """
        if _is_diagonal(between) and _is_diagonal(within):
            scale, variances = 1 / np.sqrt(within.diagonal()), between.diagonal()
            z, rest = (self.z - mean) * scale, self.within * np.outer(scale, scale)
            return _Frame(self.V * scale, variances * scale**2, z, rest)
        turn, psi = diagonalize(between, within)
        return _Frame(self.V @ turn, psi, (self.z - mean) @ turn, turn.T @ self.within @ turn)


def _is_diagonal(matrix: Float[Array, "d d"]) -> bool:
    """Tell whether nothing but rounding stands beside the diagonal of a covariance."""
    sizes, diagonal = np.abs(matrix), matrix.diagonal()
    return bool(sizes.sum() - diagonal.sum() <= _ROUNDING * diagonal.min() * len(diagonal))
