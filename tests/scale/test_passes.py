"""Summaries of chunks add up to those of all scores, and changed scores are changed one by one."""

import numpy as np
import pytest

from evenscore import (
    Embeddings,
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    TrialList,
    cllr,
    eer,
    evaluate,
    evaluate_by,
    score_embeddings,
)
from evenscore.calibrate import CALIBRATIONS
from evenscore.calibrate.tables import calibrated
from evenscore.files import open_scores
from evenscore.metrics import summarize
from evenscore.metrics.counting import summarize_table
from evenscore.scoring import score_lazily
from evenscore.sources import as_table
from scale.chunked_examples import TILINGS, ids, in_runs, in_tiles, matrix

E, T = ids("e", 23), ids("t", 31)


@pytest.mark.parametrize("tiling", TILINGS)
@pytest.mark.parametrize("kind", ["speaker", "key"])
def test_summaries_add_up(kind, tiling):
    rng = np.random.default_rng(0)
    scores = matrix(rng, E, T, missing=0.1)
    labels = Labels.from_speakers([f"s{n % 5}" for n in range(23)], [f"s{n % 4}" for n in range(31)])
    if kind == "key":
        labels = Labels.from_key(labels.matrix)
    wanted = summarize(scores.scores, labels.matrix, bits=12)
    found = summarize_table(in_tiles(scores, *TILINGS[tiling]), labels, bits=12)
    np.testing.assert_array_equal(found.counts, wanted.counts)
    np.testing.assert_allclose(found.costs, wanted.costs, rtol=1e-12)
    trials = scores.to_trials(labels)
    listed = summarize_table(in_runs(trials, (0, 9, len(trials))), bits=12)
    np.testing.assert_array_equal(listed.counts, wanted.counts)
    with pytest.raises(InputError, match="labels are missing"):
        summarize_table(in_tiles(scores))


def test_scores_are_changed_where_they_are_read():
    scores = matrix(np.random.default_rng(0), E, T, missing=0.1)
    changed = calibrated(in_tiles(scores), lambda values: 2 * values, "twice")
    np.testing.assert_array_equal(changed.in_memory().scores, 2 * scores.scores)
    assert changed.identity() != calibrated(in_tiles(scores), np.negative, "negative").identity()
    trials = TrialList.from_pairs(["a", "b"], ["c", "d"], scores=[1.0, 2.0], labels=[0, 1])
    found = calibrated(trials.in_tiles(), lambda values: np.where(values > 1, np.inf, values), "llr")
    np.testing.assert_array_equal(found.in_memory().scores, [1.0, np.inf])
    assert found.identity() != trials.in_tiles().identity()


@pytest.fixture(scope="module")
def spoken():
    """Give embeddings of five people on two sides, the labels of their pairs, and their scores."""
    rng = np.random.default_rng(1)
    people = rng.normal(size=(5, 6))
    sides = [
        Embeddings(
            names, people[np.arange(len(names)) % 5] + rng.normal(size=(len(names), 6)), np.arange(len(names)) % 5
        )
        for names in (E, T)
    ]
    return *sides, Labels.from_speakers(*(side.speakers for side in sides)), score_embeddings(*sides)


@pytest.fixture(params=["embeddings", "listed embeddings", "Dask array", "mapped array", "mapped file"])
def source(request, spoken, tmp_path):
    """Give scores that are not in memory, and their labels."""
    enroll, test, labels, scores = spoken
    if request.param == "embeddings":
        return score_lazily(enroll, test), labels
    if request.param == "listed embeddings":
        return score_lazily(enroll, test, scores.to_trials(labels)), None
    if request.param == "Dask array":
        array = pytest.importorskip("dask.array").from_array(scores.scores, chunks=(7, 9))
        return as_table(array, E, T), labels
    np.save(tmp_path / "s.npy", scores.scores)
    if request.param == "mapped array":
        return as_table(np.load(tmp_path / "s.npy", mmap_mode="r"), E, T), labels
    for side, names in (("enroll", E), ("test", T)):
        (tmp_path / f"s.{side}_ids").write_text("".join(f"{name}\n" for name in names))
    return open_scores(tmp_path / "s.npy"), labels


def test_every_source_is_evaluated_and_calibrated_like_an_array(source, spoken):
    scores, key = spoken[3].scores, spoken[2].matrix
    wanted, found = evaluate(scores.ravel(), key.ravel(), points=[0.1]), evaluate(*source, points=[0.1])
    assert [found[name] for name in ("cllr", "act_dcf", "n_target")] == pytest.approx(
        [wanted[name] for name in ("cllr", "act_dcf", "n_target")], rel=1e-12
    )
    low, high = found["bounds"]["eer"]
    assert low - 1e-12 <= wanted["eer"] <= high + 1e-12
    assert (eer(*source), cllr(*source)) == (found["eer"], found["cllr"])
    for name, kind in CALIBRATIONS.items():
        how = {"target_outliers": 0.01, "nontarget_outliers": 0.01} if name == "saturating" else {}
        calibration = kind.fit(*source, **how)
        llrs = calibrated(source[0], calibration)
        values = llrs.in_memory() if isinstance(source[1], Labels) else llrs.in_memory().to_matrix()
        np.testing.assert_allclose(values.scores, kind.fit(scores.ravel(), key.ravel(), **how)(scores), atol=0.01)
        np.testing.assert_allclose(values.scores, calibration(scores), rtol=1e-10, atol=1e-12)


def test_repeats_in_several_chunks_are_found_by_a_key():
    trials = TrialList.from_pairs(["a", "b"], ["c", "d"], scores=[1.0, 2.0], labels=[0, 1])
    twice = in_runs(trials.with_source(_Again(trials)), (0, 2, 4))
    with pytest.raises(InputError, match="4 scores are of the 2 trials of the key, so some trials are listed more"):
        summarize_table(twice, trials)


class _Again:
    def __init__(self, trials):
        self.trials = trials

    def read(self, place):
        return self.trials.read(*self.trials.places())

    def identity(self):
        return "again"


def test_what_is_given_must_be_right():
    scores = matrix(np.random.default_rng(0), E, T)
    chunked, labels = in_tiles(scores), Labels.from_speakers(E, T)
    with pytest.raises(InputError, match="labels are a ndarray, but must be Labels, or a key"):
        summarize_table(chunked, labels.matrix)
    with pytest.raises(InputError, match="unmatched is 'dorp', but must be 'error' or 'drop'"):
        summarize_table(chunked, labels, unmatched="dorp")
    with pytest.raises(InputError, match="unmatched is 'dorp'"):
        LabelledBlocks(ScoreBlocks(chunked), labels, unmatched="dorp")
    with pytest.raises(InputError, match="labels are a ndarray, but must be Labels, or a key"):
        LabelledBlocks(ScoreBlocks(chunked), labels.matrix)
    with pytest.raises(InputError, match="blocks are a ScoreMatrix, but must be ScoreBlocks"):
        LabelledBlocks(scores, labels)
    with pytest.raises(InputError, match="cohort_labels are a ndarray, but must be Labels"):
        ScoreBlocks(chunked, cohort=chunked, cohort_labels=labels.matrix)
    some = Labels.from_speakers([name[1:] for name in E], [name[1:] for name in T])
    with pytest.raises(InputError, match="looks at single trials and knows no weights and no bins; use 'rocch'"):
        evaluate(chunked, some, eer_method="kaldi")
    with pytest.raises(InputError, match="not in memory are counted, each once; leave out the weights"):
        evaluate(chunked, some, weights=[1.0])
    with pytest.raises(InputError, match="not in memory, but each trial is needed here"):
        evaluate_by(chunked, some, conditions=["f"])
    with pytest.raises(InputError, match=r"not in memory; calibrate them tile by tile: calibrated\(scores, "):
        CALIBRATIONS["pav"](edges=[0.0], llr=[-1.0, 1.0])(chunked)
    with pytest.raises(InputError, match="nothing tells when this function changes; give identity"):
        calibrated(chunked, np.negative)
    with pytest.raises(InputError, match="which cannot be called"):
        calibrated(chunked, 2.0, "twice")
    with pytest.raises(InputError, match=r"made scores of shape \(1, 7\) of those of shape \(5, 7\)"):
        calibrated(chunked, lambda values: values[:1], "first").block(slice(0, 5), slice(0, 7))
