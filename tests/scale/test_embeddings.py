"""Scores of embeddings, made in chunks, are those that `score_embeddings` makes in one go."""

import numpy as np
import pytest

from evenscore import Embeddings, InputError, fit_score_model, score_embeddings
from evenscore.scoring import score_lazily
from evenscore.sources import Cosine
from evenscore.tables import Labels
from scale.chunked_examples import MODEL, ids, in_tiles


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr("evenscore.scoring.embeddings.TILE_BYTES", 2000)


def some(rng, prefix, number, speakers=None):
    names = None if speakers is None else [f"s{place % speakers[0] + speakers[1]}" for place in range(number)]
    sex = {"sex": np.array(["fm"[place % 2] for place in range(number)], dtype=object)}
    return Embeddings(ids(prefix, number), rng.normal(size=(number, 8)), names, columns=sex)


def sides_of(kind):
    rng = np.random.default_rng(9)
    known = (9, 0), (11, 0), (13, 5)
    enroll, test, cohort = (
        some(rng, prefix, number, known[place] if kind == "own speakers" else None)
        for place, (prefix, number) in enumerate((("e", 13), ("t", 11), ("c", 30)))
    )
    return (enroll, enroll, cohort) if kind == "one file" else (enroll, test, cohort)


def test_conditions():
    enroll, test, cohort = sides_of("strangers")
    asked = {"cohort": cohort, "method": "s", "condition": "sex"}
    wanted = score_embeddings(enroll, test, **asked)
    np.testing.assert_allclose(score_lazily(enroll, test, **asked).in_memory().scores, wanted.scores, rtol=1e-9)
    with pytest.raises(InputError, match="knows no conditions"):
        score_lazily(enroll, test, **asked | {"method": "lgsm", "model": MODEL})


def test_a_norm_and_a_cohort_belong_together():
    enroll, test, cohort = sides_of("strangers")
    with pytest.raises(InputError, match="the norm 'as' needs a cohort; give embeddings of other speakers"):
        score_lazily(enroll, test, method="as")
    with pytest.raises(InputError, match="a cohort or options of a norm were given, but no norm; name one"):
        score_lazily(enroll, test, cohort=cohort)


def test_training_on_chunks_of_scores_is_training_on_the_bilinear_form():
    enroll, test, _ = sides_of("own speakers")
    labels = Labels.from_speakers(enroll.speakers, test.speakers)
    scores = Cosine().score(enroll, test)
    one, other = (fit_score_model([(table, labels)], starts=1, max_iter=20) for table in (scores, in_tiles(scores)))
    np.testing.assert_allclose(one.log_likelihood, other.log_likelihood, rtol=1e-9)
