"""Cohort scores with labels, and known scores outside of the cohort, against the paper's formula with those labels."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from designs import models
from evenscore import InputError, Labels, ScoreBlocks, ScoreMatrix, ScoreModel, ScoreModelNormalizer, TrialList
from evenscore.norms import normalize
from examples import examples
from reference.dense_score_model import dense_llr
from tilings import RAGGED, SINGLE, WHOLE, every_way, on_route, over_tilings, tiled_blocks

MODEL = ScoreModel(mu=[-1.0, 3.0], alpha=[[0.8, 0.1], [0.2, 1.1]], beta=[[0.5, 0.0], [0.3, 0.6]], sigma2=[1.0, 1.5])


def names(letter, number):
    return [f"{letter}{n}" for n in range(number)]


class Experiment:
    """Trials and cohort scores in which the last columns of S_e and rows of S_t are outside of the cohort."""

    def __init__(self, rng, sizes, outside, missing=0.0, target=0.2, unknown=0.1):
        (m, n, N, M), (more_n, more_m) = sizes, outside
        self.rng, self.sizes, self.inside = rng, sizes, (N, M)
        shapes = {"trials": (m, n), "enroll": (m, M + more_m), "test": (N + more_n, n), "cohort": (N, M)}
        self.scores = {name: 2 * rng.normal(size=shape) for name, shape in shapes.items()}
        for side in ("enroll", "test", "cohort"):
            self.scores[side][rng.random(shapes[side]) < missing] = np.nan
        self.labels = {
            side: rng.choice([1, -1, 0], shapes[side], p=[target, unknown, 1 - target - unknown]).astype(np.int8)
            for side in ("enroll", "test")
        }
        self.key = rng.choice([1, 0], (N, M), p=[0.2, 0.8]).astype(np.int8)
        self.speakers = {
            "enroll_speakers": rng.choice(list("abxyz"), m),
            "test_speakers": rng.choice(list("abxyz"), n),
            "cohort_enroll_speakers": rng.choice(list("abcd"), N),
            "cohort_test_speakers": rng.choice(list("abcd"), M),
        }

    def by_speaker(self):
        """Let the labels follow from speakers, so that targets are only those of a trial's own speakers."""
        rows, columns = self.speakers["cohort_enroll_speakers"], self.speakers["cohort_test_speakers"]
        (N, M), who = self.inside, self.speakers
        self.key = (rows[:, None] == columns).astype(np.int8)
        self.labels["enroll"][:, :M] = who["enroll_speakers"][:, None] == columns
        self.labels["test"][:N] = rows[:, None] == who["test_speakers"]

    def blocks(self, own=False, as_list=False, keyed=False):
        m, n, N, M = self.sizes
        rows, columns = names("N", len(self.scores["test"])), names("M", self.scores["enroll"].shape[1])
        trials = ScoreMatrix(self.scores["trials"], names("e", m), names("t", n))
        tables = {
            "enroll": ScoreMatrix(self.scores["enroll"], names("e", m), columns, missing="nan"),
            "test": ScoreMatrix(self.scores["test"], rows, names("t", n), missing="nan"),
        }
        labels = {
            f"{side}_labels": Labels.from_key(self.labels[side], enroll_ids=table.enroll_ids, test_ids=table.test_ids)
            for side, table in tables.items()
        }
        if keyed:
            labels = {name: key_of(value) for name, value in labels.items()}
        return ScoreBlocks(
            trials.to_trials() if as_list else trials,
            **tables,
            cohort=ScoreMatrix(self.scores["cohort"], names("N", N), names("M", M), missing="nan"),
            cohort_labels=Labels.from_key(self.key),
            **labels,
            **(self.speakers if own else {}),
        )

    def expected(self, model, own=False):
        m, n, *_ = self.sizes
        return np.array([[self._one(model, i, j, own) for j in range(n)] for i in range(m)])

    def _one(self, model, i, j, own):
        """Score one trial by the dense formula, with every recording that has any known score as a row or column."""
        (N, M), (rows, columns) = self.inside, (len(self.scores["test"]), self.scores["enroll"].shape[1])
        cohort, key = np.full((rows, columns), np.nan), np.full((rows, columns), -1)
        cohort[:N, :M], key[:N, :M] = self.scores["cohort"], self.key
        enroll, test = self.scores["enroll"][i].copy(), self.scores["test"][:, j].copy()
        enroll_key, test_key = self.labels["enroll"][i].copy(), self.labels["test"][:, j].copy()
        if own:
            gone = [self.speakers["enroll_speakers"][i], self.speakers["test_speakers"][j]]
            lost_rows = np.flatnonzero(np.isin(self.speakers["cohort_enroll_speakers"], gone))
            lost_columns = np.flatnonzero(np.isin(self.speakers["cohort_test_speakers"], gone))
            cohort[lost_rows], cohort[:, lost_columns] = np.nan, np.nan
            for lost, side_key in ((lost_columns, enroll_key), (lost_rows, test_key)):
                side_key[lost] = np.where(side_key[lost] == 1, 1, -1)
        key[np.isnan(cohort)] = -1
        enroll[enroll_key < 0], test[test_key < 0] = np.nan, np.nan
        return dense_llr(model, self.scores["trials"][i, j], enroll, test, cohort, key, enroll_key, test_key)


def key_of(labels):
    """List the labels of all pairs but for the non-targets of the cohort's own members (here: of low numbers)."""
    rows, columns = np.nonzero(labels.matrix >= -1)
    ids = labels.enroll_ids[rows], labels.test_ids[columns]
    return TrialList.from_pairs(*ids, labels=labels.matrix[rows, columns])


@st.composite
def experiments(draw, missing):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = tuple(draw(st.integers(1, 3)) for _ in "mn") + tuple(draw(st.integers(0, 4)) for _ in "NM")
    return Experiment(rng, sizes, (draw(st.integers(0, 2)), draw(st.integers(0, 2))), missing)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("how", ["plain", "own", "own by speaker"])
@pytest.mark.parametrize("tilings", [(WHOLE,), (RAGGED, SINGLE)], ids=["whole", "cut"])
def test_equal_to_the_papers_formula(missing, how, tilings):
    @(examples(30) if tilings == (WHOLE,) else settings(max_examples=4))
    @given(models(dims=(0, 1, 2)), experiments(missing), st.booleans(), st.booleans())
    def check(model, experiment, as_list, keyed):
        if how == "own by speaker":
            experiment.by_speaker()
        blocks = experiment.blocks(how != "plain", as_list, keyed)
        expected = experiment.expected(model, how != "plain")
        for tiling, route in every_way(tilings):
            with on_route(route):
                result = normalize(tiled_blocks(blocks, tiling), "lgsm", model=model).in_memory().scores
            how_cut = f"{tiling}, {route}"
            np.testing.assert_allclose(result.reshape(expected.shape), expected, 1e-8, 1e-8, err_msg=how_cut)

    check()


@pytest.mark.usefixtures("route")
@over_tilings
def test_only_outside(tiling):
    """Complete cohort scores and a few known scores besides: the way of most users."""
    experiment = Experiment(np.random.default_rng(3), (6, 5, 4, 7), (2, 3), target=0.5)
    experiment.labels["enroll"][:, :7] = experiment.labels["test"][:4] = 0
    expected = experiment.expected(MODEL)
    blocks = tiled_blocks(experiment.blocks(), tiling)
    result = normalize(blocks, "lgsm", model=MODEL).in_memory().scores
    np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-10)
    normalizer = ScoreModelNormalizer(MODEL, experiment.blocks())
    np.testing.assert_allclose(normalizer.normalize(experiment.blocks()).scores, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.usefixtures("route")
def test_known_targets_are_missing_for_other_norms():
    experiment = Experiment(np.random.default_rng(5), (3, 4, 5, 6), (0, 0))
    blocks = experiment.blocks()
    masked = dict(experiment.scores)
    for side in ("enroll", "test"):
        masked[side] = np.where(experiment.labels[side] == 0, masked[side], np.nan)
    for side in ("enroll", "test"):
        np.testing.assert_array_equal(getattr(blocks, side).scores, masked[side])
    assert len(blocks.enroll_known) == np.count_nonzero(experiment.labels["enroll"] == 1)
    experiment.scores = masked
    experiment.labels = {side: np.zeros_like(labels) for side, labels in experiment.labels.items()}
    for method in ("z", "t", "s", "zt"):
        np.testing.assert_array_equal(normalize(blocks, method).scores, normalize(experiment.blocks(), method).scores)


@pytest.mark.usefixtures("route")
def test_blocks_of_some_trials_keep_what_is_known():
    experiment = Experiment(np.random.default_rng(7), (4, 3, 3, 4), (1, 2), target=0.4)
    blocks, expected = experiment.blocks(), experiment.expected(MODEL)
    part = blocks.replace(trials=blocks.trials.take(np.array([2, 0]), np.array([1])))
    np.testing.assert_allclose(normalize(part, "lgsm", model=MODEL).scores, expected[[2, 0]][:, [1]])
    assert part.identity() != blocks.identity()
    assert blocks == experiment.blocks()
    assert blocks != blocks.replace(enroll_known=None)
    assert "known scores of enrolments" in repr(blocks)


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"enroll": None, "cohort": None}, "without cohort scores of the enroll side"),
        ({"enroll_labels": [[1]]}, "enroll_labels are a list, but must be Labels, or a key"),
        ({"enroll_labels": Labels.from_key([[1, 0]])}, "enroll_labels: labels are 1 x 2, but the scores are 1 x 1"),
    ],
)
def test_bad_labels_are_refused(change, message):
    tables = {
        "enroll": ScoreMatrix([[1.0]], ["e"], ["c"]),
        "cohort": ScoreMatrix([[0.0]], ["d"], ["c"]),
        "enroll_labels": Labels.from_key([[1]]),
    }
    with pytest.raises(InputError, match=message):
        ScoreBlocks(ScoreMatrix([[2.0]], ["e"], ["t"]), **(tables | change))


@pytest.mark.usefixtures("route")
@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("labelled", [False, True])
def test_one_trial(sides, labelled):
    experiment = Experiment(np.random.default_rng(11), (1, 1, 4, 5), (1, 2), target=0.4, missing=0.0)
    (N, M), labels = experiment.inside, experiment.labels
    labels["enroll"][:, M:] = labels["test"][N:] = 1
    if not labelled:
        labels["enroll"][:, :M] = labels["test"][:N] = 0
    normalizer = ScoreModelNormalizer(MODEL, experiment.blocks())
    rows, columns = experiment.scores["enroll"][0], experiment.scores["test"][:, 0]
    given = {"enroll_targets": rows[M:], "test_targets": columns[N:]}
    given |= {"enroll": rows[:M]} if sides[0] else {}
    given |= {"test": columns[:N]} if sides[1] else {}
    if labelled:
        given |= {"enroll_labels": labels["enroll"][0, :M]} if sides[0] else {}
        given |= {"test_labels": labels["test"][:N, 0]} if sides[1] else {}
    for side, there, size in zip(("enroll", "test"), sides, (M, N), strict=True):
        if not there:
            (labels[side].T if side == "enroll" else labels[side])[:size] = -1
    score = experiment.scores["trials"][0, 0]
    result = normalizer.normalize_one(score, **given)
    np.testing.assert_allclose(result, experiment.expected(MODEL)[0, 0], rtol=1e-10)
