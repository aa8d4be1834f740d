"""The presets reproduce what other tools publish, against naive twins and golden values."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenscore import Labels, ScoreBlocks, ScoreMatrix
from evenscore.norms import CONVENTIONS, NormOptions, normalize
from reference import tool_norms
from tilings import over_tilings, tiled_blocks

GOLDEN = json.loads((Path(__file__).parent / "golden" / "conventions.json").read_text())


def numbers(seed=11, m=5, n=4, size=12):
    rng = np.random.default_rng(seed)
    S, E, T, K = (rng.normal(size=shape) + 0.5 for shape in ((m, n), (m, size), (size, n), (size, size)))
    return S, E, T, K


def blocks_of(S, E, T, K=None, same=None):
    e, t = [f"e{i}" for i in range(S.shape[0])], [f"t{j}" for j in range(S.shape[1])]
    c = [f"c{i}" for i in range(E.shape[1])]
    return ScoreBlocks(
        ScoreMatrix(S, e, t),
        enroll=ScoreMatrix(E, e, c),
        test=ScoreMatrix(T, c, t),
        cohort=None if K is None else ScoreMatrix(K, c, c),
        cohort_labels=None if same is None else Labels.from_key(same.astype(int), enroll_ids=c, test_ids=c),
    )


def cases():
    """Every tool's norm as (name, our call, its naive twin)."""
    S, E, T, K = numbers()
    same = np.arange(12)[:, None] // 3 == np.arange(12)[None, :] // 3
    plain, whole, keyed = blocks_of(S, E, T), blocks_of(S, E, T, K), blocks_of(S, E, T, K, same)
    flat = blocks_of(S, np.ones_like(E), T)
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
        ("bob zt, std of zero", (blocks_of(S, np.ones_like(E), T, K, same), "zt", "bob", {}),
         tool_norms.bob_zt(S, np.ones_like(E), T, K, same)),
    ]
    # fmt: on


@pytest.mark.parametrize(("name", "call", "expected"), [pytest.param(*case, id=case[0]) for case in cases()])
@over_tilings
def test_presets_equal_the_published_formulas(name, call, expected, tiling):
    blocks, method, convention, options = call
    found = normalize(tiled_blocks(blocks, tiling), method, convention=convention, **options).in_memory().scores
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found, GOLDEN["values"][name], rtol=1e-9, atol=1e-9)


def test_every_convention_is_covered():
    assert {case[1][2] for case in cases()} == set(CONVENTIONS)
    assert set(GOLDEN["values"]) == {case[0] for case in cases()}


def test_single_options_differ_from_a_convention():
    options = NormOptions.of(convention="hyperion", combine="mean", top_k=7)
    assert (options.combine, options.ddof, options.select, options.top_k) == ("mean", 0, "cross", 7)
