"""Quality measures, against loops over trials that are written straight from their definition."""

import numpy as np
import pytest

from evenscore import (
    Cosine,
    Embeddings,
    InputError,
    ScoreBlocks,
    ScoreMatrix,
    TrialList,
    score_blocks,
)
from evenscore.calibrate.quality import COMBINATIONS, Quality, measured, quality_measures
from evenscore.tables import Axis
from tilings import TILINGS, tiled_blocks


def recordings(prefix, size, seed, speakers=None):
    rng = np.random.default_rng(seed)
    facts = {"duration": rng.uniform(1.0, 9.0, size), "gender": np.array(["f", "m"] * size)[:size]}
    return Embeddings([f"{prefix}{i}" for i in range(size)], rng.normal(0.3, 1.0, (size, 5)), speakers, columns=facts)


ENROLL, TEST = recordings("e", 4, 1, ["ann", "bob", "cyd", "dee"]), recordings("t", 7, 2, list("abcdefg"))
COHORT = recordings("c", 12, 3, ["ann", "x", "y"] * 4)
CENTER = np.full(5, 0.25)
TRIALS = TrialList.from_pairs(["e0", "e3", "e0", "e2"], ["t6", "t1", "t0", "t1"], labels=[1, 0, 0, 1])


def naive(name, enroll, test):
    """Return a measure of one trial, from the vectors and facts of its two sides."""

    def of_side(measure, side, at):
        vector = side.vectors[at] - CENTER
        if measure == "duration":
            return side.columns["duration"][at]
        if measure == "mag":
            return np.sqrt(sum(x * x for x in vector))
        scores = []
        for other, who in zip(COHORT.vectors - CENTER, COHORT.speakers, strict=True):
            if who != side.speakers[at]:
                scores.append(vector @ other / np.sqrt((vector @ vector) * (other @ other)))
        top = sorted(scores)[-5:]
        mean = sum(top) / 5
        return mean if measure == "mu" else np.sqrt(sum((x - mean) ** 2 for x in top) / 4)

    if name.startswith("log:"):
        return np.log(naive(name[4:], enroll, test))
    combine, colon, measure = name.partition(":")
    if not colon:
        return of_side(name[:-2], ENROLL, enroll) if name.endswith("_e") else of_side(name[:-2], TEST, test)
    low, high = sorted([of_side(measure, ENROLL, enroll), of_side(measure, TEST, test)])
    return {"min": low, "max": high, "diff": high - low, "ratio": high / low}[combine]


NAMES = ["mag_e", "mu_t", "sigma_e", "duration_t", "min:mu", "max:sigma", "diff:mag", "ratio:mag", "log:ratio:duration"]


@pytest.fixture(params=TILINGS)
def blocks(request):
    return tiled_blocks(score_blocks(Cosine(mean=CENTER), ENROLL, TEST, COHORT), request.param)


def measures(blocks, **options):
    vectors = {"enroll": ENROLL, "test": TEST, "center": CENTER}
    return quality_measures(blocks, "as", top_k=5, ddof=1, **vectors, **options)


def test_measures_are_those_of_the_definition(blocks):
    quality = measures(blocks)
    expected = {name: [[naive(name, i, j) for j in range(7)] for i in range(4)] for name in NAMES}
    matrix = quality.columns(ScoreMatrix(np.zeros((4, 7)), ENROLL.ids, TEST.ids), NAMES)
    listed = quality.columns(TRIALS, NAMES)
    assert list(matrix) == list(listed) == NAMES
    at = [int(name[1:]) for name in TRIALS.enroll], [int(name[1:]) for name in TRIALS.test]
    for name, values in expected.items():
        np.testing.assert_allclose(matrix[name], values, rtol=1e-9, err_msg=name)
        np.testing.assert_allclose(listed[name], np.array(values)[at], rtol=1e-9, err_msg=name)


def test_other_side_does_not_change_a_measure(blocks):
    """A trial's other speaker stays in the cohort: else the measure would tell whether there are two speakers."""
    cross = measures(blocks, select="cross")
    np.testing.assert_array_equal(cross.enroll.facts["mu"], measures(blocks).enroll.facts["mu"])
    whole = quality_measures(blocks, "lgsm").test.facts["mu"]
    np.testing.assert_allclose(whole, quality_measures(blocks, "zt").test.facts["mu"])
    assert not np.allclose(whole, measures(blocks).test.facts["mu"])


def test_one_side_has_a_cohort():
    found = score_blocks(Cosine(), ENROLL, TEST, COHORT)
    quality = quality_measures(ScoreBlocks(found.trials, enroll=found.enroll), "z")
    assert quality.names == ("duration_e", "duration_t", "mu_e", "sigma_e")
    assert "there is no measure 'mu_t'; there are duration_e, duration_t, mu_e" in refusal(quality, "min:mu")


def refusal(quality, name):
    with pytest.raises(InputError) as caught:
        quality.columns(TRIALS, [name])
    return str(caught.value)


def test_wrong_input_is_named():
    found = score_blocks(Cosine(), ENROLL, TEST)
    quality = quality_measures(found)
    assert "there is no measure 'mean:duration'" in refusal(quality, "mean:duration")
    with pytest.raises(InputError, match="enrolment 'e9' not in the measures"):
        quality.columns(TrialList.from_pairs(["e9"], ["t0"]))
    with pytest.raises(InputError, match="a matrix has no further columns"):
        quality.added(found.trials)
    with pytest.raises(InputError, match="center has shape"):
        quality_measures(found, enroll=ENROLL, center=[1.0])
    with pytest.raises(InputError, match="blocks are a ScoreMatrix"):
        quality_measures(found.trials)


def test_columns_are_added_to_lists_whole_and_in_tiles():
    quality = measures(score_blocks(Cosine(mean=CENTER), ENROLL, TEST, COHORT))
    scored = TRIALS.with_scores([1.0, 2.0, 3.0, 4.0])
    added = quality.added(scored, ["mag_e", "max:mu"])
    assert list(added.measures) == ["mag_e", "max:mu"]
    both = quality.columns(TRIALS)
    np.testing.assert_array_equal(added.measures["max:mu"], np.maximum(both["mu_e"], both["mu_t"]))
    assert added.labels.tolist() == [1, 0, 0, 1]
    again = quality.added(scored.in_tiles(), ["mag_e", "max:mu"])
    assert again.in_memory() == added
    assert again.identity() != scored.in_tiles().identity()


def test_table_has_a_row_for_each_id():
    rows = Axis(np.array(["a", "b"], dtype=object), None, {"snr": np.array([1.0, 2.0])})
    columns = Axis(np.array(["b", "c"], dtype=object), None, {"snr": np.array([3.0, 4.0])})
    table = Quality(rows, columns).table()
    assert table["id"].tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(table["snr_e"], [1.0, 2.0, np.nan])
    np.testing.assert_array_equal(table["snr_t"], [np.nan, 3.0, 4.0])


def test_what_has_no_ratio_or_logarithm_is_nan():
    columns = {"mu_e": np.array([-1.0, 2.0]), "mu_t": np.array([1.0, 0.5])}
    np.testing.assert_array_equal(measured("ratio:mu", columns.__getitem__), [np.nan, 4.0])
    np.testing.assert_array_equal(measured("log:mu_e", columns.__getitem__), [np.nan, np.log(2.0)])
    assert set(COMBINATIONS) == {"min", "max", "diff", "ratio"}
