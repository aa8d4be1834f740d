"""Densities of residuals: the formula, what is fitted, and the same numbers in memory, in tiles, in lists and alone."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from designs import draw_scores
from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    evaluate,
    fit_norm,
    simulate,
)
from evenscore.model.residual_fit import ResidualCounts, fit_densities
from evenscore.model.residuals import Residual, ResidualDensities
from evenscore.norms import fit_residuals, normalize
from evenscore.norms.residuals import residual_counts
from examples import examples
from tilings import over_tilings, tiled_blocks

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.8, 0.1], [0.2, 1.1]], beta=[[0.5, 0.0], [0.3, 0.6]], sigma2=[1.0, 1.5])
GAUSSIAN = ResidualDensities(location=[0, 0], scale=[1, 1], skew=[0, 0], tail=[1, 1])
SKEWED = ResidualDensities(location=[0.1, -0.2], scale=[0.7, 1.3], skew=[0.3, -0.5], tail=[0.8, 1.2])


def names(letter, number):
    return [f"{letter}{n}" for n in range(number)]


def blocks_of(m, n, N, M, **options):
    shapes = {"trials": (m, n), "enroll": (m, M), "test": (N, n), "cohort": (N, M)}
    scores = {name: draw_scores(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}
    return ScoreBlocks(
        ScoreMatrix(scores["trials"], names("e", m), names("t", n)),
        enroll=ScoreMatrix(scores["enroll"], names("e", m), names("M", M)),
        test=ScoreMatrix(scores["test"], names("N", N), names("t", n)),
        cohort=ScoreMatrix(scores["cohort"], names("N", N), names("M", M)),
        **options,
    )


positive = st.floats(0.3, 3.0)
densities = st.builds(
    ResidualDensities,
    location=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    scale=st.tuples(positive, positive),
    skew=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
    tail=st.tuples(positive, positive),
)


@examples(20)
@given(densities, st.sampled_from([0, 1]))
def test_a_density_adds_up_to_one(found, label):
    def density(u):  # over r = sinh(u), so that heavy tails are reached
        return np.exp(found.log_density(np.sinh(np.array(u)), label)) * np.cosh(u)

    peak = np.arcsinh(found.location[label])
    assert quad(density, -30, 30, limit=1000, points=[peak - 1, peak, peak + 1])[0] == pytest.approx(1, abs=1e-6)


def test_the_definition():
    """sinh(tail arsinh((r - location) / scale) - skew) is standard normal: densities by the change of variables."""
    r = np.linspace(-5, 5, 101)
    for label in (0, 1):
        x = (r - SKEWED.location[label]) / SKEWED.scale[label]
        u = SKEWED.tail[label] * np.arcsinh(x) - SKEWED.skew[label]
        slope = np.cosh(u) * SKEWED.tail[label] / np.sqrt(1 + x**2) / SKEWED.scale[label]
        expected = norm.logpdf(np.sinh(u)) + np.log(slope)
        np.testing.assert_allclose(SKEWED.log_density(r, label), expected, rtol=1e-12)
    np.testing.assert_allclose(GAUSSIAN.log_density(r, 0), norm.logpdf(r), rtol=1e-12)


@pytest.mark.usefixtures("route")
@over_tilings
@pytest.mark.parametrize("own", [False, True])
def test_gaussian_densities_are_the_papers_formula(tiling, own):
    speakers = {side: [f"{n % 3}" for n in range(size)] for side, size in (("enroll", 5), ("test", 6))}
    options = {f"{side}_speakers": names for side, names in speakers.items()} if own else {}
    if own:
        options |= {"cohort_enroll_speakers": [f"{n % 6}" for n in range(7)], "cohort_test_speakers": list("01234501")}
    blocks = blocks_of(5, 6, 7, 8, **options)
    expected = ScoreModelNormalizer(MODEL, blocks).normalize(blocks).scores
    found = normalize(tiled_blocks(blocks, tiling), "lgsm", model=MODEL.with_residuals(GAUSSIAN)).in_memory().scores
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.usefixtures("route")
@over_tilings
def test_llrs_are_the_ratio_of_the_densities(tiling):
    blocks, model = blocks_of(5, 6, 7, 8), MODEL.with_residuals(SKEWED)
    weights = ScoreModelNormalizer(MODEL, blocks).weights()
    mean = [
        weights.offset[h]
        + ((blocks.enroll.scores - weights.center) @ weights.enroll[h])[:, None]
        + weights.test[h] @ (blocks.test.scores - weights.center)
        for h in (0, 1)
    ]
    logs = [
        SKEWED.log_density((blocks.trials.scores - mean[h]) / np.sqrt(weights.variance[h]), h)
        - 0.5 * np.log(weights.variance[h])
        for h in (0, 1)
    ]
    for trials in (blocks.trials, blocks.trials.to_trials()):
        part = tiled_blocks(blocks.replace(trials=trials), tiling)
        found = normalize(part, "lgsm", model=model).in_memory().scores
        np.testing.assert_allclose(found.reshape(5, 6), logs[1] - logs[0], rtol=1e-7, atol=1e-7)
    one = ScoreModelNormalizer(model, blocks).normalize_one(
        blocks.trials.scores[2, 3], blocks.enroll.scores[2], blocks.test.scores[:, 3]
    )
    assert one == pytest.approx((logs[1] - logs[0])[2, 3], rel=1e-10)


@pytest.mark.usefixtures("route")
def test_far_away_scores_are_computed_exactly():
    model = ScoreModel(mu=[0, 1], alpha=[[], []], beta=[[], []], sigma2=[1.0, 2.0], residuals=SKEWED)
    far = np.array([[-1e6, -300.0, -40.0, 0.0, 40.0, 300.0, 1e6]])
    found = ScoreModelNormalizer(model).normalize(ScoreBlocks(ScoreMatrix(far, ["e"], names("t", 7)))).scores
    logs = [SKEWED.log_density((far - model.mu[h]) / np.sqrt(model.sigma2[h]), h) for h in (0, 1)]
    np.testing.assert_allclose(found, logs[1] - logs[0] - 0.5 * np.log(2), rtol=1e-9)


def test_known_targets_go_with_densities():
    blocks = blocks_of(3, 4, 5, 6).with_targets(enroll={"e0": [2.5], "e2": [3.0, 1.0]})
    gaussian = normalize(blocks, "lgsm", model=MODEL).scores
    np.testing.assert_allclose(
        normalize(blocks, "lgsm", model=MODEL.with_residuals(GAUSSIAN)).scores, gaussian, rtol=1e-9
    )
    residual = ScoreModelNormalizer(MODEL, blocks, reading=Residual(1)).normalize(blocks).scores
    assert np.isfinite(residual).all()


def drawn(densities, label, number, seed):
    """Draw residuals: the transformation of the definition, turned round."""
    z = np.random.default_rng(seed).standard_normal(number)
    x = np.sinh((np.arcsinh(z) + densities.skew[label]) / densities.tail[label])
    return densities.location[label] + densities.scale[label] * x


def test_many_residuals_give_their_densities_back():
    counts = ResidualCounts.of(drawn(SKEWED, 0, 200_000, 1), 0) + ResidualCounts.of(drawn(SKEWED, 1, 200_000, 2), 1)
    found = fit_densities(counts, n_speakers=20_000)
    r = np.linspace(-3, 3, 61)
    for label in (0, 1):
        np.testing.assert_allclose(found.log_density(r, label), SKEWED.log_density(r, label), atol=0.1)


def test_few_speakers_cannot_bend_a_density():
    outlying = np.concatenate([np.random.default_rng(0).standard_normal(30), [-9.0, -8.0]])
    counts = ResidualCounts.of(outlying, 1) + ResidualCounts.of(outlying, 0)
    few, many = fit_densities(counts, 4), fit_densities(counts, 10_000)
    assert abs(np.log(few.tail[1])) <= abs(np.log(many.tail[1])) + 1e-6
    assert fit_densities(counts, 3) is None
    assert fit_densities(ResidualCounts.of(outlying, 1), 20) is None  # no non-targets


def training(seed=1, n_speakers=24):
    speakers = [f"s{n % n_speakers}" for n in range(3 * n_speakers)]
    scores, labels = simulate(MODEL, speakers, speakers, seed=seed)
    bent = np.sinh(0.35 * scores.scores)  # monotone, so that nothing but densities changes much
    return LabelledBlocks.own_cohort(scores.with_scores(bent), labels)


def test_counts_are_those_of_residuals_without_own_speakers():
    part = training(n_speakers=6)
    counts = residual_counts(MODEL, [part])
    labels = part.table().matrix
    for label in (0, 1):
        table = ScoreModelNormalizer(MODEL, part.blocks, reading=Residual(label)).normalize(part.blocks)
        expected = ResidualCounts.of(table.scores[labels == label], label)
        np.testing.assert_array_equal(counts.counts[label], expected.counts[label])
    tiled = LabelledBlocks(tiled_blocks(part.blocks, "ragged"), part.labels)
    np.testing.assert_allclose(residual_counts(MODEL, [tiled]).counts.sum(axis=1), counts.total)


def test_densities_calibrate_what_gaussians_do_not():
    dev, new = training(1), training(2)
    own = {}
    for residuals in ("gaussian", "sinh-arcsinh"):
        fitted = fit_norm("lgsm", [dev], residuals=residuals)
        own[residuals] = evaluate(new.labelled(fitted.normalizer.normalize(new.blocks)))
    assert own["sinh-arcsinh"]["cllr"] < 0.9 * own["gaussian"]["cllr"]
    assert own["sinh-arcsinh"]["cllr"] < 1.15 * own["sinh-arcsinh"]["min_cllr"] + 0.01


def test_fitting_again_starts_from_the_model_itself():
    dev = training(3)
    once = fit_residuals(MODEL, [dev])
    assert once == fit_residuals(once, [dev])
    assert once.with_residuals(None) == MODEL
    assert once != MODEL
    assert once.rescaled(2.0).residuals == once.residuals == once.padded(3).residuals


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tail": [1.0, 0.0]}, "tail must be 2 numbers from 0.1 to 10"),
        ({"scale": [1.0, -1.0]}, "scale must be 2 numbers from 0.001 to 1000"),
        ({"skew": [1.0]}, "skew must be 2 numbers from -30 to 30"),
        ({"location": [np.nan, 0.0]}, "location must be 2 numbers from -1000 to 1000"),
    ],
)
def test_bad_parameters_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        ResidualDensities(**({"location": [0, 0], "scale": [1, 1], "skew": [0, 0], "tail": [1, 1]} | change))


def test_unknown_densities_are_refused():
    with pytest.raises(InputError, match="residuals are 'student', but must be"):
        fit_norm("lgsm", [training()], residuals="student")


def test_labels_by_key_need_no_speakers():
    part = training(5, 8)
    keyed = LabelledBlocks(ScoreBlocks(part.blocks.trials), Labels.from_key(part.table().matrix))
    assert fit_residuals(MODEL, [keyed]).residuals is not None


@pytest.mark.parametrize("score", [-1e6, -30.0, -2.0, 0.1, 4.0, 30.0, 1e6])
def test_one_score_in_plain_numbers(score):
    mean, variance = np.array([0.3, 2.0]), np.array([1.5, 0.7])
    expected = SKEWED.of_trials(np.array([score]), mean[None], variance)[0]
    assert SKEWED.of_one(score, mean, variance) == pytest.approx(expected, rel=1e-12)
