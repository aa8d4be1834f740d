from __future__ import annotations

import h5py
import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix
from evenscore.files import write
from evenscore.files.bosaris import hdf5_format, write_bosaris
from evenscore.files.hdf5 import read_hdf5_embeddings, write_hdf5_embeddings
from evenscore.files.registry import ReadOptions
from strategies import embeddings

DEFAULT = ReadOptions()


def made(path, **datasets):
    with h5py.File(path, "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return path


@given(embeddings(columns=True, spaces=True))
def test_round_trip(tmp_path, table):
    write_hdf5_embeddings(table, tmp_path / "e.h5")
    assert read_hdf5_embeddings(tmp_path / "e.h5", DEFAULT) == table
    assert hdf5_format(tmp_path / "e.h5") == "hdf5"


def test_golden_matrix(tmp_path):
    vectors = np.float32([[1, 2], [3, 4]])
    path = made(tmp_path / "e.h5", embeddings=vectors, ids=[b"a", b"b"], speakers=["ann", ""], rep=[1, 2])
    assert read_hdf5_embeddings(path, DEFAULT) == Embeddings(
        ["a", "b"], vectors, ["ann", None], columns={"rep": [1, 2]}
    )
    path = made(tmp_path / "x.h5", X=vectors, utt_ids=[b"a", b"b"])
    assert read_hdf5_embeddings(path, DEFAULT) == Embeddings(["a", "b"], vectors)
    path = made(tmp_path / "n.h5", embeddings=[[1.0], [2.0]], ids=[7, 8])
    assert read_hdf5_embeddings(path, DEFAULT) == Embeddings(["7", "8"], [[1.0], [2.0]])


def test_golden_one_vector_per_id(tmp_path):
    datasets = {"id1/video/1.wav": np.float32([1, 2]), "id1/video/2.wav": np.float32([3, 4]), "b": np.float32([[5, 6]])}
    path = made(tmp_path / "e.h5", **datasets)
    table = read_hdf5_embeddings(path, DEFAULT)
    expected = Embeddings(["b", "id1/video/1.wav", "id1/video/2.wav"], np.float32([[5, 6], [1, 2], [3, 4]]))
    assert table.select(expected.ids) == expected


def test_what_we_write(tmp_path):
    write_hdf5_embeddings(Embeddings(["ä"], np.float32([[1, 2]]), [None]), tmp_path / "e.h5")
    with h5py.File(tmp_path / "e.h5") as file:
        assert set(file) == {"embeddings", "ids", "speakers"}
        assert file["embeddings"].dtype == np.float32
        assert file["ids"].asstr()[()].tolist() == ["ä"]
        assert file["speakers"].asstr()[()].tolist() == [""]


BAD = {
    "empty": ({}, "found nothing, but expected"),
    "no ids": ({"embeddings": np.ones((2, 3))}, r"\[ids\]: there are embeddings but no ids"),
    "wrong number of ids": ({"embeddings": np.ones((2, 3)), "ids": [b"a"]}, r"\[ids\]: .*1 ids, but 2"),
    "different sizes": ({"a": np.ones(2), "b": np.ones(3)}, "found a, b, but expected"),
    "whole numbers": ({"a": [1, 2], "b": [3, 4]}, "found a, b with whole numbers"),
    "not finite": ({"a": [1.0, np.nan]}, "the vector of 'a'"),
    "compound": ({"embeddings": np.zeros((1, 1), "f4,f4"), "ids": [b"a"]}, r"\[embeddings\]: it has type"),
    "single value": ({"embeddings": 1.0, "ids": [b"a"]}, r"\[embeddings\]: it is a single value"),
    "speakers": ({"embeddings": np.ones((1, 1)), "ids": ["a"], "speakers": ["x", "y"]}, r"\[speakers\]: .*2 speakers"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(tmp_path, case):
    datasets, message = BAD[case]
    with pytest.raises(FileError, match=message):
        read_hdf5_embeddings(made(tmp_path / "x.h5", **datasets), DEFAULT)


def test_scores_are_not_embeddings(tmp_path):
    path = made(tmp_path / "x.h5", enroll_ids=["e"], test_ids=["t"], scores=[[1.0]])
    with pytest.raises(FileError, match=r"holds scores or trials, but embeddings are expected"):
        read_hdf5_embeddings(path, DEFAULT)
    write_bosaris(ScoreMatrix([[1.0]], ["e"], ["t"]), path)
    assert hdf5_format(path) == "bosaris"
    with pytest.raises(FileError, match="holds embeddings, not a score matrix"):
        write(ScoreMatrix([[1.0]], ["e"], ["t"]), tmp_path / "y.h5", format="hdf5")
    assert not (tmp_path / "y.h5").exists()


def test_a_link_to_another_file_is_not_followed(tmp_path):
    other = made(tmp_path / "other.h5", v=[1.0])
    path = made(tmp_path / "x.h5", a=[1.0])
    with h5py.File(path, "a") as file:
        file["b"] = h5py.ExternalLink(str(other), "/v")
    with pytest.raises(FileError, match=r"x\.h5\[b\]: this is a link to another file"):
        read_hdf5_embeddings(path, DEFAULT)


@given(data=st.data())
def test_damaged_files(tmp_path, data):
    path = tmp_path / "x.h5"
    write_hdf5_embeddings(Embeddings(["a", "b"], [[1.0, 2.0], [3.0, 4.0]], ["x", None]), path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(lambda file: read_hdf5_embeddings(file, DEFAULT), path)
