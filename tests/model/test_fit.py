"""Training: golden values of another program, recovery of known models, notes and errors."""

import json
from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from evenscore import (
    InputError,
    Labels,
    ScoreMatrix,
    ScoreModel,
    ScoreModelNormalizer,
    TrialList,
    fit_score_model,
    log_likelihood,
    simulate,
)
from evenscore.model import BilinearScores

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.8, 0.1], [0.2, 1.1]], beta=[[0.5, 0.0], [0.3, 0.6]], sigma2=[1.0, 1.5])
GOLDEN = json.loads((Path(__file__).parent / "golden" / "crossed_effects.json").read_text(encoding="utf-8"))
SPEAKERS = [f"s{n % 12}" for n in range(60)]


@pytest.fixture(scope="module")
def data():
    return simulate(MODEL, SPEAKERS, SPEAKERS[:50], seed=1)


@pytest.mark.parametrize("design", GOLDEN["designs"], ids=lambda design: len(design["scores"]))
def test_variance_components_are_those_of_statsmodels(design):
    # The non-targets are the design; the targets are one pair of columns that no non-target shares.
    scores = np.array(design["scores"])
    K, L = scores.shape
    both, key = np.full((K + 4, L + 4), np.nan), np.full((K + 4, L + 4), -1)
    both[:K, :L], key[:K, :L] = scores, 0
    both[K:, L:], key[K:, L:] = np.random.default_rng(0).normal(size=(4, 4)), 1
    model, expected = fit_score_model(both, key).model, design["expected"]
    table = model.variances
    assert model.mu[0] == pytest.approx(expected["mean"], rel=1e-3)
    found = [table.nu_enroll[0], table.nu_test[0], table.sigma2[0]]
    np.testing.assert_allclose(found, [expected[name] for name in ("row", "column", "residual")], rtol=5e-3)


def test_both_methods_find_the_same_maximum(data):
    fits = [fit_score_model(*data, method=method) for method in ("em", "bfgs")]
    assert all(fit.converged for fit in fits)
    assert fits[0].log_likelihood[-1] == pytest.approx(fits[1].log_likelihood[-1], abs=1e-3)
    for fit in fits:
        assert min(np.diff(fit.log_likelihood)) > -1e-7
        assert log_likelihood(fit.model, *data) == pytest.approx(fit.log_likelihood[-1], rel=1e-12)
        assert fit.log_likelihood[-1] > log_likelihood(MODEL, *data)
    covariances = [fit.model.variances.test_covariance for fit in fits]
    np.testing.assert_allclose(*covariances, atol=5e-3)


def test_bfgs_goes_on_where_em_creeps():
    rng = np.random.default_rng(3)
    scores, labels = simulate(MODEL, SPEAKERS[:14], SPEAKERS[:13], seed=8)
    values = np.where(rng.random(scores.shape) < 0.6, np.nan, scores.scores)
    slow = fit_score_model(values, labels, method="em", max_iter=60)
    fast = fit_score_model(values, labels)
    assert fast.converged
    assert fast.log_likelihood[-1] >= slow.log_likelihood[-1]
    assert min(np.diff(fast.log_likelihood)) > -1e-9


def test_dimensions_are_nested(data):
    values = [fit_score_model(*data, dim=dim).log_likelihood[-1] for dim in (0, 1, 2, 3)]
    assert values[0] < values[1] <= values[2] + 1e-6
    assert values[3] == pytest.approx(values[2])
    assert fit_score_model(*data, dim=3).model.dim == 3
    no_hidden = fit_score_model(*data, dim=0).model
    key = data[1].matrix
    np.testing.assert_allclose(no_hidden.mu, [data[0].scores[key == h].mean() for h in (0, 1)])
    np.testing.assert_allclose(no_hidden.sigma2, [data[0].scores[key == h].var() for h in (0, 1)])


def test_every_form_of_data_gives_the_same_model(data):
    scores, labels = data
    expected = fit_score_model(scores, labels).log_likelihood[-1]
    lazy = ScoreMatrix(da.from_array(scores.scores, (17, 13)), scores.enroll, scores.test)
    forms = [
        ((scores.scores, labels),),
        ([(scores.scores, labels.matrix)],),
        (scores.with_speakers(SPEAKERS, SPEAKERS[:50]),),
        (lazy, labels),
        (scores.to_trials(labels),),
        (scores.T.scores, labels.matrix.T),
    ]
    for form in forms:
        assert fit_score_model(*form).log_likelihood[-1] == pytest.approx(expected, rel=1e-11)


def test_unknown_speakers_have_no_scores(data):
    scores, labels = data
    speakers = [None if n % 7 == 0 else name for n, name in enumerate(SPEAKERS)]
    some = Labels.from_speakers(speakers, SPEAKERS[:50])
    kept = np.array([name is not None for name in speakers])
    found = log_likelihood(MODEL, scores.scores, some)
    assert found == pytest.approx(log_likelihood(MODEL, scores.scores[kept], labels.take(np.flatnonzero(kept), None)))


def test_what_the_data_do_not_determine_is_told():
    rng = np.random.default_rng(0)
    key = np.eye(12, dtype=int)
    fit = fit_score_model(3 * key + rng.normal(size=(12, 12)), key)
    assert [note.split()[1] for note in fit.undetermined] == ["enrolment", "test"]
    assert set(fit.undetermined) <= set(fit.notes)
    twice = fit_score_model(rng.normal(size=(12, 12)), np.repeat(key[::2], 2, axis=0))
    assert [note.split()[1] for note in twice.undetermined] == ["enrolment"]


@pytest.mark.parametrize(
    ("options", "culprit"),
    [
        ({"dim": -1}, "dim"),
        ({"method": "sgd"}, "method"),
        ({"residuals": "t"}, "residuals"),
        ({"tol": -1}, "tol"),
        ({"max_iter": 0.5}, "max_iter"),
    ],
)
def test_odd_options_are_refused(data, options, culprit):
    with pytest.raises(InputError, match=culprit):
        fit_score_model(*data, **options)


def test_odd_scores_are_refused():
    rng = np.random.default_rng(0)
    scores, key = rng.normal(size=(4, 4)), np.eye(4, dtype=int)
    for odd, labels, culprit in (
        (scores, np.zeros((4, 4)), "no target"),
        (scores, np.eye(4)[:3], "shape|agree|are"),
        (np.where(key, 1.0, scores), key, "equal"),
        (np.where(key, np.inf, scores), key, "infinite"),
        (scores, None, "label"),
    ):
        with pytest.raises(InputError, match=culprit):
            fit_score_model(odd, labels)
    with pytest.raises(InputError, match="no labels"):
        fit_score_model(TrialList(["a"], ["b"], [1.0]))


def test_embeddings_need_no_matrix(data):
    rng = np.random.default_rng(4)
    left, right = rng.normal(size=(60, 6)) + 1, rng.normal(size=(50, 6)).astype(np.float32)
    offsets = rng.normal(size=60) + 3, rng.normal(size=50)
    virtual = BilinearScores(left, right, *offsets, missing=(np.arange(20), np.arange(20)))
    scores, labels = np.asarray(virtual), data[1]
    assert np.isnan(scores).sum() == 20
    assert log_likelihood(MODEL, virtual, labels) == pytest.approx(log_likelihood(MODEL, scores, labels), rel=1e-9)
    fits = [fit_score_model(form, labels, residuals="hyperbolic") for form in (virtual, scores)]
    assert fits[0].log_likelihood[-1] == pytest.approx(fits[1].log_likelihood[-1], rel=1e-9)
    assert fits[0].model.residuals is not None
    # a cohort of vectors, and trials of vectors, score as their matrices do
    e, t = rng.normal(size=(3, 6)), rng.normal(size=(2, 6))
    blocks = BilinearScores(e, t), BilinearScores(e, right, None, offsets[1]), BilinearScores(left, t, offsets[0])
    found = ScoreModelNormalizer(fits[0].model, virtual, labels).llr(*blocks)
    expected = ScoreModelNormalizer(fits[0].model, scores, labels).llr(*map(np.asarray, blocks))
    np.testing.assert_allclose(found, expected, rtol=1e-7)
