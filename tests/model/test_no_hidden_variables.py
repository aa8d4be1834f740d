"""D = 0, Gaussian calibration: works wherever the score model does, and looks at no cohort."""

import numpy as np
import pytest

from evenscore import (
    Cosine,
    Embeddings,
    GaussianCalibration,
    LabelledBlocks,
    Labels,
    ScoreModel,
    ScoreModelNormalizer,
    TrialList,
    adapt_score_model,
    compare,
    fit_norm,
    fit_score_model,
    load_model,
    log_likelihood,
    normalize,
    save_model,
    simulate,
    simulate_blocks,
)
from evenscore.calibrate.gaussian import gaussian_llr
from evenscore.model import BilinearNormalizer
from tilings import RAGGED, tiled, tiled_blocks

TRUTH = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.9, 0.0], [0.7, 0.5]], beta=[[0.8, 0.0], [0.6, -0.5]], sigma2=[1.0, 1.5])
FLAT = ScoreModel(mu=[-2.0, 3.0], alpha=[[], []], beta=[[], []], sigma2=[1.0, 2.5])
SPEAKERS = [f"s{n % 12}" for n in range(24)]
SCORES, LABELS = simulate(TRUTH, SPEAKERS, SPEAKERS, seed=1)


def plain(model, scores):
    return gaussian_llr(np.asarray(scores, dtype=float), model.mu, model.sigma2)


def listed_with_gaps():
    trials = SCORES.to_trials(LABELS)
    return trials.select(np.flatnonzero(np.arange(len(trials)) % 5 > 0))


@pytest.mark.parametrize("data", [(SCORES, LABELS), listed_with_gaps(), (tiled(SCORES, RAGGED), LABELS)])
def test_training_is_gaussian_calibration(data):
    result = fit_score_model([data], 0)
    trials = data if isinstance(data, TrialList) else SCORES.to_trials(LABELS)
    expected = GaussianCalibration.fit(trials.scores, trials.labels)
    np.testing.assert_allclose(result.model.mu, expected.mean, rtol=1e-10)
    np.testing.assert_allclose(result.model.sigma2, expected.variance, rtol=1e-10)
    assert result.converged
    assert result.n_iter == 1
    assert log_likelihood(result.model, [data]) == pytest.approx(result.log_likelihood[-1], rel=1e-10)


def test_training_trials_are_scored_without_regard_to_their_speakers():
    fitted = fit_norm("lgsm", LabelledBlocks.own_cohort(SCORES, LABELS), dim=0)
    np.testing.assert_allclose(fitted.training_scores[0].scores, plain(fitted.model, SCORES.scores), rtol=1e-10)


class Unread:
    """A source that nobody may read."""

    def read(self, place):
        raise AssertionError("a cohort was read that changes nothing")

    def identity(self):
        return "unread"


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("as_list", [False, True])
def test_no_cohort_score_is_read_in_tiles(own, as_list):
    names = SPEAKERS if own else [f"c{n % 12}" for n in range(24)]
    blocks, labels = simulate_blocks(TRUTH, SPEAKERS, SPEAKERS, names, names, seed=3)
    trials = blocks.trials.to_trials(labels) if as_list else blocks.trials
    cut = tiled_blocks(blocks.replace(trials=trials), RAGGED)
    unread = {name: getattr(cut, name).with_source(Unread()) for name in ("enroll", "test", "cohort")}
    found = normalize(cut.replace(**unread), "lgsm", model=FLAT).in_memory()
    np.testing.assert_allclose(found.scores, plain(FLAT, trials.scores), rtol=1e-10)


def test_embeddings_are_scored_without_their_cohort():
    rng = np.random.default_rng(0)
    enroll, test, cohort = (
        Embeddings([f"{side}{n}" for n in range(5)], rng.normal(size=(5, 4)), [f"{side}{n}" for n in range(5)])
        for side in "etc"
    )
    model = ScoreModel(mu=[0.0, 0.7], alpha=[[], []], beta=[[], []], sigma2=[0.2, 0.1])
    scores = Cosine().score(enroll, test)
    found = BilinearNormalizer(model, Cosine().score(cohort, cohort)).normalize(scores)
    np.testing.assert_allclose(found.scores, plain(model, scores.in_memory().scores), rtol=1e-9)
    labels = Labels.from_speakers(SPEAKERS[:5], SPEAKERS[:5], enroll_ids=enroll.ids, test_ids=test.ids)
    assert fit_score_model([(scores, labels)], 0).model.dim == 0


def test_one_trial_with_any_cohort_scores():
    normalizer = ScoreModelNormalizer(FLAT, SCORES, LABELS)
    cohort = np.full(24, np.nan)
    for given in ((None, None), (SCORES.scores[0], SCORES.scores[:, 0]), (cohort, None)):
        assert normalizer.normalize_one(1.5, *given) == pytest.approx(plain(FLAT, 1.5))
    assert normalizer.posterior(SCORES.scores[0]).enroll.shape == (0,)


def test_a_file_keeps_it(tmp_path):
    save_model(FLAT, tmp_path / "flat.json")
    assert load_model(tmp_path / "flat.json") == FLAT


def test_it_adapts_to_a_shift():
    flat = ScoreModel(mu=[0.0, 5.0], alpha=[[], []], beta=[[], []], sigma2=[1.0, 1.0])
    moved, labels = simulate(flat.rescaled(1.0, 2.0), SPEAKERS, SPEAKERS, seed=4)
    found = adapt_score_model(flat, moved, prior=labels.matrix.mean()).model
    assert found.dim == 0
    np.testing.assert_allclose(found.mu, [2.0, 7.0], atol=0.3)


def test_it_is_compared_with_and_without_a_cohort():
    blocks, labels = simulate_blocks(TRUTH, SPEAKERS, SPEAKERS, *[[f"c{n % 12}" for n in range(24)]] * 2, seed=5)
    training = LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels)
    bare = blocks.replace(enroll=None, test=None, cohort=None, cohort_labels=None)
    for side in (blocks, bare):
        found = compare([training], [LabelledBlocks(side, labels)], ["lgsm:dim=0"], bootstrap=5)
        assert not found.not_run
        flat = found["lgsm:dim=0"]
        np.testing.assert_allclose(flat.scores, plain(flat.model, blocks.trials.scores).reshape(-1), rtol=1e-9)
