"""Scores from embeddings against the same scores from whole blocks, and against plain numpy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Cosine, Embeddings, InputError, ScoreBlocks, ScoreMatrix, ScoreModel, TrialList, score_blocks
from evenscore.norms import Conditions, NormOptions, normalize
from evenscore.scoring import make_cohort, score_embeddings, score_lazily
from evenscore.sources import Bilinear
from tilings import RAGGED, TILINGS, tiled

pytestmark = pytest.mark.usefixtures("route")


class Lopsided:
    """A scorer that is not symmetric, with offsets on both sides."""

    W = np.random.default_rng(5).normal(size=(6, 6))

    def score(self, enroll, test):
        return Bilinear(
            left=enroll.vectors @ self.W,
            right=test.vectors,
            enroll_ids=enroll.ids,
            test_ids=test.ids,
            left_offset=np.abs(enroll.vectors).sum(axis=1),
            right_offset=-test.vectors[:, 0],
        )


def make_embeddings(seed, size, prefix, speakers=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    names = None if speakers is None else [[*speakers, None][k] for k in rng.integers(len(speakers) + 1, size=size)]
    gender = np.array(["f", "m"])[rng.integers(2, size=size)]
    vectors = rng.normal(size=(size, 6)).astype(dtype)
    return Embeddings([f"{prefix}{i}" for i in range(size)], vectors, names, columns={"gender": gender})


def blocks_of(raw, scorer, enroll, test, cohort):
    """All blocks, whole."""
    blocks = score_blocks(scorer, enroll, test, cohort)

    def speakers(embeddings):
        return None if embeddings.speakers is None else dict(zip(embeddings.ids, embeddings.speakers, strict=True))

    return ScoreBlocks(
        raw,
        enroll=blocks.enroll,
        test=blocks.test,
        cohort=blocks.cohort,
        enroll_speakers=speakers(enroll.select(raw.enroll_ids)),
        test_speakers=speakers(test.select(raw.test_ids)),
        cohort_enroll_speakers=cohort.speakers,
        cohort_test_speakers=cohort.speakers,
    )


def some_trials(rng, enroll, test, share=0.5):
    rows, columns = np.nonzero(rng.random((len(enroll), len(test))) < share)
    return TrialList.from_pairs(enroll.ids[rows], test.ids[columns])


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
    kind = data.draw(st.sampled_from(["all", "listed", "listed scores", "matrix of scores"]), "trials")
    trials = some_trials(rng, enroll, test) if kind.startswith("listed") else None
    if kind == "listed scores":
        trials = trials.with_scores(rng.normal(size=len(trials)))
    elif kind == "matrix of scores":
        trials = ScoreMatrix(rng.normal(size=(len(enroll), len(test))), enroll.ids, test.ids)
        trials = trials.take(rng.permutation(len(enroll)), rng.permutation(len(test))[:4])
    scorer = data.draw(st.sampled_from(["cosine", "dot", Lopsided()]), "scorer")
    options = {"top_k": 4} if method.startswith("a") else {}
    if options:
        options["select"] = data.draw(st.sampled_from(["own", "cross", "profile"]), "select")
    options |= {"vanished": "missing", "std_floor": 1e-3}
    memory = data.draw(st.sampled_from([3000.0, 2e9]), "memory")
    found = score_embeddings(
        enroll, test, trials, scorer=scorer, cohort=cohort, method=method, memory=memory, **options
    )
    tiling = data.draw(st.sampled_from(TILINGS), "tiling")
    lazy = tiled(score_lazily(enroll, test, trials, scorer=scorer, cohort=cohort, method=method, **options), tiling)
    from evenscore import Cosine, DotProduct

    scorer = {"cosine": Cosine(), "dot": DotProduct()}.get(scorer, scorer)
    raw = trials if "scores" in kind else score_embeddings(enroll, test, trials, scorer=scorer)
    expected = normalize(blocks_of(raw, scorer, enroll, test, cohort), method, **options)
    assert type(found) is type(expected)
    assert found.scores.shape == expected.scores.shape
    tolerance = 3e-3 if dtype == np.float32 else 1e-8
    np.testing.assert_allclose(found.scores, expected.scores, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(lazy.in_memory().scores, expected.scores, rtol=tolerance, atol=tolerance)


def test_scores_that_are_given_are_normalized():
    enroll, test, cohort = make_embeddings(1, 4, "e"), make_embeddings(2, 5, "t"), make_embeddings(3, 30, "c")
    listed = some_trials(np.random.default_rng(0), enroll, test)
    scores = np.linspace(-1, 2, len(listed))
    cohort_scores = score_blocks(Cosine(), enroll, test, cohort)
    for sign in (1, -1):
        trials = listed.with_scores(sign * scores)
        found = score_embeddings(enroll, test, trials, cohort=cohort, method="z")
        own = cohort_scores.enroll.scores[cohort_scores.enroll.enroll_axis.find(trials.enroll)]
        np.testing.assert_allclose(found.scores, (sign * scores - own.mean(axis=1)) / own.std(axis=1))
        blocks = score_blocks(Cosine(), enroll, test, cohort, trials=trials)
        np.testing.assert_allclose(normalize(blocks, "z").scores, found.scores)
    with pytest.raises(InputError, match="'t9' not in the embeddings"):
        score_embeddings(enroll, test, TrialList.from_pairs(["e0"], ["t9"], scores=[1.0]), cohort=cohort, method="z")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_raw_scores_of_a_list_are_those_of_the_matrix(dtype):
    enroll, test = make_embeddings(1, 5, "e", dtype=dtype), make_embeddings(2, 7, "t", dtype=dtype)
    trials = some_trials(np.random.default_rng(0), enroll, test)
    whole = score_embeddings(enroll, test, scorer=Lopsided())
    listed = score_embeddings(enroll, test, trials, scorer=Lopsided())
    assert isinstance(whole, ScoreMatrix)
    expected = [whole.select([e], [t]).scores[0, 0] for e, t in zip(trials.enroll, trials.test, strict=True)]
    np.testing.assert_allclose(listed.scores, expected, rtol=1e-6)
    cosine = score_embeddings(enroll, test).scores
    a, b = enroll.vectors[2], test.vectors[3]
    np.testing.assert_allclose(cosine[2, 3], a @ b / np.linalg.norm(a) / np.linalg.norm(b), rtol=1e-6)


def test_enrolments_of_several_utterances_are_averaged_as_told():
    takes, test = make_embeddings(1, 4, "u"), make_embeddings(2, 3, "t")
    models = {"m1": ["u0", "u2"], "m2": ["u3"]}
    plain = score_embeddings(takes, test, models=models, scorer="dot")
    np.testing.assert_allclose(plain.scores[0], test.vectors @ (takes.vectors[0] + takes.vectors[2]) / 2)
    unit = takes.vectors / np.linalg.norm(takes.vectors, axis=1, keepdims=True)
    before = score_embeddings(takes, test, models=models, scorer="dot", length_norm="before")
    np.testing.assert_allclose(before.scores[0], test.vectors @ (unit[0] + unit[2]) / 2)
    both = score_embeddings(takes, test, models=models, scorer="dot", length_norm="both")
    mean = unit[0] + unit[2]
    np.testing.assert_allclose(both.scores[0], test.vectors @ mean / np.linalg.norm(mean))
    trials = TrialList.from_pairs(["m2"], ["t1"])
    assert score_embeddings(takes, test, trials, models=models).pair(0) == ("m2", "t1")


@pytest.mark.parametrize("method", ["as", "zt"])
def test_a_condition_restricts_the_cohort(method):
    enroll, test, cohort = (make_embeddings(k, 12, name) for k, name in enumerate("etc"))
    asked = {"cohort": cohort, "method": method, "scorer": "dot", "condition": "gender"}
    found = score_embeddings(enroll, test, **asked)

    def gender(embeddings):
        return dict(zip(embeddings.ids, embeddings.columns["gender"].tolist(), strict=True))

    from evenscore import DotProduct

    blocks = blocks_of(score_embeddings(enroll, test, scorer="dot"), DotProduct(), enroll, test, cohort)
    conditions = Conditions(
        enroll=gender(enroll), test=gender(test), cohort_enroll=gender(cohort), cohort_test=gender(cohort)
    )
    expected = normalize(blocks, method, conditions=conditions)
    np.testing.assert_allclose(found.scores, expected.scores)
    lazy = tiled(score_lazily(enroll, test, **asked), RAGGED).in_memory()
    np.testing.assert_allclose(lazy.scores, expected.scores)
    assert not np.allclose(expected.scores, normalize(blocks, method).scores)


def test_each_embedding_is_scored_against_the_cohort_once(monkeypatch):
    rows_read, block = [], Bilinear.block

    def counting(self, rows=slice(None), columns=slice(None)):
        X = block(self, rows, columns)
        rows_read.append(len(X))
        return X

    monkeypatch.setattr(Bilinear, "block", counting)
    takes, cohort = make_embeddings(1, 9, "u"), make_embeddings(2, 30, "c")
    trials = some_trials(np.random.default_rng(3), takes, takes, 0.9)
    score_embeddings(takes, takes, trials, cohort=cohort, method="as", top_k=5, memory=3 * 30 * 8)
    assert sum(rows_read) == 9
    assert max(rows_read) <= 3  # the memory that was set


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scorer": "euclid"}, "no scorer 'euclid'"),
        ({"method": None}, "name one with method"),
        ({"cohort": None}, "needs a cohort"),
        ({"memory": 0}, "number of bytes above 0"),
        ({"top_k": 99}, "top_k is 99, but the cohort has only 14 members"),
        ({"topk": 9}, "no norm option 'topk'"),
        ({"method": "ss"}, "no norm 'ss'"),
        ({"condition": "phrase"}, "no column 'phrase'"),
        ({"models": {"m": ["u99"]}}, "'u99' not in the embeddings"),
        ({"trials": TrialList.from_pairs(["e0"], ["t99"])}, "'t99' not in the embeddings"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    given = {"cohort": make_embeddings(7, 14, "c"), "method": "as", "top_k": 3} | change
    with pytest.raises(InputError, match=message):
        score_embeddings(make_embeddings(1, 3, "e"), make_embeddings(2, 3, "t"), **given)


def test_chained_norms_with_own_speakers_say_what_memory_they_need():
    spoken = make_embeddings(1, 8, "u", ["a", "b"])
    with pytest.raises(InputError, match="needs all 8 x 8 cohort scores at once"):
        score_embeddings(spoken, spoken, cohort=spoken, method="zt", memory=100)


@pytest.mark.parametrize("options", [{"select": "profile"}, {"options": NormOptions(select="profile")}])
def test_profiles_say_what_memory_they_need(options):
    enroll, cohort = make_embeddings(1, 3, "e"), make_embeddings(7, 14, "c")
    with pytest.raises(InputError, match="needs all 14 x 14 cohort scores at once"):
        score_embeddings(enroll, enroll, cohort=cohort, method="at", memory=50, **options)


def test_a_registered_norm_gets_whole_blocks_within_memory(monkeypatch):
    from evenscore.norms import registry

    class Shift:
        def __init__(self, method, *, by):
            self.by = by

        def normalize(self, blocks):
            assert blocks.cohort.shape == (14, 14)
            return blocks.trials.with_scores(blocks.trials.scores + self.by)

    monkeypatch.setattr(registry, "METHODS", dict(registry.METHODS))
    registry.register_norm("shift", Shift)
    enroll, cohort = make_embeddings(1, 3, "e"), make_embeddings(7, 14, "c")
    found = score_embeddings(enroll, enroll, cohort=cohort, method="shift", by=2.0)
    np.testing.assert_allclose(found.scores, score_embeddings(enroll, enroll).scores + 2)
    with pytest.raises(InputError, match="needs all 14 x 14 cohort scores at once"):
        score_embeddings(enroll, enroll, cohort=cohort, method="shift", by=2.0, memory=50)


@pytest.mark.parametrize("listed", [False, True])
def test_the_score_model_never_forms_the_cohort_scores(listed):
    model = ScoreModel(mu=[0.0, 0.6], alpha=[[0.1], [0.2]], beta=[[0.1], [0.1]], sigma2=[0.1, 0.1])
    enroll, test = make_embeddings(1, 3, "e"), make_embeddings(2, 4, "t")
    cohort = make_embeddings(7, 14, "c", ["x", "y", "z"])
    trials = TrialList.from_pairs(["e1", "e0"], ["t0", "t3"]) if listed else None
    found = score_embeddings(enroll, test, trials, cohort=cohort, method="lgsm", model=model, memory=1)
    blocks = score_blocks(Cosine(), enroll, test, cohort, trials=trials)
    expected = normalize(blocks, "lgsm", model=model).scores
    np.testing.assert_allclose(found.scores, expected, rtol=1e-9)
    lazy = score_lazily(enroll, test, trials, cohort=cohort, method="lgsm", model=model)
    np.testing.assert_allclose(tiled(lazy, RAGGED).in_memory().scores, expected, rtol=1e-9)


def test_cohort_from_make_cohort_fits(tmp_path):
    takes = make_embeddings(1, 40, "u", ["a", "b", "c", "d"])
    known = takes.take(np.array([name is not None for name in takes.speakers]))
    cohort = make_cohort(known, unit="speaker")
    found = score_embeddings(takes, takes, cohort=cohort, method="s", vanished="missing")
    assert found.shape == (40, 40)
