"""Training statistics of tiles add up to those of the matrix."""

import numpy as np
import pytest

from evenscore import InputError, Labels, ScoreMatrix, fit_score_model
from evenscore.model.statistics import label_sums
from evenscore.sources import as_table
from scale.chunked_examples import TILINGS, ids, in_tiles, matrix

ROWS, COLUMNS = ids("e", 33), ids("t", 41)
SPEAKERS = [f"s{place % 7}" for place in range(33)], [f"s{place % 9}" for place in range(41)]
SUMS = ("rows", "columns", "squares", "row_counts", "column_counts")


def labels_by(kind, rng):
    if kind == "speaker":
        return Labels.from_speakers(*SPEAKERS)
    if kind == "unknown":
        rows = [None if place in (2, 5) else name for place, name in enumerate(SPEAKERS[0])]
        return Labels.from_speakers(rows, SPEAKERS[1])
    return Labels.from_key(rng.choice([-1, 0, 0, 0, 1], size=(33, 41)))


@pytest.mark.parametrize("kind", ["speaker", "unknown", "key"])
@pytest.mark.parametrize("missing", [0.0, 0.05, 0.8])
@pytest.mark.parametrize("tiling", TILINGS)
def test_sums_and_likelihood_are_those_in_memory(kind, missing, tiling):
    rng = np.random.default_rng(1)
    labels = labels_by(kind, rng)
    scores = 3.0 * labels.matrix.clip(0) + matrix(rng, ROWS, COLUMNS, missing).scores + 100.0
    if missing:
        scores[3], scores[:, 4] = np.nan, np.nan
    whole = ScoreMatrix(scores.astype(np.float32), ROWS, COLUMNS, missing="nan")
    tiled = in_tiles(whole, *TILINGS[tiling])
    [there], [here] = label_sums([(whole, labels)]), label_sums([(tiled, labels)])
    moved = here.sums.recentered(there.sums.center)
    for name in SUMS:
        np.testing.assert_allclose(getattr(moved, name), getattr(there.sums, name), rtol=1e-12, atol=1e-10)
    assert type(here.pattern) is type(there.pattern)
    results = [fit_score_model([(table, labels)], max_iter=5, starts=1) for table in (whole, tiled)]
    assert results[0].n_scores == results[1].n_scores
    np.testing.assert_allclose(results[0].log_likelihood, results[1].log_likelihood, rtol=1e-11)


def test_tiles_of_one_class_only():
    rng = np.random.default_rng(2)
    labels = Labels.from_speakers(["a"] * 5 + ["b"] * 5, ["a"] * 7 + ["b"] * 7)
    whole = matrix(rng, ids("e", 10), ids("t", 14))
    [there], [here] = label_sums([(whole, labels)]), label_sums([(in_tiles(whole, (5, 7), 1.0), labels)])
    moved = here.sums.recentered(there.sums.center)
    for name in SUMS:
        np.testing.assert_allclose(getattr(moved, name), getattr(there.sums, name), rtol=1e-12, atol=1e-12)


def test_progress_is_told_and_infinite_scores_are_refused():
    labels = Labels.from_speakers(*SPEAKERS)
    whole = matrix(np.random.default_rng(0), ROWS, COLUMNS)
    told = []
    label_sums([(in_tiles(whole), labels)], progress=lambda stage, fraction: told.append((stage, fraction)))
    assert told[0] == ("summing scores", 0.0)
    assert told[-1] == ("summing scores", 1.0)
    infinite = whole.scores.copy()
    infinite[4, 9] = np.inf
    with pytest.raises(InputError, match="row 4 and column 9 is infinite"):
        fit_score_model([(as_table(infinite, ROWS, COLUMNS), labels)])
    with pytest.raises(InputError, match="empty"):
        fit_score_model([(as_table(np.zeros((0, 2)), [], ["a", "b"]), Labels.from_speakers([], ["a", "b"]))])
    with pytest.raises(InputError, match=r"must be a distributed.Client"):
        fit_score_model([(in_tiles(whole), labels)], client="tcp://here")
