"""Training on lists of trials gives what their matrices give, whatever is listed, and however the list is cut."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, Labels, ScoreMatrix, ScoreModel, TrialList, fit_score_model, log_likelihood
from evenscore.model import elimination
from evenscore.model.list_sums import ListSums, sum_list
from evenscore.model.patterns import Exceptions, SpeakerBlocks
from evenscore.model.statistics import label_sums
from evenscore.tables import Tile
from examples import examples
from tilings import RAGGED, cut_tilings, over_tilings, tiled

MODEL = ScoreModel(mu=[0.0, 3.0], alpha=[[0.5, 0.1], [0.4, 0.2]], beta=[[0.5, 0.2], [0.3, 0.3]], sigma2=[1.0, 1.2])
SPEAKERS = [f"s{n % 6}" for n in range(12)], [f"s{n % 8}" for n in range(15)]
LABELS = Labels.from_speakers(*SPEAKERS).matrix
EVEN = np.arange(12)[:, None] % 2 == np.arange(15) % 2


def ids(prefix, number):
    return [f"{prefix}{place}" for place in range(number)]


ROWS, COLUMNS = ids("e", 12), ids("t", 15)


def kinds(rng):
    """Return which pairs are listed, and with which labels."""
    odd = LABELS.copy()
    odd[3, 4], odd[5, 2] = 1 - odd[3, 4], -1
    return {
        "complete": (np.ones(LABELS.shape, bool), LABELS),
        "two matrices": (EVEN, LABELS),
        "odd labels": (np.ones(LABELS.shape, bool), odd),
        "holes": (rng.random(LABELS.shape) > 0.05, LABELS),
        "two matrices with holes": (EVEN & (rng.random(LABELS.shape) > 0.1), LABELS),
        "sparse": (rng.random(LABELS.shape) < 0.2, LABELS),
        "one each": (np.arange(12)[:, None] == np.arange(15), LABELS),
    }


def listed(seed, kind):
    """Return a shuffled list, and the same scores as a matrix with its labels."""
    rng = np.random.default_rng(seed)
    present, key = kinds(rng)[kind]
    scores = rng.normal(size=key.shape) + rng.normal(size=(len(ROWS), 1)) + 3.0 * key.clip(0) + 100.0
    i, j = np.nonzero(present)
    order = rng.permutation(len(i))
    i, j = i[order], j[order]
    whole = ScoreMatrix(np.where(present & (key >= 0), scores, np.nan), ROWS, COLUMNS, missing="nan")
    return TrialList(ROWS, COLUMNS, i, j, scores=scores[i, j], labels=key[i, j]), (whole, Labels.from_key(key))


@over_tilings
@pytest.mark.parametrize("kind", list(kinds(np.random.default_rng(0))))
def test_a_list_has_the_statistics_and_the_likelihood_of_its_matrix(kind, tiling, monkeypatch):
    monkeypatch.setattr("evenscore.model.list_sums._WORTH_ALONE", 40)  # pairs, so that small matrices are kept apart
    trials, dense = listed(1, kind)
    parts = label_sums(tiled(trials, tiling))
    wanted = SpeakerBlocks if kind in ("complete", "two matrices") else Exceptions
    assert all(isinstance(part.pattern, wanted) for part in parts)
    assert len(parts) == len(label_sums(trials))
    [whole] = label_sums([dense])
    assert sum(part.sums.count for part in parts) == pytest.approx(whole.sums.count)
    total = sum(part.sums.total + part.sums.count * part.sums.center for part in parts)
    assert total == pytest.approx(whole.sums.total + whole.sums.count * whole.sums.center, rel=1e-12)
    model = MODEL.rescaled(1.0, np.full(2, 100.0))
    assert log_likelihood(model, tiled(trials, tiling)) == pytest.approx(log_likelihood(model, [dense]), rel=1e-11)


@cut_tilings
@pytest.mark.parametrize("kind", ["complete", "two matrices with holes", "sparse"])
def test_the_fitted_parameters_are_those_in_memory(kind, tiling):
    trials, _ = listed(2, kind)
    there, here = (fit_score_model(table, max_iter=20, starts=1).model for table in (trials, [tiled(trials, tiling)]))
    for name in ("mu", "alpha", "beta", "sigma2"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-8, atol=1e-8)


@examples(40)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 6), st.floats(0.1, 1.0))
def test_sums_of_any_two_parts_add_up(seed, n_rows, n_columns, share):
    rng = np.random.default_rng(seed)
    i, j = np.nonzero(rng.random((n_rows, n_columns)) < share)
    labels, scores = rng.integers(-1, 2, len(i)), rng.normal(size=len(i)) + 50.0
    trials = TrialList(ids("e", n_rows), ids("t", n_columns), i, j, scores=scores, labels=labels)
    cut = rng.integers(0, len(i) + 1)
    whole = sum_list(trials, 50.0)
    added = sum_list(trials.select(np.arange(cut)), 50.0) + sum_list(trials.select(np.arange(cut, len(i))), 50.0)
    assert isinstance(added, ListSums)
    for side in ("enroll", "test"):
        one, other = getattr(whole, side), getattr(added, side)
        at = [one.ids.tolist().index(name) for name in other.ids]
        for name in ("sums", "squares", "counts"):
            np.testing.assert_allclose(getattr(other, name), getattr(one, name)[:, at], rtol=1e-12, atol=1e-12)
        assert (other.met == one.met[:, at]).all()
        assert (other.mark == one.mark[at]).all()
        unused = np.setdiff1d(np.arange(len(one.ids)), at)
        assert not one.counts[:, unused].any()
    for h in (0, 1):
        assert linked(whole, h) == linked(added, h)


def linked(total, h):
    """Return the sets of elements that trials of a class link."""
    link = [(n, "e", name) for n, name in zip(total.enroll.link[h], total.enroll.ids, strict=True)]
    link += [(n, "t", name) for n, name in zip(total.test.link[h], total.test.ids, strict=True)]
    groups = {frozenset(x[1:] for x in link if x[0] == n) for n in {x[0] for x in link}}
    return {group for group in groups if len(group) > 1}


@cut_tilings
def test_labels_by_speaker_need_no_labels_in_the_list(tiling):
    trials, _ = listed(3, "holes")
    labels = Labels.from_speakers(*SPEAKERS, enroll_ids=ROWS, test_ids=COLUMNS)
    bare = tiled(trials.with_labels(None), tiling)
    assert log_likelihood(MODEL, (bare, labels)) == pytest.approx(log_likelihood(MODEL, trials), rel=1e-12)
    with pytest.raises(InputError, match="have no labels"):
        log_likelihood(MODEL, bare)


@dataclass(frozen=True)
class Repeating:
    """A list whose last trial is its first one again."""

    trials: TrialList

    def read(self, place):
        at = np.arange(len(self.trials))
        at[-1] = 0  # another one is not there at all: the counts of a complete matrix tell nothing
        some, trials = at[place.rows], self.trials
        return Tile(trials.scores[some], trials.enroll_index[some], trials.test_index[some], trials.labels[some])

    def identity(self):
        return ""


@cut_tilings
@pytest.mark.parametrize("kind", ["complete", "sparse"])
def test_a_trial_in_two_runs_is_refused(kind, tiling):
    trials, _ = listed(4, kind)
    with pytest.raises(InputError, match=r"is listed more than once") as error:
        label_sums(tiled(trials, tiling).with_source(Repeating(trials)))
    assert str(trials.pair(0)) in str(error.value)


@over_tilings
def test_what_cannot_be_trained_on_is_said(tiling):
    with pytest.raises(InputError, match=r"empty|no score has a known label"):
        fit_score_model(tiled(TrialList([], [], [], [], scores=[], labels=[]), tiling))
    with pytest.raises(InputError, match="known label"):
        fit_score_model(tiled(TrialList(["e"], ["t"], [0], [0], scores=[1.0], labels=[-1]), tiling))


@cut_tilings
def test_what_is_wrong_with_a_matrix_in_tiles_is_said(tiling):
    labels = Labels.from_key(LABELS)
    scores = np.zeros(LABELS.shape)
    scores[4, 9] = 1.0
    table = tiled(ScoreMatrix(scores, ROWS, COLUMNS), tiling)
    infinite = table.map(lambda values: np.where(values == 1, np.inf, values), "infinite")
    with pytest.raises(InputError, match=r"the score of .* is inf, but scores must be finite"):
        fit_score_model([(infinite, labels)])
    nothing = ScoreMatrix(np.zeros((0, 2)), [], ["a", "b"])
    with pytest.raises(InputError, match="empty"):
        fit_score_model([(tiled(nothing, tiling), Labels.from_key(nothing.scores))])
    with pytest.raises(InputError, match=r"must be a distributed.Client"):
        fit_score_model([(table, labels)], client="tcp://here")


def test_a_large_sparse_list_is_solved_in_pieces(monkeypatch):
    rng = np.random.default_rng(5)
    i, j = np.nonzero(rng.random((130, 120)) < 0.1)
    labels = (rng.random(len(i)) < 0.2).astype(int)
    scores = rng.normal(size=len(i)) + 3.0 * labels
    trials = TrialList(ids("e", 130), ids("t", 120), i, j, scores=scores, labels=labels)
    whole = fit_score_model(trials, max_iter=3, starts=1)
    monkeypatch.setattr(elimination, "_CHUNK", 5000)
    pieces = fit_score_model(tiled(trials, RAGGED), max_iter=3, starts=1)
    np.testing.assert_allclose(pieces.log_likelihood, whole.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(pieces.model.alpha, whole.model.alpha, rtol=1e-9)
