from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix, TrialList
from evenscore.files.formats import ReadOptions
from evenscore.files.zarr_store import open_scores, read_zarr, write_zarr
from strategies import embeddings, score_matrices, trial_lists

pytest.importorskip("zarr", reason="zarr is not installed (pip install 'evenscore[zarr]')")

DEFAULT = ReadOptions()
MATRIX = ScoreMatrix([[1.5, np.nan], [0.25, -3.0]], ["e1", "e2"], ["t1", "t2"], missing="nan")


def golden_array(folder, values, **changes):
    """An array of one chunk, written by hand: metadata in JSON, and the bytes of the chunk."""
    folder.mkdir(parents=True)
    metadata = {
        "zarr_format": 2,
        "shape": list(values.shape),
        "chunks": [max(size, 1) for size in values.shape],
        "dtype": values.dtype.str,
        "compressor": None,
        "filters": None,
        "fill_value": None,
        "order": "C",
    }
    (folder / ".zarray").write_text(json.dumps(metadata | changes))
    (folder / ".".join("0" * values.ndim)).write_bytes(values.tobytes())


def golden_text(folder, *texts):
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)])
    golden_array(folder / "utf8", np.frombuffer(data, dtype=np.uint8))
    golden_array(folder / "offsets", offsets.astype("<i8"))
    (folder / ".zgroup").write_text('{"zarr_format": 2}')


def golden_store(folder, **changes):
    folder.mkdir()
    (folder / ".zgroup").write_text('{"zarr_format": 2}')
    golden_array(folder / "scores", MATRIX.scores.astype("<f8"), **changes)
    golden_text(folder / "enroll_ids", "e1", "e2")
    golden_text(folder / "test_ids", "t1", "t2")
    return folder


@settings(max_examples=20)  # each store is a dozen files
@given(
    score_matrices(spaces=True)
    | trial_lists(measures=True, unused_ids=True, spaces=True, min_size=0)
    | embeddings(columns=True, spaces=True)
)
def test_round_trip(tmp_path, table):
    write_zarr(table, tmp_path / "t.zarr")
    again = read_zarr(tmp_path / "t.zarr", DEFAULT)
    assert again == table
    if isinstance(table, TrialList) and table.scores is not None:
        assert again.scores.dtype == table.scores.dtype


def test_golden(tmp_path):
    assert read_zarr(golden_store(tmp_path / "g.zarr"), DEFAULT) == MATRIX
    shutil.rmtree(tmp_path / "g.zarr/enroll_ids")
    golden_array(tmp_path / "g.zarr/enroll_ids", np.array(["x", "yy"]))  # NumPy's own text is read, too
    assert read_zarr(tmp_path / "g.zarr", DEFAULT).enroll_ids.tolist() == ["x", "yy"]


def test_what_we_write(tmp_path):
    write_zarr(MATRIX, tmp_path / "t.zarr")
    metadata = json.loads((tmp_path / "t.zarr/scores/.zarray").read_text())
    assert (metadata["zarr_format"], metadata["shape"], metadata["fill_value"]) == (2, [2, 2], "NaN")
    assert (tmp_path / "t.zarr/scores/0.0").read_bytes() == MATRIX.scores.tobytes()
    assert {place.name for place in tmp_path.glob("t.zarr/enroll_ids/*/.zarray")} == {".zarray"}


def test_scores_in_chunks(tmp_path):
    scores = np.arange(3 * 9000, dtype=np.float32).reshape(3, 9000)
    matrix = ScoreMatrix(scores, ["a", "b", "c"], [f"t{i}" for i in range(9000)])
    write_zarr(matrix, tmp_path / "t.zarr")
    stored = open_scores(tmp_path / "t.zarr")
    assert stored.scores.chunks == (3, 4096)
    np.testing.assert_array_equal(stored.scores[1:, 5000:5003], scores[1:, 5000:5003])
    assert stored.test_ids[-1] == "t8999"
    (tmp_path / "t.zarr/scores/0.1").unlink()
    partly = read_zarr(tmp_path / "t.zarr", DEFAULT)
    assert partly.n_missing == 3 * 4096


def test_a_store_of_format_3(tmp_path):
    zarr = pytest.importorskip("zarr", minversion="3")
    group = zarr.open_group(str(tmp_path / "t.zarr"), mode="w", zarr_format=3)
    for name, values in {"embeddings": np.ones((2, 3)), "ids": np.array([7, 8]), "rep": np.array([1, 2])}.items():
        group.create_array(name, data=values)
    group.create_array("ignored", data=np.ones((2, 2)), chunks=(1, 1), shards=(2, 2))
    table = read_zarr(tmp_path / "t.zarr", DEFAULT)
    assert table == Embeddings(["7", "8"], np.ones((2, 3)), columns={"rep": [1, 2]})


def test_writing_replaces_the_old_store_and_leaves_nothing_else(tmp_path):
    write_zarr(MATRIX, tmp_path / "t.zarr")
    write_zarr(Embeddings(["a"], [[1.0]]), tmp_path / "t.zarr")
    assert read_zarr(tmp_path / "t.zarr", DEFAULT) == Embeddings(["a"], [[1.0]])
    with pytest.raises(FileError, match="cannot be called"):
        write_zarr(Embeddings(["a"], [[1.0]], columns={"../../x": [1]}), tmp_path / "t.zarr")
    with pytest.raises(FileError, match="cannot be written as UTF-8"):
        write_zarr(Embeddings(["\ud800"], [[1.0]]), tmp_path / "t.zarr")
    with pytest.raises(FileError, match="not a map of speakers"):
        write_zarr({"a": "b"}, tmp_path / "t.zarr")
    assert read_zarr(tmp_path / "t.zarr", DEFAULT) == Embeddings(["a"], [[1.0]])
    assert [place.name for place in tmp_path.iterdir()] == ["t.zarr"]
    with pytest.raises(FileError, match="is a directory; give it a name"):
        write_zarr(MATRIX, "-")


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    for call in (lambda: write_zarr(MATRIX, tmp_path / "t.zarr"), lambda: read_zarr(tmp_path / "t.zarr", DEFAULT)):
        with pytest.raises(FileError, match=r"pip install 'evenscore\[zarr\]'"):
            call()


BAD_METADATA = {
    "pickle as filter": ({"filters": [{"id": "pickle"}]}, r"\[scores\]: it is packed with 'pickle', which is not read"),
    "pickle as compressor": ({"compressor": {"id": "pickle"}}, "packed with 'pickle'"),
    "json": ({"filters": [{"id": "json2"}]}, "packed with 'json2'"),
    "objects": ({"dtype": "|O"}, r"\[scores\]: it has type \|O, but only numbers"),
    "records": ({"dtype": [["a", "<f8"]]}, "only numbers are read"),
    "no type": ({"dtype": "?!"}, "not a zarr store, or it is damaged"),
    "huge chunk": ({"chunks": [1 << 40, 1 << 10]}, "more than the .* of memory"),
    "huge array": ({"shape": [1 << 40, 2]}, r"\[scores\]: .*more than the .* of memory"),
    "negative": ({"shape": [-1, 2]}, r"shape \[-1, 2\] makes no sense"),
    "other shape": ({"shape": [2, 1]}, r"\[scores\]: the array has shape \(2, 1\)"),
    "infinite": ({"dtype": "<f4"}, r"\[scores\]"),
    "format": ({"zarr_format": 9}, "damaged"),
}


@pytest.mark.parametrize("case", BAD_METADATA)
def test_bad_metadata(tmp_path, case):
    changes, message = BAD_METADATA[case]
    with pytest.raises(FileError, match=message):
        read_zarr(golden_store(tmp_path / "g.zarr", **changes), DEFAULT)


def test_bad_stores(tmp_path):
    with pytest.raises(FileError, match="no such directory"):
        read_zarr(tmp_path / "none.zarr", DEFAULT)
    (tmp_path / "file.zarr").write_text("x")
    with pytest.raises(FileError, match="it is a file, but a zarr store is a directory"):
        read_zarr(tmp_path / "file.zarr", DEFAULT)
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(FileError, match="not a zarr store"):
        read_zarr(tmp_path / "empty.zarr", DEFAULT)
    golden_array(tmp_path / "array.zarr", np.ones(3))
    with pytest.raises(FileError, match="a single array"):
        read_zarr(tmp_path / "array.zarr", DEFAULT)
    store = golden_store(tmp_path / "g.zarr")
    shutil.rmtree(store / "test_ids")
    with pytest.raises(FileError, match="found scores, enroll_ids, but expected"):
        read_zarr(store, DEFAULT)
    with pytest.raises(FileError, match=r"\[test_ids\]: the array is missing"):
        open_scores(store)
    golden_text(store / "test_ids", "t1")
    with pytest.raises(FileError, match=r"\[scores\]: it is float64 of shape \(2, 2\), but .* \(2, 1\)"):
        open_scores(store)


@pytest.mark.parametrize("lost", ["enroll_ids/utf8/0", "enroll_ids/offsets/0"])
def test_a_lost_chunk_of_ids_is_noticed(tmp_path, lost):
    write_zarr(MATRIX, tmp_path / "t.zarr")
    (tmp_path / "t.zarr" / lost).unlink()
    with pytest.raises(FileError, match=r"t\.zarr\[enroll_ids\]"):
        read_zarr(tmp_path / "t.zarr", DEFAULT)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    write_zarr(MATRIX, folder / "scores.zarr")
    write_zarr(Embeddings(["a", "b"], [[1.0], [2.0]]), folder / "embeddings.zarr")
    return [folder / "scores.zarr", folder / "embeddings.zarr"]


@given(data=st.data())
def test_damaged_files(stores, data):
    store = data.draw(st.sampled_from(stores))
    files = sorted(place for place in store.rglob("*") if place.is_file() and place.stat().st_size)
    damaged = data.draw(st.sampled_from(files))
    before = damaged.read_bytes()
    damaged.write_bytes(data.draw(cuts_and_flips(before)))
    try:
        must_parse_or_refuse(lambda path: read_zarr(path, DEFAULT), store)
    finally:
        damaged.write_bytes(before)
