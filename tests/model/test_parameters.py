"""Parameters, residual densities and simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import evenscore
from evenscore import InputError, ScoreModel, ScoreModelNormalizer, fit_score_model, simulate, simulate_blocks
from evenscore.model import ResidualDensities

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.8, 0.1], [0.2, 1.1]], beta=[[0.5, 0.0], [0.3, 0.6]], sigma2=[1.0, 1.5])
DENSITIES = ResidualDensities(location=[0.1, -0.2], scale=[0.8, 1.1], skew=[0.3, -0.5], tail=[2.0, 0.7])


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"mu": [1.0]}, "mu"),
        ({"alpha": [[1.0], [1.0]]}, "beta"),
        ({"sigma2": [1.0, 0.0]}, "sigma2"),
        ({"beta": [[np.nan, 0], [0, 0]]}, "beta"),
        ({"mu": ["a", "b"]}, "mu"),
    ],
)
def test_odd_parameters_are_refused(change, culprit):
    with pytest.raises(InputError, match=culprit):
        replace(MODEL, **change)


def test_scaling_and_transposing_scores_moves_the_model():
    scores, labels = simulate(MODEL, list("aabbc"), list("abcd"), seed=2)
    from evenscore import log_likelihood

    value = log_likelihood(MODEL, scores, labels)
    assert log_likelihood(MODEL.rescaled(2.0, 5.0), 2 * scores.scores + 5, labels) == pytest.approx(
        value - 20 * np.log(2)
    )
    assert log_likelihood(MODEL.T, scores.scores.T, labels.matrix.T) == pytest.approx(value)
    wide = replace(MODEL, alpha=np.pad(MODEL.alpha, ((0, 0), (0, 1))), beta=np.pad(MODEL.beta, ((0, 0), (0, 1))))
    assert log_likelihood(wide, scores, labels) == pytest.approx(value)


def test_the_bound_of_the_llr():
    normalizer, bound = ScoreModelNormalizer(MODEL), MODEL.llr_bound()
    at = [normalizer.normalize_one(bound.vertex + step) for step in (-0.01, 0.0, 0.01)]
    assert at[1] == pytest.approx(bound.extreme)
    assert at[1] <= min(at)
    share = norm.cdf((bound.vertex - MODEL.mu) / np.sqrt(MODEL.sigma2 + MODEL.variances.nu))
    np.testing.assert_allclose(bound.beyond, share)
    assert np.isnan(ScoreModel(mu=[0, 1], alpha=[[], []], beta=[[], []], sigma2=[1, 1]).llr_bound().vertex)


@pytest.mark.parametrize("label", [0, 1])
def test_densities_integrate_to_one(label):
    total, _ = quad(
        lambda z: np.exp(DENSITIES.log_density(np.array(z), label)), -200, 200, limit=400, points=[-2, 0, 2]
    )
    assert total == pytest.approx(1, abs=1e-7)


def test_llrs_with_densities_are_ratios_of_them():
    model, rng = replace(MODEL, residuals=DENSITIES), np.random.default_rng(0)
    cohort, e, t, s = rng.normal(size=(5, 4)), rng.normal(size=(2, 4)), rng.normal(size=(5, 3)), rng.normal(size=(2, 3))
    normalizer = ScoreModelNormalizer(model, cohort)
    whole = np.block([[cohort, t[:, 2:]], [e[1:], np.nan]])
    posterior = evenscore.posterior(MODEL, whole, np.zeros((6, 5)))
    both = np.concatenate([MODEL.alpha, MODEL.beta], axis=1)
    at = np.r_[10:12, 20:22]  # x and y of the trial
    p = MODEL.mu + both @ np.concatenate([posterior.enroll[-1], posterior.test[-1]])
    scale = np.sqrt(MODEL.sigma2 + np.diag(both @ posterior.covariance[np.ix_(at, at)] @ both.T))
    logs = [float(DENSITIES.log_density((s[1, 2] - p[h]) / scale[h], h)) - np.log(scale[h]) for h in (0, 1)]
    assert normalizer.llr(s, e, t)[1, 2] == pytest.approx(logs[1] - logs[0])
    assert normalizer.normalize_one(s[1, 2], e[1], t[:, 2]) == pytest.approx(logs[1] - logs[0])


def test_gaussian_scores_have_nearly_gaussian_residuals_and_skewed_ones_do_not():
    speakers = [f"s{n % 30}" for n in range(150)]
    scores, labels = simulate(MODEL, speakers, speakers, seed=5)
    gaussian = fit_score_model(scores, labels, residuals="hyperbolic").model.residuals
    assert gaussian.tail.min() > 5
    assert abs(gaussian.skew).max() < 0.3
    skewed = scores.scores + np.random.default_rng(0).exponential(3.0, scores.shape)
    bent = fit_score_model(skewed, labels, residuals="hyperbolic").model.residuals
    assert bent.skew.min() > 0.3
    listed = fit_score_model(scores.with_scores(skewed).to_trials(labels), residuals="hyperbolic").model.residuals
    np.testing.assert_allclose(listed.skew, bent.skew, atol=0.1)
    few = fit_score_model(
        scores.take(np.flatnonzero(np.isin(speakers, ["s0", "s1"])), None),
        labels.take(np.flatnonzero(np.isin(speakers, ["s0", "s1"])), None),
        residuals="hyperbolic",
    )
    assert few.model.residuals is None


def test_simulation_draws_from_the_model():
    speakers = [f"s{n % 40}" for n in range(200)]
    scores, labels = simulate(MODEL, speakers, speakers, seed=7)
    for h in (0, 1):
        part = scores.scores[labels.matrix == h]
        assert part.mean() == pytest.approx(MODEL.mu[h], abs=0.35)
        assert part.var() == pytest.approx(MODEL.sigma2[h] + MODEL.variances.nu[h], rel=0.2)
    again, _ = simulate(MODEL, speakers, speakers, seed=7)
    np.testing.assert_array_equal(again.scores, scores.scores)
    blocks, key = simulate_blocks(MODEL, ["a"], ["a", "b"], ["c"] * 3, ["c", "d"], seed=1)
    assert (blocks.enroll.shape, blocks.test.shape, blocks.cohort_labels.counts) == ((1, 2), (3, 2), (3, 3, 0))
    assert key.matrix.tolist() == [[1, 0]]
    with pytest.raises(InputError, match="known"):
        simulate(MODEL, ["a", None], ["b"])
