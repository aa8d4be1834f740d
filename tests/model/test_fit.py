import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from designs import draw_scores, speaker_designs
from evenscore import InputError, Labels, ScoreMatrix, ScoreModel, TrialList, fit_score_model, log_likelihood
from evenscore.model.em import m_step
from reference.dense_score_model import dense_log_likelihood, dense_moments
from tilings import RAGGED, WHOLE, over_tilings, tiled

TRUTH = ScoreModel(mu=[-3.0, 5.0], alpha=[[1.0, 0.3], [0.2, 2.0]], beta=[[0.5, 0.3], [0.2, 1.0]], sigma2=[1.0, 4.0])


def draw(model, rows, columns, seed):
    """Draw scores from the model, pair by pair as (M1) and (M2) say."""
    rng = np.random.default_rng(seed)
    labels = Labels.from_speakers(rows, columns)
    x, y = rng.normal(size=(len(rows), model.dim)), rng.normal(size=(len(columns), model.dim))
    h = labels.matrix
    mean = model.mu[h] + np.einsum("ijd,id->ij", model.alpha[h], x) + np.einsum("ijd,jd->ij", model.beta[h], y)
    return mean + np.sqrt(model.sigma2[h]) * rng.normal(size=h.shape), labels


SPEAKERS = [f"s{n // 3}" for n in range(60)]
SCORES, LABELS = draw(TRUTH, SPEAKERS, SPEAKERS, 0)
MATRIX = ScoreMatrix(SCORES, range(60), range(60))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("min_divergence", [True, False])
def test_no_iteration_lowers_the_likelihood(dim, min_divergence):
    result = fit_score_model([(SCORES, LABELS)], dim, min_divergence=min_divergence, max_iter=200)
    assert np.diff(result.log_likelihood).min(initial=0.0) >= 0.0
    assert result.log_likelihood[-1] == pytest.approx(log_likelihood(result.model, [(SCORES, LABELS)]), abs=1e-7)
    assert result.n_iter == len(result.log_likelihood) - 1
    assert result.n_scores == (60 * 57, 60 * 3)


def test_minimum_divergence_gets_there_sooner():
    with_it = fit_score_model([(SCORES, LABELS)], 2)
    without = fit_score_model([(SCORES, LABELS)], 2, min_divergence=False, max_iter=20_000)
    assert with_it.converged
    assert with_it.n_iter < without.n_iter
    assert with_it.log_likelihood[-1] == pytest.approx(without.log_likelihood[-1], abs=1e-3)


def test_all_starts_end_at_the_same_likelihood_and_runs_repeat():
    result = fit_score_model([(SCORES, LABELS)], 2, starts=6)
    assert len(result.restarts) == 6
    np.testing.assert_allclose(result.restarts, result.restarts.max(), atol=1e-4)
    assert fit_score_model([(SCORES, LABELS)], 2, starts=6).model == result.model


def test_the_maximum_is_a_maximum():
    """No small change of a parameter raises the likelihood."""
    model = fit_score_model([(SCORES, LABELS)], 2).model
    best = log_likelihood(model, [(SCORES, LABELS)])
    rng = np.random.default_rng(1)
    for _ in range(20):
        moved = ScoreModel(
            mu=model.mu + 0.01 * rng.normal(size=2),
            alpha=model.alpha + 0.01 * rng.normal(size=(2, 2)),
            beta=model.beta + 0.01 * rng.normal(size=(2, 2)),
            sigma2=model.sigma2 * np.exp(0.01 * rng.normal(size=2)),
        )
        assert log_likelihood(moved, [(SCORES, LABELS)]) < best + 1e-6


@pytest.mark.slow
def test_one_dimension_is_not_stuck():
    """D = 1 has poor local optima; ours is not below the best of many random starts of the dense EM."""
    scores, labels = draw(TRUTH, SPEAKERS[:15], SPEAKERS[:18], 3)
    ours = fit_score_model([(scores, labels)], 1).log_likelihood[-1]
    key = labels.matrix
    for seed in range(4):
        rng = np.random.default_rng(seed)
        model = ScoreModel(
            mu=[scores[key == 0].mean(), scores[key == 1].mean()],
            alpha=rng.normal(size=(2, 1)),
            beta=rng.normal(size=(2, 1)),
            sigma2=[1.0, 3.0],
        )
        for _ in range(40):
            model = m_step(dense_moments(model, scores, key))
        assert dense_log_likelihood(model, scores, key) < ours + 1e-3


def test_more_than_two_dimensions_have_the_likelihood_of_two():
    two, four = (fit_score_model([(SCORES, LABELS)], dim) for dim in (2, 4))
    assert four.model.dim == 4
    assert four.log_likelihood[-1] == two.log_likelihood[-1]
    assert "D = 2" in four.notes[0]
    assert log_likelihood(four.model, [(SCORES, LABELS)]) == pytest.approx(two.log_likelihood[-1], abs=1e-6)


@over_tilings
def test_no_dimension_is_gaussian_calibration(tiling):
    model = fit_score_model([(tiled(MATRIX, tiling), LABELS)], 0).model
    for h in (0, 1):
        part = SCORES[LABELS.matrix == h]
        assert model.mu[h] == pytest.approx(part.mean(), rel=1e-12)
        assert model.sigma2[h] == pytest.approx(part.var(), rel=1e-12)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_crossed_effects_agree_with_statsmodels(number):
    """Two independent one-class matrices: each class is an ordinary crossed random-effects model."""
    golden = json.loads((Path(__file__).parent / "golden" / "crossed_effects.json").read_text())
    designs = [golden["designs"][number], golden["designs"][(number + 1) % 3]]
    data = [
        (np.array(design["scores"]), Labels.from_key(np.full(np.shape(design["scores"]), h)))
        for h, design in enumerate(designs)
    ]
    result = fit_score_model(data, 2, tol=1e-13, max_iter=50_000, starts=1)
    table = result.model.variances
    for h, design in enumerate(designs):
        expected = design["expected"]
        assert result.model.mu[h] == pytest.approx(expected["mean"], rel=1e-4)
        assert table.nu_enroll[h] == pytest.approx(expected["row"], rel=1e-4)
        assert table.nu_test[h] == pytest.approx(expected["column"], rel=1e-4)
        assert table.sigma2[h] == pytest.approx(expected["residual"], rel=1e-4)
    likelihood = sum(design["expected"]["log_likelihood"] for design in designs)
    assert result.log_likelihood[-1] == pytest.approx(likelihood, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=10)
@given(
    speaker_designs(smallest=5, largest=9),
    st.integers(0, 1000),
    st.sampled_from([1e-6, 1.0, 1e9]),
    st.sampled_from([0.0, 1e7]),
)
def test_units_do_not_matter(design, seed, scale, shift):
    labels = Labels.from_speakers(*design)
    if labels.n_target < 2 or labels.n_nontarget < 2:
        return
    scores = draw_scores(labels.shape, seed)
    plain = fit_score_model([(scores, labels)], 1, max_iter=30)
    moved = fit_score_model([(scale * (scores + shift), labels)], 1, max_iter=30)
    expected = plain.model.rescaled(scale, scale * shift)
    np.testing.assert_allclose(moved.model.variances.sigma2, expected.sigma2, rtol=1e-4)
    np.testing.assert_allclose(moved.model.mu, expected.mu, rtol=1e-6)


@over_tilings
def test_a_list_a_matrix_and_a_key_give_the_same_fit(tiling):
    by_speaker = fit_score_model([(MATRIX, LABELS)], 2)
    trials = MATRIX.to_trials(LABELS)
    matrix, listed = tiled(MATRIX, tiling), tiled(trials, WHOLE if tiling == WHOLE else RAGGED)  # 3600 runs are slow
    for data in ((matrix, LABELS), (matrix, Labels.from_key(LABELS.matrix)), (matrix, trials), listed):
        other = fit_score_model([data], 2)
        assert other.n_scores == by_speaker.n_scores
        np.testing.assert_allclose(other.log_likelihood[-1], by_speaker.log_likelihood[-1], rtol=1e-10)
        np.testing.assert_allclose(other.model.variances.nu, by_speaker.model.variances.nu, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32, np.int64])
def test_other_number_types(dtype):
    scores = (SCORES * 8).astype(dtype)
    result = fit_score_model([(scores, LABELS)], 1)
    exact = fit_score_model([(scores.astype(np.float64), LABELS)], 1)
    np.testing.assert_allclose(result.log_likelihood[-1], exact.log_likelihood[-1], rtol=1e-6)


def test_parameters_are_recovered():
    """With 400 enrolments and tests the estimates lie within a few sampling errors of the truth."""
    speakers = [f"s{n // 4}" for n in range(400)]
    scores, labels = draw(TRUTH, speakers, speakers, 5)
    model = fit_score_model([(scores, labels)], 2).model
    truth, table = TRUTH.variances, model.variances
    np.testing.assert_allclose(table.sigma2, truth.sigma2, rtol=0.12)
    np.testing.assert_allclose(table.nu_enroll, truth.nu_enroll, rtol=4 * np.sqrt(2 / 400))
    np.testing.assert_allclose(table.enroll_covariance[0, 1], truth.enroll_covariance[0, 1], atol=0.5)
    np.testing.assert_allclose(model.mu, TRUTH.mu, atol=0.5)


def test_not_converged_is_said():
    result = fit_score_model([(SCORES, LABELS)], 2, max_iter=2)
    assert not result.converged
    assert "not converged" in result.notes[0]


@over_tilings
def test_progress_goes_up_to_one(tiling):
    seen = []
    data = [(tiled(MATRIX, tiling), LABELS)]
    fit_score_model(data, 2, progress=lambda stage, done: seen.append((stage, done)))
    assert seen[0][0] == "summing scores"
    seen = [(stage, done) for stage, done in seen if stage == "fit"]
    assert [done for _, done in seen] == sorted(done for _, done in seen)
    assert seen[-1] == ("fit", 1.0)


TWO = Labels.from_speakers(["a", "b"], ["a", "b"])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([(np.ones((2, 2)), TWO)], "equal"),
        ([(np.eye(2), Labels.from_key(np.zeros((2, 2))))], "no target"),
        ([(np.eye(2), Labels.from_key(np.ones((2, 2))))], "no non-target"),
        ([(np.eye(2), Labels.from_key([[1, 0], [0, 0]]))], "one target score only"),
        ([(np.eye(2), Labels.from_key(-np.ones((2, 2))))], "known label"),
        ([(np.eye(3), TWO)], "3 x 3, but labels are 2 x 2"),
        ([(np.array([[1.0, np.inf], [0, 1]]), TWO)], "finite"),
        ([(np.array([[1.0, np.nan], [0, 1]]), TWO)], "finite"),
        ([(np.array([["a", "b"], ["c", "d"]]), TWO)], "real numbers"),
        (TrialList.from_pairs(["a"], ["b"], scores=[1.0]), "labels"),
        (TrialList.from_pairs(["a"], ["b"], labels=[1]), "scores"),
        ([], "at least one pair"),
        ([(np.array([[1e300, -1e300], [0.0, 1e290]]), TWO)], "is 1e.300, but scores must lie between"),
    ],
)
def test_data_that_cannot_be_learned_from(data, message):
    with pytest.raises(InputError, match=message):
        fit_score_model(data)


@pytest.mark.parametrize("options", [{"dim": -1}, {"tol": -1.0}, {"tol": float("nan")}, {"max_iter": 0}, {"starts": 0}])
def test_options_that_make_no_sense(options):
    with pytest.raises(InputError, match=next(iter(options))):
        fit_score_model([(SCORES, LABELS)], **options)


@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (2, 2), pytest.param((3, 3), marks=pytest.mark.slow)])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_little_data_gives_a_finite_model(shape, dim):
    """More parameters than the data can support: a correct maximum or a clear note, never a NaN."""
    key = np.arange(np.prod(shape)).reshape(shape) % 2
    result = fit_score_model([(draw_scores(shape, 7), Labels.from_key(key))], dim)
    for name in ("mu", "alpha", "beta", "sigma2"):
        assert np.isfinite(getattr(result.model, name)).all()
    assert np.isfinite(result.log_likelihood).all()
    assert np.diff(result.log_likelihood).min(initial=0.0) >= 0.0


def test_ids_that_do_not_match_are_named():
    matrix = ScoreMatrix(np.eye(2), ["e1", "e2"], ["t1", "t2"])
    labels = Labels.from_speakers(["a", "b"], ["a", "b"], enroll_ids=["e1", "eX"], test_ids=["t1", "t2"])
    with pytest.raises(InputError, match="e2"):
        fit_score_model([(matrix, labels)])
