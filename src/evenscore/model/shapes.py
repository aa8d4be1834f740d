"""Complete score matrices whose targets are the same-speaker pairs, compressed to what EM needs.

Rows of one speaker are exchangeable, and so are its columns. Everything in a speaker's part of the posterior depends
on the speaker only through its shape (K_g, L_g: numbers of enrolments and tests) and a few sums of its scores, and
the posterior means are linear in those. So one small moment matrix per distinct shape is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.model.patterns import SpeakerBlocks, SpeakerShapes
from evenscore.model.sums import ClassSums

if TYPE_CHECKING:
    from jaxtyping import Float, Int

__all__ = ["ShapeStatistics", "compress", "merge"]

Array = np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class ShapeStatistics:
    """Moments of the speakers of complete K x L score matrices, per distinct shape; the scores are standardized.

    A speaker g has phi_g = (1, T_g, R_g, C_g): its sum of target scores, and of the non-target scores in its rows
    and in its columns, all less the class means. Matrices with the same numbers of speakers of each shape are kept
    together (first axis of `phi`), since they have the same posterior covariances.
    """

    n_rows: int
    n_columns: int
    n_enroll: Int[Array, " s"]  #: enrolments of a speaker of this shape, K_g
    n_test: Int[Array, " s"]  #: tests of a speaker of this shape, L_g
    n_groups: Float[Array, " s"]  #: speakers of this shape
    phi: Float[Array, "b s 4 4"]  #: sum of phi_g phi_g' for each matrix
    row_scatter: Float[Array, "s 2 2"]  #: scatter of the (non-target, target) row sums within speakers
    column_scatter: Float[Array, "s 2 2"]  #: the same of the columns
    count: Float[Array, "2"]  #: number of scores of each class, over all matrices
    total: Float[Array, "2"]  #: sum of each class, less the class means (which are those of all matrices)
    squares: Float[Array, "2"]  #: sum of squares of each class, less the class means
    center: Float[Array, "2"]  #: class means, in the units of the scores
    scale: float  #: unit of the standardized scores


def compress(sums: ClassSums, blocks: SpeakerBlocks, *, center: Float[Array, "2"], scale: float) -> ShapeStatistics:
    """Compress the sums of a complete matrix; `center` (per class) and `scale` standardize the scores."""
    sums, shapes, sizes = sums.standardized(center, scale), blocks.shapes, blocks.sizes
    row_groups, row_scatter = _group_sums(sums.rows, blocks.row_codes, sizes[:, 0])
    column_groups, column_scatter = _group_sums(sums.columns, blocks.column_codes, sizes[:, 1])
    phi = np.stack([np.ones(len(sizes)), row_groups[1], row_groups[0], column_groups[0]], axis=1)
    return ShapeStatistics(
        n_rows=len(blocks.row_codes),
        n_columns=len(blocks.column_codes),
        n_enroll=shapes.n_enroll,
        n_test=shapes.n_test,
        n_groups=shapes.n_groups,
        phi=_sum_products(phi, shapes)[None],
        row_scatter=_sum_products(row_scatter, shapes),
        column_scatter=_sum_products(column_scatter, shapes),
        count=sums.count,
        total=sums.total,
        squares=sums.squares,
        center=center,
        scale=scale,
    )


def merge(parts: list[ShapeStatistics]) -> list[ShapeStatistics]:
    """Put matrices of the same structure together."""
    alike: dict[tuple[object, ...], list[ShapeStatistics]] = {}
    for part in parts:
        structure = (part.n_rows, part.n_columns, *(a.tobytes() for a in (part.n_enroll, part.n_test, part.n_groups)))
        alike.setdefault(structure, []).append(part)

    def added(group: list[ShapeStatistics], name: str) -> Any:
        return np.sum([getattr(part, name) for part in group], axis=0)

    summed = ("row_scatter", "column_scatter", "count", "total", "squares")
    return [
        replace(
            group[0], phi=np.concatenate([part.phi for part in group]), **{name: added(group, name) for name in summed}
        )
        for group in alike.values()
    ]


def _group_sums(
    values: Float[Array, "2 n"], codes: npt.NDArray[np.intp], sizes: npt.NDArray[np.intp]
) -> tuple[Float[Array, "2 g"], Float[Array, "g 2 2"]]:
    """Return the sums of each group and the scatter within it."""
    sums = np.stack([np.bincount(codes, row, len(sizes)) for row in values])
    inner = values - (sums / np.maximum(sizes, 1))[:, codes]
    n_groups = len(sizes)
    scatter = np.empty((n_groups, 2, 2))
    for a, b in ((0, 0), (0, 1), (1, 1)):
        scatter[:, a, b] = scatter[:, b, a] = np.bincount(codes, inner[a] * inner[b], n_groups)
    return sums, scatter


def _sum_products(values: Array, shapes: SpeakerShapes) -> Float[Array, "s p p"]:
    """Sum values v v' (or the matrices themselves) over the groups of each shape."""
    by_shape = [values[shapes.shape_of == s] for s in range(len(shapes))]
    return np.stack([part.sum(axis=0) if values.ndim == 3 else part.T @ part for part in by_shape])
