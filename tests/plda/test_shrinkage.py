"""PLDA with few speakers: covariances are shrunk as left-out speakers advise, and ratios are no surer than they may."""

import numpy as np
import pytest

from evenscore import Embeddings, InputError, cllr, fit_plda
from evenscore.plda.shrinkage import CHOICES, CLOSE, choose_shrinkage, shrunk
from evenscore.sources import Cosine


def takes(n_speakers, size, dim, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    speakers = np.repeat(np.arange(n_speakers), size)
    vectors = spread * rng.normal(size=(n_speakers, dim))[speakers] + rng.normal(size=(len(speakers), dim))
    return Embeddings([f"{seed}-{n}" for n in range(len(speakers))], vectors, [f"{seed}-{n}" for n in speakers])


def loss(model, data):
    rows, columns = np.triu_indices(len(data), 1)
    return cllr(model.score(data, data).pairs(rows, columns), data.speakers[rows] == data.speakers[columns])


def test_equal_variances_replace_a_share_of_a_covariance():
    found = shrunk(np.array([[4.0, 1.0], [1.0, 2.0]]), 0.5)
    np.testing.assert_allclose(found, [[3.5, 0.5], [0.5, 2.5]])


def test_few_speakers_in_many_dimensions_give_sane_ratios():
    train, new = takes(20, 4, 40, spread=0.7), takes(20, 4, 40, seed=1, spread=0.7)
    plain = fit_plda(train, shrinkage=0, length_normalize=False, max_iter=20)
    chosen = fit_plda(train, length_normalize=False)
    assert chosen.converged
    assert chosen.shrinkage >= 0.3
    assert loss(plain.model, new) > 1  # worse than knowing nothing
    assert loss(chosen.model, new) < 0.6
    fewer = takes(12, 2, 40, seed=2)
    with pytest.raises(InputError, match="singular"):
        fit_plda(fewer, shrinkage=0)
    assert loss(fit_plda(fewer).model, takes(12, 2, 40, seed=3)) < 0.9


def test_many_speakers_in_few_dimensions_need_none():
    train = takes(300, 4, 2)
    train = Embeddings(train.ids, train.vectors * [1.0, 3.0], train.speakers)
    fit = fit_plda(train, length_normalize=False)
    assert fit.shrinkage <= 0.1
    assert fit.inflation == pytest.approx(1, abs=0.2)


def test_inflation_divides_all_but_the_constant():
    data = takes(10, 3, 3)
    plain, wide = (fit_plda(data, shrinkage=0.5, inflation=by).model for by in (None, 2.0))
    scores, less = (model.score(data, data).block() for model in (plain, wide))
    np.testing.assert_allclose(less - wide.constant, (scores - plain.constant) / 2, atol=1e-10)
    assert wide.constant == pytest.approx(plain.constant)


def test_too_few_speakers_to_leave_any_out():
    assert fit_plda(takes(5, 3, 4)).shrinkage == CLOSE
    assert choose_shrinkage(takes(12, 3, 4), lambda part, share: None).shrinkage == CLOSE


def test_left_out_speakers_are_left_out():
    data, met = takes(12, 3, 4), []

    def train(part, share):
        met.append((share, frozenset(part.speakers)))
        return Cosine(part.vectors.mean(axis=0))

    assert choose_shrinkage(data, train).inflation == 1.0
    assert [share for share, _ in met] == [share for share in CHOICES for _ in range(3)]
    everybody = frozenset(data.speakers)
    for share in CHOICES:
        left_out = [everybody - seen for found, seen in met if found == share]
        assert sorted(name for part in left_out for name in part) == sorted(everybody)


@pytest.mark.parametrize("options", [{"shrinkage": 1.0}, {"shrinkage": "some"}, {"inflation": 0.0}])
def test_what_cannot_be_meant_is_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        fit_plda(takes(5, 3, 4), **options)
