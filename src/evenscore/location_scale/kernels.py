"""The posterior of a trial's hidden effects given a cohort whose scores have precisions of their own, compiled.

A cell is a set of trials that share everything but their cohort scores: who is left out of the cohort, which cohort
scores are missing, and the factors of the precision of the two sides. Letters as in docs/location-scale.md. Plain loops
on scalars, because those compile quickly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

__all__ = ["trial_effects"]


@njit(cache=True)
def _eliminate(block: Any, rhs: Any, k: int, i: int, own: int, first: int, size: int) -> None:
    """Take pivot k out of row i, where row k is 0 but from k to `own` and from `first` to `size`."""
    factor = block[i, k] / block[k, k]
    for j in range(k + 1, own):
        block[i, j] -= factor * block[k, j]
    for j in range(max(first, k + 1), size):
        block[i, j] -= factor * block[k, j]
    for j in range(rhs.shape[1]):
        rhs[i, j] -= factor * rhs[k, j]


@njit(cache=True)
def _solve(block: Any, rhs: Any, dim: int, first: int, size: int) -> None:
    """Solve block x = rhs in place; the part before `first` is block-diagonal (blocks of `dim`) and definite.

    What is left after that part may be indefinite, so it is eliminated with pivots.
    """
    for k in range(first):
        own = k - k % dim + dim
        for i in range(k + 1, own):
            _eliminate(block, rhs, k, i, own, first, size)
        for i in range(first, size):
            _eliminate(block, rhs, k, i, own, first, size)
    for k in range(first, size):
        best = k
        for i in range(k + 1, size):
            if abs(block[i, k]) > abs(block[best, k]):
                best = i
        if best != k:
            for j in range(k, size):
                block[k, j], block[best, j] = block[best, j], block[k, j]
            for j in range(rhs.shape[1]):
                rhs[k, j], rhs[best, j] = rhs[best, j], rhs[k, j]
        for i in range(k + 1, size):
            _eliminate(block, rhs, k, i, k, first, size)
    for k in range(size - 1, -1, -1):
        own = k - k % dim + dim if k < first else k
        for j in range(rhs.shape[1]):
            value = rhs[k, j]
            for i in range(k + 1, own):
                value -= block[k, i] * rhs[i, j]
            for i in range(max(first, k + 1), size):
                value -= block[k, i] * rhs[i, j]
            rhs[k, j] = value / block[k, k]


@njit(cache=True)
def _fill_side(
    loading: Any,
    kept: Any,
    members: Any,
    weight: Any,
    gamma: Any,
    prior: Any,
    extra: Any,
    u: Any,
    at: int,
    column: int,
    first: int,
    background: bool,
    block: Any,
    rhs: Any,
) -> int:
    """Fill the diagonal blocks and right-hand sides of one side of a component; return where the next side begins."""
    dim = loading.shape[1]
    for i in members:
        if not kept[i]:
            continue
        for a in range(dim):
            rhs[at + a, column] = extra[i] * loading[0, a]
            rhs[at + a, 2] = prior[i, a] + gamma[0, i] * loading[0, a] + gamma[1, i] * loading[1, a]
            if background:
                rhs[at + a, first + a] = u[i]
            for b in range(dim):
                value = (weight[0, i] + extra[i]) * loading[0, a] * loading[0, b]
                value += weight[1, i] * loading[1, a] * loading[1, b]
                block[at + a, at + b] = value + (1.0 if a == b else 0.0)
        at += dim
    return at


@njit(cache=True)
def _couple(
    alpha: Any,
    beta: Any,
    background: bool,
    P: Any,
    p: Any,
    q: Any,
    i_s: Any,
    j_s: Any,
    row_kept: Any,
    column_kept: Any,
    row_begin: int,
    column_begin: int,
    block: Any,
) -> None:
    """Fill the couplings between the rows and columns of a component, and where those begin."""
    dim = alpha.shape[1]
    at = row_begin
    for i in i_s:
        if not row_kept[i]:
            continue
        there = column_begin
        for j in j_s:
            if not column_kept[j]:
                continue
            k0 = P[0, i, j]
            if background:
                k0 -= p[i] * q[j]
            for a in range(dim):
                for b in range(dim):
                    value = k0 * alpha[0, a] * beta[0, b] + P[1, i, j] * alpha[1, a] * beta[1, b]
                    block[at + a, there + b] = value
                    block[there + b, at + a] = value
            there += dim
        at += dim


@njit(cache=True)
def _project(
    loading: Any, kept: Any, members: Any, u: Any, at: int, first: int, solution: Any, out: Any, W: Any
) -> int:
    """Keep loading_0' z of the members, and add their part of U'z; return where the next side begins."""
    dim, n_rhs = loading.shape[1], solution.shape[1]
    for i in members:
        if not kept[i]:
            continue
        for r in range(n_rhs):
            value = 0.0
            for a in range(dim):
                value += loading[0, a] * solution[at + a, r]
                W[first - 3 + a, r] += u[i] * solution[at + a, r]
            out[i, r] = value
        at += dim
    return at


@njit(cache=True)
def _correct(alpha: Any, beta: Any, W: Any, a: Any, b: Any) -> None:
    """Add the background U M U' by Woodbury's identity (E4) to the first three solutions, in place."""
    dim = alpha.shape[1]
    inner, t = np.zeros((2 * dim, 2 * dim)), np.zeros((2 * dim, 3))
    for k in range(dim):
        for m in range(dim):
            c = alpha[0, k] * beta[0, m]
            for r in range(3):
                t[k, r] += c * W[dim + m, r]
                t[dim + m, r] += c * W[k, r]
            for r in range(2 * dim):
                inner[k, r] += c * W[dim + m, 3 + r]
                inner[dim + m, r] += c * W[k, 3 + r]
    for k in range(2 * dim):
        inner[k, k] += 1.0
    _solve(inner, t, dim, 0, 2 * dim)
    for out in (a, b):
        for i in range(out.shape[0]):
            for r in range(3):
                for k in range(2 * dim):
                    out[i, r] -= out[i, 3 + k] * t[k, r]


@njit(cache=True)
def _sums_without(sums: Any, first: int, second: int, out: Any) -> None:
    """Take the sums over all, less those of the speakers who are left out."""
    everybody = sums.shape[0] - 1
    for h in range(2):
        for i in range(sums.shape[2]):
            value = sums[everybody, h, i]
            if first >= 0:
                value -= sums[first, h, i]
            if second >= 0 and second != first:
                value -= sums[second, h, i]
            out[h, i] = value


@njit(cache=True)
def _keep(speaker: Any, first: int, second: int, mask: Any, weight: Any, factor: float, kept: Any, extra: Any) -> None:
    """Tell who is kept in the cohort, and the precision of the trial's score against each of them."""
    for i in range(len(speaker)):
        kept[i] = speaker[i] < 0 or (speaker[i] != first and speaker[i] != second)
        extra[i] = factor * weight[i] if kept[i] and mask[i] else 0.0


@njit(cache=True)
def trial_effects(
    alpha: Any,
    beta: Any,
    background: bool,
    P: Any,
    p: Any,
    q: Any,
    row_weight: Any,
    row_gamma: Any,
    column_weight: Any,
    column_gamma: Any,
    row_prior: Any,
    column_prior: Any,
    row_ptr: Any,
    rows: Any,
    column_ptr: Any,
    columns: Any,
    row_speaker: Any,
    column_speaker: Any,
    enroll_weight: Any,
    test_weight: Any,
    cells: Any,
    factors: Any,
    cell_ptr: Any,
    trial_row: Any,
    trial_column: Any,
    enroll: Any,
    test: Any,
    enroll_mask: Any,
    test_mask: Any,
    largest: int,
    effects: Any,
    information: Any,
) -> None:
    """Fill, for each trial, the evidence about (xi, eta) = (alpha_0'x~, beta_0'y~), and per cell its precision.

    `row_weight[s]` and the like have the sums over the columns of speaker s at index s, and over all at the last.
    `cells` has for each cell the two speakers that are left out (-1: nobody) and the patterns of missing scores of both
    sides; `factors` the factors of the precision of both sides. `enroll` are the trials' cohort scores less mu_0.
    `information[cell]` = (sum of enrolment-side precisions, of test-side precisions, K_11, K_12, K_22).
    """
    dim, n, m = alpha.shape[1], len(p), len(q)
    n_rhs = 3 + 2 * dim  # e_xi, e_eta, gamma, U
    row_kept, column_kept = np.ones(n, dtype=np.bool_), np.ones(m, dtype=np.bool_)
    from_test, from_enroll = np.zeros(n), np.zeros(m)
    rw, rg, cw, cg = np.zeros((2, n)), np.zeros((2, n)), np.zeros((2, m)), np.zeros((2, m))
    # alpha_0' z of the rows and beta_0' z of the columns, for z solving e_xi, e_eta, gamma and U
    a, b = np.zeros((n, n_rhs)), np.zeros((m, n_rhs))
    W = np.zeros((2 * dim, n_rhs))
    block, rhs = np.zeros((largest, largest)), np.zeros((largest, n_rhs))
    row_stamp, column_stamp = np.full(len(enroll), -1), np.full(len(test), -1)
    row_part, column_part = np.zeros((len(enroll), 2)), np.zeros((len(test), 2))
    for cell in range(len(cells)):
        first, second = cells[cell, 0], cells[cell, 1]
        _keep(
            column_speaker,
            first,
            second,
            enroll_mask[cells[cell, 2]],
            enroll_weight,
            factors[cell, 0],
            column_kept,
            from_enroll,
        )
        _keep(row_speaker, first, second, test_mask[cells[cell, 3]], test_weight, factors[cell, 1], row_kept, from_test)
        _sums_without(row_weight, first, second, rw)
        _sums_without(row_gamma, first, second, rg)
        _sums_without(column_weight, first, second, cw)
        _sums_without(column_gamma, first, second, cg)
        a[:, :] = 0.0
        b[:, :] = 0.0
        W[:, :] = 0.0
        x, y = 3, 3 + dim  # where the columns of U for rows and columns begin
        for part in range(len(row_ptr) - 1):
            i_s, j_s = rows[row_ptr[part] : row_ptr[part + 1]], columns[column_ptr[part] : column_ptr[part + 1]]
            size = (len(i_s) + len(j_s)) * dim
            block[:size, :size] = 0.0
            rhs[:size, :] = 0.0
            # the larger side comes first: its part of the block is block-diagonal
            if len(j_s) >= len(i_s):
                y_at = 0
                x_at = _fill_side(
                    beta, column_kept, j_s, cw, cg, column_prior, from_enroll, q, y_at, 0, y, background, block, rhs
                )
                end = _fill_side(
                    alpha, row_kept, i_s, rw, rg, row_prior, from_test, p, x_at, 1, x, background, block, rhs
                )
                first_size = x_at
            else:
                x_at = 0
                y_at = _fill_side(
                    alpha, row_kept, i_s, rw, rg, row_prior, from_test, p, x_at, 1, x, background, block, rhs
                )
                end = _fill_side(
                    beta, column_kept, j_s, cw, cg, column_prior, from_enroll, q, y_at, 0, y, background, block, rhs
                )
                first_size = y_at
            _couple(alpha, beta, background, P, p, q, i_s, j_s, row_kept, column_kept, x_at, y_at, block)
            _solve(block, rhs, dim, first_size, end)
            _project(alpha, row_kept, i_s, p, x_at, x, rhs, a, W)
            _project(beta, column_kept, j_s, q, y_at, y, rhs, b, W)
        if background:
            _correct(alpha, beta, W, a, b)
        offset_xi, offset_eta = 0.0, 0.0
        for j in range(m):
            information[cell, 0] += from_enroll[j]
            information[cell, 2] += from_enroll[j] * b[j, 0]
            information[cell, 3] += from_enroll[j] * b[j, 1]
            offset_xi -= from_enroll[j] * b[j, 2]
        for i in range(n):
            information[cell, 1] += from_test[i]
            information[cell, 4] += from_test[i] * a[i, 1]
            offset_eta -= from_test[i] * a[i, 2]
        for place in range(cell_ptr[cell], cell_ptr[cell + 1]):
            e, t = trial_row[place], trial_column[place]
            if row_stamp[e] != cell:
                row_stamp[e] = cell
                xi, eta = 0.0, 0.0
                for j in range(m):
                    weighted = from_enroll[j] * enroll[e, j]
                    xi += weighted * (1.0 - b[j, 0])
                    eta -= weighted * b[j, 1]
                row_part[e, 0], row_part[e, 1] = xi, eta
            if column_stamp[t] != cell:
                column_stamp[t] = cell
                xi, eta = 0.0, 0.0
                for i in range(n):
                    weighted = from_test[i] * test[t, i]
                    xi -= weighted * a[i, 0]
                    eta += weighted * (1.0 - a[i, 1])
                column_part[t, 0], column_part[t, 1] = xi, eta
            effects[place, 0] = offset_xi + row_part[e, 0] + column_part[t, 0]
            effects[place, 1] = offset_eta + row_part[e, 1] + column_part[t, 1]
