"""Bilinear sources give the numbers of the dense scores, on any grouping into speakers."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError, Labels, TrialList
from evenscore.model.bilinear_sums import class_sums
from evenscore.model.fit import fit_score_model, log_likelihood
from evenscore.model.parameters import ScoreModel
from evenscore.sources import Bilinear, Cosine, DotProduct, Scorer
from evenscore.sources.blocks import cohort_matrix
from reference.bilinear_scores import dense_class_sums, dense_scores

pytestmark = pytest.mark.usefixtures("route")

MODEL = ScoreModel(mu=[0.1, 1.0], alpha=[[0.2, 0.1], [0.3, 0.2]], beta=[[0.2, 0], [-0.1, 0.3]], sigma2=[0.5, 0.7])


def source_of(rng, n_rows, n_columns, dim, *, dtype=np.float64, shift=0.0, offsets=True):
    return Bilinear(
        left=(rng.normal(size=(n_rows, dim)) + shift).astype(dtype),
        right=(rng.normal(size=(n_columns, dim)) - shift).astype(dtype),
        left_offset=rng.normal(size=n_rows) + 5 if offsets else None,
        right_offset=rng.normal(size=n_columns) - 3 if offsets else None,
        enroll_ids=[f"e{i}" for i in range(n_rows)],
        test_ids=[f"t{j}" for j in range(n_columns)],
    )


@st.composite
def cases(draw):
    """A source and labels: speakers on one side only, single rows, everything one speaker, all different."""
    n_speakers = draw(st.integers(1, 6))
    names = st.sampled_from([f"s{n}" for n in range(n_speakers)])
    rows, columns = (draw(st.lists(names, min_size=1, max_size=12)) for _ in range(2))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    source = source_of(
        rng,
        len(rows),
        len(columns),
        draw(st.integers(1, 4)),
        dtype=draw(st.sampled_from([np.float32, np.float64])),
        shift=draw(st.sampled_from([0.0, 1.0, 100.0])),
        offsets=draw(st.booleans()),
    )
    return source, Labels.from_speakers(rows, columns)


@given(cases())
def test_class_sums_equal_those_of_the_dense_scores(case):
    source, labels = case
    sums = class_sums(source, labels)
    dense = dense_scores(source)
    assert sums.center == pytest.approx(dense.mean(), rel=1e-12, abs=1e-12)
    expected = dense_class_sums(dense, labels.matrix, sums.center)
    size = np.abs(dense - sums.center).max() + 1e-12 * np.abs(dense).max() + 1e-12
    close = {"rtol": 1e-10, "atol": 1e-10 * size * max(source.shape)}
    np.testing.assert_array_equal(sums.row_counts, expected.row_counts)
    np.testing.assert_array_equal(sums.column_counts, expected.column_counts)
    np.testing.assert_allclose(sums.rows, expected.rows, **close)
    np.testing.assert_allclose(sums.columns, expected.columns, **close)
    np.testing.assert_allclose(sums.squares, expected.squares, rtol=1e-10, atol=1e-10 * size**2 * dense.size)


@given(cases())
def test_the_log_likelihood_equals_that_of_the_dense_scores(case):
    source, labels = case
    dense = dense_scores(source)
    scale = max(float(np.abs(dense).max()), 1.0)
    model = MODEL.rescaled(scale)  # near the scores, as a trained model is
    assert log_likelihood(model, (source, labels)) == pytest.approx(
        log_likelihood(model, (dense, labels)), rel=1e-9, abs=1e-9
    )


@pytest.mark.parametrize("scorer", [DotProduct(), Cosine(), Cosine(mean=[0.5] * 6), DotProduct(mean=[-1.0] * 6)])
def test_the_fit_equals_that_of_the_dense_scores(scorer):
    rng = np.random.default_rng(7)
    speakers = [[f"s{n}" for n in rng.integers(0, 12, size)] for size in (40, 55)]
    centers = 2 * rng.normal(size=(12, 6))
    enroll, test = (
        Embeddings(
            [f"{side}{n}" for n in range(len(names))],
            np.stack([centers[int(name[1:])] for name in names]) + rng.normal(size=(len(names), 6)) + 1,
            names,
        )
        for side, names in zip("et", speakers, strict=True)
    )
    source = scorer.score(enroll, test)
    labels = Labels.from_speakers(*speakers)
    virtual, dense = fit_score_model((source, labels)), fit_score_model((source.in_memory(), labels))
    for name in ("mu", "alpha", "beta", "sigma2"):
        np.testing.assert_allclose(getattr(virtual.model, name), getattr(dense.model, name), rtol=1e-6, atol=1e-7)
    assert virtual.log_likelihood[-1] == pytest.approx(dense.log_likelihood[-1], rel=1e-9)


def test_a_speaker_with_very_many_scores_is_summed_without_visiting_them():
    rng = np.random.default_rng(3)
    speakers = ["big"] * 90 + ["small"] * 3, ["big"] * 110 + ["small", "other"]
    source = source_of(rng, 93, 112, 3, shift=2.0)
    labels = Labels.from_speakers(*speakers)
    sums = class_sums(source, labels)
    expected = dense_class_sums(dense_scores(source), labels.matrix, sums.center)
    np.testing.assert_allclose(sums.rows, expected.rows, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(sums.columns, expected.columns, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(sums.squares, expected.squares, rtol=1e-11)


def test_chunks_add_up_to_the_whole(monkeypatch):
    source = source_of(np.random.default_rng(4), 50, 41, 4, dtype=np.float32)
    labels = Labels.from_speakers([f"s{n % 7}" for n in range(50)], [f"s{n % 9}" for n in range(41)])
    weights = np.random.default_rng(5).normal(size=(2, 41))
    whole, rows = class_sums(source, labels), source.weighted_rows(weights)
    monkeypatch.setattr("evenscore.sources.chunks._NUMBERS", 12)
    parts = class_sums(source, labels)
    for name in ("rows", "columns", "squares"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(source.weighted_rows(weights), rows, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda vectors: np.repeat(vectors, 2, axis=0)[::2]])
def test_the_layout_of_the_vectors_does_not_matter(layout):
    plain = source_of(np.random.default_rng(8), 9, 7, 3)
    labels = Labels.from_speakers([f"s{n % 4}" for n in range(9)], [f"s{n % 5}" for n in range(7)])
    turned = Bilinear(
        left=layout(plain.left), right=layout(plain.right), enroll_ids=plain.enroll_ids, test_ids=plain.test_ids
    )
    plain = Bilinear(left=plain.left, right=plain.right, enroll_ids=plain.enroll_ids, test_ids=plain.test_ids)
    np.testing.assert_allclose(turned.in_memory().scores, plain.in_memory().scores, rtol=1e-13)
    np.testing.assert_allclose(class_sums(turned, labels).rows, class_sums(plain, labels).rows, rtol=1e-11, atol=1e-12)


def test_a_huge_common_offset_costs_no_digits():
    plain = source_of(np.random.default_rng(9), 30, 20, 3, offsets=False)
    labels = Labels.from_speakers([f"s{n % 8}" for n in range(30)], [f"s{n % 6}" for n in range(20)])
    shifted = Bilinear(
        left=plain.left,
        right=plain.right,
        enroll_ids=plain.enroll_ids,
        test_ids=plain.test_ids,
        left_offset=np.full(30, 1e12),
        right_offset=np.full(20, -3e11),
    )
    expected, found = class_sums(plain, labels), class_sums(shifted, labels)
    assert found.center == pytest.approx(7e11)
    for name in ("rows", "columns", "squares"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


@given(cases(), st.integers(0, 3))
def test_weighted_sums_equal_those_of_the_dense_scores(case, n_sums):
    source, _ = case
    dense = dense_scores(source)
    rng = np.random.default_rng(0)
    columns, rows = rng.normal(size=(n_sums, source.shape[1])), rng.normal(size=(n_sums, source.shape[0]))
    close = {"rtol": 1e-10, "atol": 1e-11 * np.abs(dense).max() * max(source.shape)}
    np.testing.assert_allclose(source.weighted_rows(columns), columns @ dense.T, **close)
    np.testing.assert_allclose(source.weighted_columns(rows), rows @ dense, **close)


def test_blocks_matrices_and_listed_trials_are_the_same_scores():
    source = source_of(np.random.default_rng(2), 7, 5, 3)
    dense = dense_scores(source)
    np.testing.assert_allclose(source.in_memory().scores, dense, rtol=1e-13)
    assert source.in_memory().enroll_ids.tolist() == [f"e{i}" for i in range(7)]
    rows, columns = np.array([6, 0, 3]), np.array([4, 4, 1])
    np.testing.assert_allclose(source.block(rows, slice(1, 4)), dense[rows, 1:4], rtol=1e-13)
    np.testing.assert_allclose(source.block(slice(2, 5), columns), dense[2:5][:, columns], rtol=1e-13)
    trials = TrialList.from_pairs(["e6", "e0", "e3"], ["t4", "t4", "t1"], labels=[1, 0, 0])
    scored = source.score_trials(trials)
    np.testing.assert_allclose(scored.scores, dense[rows, columns], rtol=1e-13)
    assert scored.labels.tolist() == [1, 0, 0]
    with pytest.raises(InputError, match="test 't9' not in the embeddings"):
        source.score_trials(TrialList.from_pairs(["e1"], ["t9"]))


def test_float32_embeddings_give_float32_scores_and_float64_sums():
    source = source_of(np.random.default_rng(2), 7, 5, 3, dtype=np.float32)
    assert source.in_memory().scores.dtype == np.float32
    assert class_sums(source, Labels.from_speakers(list("abcdefg"), list("abcde"))).rows.dtype == np.float64
    assert repr(source) == "Bilinear(7 enrolments x 5 tests, d = 3, float32)"


def test_a_scorer_is_a_scorer():
    assert isinstance(Cosine(), Scorer)
    assert isinstance(DotProduct(), Scorer)


def test_cosine_is_the_cosine_after_the_mean_is_subtracted():
    rng = np.random.default_rng(1)
    mean, u, v = rng.normal(size=(3, 5))
    enroll, test = Embeddings(["e"], u[None]), Embeddings(["t"], v[None])
    u, v = u - mean, v - mean
    expected = u @ v / np.sqrt((u @ u) * (v @ v))
    assert Cosine(mean=mean).score(enroll, test).in_memory().scores[0, 0] == pytest.approx(expected, rel=1e-13)
    assert DotProduct(mean=mean).score(enroll, test).in_memory().scores[0, 0] == pytest.approx(u @ v, rel=1e-13)


def test_what_makes_no_sense_is_refused():
    source = source_of(np.random.default_rng(0), 2, 2, 2)
    some = Embeddings(["a", "b"], [[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(InputError, match="vector of 'b' has length 0"):
        Cosine().score(some, some)
    with pytest.raises(InputError, match="mean has 3 components, but the embeddings have 2"):
        Cosine(mean=np.zeros(3)).score(some, some)
    with pytest.raises(InputError, match="mean has a value that is not finite"):
        DotProduct(mean=[np.nan, 0.0])
    with pytest.raises(InputError, match="enrolments have 2 dimensions, but tests have 1"):
        DotProduct().score(some, Embeddings(["t"], [[1.0]]))
    with pytest.raises(InputError, match="left_offset has 1 entries, but there are 2 vectors"):
        Bilinear(left=np.eye(2), right=np.eye(2), enroll_ids=["a", "b"], test_ids=["c", "d"], left_offset=[0.0])
    with pytest.raises(InputError, match="labels by speaker, with every speaker known"):
        class_sums(source, Labels.from_speakers(["a", None], ["a", "b"]))
    with pytest.raises(InputError, match="labels by speaker"):
        class_sums(source, Labels.from_key([[1, 0], [0, 1]]))
    with pytest.raises(InputError, match="scores are 2 x 2, but labels are 1 x 2"):
        class_sums(source, Labels.from_speakers(["a"], ["a", "b"]))
    with pytest.raises(InputError, match="ids in a different order"):
        class_sums(source, Labels.from_speakers({"e1": "a", "e0": "b"}, {"t0": "a", "t1": "b"}))
    with pytest.raises(InputError, match=r"the vector of 'b' has a value that is not finite, or above 1e.12"):
        Bilinear(left=[[1.0], [-2e12]], right=[[1.0], [2.0]], enroll_ids=["a", "b"], test_ids=["c", "d"])
    with pytest.raises(InputError, match=r"left_offset has an entry that is 2e.30, but scores must lie between"):
        Bilinear(left=[[1.0]], right=[[1.0]], enroll_ids=["a"], test_ids=["c"], left_offset=[2e30])


@pytest.mark.parametrize(
    ("enroll", "test"),
    [
        (range(9), range(9)),
        (range(9), [8, 3, 0, 1, 2, 7, 6, 5, 4]),
        (range(9), range(2, 7)),
        ([0, 3, 5, 7], [1, 2, 4, 6, 8]),
    ],
    ids=["all", "in another order", "partly", "nobody"],
)
def test_training_compares_no_utterance_with_itself(enroll, test):
    rng = np.random.default_rng(0)
    takes = Embeddings(range(9), rng.normal(size=(9, 3)), list("aaabbccdd"))
    scores = Cosine().score(takes.take(list(enroll)), takes.take(list(test)))
    labels = Labels.of_axes(scores.enroll_axis, scores.test_axis)
    found = log_likelihood(MODEL, [(scores, labels)])
    np.testing.assert_allclose(found, log_likelihood(MODEL, [(cohort_matrix(scores), labels)]), rtol=1e-10)
    np.testing.assert_allclose(found, log_likelihood(MODEL, [(scores.without_itself(), labels)]), rtol=1e-10)
    every = fit_score_model([(scores, labels)], max_iter=1, starts=1, keep_self_pairs=True)
    wanted = fit_score_model([(scores.in_memory(), labels)], max_iter=1, starts=1)
    np.testing.assert_allclose(every.log_likelihood, wanted.log_likelihood, rtol=1e-8)
    assert every.n_scores == wanted.n_scores
