"""Where enrolments and tests stand among the cohort: coordinates in which the scores of pairs are products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.bilinear_sums import same_utterances
from evenscore.sources.bilinear import Bilinear
from evenscore.tables.arrays import near_zero
from evenscore.tables.ids import Ids
from evenscore.threads import in_parallel, one_thread_per_product, product

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = [
    "PairSpace",
    "impostor_prediction",
    "leading",
    "made",
    "pair_space",
    "pair_space_of_vectors",
    "rounding",
    "within_speaker_part",
]

Array = np.ndarray
_SMALL = {8: 1e-7, 4: 1e-3}  # by bytes of a number: singular values below this share of the first are rounding
_PRECISE = 300  # the largest smaller side of float32 scores that are factorized in float64; 128 values are kept at most
_EXACT = 2000  # the largest smaller side whose Gram matrix is factorized exactly
_GRAM_ROWS = 128  # of a Gram matrix that are made at a time
_EXTRA, _POWERS = 20, 4  # more columns, and passes, of the randomized factorization


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSpace:
    """Coordinates of enrolments and tests that their scores against the cohort give.

    R = S_I - row means - column means + mean = U diag(g) V'                                    (P1)
    x = V'a / sqrt(g),   y = U'c / sqrt(g)                                                      (P2)

    where a and c are the enrolment's and the test's cohort scores, centred like R, so that x.y is near the score less
    what both sides have on average. If scores are bilinear in embeddings, x and y are the embeddings in a basis of the
    cohort. ``within`` and ``spread`` are the axes and variances of what differs between tests of one cohort speaker:
    differences along them say little about who speaks.

    Attributes
    ----------
    strength
        The r largest singular values g.
    enroll_map, test_map
        V / sqrt(g) and U / sqrt(g): one row for each member of the test cohort, and of the enrolment cohort.
    enroll_center, test_center
        The cohort's own means, which a centred row loses.
    within, spread
        Eigenvectors and eigenvalues of the covariance within cohort speakers, of y.
    """

    strength: Float[Array, " r"]
    enroll_map: Float[Array, "M r"]
    test_map: Float[Array, "N r"]
    enroll_center: Float[Array, " M"]
    test_center: Float[Array, " N"]
    within: Float[Array, "r r"]
    spread: Float[Array, " r"]

    def enroll(self, scores: npt.NDArray[Any]) -> Float[Array, "m r"]:
        """Return the coordinates x of enrolments, from their rows of cohort scores; missing scores say nothing."""
        return _projected(scores, self.enroll_center, self.enroll_map)

    def test(self, scores: npt.NDArray[Any]) -> Float[Array, "n r"]:
        """Return the coordinates y of tests, from their columns of cohort scores (here as rows)."""
        return _projected(scores, self.test_center, self.test_map)

    def leading(self, rank: int) -> PairSpace:
        """Return the space of the first coordinates only."""
        if rank >= len(self.strength):
            return self
        covariance = (self.within[:rank] * self.spread) @ self.within[:rank].T
        spread, within = _eigh(covariance)
        return PairSpace(
            strength=self.strength[:rank],
            enroll_map=self.enroll_map[:, :rank],
            test_map=self.test_map[:, :rank],
            enroll_center=self.enroll_center,
            test_center=self.test_center,
            within=within,
            spread=np.maximum(spread, 0.0),
        )

    def operator(self, ridge: float, within_ridge: float, weights: tuple[float, float]) -> Float[Array, "r r"]:
        """Return C, with x'C y the weighted sum of `impostor_prediction` and `within_speaker_part`."""
        kept = (self.within * _within_weights(self, within_ridge)) @ self.within.T
        return weights[0] * np.diag(_ridge_weights(self, ridge)) + weights[1] * kept


def impostor_prediction(space: PairSpace, x: Array, y: Array, ridge: float) -> Float[Array, "m n"]:
    """Return b: the score that two different speakers would have, who resemble the cohort as these two do.

    b = sum_i x_i y_i g_i^2 / (g_i^2 + k^2 g_1^2)                                               (P3)

    Examples
    --------
    >>> space = pair_space(np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 1.0], [1.0, 1.0, 0.0]]), None)
    >>> x, y = space.enroll(np.array([[0.0, 2.0, 1.0]])), space.test(np.array([[0.0, 2.0, 1.0]]))
    >>> impostor_prediction(space, x, y, 0.0).round(3)  # like the first member on both sides: its own score, centred
    array([[-1.111]])
    """
    return (x * _ridge_weights(space, ridge)) @ y.T


def within_speaker_part(space: PairSpace, x: Array, y: Array, ridge: float) -> Float[Array, "m n"]:
    """Return w: the part of the score that lies where one and the same speaker varies.

    w = x'Q diag(v / (v + l v_1)) Q'y,   Q diag(v) Q' = covariance of y within speakers           (P4)

    A score that comes from these directions is worth less; the head gives w a negative weight.
    """
    return (x @ (space.within * _within_weights(space, ridge))) @ (y @ space.within).T


def _ridge_weights(space: PairSpace, ridge: float) -> Float[Array, " r"]:
    g2 = space.strength**2
    return g2 / (g2 + ridge**2 * g2[:1]) if len(g2) else g2


def _within_weights(space: PairSpace, ridge: float) -> Float[Array, " r"]:
    largest = space.spread.max(initial=0.0)
    return space.spread / (space.spread + ridge * largest) if largest > 0 else np.zeros_like(space.spread)


def pair_space(scores: npt.NDArray[Any], test_speakers: Ids | npt.NDArray[Any] | None, rank: int = 128) -> PairSpace:
    """Factorize the scores of a cohort against itself.

    Parameters
    ----------
    scores
        S_I, N x M; NaN where one is missing, which then counts as the sum of its row and column mean. Many float32
        scores are factorized in float32: what is lost is below a thousandth of the first singular value.
    test_speakers
        Of the M tests; without them nothing is known of what varies within speakers.
    rank
        The most coordinates to keep.
    """
    if not scores.size:
        raise InputError("the cohort has no scores against itself")
    many = scores.dtype == np.float32 and min(scores.shape) > _PRECISE
    stored, (scores, level) = scores.dtype, near_zero(scores)
    R: Array = np.array(scores, dtype=np.float32 if many else np.float64, order="C")
    row, column = (R.mean(axis=axis, dtype=np.float64) for axis in (1, 0))
    mean = float(row.mean())
    seen = None if np.isfinite(mean) else ~np.isnan(R)
    if seen is not None:
        mean = float(R[seen].mean(dtype=np.float64)) if seen.any() else 0.0
        row, column = (_means(R, seen, axis, mean) for axis in (1, 0))
    R -= row[:, None].astype(R.dtype)
    R -= (column - mean).astype(R.dtype)
    if seen is not None:
        R[~seen] = 0.0
    least = max(rounding(row, column, R.dtype), _stored_rounding(row, column, stored, level))
    U, g, V = leading(R, rank, least)
    return made(U, g, V, column - mean, row - mean, test_speakers)


def made(
    U: Array, g: Array, V: Array, enroll_center: Array, test_center: Array, speakers: npt.NDArray[Any] | None
) -> PairSpace:
    """Return the space of a factorization and of what centred rows and columns lose."""
    root = np.sqrt(g)
    spread, within = np.zeros(len(g)), np.eye(len(g))
    if speakers is not None and len(g):
        spread, within = _eigh(_within_covariance(V * root, speakers))
        spread = np.maximum(spread, 0.0)
    return PairSpace(
        strength=g.astype(np.float64),
        enroll_map=(V / root).astype(np.float64),
        test_map=(U / root).astype(np.float64),
        enroll_center=enroll_center,
        test_center=test_center,
        within=within.astype(np.float64),
        spread=spread.astype(np.float64),
    )


def _within_covariance(Y: Float[Array, "M r"], speakers: npt.NDArray[Any]) -> Float[Array, "r r"]:
    codes: dict[Any, int] = {}
    names = [at if name is None else name for at, name in enumerate(np.asarray(speakers).tolist())]  # unknown: alone
    code = np.array([codes.setdefault(name, len(codes)) for name in names], dtype=np.intp)
    order = np.argsort(code, kind="stable")
    first = np.searchsorted(code[order], np.arange(len(codes)))
    means = np.add.reduceat(Y[order], first, axis=0) / np.bincount(code)[:, None]
    deviation = Y - means[code]
    return deviation.T @ deviation / max(len(Y) - len(codes), 1)


def rounding(row: Float[Array, " n"], column: Float[Array, " m"], dtype: Any) -> float:
    """Return the singular value below which there is nothing but rounding, from the means of rows and columns."""
    largest = max(np.abs(row).max(initial=0.0), np.abs(column).max(initial=0.0))
    return float(16 * np.finfo(dtype).eps * np.sqrt(len(row) * len(column)) * largest)


def _stored_rounding(row: Float[Array, " n"], column: Float[Array, " m"], dtype: Any, level: float) -> float:
    """Return the same for numbers that were rounded before: about the largest singular value of their errors."""
    largest = abs(level) + max(np.abs(row).max(initial=0.0), np.abs(column).max(initial=0.0))
    eps = np.finfo(dtype).eps if np.dtype(dtype).kind == "f" else 0.0
    return float(0.3 * eps * (np.sqrt(len(row)) + np.sqrt(len(column))) * largest)


def leading(
    R: Any, rank: int, least: float = 0.0
) -> tuple[Float[Array, "n r"], Float[Array, " r"], Float[Array, "m r"]]:
    """Return the leading singular vectors and values; of large matrices by a randomized, repeatable search.

    R is an array, or anything that can be multiplied like one and knows ``gram``, its product with its transpose.
    Values that are not above the ``least`` are left out.
    """
    if R.shape[0] > R.shape[1]:
        V, g, U = leading(R.T, rank, least)
        return U, g, V
    if R.shape[0] <= _EXACT:
        gram = _gram(R) if isinstance(R, np.ndarray) else R.gram()
        values, U = _eigh(gram)
        values, U = values[-rank:], U[:, -rank:]
    else:
        basis = np.random.default_rng(0).standard_normal((R.shape[1], min(rank + _EXTRA, R.shape[0])))
        for _ in range(_POWERS):
            basis = _orthonormal(_times(R.T, _orthonormal(_times(R, basis.astype(R.dtype))).astype(R.dtype)))
        Q = _orthonormal(_times(R, basis.astype(R.dtype))).astype(R.dtype)
        small = _times(R.T, Q)
        values, inner = _eigh(small.T @ small)
        values, U = values[-rank:], Q @ inner[:, -rank:]
    g = np.sqrt(np.maximum(values[::-1], 0.0))
    kept = np.flatnonzero(g > np.maximum(_SMALL[np.dtype(R.dtype).itemsize] * g[:1], least))
    U, g = U[:, ::-1][:, kept], g[kept]
    return U, g, _times(R.T, U) / g


def _times(R: Any, X: Float[Array, "m r"]) -> Float[Array, "n r"]:
    return product(R, X) if isinstance(R, np.ndarray) else R @ X


def _gram(R: Float[Array, "n m"]) -> Float[Array, "n n"]:
    """Return R R' below its diagonal, where `_eigh` reads it, as a product of each piece with those above it."""
    found = np.zeros((len(R), len(R)), dtype=R.dtype)
    starts = range(0, len(R), _GRAM_ROWS)

    def work(first: int, last: int) -> None:
        for start in starts[::-1][first:last]:  # the longest first
            stop = min(start + _GRAM_ROWS, len(R))
            np.matmul(R[start:stop], R[:stop].T, out=found[start:stop, :stop])

    with one_thread_per_product():
        in_parallel(work, len(starts), _GRAM_ROWS * R.shape[1])
    return found


def _eigh(A: Float[Array, "n n"]) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Return eigenvalues, the largest last, and eigenvectors of a symmetric matrix."""
    with one_thread_per_product():
        values, vectors = np.linalg.eigh(A)
    return values, vectors


def _orthonormal(A: Float[Array, "n r"]) -> Float[Array, "n k"]:
    """Return orthonormal columns that span those of A, by products alone; the second time corrects the first."""
    A = A.astype(np.float64)
    for _ in range(2):
        values, axes = _eigh(A.T @ A)
        kept = values > len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
        A = A @ (axes[:, kept] / np.sqrt(values[kept]))
    return A


def _projected(scores: npt.NDArray[Any], center: Array, basis: Float[Array, "c r"]) -> Float[Array, "m r"]:
    """Return the centred scores times the basis, in the precision of the scores, without a centred copy of them."""
    kind = np.float32 if scores.dtype == np.float32 else np.float64
    scores, _ = near_zero(scores)
    # With a column of ones beside the basis, the row sums come with the same product.
    found = product(scores.astype(kind, copy=False), np.column_stack((basis, np.ones(len(basis)))).astype(kind))
    if not np.isfinite(found[:, -1]).all():
        return product(_centred(scores, center), basis)
    means = (found[:, -1].astype(np.float64) - center.sum()) / max(len(basis), 1)
    return np.asarray(found[:, :-1] - center @ basis - np.outer(means, basis.sum(axis=0)))


def _centred(scores: npt.NDArray[Any], center: Float[Array, " c"]) -> Float[Array, "m c"]:
    values = scores.astype(np.float64)
    seen = ~np.isnan(values)
    values -= center
    if seen.all():
        return np.asarray(values - values.mean(axis=1, keepdims=True))
    count = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    values = np.where(seen, values, 0.0)
    return np.where(seen, values - values.sum(axis=1, keepdims=True) / count, 0.0)


def _means(R: Array, seen: npt.NDArray[np.bool_], axis: int, otherwise: float) -> Array:
    count = seen.sum(axis=axis)
    sums = np.where(seen, R, 0.0).sum(axis=axis, dtype=np.float64)
    return np.asarray(np.where(count > 0, sums / np.maximum(count, 1), otherwise))


_PIECE = 1 << 22  # scores that are formed at a time, for the Gram matrix of a small cohort


def pair_space_of_vectors(cohort: Bilinear, test_speakers: Ids | npt.NDArray[Any] | None, rank: int = 128) -> PairSpace:
    """Factorize the scores of a cohort of embeddings, as `pair_space` does with the matrix of them: O((N + M) d r).

    Centred rows and columns lose all offsets, so that R is a product of vectors of d + 2 numbers, less the pairs that
    are missing: those of an utterance with itself, if the same ids stand on both sides.

    Examples
    --------
    >>> from evenscore import Cosine, Embeddings
    >>> takes = Embeddings([f"c{n}" for n in range(30)], np.random.default_rng(0).normal(size=(30, 4)))
    >>> space = pair_space_of_vectors(Cosine().score(takes, takes), [f"s{n % 10}" for n in range(30)])
    >>> space.enroll_map.shape
    (30, 30)
    """
    left, right = cohort.left.astype(np.float64), cohort.right.astype(np.float64)
    rows, columns = same_utterances(cohort)
    own = np.einsum("nd,nd->n", left[rows], right[columns]) + cohort.left_offset[rows] + cohort.right_offset[columns]
    (n, m), (a, c) = cohort.shape, (cohort.left_offset, cohort.right_offset)
    row_sums = left @ right.sum(axis=0) + m * a + c.sum()
    column_sums = right @ left.sum(axis=0) + n * c + a.sum()
    total = row_sums.sum() - own.sum()
    row_counts, column_counts = np.full(n, float(m)), np.full(m, float(n))
    for sums, counts, at in ((row_sums, row_counts, rows), (column_sums, column_counts, columns)):
        sums[at] -= own
        counts[at] -= 1
    mean = float(total / max(row_counts.sum(), 1.0))
    row, column = (
        np.where(counts > 0, sums / np.maximum(counts, 1.0), mean)
        for sums, counts in ((row_sums, row_counts), (column_sums, column_counts))
    )
    p, q = a - row + mean, c - column
    R = _Centred(
        left=np.column_stack((left, p, np.ones(n))),
        right=np.column_stack((right, np.ones(m), q)),
        rows=rows,
        columns=columns,
        values=own - row[rows] - column[columns] + mean,
    )
    with one_thread_per_product():
        U, g, V = leading(R, rank, rounding(row, column, R.dtype))
    return made(U, g, V, column - mean, row - mean, test_speakers)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Centred:
    """The matrix left right', 0 at some pairs, whose values ``left_i . right_j`` are known."""

    left: Float[Array, "n d"]
    right: Float[Array, "m d"]
    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]
    values: Float[Array, " p"]

    dtype = np.dtype(np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.left), len(self.right)

    @property
    def T(self) -> _Centred:  # noqa: N802
        return _Centred(left=self.right, right=self.left, rows=self.columns, columns=self.rows, values=self.values)

    def __matmul__(self, X: Float[Array, "m r"]) -> Float[Array, "n r"]:
        found = product(self.left, self.right.T @ X)
        found[self.rows] -= self.values[:, None] * X[self.columns]
        return found

    def gram(self) -> Float[Array, "n n"]:
        """Return R R', from some columns of R at a time."""
        n, m = self.shape
        total = np.zeros((n, n))
        step = max(1, _PIECE // max(n, 1))
        for first in range(0, m, step):
            part = product(self.left, self.right[first : first + step].T)
            here = np.flatnonzero((self.columns >= first) & (self.columns < first + step))
            part[self.rows[here], self.columns[here] - first] = 0.0
            total += _gram(part)
        return total
