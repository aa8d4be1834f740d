"""Training scores by folds: each comes from a scorer that never met its speakers."""

import numpy as np
import pytest

from evenscore import Cosine, Embeddings, InputError, fit_plda
from evenscore.scoring import ByFolds, score_by_folds

SPEAKERS = np.repeat([f"s{n}" for n in range(9)], [1, 2, 3, 4, 5, 6, 2, 2, 2])


def takes(speakers=SPEAKERS, seed=0):
    rng = np.random.default_rng(seed)
    return Embeddings([f"u{seed}-{n}" for n in range(len(speakers))], rng.normal(size=(len(speakers), 4)) + 1, speakers)


def test_nobody_is_scored_by_what_was_trained_on_him():
    known, met = takes(), []

    def train(part):
        met.append(set(part.speakers))
        return Cosine(part.vectors.mean(axis=0))

    scores = score_by_folds(train, known, folds=3)
    assert len(met) == 6  # pairs of folds, and folds with themselves
    for i, j in np.ndindex(scores.scores.shape):
        a, b = known.speakers[i], known.speakers[j]
        if i == j:
            assert np.isnan(scores.scores[i, j])
            continue
        fits = [
            Cosine(known.vectors[np.isin(known.speakers, list(part))].mean(axis=0)).score(known, known).block()[i, j]
            for part in met
            if a not in part and b not in part
        ]
        assert np.isclose(scores.scores[i, j], fits).any()


def test_who_is_not_in_the_training_data_is_left_out_of_nothing():
    known, new = takes(), takes(np.array(["x", "y"]), seed=1)
    scores = score_by_folds(lambda part: fit_plda(part, method="moments").model, known, new, new, folds=3)
    expected = fit_plda(known, method="moments").model.score(new, new).block()
    assert np.allclose(scores.scores[0, 1], expected[0, 1])
    mixed = score_by_folds(lambda part: fit_plda(part, method="moments").model, known, new, known, folds=3)
    assert mixed.scores.shape == (2, 27)
    assert np.isfinite(mixed.scores).all()


def test_tables_by_folds_give_any_part_of_the_matrix():
    known = takes()
    scorer = ByFolds(lambda part: Cosine(part.vectors.mean(axis=0)), known, folds=3)
    table, rng = scorer.score(known, known), np.random.default_rng(2)
    whole = table.block()
    rows, columns = rng.integers(0, 27, 11), rng.integers(0, 27, 11)
    assert np.allclose(table.pairs(rows, columns), whole[rows, columns])
    assert np.allclose(table.block(rows, slice(3, 9)), whole[rows, 3:9])
    assert np.allclose(table.take(rows, columns).block(), whole[np.ix_(rows, columns)])
    assert np.allclose(table.in_tiles(200).in_memory().scores, whole)
    assert scorer.concerns(known)
    assert not scorer.concerns(takes(np.array(["x", "y"]), seed=1))
    assert table.identity() != table.take(rows).identity()
    assert np.array_equal(scorer.score(known, known).block(), whole)


def test_what_cannot_be_divided_is_refused():
    known = takes()
    with pytest.raises(InputError, match="folds is 2"):
        score_by_folds(lambda part: Cosine(), known, folds=2)
    with pytest.raises(InputError, match="fewer than 20 folds"):
        score_by_folds(lambda part: Cosine(), known, folds=20)
    with pytest.raises(InputError, match="no speakers to divide into folds"):
        score_by_folds(lambda part: Cosine(), Embeddings(known.ids, known.vectors))
    with pytest.raises(InputError, match="speaker of test 'u0-0' is not known"):
        score_by_folds(lambda part: Cosine(), known, test=Embeddings(known.ids, known.vectors))
