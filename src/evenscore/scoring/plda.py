"""Two-covariance PLDA: its log-likelihood ratio as a bilinear form, training by EM, adaptation to a new domain."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from evenscore.data.side import IdsLike
from evenscore.errors import InputError
from evenscore.parallel import one_blas_thread
from evenscore.scoring import projection as before
from evenscore.scoring.projection import Array, Projection, Scatter, VectorsLike
from evenscore.scoring.scorers import BilinearScores, Scorer, self_pairs

__all__ = ["PLDA", "UTTERANCES", "PldaFit", "adapt_plda", "fit_plda"]

UTTERANCES = "plda_utterances"  #: column of enrolments that are means of phi: over how many utterances
_START = 1e-3  # smallest ratio of between to within that EM starts from: it cannot leave a variance of zero


@dataclass(frozen=True, eq=False)
class PLDA(Scorer):
    """A scorer whose scores are natural-log likelihood ratios.

    phi = projection(embedding)                                     (P0)
    y_g ~ N(mean, between)              for speaker g               (P1)
    phi | y_g ~ N(y_g, within)          for its utterances          (P2)

    Enrolments of several utterances are posteriors of y_g, see `enroll_models`. With ``model_length``, phi - mean is
    scaled to the length sqrt(d) that the model expects of a mean over n utterances, with (between + within / n)^-1 as
    metric, as Kaldi's scoring does.

    Examples
    --------
    >>> plda = PLDA(mean=[0.0], between=[[3.0]], within=[[1.0]])
    >>> plda([[2.0]], [[1.5], [-2.0]]).round(3)
    array([[ 0.695, -2.587]])
    """

    mean: Array  #: of all speakers
    between: Array  #: covariance of the speakers
    within: Array  #: covariance of the utterances of one speaker
    projection: Projection = field(default_factory=Projection)
    model_length: bool = False

    def __post_init__(self) -> None:
        for name, ndim in (("mean", 1), ("between", 2), ("within", 2)):
            value = np.array(getattr(self, name), dtype=np.float64)
            if value.shape != (len(self.mean),) * ndim or not np.isfinite(value).all():
                raise InputError(f"{name} must be finite numbers in {len(self.mean)} dimensions; it is {value.shape}")
            if not np.allclose(value, value.T, atol=1e-8 * abs(value).max()):
                raise InputError(f"{name} must be a covariance, but is not symmetric")
            object.__setattr__(self, name, value)

    @cached_property
    def _diagonal(self) -> tuple[Array, Array]:
        return diagonalize(self.between, self.within)

    def side(self, vectors: VectorsLike) -> tuple[Array, Array]:
        """Return vectors and offsets of single utterances, whose products and sums are the ratios (P3) with n = 1."""
        z, dtype = self._coordinates(vectors)
        cross, own, _, constant = _terms(self._diagonal[1], np.ones(1))
        return (z * np.sqrt(cross)).astype(dtype), constant / 2 - z**2 @ own[0]

    def bilinear(self, enroll: VectorsLike, test: VectorsLike) -> BilinearScores:
        """Return the log-likelihood ratios of every enrolment against every test.

        In coordinates z = V'(phi - mean), where within is I and between is diag(psi), the ratio of a mean z over n
        utterances to one of z' is the sum over components of
        log(1 + psi) / 2 + log(1 + n psi) / 2 - log(1 + (n + 1) psi) / 2 + n psi / (1 + (n + 1) psi) z z'
              - n^2 psi^2 / (2 (1 + n psi) (1 + (n + 1) psi)) z^2
              - n psi^2 / (2 (1 + psi) (1 + (n + 1) psi)) z'^2,                               (P3)
        a product of (z, 1) and (z', z'^2) with weights that depend on n.
        """
        if (_counts(test) != 1).any():
            raise InputError("a mean over several utterances is on the side of the tests; PLDA enrols such means")
        if UTTERANCES not in getattr(enroll, "columns", ()):
            return super().bilinear(enroll, test)
        (z, dtype), (z_test, _) = self._coordinates(enroll), self._coordinates(test)
        cross, own, other, constant = _terms(self._diagonal[1], _counts(enroll))
        left, right = np.hstack([z * cross, -other]).astype(dtype), np.hstack([z_test, z_test**2]).astype(dtype)
        offset = constant - np.vecdot(z**2, own)
        return BilinearScores(left, right, offset, missing=self_pairs(enroll, test))

    def _coordinates(self, vectors: VectorsLike) -> tuple[Array, np.dtype[np.floating]]:
        """Return z of all embeddings, and the type of their scores."""
        (V, psi), x = self._diagonal, before.as_vectors(vectors)
        phi = x if UTTERANCES in getattr(vectors, "columns", ()) else self.projection(x.astype(np.float64))
        if phi.shape[1] != len(psi):
            raise InputError(f"PLDA was trained on {len(psi)} dimensions, but the embeddings have {phi.shape[1]}")
        with one_blas_thread():
            z = (phi - self.mean) @ V
        if self.model_length:
            lengths = np.vecdot(z, z / (psi + 1 / _counts(vectors)[:, None]))
            z *= np.sqrt(len(psi) / np.where(lengths > 0, lengths, len(psi)))[:, None]
        return z, x.dtype


def _counts(vectors: VectorsLike) -> Array:
    """Return over how many utterances each vector is a mean."""
    counts = getattr(vectors, "columns", {}).get(UTTERANCES)
    return np.ones(len(before.as_vectors(vectors))) if counts is None else np.asarray(counts, float)


def _terms(psi: Array, counts: Array) -> tuple[Array, Array, Array, Array]:
    """Return the factors of z z', -z^2 and -z'^2 in (P3), and its constant, for each number of utterances."""
    n = counts[:, None]
    both = 1 + (n + 1) * psi
    constant = np.sum(np.log1p(psi) + np.log1p(n * psi) - np.log(both), axis=1) / 2
    own, other = (n * psi) ** 2 / (2 * (1 + n * psi) * both), n * psi**2 / (2 * (1 + psi) * both)
    return n * psi / both, own, other, constant


def diagonalize(between: Array, within: Array) -> tuple[Array, Array]:
    """Return V and psi >= 0 with V' within V = I and V' between V = diag(psi)."""
    try:
        whitener = np.linalg.inv(np.linalg.cholesky(within))
    except np.linalg.LinAlgError:
        raise InputError(
            "a covariance has no variance in a direction; give more embeddings, or set shrinkage"
        ) from None
    psi, turn = np.linalg.eigh(whitener @ between @ whitener.T)
    return whitener.T @ turn, np.maximum(psi, 0.0)


@dataclass(frozen=True, eq=False)
class PldaFit:
    """A trained PLDA and how the training went."""

    model: PLDA
    log_likelihood: Array  #: of the projected vectors and of the prior that shrinks; the start comes first
    converged: bool  #: whether the last iteration gained less than the tolerance


def fit_plda(
    vectors: VectorsLike,
    speakers: IdsLike | None = None,
    *,
    center: bool = True,
    lda_dim: int | None = None,
    length_normalize: bool = True,
    shrinkage: float = 0.0,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> PldaFit:
    """Train PLDA on embeddings with speakers, by EM: maximum likelihood for any numbers of utterances per speaker.

    Parameters
    ----------
    vectors, speakers
        Training embeddings and their speakers; some speakers need several embeddings.
    center, lda_dim, length_normalize
        First the mean is subtracted, so many directions of LDA are kept, and vectors are scaled to length 1.
    shrinkage
        Share of both covariances that equal variances in all directions replace: for few speakers, many dimensions.
    tol, max_iter
        EM stops when an iteration gains less than ``tol`` nats per embedding, or after ``max_iter`` iterations.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> speakers = np.repeat(np.arange(50), 4)
    >>> vectors = 2 * rng.normal(size=(50, 3))[speakers] + rng.normal(size=(200, 3))
    >>> fit = fit_plda(vectors, speakers, length_normalize=False)
    >>> fit.converged, fit.model.within.diagonal().round(1)
    (True, array([1. , 1.2, 0.9]))
    """
    x, codes = before.training_data(vectors, speakers)
    with one_blas_thread():
        middle, matrix = x.mean(axis=0), None
        if lda_dim is not None:
            matrix = before.discriminant_map(Scatter.from_vectors(x - middle, codes), lda_dim, shrinkage)
        projection = Projection(middle if center else None, matrix, length_normalize)
        return _em(Scatter.from_vectors(projection(x), codes), projection, shrinkage, tol, max_iter)


def _em(scatter: Scatter, projection: Projection, share: float, tol: float, max_iter: int) -> PldaFit:
    """Run EM in the coordinates z = V'(phi - mean), in which within is I and between is diag(psi).

    There, component k of a speaker with n utterances of mean z has the posterior mean n psi z / (1 + n psi) and the
    variance psi / (1 + n psi) (P4). The coordinates turn a little in each iteration. Shrinking both covariances in each
    M-step is the mode of a posterior with inverse-Wishart priors, whose logarithm is added to the log-likelihood.
    """
    n, count, n_speakers = scatter.sizes[:, None], float(scatter.sizes.sum()), len(scatter.sizes)
    start = scatter.means.mean(axis=0)
    raw, spread = scatter.within / (count - n_speakers), scatter.means - start
    apparent = spread.T @ spread / (n_speakers - 1) - raw * np.mean(1 / n)  # between, unbiased
    V, psi = diagonalize(before.shrink(apparent, share), scatter.covariance(share))
    psi = np.maximum(psi, _START)
    z, rest, back = spread @ V, V.T @ scatter.within @ V, np.linalg.inv(V)
    prior_between, prior_within = ((back.T * psi) @ back).trace() / len(psi), (back.T @ back).trace() / len(psi)
    trace: list[float] = []
    while True:
        spread, log_det = 1 + n * psi, -2 * np.linalg.slogdet(V)[1]
        value = count * (len(psi) * np.log(2 * np.pi) + log_det) + rest.trace()
        value += np.sum(np.log(spread) + n * z**2 / spread)
        if share:
            precision, weight = np.vecdot(V.T, V.T), share / (1 - share)
            value += weight * count * (log_det + prior_within * precision.sum())
            value += weight * n_speakers * (log_det + np.sum(np.log(psi) + prior_between * precision / psi))
        trace.append(-0.5 * float(value))
        converged = len(trace) > 1 and trace[-1] - trace[-2] <= tol * count
        if converged or len(trace) > max_iter:
            break
        y, variance = n * psi * z / spread, psi / spread  # (P4)
        shift = y.mean(axis=0)
        inner, outer = y - shift, np.sqrt(n) * (z - y)
        between = (inner.T @ inner + np.diag(variance.sum(axis=0))) / n_speakers
        within = (rest + outer.T @ outer + np.diag((n * variance).sum(axis=0))) / count
        if share:
            equal = share * (V.T @ V)
            between, within = (1 - share) * between + prior_between * equal, (1 - share) * within + prior_within * equal
        turn, psi = diagonalize(between, within)
        V, z, rest = V @ turn, (z - shift) @ turn, turn.T @ rest @ turn
    back = np.linalg.inv(V)
    model = PLDA(start - z.mean(axis=0) @ back, (back.T * psi) @ back, back.T @ back, projection)
    return PldaFit(model, np.array(trace), converged)


def adapt_plda(
    plda: PLDA, vectors: VectorsLike, *, within: float = 0.3, between: float = 0.7, mean_shift: float = 1.0
) -> PLDA:
    """Adapt PLDA to a domain by embeddings of it that need no speakers, as Kaldi's ``ivector-adapt-plda`` does.

    The mean, and the centre of the projection if it has one, become those of the new embeddings. ``within`` and
    ``between`` are the shares of both covariances in what the new one, with ``mean_shift`` times the squared shift of
    the mean, has in excess of their sum; they never shrink.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> plda = PLDA(mean=[0.0, 0.0], between=np.eye(2), within=np.eye(2))
    >>> adapted = adapt_plda(plda, rng.normal(size=(2000, 2)) * [2.0, 1.0])
    >>> adapted.within.diagonal().round(1), adapted.between.diagonal().round(1)
    (array([1.6, 1. ]), array([2.4, 1. ]))
    """
    x, projection = before.as_vectors(vectors).astype(np.float64), plda.projection
    if min(within, between, mean_shift) < 0 or len(x) < 2:
        raise InputError("adaptation needs several embeddings, and shares that are 0 or more")
    if projection.center is not None and projection.center.any():
        projection = replace(projection, center=x.mean(axis=0))
    phi = projection(x)
    mean = phi.mean(axis=0)
    shift, expected = mean - plda.mean, plda.between + plda.within
    total = np.cov(phi.T, bias=True).reshape(expected.shape) + mean_shift * np.outer(shift, shift)
    R, s = diagonalize(total, expected + 1e-9 * expected.trace() / len(mean) * np.eye(len(mean)))
    back = np.linalg.inv(R)
    excess = (back.T * np.maximum(s - 1, 0.0)) @ back
    B, W = plda.between + between * excess, plda.within + within * excess
    return replace(plda, mean=mean, between=B, within=W, projection=projection)
