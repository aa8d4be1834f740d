"""PLDA in a new domain, whose speakers are not known: what varies more there than the model expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from evenscore.errors import InputError
from evenscore.plda.model import PLDA, diagonalize
from evenscore.tables import Embeddings

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["adapt_plda"]

Array = np.ndarray
_SCALES = {"kaldi": (0.3, 0.7), "coral+": (0.8, 0.8)}  # of within and between, where none are given
_RIDGE = 1e-9  # of the mean variance: for covariances that leave out some directions


def adapt_plda(
    plda: PLDA,
    embeddings: Embeddings,
    *,
    method: Literal["kaldi", "coral+"] = "kaldi",
    within: float | None = None,
    between: float | None = None,
    mean_shift: float = 1.0,
    inflation: float = 1.0,
) -> PLDA:
    """Adapt PLDA to a domain by embeddings of it that need no speakers.

    The mean becomes that of the new embeddings, and so does the centre of the projection if it has one. Covariances
    grow in directions in which the new embeddings vary more than between + within; they never shrink.

    Parameters
    ----------
    plda
        The model of the old domain.
    embeddings
        Of the new domain, of many speakers.
    method
        ``"kaldi"``, as ``ivector-adapt-plda`` does: what the total covariance has in excess is divided among within
        and between. ``"coral+"`` (Lee, Wang and Koshinaka, ICASSP 2019): each of the two is carried over by
        correlation alignment, and grows by a share of what that adds.
    within, between
        The shares: by default 0.3 and 0.7 of the excess for ``"kaldi"``, 0.8 for ``"coral+"``.
    mean_shift
        How much of the shift of the mean counts as covariance of the new domain (``"kaldi"`` only).
    inflation
        What the model's covariances were multiplied with (`PLDAFit.inflation`), which is no variance of its domain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> plda = PLDA(mean=[0.0, 0.0], between=np.eye(2), within=np.eye(2))
    >>> adapted = adapt_plda(plda, Embeddings(range(2000), rng.normal(size=(2000, 2)) * [2.0, 1.0]))
    >>> adapted.within.diagonal().round(1), adapted.between.diagonal().round(1)
    (array([1.6, 1. ]), array([2.4, 1. ]))
    """
    if method not in _SCALES:
        raise InputError(f"method is {method!r}, but must be {' or '.join(map(repr, _SCALES))}")
    defaults = _SCALES[method]
    scales = [default if given is None else given for given, default in zip((within, between), defaults, strict=True)]
    if min(*scales, mean_shift) < 0 or not inflation > 0:
        raise InputError("within, between and mean_shift must be 0 or more, and inflation above 0")
    if len(embeddings) < 2:
        raise InputError(f"there are {len(embeddings)} embeddings of the new domain; give those of many speakers")
    old = plda.inflated(1 / inflation)
    if old.projection.center.any():
        old = old.recentered(embeddings.vectors.mean(axis=0, dtype=np.float64))
    phi = old.projection.apply_all(embeddings)
    mean = phi.mean(axis=0)
    total = np.cov(phi.T, bias=True).reshape(len(mean), len(mean))
    if method == "kaldi":
        shift = mean - old.mean
        grown = _excess(total + mean_shift * np.outer(shift, shift), old.between + old.within)
        new = (old.within + scales[0] * grown, old.between + scales[1] * grown)
    else:
        aligned = _inverse_root(old.between + old.within) @ _root(total)
        covariances = zip((old.within, old.between), scales, strict=True)
        new = tuple(each + scale * _excess(aligned.T @ each @ aligned, each) for each, scale in covariances)  # type: ignore[assignment]
    adapted = PLDA(mean=mean, between=new[1], within=new[0], projection=old.projection, model_length=old.model_length)
    return adapted.inflated(inflation)


def _excess(found: Float[Array, "d d"], expected: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Return by how much a covariance is larger than expected, in the directions in which it is larger.

    With R that makes expected I and found diag(s): R^-T max(s - 1, 0) R^-1.
    """
    ridge = _RIDGE * np.trace(expected) / len(expected)
    R, s = diagonalize(found, expected + ridge * np.eye(len(expected)))
    back = np.linalg.inv(R)
    return (back.T * np.maximum(s - 1, 0.0)) @ back


def _root(covariance: Float[Array, "d d"]) -> Float[Array, "d d"]:
    variances, directions = np.linalg.eigh(covariance)
    return (directions * np.sqrt(np.maximum(variances, 0.0))) @ directions.T


def _inverse_root(covariance: Float[Array, "d d"]) -> Float[Array, "d d"]:
    variances, directions = np.linalg.eigh(covariance)
    return (directions / np.sqrt(variances)) @ directions.T
