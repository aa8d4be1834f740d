"""Scores of embeddings beside the same scores from whole blocks; folds, cohorts, trial lists."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError, LabelledBlocks, ScoreBlocks, ScoreMatrix, ScoreModel, Side, TrialList
from evenscore.norms import normalize
from evenscore.scoring import (
    Scorer,
    average_embeddings,
    embedding_blocks,
    embedding_quality,
    make_cohort,
    make_scorer,
    make_trials,
    score_by_folds,
    score_embeddings,
)


class WithOffsets(Scorer):
    """A scorer of one's own, with offsets on both sides."""

    def side(self, vectors):
        return vectors.vectors, np.abs(vectors.vectors).sum(axis=1)


def make_embeddings(seed, size, prefix, speakers=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    names = None if speakers is None else [[*speakers, None][k] for k in rng.integers(len(speakers) + 1, size=size)]
    gender = np.array(["f", "m"])[rng.integers(2, size=size)]
    vectors = rng.normal(size=(size, 6)).astype(dtype)
    return Embeddings([f"{prefix}{i}" for i in range(size)], vectors, names, columns={"gender": gender})


def matrix(scorer, enroll, test):
    scores = np.asarray(scorer.bilinear(enroll, test)).astype(np.float64)
    sides = (Side(side.ids, side.speakers, side.columns) for side in (enroll, test))
    return ScoreMatrix(np.where(enroll.ids[:, None] == test.ids, np.nan, scores), *sides)


@pytest.mark.parametrize("method", ["z", "t", "s", "zt", "tz", "az", "at", "as"])
@given(data=st.data())
def test_normalized_scores_equal_those_of_whole_blocks(method, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1000), "seed"))
    spoken = data.draw(st.sampled_from([None, ["a", "b", "c"]]), "speakers")
    dtype = data.draw(st.sampled_from([np.float32, np.float64]), "dtype")
    enroll = make_embeddings(rng.integers(99), data.draw(st.integers(1, 9), "m"), "u", spoken, dtype)
    one = data.draw(st.booleans(), "one set for both sides")
    test = enroll if one else make_embeddings(rng.integers(99), data.draw(st.integers(1, 9), "n"), "t", spoken, dtype)
    cohort = make_embeddings(7, 14, "c", data.draw(st.sampled_from([None, ["b", "x", "y", "z"]])), dtype)
    if data.draw(st.booleans(), "the cohort has an utterance of the trials"):
        cohort = Embeddings.concat([cohort, enroll.take([0])])
    scorer = data.draw(st.sampled_from([make_scorer("cosine"), make_scorer("dot"), WithOffsets()]), "scorer")
    options = {"empty": "missing", "std_floor": 1e-3} | ({"top_k": 4} if method.startswith("a") else {})
    if "top_k" in options:
        options["select"] = data.draw(st.sampled_from(["own", "cross", "profile"]), "select")
    raw = matrix(scorer, enroll, test)
    blocks = [matrix(scorer, enroll, cohort), matrix(scorer, cohort, test), matrix(scorer, cohort, cohort)]
    expected = normalize(ScoreBlocks(raw, *blocks), method, **options).scores
    given_options = {"scorer": scorer, "cohort": cohort, "method": method, **options}
    tolerance = {"rtol": 3e-3, "atol": 3e-3} if dtype == np.float32 else {"rtol": 1e-8, "atol": 1e-8}
    np.testing.assert_allclose(score_embeddings(enroll, test, **given_options).scores, expected, **tolerance)
    rows, cols = np.nonzero(rng.random(raw.shape) < 0.6)
    listed = TrialList.from_codes(raw.enroll, raw.test, rows, cols)
    found = score_embeddings(enroll, test, listed, **given_options)
    wanted = expected[rows, cols]
    np.testing.assert_allclose(found.scores, wanted[~np.isnan(wanted)], **tolerance)
    assert (np.isnan(wanted).sum() == 0) == (len(found) == len(listed))


def test_an_utterance_has_no_score_against_itself():
    takes, others = make_embeddings(1, 4, "u"), make_embeddings(2, 3, "t")
    both = Embeddings.concat([others, takes.take([2])])
    assert np.argwhere(np.isnan(score_embeddings(takes, takes).scores)).tolist() == [[i, i] for i in range(4)]
    assert np.argwhere(np.isnan(score_embeddings(takes, both).scores)).tolist() == [[2, 3]]
    listed = TrialList(["u0", "u2", "u2"], ["u2", "u2", "t1"], labels=[1, 1, 0])
    scored = score_embeddings(takes, both, TrialList(["u0", "u2", "u2"], ["u2", "u2", "t1"], labels=[1, 1, 0]))
    assert [scored.pair(at) for at in range(len(scored))] == [("u0", "u2"), ("u2", "t1")]
    assert scored.labels.tolist() == [1, 0]
    known = score_embeddings(
        takes, both, listed.with_scores([5.0, 6.0, 7.0]), takes, method="z", empty="raw", top_k=None
    )
    assert len(known) == 2
    assert np.isnan(np.diag(score_embeddings(takes.vectors, takes.vectors))).all()


def test_arrays_make_arrays_and_lazy_scores_are_the_same():
    enroll, test, cohort = (make_embeddings(k, 5, name) for k, name in enumerate("etc"))
    array = score_embeddings(enroll.vectors, test.vectors, cohort=cohort.vectors, method="s")
    np.testing.assert_array_equal(array, score_embeddings(enroll, test, cohort=cohort, method="s").scores)
    lazy = embedding_blocks(enroll, test, cohort, method="s", lazy=True)
    assert hasattr(lazy.trials.scores, "dask")
    np.testing.assert_allclose(normalize(lazy, "s").compute().scores, array)


@pytest.mark.parametrize("listed", [False, True])
def test_the_score_model_takes_products_in_place_of_matrices(listed):
    model = ScoreModel(mu=[0.0, 0.6], alpha=[[0.1], [0.2]], beta=[[0.1], [0.1]], sigma2=[0.1, 0.1])
    enroll, test = make_embeddings(1, 3, "e"), make_embeddings(2, 4, "t")
    cohort = make_embeddings(7, 14, "c", ["x", "y", "z"])
    trials = TrialList(["e1", "e0"], ["t0", "t3"]) if listed else None
    found = score_embeddings(enroll, test, trials, cohort=cohort, method="lgsm", model=model).scores
    pairs = [(enroll, test), (enroll, cohort), (cohort, test), (cohort, cohort)]
    expected = normalize(ScoreBlocks(*(matrix(make_scorer(), *pair) for pair in pairs)), "lgsm", model=model).scores
    np.testing.assert_allclose(found, expected[[1, 0], [0, 3]] if listed else expected, rtol=1e-9)


def test_quality_measures_are_of_one_side():
    enroll, test, cohort = (make_embeddings(k, 6, name, ["a", "b"]) for k, name in enumerate("etc"))
    blocks = embedding_blocks(enroll, test, cohort, scorer="dot", method="s")
    of_enroll, of_test = embedding_quality(blocks, enroll, test, "s", np.ones(6), ddof=1)
    np.testing.assert_allclose(of_enroll.columns["mag"], np.linalg.norm(enroll.vectors - 1, axis=1))
    against = cohort.vectors @ test.vectors.T
    np.testing.assert_allclose(of_test.columns["mu"], against.mean(axis=0))
    np.testing.assert_allclose(of_test.columns["sigma"], against.std(axis=0, ddof=1))


def spoken(sizes=(1, 2, 3, 4, 5, 6, 2, 2, 2), seed=0, letter="s"):
    names = np.repeat([f"{letter}{n}" for n in range(len(sizes))], sizes)
    vectors = np.random.default_rng(seed).normal(size=(len(names), 4)) + 1
    return Embeddings([f"u{letter}-{n}" for n in range(len(names))], vectors, names)


def test_no_trial_is_scored_by_what_was_trained_on_its_speakers():
    known, seen = spoken(), []

    def train(part):
        seen.append(set(part.speakers))
        return make_scorer("cosine", part, center="mean")

    scores = score_by_folds(train, known, folds=3).scores
    assert len(seen) == 6  # pairs of folds, and folds with themselves
    fits = {
        frozenset(names): train(known.take(np.isin(known.speakers, list(names))))(known, known) for names in seen[:6]
    }
    for i, j in np.ndindex(scores.shape):
        a, b = known.speakers[i], known.speakers[j]
        allowed = [found[i, j] for names, found in fits.items() if a not in names and b not in names]
        assert np.isclose(scores[i, j], allowed, equal_nan=True).any()
    new = spoken((1, 1), seed=1, letter="x")
    plain = make_scorer("cosine", known, center="mean")(new, new)
    np.testing.assert_allclose(score_by_folds(train, known, new, new, folds=3).scores, plain)


@pytest.mark.parametrize("folds", [2, 1])
def test_folds_that_leave_nothing_are_refused(folds):
    with pytest.raises(InputError, match="at least 3"):
        score_by_folds(lambda part: make_scorer(), spoken(), folds=folds)
    with pytest.raises(InputError, match="speaker of every embedding"):
        score_by_folds(lambda part: make_scorer(), spoken(), test=make_embeddings(1, 3, "t"))


@pytest.mark.parametrize("length_norm", ["none", "before", "after", "both"])
def test_a_cohort_of_speakers_has_one_mean_each(length_norm):
    data = make_embeddings(0, 30, "u", ["a", "b", "c"])
    data = data.take(np.flatnonzero(data.speakers != None))  # noqa: E711
    cohort = make_cohort(data, "speaker", length_norm=length_norm, exclude_speakers=["b"])
    assert sorted(cohort.ids) == sorted(cohort.speakers) == ["a", "c"]
    vectors = data.vectors
    if length_norm in ("before", "both"):
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for name, vector in zip(cohort.ids, cohort.vectors, strict=True):
        mean = vectors[data.speakers == name].mean(axis=0)
        np.testing.assert_allclose(vector, mean / (np.linalg.norm(mean) if length_norm in ("after", "both") else 1))
    mixed = average_embeddings(data, {"all": list(data.ids), "one": [data.ids[3]]})
    assert mixed.speakers.tolist() == [None, data.speakers[3]]
    assert "gender" not in mixed.columns


def test_cohorts_that_cannot_be_made_are_refused():
    nameless = Embeddings(["u1"], [[1.0]])
    for options in ({"unit": "speaker"}, {"exclude_speakers": ["ann"]}, {"unit": "word"}, {"length_norm": "twice"}):
        with pytest.raises(InputError):
            make_cohort(nameless, **options)
    with pytest.raises(InputError, match="'u2'"):
        make_cohort(Embeddings(["u1", "u2"], [[1.0], [2.0]], ["ann", None]), "speaker")
    with pytest.raises(InputError, match="no utterances"):
        average_embeddings(nameless, {"m": []})


@pytest.mark.parametrize(
    ("change", "culprit"),
    [
        ({"scorer": "euclid"}, "euclid"),
        ({"cohort": None}, "cohort"),
        ({"top_k": 99}, "99"),
        ({"topk": 9}, "topk"),
        ({"method": "ss"}, "ss"),
        ({"cohort": Embeddings(["c"], [[1.0]])}, "1 dimensions"),
        ({"trials": TrialList(["e0"], ["t99"])}, "t99"),
    ],
)
def test_bad_input_is_refused_by_name(change, culprit):
    options = {"cohort": make_embeddings(7, 14, "c"), "method": "as", "top_k": 3} | change
    with pytest.raises(InputError, match=culprit):
        score_embeddings(make_embeddings(1, 3, "e"), make_embeddings(2, 3, "t"), **options)


def test_all_pairs_are_listed_once_with_their_labels():
    speakers = {f"u{n}": f"s{n % 4}" for n in range(10)}
    trials = make_trials(speakers)
    pairs = [trials.pair(at) for at in range(len(trials))]
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == 45
    assert trials.labels.tolist() == [speakers[a] == speakers[b] for a, b in pairs]


@given(st.integers(0, 100), st.integers(0, 5), st.integers(0, 9), st.booleans())
def test_drawn_trials_are_as_many_as_asked_for_and_of_one_condition(seed, targets, nontargets, conditions):
    rng = np.random.default_rng(seed)
    speakers = {f"u{n}": f"s{rng.integers(6)}" for n in range(40)}
    gender = {name: "fm"[rng.integers(2)] for name in speakers} if conditions else None
    trials = make_trials(speakers, targets=targets, nontargets=nontargets, conditions=gender, seed=seed)
    assert trials == make_trials(speakers, targets=targets, nontargets=nontargets, conditions=gender, seed=seed)
    pairs = [trials.pair(at) for at in range(len(trials))]
    assert all(a != b and (gender is None or gender[a] == gender[b]) for a, b in pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    for label, most in ((1, targets), (0, nontargets)):
        chosen = [speakers[a] for (a, _), one in zip(pairs, trials.labels, strict=True) if one == label]
        assert max(map(chosen.count, chosen), default=0) <= most
    assert (targets == 0) or conditions or (trials.labels == 1).any()


def test_blocks_of_embeddings_train_norms():
    data = spoken((3,) * 12)
    blocks = embedding_blocks(data, data, data, scorer=make_scorer("cosine"))
    assert blocks.cohort.shape == (36, 36)
    assert LabelledBlocks.own_cohort(score_embeddings(data, data)).trials.labels.sum() == 12 * 3 * 2
