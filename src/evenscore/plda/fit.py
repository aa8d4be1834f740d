"""Training PLDA: moments, or maximum likelihood by EM, exact for any numbers of utterances per speaker."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.plda.model import PLDA, diagonalize
from evenscore.plda.projection import SpeakerScatter, check_full_rank, fit_projection, scatter_by_speaker
from evenscore.tables import Embeddings
from evenscore.tables.arrays import frozen

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PLDAFit", "fit_plda"]

Array = np.ndarray
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
    log_likelihood: Float[Array, " n"]  #: of the projected vectors: at the moments, then after each iteration
    converged: bool  #: whether an iteration gained less than the tolerance
    n_iter: int  #: number of EM iterations

    def __repr__(self) -> str:
        end = "converged" if self.converged else "not converged"
        return f"PLDAFit(dimension {len(self.model.mean)}, {self.n_iter} iterations, {end})"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Covariances:
    """The parameters of (P1) and (P2) while they are being learned."""

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
    >>> fit = fit_plda(Embeddings(range(200), vectors, speakers), length_normalize=False)
    >>> fit.converged, fit.model.within.diagonal().round(1)
    (True, array([1. , 1.2, 0.9]))
    """
    if method not in ("em", "moments"):
        raise InputError(f"method is {method!r}, but must be 'em' or 'moments'")
    if not tol >= 0 or max_iter < 1:
        raise InputError(f"tol is {tol} and max_iter is {max_iter}, but they must be at least 0 and 1")
    codes = _speaker_codes(embeddings)
    projection = fit_projection(
        embeddings, codes, center=center, lda_dim=lda_dim, whiten=whiten, length_normalize=length_normalize
    )
    scatter = scatter_by_speaker(projection.apply_all(embeddings), codes)
    parameters = _moments(scatter, smallest_ratio=_START if method == "em" else 0.0)
    trace: list[float] = []
    converged = method == "moments"
    for number in range(max_iter if method == "em" else 0):
        proposal, value = _em_step(parameters, scatter)
        trace.append(value)
        if progress is not None:
            progress("plda", (number + 1) / max_iter)
        parameters = proposal
        if len(trace) > 1 and trace[-1] - trace[-2] <= tol * scatter.count:
            converged = True
            break
    n_iter = len(trace)
    trace.append(_em_step(parameters, scatter)[1])
    model = PLDA(mean=parameters.mean, between=parameters.between, within=parameters.within, projection=projection)
    return PLDAFit(model=model, log_likelihood=frozen(np.array(trace)), converged=converged, n_iter=n_iter)


def _speaker_codes(embeddings: Embeddings) -> npt.NDArray[np.intp]:
    """Return the numbers of the speakers, in order of appearance."""
    if embeddings.speakers is None:
        raise InputError("the embeddings have no speakers; give them with Embeddings.with_speakers")
    names: dict[str | None, int] = {}
    codes = np.fromiter((names.setdefault(name, len(names)) for name in embeddings.speakers), np.intp, len(embeddings))
    if None in names:
        name = embeddings.ids[int(np.argmax(codes == names[None]))]
        raise InputError(f"embedding {name!r} has no speaker; give its speaker or drop it")
    if len(names) < 2:
        raise InputError(f"PLDA needs embeddings of at least 2 speakers, but there are {len(names)}")
    if len(names) == len(embeddings):
        raise InputError("every speaker has one embedding only, but PLDA needs several of some speakers")
    return codes


def _moments(scatter: SpeakerScatter, smallest_ratio: float) -> _Covariances:
    """Return unbiased covariances; between is at least this small a share of within in every direction."""
    within = scatter.within / (scatter.count - scatter.n_speakers)
    check_full_rank(within, scatter)
    mean = scatter.means.mean(axis=0)
    spread = scatter.means - mean
    apparent = spread.T @ spread / (scatter.n_speakers - 1)
    V, ratio = diagonalize(apparent, within)
    psi = np.maximum(ratio - np.mean(1 / scatter.sizes), smallest_ratio)
    back = np.linalg.inv(V)
    return _Covariances(mean=mean, between=(back.T * psi) @ back, within=within)


def _em_step(parameters: _Covariances, scatter: SpeakerScatter) -> tuple[_Covariances, float]:
    """Return the next parameters, and the log-likelihood of the present ones.

    In coordinates z = V'(phi - mean), where within is I and between diag(psi), all speakers share the axes of their
    posteriors: component k of a speaker with n utterances of mean z has the posterior mean n psi z / (1 + n psi) and
    variance psi / (1 + n psi).                                                               (P4)
    """
    V, psi = diagonalize(parameters.between, parameters.within)
    n = scatter.sizes[:, None]
    z = (scatter.means - parameters.mean) @ V
    within = V.T @ scatter.within @ V
    spread = 1 + n * psi
    y = n * psi * z / spread  # (P4)
    variance = psi / spread
    value = -0.5 * (
        scatter.count * (len(psi) * np.log(2 * np.pi) - 2 * np.linalg.slogdet(V)[1])
        + np.trace(within)
        + np.sum(np.log(spread) + n * z**2 / spread)
    )
    mean = y.mean(axis=0)
    inner = y - mean
    between = (inner.T @ inner + np.diag(variance.sum(axis=0))) / scatter.n_speakers
    rest = np.sqrt(n) * (z - y)
    within = (within + rest.T @ rest + np.diag((n * variance).sum(axis=0))) / scatter.count
    back = np.linalg.inv(V)
    proposal = _Covariances(
        mean=parameters.mean + mean @ back, between=back.T @ between @ back, within=back.T @ within @ back
    )
    return proposal, float(value)
