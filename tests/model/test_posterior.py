"""The E-step, the likelihood and the posterior against the dense formulas of the paper, for every pattern of scores."""

import numpy as np
import pytest

from evenscore import Labels, TrialList, log_likelihood, posterior
from evenscore.model.em import m_step
from evenscore.model.pattern import PairLabels, find_pattern
from evenscore.model.posterior import expect
from evenscore.model.statistics import collect
from evenscore.model.sums import labelled_parts, part_sums
from reference.paper import em_step, log_marginal, posterior as dense_posterior
from reference.score_designs import KINDS, draw_key, draw_model, draw_scores, labels_of


def draw_parts(rng, kind, n_parts, largest=9):
    """Return (scores, key, labels) of matrices that have some scores."""
    parts = []
    while len(parts) < n_parts or sum((key >= 0).sum() for _, key, _ in parts) < 4:
        key, speakers = draw_key(rng, kind, largest)
        parts.append((draw_scores(rng, key), key, labels_of(rng, kind, key, speakers)))
    return parts


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_is_the_papers(kind, dim):
    for seed in range(12):
        rng = np.random.default_rng([seed, dim])
        parts, model = draw_parts(rng, kind, 1 + seed % 3), draw_model(rng, dim)
        found = log_likelihood(model, [(scores, labels) for scores, _, labels in parts])
        expected = sum(log_marginal(model, scores, key) for scores, key, _ in parts)
        assert found == pytest.approx(expected, rel=1e-10), seed


@pytest.mark.parametrize("dim", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_an_iteration_of_em_is_the_papers(kind, dim):
    compared = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, dim])
        parts, model = draw_parts(rng, kind, 2 + seed % 2, 14), draw_model(rng, dim)
        keys = np.concatenate([key.ravel() for _, key, _ in parts])
        if min((keys == 0).sum(), (keys == 1).sum()) < 2:
            continue  # one class has no distribution
        stats = collect([part_sums(*part) for part in labelled_parts([(s, labels) for s, _, labels in parts])])
        standard = (model.T if stats.transposed else model).rescaled(1 / stats.scale, -stats.center / stats.scale)
        found = m_step(expect(standard, stats)).rescaled(stats.scale, stats.center)
        found = found.T if stats.transposed else found
        expected = em_step(model, [(scores, key) for scores, key, _ in parts])
        for name in ("mu", "alpha", "beta", "sigma2"):
            wanted = getattr(expected, name)
            np.testing.assert_allclose(getattr(found, name), wanted, rtol=1e-7, atol=1e-9, err_msg=f"{name} {seed}")
        compared += 1
    assert compared > 2


def test_mixed_matrices_have_hidden_variables_of_their_own():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = draw_model(rng, 2)
        parts = [draw_parts(rng, kind, 1)[0] for kind in rng.choice(KINDS, 3)]
        found = log_likelihood(model, [(scores, labels) for scores, _, labels in parts])
        assert found == pytest.approx(sum(log_marginal(model, s, key) for s, key, _ in parts), rel=1e-10)


def test_lists_are_matrices_with_missing_pairs():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        scores, key, _ = draw_parts(rng, "list", 1)[0]
        rows, cols = np.nonzero(key >= 0)
        order = rng.permutation(len(rows))
        rows, cols = rows[order], cols[order]
        trials = TrialList([f"e{i}" for i in rows], [f"t{j}" for j in cols], scores[rows, cols], key[rows, cols])
        model = draw_model(rng, 2)
        expected = log_marginal(model, scores, key)
        assert log_likelihood(model, trials) == pytest.approx(expected, rel=1e-11)
        assert log_likelihood(model, [(trials.with_labels(None), trials)]) == pytest.approx(expected, rel=1e-11)


def test_classes_are_few_where_members_are_exchangeable():
    speakers = np.repeat(np.arange(5), 4)
    key = (speakers[:, None] == speakers).astype(np.int8)
    by_speaker = find_pattern(PairLabels.from_labels(Labels.from_speakers(speakers, speakers)))
    assert len(by_speaker.row_size) == len(by_speaker.col_size) == 5
    np.fill_diagonal(key, -1)
    matched = find_pattern(PairLabels.from_key(key))
    assert len(matched.row_size) == 5
    assert (matched.match >= 0).all()
    key[0, 1] = 0
    assert 5 < len(find_pattern(PairLabels.from_key(key)).row_size) < 10


@pytest.mark.parametrize("kind", KINDS)
def test_every_em_step_raises_the_likelihood(kind):
    rng = np.random.default_rng(5)
    parts = [(s, labels) for s, _, labels in draw_parts(rng, kind, 4)]
    stats = collect([part_sums(*part) for part in labelled_parts(parts)])
    if not stats.count.all():
        pytest.skip("one class has no scores")
    model, values = draw_model(rng, 2), []
    for _ in range(15):
        moments = expect(model, stats)
        values.append(moments.log_likelihood)
        model = m_step(moments)
    assert min(np.diff(values)) > -1e-9


def test_posterior_of_all_hidden_variables():
    rng = np.random.default_rng(0)
    scores, key, labels = draw_parts(rng, "missing", 1)[0]
    model = draw_model(rng, 2)
    found = posterior(model, scores, labels)
    precision, mean = dense_posterior(model, scores, key)
    np.testing.assert_allclose(np.concatenate([found.enroll, found.test]).ravel(), mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(precision), rtol=1e-9, atol=1e-12)
