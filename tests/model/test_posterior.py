"""Every fast posterior against the dense formula of the paper."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, strategies as st

from designs import draw_scores, keys, models, speaker_designs
from evenscore import Labels, ScoreMatrix, TrialList, log_likelihood
from evenscore.model import elimination, pattern_posterior
from evenscore.model.em import expect, m_step
from evenscore.model.pattern_posterior import PatternStatistics
from evenscore.model.patterns import ShapeStatistics, SpeakerBlocks, exceptions_of_key, pattern_of_key
from evenscore.model.statistics import label_sums, standardize
from examples import examples
from reference.dense_score_model import dense_log_likelihood, dense_moments
from tilings import over_tilings, tiled


def assert_moments(model, data, scores, key):
    """Compare the E-step in standardized units with the dense one on the standardized scores."""
    statistics = standardize(label_sums(data))
    stats = statistics[0]
    standard = model.rescaled(1 / stats.scale, -stats.center / stats.scale)
    moments = expect(standard, statistics)
    with np.errstate(invalid="ignore"):
        expected = dense_moments(standard, (scores - stats.center[np.maximum(key, 0)]) / stats.scale, key)
    for name in ("ww", "sw", "ss", "log_likelihood"):
        np.testing.assert_allclose(getattr(moments, name), getattr(expected, name), rtol=1e-9, atol=1e-9)
    for side in ("enroll", "test"):
        for name in ("count", "first", "second"):
            np.testing.assert_allclose(
                getattr(getattr(moments, side), name), getattr(getattr(expected, side), name), rtol=1e-9, atol=1e-9
            )
    return stats


@over_tilings
@examples(60)
@given(models(), speaker_designs(), st.integers(0, 2**31), st.sampled_from([0.0, 1e4]))
def test_speaker_blocks_equal_the_dense_formula(tiling, model, design, seed, offset):
    labels = Labels.from_speakers(*design)
    scores = draw_scores(labels.shape, seed, offset=offset)
    table = tiled(ScoreMatrix(scores, *(range(size) for size in labels.shape)), tiling)
    stats = assert_moments(model.rescaled(1.0, offset), [(table, labels)], scores, labels.matrix)
    assert isinstance(stats, ShapeStatistics)


@over_tilings
@examples(60)
@given(models(), st.lists(st.sampled_from("abcd"), min_size=1, max_size=8), speaker_designs(largest=3), st.data())
def test_utterances_that_are_not_compared_with_themselves(tiling, model, both, others, data):
    """Those of some speakers stand on both sides, in any order; those of others do not, and have all scores."""
    enroll = [f"u{n}" for n in range(len(both))] + [f"e{n}" for n in range(len(others[0]))]
    test = data.draw(st.permutations(range(len(both))), "order of the columns")
    names = [f"u{n}" for n in test] + [f"t{n}" for n in range(len(others[1]))]
    who = [both + [f"x{name}" for name in others[0]], [both[n] for n in test] + [f"x{name}" for name in others[1]]]
    labels = Labels.from_speakers(*who, enroll_ids=enroll, test_ids=names)
    missing = np.array([[one == other for other in names] for one in enroll])
    key = np.where(missing, -1, labels.matrix)
    if not (key >= 0).any():
        return
    scores = draw_scores(key.shape, data.draw(st.integers(0, 2**31), "seed"))
    table = tiled(ScoreMatrix(scores, enroll, names, missing=missing), tiling)
    assert isinstance(assert_moments(model, [(table, labels)], scores, key), ShapeStatistics)
    by_key = [(tiled(ScoreMatrix(scores, enroll, names, missing=missing), tiling), Labels.from_key(key))]
    assert isinstance(assert_moments(model, by_key, scores, key), ShapeStatistics)


@over_tilings
@examples(80)
@given(models(), keys(), st.integers(0, 2**31))
def test_any_pattern_equals_the_dense_formula(tiling, model, key, seed):
    if not (key >= 0).any():
        return
    scores = draw_scores(key.shape, seed)
    matrix = ScoreMatrix(scores, range(key.shape[0]), range(key.shape[1]), missing=key < 0)
    assert_moments(model, [(tiled(matrix, tiling), Labels.from_key(key))], scores, key)


@over_tilings
@examples(40)
@given(models(), keys(), st.integers(0, 2**31))
def test_a_trial_list_equals_the_dense_formula(tiling, model, key, seed):
    if not (key >= 0).any():
        return
    scores = draw_scores(key.shape, seed)
    i, j = np.nonzero(key >= 0)
    trials = TrialList(range(key.shape[0]), range(key.shape[1]), i, j, scores=scores[i, j], labels=key[i, j])
    assert_moments(model, tiled(trials, tiling), scores, key)


@examples(20)
@given(models(dims=(2,)), keys(largest=9), st.integers(0, 2**31))
def test_components_in_small_chunks(model, key, seed):
    """Large components are eliminated in pieces, or sparse; here all count as large, and each piece is a row."""
    if not (key >= 0).any():
        return
    scores = draw_scores(key.shape, seed)
    matrix = ScoreMatrix(scores, range(key.shape[0]), range(key.shape[1]), missing=key < 0)
    with mock.patch.object(elimination, "_CHUNK", 1), mock.patch.object(pattern_posterior, "_LARGE", 1):
        assert_moments(model, [(matrix, Labels.from_key(key))], scores, key)


@over_tilings
@examples(30)
@given(models(), st.lists(keys(largest=4), min_size=1, max_size=3), st.integers(0, 2**31))
def test_several_matrices_are_independent(tiling, model, patterns, seed):
    data, expected = [], 0.0
    for number, key in enumerate(patterns):
        if not (key >= 0).any():
            continue
        scores = draw_scores(key.shape, seed + number)
        matrix = ScoreMatrix(scores, range(key.shape[0]), range(key.shape[1]), missing=key < 0)
        data.append((tiled(matrix, tiling), Labels.from_key(key)))
        expected += dense_log_likelihood(model, scores, key)
    if data:
        np.testing.assert_allclose(log_likelihood(model, data), expected, rtol=1e-9, atol=1e-9)


@examples(20)
@given(models(), speaker_designs(largest=5), st.integers(0, 2**31), st.integers(2, 4))
def test_matrices_of_one_structure_are_kept_together(model, design, seed, number):
    labels = Labels.from_speakers(*design)
    scores = [draw_scores(labels.shape, seed + n, offset=n) for n in range(number)]
    statistics = standardize(label_sums([(part, labels) for part in scores]))
    assert len(statistics) == 1
    stats = statistics[0]
    standard = model.rescaled(1 / stats.scale, -stats.center / stats.scale)
    moments = expect(standard, statistics)
    parts = [dense_moments(standard, (s - stats.center[labels.matrix]) / stats.scale, labels.matrix) for s in scores]
    for name in ("ww", "sw", "ss", "log_likelihood"):
        expected = np.sum([getattr(part, name) for part in parts], axis=0)
        np.testing.assert_allclose(getattr(moments, name), expected, rtol=1e-9, atol=1e-9)
    for side in ("enroll", "test"):
        for name in ("count", "first", "second"):
            expected = np.sum([getattr(getattr(part, side), name) for part in parts], axis=0)
            np.testing.assert_allclose(getattr(getattr(moments, side), name), expected, rtol=1e-9, atol=1e-9)


def test_patterns_are_recognized():
    blocks = Labels.from_speakers(["a", "b", "b", "x"], ["b", "b", "a", "y"]).matrix
    assert isinstance(pattern_of_key(blocks), SpeakerBlocks)
    broken = blocks.copy()
    broken[1, 0] = 0  # one pair of the block of b is no target
    pattern = pattern_of_key(broken)
    assert not isinstance(pattern, SpeakerBlocks)
    assert pattern.background
    assert not exceptions_of_key(np.full((3, 3), -1, dtype=np.int8)).background


def test_explicit_key_of_blocks_takes_the_fast_way():
    labels = Labels.from_speakers(["a", "b", "b"], ["b", "a", "c"])
    scores = draw_scores((3, 3), 1)
    (stats,) = standardize(label_sums([(scores, Labels.from_key(labels.matrix))]))
    assert isinstance(stats, ShapeStatistics)
    own = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]], dtype=bool)  # the only pair of a
    one, other = (
        np.array([[0, 0, 0], [first, 0, 0], [second, 0, 0]], dtype=bool) for first, second in ((1, 0), (1, 1))
    )
    for absent, wanted in (
        (own, ShapeStatistics),
        (np.eye(3, dtype=bool), PatternStatistics),
        (one, PatternStatistics),
        (other, PatternStatistics),
    ):
        (stats,) = standardize(label_sums([(ScoreMatrix(scores, list("abc"), list("xyz"), missing=absent), labels)]))
        assert isinstance(stats, wanted)


@over_tilings
def test_rows_without_scores_change_nothing(tiling):
    key = np.array([[1, 0, 0], [-1, -1, -1], [0, 1, 0]], dtype=np.int8)
    scores = draw_scores(key.shape, 2)
    full = ScoreMatrix(scores, list("abc"), list("xyz"), missing=key < 0)
    (stats,) = standardize(label_sums([(tiled(full, tiling), Labels.from_key(key))]))
    assert isinstance(stats, ShapeStatistics)  # what is left is complete
    assert stats.n_rows == 2


def test_one_step_never_lowers_the_likelihood_from_anywhere():
    rng = np.random.default_rng(0)
    key = (rng.random((12, 9)) < 0.3).astype(np.int8)
    key[rng.random(key.shape) < 0.2] = -1
    scores = rng.normal(size=key.shape)
    matrix = ScoreMatrix(scores, range(12), range(9), missing=key < 0)
    statistics = standardize(label_sums([(matrix, Labels.from_key(key))]))
    for seed in range(20):
        draw = np.random.default_rng(seed)
        from evenscore import ScoreModel

        model = ScoreModel(
            mu=draw.normal(size=2),
            alpha=draw.normal(size=(2, 2)),
            beta=draw.normal(size=(2, 2)),
            sigma2=np.exp(draw.normal(size=2)),
        )
        for min_divergence in (True, False):
            before = expect(model, statistics)
            after = expect(m_step(before, min_divergence=min_divergence), statistics)
            assert after.log_likelihood >= before.log_likelihood - 1e-9


@pytest.mark.parametrize("bad", [[], [(np.zeros((2, 2)), "labels")], [np.zeros((2, 2))]])
def test_data_that_is_not_labelled_scores(bad):
    from evenscore import InputError, ScoreModel

    model = ScoreModel(mu=[0, 1], alpha=[[1], [1]], beta=[[1], [1]], sigma2=[1, 1])
    with pytest.raises(InputError, match="pair"):
        log_likelihood(model, bad)
