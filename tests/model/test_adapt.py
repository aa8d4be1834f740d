"""Adaptation without labels: the bound, its steps, the parameters that it finds, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from scipy.stats import t as scipy_t

from designs import draw_scores, keys, models
from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    adapt_score_model,
    fit_score_model,
    simulate,
    simulate_blocks,
)
from evenscore.model.adapt_data import DenseScores, hidden_scores
from evenscore.model.adapt_guard import expected_cllr, score_gain
from evenscore.model.adapt_steps import (
    Anchor,
    affine_step,
    bound,
    full_step,
    infer_labels,
    infer_location,
    initial,
    pooled,
)
from examples import examples
from reference.dense_weighted_posterior import dense_weighted_posterior
from reference.hidden_label_model import (
    enumerated_log_likelihood,
    loop_bound,
    loop_expected_cllr,
    loop_score_gain,
)

TRAINED = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
SPEAKERS = [f"s{n % 10}" for n in range(20)]


def partly_hidden(key, seed):
    """A matrix some of whose labels are hidden; key -1 is missing."""
    rng = np.random.default_rng(seed)
    present = key >= 0
    hidden = present & (rng.random(key.shape) < 0.6)
    scores = np.where(present, draw_scores(key.shape, seed), 0.0)
    return DenseScores(scores=scores, present=present, key=np.where(hidden, np.int8(-1), key)), hidden


@examples(15)
@given(models(dims=(1, 2)), keys(largest=4), st.integers(0, 99), st.sampled_from([0.1, 0.5]))
def test_the_bound_is_that_of_the_definition_and_below_the_likelihood(model, key, seed, prior):
    data, hidden = partly_hidden(key, seed)
    state = initial(data, prior)
    for _ in range(3):
        state = infer_location(model, infer_labels(model, infer_location(model, state), prior))
    Lam, mean = dense_weighted_posterior(model, data.scores, state.weights / model.sigma2[:, None, None])
    found = bound(model, [state], prior)
    known = np.where(hidden, -1, np.where(data.present, key, -1))
    expected = loop_bound(model, data.scores, known, state.p_target, hidden, mean, np.linalg.inv(Lam), prior)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)
    if hidden.sum() <= 6:
        assert found <= enumerated_log_likelihood(model, data.scores, known, hidden, prior) + 1e-8


def test_with_all_labels_known_the_bound_is_the_likelihood():
    scores, labels = simulate(TRAINED, SPEAKERS[:5], SPEAKERS[:7], seed=1)
    [data] = hidden_scores((scores, labels))
    state = infer_location(TRAINED, initial(data, 0.5))
    exact = enumerated_log_likelihood(TRAINED, scores.scores, labels.matrix.copy(), data.hidden, 0.5)
    np.testing.assert_allclose(bound(TRAINED, [state], 0.5), exact, rtol=1e-10)


@settings(max_examples=10, deadline=None)
@given(models(dims=(1, 2)), keys(largest=6, smallest=3), st.integers(0, 99), st.booleans())
def test_no_step_lowers_the_bound(model, key, seed, affine):
    data, hidden = partly_hidden(key, seed)
    if hidden.sum() < 3:
        return
    anchor = None if affine else Anchor(model=model, strength=3.0)
    base, states = model, [infer_location(model, initial(data, 0.2))]
    trace = [bound(model, states, 0.2, anchor)]
    for _ in range(4):
        model = base.rescaled(*affine_step(base, pooled(states))) if affine else full_step(pooled(states), anchor)
        states = [infer_location(model, state) for state in states]
        trace.append(bound(model, states, 0.2, anchor))
        states = [infer_labels(model, state, 0.2) for state in states]
        trace.append(bound(model, states, 0.2, anchor))
        states = [infer_location(model, state) for state in states]
        trace.append(bound(model, states, 0.2, anchor))
    assert np.diff(trace).min() > -1e-9 * np.abs(trace).max()


def test_scale_and_shift_are_at_their_optimum():
    data, _ = partly_hidden(simulate(TRAINED, SPEAKERS[:6], SPEAKERS[:6])[1].matrix.copy(), 3)
    moments = pooled([infer_location(TRAINED, initial(data, 0.3))])
    theta = np.concatenate([TRAINED.mu[:, None], TRAINED.alpha, TRAINED.beta], axis=1)

    def loss(parameters):
        scale, shift = np.exp(parameters[0]), parameters[1]
        weights = scale * theta
        weights[:, 0] += shift
        square = moments.ss - 2 * (weights * moments.sw).sum(axis=1)
        square += np.einsum("hv,hvw,hw->h", weights, moments.ww, weights)
        variance = scale**2 * TRAINED.sigma2
        return 0.5 * (square / variance + moments.ww[:, 0, 0] * np.log(variance)).sum()

    scale, shift = affine_step(TRAINED, moments)
    best = minimize(loss, [0.0, 0.0], tol=1e-12)
    np.testing.assert_allclose([np.log(scale), shift], best.x, atol=1e-4)


@pytest.mark.parametrize(("scale", "shift"), [(1.0, 2.0), (0.5, -4.0), (3.0, 20.0)])
def test_a_change_of_scale_and_shift_is_found(scale, shift):
    scores, _ = simulate(TRAINED.rescaled(scale, shift), SPEAKERS, SPEAKERS * 2, seed=2)
    result = adapt_score_model(TRAINED, scores, prior=0.1, change="affine", tol=1e-4)
    assert np.diff(result.bound).min() >= 0
    np.testing.assert_allclose(result.scale, scale, rtol=0.05)
    np.testing.assert_allclose(result.shift, shift, atol=0.3 * scale)
    np.testing.assert_allclose(result.model.mu, TRAINED.rescaled(result.scale, result.shift).mu)
    assert abs(result.share_of_targets - 0.1) < 0.02


def test_all_parameters_follow_and_strength_holds_them():
    changed = ScoreModel(mu=[1.0, 7.0], alpha=[[0.5], [0.4]], beta=[[0.6], [0.5]], sigma2=[1.6, 0.8])
    scores, _ = simulate(changed, SPEAKERS, SPEAKERS * 3, seed=3)
    free = adapt_score_model(TRAINED, scores, prior=0.1, strength=5, tol=1e-4)
    assert np.diff(free.bound).min() >= 0
    np.testing.assert_allclose(free.model.mu, changed.mu, atol=0.35)
    np.testing.assert_allclose(free.model.sigma2, changed.sigma2, rtol=0.35)
    affine = adapt_score_model(TRAINED, scores, prior=0.1, change="affine", tol=1e-4)
    held = adapt_score_model(TRAINED, scores, prior=0.1, strength=1e7, tol=1e-4)
    np.testing.assert_allclose(held.model.mu, affine.model.mu, atol=0.02)
    assert free.model.sigma2[1] < affine.model.sigma2[1] - 0.3


def test_known_labels_and_cohort_scores_help():
    new = TRAINED.rescaled(1.0, 2.5)
    cohort = [f"c{n}" for n in range(8)]
    blocks, labels = simulate_blocks(new, SPEAKERS, SPEAKERS, cohort, cohort, seed=4)
    result = adapt_score_model(TRAINED, blocks, prior=0.1, change="affine", tol=1e-4)
    assert (result.n_trials, result.n_known) == (400, 20 * 8 + 8 * 20 + 64)
    np.testing.assert_allclose(result.shift, 2.5, atol=0.4)
    [joined] = hidden_scores(blocks)
    assert joined.of_class(1).sum() == 8  # the cohort's own targets
    half = labels.matrix.copy()
    half[10:] = -1
    ids = {"enroll_ids": blocks.trials.enroll_ids, "test_ids": blocks.trials.test_ids}
    known = adapt_score_model(TRAINED, (blocks.trials, Labels.from_key(half, **ids)), prior=0.1, tol=1e-4)
    assert (known.n_trials, known.n_known) == (200, 200)
    listed = adapt_score_model(TRAINED, blocks.trials.to_trials(), prior=0.1, change="affine", tol=1e-4)
    alone = adapt_score_model(TRAINED, blocks.trials, prior=0.1, change="affine", tol=1e-4)
    np.testing.assert_allclose(listed.shift, alone.shift, rtol=1e-9)


def refusal(scores, **options):
    with pytest.raises(InputError) as caught:
        adapt_score_model(TRAINED, scores, **{"tol": 1e-4, **options})
    return str(caught.value)


def test_data_that_cannot_support_it_are_refused():
    shifted = TRAINED.rescaled(1.0, 2.0)
    scores, _ = simulate(shifted, SPEAKERS, SPEAKERS * 2, seed=5)
    assert "too few to adapt to" in refusal(simulate(shifted, SPEAKERS[:5], SPEAKERS[:5])[0], prior=0.2)
    assert "only 4.0 targets are expected" in refusal(scores, prior=0.005)
    assert "keep it" in refusal(simulate(TRAINED, SPEAKERS, SPEAKERS * 2, seed=6)[0], prior=0.1)
    strangers = simulate(shifted, [f"a{n}" for n in range(20)], [f"b{n}" for n in range(40)], seed=7)[0]
    assert "do not show two classes" in refusal(strangers, prior=0.05)
    blurred = ScoreModel(mu=[0.0, 1.6], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
    with pytest.raises(InputError, match=r"uncertainty about the labels|do not show two classes"):
        adapt_score_model(blurred, simulate(blurred.rescaled(1.0, 3.0), SPEAKERS, SPEAKERS * 2)[0], prior=0.1, tol=1e-4)
    far = ScoreModel(mu=[0.0, 12.0], alpha=[[0.5], [0.4]], beta=[[0.4], [0.5]], sigma2=[1.0, 1.0])
    clear, _ = simulate(far.rescaled(1.0, 2.0), SPEAKERS, SPEAKERS * 2, seed=5)
    with pytest.raises(InputError, match="but the prior says"):
        adapt_score_model(far, clear, prior=0.5, change="affine", tol=1e-4)


@settings(max_examples=10, deadline=None)
@given(models(dims=(1, 2)), models(dims=(1, 2)), keys(largest=5, smallest=2), st.integers(0, 99))
def test_the_gain_on_single_scores_is_that_of_the_definition(trained, adapted, key, seed):
    data, _ = partly_hidden(key, seed)
    rng = np.random.default_rng(seed)
    groups = [rng.integers(0, 2, size=len(key)), np.full(len(key), 2)]
    expected = loop_score_gain(
        trained, adapted, [data.scores] * 2, [np.where(data.present, data.key, -2)] * 2, groups, 0.3
    )
    present = np.unique(np.concatenate(groups), return_inverse=True)[1]
    groups = [present[: len(key)], present[len(key) :]]
    found = score_gain(trained, adapted, [data, data], groups, 0.3)
    np.testing.assert_allclose((found.nats, found.error), expected, rtol=1e-9, atol=1e-9)
    assert found.n_groups == len(np.unique(present))
    if data.hidden.any():
        cllr = loop_expected_cllr(trained, adapted, data.scores, data.hidden, 0.3)
        np.testing.assert_allclose(expected_cllr(trained, adapted, [data, data], 0.3), cllr, rtol=1e-9)
    quantile = scipy_t.ppf(0.99, found.n_groups - 1) if found.n_groups > 1 else 0.0
    np.testing.assert_allclose(found.needed, quantile * found.error, rtol=1e-6)


def uneven_scores(seed, shift):
    """Scores that the score model does not fit: speakers differ in spread, tails are heavy."""
    rng = np.random.default_rng(seed)
    speakers = [f"s{n % 12}" for n in range(24)]
    labels = Labels.from_speakers(speakers, speakers * 2)
    spread = np.exp(0.5 * rng.normal(size=12))[np.arange(24) % 12]
    noise = np.sqrt(np.outer(spread, np.tile(spread, 2))) * rng.standard_t(5, size=(24, 48))
    ids = [f"e{n}" for n in range(24)], [f"t{n}" for n in range(48)]
    scores = ScoreMatrix(shift + 5.0 * labels.matrix + noise, *ids)
    return (
        scores,
        Labels.from_key(labels.matrix, enroll_ids=ids[0], test_ids=ids[1]),
        dict(zip(*(ids[0], speakers), strict=True)),
    )


def test_other_speakers_of_a_domain_that_the_model_fits_badly_are_no_shift():
    """In these draws the bound gains more than the parameters cost, without a shift; that must not be enough."""
    refused = accepted = 0
    for seed in (0, 4, 5):
        scores, labels, _ = uneven_scores(seed, 0.0)
        trained = fit_score_model([(scores, labels)], 1, tol=1e-6).model
        for shift in (0.0, 2.5):
            new, _, speakers = uneven_scores(100 + seed, shift)
            try:
                adapt_score_model(trained, new, prior=1 / 12, tol=1e-3, enroll_speakers=speakers)
                accepted += shift > 0
            except InputError as error:
                refused += shift == 0 and "explains these trials as well: on single scores" in str(error)
    assert (refused, accepted) == (3, 3)


def test_speakers_group_the_enrolments_of_all_matrices():
    parts = [simulate(TRAINED.rescaled(1.0, 2.5), SPEAKERS, SPEAKERS, seed=seed)[0] for seed in (1, 2)]
    parts = [ScoreMatrix(s.scores, [f"{n}-{e}" for e in s.enroll_ids], s.test_ids) for n, s in enumerate(parts)]
    speakers = {name: name[2:] for part in parts for name in part.enroll_ids.tolist()}
    alone = adapt_score_model(TRAINED, parts, prior=0.1, change="affine", tol=1e-3)
    known = adapt_score_model(TRAINED, parts, prior=0.1, change="affine", tol=1e-3, enroll_speakers=speakers)
    assert (alone.score_gain.n_groups, known.score_gain.n_groups) == (40, 20)
    assert alone.model == known.model


def test_rows_are_named_as_they_are_kept():
    blocks, labels = simulate_blocks(TRAINED, SPEAKERS[:4], SPEAKERS[:3], ["c", "d"], ["c"], seed=1)
    values = blocks.trials.scores.copy()
    values[1] = np.nan
    holes = ScoreMatrix(values, blocks.trials.enroll_ids, blocks.trials.test_ids, missing="nan")
    for item in (holes, holes.to_trials(), (holes, labels), blocks, ScoreBlocks(holes, test=blocks.test)):
        [data] = hidden_scores(item)
        assert len(data.enroll_ids) == len(data.scores)
        assert (holes.enroll_ids[1] in data.enroll_ids) == (item is blocks)


def test_bad_input_is_refused():
    scores, labels = simulate(TRAINED, SPEAKERS, SPEAKERS)
    assert "prior is 1.5" in refusal(scores, prior=1.5)
    assert "must be 'all' or 'affine'" in refusal(scores, prior=0.1, change="some")
    assert "strength is 0" in refusal(scores, prior=0.1, strength=0)
    assert "there are no trials" in refusal([], prior=0.1)
    assert "give their `blocks`" in refusal(LabelledBlocks(ScoreBlocks(scores), labels), prior=0.1)
    for strange in (3, (scores.scores, labels)):
        assert "data must be a score matrix" in refusal([strange], prior=0.1)


def test_missing_pairs_are_left_out():
    scores, _ = simulate(TRAINED.rescaled(1.0, 2.0), SPEAKERS, SPEAKERS * 2, seed=9)
    values = scores.scores.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.2] = np.nan
    holes = ScoreMatrix(values, scores.enroll_ids, scores.test_ids, missing="nan")
    result = adapt_score_model(TRAINED, holes, prior=0.1, change="affine", tol=1e-4)
    assert result.n_trials == np.isfinite(values).sum()
    np.testing.assert_allclose(result.shift, 2.0, atol=0.3)


def test_equal_scores_are_refused_and_a_doubtful_prior_is_told():
    trained = ScoreModel(mu=[0.0, 5.0], alpha=[[0.5], [0.5]], beta=[[0.5], [0.5]], sigma2=[1.0, 1.0])
    speakers = [f"s{n % 20}" for n in range(40)]
    scores, _ = simulate(trained.rescaled(1.0, 4.0), speakers, speakers, seed=1)
    with pytest.raises(InputError, match="all trials without labels have the same score"):
        adapt_score_model(trained, scores.with_scores(np.full(scores.shape, 0.1)), prior=0.05)
    assert adapt_score_model(trained, scores, prior=0.05, change="affine").notes == ()
    [note] = adapt_score_model(trained, scores, prior=0.09, change="affine").notes
    assert "look like targets, but the prior says 9 %" in note
