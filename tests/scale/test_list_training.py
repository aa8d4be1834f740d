"""Training on lists of trials that are read in chunks gives what the list in memory, and its matrix, give."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import InputError, Labels, ScoreMatrix, TrialList, fit_score_model, log_likelihood
from evenscore.model.list_sums import ListSums, sum_list
from evenscore.model.patterns import Exceptions, SpeakerBlocks
from evenscore.model.statistics import label_sums
from evenscore.tables import Tile
from examples import examples
from scale.chunked_examples import MODEL, ids, in_runs, matrix

SUMS = ("rows", "columns", "squares", "row_counts", "column_counts")
ROWS, COLUMNS = ids("e", 24), ids("t", 30)
LABELS = Labels.from_speakers([f"s{n % 6}" for n in range(24)], [f"s{n % 8}" for n in range(30)]).matrix
EVEN = np.arange(24)[:, None] % 2 == np.arange(30) % 2


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
        "sparse": (rng.random(LABELS.shape) < 0.15, LABELS),
        "one each": (np.arange(24)[:, None] == np.arange(30), LABELS),
    }


def listed(rng, kind):
    present, key = kinds(rng)[kind]
    scores = matrix(rng, ROWS, COLUMNS).scores + 3.0 * key.clip(0) + 100.0
    i, j = np.nonzero(present)
    order = rng.permutation(len(i))
    i, j = i[order], j[order]
    whole = ScoreMatrix(np.where(present & (key >= 0), scores, np.nan), ROWS, COLUMNS, missing="nan")
    return TrialList(ROWS, COLUMNS, i, j, scores=scores[i, j], labels=key[i, j]), (whole, Labels.from_key(key))


def in_chunks(trials, *inner):
    bounds = inner or (1, len(trials) // 3, len(trials) - 2)
    return in_runs(trials, (0, *bounds, len(trials)))


@pytest.mark.parametrize("kind", list(kinds(np.random.default_rng(0))))
def test_chunks_have_the_statistics_of_the_list_and_of_its_matrix(kind):
    rng = np.random.default_rng(1)
    trials, dense = listed(rng, kind)
    there, here = label_sums(trials), label_sums(in_chunks(trials))
    assert len(here) == len(there)
    if kind in ("complete", "two matrices"):
        assert all(isinstance(part.pattern, SpeakerBlocks) for part in here)
    else:
        assert all(isinstance(part.pattern, Exceptions) for part in here)
    key = [sorted((part.sums.rows.shape, tuple(part.sums.count)) for part in parts) for parts in (there, here)]
    assert key[0] == key[1]
    for name in ("squares", "count", "total"):
        found = [sum(getattr(part.sums, name) for part in parts) for parts in (there, here)]
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12)
    wanted = log_likelihood(MODEL.rescaled(1.0, np.full(2, 100.0)), [dense])
    assert log_likelihood(MODEL.rescaled(1.0, np.full(2, 100.0)), in_chunks(trials)) == pytest.approx(wanted, rel=1e-11)


@pytest.mark.parametrize("kind", ["complete", "two matrices with holes", "sparse"])
def test_the_fitted_parameters_are_those_in_memory(kind):
    trials, _ = listed(np.random.default_rng(2), kind)
    there, here = (
        fit_score_model(table, max_iter=20, starts=1, tol=0.0).model for table in (trials, [in_chunks(trials)])
    )
    for name in ("mu", "alpha", "beta", "sigma2"):
        np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-9, atol=1e-9)


@examples(40)
@given(st.integers(0, 2**31), st.integers(1, 6), st.integers(1, 6), st.floats(0.1, 1.0))
def test_sums_of_any_two_chunks_add_up(seed, n_rows, n_columns, share):
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
        parts = []
        for total in (whole, added):
            link = [(n, "e", name) for n, name in zip(total.enroll.link[h], total.enroll.ids, strict=True)]
            link += [(n, "t", name) for n, name in zip(total.test.link[h], total.test.ids, strict=True)]
            groups = {frozenset(x[1:] for x in link if x[0] == n) for n in {x[0] for x in link}}
            parts.append({group for group in groups if len(group) > 1})
        assert parts[0] == parts[1]


def test_labels_by_speaker_need_no_labels_in_the_list():
    trials, _ = listed(np.random.default_rng(3), "holes")
    speakers = [[f"s{n % 6}" for n in range(24)], [f"s{n % 8}" for n in range(30)]]
    labels = Labels.from_speakers(*speakers, enroll_ids=ROWS, test_ids=COLUMNS)
    bare = in_chunks(trials.with_labels(None))
    assert log_likelihood(MODEL, (bare, labels)) == pytest.approx(log_likelihood(MODEL, trials), rel=1e-12)
    with pytest.raises(InputError, match="have no labels"):
        log_likelihood(MODEL, bare)


@pytest.mark.parametrize("kind", ["complete", "sparse"])
def test_a_trial_in_two_chunks_is_refused(kind):
    trials, _ = listed(np.random.default_rng(4), kind)
    whole = np.arange(len(trials))
    whole[-1] = 0  # one pair twice, another not at all: the counts of a complete matrix tell nothing

    class Repeating:
        def read(self, place):
            at = whole[place.rows]
            return Tile(trials.scores[at], trials.enroll_index[at], trials.test_index[at], trials.labels[at])

        def identity(self):
            return ""

    chunks = replace(in_chunks(trials), source=Repeating())
    with pytest.raises(InputError, match=r"is listed more than once") as error:
        label_sums(chunks)
    assert str(trials.pair(0)) in str(error.value)


def test_what_cannot_be_trained_on_is_said():
    empty = TrialList([], [], [], [], scores=[], labels=[])
    with pytest.raises(InputError, match="empty"):
        fit_score_model(empty.in_tiles())
    unknown = TrialList(["e"], ["t"], [0], [0], scores=[1.0], labels=[-1])
    with pytest.raises(InputError, match="known label"):
        fit_score_model(unknown.in_tiles())
    with pytest.raises(InputError, match="known label"):
        fit_score_model(unknown)


def test_a_large_sparse_list_is_solved_in_pieces(monkeypatch):
    from evenscore.model import elimination

    rng = np.random.default_rng(5)
    i, j = np.nonzero(rng.random((130, 120)) < 0.1)
    labels = (rng.random(len(i)) < 0.2).astype(int)
    scores = rng.normal(size=len(i)) + 3.0 * labels
    trials = TrialList(ids("e", 130), ids("t", 120), i, j, scores=scores, labels=labels)
    whole = fit_score_model(trials, max_iter=3, starts=1)
    monkeypatch.setattr(elimination, "_CHUNK", 5000)
    pieces = fit_score_model(in_chunks(trials), max_iter=3, starts=1)
    np.testing.assert_allclose(pieces.log_likelihood, whole.log_likelihood, rtol=1e-12)
    np.testing.assert_allclose(pieces.model.alpha, whole.model.alpha, rtol=1e-9)
