"""The elimination against the inverse of the whole precision, for everything that may couple a pair."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from designs import keys, models
from evenscore.model import elimination
from evenscore.model.elimination import Elimination, LabelCouplings, ListedCouplings, WeightCouplings
from evenscore.model.precision import diagonal_blocks, precision_terms
from examples import examples


def dense_precision(A, B, blocks):
    """Lambda = [[A, C], [C', B]] with a D x D block of C for each pair."""
    k, n, dim = len(A), len(A) + len(B), A.shape[1]
    whole = np.zeros((n, dim, n, dim))
    for i, block in enumerate([*A, *B]):
        whole[i, :, i, :] = block
    for i, j in np.ndindex(blocks.shape[:2]):
        whole[i, :, k + j, :] = blocks[i, j]
        whole[k + j, :, i, :] = blocks[i, j].T
    return whole.reshape(n * dim, n * dim)


@pytest.mark.parametrize("chunk", [1, 1 << 22])
@pytest.mark.parametrize("kind", ["label", "listed", "weight"])
def test_every_coupling_equals_the_dense_inverse(kind, chunk, monkeypatch):
    monkeypatch.setattr(elimination, "_CHUNK", chunk)

    @examples(20)
    @given(models(dims=(1, 2)), keys(largest=5), st.integers(0, 2**31))
    def check(model, key, seed):
        rng, terms, dim = np.random.default_rng(seed), precision_terms(model), model.dim
        weights = np.stack([key == 0, key == 1]) * (rng.random(key.shape) if kind == "weight" else 1.0)
        A, B = diagonal_blocks(terms, weights.sum(axis=2), weights.sum(axis=1))
        table = np.concatenate([terms.c, np.zeros((1, dim, dim))])
        couplings = {
            "label": LabelCouplings(key=key[None], table=table),
            "listed": ListedCouplings(key=key[None], table=table),
            "weight": WeightCouplings(weights=weights, c=terms.c),
        }[kind]
        found = Elimination(couplings, A[None], B[None], definite=kind != "label")
        whole = dense_precision(A, B, np.einsum("hij,hde->ijde", weights, terms.c))
        inverse = np.linalg.inv(whole)
        gamma = rng.normal(size=(sum(key.shape), dim, 3))
        x, y = found.solve(gamma[None, : len(A)], gamma[None, len(A) :])
        mean = (inverse @ gamma.reshape(-1, 3)).reshape(gamma.shape)
        np.testing.assert_allclose(np.concatenate([x[0], y[0]]), mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.log_det, np.linalg.slogdet(whole)[1], rtol=1e-8, atol=1e-8)
        sums = np.zeros((2, dim, dim))

        def add(part, pairs):
            if kind != "weight":
                sums[:] += [part.sum_pairs(pairs, label) for label in (0, 1)]

        covariances = np.concatenate([side[0] for side in found.covariances(add)])
        blocks = inverse.reshape(len(mean), dim, len(mean), dim)
        np.testing.assert_allclose(covariances, [blocks[i, :, i] for i in range(len(mean))], rtol=1e-8, atol=1e-8)
        if kind != "weight":
            expected = [np.einsum("ij,idje->de", key == h, blocks[: len(A), :, len(A) :]) for h in (0, 1)]
            np.testing.assert_allclose(sums, expected, rtol=1e-8, atol=1e-8)

    check()
