"""Infinite scores, which log-likelihood ratios may be: refused by default, read like others on request."""

import h5py
import numpy as np
import pytest

from evenscore import FileError, TrialList, read_scores, read_trials, write

NAMES = ["a.scores", "a.csv", "a.tsv", "a.npz", "a.parquet"]
PAIRS = (["e1", "e1", "e2"], ["t1", "t2", "t1"])
SCORES = [-np.inf, 2.5, np.inf]


def trials(labels=None):
    finite = TrialList.from_pairs(*PAIRS, scores=np.zeros(3), labels=labels)
    return finite.with_scores(SCORES, allow_infinite=True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("labels", [None, [0, 1, 1]])
def test_they_are_read_on_request(tmp_path, name, labels):
    path = tmp_path / name
    write(trials(labels), path)
    found = read_scores(path, infinite="accept")
    assert found.scores.tolist() == SCORES
    assert [found.pair(place) for place in range(3)] == list(zip(*PAIRS, strict=True))
    if labels and name != "a.scores":
        assert found.labels.tolist() == labels
        assert read_trials(path, infinite="accept").labels.tolist() == labels


@pytest.mark.parametrize("name", NAMES)
def test_by_default_they_are_refused_or_skipped(tmp_path, name):
    path = tmp_path / name
    write(trials(), path)
    with pytest.raises(FileError, match=r"inf.* finite"):
        read_scores(path)
    left = read_scores(path, missing="skip")
    left = left if isinstance(left, TrialList) else left.to_trials()
    assert left.scores.tolist() == [2.5]


@pytest.mark.parametrize("name", ["a.scores", "a.csv"])
def test_nan_stays_refused(tmp_path, name):
    path = tmp_path / name
    head = "enroll,test,score\n" if name == "a.csv" else ""
    comma = "," if head else " "
    path.write_text(head + "".join(f"{comma.join(line)}\n" for line in (("e1", "t1", "-inf"), ("e1", "t2", "nan"))))
    with pytest.raises(FileError, match=f"{name}:{3 if head else 2}: score 'nan' is not finite"):
        read_scores(path, infinite="accept")
    assert read_scores(path, infinite="accept", missing="skip").scores.tolist() == [-np.inf]


@pytest.mark.parametrize("labels", [None, [[0, 1], [1, 0]]])
def test_a_matrix_with_infinite_scores_becomes_a_list(tmp_path, labels):
    arrays = {"scores": np.array([[-np.inf, 1.0], [np.nan, 2.0]]), "enroll_ids": ["e1", "e2"], "test_ids": ["t1", "t2"]}
    path = tmp_path / "a.npz"
    np.savez(path, **arrays, **({} if labels is None else {"labels": np.array(labels)}))
    found = read_scores(path, infinite="accept")
    assert found.scores.tolist() == [-np.inf, 1.0, 2.0]
    assert [found.pair(place) for place in range(3)] == [("e1", "t1"), ("e1", "t2"), ("e2", "t2")]
    if labels is not None:
        assert found.labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("labels", [None, [0, 1, 1]])
def test_bosaris_scores(tmp_path, labels):
    path = tmp_path / "a.h5"
    scores = np.array([[0.0, 1.0], [0.0, 2.0]])
    write(TrialList.from_pairs(["e1", "e1", "e2"], ["t1", "t2", "t2"], scores=[0, 1, 2], labels=labels), path)
    with h5py.File(path, "r+") as file:
        file["scores"][...] = np.where(scores == 0, -np.inf, scores)
    found = read_scores(path, infinite="accept")
    assert found.scores.tolist() == [-np.inf, 1.0, 2.0]
    if labels is not None:
        assert found.labels.tolist() == labels
    with pytest.raises(FileError, match=r"inf.* finite"):
        read_scores(path)


def test_a_chunk_that_needs_the_careful_parser(tmp_path):
    path = tmp_path / "a.scores"
    path.write_text("e1 t1 -Infinity\r\n\n e1   t2\tINF\ne2 t1 1e0\n")
    assert read_scores(path, infinite="accept").scores.tolist() == [-np.inf, np.inf, 1.0]
