"""Whether two sides are alike: as single scores say, rarely a false alarm, and no miss of what matters."""

from dataclasses import replace

import numpy as np
import pytest
from compared_sides import MODEL, evaluation_side, nameless, speakers, training_side
from tiled_sides import in_tiles

from evenscore import Embeddings, LabelledBlocks, ScoreBlocks, ScoreMatrix, compare, simulate_blocks
from evenscore.comparison.data import Sides
from evenscore.comparison.judging import training_points
from evenscore.comparison.likeness import HIGH, MATTERS, likeness_of, unlike_warnings
from evenscore.progress import silent
from evenscore.scoring import score_lazily
from reference.naive_likeness import figures, z_values

DEVIATION = np.sqrt(0.81 + 0.64 + 1.0)  # of non-target scores of MODEL


def likeness(training, evaluation, memory=None):
    sides, _ = Sides.of(training, evaluation, client=None, memory=memory, progress=silent)
    return likeness_of(sides, [training_points([part], bits=16) for part in sides.training])


def own_cohort(count, seed, *, model=MODEL, new=None):
    """Return a training side that is the cohort, and trials of other speakers."""
    sides = [
        speakers(group, number, each) for group, number in (("new", new or count), ("dev", count)) for each in (1, 3)
    ]
    blocks, labels = simulate_blocks(model, *sides, seed=seed)
    return [LabelledBlocks.own_cohort(blocks.cohort, blocks.cohort_labels)], [LabelledBlocks(blocks, labels)]


def changed(parts, change):
    """Return the same blocks with other trials and cohort scores."""
    names = ("trials", "enroll", "test")
    tables = [{name: getattr(part.blocks, name) for name in names} for part in parts]
    return [
        replace(
            part,
            blocks=part.blocks.replace(**{name: one.with_scores(change(one.scores)) for name, one in each.items()}),
        )
        for part, each in zip(parts, tables, strict=True)
    ]


def single_scores(parts, side, units):
    """Return the scores of enrolments or tests against the cohort, those of one speaker left out."""
    found = []
    for place, part in enumerate(parts):
        mean, std, high = units[part.name]
        block = getattr(part.blocks, side)
        table, rows, members = (
            (block.scores, block.enroll_axis, block.test_axis)
            if side == "enroll"
            else (block.scores.T, block.test_axis, block.enroll_axis)
        )
        for i in range(len(rows)):
            for j in range(len(members)):
                if rows.speakers[i] != members.speakers[j] and not np.isnan(table[i, j]):
                    z = (table[i, j] - mean) / std
                    found.append(((place, i), rows.speakers[i], members.speakers[j], z, table[i, j] > high))
    return found


def unit(part):
    scores = np.sort(part.trials.scores[part.trials.labels == 0])
    return scores.mean(), scores.std(), scores[np.searchsorted(np.arange(1, len(scores) + 1), HIGH * len(scores))]


@pytest.mark.parametrize("tiled", [False, True])
def test_figures_and_errors_are_those_of_single_scores(tiled):
    training = training_side(("one", "two"), count=9)
    evaluation = evaluation_side(("one", "two"), count=6, cohort="train", members=7)
    evaluation = changed(evaluation, lambda scores: 1.2 * scores + 0.4)
    rng = np.random.default_rng(0)
    for at, part in enumerate(evaluation):  # some are missing
        block = part.blocks.enroll
        holes = np.where(rng.random(block.shape) < 0.1, np.nan, block.scores)
        table = ScoreMatrix(holes, block.enroll_axis, block.test_axis, missing="nan")
        evaluation[at] = replace(part, blocks=part.blocks.replace(enroll=table))
    units = {part.name: unit(part) for part in training}
    sides = [[in_tiles(part) for part in side] if tiled else side for side in (training, evaluation)]
    found = likeness(*sides)
    assert [one.side for one in found] == ["enroll", "test"]
    for one in found:
        scores = [single_scores(side, one.side, units) for side in (training, evaluation)]
        contrasts = [getattr(one, name) for name in MATTERS]
        np.testing.assert_allclose([each.training for each in contrasts], figures(scores[0]), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose([each.evaluation for each in contrasts], figures(scores[1]), rtol=1e-9)
        np.testing.assert_allclose([each.z for each in contrasts], z_values(*scores), rtol=1e-6)


def test_a_training_side_in_tiles_is_summed_up_too():
    training, evaluation = own_cohort(10, seed=3)
    whole = likeness(training, evaluation)
    found = likeness([in_tiles(part) for part in training], [in_tiles(part) for part in evaluation], memory=0)
    for one, other in zip(found, whole, strict=True):
        for name in ("mean", "level", "spread"):  # the unit comes from a summary, which is exact to a bin
            assert getattr(one, name).evaluation == pytest.approx(getattr(other, name).evaluation, rel=1e-3, abs=1e-3)
            assert getattr(one, name).z == pytest.approx(getattr(other, name).z, rel=1e-2)


def alarms(sides):
    return [bool(unlike_warnings(likeness(*each))) for each in sides]


def other_cohort(count, seed):
    return training_side(count=count, seed=seed), evaluation_side(count=count, members=count, seed=10_000 + seed)


@pytest.mark.parametrize(("make", "count"), [(own_cohort, 8), (own_cohort, 25), (other_cohort, 15)])
def test_sides_that_are_alike_are_rarely_flagged(make, count):
    assert np.mean(alarms(make(count, seed) for seed in range(100))) <= 0.06


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda scores: scores + 0.6 * DEVIATION, "lie 0."),
        (lambda scores: scores - 0.6 * DEVIATION, "deviations lower"),
        (lambda scores: 1.5 * scores, "spread 1."),
        (lambda scores: 0.6 * scores, "spread 0."),
        (lambda scores: np.where(np.sin(1e4 * scores) > 0.95, scores + 4.5, scores), "instead of"),
    ],
)
def test_what_matters_is_found_and_said(change, words):
    found = []
    for seed in range(10):
        training, evaluation = own_cohort(25, seed)
        found.append(unlike_warnings(likeness(training, changed(evaluation, change))))
    assert np.mean([bool(lines) for lines in found]) >= 0.9
    said = [lines[0] for lines in found if lines]
    assert all(
        line.startswith("the evaluation side is unlike the training side: cohort scores of its ") for line in said
    )
    assert np.mean([words in line for line in said]) >= 0.9


def test_other_levels_are_found():
    training, _ = own_cohort(40, seed=1)
    model = replace(MODEL, alpha=2 * np.asarray(MODEL.alpha))
    _, evaluation = own_cohort(40, seed=2, model=model)
    [enroll, _] = likeness(training, evaluation)
    assert "level" in enroll.unlike
    assert "as much in their level from an enrolment to the next" in unlike_warnings([enroll])[0]


def test_each_condition_has_its_own_unit():
    training, evaluation = (
        training_side(("one", "two"), count=25),
        evaluation_side(("one", "two"), cohort="train", members=25),
    )
    scale = {"one": 1.0, "two": 10.0}
    far = [
        [changed([part], lambda s, f=scale[part.name]: f * (s + f))[0] for part in side]
        for side in (training, evaluation)
    ]
    for one, other in zip(likeness(*far), likeness(training, evaluation), strict=True):
        for name in MATTERS:
            assert getattr(one, name).evaluation == pytest.approx(getattr(other, name).evaluation)


def test_without_cohort_scores_nothing_is_known():
    training, [part] = training_side(), evaluation_side()
    bare = LabelledBlocks(ScoreBlocks(part.blocks.trials), part.labels)
    comparison = compare(training, [bare], ["raw"], bootstrap=5)
    assert comparison.likeness == ()
    assert not comparison.unlike
    assert comparison.results()["sides"]["likeness"] == []


def test_speakers_that_target_trials_tell_are_enough():
    training, [part] = own_cohort(12, seed=5)
    blocks = ScoreBlocks(
        **{name: nameless(getattr(part.blocks, name)) for name in ("trials", "enroll", "test", "cohort")}
    )
    for one, other in zip(
        likeness(training, [LabelledBlocks(blocks, part.labels)]), likeness(training, [part]), strict=True
    ):
        assert one.mean.z == pytest.approx(other.mean.z)


def test_scores_of_embeddings_are_compared_where_they_are():
    rng = np.random.default_rng(1)
    who = {name: [f"{name}{at // 4}" for at in range(100)] for name in ("dev", "new")}
    vectors = {
        name: rng.normal(size=(25, 1, 30)).repeat(4, axis=1).reshape(100, 30) + rng.normal(size=(100, 30))
        for name in who
    }
    vectors["new"] += 0.8  # another channel
    takes = {name: Embeddings([f"{name}-{at}" for at in range(100)], vectors[name], who[name]) for name in who}
    trials, enroll, test, cohort = (
        score_lazily(takes[one], takes[other], scorer="cosine")
        for one, other in (("new", "new"), ("new", "dev"), ("dev", "new"), ("dev", "dev"))
    )
    training = LabelledBlocks.own_cohort(cohort)
    blocks = ScoreBlocks(trials, enroll=enroll, test=test, cohort=cohort)
    evaluation = LabelledBlocks(blocks, LabelledBlocks.own_cohort(trials).labels)
    lazily, whole = likeness([training], [evaluation]), likeness([training], [evaluation.in_memory()])
    for one, other in zip(lazily, whole, strict=True):
        assert one.mean.z == pytest.approx(other.mean.z)
