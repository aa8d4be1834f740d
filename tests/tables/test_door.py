"""What is no score is refused where it comes in, in memory and in tiles, by the ids of its pair."""

import numpy as np
import pytest

from evenscore import InputError, ScoreBlocks, ScoreMatrix, TrialList, as_table, open_scores
from evenscore.calibrate import calibrated
from evenscore.calibrate.registry import CALIBRATIONS
from evenscore.tables.arrays import LARGEST, Extremes, extremes

ENROLL, TEST = ["e0", "e1", "e2"], ["t0", "t1", "t2", "t3"]


def numbers(dtype, odd=1.0):
    """Return scores, of which that of e1 against t2 is odd."""
    scores = np.arange(12.0).reshape(3, 4).astype(dtype)
    with np.errstate(over="ignore"):
        scores[1, 2] = odd
    return scores


def in_file(scores, folder):
    np.save(folder / "odd.npy", scores)
    for side, ids in (("enroll", ENROLL), ("test", TEST)):
        (folder / f"odd.{side}_ids").write_text("".join(f"{name}\n" for name in ids))
    return open_scores(folder / "odd.npy")


def in_dask(scores, folder):
    da = pytest.importorskip("dask.array")
    return as_table(da.from_array(scores, chunks=(2, 3)), ENROLL, TEST)


FORMS = {
    "array": lambda scores, folder: as_table(scores, ENROLL, TEST),
    "npy": in_file,
    "dask": in_dask,
    "function": lambda scores, folder: ScoreMatrix(numbers(float), ENROLL, TEST).map(lambda _: scores, "odd"),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, 2e30, -2e30])
@pytest.mark.parametrize("form", FORMS)
def test_tiles_from_outside_are_refused_by_the_ids_of_a_pair(form, odd, dtype, tmp_path):
    table = FORMS[form](numbers(dtype, odd), tmp_path)
    places = table.places() if form == "function" else table.in_tiles(16, (2, 3)).places()
    if np.isinf(odd):  # LLRs may be infinite; where they are normalized or trained on they are refused
        assert any(np.isinf(table.read(place).scores).any() for place in places)
        table = ScoreBlocks(table).trials
    with pytest.raises(InputError, match=r"the score of \('e1', 't2'\) is -?(inf|2e.30), but scores must"):
        [table.read(place) for place in places]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS)
def test_missing_scores_pass_and_are_counted(form, dtype, tmp_path):
    table = FORMS[form](numbers(dtype, np.nan), tmp_path)
    (place,) = table.places()
    assert table.read(place).n_missing == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_score_is_one_in_both_types(dtype):
    scores = numbers(dtype, LARGEST)
    assert ScoreMatrix(scores, ENROLL, TEST).scores[1, 2] == as_table(scores, ENROLL, TEST).in_memory().scores[1, 2]
    beyond = np.nextafter(scores.dtype.type(LARGEST), scores.dtype.type(np.inf))
    with pytest.raises(InputError, match="but scores must lie between"):
        ScoreMatrix(numbers(dtype, beyond), ENROLL, TEST)


@pytest.mark.parametrize(
    "made", [lambda scores: ScoreMatrix(scores, ENROLL, TEST), lambda scores: as_table(scores, ENROLL, TEST)]
)
def test_scores_that_hardly_differ_are_refused(made):
    with pytest.raises(InputError, match="multiply them by a constant"):
        made(numbers(float) * 1e-32).in_memory()
    assert made(numbers(float) * 1e-30).in_memory().scores[0, 1] == 1e-30


def test_llrs_may_be_infinite_but_not_too_large_for_their_type():
    scores = ScoreMatrix(numbers(np.float32), ENROLL, TEST).in_tiles()
    pav = CALIBRATIONS["pav"](llr=[-np.inf, np.inf], edges=[5.0])
    (place,) = scores.places()
    assert np.isinf(calibrated(scores, pav).read(place).scores).all()
    steep = CALIBRATIONS["logistic"](weights=[1e40], quality_weights=[], offset=0.0)
    with pytest.raises(InputError, match=r"the score of \('e0', 't1'\) is 1e.40"):
        calibrated(scores, steep).read(place)


def test_one_pass_tells_extremes_and_missing():
    assert extremes(np.array([np.nan, 2.0, -1.0, np.nan])) == Extremes(-1.0, 2.0, 2)
    assert extremes(np.full(3, np.nan)) == Extremes(0.0, 0.0, 3)
    assert not extremes(np.array([np.nan, np.inf])).are_scores


def test_a_list_passes_the_same_door():
    with pytest.raises(InputError, match=r"the score of \('e', 't'\) is 2e.30"):
        TrialList.from_pairs(["e"], ["t"], scores=[2e30])


def test_tables_that_share_scores_share_them_without_infinite_ones(tmp_path):
    table = in_file(numbers(float), tmp_path)
    blocks = ScoreBlocks(table, enroll=table.take(), test=table, cohort=table)
    assert blocks.trials.numbers is blocks.cohort.numbers is blocks.test.numbers
    assert ScoreBlocks(blocks.trials).trials.numbers is blocks.trials.numbers
