from __future__ import annotations

import io
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix, TrialList
from evenscore.files import write
from evenscore.files.numpy_files import read_npz, write_npz
from evenscore.files.registry import ReadOptions
from strategies import embeddings, score_matrices, trial_lists

DEFAULT = ReadOptions()
DATA = os.environ.get("EVENSCORE_DATA")


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


def npy(header: str, payload: bytes) -> bytes:
    """An npy file from the definition of the format: magic, version 1.0, length of the header, header, data."""
    text = header.encode().ljust(117, b" ") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + payload


def archive(path, **members: bytes):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


@given(
    score_matrices(spaces=True)
    | trial_lists(measures=True, unused_ids=True, spaces=True, min_size=0)
    | embeddings(columns=True, spaces=True)
)
def test_round_trip(tmp_path, table):
    path = tmp_path / "table.npz"
    write_npz(table, path)
    again = read_npz(path, DEFAULT)
    assert again == table
    if isinstance(table, TrialList) and table.scores is not None:
        assert again.scores.dtype == table.scores.dtype


@pytest.mark.parametrize("name", ["t.npz", "t.npz.gz"])
def test_gzip_around_it(tmp_path, name):
    matrix = ScoreMatrix([[1.0]], ["e"], ["t"])
    write_npz(matrix, tmp_path / name)
    assert read_npz(tmp_path / name, DEFAULT) == matrix


def test_hand_made_score_matrix(tmp_path):
    path = archive(
        tmp_path / "golden.npz",
        scores=npy(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }", struct.pack("<2f", 1.5, float("nan"))
        ),
        enroll_ids=npy("{'descr': '<U2', 'fortran_order': False, 'shape': (1,), }", "e1".encode("utf-32-le")),
        test_ids=npy("{'descr': '|S2', 'fortran_order': False, 'shape': (2,), }", b"t1t2"),
    )
    expected = ScoreMatrix(np.array([[1.5, np.nan]], dtype=np.float32), ["e1"], ["t1", "t2"], missing="nan")
    assert read_npz(path, DEFAULT) == expected


def test_what_we_write_is_what_numpy_reads(tmp_path):
    write_npz(TrialList.from_pairs(["e"], ["t"], scores=[2.0], labels=[1]), tmp_path / "t.npz")
    with np.load(tmp_path / "t.npz", allow_pickle=False) as arrays:
        found = {name: arrays[name].tolist() for name in arrays.files}
    assert found == {
        "enroll_ids": ["e"],
        "test_ids": ["t"],
        "enroll_index": [0],
        "test_index": [0],
        "scores": [2.0],
        "labels": [1],
    }


def test_names_of_other_programs(tmp_path):
    path = saved(tmp_path / "dca.npz", data=np.ones((2, 3)), ids=["a", "b"], sex=[b"f", b"m"], mean=np.ones(3))
    assert read_npz(path, DEFAULT) == Embeddings(["a", "b"], np.ones((2, 3)), columns={"sex": ["f", "m"]})
    path = saved(tmp_path / "by_id.npz", **{"ann/1.wav": np.ones(3), "bob/2.wav": np.zeros((1, 3))})
    assert read_npz(path, DEFAULT) == Embeddings(["ann/1.wav", "bob/2.wav"], [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    for odd in ({"a": np.ones(3), "b": np.ones(2)}, {"a": np.ones((2, 2))}, {"a": np.ones(1)}, {"a": ["x", "y"]}):
        with pytest.raises(FileError, match="or a vector for each id, all of one length; rename the arrays"):
            read_npz(saved(tmp_path / "odd.npz", **odd), DEFAULT)
    with pytest.raises(FileError, match=r"nan\.npz: the vector of 'a' has a value that is not finite"):
        read_npz(saved(tmp_path / "nan.npz", a=[0.0, np.nan]), DEFAULT)
    path = saved(tmp_path / "scores.npz", score_mat=[[1.0]], model_ids=["m"], segment_ids=["s"])
    assert read_npz(path, DEFAULT) == ScoreMatrix([[1.0]], ["m"], ["s"])


def test_a_column_may_have_a_name_that_means_something_elsewhere(tmp_path):
    table = Embeddings(["a"], [[1.0]], columns={"x": [3], "speaker": ["z"], "scores": [2.0]})
    write_npz(table, tmp_path / "t.npz")
    assert read_npz(tmp_path / "t.npz", DEFAULT) == table


def test_scores_with_a_matrix_of_labels_become_labelled_trials(tmp_path):
    ids = {"enroll_ids": ["e"], "test_ids": ["t", "u"]}
    path = saved(tmp_path / "t.npz", scores=[[1.0, np.nan]], labels=[[1, 0]], **ids)
    assert read_npz(path, DEFAULT) == TrialList(["e"], ["t", "u"], [0], [0], scores=[1.0], labels=[1])
    path = saved(tmp_path / "key.npz", labels=np.array([[1, -1]]), **ids)
    assert read_npz(path, DEFAULT) == TrialList(["e"], ["t", "u"], [0, 0], [0, 1], labels=[1, -1])


def test_options(tmp_path):
    ids = {"enroll_ids": ["e"], "test_ids": ["t", "u"]}
    matrix = saved(tmp_path / "m.npz", scores=[[1.0, np.inf]], **ids)
    with pytest.raises(FileError, match=r"m\.npz\[scores\]: the score of \('e', 'u'\) is inf.*missing='skip'"):
        read_npz(matrix, DEFAULT)
    assert read_npz(matrix, ReadOptions(missing="skip")).n_missing == 1
    twice = saved(tmp_path / "t.npz", enroll_index=[0, 0, 0], test_index=[1, 0, 1], scores=[1.0, 2.0, 1.0], **ids)
    with pytest.raises(FileError, match="more than once"):
        read_npz(twice, DEFAULT)
    assert read_npz(twice, ReadOptions(duplicates="drop")).scores.tolist() == [1.0, 2.0]
    contradicting = saved(tmp_path / "c.npz", enroll_index=[0, 0], test_index=[1, 1], scores=[1.0, 2.0], **ids)
    with pytest.raises(FileError, match="more than once"):
        read_npz(contradicting, ReadOptions(duplicates="drop"))
    infinite = saved(tmp_path / "n.npz", enroll_index=[0, 0], test_index=[0, 1], scores=[np.nan, 2.0], **ids)
    with pytest.raises(FileError, match=r"must be finite.*missing='skip'"):
        read_npz(infinite, DEFAULT)
    assert read_npz(infinite, ReadOptions(missing="skip")).scores.tolist() == [2.0]


BAD = {
    "nothing": ({}, "found nothing, but expected `scores`"),
    "other arrays": ({"a": [1]}, "found a, but expected"),
    "no ids": ({"embeddings": np.ones((1, 2))}, r"\[ids\]: there are embeddings but no ids"),
    "no scores": ({"enroll_ids": ["e"], "test_ids": ["t"]}, r"\[scores\]: there are ids but no scores"),
    "wrong number of ids": ({"embeddings": np.ones((2, 2)), "ids": ["a"]}, r"\[ids\]: there are 1 ids, but 2 vectors"),
    "repeated ids": ({"embeddings": np.ones((2, 2)), "ids": ["a", "a"]}, r"\[ids\]: .*'a' more than once"),
    "vector": ({"embeddings": np.ones(2), "ids": ["a", "b"]}, r"\[embeddings\]: shape \(2,\)"),
    "not finite": ({"embeddings": [[np.nan]], "ids": ["a"]}, r"\[embeddings\]: the vector of 'a'"),
    "complex": ({"embeddings": np.ones((1, 2), dtype=complex), "ids": ["a"]}, r"\[embeddings\]: the array has type"),
    "objects": ({"embeddings": np.ones((1, 2)), "ids": np.array(["a"], dtype=object)}, r"\[ids\]: .*no pickled"),
    "shape": ({"scores": [[1.0]], "enroll_ids": ["e"], "test_ids": ["t", "u"]}, r"\[scores\]: .*\(1, 1\)"),
    "text for scores": ({"scores": [["x"]], "enroll_ids": ["e"], "test_ids": ["t"]}, r"\[scores\]: .*real numbers"),
    "labels": ({"labels": [[7]], "enroll_ids": ["e"], "test_ids": ["t"]}, r"\[labels\]: key must hold only"),
    "speakers": ({"embeddings": [[1.0]], "ids": ["a"], "speakers": ["s", "t"]}, r"\[speakers\]: .*2 speakers"),
    "index": (
        {"enroll_ids": ["e"], "test_ids": ["t"], "enroll_index": [1], "test_index": [0]},
        "enroll_index goes from 1 to 1",
    ),
    "lengths": (
        {"enroll_ids": ["e"], "test_ids": ["t"], "enroll_index": [0], "test_index": [0], "scores": [1.0, 2.0]},
        r"\[scores\]: shape \(2,\)",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(tmp_path, case):
    arrays, message = BAD[case]
    with pytest.raises(FileError, match=message):
        read_npz(saved(tmp_path / "bad.npz", **arrays), DEFAULT)


def test_a_pickle_is_never_opened(tmp_path):
    payload = b"cos\nsystem\n(S'touch pickled'\ntR."
    path = archive(
        tmp_path / "evil.npz", scores=npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", payload)
    )
    with zipfile.ZipFile(path, "a") as file:
        for name in ("enroll_ids", "test_ids"):
            file.writestr(f"{name}.npy", npy("{'descr': '|S1', 'fortran_order': False, 'shape': (1,), }", b"a"))
    with pytest.raises(FileError, match=r"evil\.npz\[scores\]: .*no pickled objects"):
        read_npz(path, DEFAULT)
    assert not Path("pickled").exists()


@pytest.mark.parametrize(("shape", "message"), [("(1000000, 1000000)", "but there are 0"), ("(1,)", "damaged")])
def test_a_header_that_promises_too_much(tmp_path, shape, message):
    path = archive(
        tmp_path / "bomb.npz", embeddings=npy(f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}", b"")
    )
    saved_ids = io.BytesIO()
    np.save(saved_ids, np.array(["a"]))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("ids.npy", saved_ids.getvalue())
    with pytest.raises(FileError, match=message):
        read_npz(path, DEFAULT)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0x30000000, r"bomb\.npz\[embeddings\]: .* cannot unpack to 805306368"),
        (0xF0000000, r"bomb\.npz: 0\.000 GB unpack to 4\.0 GB or more.*; if you trust it, write it unpacked"),
    ],
)
def test_a_zip_bomb_is_not_unpacked(tmp_path, size, message):
    path = tmp_path / "bomb.npz"
    write_npz(Embeddings(["a"], [[1.0]]), path)
    data = bytearray(path.read_bytes())
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", size)  # uncompressed size in the central directory
    path.write_bytes(bytes(data))
    with pytest.raises(FileError, match=message):
        read_npz(path, DEFAULT)


def test_what_packs_well_is_read_all_the_same(tmp_path):
    labels = np.zeros((50, 100_000), dtype=np.int8)
    labels[0, 0] = 1
    tests = np.arange(labels.shape[1]).astype("U")
    np.savez_compressed(tmp_path / "key.npz", labels=labels, enroll_ids=list(map(str, range(50))), test_ids=tests)
    assert read_npz(tmp_path / "key.npz", DEFAULT).counts == (1, labels.size - 1, 0)


def test_bad_ids_cost_no_unpacking(tmp_path, monkeypatch):
    np.savez(tmp_path / "x.npz", embeddings=np.ones((2, 2)), ids=["a", "a"])
    read, wanted = np.lib.format.read_array, []
    monkeypatch.setattr(np.lib.format, "read_array", lambda file, **how: wanted.append(file.name) or read(file, **how))
    with pytest.raises(FileError, match="more than once"):
        read_npz(tmp_path / "x.npz", DEFAULT)
    assert wanted == ["ids.npy"]


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "t.npz"
    with pytest.raises(FileError, match="ends in a null character"):
        write_npz(Embeddings(["a\0"], [[1.0]]), path)
    with pytest.raises(FileError, match="Python objects"):
        write_npz(Embeddings(["a"], [[1.0]], columns={"c": np.array([{}], dtype=object)}), path)
    with pytest.raises(FileError, match="cannot be called 'ids'"):
        write_npz(Embeddings(["a"], [[1.0]], columns={"ids": [1]}), path)
    with pytest.raises(FileError, match="holds scores, trials and embeddings, not a map of speakers"):
        write({"a": "ann"}, path, format="npz")
    assert list(tmp_path.iterdir()) == []


@given(data=st.data())
def test_damaged_files(tmp_path, data):
    path = tmp_path / "t.npz"
    table = data.draw(st.sampled_from([Embeddings(["a", "b"], [[1.0], [2.0]]), ScoreMatrix([[1.0]], ["e"], ["t"])]))
    write_npz(table, path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(lambda file: read_npz(file, DEFAULT), path)


@given(st.binary(max_size=200))
def test_garbage(tmp_path, content):
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    with pytest.raises(FileError):
        read_npz(path, DEFAULT)


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_npz(tmp_path / "none.npz", DEFAULT)
    with pytest.raises(FileError, match="directory"):
        read_npz(tmp_path, DEFAULT)


@pytest.mark.skipif(DATA is None, reason="set EVENSCORE_DATA to the directory of embeddings that make accuracy reads")
@pytest.mark.parametrize(
    ("name", "rows", "dim", "speakers", "columns"),
    [
        ("common_voice_campplus", 2139, 192, 394, {"gender", "accent", "age", "duration", "status"}),
        ("arabic_commands_campplus", 12000, 192, 30, {"word", "rep"}),
        ("audiomnist_campplus", 7200, 192, 60, {"digit", "rep", "gender"}),
        ("audiomnist_ge2e", 6000, 256, 60, {"rep", "half"}),
    ],
)
def test_shared_embeddings(name, rows, dim, speakers, columns):
    [path] = Path(DATA).rglob(f"{name}.npz")
    table = read_npz(path, DEFAULT)
    assert isinstance(table, Embeddings)
    assert (len(table), table.dim, table.vectors.dtype) == (rows, dim, np.float32)
    assert len(set(table.speakers)) == speakers
    assert set(table.columns) == columns
