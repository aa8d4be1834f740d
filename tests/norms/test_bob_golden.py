"""Bob's own ZT-norm example: its matrices of face scores, and what its C++ made of them.

`golden/bob_ztnorm.md` says where they come from.
"""

from pathlib import Path

import numpy as np

from evenscore import Labels, ScoreBlocks, ScoreMatrix, normalize

GOLDEN = np.load(Path(__file__).parent / "golden" / "bob_ztnorm.npz")


def names(letter, number):
    return [f"{letter}{place}" for place in range(number)]


def blocks_of(a, b, c, d, same=None):
    """Return Bob's four matrices as blocks: z-probes are the cohort's tests, t-models its enrolments."""
    models, probes = names("m", a.shape[0]), names("p", a.shape[1])
    z_probes, t_models = names("z", b.shape[1]), names("t", c.shape[0])
    labels = None if same is None else Labels.from_key(same, enroll_ids=t_models, test_ids=z_probes)
    return ScoreBlocks(
        ScoreMatrix(a, models, probes),
        enroll=ScoreMatrix(b, models, z_probes),
        test=ScoreMatrix(c, t_models, probes),
        cohort=ScoreMatrix(d, t_models, z_probes),
        cohort_labels=labels,
    )


def test_public_matrices():
    found = normalize(blocks_of(*(GOLDEN[name] for name in "abcd")), "zt", convention="bob").scores
    np.testing.assert_allclose(found, GOLDEN["zt"], rtol=1e-9)


def test_pair_of_one_identity_is_left_out():
    a = np.array([[1.0, 2, 3, 4, 5], [6, 7, 8, 9, 8], [7, 6, 5, 4, 3]])
    b = np.array([[5.0, 4, 7, 8], [9, 8, 7, 4], [5, 6, 3, 2]])
    c, d = np.array([[5.0, 4, 3, 2, 1], [2, 1, 2, 3, 4]]), np.array([[8.0, 6, 4, 2], [0, 2, 4, 6]])
    same = np.equal.outer([1, 5], [1, 2, 3, 4])
    found = normalize(blocks_of(a, b, c, d, same), "zt", convention="bob").scores
    expected = [
        [-4.45473107, -3.29289322, -15.0519101, -0.842086557, 0.00646544511],
        [-0.827619927, 0.707106781, 11.3757710, 2.01641412, 0.763765080],
        [2.52913570, 2.70710678, 12.4400233, 0.707106781, 0.00646544511],
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-7)
