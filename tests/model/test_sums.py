from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from designs import draw_scores, keys, speaker_designs
from evenscore import Labels, TrialList
from evenscore.model.list_sums import sum_list
from evenscore.model.sums import sum_tile
from evenscore.tables import Tile
from examples import examples

pytestmark = pytest.mark.usefixtures("route")

FIELDS = ("rows", "columns", "squares", "row_counts", "column_counts")


def sum_matrix(scores, labels, center=None):
    return sum_tile(Tile(scores, *(slice(0, size) for size in scores.shape)), labels, center)


def naive_sums(scores, key, center):
    """Every sum by a loop over the pairs, in extended precision."""
    out = {
        "rows": np.zeros((2, key.shape[0]), np.longdouble),
        "columns": np.zeros((2, key.shape[1]), np.longdouble),
        "squares": np.zeros(2, np.longdouble),
        "row_counts": np.zeros((2, key.shape[0])),
        "column_counts": np.zeros((2, key.shape[1])),
    }
    for (i, j), h in np.ndenumerate(key):
        if h < 0 or np.isnan(scores[i, j]):
            continue
        value = np.longdouble(scores[i, j]) - np.longdouble(center)
        out["rows"][h, i] += value
        out["columns"][h, j] += value
        out["squares"][h] += value * value
        out["row_counts"][h, i] += 1
        out["column_counts"][h, j] += 1
    return out


def assert_same(sums, expected, tol=1e-12):
    for name in FIELDS:
        np.testing.assert_allclose(getattr(sums, name), np.asarray(expected[name], float), rtol=tol, atol=tol * 100)


@examples(60)
@given(speaker_designs(largest=9), st.integers(0, 2**31), st.sampled_from([np.float32, np.float64]))
def test_speaker_blocks_equal_the_loop(design, seed, dtype):
    labels = Labels.from_speakers(*design)
    scores = draw_scores(labels.shape, seed).astype(dtype)
    assert_same(sum_matrix(scores, labels, center=0.5), naive_sums(scores, labels.matrix, 0.5))


@examples(60)
@given(keys(largest=9), st.integers(0, 2**31))
def test_any_key_equals_the_loop(key, seed):
    scores = draw_scores(key.shape, seed)
    assert_same(sum_matrix(scores, Labels.from_key(key), center=-1.0), naive_sums(scores, key, -1.0))


@examples(60)
@given(
    speaker_designs(largest=12, smallest=2),
    st.integers(0, 2**31),
    st.lists(st.integers(1, 11), max_size=3),
    st.lists(st.integers(1, 11), max_size=3),
    st.sampled_from([0.0, 1e6, -1e9]),
)
def test_chunks_add_up_to_the_whole(design, seed, row_cuts, column_cuts, offset):
    rows, columns = design
    labels = Labels.from_speakers(rows, columns)
    scores = draw_scores(labels.shape, seed, offset=offset)
    whole = sum_matrix(scores, labels)
    total = None
    row_edges = sorted({0, len(rows), *(c for c in row_cuts if c < len(rows))})
    column_edges = sorted({0, len(columns), *(c for c in column_cuts if c < len(columns))})
    for top, bottom in pairwise(row_edges):
        for left, right in pairwise(column_edges):
            part = sum_tile(Tile(scores[top:bottom, left:right], slice(top, bottom), slice(left, right)), labels)
            total = part if total is None else total + part
    total = total.recentered(whole.center)
    for name in FIELDS:
        np.testing.assert_allclose(getattr(total, name), getattr(whole, name), rtol=1e-12, atol=1e-11)


def test_a_large_offset_costs_no_digits():
    labels = Labels.from_speakers(["a", "b", "c"], ["a", "b", "c", "c"])
    scores = draw_scores((3, 4), 0)
    plain, shifted = sum_matrix(scores, labels), sum_matrix(scores + 2.0**40, labels)
    variance = [s.squares - s.total**2 / s.count for s in (plain, shifted)]
    np.testing.assert_allclose(variance[1], variance[0], rtol=2e-3)  # the shift itself rounds scores to 2^-12
    exact = sum_matrix(np.round(scores * 1024) / 1024 + 2.0**40, labels)
    rounded = sum_matrix(np.round(scores * 1024) / 1024, labels)
    np.testing.assert_allclose(
        exact.squares - exact.total**2 / exact.count, rounded.squares - rounded.total**2 / rounded.count, rtol=1e-12
    )


@pytest.mark.parametrize("view", [lambda a: a[::2, ::3], lambda a: a.T, np.asfortranarray, lambda a: a[:, ::-1]])
def test_any_memory_layout(view):
    scores = view(draw_scores((12, 12), 3))
    labels = Labels.from_speakers(range(scores.shape[0]), range(scores.shape[1]))
    assert_same(sum_matrix(scores, labels, center=0.0), naive_sums(scores, labels.matrix, 0.0))


def test_unknown_speakers_and_missing_scores_are_skipped():
    labels = Labels.from_speakers(["a", None, "b"], ["a", "b", None, "b"])
    scores = draw_scores((3, 4), 5)
    scores[0, 1] = np.nan
    assert_same(sum_matrix(scores, labels, center=0.0), naive_sums(scores, labels.matrix, 0.0))


@examples(30)
@given(keys(), st.integers(0, 2**31))
def test_a_trial_list_has_the_sums_of_its_matrix(key, seed):
    scores = draw_scores(key.shape, seed)
    i, j = np.nonzero(np.ones_like(key))
    trials = TrialList(range(key.shape[0]), range(key.shape[1]), i, j, scores=scores[i, j], labels=key[i, j])
    found = sum_list(trials, center=0.25)
    names = {"rows": found.enroll.sums, "columns": found.test.sums, "squares": found.enroll.squares.sum(axis=1)}
    names |= {"row_counts": found.enroll.counts, "column_counts": found.test.counts}
    assert_same(SimpleNamespace(**names), naive_sums(scores, key, 0.25))
