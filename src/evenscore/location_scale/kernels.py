"""The posterior of a trial's hidden effects given a cohort whose scores have precisions of their own, compiled.

A cell is a set of trials that share everything but their cohort scores: who is left out of the cohort, which cohort
scores are missing, and the factors of the precision of the two sides. Letters as in docs/location-scale.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, prange

__all__ = ["trial_effects"]


@njit(cache=True)
def _solve_cohort(
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
    row_ptr: Any,
    rows: Any,
    column_ptr: Any,
    columns: Any,
    row_kept: Any,
    column_kept: Any,
    from_test: Any,
    from_enroll: Any,
) -> Any:
    """Solve Lambda z = (e_xi, e_eta, gamma) for the cohort's variables; return the solutions of rows and columns.

    `row_weight[h, i]` and `row_gamma[h, i]` are the sums of precisions and of weighted residuals over the kept columns.
    `from_test[i]` is the precision of the trial's cohort score against row i, `from_enroll[j]` likewise.
    """
    dim = alpha.shape[1]
    n_rhs = 3 + 2 * dim  # e_xi, e_eta, gamma, U
    zx, zy = np.zeros((len(p), dim, n_rhs)), np.zeros((len(q), dim, n_rhs))
    W = np.zeros((2 * dim, n_rhs))
    for part in range(len(row_ptr) - 1):
        i_s, j_s = rows[row_ptr[part] : row_ptr[part + 1]], columns[column_ptr[part] : column_ptr[part + 1]]
        k, width = 0, 0
        for i in i_s:
            k += row_kept[i]
        for j in j_s:
            width += column_kept[j]
        size = (k + width) * dim
        if size == 0:
            continue
        block, rhs = np.zeros((size, size)), np.zeros((size, n_rhs))
        at = 0
        for i in i_s:
            if not row_kept[i]:
                continue
            for a in range(dim):
                rhs[at + a, 1] = from_test[i] * alpha[0, a]
                if background:
                    rhs[at + a, 3 + a] = p[i]
                for h in range(2):
                    rhs[at + a, 2] += row_gamma[h, i] * alpha[h, a]
                    for b in range(dim):
                        block[at + a, at + b] += row_weight[h, i] * alpha[h, a] * alpha[h, b]
                for b in range(dim):
                    block[at + a, at + b] += from_test[i] * alpha[0, a] * alpha[0, b] + (1.0 if a == b else 0.0)
            there = k * dim
            for j in j_s:
                if not column_kept[j]:
                    continue
                k0 = P[0, i, j] - (p[i] * q[j] if background else 0.0)
                for a in range(dim):
                    for b in range(dim):
                        value = k0 * alpha[0, a] * beta[0, b] + P[1, i, j] * alpha[1, a] * beta[1, b]
                        block[at + a, there + b] = value
                        block[there + b, at + a] = value
                there += dim
            at += dim
        for j in j_s:
            if not column_kept[j]:
                continue
            for a in range(dim):
                rhs[at + a, 0] = from_enroll[j] * beta[0, a]
                if background:
                    rhs[at + a, 3 + dim + a] = q[j]
                for h in range(2):
                    rhs[at + a, 2] += column_gamma[h, j] * beta[h, a]
                    for b in range(dim):
                        block[at + a, at + b] += column_weight[h, j] * beta[h, a] * beta[h, b]
                for b in range(dim):
                    block[at + a, at + b] += from_enroll[j] * beta[0, a] * beta[0, b] + (1.0 if a == b else 0.0)
            at += dim
        solution = np.linalg.solve(block, rhs)
        at = 0
        for i in i_s:
            if row_kept[i]:
                zx[i] = solution[at : at + dim]
                if background:
                    W[:dim] += p[i] * zx[i]
                at += dim
        for j in j_s:
            if column_kept[j]:
                zy[j] = solution[at : at + dim]
                if background:
                    W[dim:] += q[j] * zy[j]
                at += dim
    if background:
        M = np.zeros((2 * dim, 2 * dim))
        for a in range(dim):
            for b in range(dim):
                M[a, dim + b] = M[dim + b, a] = alpha[0, a] * beta[0, b]
        inner = np.eye(2 * dim) + M @ np.ascontiguousarray(W[:, 3:])
        t = np.linalg.solve(inner, M @ np.ascontiguousarray(W[:, :3]))  # (E4)
        for i in range(len(p)):
            zx[i, :, :3] -= np.ascontiguousarray(zx[i, :, 3:]) @ t
        for j in range(len(q)):
            zy[j, :, :3] -= np.ascontiguousarray(zy[j, :, 3:]) @ t
    return zx[:, :, :3], zy[:, :, :3]


@njit(parallel=True, cache=True)
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
    effects: Any,
    information: Any,
) -> None:
    """Fill, for each trial, the evidence about (xi, eta) = (alpha_0'x~, beta_0'y~), and per cell its precision.

    `row_weight[s]` and the like have the sums over the columns of speaker s at index s, and over all at the last.
    `cells` has for each cell the two speakers that are left out (-1: nobody) and the patterns of missing scores of both
    sides; `factors` the factors of the precision of both sides. `enroll` are the trials' cohort scores less mu_0.
    `information[cell]` = (sum of enrolment-side precisions, of test-side precisions, K_11, K_12, K_22).
    """
    everybody = row_weight.shape[0] - 1
    for cell in prange(len(cells)):
        first, second, e_pattern, t_pattern = cells[cell]
        row_kept, column_kept = np.ones(len(p), dtype=np.bool_), np.ones(len(q), dtype=np.bool_)
        rw, rg = row_weight[everybody].copy(), row_gamma[everybody].copy()
        cw, cg = column_weight[everybody].copy(), column_gamma[everybody].copy()
        for number in range(2):
            gone = first if number == 0 else second
            if gone >= 0 and (number == 0 or gone != first):
                rw -= row_weight[gone]
                rg -= row_gamma[gone]
                cw -= column_weight[gone]
                cg -= column_gamma[gone]
        from_enroll, from_test = np.zeros(len(q)), np.zeros(len(p))
        for j in range(len(q)):
            column_kept[j] = column_speaker[j] < 0 or (column_speaker[j] != first and column_speaker[j] != second)
            if column_kept[j] and enroll_mask[e_pattern, j]:
                from_enroll[j] = factors[cell, 0] * enroll_weight[j]
        for i in range(len(p)):
            row_kept[i] = row_speaker[i] < 0 or (row_speaker[i] != first and row_speaker[i] != second)
            if row_kept[i] and test_mask[t_pattern, i]:
                from_test[i] = factors[cell, 1] * test_weight[i]
        zx, zy = _solve_cohort(
            alpha,
            beta,
            background,
            P,
            p,
            q,
            rw,
            rg,
            cw,
            cg,
            row_ptr,
            rows,
            column_ptr,
            columns,
            row_kept,
            column_kept,
            from_test,
            from_enroll,
        )
        # a = alpha_0' z of the rows, b = beta_0' z of the columns, for z solving e_xi, e_eta and gamma
        a, b = np.zeros((len(p), 3)), np.zeros((len(q), 3))
        for i in range(len(p)):
            for d in range(alpha.shape[1]):
                a[i] += alpha[0, d] * zx[i, d]
        for j in range(len(q)):
            for d in range(alpha.shape[1]):
                b[j] += beta[0, d] * zy[j, d]
        offset = np.zeros(2)
        for j in range(len(q)):
            information[cell, 0] += from_enroll[j]
            information[cell, 2] += from_enroll[j] * b[j, 0]
            information[cell, 3] += from_enroll[j] * b[j, 1]
            offset[0] -= from_enroll[j] * b[j, 2]
        for i in range(len(p)):
            information[cell, 1] += from_test[i]
            information[cell, 4] += from_test[i] * a[i, 1]
            offset[1] -= from_test[i] * a[i, 2]
        row_done, column_done = np.zeros(len(enroll), dtype=np.bool_), np.zeros(len(test), dtype=np.bool_)
        row_part, column_part = np.zeros((len(enroll), 2)), np.zeros((len(test), 2))
        for place in range(cell_ptr[cell], cell_ptr[cell + 1]):
            e, t = trial_row[place], trial_column[place]
            if not row_done[e]:
                row_done[e] = True
                for j in range(len(q)):
                    if from_enroll[j] > 0:
                        weighted = from_enroll[j] * enroll[e, j]
                        row_part[e, 0] += weighted * (1.0 - b[j, 0])
                        row_part[e, 1] -= weighted * b[j, 1]
            if not column_done[t]:
                column_done[t] = True
                for i in range(len(p)):
                    if from_test[i] > 0:
                        weighted = from_test[i] * test[t, i]
                        column_part[t, 0] -= weighted * a[i, 0]
                        column_part[t, 1] += weighted * (1.0 - a[i, 1])
            for side in range(2):
                effects[place, side] = offset[side] + row_part[e, side] + column_part[t, side]
