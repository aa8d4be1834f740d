"""The evidence model: features from their definitions, by folds, with the blocks that there are; a head that helps."""

import numpy as np
import pytest

from evenscore import InputError, LabelledBlocks, ScoreBlocks, ScoreMatrix, Side, cllr, fit_norm, normalize
from evenscore.calibrate import LogisticCalibration
from evenscore.evidence import PairSpace, evidence_norm, fit_evidence
from evenscore.evidence.features import ScalePrior, measure, measure_by_folds
from evenscore.evidence.head import fit_head
from evenscore.model.scoring import ScoreModelNormalizer


def sides(n_speakers, tests, seed, name="s", dim=8):
    """Return enrolments (one per speaker) and tests with their speakers: speakers cluster, scales differ."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(n_speakers, dim)) + 1.5 * np.sign(rng.normal(size=(n_speakers, 1)))
    found = []
    for side, size in (("e", 1), ("t", tests)):
        speakers = np.repeat(np.arange(n_speakers), size)
        noise = rng.normal(size=(len(speakers), dim)) * np.linspace(0.2, 1.4, dim)
        ids = [f"{name}{side}{at}" for at in range(len(speakers))]
        found.append((Side(ids, [f"{name}{at}" for at in speakers]), centers[speakers] + noise))
    return found


def product(left, right):
    return ScoreMatrix(left[1] @ right[1].T / 3.0, left[0], right[0])


COHORT = sides(16, 3, 0)
TRAINING = LabelledBlocks.own_cohort(product(*COHORT))
NEW = sides(6, 2, 1, "new")
BLOCKS = ScoreBlocks(product(*NEW), product(NEW[0], COHORT[1]), product(COHORT[0], NEW[1]), product(*COHORT))


@pytest.fixture(scope="module")
def model():
    return fit_evidence(TRAINING)


def test_coordinates_of_pairs_are_those_of_the_definition():
    S_I, S_e, S_t = (np.asarray(block.scores) for block in (BLOCKS.cohort, BLOCKS.enroll, BLOCKS.test))
    space = PairSpace.from_cohort(S_I, COHORT[1][0].speakers)
    R = S_I - S_I.mean(1, keepdims=True) - S_I.mean(0) + S_I.mean()
    U, g, V = np.linalg.svd(R)
    U, g, V = U[:, :8], g[:8], V[:8].T  # the scores are products of 8 numbers
    column, row = S_I.mean(0) - S_I.mean(), S_I.mean(1) - S_I.mean()
    a = S_e - column - (S_e - column).mean(1, keepdims=True)
    c = S_t.T - row - (S_t.T - row).mean(1, keepdims=True)
    b = a @ V @ np.diag(g / (g**2 + (0.3 * g[0]) ** 2)) @ U.T @ c.T
    x, y = space.enroll(S_e), space.test(S_t.T)
    np.testing.assert_allclose((x * space.impostor) @ y.T, b, atol=1e-9)
    np.testing.assert_allclose(x @ y.T, a @ V @ np.diag(1 / g) @ U.T @ c.T, atol=1e-9)
    found = measure(BLOCKS, None, {})
    np.testing.assert_allclose(found["b"], b, atol=1e-9)


def test_measures_are_those_of_the_definition(model):
    found, S_e, S_t = measure(BLOCKS, model.score_model, {}), BLOCKS.enroll.scores, BLOCKS.test.scores
    np.testing.assert_allclose(found["mean_e"][:, 0], S_e.mean(axis=1))
    np.testing.assert_allclose(found["std_t"][0], S_t.std(axis=0, ddof=1))
    top = np.sort(S_e, axis=1)[:, -round(0.2 * S_e.shape[1]) :]
    np.testing.assert_allclose(found["top_std_e"][:, 0], top.std(axis=1, ddof=1))
    expected = ScoreModelNormalizer(model.score_model, BLOCKS).normalize(BLOCKS).scores
    np.testing.assert_allclose(found["score_model"], expected)


def test_scales_shrink_by_what_few_speakers_know():
    prior = ScalePrior(0.0, 0.1)
    std = np.full(4, np.e)
    np.testing.assert_allclose(prior.shrink(std, np.array([3.0, 3000.0, 1.0, 0.0])), [0.286, 0.998, 0, 0], atol=1e-3)
    rng = np.random.default_rng(0)
    truth, n = rng.normal(0.5, 0.3, size=4000), np.full(4000, 20.0)
    found = ScalePrior.estimate(np.exp(truth + rng.normal(0, np.sqrt(0.5 / 19), size=4000)), n)
    assert found.center == pytest.approx(0.5, abs=0.02)
    assert found.variance == pytest.approx(0.09, abs=0.01)


def test_training_trials_never_see_their_own_speakers(model):
    usual, rng = measure_by_folds(TRAINING.blocks, model.score_model, 16), np.random.default_rng(1)
    at, there = 3, 20  # an enrolment and a test of other speakers; 16 folds are one per speaker
    own = [TRAINING.blocks.trials.enroll.speakers[at], TRAINING.blocks.trials.test.speakers[there]]
    matrix = TRAINING.blocks.cohort
    noise = rng.normal(size=matrix.shape) * 50
    e, t = np.isin(matrix.enroll.speakers, own), np.isin(matrix.test.speakers, own)
    other = matrix.with_scores(np.where(e[:, None] | t, matrix.scores + noise, matrix.scores))
    known = [TRAINING.blocks.trials, TRAINING.blocks.enroll, TRAINING.blocks.test]
    S_e = known[1].with_scores(np.where(t, known[1].scores + noise, known[1].scores))
    S_t = known[2].with_scores(np.where(e[:, None], known[2].scores + noise, known[2].scores))
    changed = measure_by_folds(ScoreBlocks(known[0], S_e, S_t, other), model.score_model, 16)
    for name in usual:
        assert changed[name][at, there] == pytest.approx(usual[name][at, there])
    assert changed["b"][0, -1] != pytest.approx(usual["b"][0, -1])


def test_a_list_has_the_numbers_of_its_matrix(model):
    listed = BLOCKS.trials.to_trials().select(np.array([7, 2, 30]))
    whole = normalize(BLOCKS, "evidence", model=model)
    found = normalize(ScoreBlocks(listed, BLOCKS.enroll, BLOCKS.test, BLOCKS.cohort), "evidence", model=model)
    np.testing.assert_allclose(found.scores, whole.scores.ravel()[[7, 2, 30]])
    as_list = LabelledBlocks(TRAINING.blocks.with_trials(TRAINING.trials), TRAINING.labels)
    np.testing.assert_allclose(fit_evidence(as_list).head.weights, model.head.weights, rtol=1e-6)


@pytest.mark.parametrize(
    ("names", "features"),
    [
        (("enroll", "test"), ("raw", "ls_e", "ls_t", "s_norm", "as_norm")),
        (("enroll",), ("raw", "ls_e", "s_norm", "as_norm")),
        ((), ("raw",)),
    ],
)
def test_views_are_those_that_the_blocks_allow(names, features):
    part = LabelledBlocks(TRAINING.blocks.only(names), TRAINING.labels)
    model = fit_evidence(part)
    assert model.head.names == features
    assert np.isfinite(evidence_norm(BLOCKS.only(names), model).scores).all()
    if names:
        with pytest.raises(InputError, match="kinds of cohort scores"):
            evidence_norm(BLOCKS.only(()), model)


def test_evidence_beats_the_raw_scores_where_speakers_cluster():
    model, loss, raw = fit_norm("evidence", [TRAINING]).model, [], []
    calibration = LogisticCalibration.fit(TRAINING.trials.scores, TRAINING.trials.labels)
    for seed in range(5):
        new = sides(12, 3, 100 + seed, "new")
        blocks = ScoreBlocks(product(*new), product(new[0], COHORT[1]), product(COHORT[0], new[1]), product(*COHORT))
        key = (new[0][0].speakers[:, None] == new[1][0].speakers).ravel()
        loss.append(cllr(normalize(blocks, "evidence", model=model).scores.ravel(), key))
        raw.append(cllr(calibration(blocks.trials.scores.ravel()), key))
    assert np.mean(loss) < 0.9 * np.mean(raw)


def test_the_ridge_leaves_the_mean_of_the_views():
    rng = np.random.default_rng(0)
    labels = np.repeat([1, 0], [50, 500])
    features = {name: labels * 2.0 + rng.normal(size=550) for name in ("raw", "s_norm", "b")}
    head = fit_head(features, labels, ridge=1e6)
    assert np.abs(head.weights[1:]).max() < 1e-4
    assert head.weights[0] > 1
    loose, tight = (fit_head(features, labels, ridge=ridge) for ridge in (1e-9, 0.02))
    key = labels == 1
    assert cllr(loose(features), key) <= cllr(tight(features), key) <= cllr(head(features), key)
    features["raw"][3] = np.nan
    assert np.isnan(tight(features)[3])
    assert np.isfinite(tight(features)[:3]).all()


def test_missing_scores_and_float32_are_taken(model):
    S_e = np.array(BLOCKS.enroll.scores, np.float32)
    S_e[0, :5] = np.nan
    single = BLOCKS.trials.with_scores(BLOCKS.trials.scores.astype(np.float32))
    blocks = ScoreBlocks(single, BLOCKS.enroll.with_scores(S_e), BLOCKS.test, BLOCKS.cohort)
    found, usual = (evidence_norm(each, model).scores for each in (blocks, BLOCKS))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[1:], usual[1:], rtol=1e-3, atol=1e-3)
    assert np.isfinite(found[0]).all()


def test_what_cannot_be_trained_or_used_is_refused(model):
    with pytest.raises(InputError, match="no training trials"):
        fit_evidence([])
    with pytest.raises(InputError, match="target and non-target"):
        fit_head({"raw": np.ones(3)}, np.zeros(3, int))
    with pytest.raises(InputError, match="EvidenceModel"):
        evidence_norm(BLOCKS, model.score_model)
