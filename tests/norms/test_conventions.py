"""The conventions reproduce what other tools publish, against naive twins and golden values."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenscore import Labels, NormOptions, ScoreBlocks, ScoreMatrix, normalize
from evenscore.norms import CONVENTIONS
from norms.norm_blocks import ragged
from reference import tool_norms

FOLDER = Path(__file__).parent / "golden"
GOLDEN = json.loads((FOLDER / "conventions.json").read_text())
BOB = np.load(FOLDER / "bob_ztnorm.npz")


def blocks_of(S, E, T, K=None, same=None, *, cohorts="cc"):
    def names(letter, number):
        return [f"{letter}{place}" for place in range(number)]

    e, t = names("e", S.shape[0]), names("t", S.shape[1])
    c, d = names(cohorts[0], T.shape[0]), names(cohorts[1], E.shape[1])
    return ScoreBlocks(
        ScoreMatrix(S, e, t),
        enroll=ScoreMatrix(E, e, d),
        test=ScoreMatrix(T, c, t),
        cohort=None if K is None else ScoreMatrix(K, c, d),
        cohort_labels=None if same is None else Labels.from_key(same.astype(int), enroll_ids=c, test_ids=d),
    )


def cases():
    """Every tool's norm as (name, our call, its naive twin)."""
    rng = np.random.default_rng(11)
    S, E, T, K = (rng.normal(size=shape) + 0.5 for shape in ((5, 4), (5, 12), (12, 4), (12, 12)))
    same = np.arange(12)[:, None] // 3 == np.arange(12)[None, :] // 3
    plain, whole, keyed = blocks_of(S, E, T), blocks_of(S, E, T, K), blocks_of(S, E, T, K, same)
    flat, flat_keyed = blocks_of(S, np.ones_like(E), T), blocks_of(S, np.ones_like(E), T, K, same)
    # fmt: off
    return [
        ("wespeaker as", (plain, "as", "wespeaker", {"top_k": 5}), tool_norms.wespeaker(S, E, T, 5)),
        ("wespeaker as, clipped", (plain, "as", "wespeaker", {"top_k": 99}), tool_norms.wespeaker(S, E, T, 99)),
        ("wespeaker s", (plain, "s", "wespeaker", {}), tool_norms.wespeaker(S, E, T, 12)),
        ("speechbrain z", (plain, "z", "speechbrain", {}), tool_norms.speechbrain(S, E, T, "z-norm")),
        ("speechbrain t", (plain, "t", "speechbrain", {}), tool_norms.speechbrain(S, E, T, "t-norm")),
        ("speechbrain s", (plain, "s", "speechbrain", {}), tool_norms.speechbrain(S, E, T, "s-norm")),
        ("speechbrain z top", (plain, "az", "speechbrain", {"top_k": 4}), tool_norms.speechbrain(S, E, T, "z-norm", 4)),
        ("speechbrain t top", (plain, "at", "speechbrain", {"top_k": 4}), tool_norms.speechbrain(S, E, T, "t-norm", 4)),
        ("speechbrain s top", (plain, "as", "speechbrain", {"top_k": 4}), tool_norms.speechbrain(S, E, T, "s-norm", 4)),
        ("espnet", (plain, "as", "espnet", {"top_k": 7}), tool_norms.espnet(S, E, T, 7)),
        ("espnet, clipped", (plain, "as", "espnet", {"top_k": 700}), tool_norms.espnet(S, E, T, 700)),
        ("asv-subtools as", (plain, "as", "asv-subtools", {"top_k": 6}), tool_norms.asv_subtools(S, E, T, 6, False)),
        ("asv-subtools as, cross", (plain, "as", "asv-subtools", {"top_k": 6, "select": "cross"}),
         tool_norms.asv_subtools(S, E, T, 6, True)),
        ("asv-subtools s", (plain, "s", "asv-subtools", {}), tool_norms.asv_subtools(S, E, T, 12, False)),
        ("hyperion as", (plain, "as", "hyperion", {"top_k": 4}), tool_norms.hyperion_as(S, E, T, 4, 0)),
        ("hyperion as, discard", (plain, "as", "hyperion", {"top_k": 4, "drop_top": 2}),
         tool_norms.hyperion_as(S, E, T, 4, 2)),
        ("hyperion as, clipped", (plain, "as", "hyperion", {"top_k": 50, "drop_top": 2}),
         tool_norms.hyperion_as(S, E, T, 50, 2)),
        ("hyperion as, own side", (plain, "as", "hyperion", {"top_k": 4, "select": "own"}),
         tool_norms.hyperion_as(S, E, T, 4, 0, other_side=False)),
        ("hyperion z", (plain, "z", "hyperion", {}), tool_norms.hyperion_z(S, E)),
        ("hyperion z, floor", (flat, "z", "hyperion", {}), tool_norms.hyperion_z(S, np.ones_like(E))),
        ("hyperion t", (plain, "t", "hyperion", {}), tool_norms.hyperion_t(S, T)),
        ("hyperion s", (plain, "s", "hyperion", {}), tool_norms.hyperion_s(S, E, T)),
        ("hyperion zt", (whole, "zt", "hyperion", {}), tool_norms.hyperion_zt(S, E, T, K)),
        ("hyperion tz", (whole, "tz", "hyperion", {}), tool_norms.hyperion_tz(S, E, T, K)),
        ("bob zt", (keyed, "zt", "bob", {}), tool_norms.bob_zt(S, E, T, K, same)),
        ("bob zt, std of zero", (flat_keyed, "zt", "bob", {}), tool_norms.bob_zt(S, np.ones_like(E), T, K, same)),
    ]
    # fmt: on


@pytest.mark.parametrize(("name", "call", "expected"), [pytest.param(*case, id=case[0]) for case in cases()])
def test_conventions_equal_the_published_formulas(name, call, expected):
    blocks, method, convention, options = call
    for given in (blocks, ragged(blocks)):
        found = normalize(given, method, convention=convention, **options).compute().scores
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found, GOLDEN["values"][name], rtol=1e-9, atol=1e-9)


def test_every_convention_is_covered():
    assert {case[1][2] for case in cases()} == set(CONVENTIONS)
    assert set(GOLDEN["values"]) == {case[0] for case in cases()}


def test_single_options_differ_from_a_convention():
    options = NormOptions.from_convention("hyperion", combine="mean", top_k=7)
    assert (options.combine, options.ddof, options.select, options.top_k) == ("mean", 0, "cross", 7)


def test_bobs_own_example():
    """Its matrices of face scores, and what its C++ made of them; `golden/bob_ztnorm.md` says where they come from."""
    blocks = blocks_of(*(BOB[name] for name in "abcd"), cohorts="cd")
    np.testing.assert_allclose(normalize(blocks, "zt", convention="bob").scores, BOB["zt"], rtol=1e-9)


def test_bobs_pair_of_one_identity_is_left_out():
    a = np.array([[1.0, 2, 3, 4, 5], [6, 7, 8, 9, 8], [7, 6, 5, 4, 3]])
    b = np.array([[5.0, 4, 7, 8], [9, 8, 7, 4], [5, 6, 3, 2]])
    c, d = np.array([[5.0, 4, 3, 2, 1], [2, 1, 2, 3, 4]]), np.array([[8.0, 6, 4, 2], [0, 2, 4, 6]])
    blocks = blocks_of(a, b, c, d, np.equal.outer([1, 5], [1, 2, 3, 4]), cohorts="cd")
    expected = [
        [-4.45473107, -3.29289322, -15.0519101, -0.842086557, 0.00646544511],
        [-0.827619927, 0.707106781, 11.3757710, 2.01641412, 0.763765080],
        [2.52913570, 2.70710678, 12.4400233, 0.707106781, 0.00646544511],
    ]
    np.testing.assert_allclose(normalize(blocks, "zt", convention="bob").scores, expected, rtol=1e-7)
