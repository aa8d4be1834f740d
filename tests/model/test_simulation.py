"""Simulated scores follow the model, and the model does what it promises on them."""

import numpy as np
import pytest

from evenscore import (
    InputError,
    Labels,
    ScoreBlocks,
    ScoreModel,
    ScoreModelNormalizer,
    evaluate,
    fit_score_model,
    simulate,
    simulate_blocks,
)

MODEL = ScoreModel(mu=[-2.0, 3.0], alpha=[[1.2, 0.0], [0.8, 0.9]], beta=[[0.9, 0.3], [0.7, 0.6]], sigma2=[1.0, 1.5])


def names(prefix, n_speakers, each):
    return [f"{prefix}{n % n_speakers}" for n in range(n_speakers * each)]


def errors_of(scores, labels):
    """All metrics of which less is better."""
    found = evaluate(scores.ravel(), labels.matrix.ravel(), points=[0.5, 0.1, 0.01])
    costs = {f"{kind} {cost['p_target']}": cost[kind] for cost in found["dcf"] for kind in ("min_dcf", "act_dcf")}
    return {name: found[name] for name in ("eer", "cllr", "min_cllr", "calibration_loss")} | costs


def test_the_same_seed_gives_the_same_scores_however_they_are_chunked(monkeypatch):
    speakers = names("s", 5, 3), names("s", 4, 2)
    scores, labels = simulate(MODEL, *speakers, seed=4)
    assert simulate(MODEL, *speakers, seed=4)[0] == scores
    assert simulate(MODEL, *speakers, seed=5)[0] != scores
    monkeypatch.setattr("evenscore.model.simulation._SCORES", 20)
    assert simulate(MODEL, *speakers, seed=4)[0] == scores
    assert labels == Labels.from_speakers(*speakers, enroll_ids=scores.enroll_ids, test_ids=scores.test_ids)
    single = simulate(MODEL, *speakers, seed=4, dtype=np.float32)[0]
    assert single.scores.dtype == np.float32
    np.testing.assert_allclose(single.scores, scores.scores, rtol=1e-6)


def test_scores_have_the_moments_of_the_model():
    n_matrices, size = 1500, 6
    speakers = [f"s{n // 3}" for n in range(size)]
    key = Labels.from_speakers(speakers, speakers).matrix
    draws = np.stack([simulate(MODEL, speakers, speakers, seed=n)[0].scores for n in range(n_matrices)])
    variance = MODEL.variances
    for h in (0, 1):
        whole = variance.sigma2[h] + variance.nu[h]
        values = draws[:, key == h]
        assert values.mean() == pytest.approx(MODEL.mu[h], abs=5 * np.sqrt(whole / n_matrices))
        # five standard errors, as if the scores of a matrix were one
        assert values.var() == pytest.approx(whole, rel=5 * np.sqrt(2 / n_matrices))
    # two scores of one row share x, two of one column share y, others share nothing
    close = 5 * np.sqrt(2 / n_matrices) * (variance.sigma2 + variance.nu).max()
    for (i, j), (k, q), expected in [
        ((0, 0), (0, 1), variance.nu_enroll[1]),
        ((0, 0), (0, 4), variance.enroll_covariance[0, 1]),
        ((0, 3), (1, 3), variance.nu_test[0]),
        ((0, 0), (4, 0), variance.test_covariance[0, 1]),
        ((0, 0), (1, 1), 0.0),
    ]:
        assert np.cov(draws[:, i, j], draws[:, k, q])[0, 1] == pytest.approx(expected, abs=close)


def test_blocks_share_their_hidden_variables():
    silent = ScoreModel(mu=MODEL.mu, alpha=MODEL.alpha, beta=MODEL.beta, sigma2=[1e-12, 1e-12])
    blocks, labels = simulate_blocks(silent, ["a", "b"], ["a", "b", "c"], ["u", "v"], ["u", "w", "w"], seed=2)
    assert labels.matrix.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert blocks.cohort_labels.matrix.tolist() == [[1, 0, 0], [0, 0, 0]]
    # without noise a non-target score is mu + f(row) + g(column): differences of two rows agree in all blocks
    S, S_e, S_t, S_I = (block.scores for block in (blocks.trials, blocks.enroll, blocks.test, blocks.cohort))
    difference = S_e[0] - S_e[1]
    np.testing.assert_allclose(difference, difference[0], atol=1e-5)
    np.testing.assert_allclose(S[0, 2] - S[1, 2], difference[0], atol=1e-5)
    np.testing.assert_allclose(S_t[0, 0] - S_t[1, 0], S_I[0, 1] - S_I[1, 1], atol=1e-5)


def test_normalized_scores_are_calibrated_and_better_in_every_metric():
    speakers, cohort = names("s", 40, 8), names("c", 50, 4)
    blocks, labels = simulate_blocks(MODEL, speakers, speakers, cohort, cohort, seed=1)
    assert labels.shape[0] * labels.shape[1] > 1e5
    raw = errors_of(blocks.trials.scores, labels)
    normalized = errors_of(ScoreModelNormalizer(MODEL, blocks).normalize(blocks).scores, labels)
    assert normalized["calibration_loss"] < 0.01
    assert all(normalized[name] < raw[name] for name in raw)
    # not only better than uncalibrated scores: the same model without a cohort calibrates, but cannot discriminate more
    alone = ScoreBlocks(blocks.trials)
    calibrated = errors_of(ScoreModelNormalizer(MODEL, None).normalize(alone).scores, labels)
    assert normalized["cllr"] < 0.6 * calibrated["cllr"]


def test_a_trained_model_normalizes_as_well_as_the_true_one():
    speakers, cohort = names("s", 40, 8), names("c", 50, 4)
    trained = fit_score_model([simulate(MODEL, cohort, cohort, seed=9)]).model
    blocks, labels = simulate_blocks(MODEL, speakers, speakers, cohort, cohort, seed=1)
    true = errors_of(ScoreModelNormalizer(MODEL, blocks).normalize(blocks).scores, labels)
    found = errors_of(ScoreModelNormalizer(trained, blocks).normalize(blocks).scores, labels)
    assert found["calibration_loss"] < 0.01
    assert found["cllr"] < true["cllr"] + 0.01


def test_parameters_are_recovered_within_their_sampling_error():
    n_fits = 12
    speakers = names("s", 40, 5)
    fits = [fit_score_model([simulate(MODEL, speakers, speakers, seed=n)]).model for n in range(n_fits)]

    def facts(model):
        table = model.variances
        return np.concatenate(
            [model.mu, model.sigma2, table.enroll_covariance[[0, 0, 1], [0, 1, 1]], table.test_covariance.ravel()]
        )

    found = np.stack([facts(model) for model in fits])
    error = found.std(axis=0, ddof=1) / np.sqrt(n_fits)
    # 4.4 is the 0.1 % quantile of Student's t with 11 degrees of freedom; the likelihood's own bias is of order 1/K
    bias = np.abs(facts(MODEL)) / len(speakers)
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - facts(MODEL)), 4.4 * error + bias)
    assert (found.std(axis=0) < 0.5 * np.abs(facts(MODEL)) + 0.1).all()


def test_without_hidden_effects_calibrated_scores_stay_as_they_are():
    calibrated = ScoreModel(mu=[-3.0, 3.0], alpha=np.zeros((2, 2)), beta=np.zeros((2, 2)), sigma2=[6.0, 6.0])
    speakers, cohort = names("s", 20, 3), names("c", 10, 2)
    blocks, _ = simulate_blocks(calibrated, speakers, speakers, cohort, cohort, seed=3)
    result = ScoreModelNormalizer(calibrated, blocks).normalize(blocks)
    np.testing.assert_allclose(result.scores, blocks.trials.scores, rtol=1e-12, atol=1e-12)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(InputError, match="every speaker must be known"):
        simulate(MODEL, ["a", None], ["a"])
    with pytest.raises(InputError, match="dtype is float16"):
        simulate(MODEL, ["a"], ["a"], dtype=np.float16)
    with pytest.raises(InputError, match="every speaker must be known"):
        simulate_blocks(MODEL, ["a"], ["a"], [""], ["c"])
