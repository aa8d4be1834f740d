"""Comparing norms on trials that are not in memory: the figures of the comparison in memory, within stated bounds."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from compared_sides import MODEL, evaluation_side, nameless, speakers, training_side
from tiled_sides import in_runs, in_tiles

from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    ScoreBlocks,
    ScoreMatrix,
    TrialList,
    compare,
    read_scores,
    simulate_blocks,
    write_report,
)
from evenscore.comparison.data import summary_of
from evenscore.comparison.trials import compared_trials
from evenscore.files import open_scores

pytest.importorskip("zarr", reason="stores need the extra 'zarr'")

METHODS = ("raw", "z", "zt", "as:top_k=5", "lgsm", "lgsm:dim=0")
EXACT = ("cllr", "act_dcf", "n_target", "n_nontarget")
BOUNDED = ("eer", "min_dcf", "min_cllr", "auc")


def assert_same(found, expected):
    """Compare figures of summaries with those of all scores."""
    for name in EXACT:
        assert found.values[name] == pytest.approx(expected.values[name], rel=1e-9), name
    for name in BOUNDED:
        low, high = found.values["bounds"][name]
        assert low - 1e-9 <= expected.values[name] <= high + 1e-9, name


def assert_alike(found, expected):
    """Compare two comparisons of the same trials, the first one not in memory."""
    assert found.not_run == expected.not_run
    assert found.data == expected.data
    assert found.cohorts == expected.cohorts
    assert {method.name for method in found.methods} == {method.name for method in expected.methods}
    for method in expected.methods:
        other = found[method.name]
        assert_same(other.figures, method.figures)
        assert other.training.values == method.training.values
        assert (other.uncalibrated is None) == (method.uncalibrated is None)
        if method.uncalibrated is not None:
            assert_same(other.uncalibrated, method.uncalibrated)
        assert list(other.conditions) == list(method.conditions)
        for name, figures in method.conditions.items():
            assert_same(other.conditions[name], figures)
        for metric in ("eer", "cllr", "min_cllr", "act_dcf"):  # there are fewer speakers than groups: the same draws
            width = np.diff(method.figures.interval(metric))[0]
            np.testing.assert_allclose(
                other.figures.interval(metric), method.figures.interval(metric), atol=0.1 * width + 1e-9
            )


@pytest.fixture(scope="module")
def sides():
    return training_side(("one", "two")), evaluation_side(("one", "two"))


@pytest.fixture(scope="module")
def whole(sides):
    return compare(*sides, METHODS, bootstrap=50)


@pytest.fixture(scope="module")
def finished(sides, tmp_path_factory):
    """Give a comparison in chunks and its folder."""
    folder = tmp_path_factory.mktemp("finished")
    return compare(sides[0], [in_tiles(part) for part in sides[1]], METHODS, bootstrap=50, directory=folder), folder


def test_figures_are_those_of_the_comparison_in_memory(whole, finished):
    assert_alike(finished[0], whole)


def test_scores_are_written_in_chunks_and_figures_say_their_bounds(whole, finished):
    comparison, folder = finished
    results = json.loads((folder / "results.json").read_text())
    assert results["methods"]["raw"]["files"]["scores"] == []
    for name in ("z", "lgsm"):
        files = results["methods"][name]["files"]
        assert [file.rpartition(".")[2] for file in files["scores"]] == ["zarr", "zarr"]
        stored = [read_scores(folder / file).scores.ravel() for file in files["scores"]]
        np.testing.assert_allclose(np.concatenate(stored), whole[name].scores, rtol=1e-9, atol=1e-9)
        assert set(results["methods"][name]["figures"]["bounds"]) >= {"eer", "min_dcf", "min_cllr"}
        llrs = [table.in_memory().scores.ravel() for table in comparison[name].llrs]
        np.testing.assert_allclose(np.concatenate(llrs), whole[name].llrs, rtol=1e-9, atol=1e-9)
    assert not list(folder.rglob("*.partial"))


def test_the_report_shows_the_same_curves(whole, finished, tmp_path):
    from evenscore.report.plot_data import curves_of

    comparison, _ = finished
    write_report(comparison, tmp_path / "report.html")
    assert "50 draws of 12 speakers" in (tmp_path / "report.html").read_text()
    for name in ("raw", "lgsm"):
        found, expected = (curves_of(one, one[name]) for one in (comparison, whole))
        assert (found.n_target, found.n_nontarget) == (expected.n_target, expected.n_nontarget)
        np.testing.assert_allclose(found.misses, expected.misses, atol=0.02)
        np.testing.assert_allclose(found.bayes.actual, expected.bayes.actual, atol=0.02)
        np.testing.assert_allclose(found.histogram.edges, expected.histogram.edges, atol=0.02)
        np.testing.assert_allclose(found.quantiles, expected.quantiles, atol=0.02)
        areas = [curve.histogram.target.sum() * np.diff(curve.histogram.edges)[0] for curve in (found, expected)]
        assert areas[0] == pytest.approx(areas[1], abs=0.02)


def test_a_finished_run_does_nothing_again(sides, finished):
    comparison, folder = finished
    again = compare(sides[0], [in_tiles(part) for part in sides[1]], METHODS, bootstrap=50, directory=folder)
    assert len(again.run.resumed) == len(METHODS)
    found = [one.results() for one in (comparison, again)]
    for results in found:
        results.pop("run")
    assert found[0] == found[1]
    assert again["z"].scores[1].shape == (12, 48)
    assert repr(again["z"].summaries["llrs"]) == repr(comparison["z"].summaries["llrs"])


def stores(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (".zarr" in str(path) or "summaries" in str(path))
    }


def test_a_run_that_is_stopped_in_the_middle_of_a_table_goes_on_there(sides, finished, tmp_path):
    class StopError(Exception):
        pass

    def stop(stage, fraction):
        if stage == "z" and 0.62 < fraction < 0.78:  # while scores are written
            raise StopError

    evaluation = [in_tiles(part) for part in sides[1]]
    with pytest.raises(StopError):
        compare(sides[0], evaluation, ["raw", "z"], bootstrap=50, directory=tmp_path, progress=stop)
    left = list(tmp_path.rglob("*.partial"))
    assert len(left) == 1
    before = {path: path.stat().st_mtime_ns for path in left[0].rglob("*") if path.name[0].isdigit()}
    assert before
    comparison = compare(sides[0], evaluation, ["raw", "z"], bootstrap=50, directory=tmp_path)
    assert comparison.run.resumed == ("raw",)
    assert stores(tmp_path / "methods" / "z") == stores(finished[1] / "methods" / "z")
    names = [str(path.relative_to(left[0])).removeprefix("data/") for path in before]
    after = [(left[0].with_suffix("") / name).stat().st_mtime_ns for name in names]
    assert any(one == other for one, other in zip(before.values(), after, strict=True))  # not written again


@pytest.mark.parametrize("damage", ["summaries", "scores-1-one.zarr", "record.json"])
def test_damaged_results_are_made_again(sides, finished, tmp_path, damage):
    folder = tmp_path / "copy"
    shutil.copytree(finished[1], folder)
    path = folder / "methods" / "z" / damage
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    again = compare(sides[0], [in_tiles(part) for part in sides[1]], ["raw", "z"], bootstrap=50, directory=folder)
    assert again.run.resumed == ("raw",)
    assert again["z"].figures.values == finished[0]["z"].figures.values


def test_other_data_are_not_taken_for_the_same(sides, finished, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(finished[1], folder)
    other = [in_tiles(part) for part in evaluation_side(("one", "two"), seed=7)]
    again = compare(sides[0], other, ["raw", "z"], bootstrap=50, directory=folder)
    assert again.run.resumed == ()
    expected = compare(sides[0], evaluation_side(("one", "two"), seed=7), ["raw", "z"], bootstrap=50)
    assert_alike(again, expected)
    stored = open_scores(folder / "methods" / "z" / "scores-1-one.zarr").in_memory()
    np.testing.assert_allclose(stored.scores.ravel(), expected["z"].scores[: stored.scores.size])


def test_scores_need_not_be_written(tmp_path):
    sides = training_side(), [in_tiles(part) for part in evaluation_side()]
    for resumed in ((), ("raw", "z")):
        comparison = compare(*sides, ["raw", "z"], bootstrap=10, directory=tmp_path, write_scores=False)
        assert comparison.run.resumed == resumed
        assert comparison["z"].scores == ()
        assert comparison.results()["methods"]["z"]["files"]["scores"] == []
        write_report(comparison, tmp_path / "report.html")
    assert not list(tmp_path.rglob("*.zarr"))


def test_a_comparison_can_be_saved_later(tmp_path):
    comparison = compare(training_side(), [in_tiles(part) for part in evaluation_side()], ["raw", "z"], bootstrap=10)
    comparison.save(tmp_path)
    stored = read_scores(tmp_path / comparison.results()["methods"]["z"]["files"]["scores"][0])
    np.testing.assert_array_equal(stored.scores, comparison["z"].scores[0].in_memory().scores)


def with_missing(part, share=0.1):
    rng = np.random.default_rng(0)
    scores = np.where(rng.random(part.blocks.trials.shape) < share, np.nan, part.blocks.trials.scores)
    trials = ScoreMatrix(scores, part.blocks.trials.enroll_ids, part.blocks.trials.test_ids, missing="nan")
    known = trials.with_speakers(part.blocks.enroll_speakers, part.blocks.test_speakers)
    return LabelledBlocks(part.blocks.replace(trials=known), part.labels, part.name)


def test_missing_scores_are_no_trials():
    evaluation = [with_missing(part) for part in evaluation_side()]
    expected = compare(training_side(), evaluation, ["s"], bootstrap=20)
    found = compare(training_side(), [in_tiles(part) for part in evaluation], ["s"], bootstrap=20)
    assert_alike(found, expected)


def test_listed_trials_with_labels_of_their_own(tmp_path):
    training, [part] = training_side(), evaluation_side()
    trials = part.trials.select(np.random.default_rng(0).permutation(len(part.trials))[:200])
    listed = LabelledBlocks(part.blocks.replace(trials=trials))
    expected = compare(training, [listed], ["s"], bootstrap=20)
    for resumed in ((), ("raw", "s")):
        found = compare(training, [in_runs(listed)], ["s"], bootstrap=20, directory=tmp_path)
        assert found.run.resumed == resumed
        assert found.results()["methods"]["s"]["files"]["scores"] == ["methods/s/scores.parquet"]
        assert_alike(found, expected)


@pytest.mark.parametrize("known", [True, False])
def test_labels_from_a_key_that_lists_some_trials(known):
    training, [part] = training_side(), evaluation_side()
    key = part.trials.select(np.random.default_rng(0).permutation(len(part.trials))[:300])
    labels = Labels.from_trials(key).align(part.blocks.trials.enroll_ids, part.blocks.trials.test_ids)
    blocks = part.blocks
    if not known:
        bare = {name: nameless(getattr(blocks, name)) for name in ("enroll", "test", "cohort")}
        blocks = ScoreBlocks(nameless(blocks.trials), **bare)
    expected = compare(training, [LabelledBlocks(blocks, labels)], ["s"], bootstrap=20)
    tiles = in_tiles(LabelledBlocks(blocks, labels)).blocks
    found = compare(training, [LabelledBlocks(tiles, key.with_scores(np.zeros(len(key))))], ["s"], bootstrap=20)
    assert found.trials.speakers_from == expected.trials.speakers_from
    assert_alike(found, expected)
    with pytest.raises(InputError, match="scored trials are not in the key"):
        compare(training, [LabelledBlocks(tiles, key, unmatched="error")], ["s"], bootstrap=20)


def test_groups_of_speakers_are_drawn_where_there_are_many():
    evaluation = evaluation_side(count=90)
    expected = compare(training_side(), evaluation, ["s"], bootstrap=200)
    found = compare(training_side(), [in_tiles(part, 20_000) for part in evaluation], ["s"], bootstrap=200)
    assert found.drawn == "40 groups of 90 speakers"
    assert expected.drawn == "90 speakers"
    widths = [np.diff(one["s"].figures.interval("cllr"))[0] for one in (found, expected)]
    assert 0.6 < widths[0] / widths[1] < 1.4
    assert found.verdict.use == expected.verdict.use
    assert found.results()["bootstrap"]["drawn"] == found.drawn


def test_some_conditions_may_be_in_memory(sides, whole):
    first, second = sides[1]
    assert_alike(compare(sides[0], [first, in_tiles(second)], METHODS, bootstrap=50), whole)


def test_cohort_scores_alone_need_not_be_in_memory(sides, whole):
    trials = [part.blocks.trials for part in sides[1]]
    evaluation = [
        replace(tiled, blocks=tiled.blocks.replace(trials=table))
        for tiled, table in zip(map(in_tiles, sides[1]), trials, strict=True)
    ]
    found = compare(sides[0], evaluation, METHODS, bootstrap=50)
    for method in whole.methods:
        np.testing.assert_allclose(found[method.name].scores, method.scores, rtol=1e-9, atol=1e-9)


def test_a_training_side_in_chunks_comes_into_memory_if_it_fits(sides, whole):
    training = [in_tiles(part) for part in sides[0]]
    found = compare(training, sides[1], ["z"], bootstrap=50)
    assert found["z"].summaries is None  # all of it is in memory
    assert found["z"].figures.values == whole["z"].figures.values


def test_a_training_side_that_does_not_fit_is_summed_up(sides, whole):
    training = [in_tiles(part) for part in sides[0]]
    methods = [*METHODS, "evidence"]
    found = compare(training, sides[1], methods, bootstrap=50, memory=0)
    assert "does not fit into memory" in " ".join(found.warnings)
    assert "trained on scores in memory" in found.not_run["evidence"]
    for method in found.methods:
        expected = whole[method.name]
        assert method.training is None
        assert "calibrated from a summary" in " ".join(method.notes)
        assert method.figures.values["cllr"] == pytest.approx(expected.figures.values["cllr"], rel=1e-3)
        assert method.figures.values["eer"] == pytest.approx(expected.figures.values["eer"], rel=1e-3)
    np.testing.assert_allclose(found["lgsm"].model.mu, whole["lgsm"].model.mu, rtol=1e-6)


def test_methods_that_leave_out_trials_are_refused():
    [part] = evaluation_side()
    alone = simulate_blocks(MODEL, speakers("new", 12, 1), speakers("new", 12, 3), ["new0"], ["new0"], seed=3)
    blocks = LabelledBlocks(*alone, part.name)
    comparison = compare(training_side(), [in_tiles(blocks)], ["z"], bootstrap=10, allow_overlap=True)
    expected = compare(training_side(), [blocks], ["z"], bootstrap=10, allow_overlap=True)
    assert comparison.not_run.keys() == expected.not_run.keys() == {"z"}


def test_the_same_trials_are_found_wherever_they_are(sides):
    tiled = compared_trials([in_tiles(part) for part in sides[1]])
    trials = compared_trials(sides[1])
    assert not tiled.is_in_memory
    assert len(tiled) == len(trials) == len(trials.labels)
    assert (tiled.names, tiled.speakers, tiled.speakers_from) == (trials.names, trials.speakers, trials.speakers_from)
    assert summary_of(tiled, tiled) == summary_of(trials, trials)


def test_a_target_trial_of_two_speakers_is_named_wherever_it_is():
    [part] = evaluation_side()
    key = part.labels.matrix.copy()
    key[3, 4] = 1
    trials = part.blocks.trials
    wrong = LabelledBlocks(part.blocks, Labels.from_key(key, enroll_ids=trials.enroll_ids, test_ids=trials.test_ids))
    for side in (wrong, in_tiles(wrong)):
        with pytest.raises(
            InputError, match=r"\('e3', 't4'\) is a target trial, but its speakers are 'new3' and 'new1'"
        ):
            compared_trials([side])


def test_trials_without_labels_are_refused():
    [part] = evaluation_side()
    with pytest.raises(InputError, match="have no labels; give them"):
        LabelledBlocks(in_tiles(part).blocks)
    with pytest.raises(InputError, match="have no labels; give them"):
        LabelledBlocks(ScoreBlocks(TrialList.from_pairs(["a"], ["b"], scores=[1.0])))
