"""The closed-form score against the paper's two marginal likelihoods over the (N+1) x (M+1) matrix."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from designs import draw_scores, models
from evenscore import InputError, LabelledBlocks, Labels, ScoreBlocks, ScoreMatrix, ScoreModel, ScoreModelNormalizer
from evenscore.norms import normalize, prepare_norm
from evenscore.norms.normalize import normalize_with
from examples import examples
from reference.dense_score_model import dense_llr, dense_posterior
from tilings import RAGGED, SINGLE, WHOLE, every_way, on_route, over_tilings, tiled_blocks

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.8, 0.1], [0.2, 1.1]], beta=[[0.5, 0.0], [0.3, 0.6]], sigma2=[1.0, 1.5])


def names(letter, number):
    return [f"{letter}{n}" for n in range(number)]


@st.composite
def experiments(draw, missing_cohort=False, missing_sides=False):
    """Trials, their cohort scores and speakers, with anything from an empty cohort to one full of holes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = {side: draw(st.integers(0, 5)) for side in ("N", "M")} | {
        side: draw(st.integers(1, 3)) for side in ("m", "n")
    }
    N, M, m, n = (sizes[side] for side in ("N", "M", "m", "n"))
    blocks = {
        "trials": 2 * rng.normal(size=(m, n)),
        "enroll": 2 * rng.normal(size=(m, M)),
        "test": 2 * rng.normal(size=(N, n)),
        "cohort": 2 * rng.normal(size=(N, M)),
    }
    if missing_cohort:
        blocks["cohort"][rng.random((N, M)) < 0.3] = np.nan
    if missing_sides:
        for side in ("enroll", "test"):
            blocks[side][rng.random(blocks[side].shape) < draw(st.sampled_from([0.2, 1.0]))] = np.nan
    speakers = {
        "enroll_speakers": rng.choice(list("abxyz"), m),
        "test_speakers": rng.choice(list("abxyz"), n),
        "cohort_enroll_speakers": rng.choice(list("abcd"), N),
        "cohort_test_speakers": rng.choice(list("abcd"), M),
    }
    return blocks, speakers


def complete(m, n, N, M):
    shapes = {"trials": (m, n), "enroll": (m, M), "test": (N, n), "cohort": (N, M)}
    return {name: draw_scores(shape, seed) for seed, (name, shape) in enumerate(shapes.items())}


def as_blocks(scores, *, as_list=False, **options):
    m, n = scores["trials"].shape
    N, M = scores["cohort"].shape
    trials = ScoreMatrix(scores["trials"], names("e", m), names("t", n))
    return ScoreBlocks(
        trials.to_trials() if as_list else trials,
        enroll=ScoreMatrix(scores["enroll"], names("e", m), names("M", M), missing="nan"),
        test=ScoreMatrix(scores["test"], names("N", N), names("t", n), missing="nan"),
        cohort=ScoreMatrix(scores["cohort"], names("N", N), names("M", M), missing="nan"),
        **options,
    )


def llrs(model, blocks, tiling):
    """Score blocks cut so; in memory this is what `ScoreModelNormalizer` gives."""
    return normalize(tiled_blocks(blocks, tiling), "lgsm", model=model).in_memory().scores


def expected_llrs(model, scores, key, speakers=None):
    m, n = scores["trials"].shape
    key = np.where(np.isnan(scores["cohort"]), -1, key)
    out = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            rows, columns = np.ones(key.shape[0], bool), np.ones(key.shape[1], bool)
            if speakers is not None:
                own = [speakers["enroll_speakers"][i], speakers["test_speakers"][j]]
                rows = ~np.isin(speakers["cohort_enroll_speakers"], own)
                columns = ~np.isin(speakers["cohort_test_speakers"], own)
            at = np.ix_(rows, columns)
            out[i, j] = dense_llr(
                model,
                scores["trials"][i, j],
                scores["enroll"][i, columns],
                scores["test"][rows, j],
                scores["cohort"][at],
                key[at],
            )
    return out


@pytest.mark.parametrize("missing_cohort", [False, True])
@pytest.mark.parametrize("missing_sides", [False, True])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("tilings", [(WHOLE,), (RAGGED, SINGLE)], ids=["whole", "cut"])
def test_equal_to_the_papers_formula(missing_cohort, missing_sides, own, tilings):
    @(examples(36) if tilings == (WHOLE,) else settings(max_examples=5))
    @given(models(dims=(0, 1, 2)), experiments(missing_cohort, missing_sides), st.booleans())
    def check(model, experiment, with_targets):
        scores, speakers = experiment
        key = speakers["cohort_enroll_speakers"][:, None] == speakers["cohort_test_speakers"][None, :]
        key = (key & (with_targets or own)).astype(np.int8)
        options = speakers if own else {"cohort_labels": Labels.from_key(key)}
        expected = expected_llrs(model, scores, key, speakers if own else None)
        for tiling, route in every_way(tilings):
            with on_route(route):
                whole = llrs(model, as_blocks(scores, **options), tiling)
                listed = llrs(model, as_blocks(scores, as_list=True, **options), tiling)
            how = {"rtol": 1e-9, "atol": 1e-9, "err_msg": f"{tiling}, {route}"}
            np.testing.assert_allclose(whole, expected, **how)
            np.testing.assert_allclose(listed, expected.reshape(-1), **how)

    check()


@examples(30)
@given(models(dims=(1, 2)), experiments(), st.sampled_from(["enroll", "test", "both without cohort", "none"]))
def test_one_sided_and_empty_cohorts(model, experiment, sides):
    scores, _ = experiment
    whole = as_blocks(scores)
    blocks = ScoreBlocks(
        whole.trials,
        enroll=whole.enroll if sides in ("enroll", "both without cohort") else None,
        test=whole.test if sides in ("test", "both without cohort") else None,
    )
    gone = {
        "enroll": scores["enroll"] if blocks.enroll is not None else np.full_like(scores["enroll"], np.nan),
        "test": scores["test"] if blocks.test is not None else np.full_like(scores["test"], np.nan),
        "cohort": np.full_like(scores["cohort"], np.nan),
        "trials": scores["trials"],
    }
    expected = expected_llrs(model, gone, np.zeros(scores["cohort"].shape, dtype=np.int8))
    for tiling, route in every_way():
        with on_route(route):
            found = llrs(model, blocks, tiling)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9, err_msg=f"{tiling}, {route}")


@pytest.mark.usefixtures("route")
def test_an_empty_cohort_is_gaussian_calibration_with_the_whole_variance():
    from scipy.stats import norm

    blocks = ScoreBlocks(ScoreMatrix([[0.7, 2.0]], ["e"], ["t", "u"]))
    whole = MODEL.sigma2 + MODEL.variances.nu
    s = blocks.trials.scores
    expected = norm.logpdf(s, MODEL.mu[1], np.sqrt(whole[1])) - norm.logpdf(s, MODEL.mu[0], np.sqrt(whole[0]))
    np.testing.assert_allclose(ScoreModelNormalizer(MODEL, None).normalize(blocks).scores, expected, rtol=1e-12)
    np.testing.assert_allclose(ScoreModelNormalizer(MODEL).normalize_one(0.7), expected[0, 0], rtol=1e-12)


@pytest.mark.usefixtures("route")
def test_without_loadings_the_cohort_does_not_matter():
    model = ScoreModel(mu=[-2.0, 2.0], alpha=np.zeros((2, 2)), beta=np.zeros((2, 2)), sigma2=[4.0, 4.0])
    scores = complete(3, 4, 5, 6)
    blocks = as_blocks(scores)
    # equal variances 4 and means -2, 2: the scores are calibrated LLRs already
    np.testing.assert_allclose(
        ScoreModelNormalizer(model, blocks).normalize(blocks).scores, scores["trials"], rtol=1e-12
    )


@pytest.mark.usefixtures("route")
@examples(25)
@given(models(dims=(0, 1, 2)), experiments(missing_sides=True), st.sampled_from([np.float32, np.float64]))
def test_one_trial_at_a_time_equals_the_matrix(model, experiment, dtype):
    scores = {name: values.astype(dtype) for name, values in experiment[0].items()}
    blocks = as_blocks(scores)
    normalizer = ScoreModelNormalizer(model, blocks.cohort)
    double = as_blocks({name: values.astype(np.float64) for name, values in scores.items()})
    matrix = ScoreModelNormalizer(model, double).normalize(double).scores
    for i in range(matrix.shape[0]):
        for j in range(matrix.shape[1]):
            one = normalizer.normalize_one(scores["trials"][i, j], scores["enroll"][i], scores["test"][:, j])
            np.testing.assert_allclose(one, matrix[i, j], rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("route")
@over_tilings
def test_float32_in_float32_out(tiling):
    scores = {name: values.astype(np.float32) for name, values in complete(3, 4, 5, 6).items()}
    blocks = as_blocks(scores)
    result = llrs(MODEL, blocks, tiling)
    assert result.dtype == np.float32
    exact = as_blocks({name: values.astype(np.float64) for name, values in scores.items()})
    np.testing.assert_allclose(result, ScoreModelNormalizer(MODEL, exact).normalize(exact).scores, rtol=1e-5)


@pytest.mark.usefixtures("route")
@over_tilings
def test_missing_trials_stay_missing(tiling):
    scores = complete(3, 4, 5, 6)
    whole = as_blocks(scores)
    holes = np.zeros((3, 4), dtype=bool)
    holes[1, 2] = True
    trials = ScoreMatrix(scores["trials"], whole.trials.enroll_ids, whole.trials.test_ids, missing=holes)
    blocks = ScoreBlocks(trials, enroll=whole.enroll, test=whole.test, cohort=whole.cohort)
    result = llrs(MODEL, blocks, tiling)
    np.testing.assert_array_equal(np.isnan(result), holes)
    expected = ScoreModelNormalizer(MODEL, whole).normalize(whole).scores
    np.testing.assert_allclose(result[~holes], expected[~holes], rtol=0 if tiling == WHOLE else 1e-12)


@pytest.mark.usefixtures("route")
@over_tilings
def test_a_prepared_cohort_serves_blocks_without_one(tiling):
    blocks = as_blocks(complete(3, 4, 5, 6))
    norm = prepare_norm("lgsm", model=MODEL, cohort=blocks.cohort)
    bare = tiled_blocks(ScoreBlocks(blocks.trials, enroll=blocks.enroll, test=blocks.test), tiling)
    found = normalize_with(norm, bare, "lgsm").in_memory().scores
    np.testing.assert_allclose(found, llrs(MODEL, blocks, WHOLE), rtol=1e-12)


@pytest.mark.usefixtures("route")
def test_leaving_one_speaker_out_is_dropping_by_hand():
    rows, columns = list("aabbbcd"), list("abbccedd")
    labels = Labels.from_speakers(rows, columns)
    scores = draw_scores(labels.shape, 9)
    blocks = LabelledBlocks.own_cohort(ScoreMatrix(scores, names("e", 7), names("t", 8)), labels).blocks
    result = ScoreModelNormalizer(MODEL, blocks).normalize(blocks)
    rows, columns = np.array(rows), np.array(columns)
    for i in range(7):
        for j in range(8):
            kept_rows, kept_columns = ~np.isin(rows, [rows[i], columns[j]]), ~np.isin(columns, [rows[i], columns[j]])
            at = np.ix_(kept_rows, kept_columns)
            expected = dense_llr(
                MODEL, scores[i, j], scores[i, kept_columns], scores[kept_rows, j], scores[at], labels.matrix[at]
            )
            np.testing.assert_allclose(result.scores[i, j], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("route")
def test_the_posterior_of_the_hidden_variables_is_that_of_the_dense_formula():
    scores = complete(1, 1, 3, 4)
    extended = np.zeros((4, 5))
    extended[:3, :4], extended[3, :4], extended[:3, 4] = scores["cohort"], scores["enroll"][0], scores["test"][:, 0]
    key = np.zeros((4, 5), dtype=int)
    key[3, 4] = -1
    precision, _, mean = dense_posterior(MODEL, extended, key)
    covariance = np.linalg.inv(precision)
    at = np.r_[6:8, 16:18]  # x of row 3 and y of column 4, with D = 2
    posterior = ScoreModelNormalizer(MODEL, as_blocks(scores)).posterior(scores["enroll"][0], scores["test"][:, 0])
    np.testing.assert_allclose(np.concatenate([posterior.enroll, posterior.test]), mean[at], rtol=1e-10)
    np.testing.assert_allclose(posterior.covariance, covariance[np.ix_(at, at)], rtol=1e-10, atol=1e-14)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("offset", [1e6, -1e12])
def test_a_large_offset_changes_nothing_but_rounding(offset):
    scores = {name: np.round(values * 64) / 64 for name, values in complete(3, 4, 5, 6).items()}
    model = ScoreModel(mu=[-1.0, 3.0], alpha=MODEL.alpha, beta=MODEL.beta, sigma2=MODEL.sigma2)
    blocks, moved = as_blocks(scores), as_blocks({name: values + offset for name, values in scores.items()})
    expected = ScoreModelNormalizer(model, blocks).normalize(blocks).scores
    result = ScoreModelNormalizer(model.rescaled(1.0, offset), moved).normalize(moved).scores
    np.testing.assert_allclose(result, expected, rtol=1e-9, atol=1e-3 if abs(offset) > 1e9 else 1e-8)


@pytest.mark.usefixtures("route")
def test_blocks_of_another_cohort_are_refused():
    scores = complete(2, 2, 3, 3)
    blocks = as_blocks(scores)
    other = ScoreMatrix(np.zeros((2, 3)), ["N0", "N1"], names("M", 3))
    with pytest.raises(InputError, match="cohort"):
        ScoreModelNormalizer(MODEL, other).normalize(blocks)
    with pytest.raises(InputError, match="prepared for"):
        ScoreModelNormalizer(MODEL, ScoreMatrix(np.zeros((3, 3)), names("N", 3), names("M", 3))).normalize(blocks)
    with pytest.raises(InputError, match=r"has 3 members"):
        ScoreModelNormalizer(MODEL, blocks.cohort).normalize_one(0.0, [1.0, 2.0])


@pytest.mark.usefixtures("route")
@examples(30)
@given(
    models(dims=(0, 1, 2)),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=5),
    st.sampled_from(["both", "enroll", "test"]),
    st.integers(0, 1000),
)
def test_scores_missing_within_speakers_are_left_out_as_in_the_papers_formula(model, sizes, sides, seed):
    rng = np.random.default_rng(seed)
    rows, columns = (np.array([f"s{g}" for g, size in enumerate(sizes) for _ in range(size[k])]) for k in (0, 1))
    if not len(rows) or not len(columns):
        return
    same = rows[:, None] == columns[None, :]
    matrix = np.where(same & (rng.random(same.shape) < 0.5), np.nan, rng.normal(3.0 * same, 1.0))
    scores = ScoreMatrix(matrix, names("e", len(rows)), names("t", len(columns)), missing="nan")
    blocks = ScoreBlocks(
        scores,
        enroll=None if sides == "test" else scores,
        test=None if sides == "enroll" else scores,
        cohort=scores,
        enroll_speakers=rows,
        test_speakers=columns,
        cohort_enroll_speakers=rows,
        cohort_test_speakers=columns,
    )
    nothing = np.full_like(matrix, np.nan)
    known = {
        "trials": matrix,
        "enroll": nothing if sides == "test" else matrix,
        "test": nothing if sides == "enroll" else matrix,
        "cohort": matrix,
    }
    speakers = {
        "enroll_speakers": rows,
        "test_speakers": columns,
        "cohort_enroll_speakers": rows,
        "cohort_test_speakers": columns,
    }
    expected = expected_llrs(model, known, same.astype(np.int8), speakers)
    np.testing.assert_allclose(llrs(model, blocks, WHOLE), expected, rtol=1e-8, atol=1e-8)
