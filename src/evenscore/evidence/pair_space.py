"""Coordinates of enrolments and tests among the cohort, in which the scores of pairs are products."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from jaxtyping import Float

__all__ = ["PairSpace"]

Scores = npt.NDArray[np.floating]

_RANK = 128  # most coordinates
_SMALL = 1e-7  # singular values below this share of the first are rounding
_IMPOSTOR_RIDGE = 0.3  # k of (V3)
_WITHIN_RIDGE = 0.1  # l of (V4)


@dataclass(frozen=True, eq=False)
class PairSpace:
    """Coordinates that scores against the cohort give.

    R = S_I - row means - column means + mean = U diag(g) V'                                    (V1)
    x = V'a / sqrt(g),   y = U'c / sqrt(g)                                                      (V2)
    b = sum_i x_i y_i g_i^2 / (g_i^2 + k^2 g_1^2)                                               (V3)
    w = x'Q diag(v / (v + l v_1)) Q'y,   Q diag(v) Q' = covariance of y within cohort speakers    (V4)

    where a and c are the cohort scores of an enrolment and of a test, centred like R, so that x'y is near the score
    less what both sides have on average. b is the score that two different speakers would have who resemble the cohort
    as these two do; w is the part of the score in directions in which one speaker varies.
    """

    enroll_center: Float[np.ndarray, " m"]
    enroll_map: Float[np.ndarray, "m r"]  #: V / sqrt(g)
    test_center: Float[np.ndarray, " n"]
    test_map: Float[np.ndarray, "n r"]  #: U / sqrt(g)
    impostor: Float[np.ndarray, " r"]  #: weights of (V3)
    within: Float[np.ndarray, "r r"]  #: Q diag(v / (v + l v_1)) Q' of (V4)

    @classmethod
    def from_cohort(cls, cohort: Scores, test_speakers: Iterable[str | None] | None) -> PairSpace:
        """Return the coordinates of S_I, N x M; a missing score counts as the sum of its row and column means."""
        S = np.asarray(cohort, np.float64)
        if np.isnan(S).any():
            seen = ~np.isnan(S)
            mean = S[seen].mean() if seen.any() else 0.0
            row = np.where(seen, S - mean, 0).sum(1) / np.maximum(seen.sum(1), 1)
            column = np.where(seen, S - mean - row[:, None], 0).sum(0) / np.maximum(seen.sum(0), 1)
            S = np.where(seen, S, mean + row[:, None] + column)
        row, column, mean = S.mean(axis=1), S.mean(axis=0), S.mean()
        U, g, V = _leading(S - row[:, None] - column + mean)
        impostor = g**2 / (g**2 + (_IMPOSTOR_RIDGE * g[:1]) ** 2)
        within = _within(V * np.sqrt(g), test_speakers)
        return cls(column - mean, V / np.sqrt(g), row - mean, U / np.sqrt(g), impostor, within)

    def enroll(self, scores: Scores) -> Float[np.ndarray, "k r"]:
        """Return x of enrolments, from their rows of cohort scores; missing scores count as usual ones."""
        return _project(scores, self.enroll_center, self.enroll_map)

    def test(self, scores: Scores) -> Float[np.ndarray, "k r"]:
        """Return y of tests, from their columns of cohort scores, here as rows."""
        return _project(scores, self.test_center, self.test_map)


def _project(scores: Scores, center: Float[np.ndarray, " m"], to: Float[np.ndarray, "m r"]) -> Float[np.ndarray, "k r"]:
    rows = np.asarray(scores, np.float64) - center
    if np.isnan(rows).any():
        seen = ~np.isnan(rows)
        mean = np.where(seen, rows, 0).sum(1) / np.maximum(seen.sum(1), 1)
        return np.where(seen, rows - mean[:, None], 0) @ to
    return rows @ to - rows.mean(axis=1, keepdims=True) * to.sum(axis=0)


def _leading(R: Float[np.ndarray, "n m"]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the leading singular vectors and values, by the smaller Gram matrix."""
    wide = R.shape[0] <= R.shape[1]
    squares, vectors = np.linalg.eigh(R @ R.T if wide else R.T @ R)
    g = np.sqrt(np.maximum(squares[::-1][:_RANK], 0.0))
    kept = g > _SMALL * max(g[0], 1e-300) if len(g) else g > 0
    one, g = vectors[:, ::-1][:, :_RANK][:, kept], g[kept]
    other = (R.T if wide else R) @ one / g
    return (one, g, other) if wide else (other, g, one)


def _within(y: Float[np.ndarray, "m r"], speakers: Iterable[str | None] | None) -> Float[np.ndarray, "r r"]:
    """Return the regularized projection on the directions in which tests of one cohort speaker differ."""
    if speakers is None or not y.size:
        return np.zeros((y.shape[1], y.shape[1]))
    names = [f"unknown {at}" if name is None else f"known {name}" for at, name in enumerate(speakers)]
    codes, sizes = np.unique(names, return_inverse=True, return_counts=True)[1:]
    order = np.argsort(codes, kind="stable")
    means = np.add.reduceat(y[order], np.cumsum(sizes) - sizes, axis=0) / sizes[:, None]
    rest = y - means[codes]
    v, Q = np.linalg.eigh(rest.T @ rest / max(len(y) - len(sizes), 1))
    v = np.maximum(v, 0.0)
    return (Q * (v / (v + _WITHIN_RIDGE * v[-1]) if v[-1] > 0 else v)) @ Q.T
