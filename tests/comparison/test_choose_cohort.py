"""Choosing a cohort: the figures are those of plain calls fold by fold, draws are nested, and words follow figures."""

import numpy as np
import pytest
from compared_sides import MODEL, PLAIN, nameless, speakers, training_side

from evenscore import (
    InputError,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    choose_cohort,
    evaluate,
    normalize,
    simulate,
    simulate_blocks,
)
from evenscore.comparison.choosing import CohortPool
from evenscore.plot import plot_cohort_choice

QUICK = {"bootstrap": 20, "repeats": 2}


def own(count=20, each=2, model=MODEL, seed=1):
    return training_side(model=model, count=count, seed=seed)


def plainly(part, folds, method, top_k=None):
    """Return Cllr of the trials within folds, each by what the other folds tell, with loops over matrices."""
    scores, rows, columns = part.blocks.trials, part.blocks.enroll_speakers, part.blocks.test_speakers
    llrs, labels = [], []
    for fold in folds:
        cohort = [name not in fold for name in rows], [name not in fold for name in columns]

        def blocks(row, column, cohort=cohort):
            trials = scores.take(np.flatnonzero(row), np.flatnonzero(column))
            return ScoreBlocks(
                trials,
                enroll=scores.take(np.flatnonzero(row), np.flatnonzero(cohort[1])),
                test=scores.take(np.flatnonzero(cohort[0]), np.flatnonzero(column)),
                enroll_speakers=rows[row],
                test_speakers=columns[column],
                cohort_enroll_speakers=rows[cohort[0]],
                cohort_test_speakers=columns[cohort[1]],
            )

        def normalized(row, column):
            found = blocks(np.array(row), np.array(column))
            if method == "raw":
                return found.trials.scores
            return normalize(found, method, **({} if top_k is None else {"top_k": top_k})).scores

        outside = normalized(*cohort).reshape(-1)
        key = Labels.from_speakers(rows[np.array(cohort[0])], columns[np.array(cohort[1])]).matrix.reshape(-1)
        calibration = LogisticCalibration.fit(outside, key, l2=1e-5)
        inside = [name in fold for name in rows], [name in fold for name in columns]
        llrs.append(calibration(normalized(*inside).reshape(-1)))
        labels.append(Labels.from_speakers(rows[np.array(inside[0])], columns[np.array(inside[1])]).matrix.reshape(-1))
    return evaluate(np.concatenate(llrs), np.concatenate(labels))["cllr"]


def folds_of(names, number, seed=0):
    order = np.random.default_rng(seed).permutation(len(names))
    names = sorted(names)
    return [{names[at] for at in order[fold::number]} for fold in range(number)]


def test_figures_are_those_of_plain_calls():
    [part] = own()
    choice = choose_cohort([part], "as", top_k=[3, 0.5], folds=4, **QUICK)
    folds = folds_of(set(part.blocks.enroll_speakers), 4)
    for candidate in choice.candidates:
        assert candidate.mean == pytest.approx(plainly(part, folds, "as", candidate.top_k), rel=1e-12)
    assert choice.raw == pytest.approx(plainly(part, folds, "raw"), rel=1e-12)
    assert choice.n_trials == sum(len(fold) * 2 * len(fold) for fold in folds)


def test_larger_cohorts_are_better_where_the_model_says_so():
    choice = choose_cohort(own(24), "s", sizes=[4, 12, None], bootstrap=50, repeats=3)
    means = [candidate.mean for candidate in choice.candidates]
    assert means == sorted(means, reverse=True)
    assert choice.best.size is None
    assert [len(candidate.values) for candidate in choice.candidates] == [3, 3, 1]
    assert choice.candidates[0].spread > choice.candidates[2].spread == 0
    assert choice.unit == "speakers"
    assert choice.candidates[1].members == pytest.approx((12 + 24) / 2)
    assert choice.text.startswith("Take all: Cllr ")
    assert choice.best.to_best.low == choice.best.to_best.high == 0


def test_draws_are_nested_and_without_the_fold():
    [part] = own()
    order = [f"train{n}" for n in np.random.default_rng(3).permutation(20)]
    fold = {"train1", "train2"}
    drawn = []
    for size in (2, 5, 18):
        kept = CohortPool.of([part]).chooser(fold, None, size, order)(part.blocks.cohort_test_axis)
        drawn.append(set(part.blocks.cohort_test_speakers[kept]))
    assert drawn[0] < drawn[1] < drawn[2] == {f"train{n}" for n in range(20)} - fold
    assert [len(names) for names in drawn] == [2, 5, 18]


def test_candidates_by_id_and_by_speaker():
    [part] = own()
    few = [f"train{n}" for n in range(6)]
    by_id = [
        name
        for name, who in zip(part.blocks.cohort_test_ids, part.blocks.cohort_test_speakers, strict=True)
        if who in few
    ]
    by_id += [
        name
        for name, who in zip(part.blocks.cohort_enroll_ids, part.blocks.cohort_enroll_speakers, strict=True)
        if who in few
    ]
    choice = choose_cohort(
        [part], "s", cohorts={"speakers": few, "ids": by_id, "others": speakers("train", 20, 1)}, **QUICK
    )
    first, second, third = choice.candidates
    assert first.mean == second.mean
    assert first.members < third.members
    assert choice.best is third
    assert [row["cohort"] for row in choice.table().to_dicts()] == ["speakers", "ids", "others"]


def test_a_cohort_of_others_whose_speakers_are_not_known():
    names = speakers("train", 12, 2)
    blocks, labels = simulate_blocks(MODEL, names, names, speakers("c", 20, 1), speakers("c", 20, 1), seed=2)
    bare = ScoreBlocks(
        blocks.trials,
        enroll=nameless(blocks.enroll),
        test=nameless(blocks.test),
        enroll_speakers=names,
        test_speakers=names,
    )
    choice = choose_cohort([LabelledBlocks(bare, labels)], "s", sizes=[5, 20], folds=3, **QUICK)
    assert choice.unit == "members"
    assert choice.candidates[1].members == 20
    assert choice.candidates[1].spread == 0


def test_trial_lists_and_several_conditions():
    parts = training_side(("one", "two"), count=16)
    [first, second] = parts
    sides = ("enroll_speakers", "test_speakers", "cohort_enroll_speakers", "cohort_test_speakers")
    listed = LabelledBlocks(
        ScoreBlocks(
            second.trials,
            enroll=second.blocks.enroll,
            test=second.blocks.test,
            cohort=second.blocks.cohort,
            **{side: getattr(second.blocks, side) for side in sides},
        ),
        name="two",
    )
    matrices, lists = (choose_cohort(data, "zt", sizes=[8], folds=4, **QUICK) for data in (parts, [first, listed]))
    assert lists.best.mean == pytest.approx(matrices.best.mean, rel=1e-12)


@pytest.mark.slow
def test_trained_methods_are_trained_without_the_fold():
    choice = choose_cohort(own(24), "lgsm", sizes=[4, None], folds=3, bootstrap=10, repeats=1)
    assert choice.best.mean < choice.raw


def test_words_where_nothing_helps_and_where_all_is_noise():
    choice = choose_cohort(own(20, model=PLAIN), "s", sizes=[6], **QUICK)
    assert choice.text.startswith(("No cohort helps s", "Take 6 speakers"))
    noise = choose_cohort(own(), "as", top_k=[0.99, 1.0], bootstrap=50)
    assert "All differences are within noise." in noise.text
    assert len(noise.within_noise) == 2


def test_what_cannot_be_measured_is_listed():
    choice = choose_cohort(own(), "as", top_k=[3, 1000], **QUICK)
    assert list(choice.not_run) == ["all, top_k 1000"]
    assert "the cohort has only" in choice.not_run["all, top_k 1000"]
    with pytest.raises(InputError, match="no cohort could be measured; 19 speakers: outside a fold there are only 16"):
        choose_cohort(own(), "s", sizes=[19], **QUICK)


def known(part):
    return LabelledBlocks(ScoreBlocks(part.blocks.trials, enroll=part.blocks.enroll), part.labels)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": []}, "there are no training scores"),
        ({"method": "raw"}, "there is no norm 'raw' that uses a cohort"),
        ({"method": "q"}, "there is no method 'q'"),
        ({"metric": "auc"}, "cannot be ranked by 'auc'"),
        ({"folds": 1}, "folds is 1"),
        ({"folds": 11}, "there are 20 speakers, too few for 11 folds"),
        ({"repeats": 0}, "repeats is 0"),
        ({"sizes": [0]}, "a cohort size is 0"),
        ({"sizes": []}, "there is nothing to choose from"),
        ({"cohorts": {"x": ["nobody"]}}, "nobody is left in the cohort"),
        (
            {"training": [LabelledBlocks(ScoreBlocks(nameless(own()[0].trials)))]},
            "speakers of the training trials are not known",
        ),
    ],
)
def test_bad_input_is_refused(options, message):
    given = {"training": own(), "method": "s"} | options
    with pytest.raises(InputError, match=message):
        choose_cohort(given.pop("training"), given.pop("method"), **given)


def test_no_cohort_scores():
    names = speakers("train", 10, 1)
    scores, labels = simulate(MODEL, names, names)
    assert isinstance(scores, ScoreMatrix)
    bare = LabelledBlocks(ScoreBlocks(scores, enroll_speakers=names, test_speakers=names), labels)
    with pytest.raises(InputError, match="the training side has no cohort scores"):
        choose_cohort([bare], "s", folds=3)


@pytest.mark.parametrize(
    ("options", "label", "lines"),
    [
        ({"sizes": [4, 8]}, "Cohort members on a side", 1),
        ({"sizes": [4, 8], "top_k": [2, 4]}, "Cohort members on a side", 2),
        ({"top_k": [None, 2, 0.5]}, "Cohort scores that are taken (top-k)", 1),
        ({"cohorts": {"$a": speakers("train", 9, 1), "b": speakers("train", 20, 1)}}, "Cohort", 1),
    ],
)
def test_the_plot_shows_what_differs(options, label, lines):
    figure = pytest.importorskip("matplotlib.figure")
    choice = choose_cohort(own(), "as", **options, **QUICK, metric="eer")
    ax = plot_cohort_choice(choice, ax=figure.Figure().subplots())
    assert ax.get_xlabel() == label
    assert ax.get_ylabel() == "EER (%)"
    assert len(ax.containers) == lines
    drawn = np.concatenate([np.asarray(container.lines[0].get_ydata(), dtype=float) for container in ax.containers])
    assert sorted(drawn) == pytest.approx(sorted(100 * candidate.mean for candidate in choice.candidates))
    if label == "Cohort":
        assert [text.get_text() for text in ax.get_xticklabels()] == ["$a", "b"]
