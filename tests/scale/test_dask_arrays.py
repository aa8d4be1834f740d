"""Dask arrays as scores: odd chunks, missing pairs, and arrays that are not what they say."""

import dask.array as da
import numpy as np
import pytest

from evenscore import InputError, Labels, ScoreBlocks, ScoreMatrix, fit_score_model, normalize
from evenscore.calibrate.tables import calibrated
from evenscore.files import write_table
from evenscore.metrics.counting import summarize_table
from evenscore.sources import as_table
from scale.chunked_examples import ids, matrix

E, T, C = ids("e", 23), ids("t", 31), ids("c", 17)
LABELS = Labels.from_speakers([f"s{n % 5}" for n in range(23)], [f"s{n % 7}" for n in range(31)])


def scores_of(missing=0.0, dtype=np.float64):
    rng = np.random.default_rng(0)
    return (matrix(rng, E, T, missing).scores + 3.0 * LABELS.matrix).astype(dtype)


def odd(scores):
    rows, columns = scores.shape
    return da.from_array(scores, chunks=((5, 1, rows - 6), (columns - 1, 1)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_fit_takes_a_dask_array_with_ids_and_labels(missing, dtype):
    scores = scores_of(missing, dtype)
    how = {"max_iter": 5, "starts": 1, "tol": 0.0}
    here = fit_score_model([(ScoreMatrix(scores, E, T, missing="nan"), LABELS)], **how)
    for labels in (LABELS, LABELS.align(E, T)):
        there = fit_score_model([(as_table(odd(scores), E, T), labels)], **how)
        np.testing.assert_allclose(there.model.alpha, here.model.alpha, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(there.log_likelihood, here.log_likelihood, rtol=1e-11)


def test_norms_and_metrics_take_dask_arrays():
    rng = np.random.default_rng(1)
    blocks = {"enroll": matrix(rng, E, C, 0.05), "test": matrix(rng, C, T, 0.05)}
    lazy = {name: as_table(odd(block.scores), block.enroll_ids, block.test_ids) for name, block in blocks.items()}
    trials = ScoreMatrix(scores_of(0.1), E, T, missing="nan")
    there = normalize(ScoreBlocks(as_table(odd(trials.scores), E, T), **lazy), "as", top_k=5).in_memory()
    np.testing.assert_allclose(there.scores, normalize(ScoreBlocks(trials, **blocks), "as", top_k=5).scores, rtol=1e-12)
    summary = summarize_table(as_table(odd(scores_of()), E, T), LABELS)
    assert (summary.n_target, summary.n_nontarget) == (LABELS.n_target, LABELS.n_nontarget)


def broken(block):
    raise ZeroDivisionError("there is\nno data")


def mapped(function):
    return lambda array: array.map_blocks(function, dtype=float, meta=np.empty((0, 0)))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda a: a.astype(int), "holds int64, but scores are float32 or float64; call its astype"),
        (lambda a: a.astype("f2"), "holds float16"),
        (lambda a: a[0], "has 1 dimensions"),
        (lambda a: a[a[:, 0] > 0], r"compute_chunk_sizes\(\)"),
        (lambda a: a[:5], "has 23 ids, but 5"),
        (mapped(broken), r"rows 0 to .*ZeroDivisionError: there is\)"),
        (mapped(lambda block: block.astype(str)), "are <U.* it says .*float64"),
        (mapped(lambda block: block[:1]), r"of shape \(3, 31\) when computed"),
    ],
)
def test_what_is_wrong_with_an_array_is_said(change, problem):
    with pytest.raises(InputError, match=problem):
        as_table(change(odd(scores_of())), E, T).in_memory()


def test_a_graph_that_fails_on_a_worker_is_said(client):
    lazy = odd(scores_of()).map_blocks(broken, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(InputError, match="columns 0 to 30 of the Dask array cannot be computed"):
        fit_score_model([(as_table(lazy, E, T), LABELS)], client=client)


def test_what_lacks_ids_or_labels_is_said():
    array = odd(scores_of())
    with pytest.raises(InputError, match=r"`trials` is a Array, but must be a table of scores, .*as_table"):
        ScoreBlocks(array)
    with pytest.raises(InputError, match="but must be ScoreBlocks"):
        normalize(array, "s")
    with pytest.raises(InputError, match="pairs"):
        fit_score_model(array)
    with pytest.raises(InputError, match=r"a Dask array has no ids; give as_table\(array, enroll_ids, test_ids\)"):
        fit_score_model([(array, LABELS)])
    with pytest.raises(InputError, match="3 x 31"):
        fit_score_model([(as_table(array[:3], E[:3], T), LABELS)])
    infinite = scores_of()
    infinite[4] = np.inf
    with pytest.raises(InputError, match=r"the score of \('e4', 't0'\) is inf, but scores must be finite"):
        fit_score_model([(as_table(odd(infinite), E, T), LABELS)])


def test_an_array_without_ids_is_refused_with_the_way_out(tmp_path):
    array = da.zeros((3, 4), chunks=(2, 2))
    labels = Labels.from_speakers(["a", "b", "c"], ["a", "b", "c", "a"])
    for use in (
        lambda: write_table(array, tmp_path / "out.zarr"),
        lambda: summarize_table(array, labels),
        lambda: calibrated(array, np.negative, "negative"),
    ):
        with pytest.raises(InputError, match="make one with as_table"):
            use()
    assert not list(tmp_path.iterdir())
