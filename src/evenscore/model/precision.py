"""What scores add to the posterior of the hidden variables, whatever their pattern: its precision, gamma, the marginal.

The letters and the equation numbers are those of docs/math.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from evenscore.errors import InputError
from evenscore.model.parameters import ScoreModel
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "TOO_LITTLE_LEFT",
    "PrecisionTerms",
    "background",
    "background_correction",
    "diagonal_blocks",
    "evidence_of_sums",
    "marginal",
    "precision_terms",
    "refusing_singular",
]

TOO_LITTLE_LEFT = (
    "the score model leaves so little of the scores unexplained that its posterior cannot be computed; give it fewer "
    "dimensions, or train it on more scores"
)
Array = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])


def refusing_singular(function: F) -> F:
    """Let a function say in a sentence what LAPACK says of a posterior whose precision is no number any more.

    A score model may leave next to nothing of the scores unexplained. Then the prior is lost in the digits of what
    scores add to it.
    """

    @wraps(function)
    def refusing(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except np.linalg.LinAlgError:
            raise InputError(TOO_LITTLE_LEFT) from None

    return cast("F", refusing)


@dataclass(frozen=True, kw_only=True, eq=False)
class PrecisionTerms:
    """What one score of each class adds to the precision of x_i (a), of y_j (b) and between them (c)."""

    a: Float[Array, "2 d d"]
    b: Float[Array, "2 d d"]
    c: Float[Array, "2 d d"]
    alpha_precision: Float[Array, "2 d"]  #: alpha_h / sigma_h^2
    beta_precision: Float[Array, "2 d"]  #: beta_h / sigma_h^2


def precision_terms(model: ScoreModel) -> PrecisionTerms:
    """Return the terms (E1) of the posterior's precision."""
    alpha, beta = model.alpha / model.sigma2[:, None], model.beta / model.sigma2[:, None]
    return PrecisionTerms(
        a=alpha[:, :, None] * model.alpha[:, None, :],
        b=beta[:, :, None] * model.beta[:, None, :],
        c=alpha[:, :, None] * model.beta[:, None, :],
        alpha_precision=alpha,
        beta_precision=beta,
    )


def diagonal_blocks(
    terms: PrecisionTerms, row_counts: Float[Array, "2 k"], column_counts: Float[Array, "2 l"]
) -> tuple[Float[Array, "k d d"], Float[Array, "l d d"]]:
    """Return the precision of each x_i and y_j, from the numbers of scores of each class: A and B of (E2)."""
    prior = np.eye(terms.a.shape[1])
    A = prior + np.einsum("hk,hde->kde", row_counts, terms.a)
    return A, prior + np.einsum("hl,hde->lde", column_counts, terms.b)


def evidence_of_sums(model: ScoreModel, sums: ClassSums) -> tuple[Float[Array, "k d"], Float[Array, "l d"]]:
    """Return the precision-weighted means gamma of all rows and columns, (E2)."""
    mu, sigma2 = (model.mu - sums.center)[:, None], model.sigma2[:, None]
    rows, columns = (sums.rows - mu * sums.row_counts) / sigma2, (sums.columns - mu * sums.column_counts) / sigma2
    return rows.T @ model.alpha, columns.T @ model.beta


def background_correction(terms: PrecisionTerms, W: Float[Array, "p p"]) -> tuple[Float[Array, "p p"], float]:
    """Return T = (I + M W)^-1 M of Woodbury's identity (E4), and what the background adds to log|Lambda| (E5)."""
    M = background(terms)
    inner = np.eye(len(M)) + M @ W
    return np.linalg.solve(inner, M), float(np.linalg.slogdet(inner)[1])


def background(terms: PrecisionTerms) -> Float[Array, "p p"]:
    """Return M, the coupling of every row with every column as if all pairs were non-targets."""
    zero = np.zeros_like(terms.c[0])
    return np.block([[zero, terms.c[0]], [terms.c[0].T, zero]])


def marginal(
    model: ScoreModel,
    count: Float[Array, "2"],
    squares: Float[Array, "2"],
    total: Float[Array, "2"],
    explained: float,
    log_det: float,
) -> float:
    """Return the paper's log-marginal from the sums of each class, gamma' Lambda^-1 gamma and log|Lambda|, (E13)."""
    residual = squares - 2 * model.mu * total + count * model.mu**2
    alone = residual / model.sigma2 + count * np.log(2 * np.pi * model.sigma2)
    return float(-0.5 * alone.sum() + 0.5 * explained - 0.5 * log_det)
