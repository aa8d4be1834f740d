"""Own speakers are left out by folds: the plain norm on each pair of folds, with the cohort that has neither."""

import numpy as np
import pytest

from evenscore import InputError, LabelledBlocks, ScoreBlocks, ScoreMatrix, Side, normalize
from evenscore.norms import CLASSICAL, assign_folds
from evenscore.norms.folds import MANY_FOLDS
from norms.norm_blocks import as_dict, assert_same, ragged, replaced


def many_speakers(seed=0, n_speakers=44, size=60):
    """Trials and cohort of the same speakers, some with several recordings, some that are not known."""
    rng = np.random.default_rng(seed)

    def side(prefix):
        speakers = [*(f"s{i % n_speakers}" for i in rng.permutation(size - 1)), None]
        return Side([f"{prefix}{i}" for i in range(size)], speakers)

    e, t, c, d = (side(prefix) for prefix in "etcd")
    tables = [ScoreMatrix(rng.normal(size=(size, size)), *sides) for sides in ((e, t), (e, d), (c, t), (c, d))]
    return ScoreBlocks(*tables)


def folds_of(blocks, n_folds):
    sides = (blocks.trials.enroll, blocks.trials.test)
    return assign_folds([name for side in sides for name in side.speakers if name is not None], n_folds)


def by_hand(blocks, method, fold, **options):
    """The plain norm on each pair of folds, in a loop over all pairs."""
    trials, out = blocks.trials, {}
    of_enroll, of_test, of_rows, of_columns = (
        np.array([fold.get(name, -1) for name in side.speakers])
        for side in (trials.enroll, trials.test, blocks.cohort_enroll, blocks.cohort_test)
    )
    for a in {*of_enroll.tolist()}:
        for b in {*of_test.tolist()}:
            own = [name for name in (a, b) if name >= 0]
            rows, columns = np.flatnonzero(~np.isin(of_rows, own)), np.flatnonzero(~np.isin(of_columns, own))
            at, to = np.flatnonzero(of_enroll == a), np.flatnonzero(of_test == b)

            def anonymous(table):
                return ScoreMatrix(table.scores, table.enroll_ids, table.test_ids)

            plain = ScoreBlocks(
                anonymous(trials.take(at, to)),
                anonymous(blocks.enroll.take(at, columns)),
                anonymous(blocks.test.take(rows, to)),
                blocks.cohort.take(rows, columns),  # whose speakers tell its targets
            )
            out |= as_dict(normalize(plain, method, **options))
    return out


@pytest.mark.parametrize(
    ("method", "options"), [*((name, {"top_k": 9} if name[0] == "a" else {}) for name in CLASSICAL)]
)
def test_more_than_40_speakers_have_20_folds(method, options):
    blocks = many_speakers()
    fold = folds_of(blocks, MANY_FOLDS)
    assert {*fold.values()} == set(range(20))
    assert_same(normalize(blocks, method, **options), by_hand(blocks, method, fold, **options))


@pytest.mark.parametrize("folds", [3, 11])
@pytest.mark.parametrize("listed", [False, True])
def test_any_number_of_folds(folds, listed):
    blocks = many_speakers(1)
    expected = by_hand(blocks, "s", folds_of(blocks, folds))
    given = replaced(blocks, trials=blocks.trials.to_trials()) if listed else blocks
    assert_same(normalize(given, "s", folds=folds), expected)


def test_folds_of_a_dask_array():
    blocks = many_speakers(2, n_speakers=12, size=20)
    found = normalize(ragged(blocks), "zt", folds=3)
    assert found.scores.chunks == ragged(blocks).trials.scores.chunks
    np.testing.assert_allclose(found.compute().scores, normalize(blocks, "zt", folds=3).scores)


def test_up_to_40_speakers_are_left_out_exactly():
    blocks = many_speakers(3, n_speakers=40)
    np.testing.assert_allclose(normalize(blocks, "s").scores, normalize(blocks, "s", folds=40).scores)
    one = normalize(blocks.take_trials([0], [1]), "s").scores  # two speakers, two folds
    np.testing.assert_allclose(one, normalize(blocks, "s").scores[:1, 1:2])


def test_folds_have_about_the_same_number_of_recordings():
    fold = assign_folds([f"s{i}" for i in range(100) for _ in range(i + 1)], 5)
    sizes = [sum(int(name[1:]) + 1 for name, at in fold.items() if at == k) for k in range(5)]
    assert max(sizes) / min(sizes) < 1.1
    assert [*fold.values()].count(0) == 20


def test_one_fold_is_refused():
    with pytest.raises(InputError, match="1"):
        normalize(many_speakers(), "s", folds=1)


def test_a_matrix_is_its_own_cohort():
    speakers = [f"s{i % 4}" for i in range(12)]
    scores = np.random.default_rng(5).normal(size=(12, 12))
    own = LabelledBlocks.own_cohort(
        ScoreMatrix(scores, Side([f"e{i}" for i in range(12)], speakers), Side([f"t{i}" for i in range(12)], speakers))
    )
    found = normalize(own.blocks, "s").scores
    of = np.array([i % 4 for i in range(12)])
    for i in range(12):
        for j in range(12):
            others = ~np.isin(of, (of[i], of[j]))
            z, t = scores[i, others], scores[others, j]
            expected = ((scores[i, j] - z.mean()) / z.std() + (scores[i, j] - t.mean()) / t.std()) / 2
            np.testing.assert_allclose(found[i, j], expected)
    assert own.labelled(normalize(own.blocks, "s")).labels.sum() == 12 * 3
