"""Scoring with the location-scale model: the score model in the limit, the definition, Monte Carlo."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from designs import draw_scores, keys, models, speaker_designs
from evenscore import (
    FileError,
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    fit_norm,
    prepare_norm,
    simulate_blocks,
)
from evenscore.files import load_location_scale, save_location_scale
from evenscore.location_scale import LocationScaleModel, LocationScaleNormalizer, prediction
from evenscore.location_scale.prediction import Predicted, predictive_llr
from evenscore.location_scale.scales import ScalePosterior
from reference.dense_location_scale import dense_weighted_posterior, monte_carlo_llr

MODEL = LocationScaleModel(
    ScoreModel(mu=[0.0, 3.0], alpha=[[0.6], [0.3]], beta=[[0.4], [0.5]], sigma2=[0.8, 1.2]),
    c=[0.5, 0.4],
    d=[0.4, -0.3],
    f=[0.3],
    g=[-0.2],
)
LOCATION_2D = ScoreModel(
    mu=[0.0, 4.0], alpha=[[0.5, 0.0], [0.3, 0.4]], beta=[[0.4, 0.0], [0.1, 0.3]], sigma2=[1.0, 1.5]
)


def both(model, blocks):
    return (
        np.asarray(LocationScaleNormalizer(LocationScaleModel(model), blocks).normalize(blocks).scores),
        np.asarray(ScoreModelNormalizer(model, blocks).normalize(blocks).scores),
    )


@settings(max_examples=12, deadline=None)
@given(
    models(dims=(1, 2)), speaker_designs(largest=4), speaker_designs(largest=6, smallest=2), st.integers(0, 99),
    st.sampled_from([("enroll", "test", "cohort"), ("enroll", "cohort"), ("test", "cohort"), ("enroll", "test"), ()]),
)  # fmt: skip
def test_without_scale_effects_the_scores_are_those_of_the_score_model(model, trials, cohort, seed, names):
    blocks, _ = simulate_blocks(model, *trials, *cohort, seed=seed)  # speakers meet in trials and cohort
    sides = {f"{side}_speakers": getattr(blocks, f"{side}_speakers") for side in ("enroll", "test")}
    if "cohort" in names:
        sides |= {name: getattr(blocks, name) for name in ("cohort_enroll_speakers", "cohort_test_speakers")}
    part = ScoreBlocks(blocks.trials, **{name: getattr(blocks, name) for name in names}, **(sides if names else {}))
    np.testing.assert_allclose(*both(model, part), rtol=1e-9, atol=1e-9)


@settings(max_examples=12, deadline=None)
@given(models(dims=(1, 2)), keys(largest=5, smallest=2), st.integers(0, 99), st.sampled_from([0.0, 0.3]))
def test_any_pattern_of_labels_and_missing_scores(model, key, seed, missing):
    rng = np.random.default_rng(seed)
    n, m = key.shape
    ids = {name: [f"{name}{k}" for k in range(size)] for name, size in (("e", 3), ("t", 2), ("d", n), ("c", m))}

    def matrix(rows, columns):
        scores = draw_scores((len(ids[rows]), len(ids[columns])), rng.integers(99))
        scores[rng.random(scores.shape) < missing] = np.nan
        return ScoreMatrix(scores, ids[rows], ids[columns], missing="nan")

    blocks = ScoreBlocks(
        ScoreMatrix(draw_scores((3, 2), seed), ids["e"], ids["t"]),
        enroll=matrix("e", "c"),
        test=matrix("d", "t"),
        cohort=matrix("d", "c"),
        cohort_labels=Labels.from_key(key, enroll_ids=ids["d"], test_ids=ids["c"]),
    )
    np.testing.assert_allclose(*both(model, blocks), rtol=1e-9, atol=1e-9)


def scenario(model, seed=0, cohort_size=6):
    speakers = [f"c{n % 4}" for n in range(cohort_size)]
    blocks, _ = simulate_blocks(model.location, ["a", "b"], ["a", "b", "z"], speakers, speakers[1:] * 2, seed=seed)
    return blocks


def test_the_prediction_is_the_posterior_of_the_whole_matrix(monkeypatch):
    """Means and variances against the dense formula, with the precisions that the model expects."""
    monkeypatch.setattr(prediction, "_STEP", 1e-9)
    model = LocationScaleModel(LOCATION_2D, c=[0.5, 0.4], d=[0.4, -0.3], f=[0.3, 0.1], g=[-0.2, 0.2])
    blocks = scenario(model)
    normalizer = LocationScaleNormalizer(model, blocks)
    predicted = normalizer.predict(blocks)
    cohort, D = normalizer._prepared, model.dim
    N, M = blocks.cohort.shape
    for place, (i, j) in enumerate((i, j) for i in range(2) for j in range(3)):
        u = predicted_scales(model, 0, cohort.columns, blocks.enroll.scores[i])
        v = predicted_scales(model, 1, cohort.rows, blocks.test.scores[:, j])
        scores, precision = np.zeros((N + 1, M + 1)), np.zeros((2, N + 1, M + 1))
        scores[:N, :M], scores[N, :M], scores[:N, M] = (
            blocks.cohort.scores,
            blocks.enroll.scores[i],
            (blocks.test.scores[:, j]),
        )
        precision[:, :N, :M] = cohort.precision
        precision[0, N, :M] = u.precision(model.c)[0] * cohort.columns.weight
        precision[0, :N, M] = v.precision(model.d)[0] * cohort.rows.weight
        prior = np.concatenate([cohort.rows.prior.ravel(), model.f * u.mean, cohort.columns.prior.ravel(),
                                model.g * v.mean])  # fmt: skip
        Lam, mean = dense_weighted_posterior(model.location, scores, precision, prior)
        at = np.r_[N * D : (N + 1) * D, (N + 1 + M) * D : (N + 2 + M) * D]
        V = np.linalg.inv(Lam)[np.ix_(at, at)]
        loading = np.concatenate([model.location.alpha, model.location.beta], axis=1)
        np.testing.assert_allclose(predicted.mean[place], model.location.mu + loading @ mean[at], rtol=1e-4)
        assert (predicted.variance[place] >= np.diag(loading @ V @ loading.T) - 1e-9).all()  # more, as u, v move means
        log_scale = np.log(model.location.sigma2) + model.c * u.mean + model.d * v.mean
        np.testing.assert_allclose(predicted.log_scale[place], log_scale, atol=1e-4)


def predicted_scales(model, side, cohort, scores):
    """The log-scale of one member by coordinate ascent on its own cohort scores, with plain sums."""
    location = model.location
    effect, f, c = (location.alpha[0], model.f, model.c[0]) if side == 0 else (location.beta[0], model.g, model.d[0])
    A, kappa = effect @ effect, effect @ f
    m, v = 0.0, 1.0
    for _ in range(400):
        factor = np.exp(-c * m + c**2 * v / 2)
        precision = 1 / A + factor * cohort.weight.sum()
        shift = (kappa * m / A + factor * (cohort.weight * (scores - cohort.center)).sum()) / precision
        residual = (cohort.weight * ((scores - cohort.center - shift) ** 2 + cohort.spread + 1 / precision)).sum()
        gradient = -0.5 * len(scores) * c + 0.5 * c * residual * factor - m + kappa / A * (shift - kappa * m)
        m += 0.2 * gradient / (1 + 0.5 * c**2 * residual * factor + kappa**2 / A)
        v = 1 / (1 + kappa**2 / A + 0.5 * c**2 * residual * np.exp(-c * m + c**2 * v / 2))
    return ScalePosterior(mean=np.array([m]), variance=np.array([v]))


@pytest.mark.parametrize("seed", range(2))
def test_llrs_agree_with_monte_carlo(seed):
    rng = np.random.default_rng(seed)
    blocks = scenario(MODEL, seed, cohort_size=3)
    enroll = blocks.enroll.scores[0] * np.exp(0.4 * rng.normal())
    test = blocks.test.scores[:, 0]
    normalizer = LocationScaleNormalizer(MODEL, blocks)
    for score in (-1.0, 2.5):
        exact = monte_carlo_llr(
            MODEL, score, enroll, test, blocks.cohort.scores, blocks.cohort_labels.matrix, 6_000, seed
        )
        # the factorized posterior costs up to 0.5 with so few cohort scores; the Monte Carlo error is below 0.1
        assert abs(normalizer.normalize_one(score, enroll, test) - exact) < 0.3 + 0.08 * abs(exact)


def test_the_quadrature_is_the_integral():
    predicted = Predicted(
        mean=np.array([[0.2, 2.5]]),
        variance=np.array([[0.1, 0.3]]),
        log_scale=np.array([[-0.2, 0.4]]),
        log_scale_variance=np.array([[0.3, 0.1]]),
        slope=np.array([[0.2, -0.4]]),
    )

    def density(s, h):
        width = np.sqrt(predicted.log_scale_variance[0, h])

        def inside(w):
            scale = np.exp(predicted.log_scale[0, h] + w) + predicted.variance[0, h]
            return norm.pdf(s, predicted.mean[0, h] + predicted.slope[0, h] * w, np.sqrt(scale)) * norm.pdf(w, 0, width)

        return quad(inside, -12 * width, 12 * width, epsabs=1e-13)[0]

    for s in (-3.0, 0.0, 1.2, 6.0):
        expected = np.log(density(s, 1) / density(s, 0))
        np.testing.assert_allclose(predictive_llr(np.array([s]), predicted), [expected], rtol=1e-6, atol=1e-6)


def test_matrix_list_single_trial_and_float32_agree():
    blocks = scenario(MODEL, 4)
    normalizer = LocationScaleNormalizer(MODEL, blocks)
    matrix = normalizer.normalize(blocks)
    sides = {"enroll": blocks.enroll, "test": blocks.test, "cohort": blocks.cohort}
    listed = normalizer.normalize(ScoreBlocks(blocks.trials.to_trials(), **sides))
    np.testing.assert_allclose(listed.scores, matrix.scores.ravel(), rtol=1e-9)
    one = normalizer.normalize_one(blocks.trials.scores[1, 2], blocks.enroll.scores[1], blocks.test.scores[:, 2])
    np.testing.assert_allclose(one, matrix.scores[1, 2], rtol=1e-6)
    small = ScoreBlocks(blocks.trials.astype(np.float32), **{k: b.astype(np.float32) for k, b in sides.items()})
    result = LocationScaleNormalizer(MODEL, small).normalize(small)
    assert result.scores.dtype == np.float32
    wide = ScoreBlocks(blocks.trials, **sides)
    expected = LocationScaleNormalizer(MODEL, wide).normalize(wide).scores
    np.testing.assert_allclose(result.scores, expected, rtol=1e-4, atol=1e-4)
    missing = normalizer.normalize_one(1.0, np.full(len(normalizer.cohort_test_ids), np.nan), blocks.test.scores[:, 0])
    np.testing.assert_allclose(missing, normalizer.normalize_one(1.0, None, blocks.test.scores[:, 0]), rtol=1e-6)


def test_a_wide_enrolment_makes_a_high_score_say_less():
    model = LocationScaleModel(LOCATION_2D, c=[0.8, 0.8], d=[0.3, 0.3])
    cohort = np.random.default_rng(1).normal(size=(20, 20))
    ids = [f"c{n}" for n in range(20)]
    normalizer = LocationScaleNormalizer(model, ScoreMatrix(cohort, ids, ids))
    narrow, test = 0.5 * cohort[0], cohort[:, 1]
    assert normalizer.normalize_one(3.5, 4 * narrow, test) < normalizer.normalize_one(3.5, narrow, test) - 1


def test_the_norm_is_trained_and_prepared_by_name():
    rng = np.random.default_rng(0)
    speakers = [f"s{n % 8}" for n in range(16)]
    labels = Labels.from_speakers(speakers, speakers * 2)
    scores = 4.0 * labels.matrix + np.exp(0.6 * rng.normal(size=(16, 1))) * rng.normal(size=(16, 32))
    ids = [f"e{n}" for n in range(16)], [f"t{n}" for n in range(32)]
    dev = LabelledBlocks.own_cohort(ScoreMatrix(scores, *ids), Labels.from_speakers(
        speakers, speakers * 2, enroll_ids=ids[0], test_ids=ids[1]))  # fmt: skip
    fitted = fit_norm("lssm", [dev], dim=1, tol=1e-3)
    assert fitted.is_llr
    assert not fitted.model.is_linear
    np.testing.assert_array_equal(fitted.training_scores[0].scores, fitted.normalizer.normalize(dev.blocks).scores)
    prepared = prepare_norm("lssm", model=fitted.model, cohort=dev.blocks.cohort, cohort_labels=dev.labels)
    assert isinstance(prepared, LocationScaleNormalizer)
    with pytest.raises(InputError, match="needs a trained LocationScaleModel"):
        prepare_norm("lssm")
    with pytest.raises(InputError, match="knows no option"):
        prepare_norm("lssm", model=fitted.model, top_k=3)
    with pytest.raises(InputError, match="has shape"):
        prepared.normalize_one(1.0, [1.0], None)


def test_files_give_back_the_same_model(tmp_path):
    path = tmp_path / "model.json"
    save_location_scale(MODEL, path, info={"bound": -3.5})
    assert load_location_scale(path) == MODEL
    path.write_text(path.read_text().replace('"d": [0.4, -0.3]', '"d": [0.4]'))
    with pytest.raises(FileError, match=r"\[d\]: expected 2 numbers"):
        load_location_scale(path)
    save_location_scale(MODEL, path)
    path.write_text(path.read_text().replace('"f": [0.3]', '"f": [0.3, 1.0]'))
    with pytest.raises(FileError, match="D = 1 finite numbers"):
        load_location_scale(path)
