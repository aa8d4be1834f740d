"""Every method and option against the naive twin, on awkward blocks in memory and in ragged dask arrays."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from evenscore import Labels, TrialList, normalize
from evenscore.norms import CLASSICAL
from norms.norm_blocks import assert_same, block_cases, make_blocks, ragged, replaced
from reference.naive_norms import naive_normalize

HOW = st.fixed_dictionaries(
    {
        "statistic": st.sampled_from(["mean", "mean", "trimmed", "median"]),
        "trim": st.sampled_from([0.0, 0.1, 0.4]),
        "ddof": st.sampled_from([0, 1]),
        "combine": st.sampled_from(["mean", "sqrt2"]),
        "empty": st.sampled_from(["missing", "raw"]),
        # Something must keep equal scores from being an error. The floor is no power of ten, so that it shows.
        "std_floor": st.sampled_from([0.37, 0.0]),
        "zero_std": st.just("one"),
    }
)


def assert_twins_agree(blocks, method, dask=False, **options):
    expected = naive_normalize(blocks, method, **options)
    found = normalize(ragged(blocks) if dask else blocks, method, **options)
    assert type(found) is type(blocks.trials)
    assert found.scores.dtype == blocks.trials.scores.dtype
    assert_same(found, expected, blocks.enroll.scores.dtype)


def draw_options(data, blocks, method, select="own"):
    smallest = min(blocks.enroll.shape[1], blocks.test.shape[0])
    options = {"drop_top": data.draw(st.integers(0, min(2, smallest - 1)), "drop_top")}
    options["dask"] = data.draw(st.booleans(), "dask")
    if method.startswith("a"):
        options |= {"top_k": data.draw(st.integers(1, smallest - options["drop_top"]), "top_k"), "select": select}
    return options


@pytest.mark.parametrize("method", CLASSICAL)
@given(data=st.data(), blocks=block_cases(), how=HOW)
def test_norms_equal_the_naive_ones(method, data, blocks, how):
    assert_twins_agree(blocks, method, **how, **draw_options(data, blocks, method))


@pytest.mark.parametrize("method", ["az", "at", "as"])
@pytest.mark.parametrize(
    ("select", "cohorts"),
    [("cross", {"same_cohort": True}), ("cross", {"same_speakers": True, "speakers": 2}), ("profile", {})],
    ids=["cross, same cohort", "cross, same speakers", "profile"],
)
@given(data=st.data(), how=HOW)
def test_cohorts_that_the_other_side_ranks(method, select, cohorts, data, how):
    blocks = data.draw(block_cases(**cohorts))
    assert_twins_agree(blocks, method, **how, **draw_options(data, blocks, method, select))


@pytest.mark.parametrize("method", ["s", "as", "zt", "tz"])
@given(data=st.data(), blocks=block_cases(), how=HOW)
def test_conditions_restrict_the_cohort(method, data, blocks, how):
    assert_twins_agree(blocks, method, condition="gender", **how, **draw_options(data, blocks, method))


@pytest.mark.parametrize("select", ["cross", "profile"])
@given(data=st.data(), how=HOW)
def test_conditions_come_before_rankings(select, data, how):
    blocks = data.draw(block_cases(same_cohort=True))
    assert_twins_agree(blocks, "as", condition="gender", **how, **draw_options(data, blocks, "as", select))


def labels_of(block, rng):
    return Labels.from_key(rng.choice([0, 0, 1, -1], size=block.shape), enroll_ids=block.enroll, test_ids=block.test)


@pytest.mark.parametrize("method", CLASSICAL)
@given(data=st.data(), blocks=block_cases(missing=0.1), how=HOW)
def test_what_is_not_a_nontarget_is_left_out(method, data, blocks, how):
    rng = np.random.default_rng(3)
    labelled = {name: labels_of(getattr(blocks, name), rng) for name in ("enroll", "test", "cohort")}
    if data.draw(st.booleans(), "fewer members in S_I"):
        kept = [np.arange(max(1, size - 1)) for size in blocks.cohort.shape]
        labelled["cohort"] = None
        blocks = replaced(
            blocks,
            cohort=blocks.cohort.take(*kept),
            enroll_labels=labelled["enroll"],
            test_labels=labelled["test"],
            cohort_labels=None,
        )
    blocks = replaced(blocks, **{f"{name}_labels": labels for name, labels in labelled.items()})
    options = draw_options(data, blocks.nontargets(), method)
    assert_twins_agree(blocks, method, **how, **options)


def test_a_key_of_cohort_scores_lists_what_is_no_nontarget():
    blocks = make_blocks(6, speakers=0)
    key = TrialList(["e1", "e2", "elsewhere"], ["d3", "d4", "d4"], labels=[1, -1, 1])
    assert_twins_agree(replaced(blocks, enroll_labels=key), "s")


@pytest.mark.parametrize("listed", [None, 0.3])
@pytest.mark.parametrize(("dtype", "dask"), [(np.float32, False), (np.float64, False), (np.float32, True)])
@pytest.mark.parametrize("method", CLASSICAL)
def test_larger_blocks(method, listed, dtype, dask):
    size = (40, 50) if method in ("zt", "tz") else (90, 130)
    blocks = make_blocks(3, 9, 11, *size, speakers=2, missing=0.1, listed=listed, dtype=dtype)
    assert_twins_agree(blocks, method, dask, **({"top_k": 18} if method.startswith("a") else {}))


@settings(max_examples=4)
@given(seed=st.integers(0, 99), shape=st.sampled_from(["random", "sorted", "constant but a few", "many missing"]))
def test_top_k_of_long_rows_is_exact_whatever_their_order(seed, shape):
    X = np.random.default_rng(seed).normal(size=(3, 3000)).astype(np.float32)
    if shape == "sorted":
        X.sort(axis=1)
    elif shape == "constant but a few":
        X[:, 40:] = 0.25
    elif shape == "many missing":
        X[np.random.default_rng(1).random(X.shape) < 0.9] = np.nan
    from evenscore import az_norm

    for k, drop in ((1, 0), (50, 0), (300, 7), (1500, 1), (2997, 3)):
        found = az_norm(np.array([[0.0], [1.0], [-2.0]]), X, k, drop_top=drop, zero_std="one", empty="missing")
        for s, row, score in zip((0.0, 1.0, -2.0), X, found[:, 0], strict=True):
            best = np.sort(row[~np.isnan(row)].astype(np.float64))[::-1][drop : drop + k]
            np.testing.assert_allclose(score, (s - best.mean()) / (best.std() or 1.0), rtol=2e-6, atol=2e-6)
