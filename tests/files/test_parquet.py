from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, TrialList
from evenscore.files import open_scores, write
from evenscore.files.parquet import read_parquet, write_parquet
from evenscore.files.registry import ReadOptions
from examples import examples
from strategies import embeddings, score_matrices, trial_lists

DEFAULT = ReadOptions()


def made(path: Path, **columns) -> Path:
    pl.DataFrame(columns).write_parquet(path)
    return path


@given(trial_lists(measures=True, spaces=True) | embeddings(columns=True, spaces=True))
def test_round_trip(tmp_path, table):
    write_parquet(table, tmp_path / "t.parquet")
    again = read_parquet(tmp_path / "t.parquet", DEFAULT)
    assert again == table
    if isinstance(table, TrialList) and table.scores is not None:
        assert again.scores.dtype == table.scores.dtype


@given(score_matrices(spaces=True))
def test_a_score_matrix_becomes_its_trials(tmp_path, matrix):
    write_parquet(matrix, tmp_path / "t.parquet")
    again = read_parquet(tmp_path / "t.parquet", DEFAULT)
    trials = matrix.to_trials()
    assert again == trials.select(np.arange(len(trials)))


def test_golden_trials(tmp_path):
    path = made(tmp_path / "t.parquet", modelid=["a", "a"], segmentid=["s", "t"], LLR=[1.5, -2.0], snr=[10, 20])
    expected = TrialList(["a"], ["s", "t"], [0, 0], [0, 1], scores=[1.5, -2.0], measures={"snr": [10.0, 20.0]})
    assert read_parquet(path, DEFAULT) == expected


LABELS = {
    "words": ["target", "NonTarget", None],
    "zero and one": [1, 0, None],
    "unknown as -1": [1, 0, -1],
    "plus and minus one": pl.Series([1, -1, None], dtype=pl.Int8),
    "truth values": [True, False, None],
    "categories": pl.Series(["tgt", "imp", ""], dtype=pl.Categorical),
}


@pytest.mark.parametrize("spelling", LABELS)
def test_labels(tmp_path, spelling):
    ids = pl.Series(["a", "b", "c"], dtype=pl.Categorical)
    path = made(tmp_path / "t.parquet", enroll=ids, test=[7, 7, 7], label=LABELS[spelling], note=["x", "y", "z"])
    expected = TrialList(["a", "b", "c"], ["7"], [0, 1, 2], [0, 0, 0], labels=[1, 0, -1])
    assert read_parquet(path, DEFAULT) == expected


VECTORS = {
    "array": pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float64, 2)),
    "list": pl.Series([[1.0, 2.0], [3.0, 4.0]]),
}


@pytest.mark.parametrize("form", VECTORS)
def test_golden_embeddings(tmp_path, form):
    path = made(tmp_path / "e.parquet", utt=["a", "b"], spk=["ann", None], xvector=VECTORS[form], rep=[1, 2])
    expected = Embeddings(["a", "b"], [[1, 2], [3.0, 4]], ["ann", None], columns={"rep": [1, 2]})
    assert read_parquet(path, DEFAULT) == expected


def test_one_column_per_component(tmp_path):
    columns = {"x10": [3.0], "x2": [2.0], "x1": [1.0], "duration": [9.0], "id": ["a"]}
    table = read_parquet(made(tmp_path / "e.parquet", **columns), DEFAULT)
    assert table == Embeddings(["a"], [[1, 2, 3.0]], columns={"duration": [9.0]})
    table = read_parquet(made(tmp_path / "f.parquet", id=["a"], u=np.float32([1]), v=np.float32([2])), DEFAULT)
    assert table == Embeddings(["a"], np.float32([[1, 2]]))


def test_what_we_write(tmp_path):
    trials = TrialList.from_pairs(["e", "e"], ["t", "u"], scores=np.float32([1, 2]), labels=[1, -1])
    write_parquet(trials, tmp_path / "t.parquet")
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame.schema == {"enroll": pl.String, "test": pl.String, "score": pl.Float32, "label": pl.Int8}
    assert frame["label"].to_list() == [1, None]
    write_parquet(Embeddings(["a"], np.float32([[1, 2]]), [None]), tmp_path / "e.parquet")
    frame = pl.read_parquet(tmp_path / "e.parquet")
    assert frame.schema == {"id": pl.String, "speaker": pl.String, "embedding": pl.Array(pl.Float32, 2)}


def test_options(tmp_path):
    columns = {"enroll": ["a", "a", "a"], "test": ["s", "t", "s"], "other": [1.0, 2.0, 1.0]}
    path = made(tmp_path / "t.parquet", **columns, score=[0.5, None, 0.5])
    with pytest.raises(FileError, match="more than once"):
        read_parquet(path, DEFAULT)
    with pytest.raises(FileError, match=r"is nan, but scores must be finite.*missing='skip'"):
        read_parquet(path, ReadOptions(duplicates="drop"))
    assert read_parquet(path, ReadOptions(duplicates="drop", missing="skip")).scores.tolist() == [0.5]
    other = read_parquet(path, ReadOptions(duplicates="drop", score_column="other"))
    assert other.scores.tolist() == [1.0, 2.0]
    with pytest.raises(FileError, match=r"\[none\]: there is no column 'none'; found enroll, test, other, score"):
        read_parquet(path, ReadOptions(score_column="none"))


def test_gzip_around_it_and_odd_file_names(tmp_path):
    table = Embeddings(["a"], [[1.0]])
    for name in ("e.parquet.gz", "e[1]*.parquet"):
        write_parquet(table, tmp_path / name)
        assert read_parquet(tmp_path / name, DEFAULT) == table
    (tmp_path / "cut.parquet.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    with pytest.raises(FileError, match="gzip data is cut off"):
        read_parquet(tmp_path / "cut.parquet.gz", DEFAULT)


PAIR = {"enroll": ["a"], "test": ["s"]}
BAD = {
    "other columns": (
        {"a": [1], "b": [2]},
        "found the columns a, b, but expected enroll and test, or id and embedding",
    ),
    "no vectors": ({"id": ["a"], "n": [1]}, "found the columns id, n, but no vectors"),
    "null id": ({"enroll": ["a", None], "test": ["s", "t"]}, r"\[enroll\]: row 1 has no id"),
    "empty id": ({"enroll": [""], "test": ["s"]}, r"\[enroll\]: this list\[0\] is empty"),
    "real numbers as ids": ({"enroll": [0.5], "test": ["s"]}, r"\[enroll\]: it has type Float64, but ids must be text"),
    "text for scores": ({**PAIR, "score": ["x"]}, r"\[score\]: it has type String, but numbers are expected"),
    "label": ({**PAIR, "label": ["maybe"]}, r"\[label\]: unknown label 'maybe'"),
    "label number": ({**PAIR, "label": [2]}, r"\[label\]: it holds 2, but labels are 1"),
    "ragged": ({"id": ["a", "b"], "embedding": [[1.0], [1.0, 2.0]]}, r"\[embedding\]: the vectors differ in length"),
    "null component": ({"id": ["a"], "embedding": [[1.0, None]]}, r"\[embedding\]: a vector or a component is null"),
    "text in vectors": ({"id": ["a"], "embedding": [["x"]]}, "real numbers"),
    "no list": ({"id": ["a"], "embedding": [1.0]}, r"\[embedding\]: it has type Float64, but lists"),
    "two lists": ({"id": ["a"], "u": [[1.0]], "v": [[1.0]]}, "u, v are all lists"),
    "not finite": ({"id": ["a"], "embedding": [[float("inf")]]}, "the vector of 'a'"),
    "repeated": ({"id": ["a", "a"], "embedding": [[1.0], [2.0]]}, r"\[id\]: .*more than once"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_wrong_is_named(tmp_path, case):
    columns, message = BAD[case]
    with pytest.raises(FileError, match=message):
        read_parquet(made(tmp_path / "x.parquet", **columns), DEFAULT)


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "x.parquet"
    trials = TrialList.from_pairs(["e"], ["t"], measures={"Score": [1.0]})
    with pytest.raises(FileError, match=r"\[Score\]: the measure 'Score' has a name with a meaning"):
        write_parquet(trials, path)
    with pytest.raises(FileError, match="cannot be called 'id'"):
        write_parquet(Embeddings(["a"], [[1.0]], columns={"id": [1]}), path)
    with pytest.raises(FileError, match=r"\[c\]: it cannot be stored"):
        write_parquet(Embeddings(["a"], [[1.0]], columns={"c": np.array([{}], dtype=object)}), path)
    with pytest.raises(FileError, match="not a map of speakers"):
        write({"a": "b"}, path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device /dev/full")
def test_a_full_disk():
    with pytest.raises(FileError, match=r"disk is full|No space left"):
        write_parquet(Embeddings(["a"], [[1.0]]), "/dev/full")


def test_missing_empty_and_other_files(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        read_parquet(tmp_path / "none.parquet", DEFAULT)
    for content in (b"", b"PAR1", b"spk utt 0.5\n"):
        (tmp_path / "x.parquet").write_bytes(content)
        with pytest.raises(FileError, match="not a parquet file"):
            read_parquet(tmp_path / "x.parquet", DEFAULT)


def test_a_size_that_is_only_declared(tmp_path, monkeypatch):
    path = made(tmp_path / "x.parquet", enroll=["e"] * 200_000, test=list(map(str, range(200_000))))
    assert len(read_parquet(path, DEFAULT)) == 200_000
    monkeypatch.setattr("os.sysconf", lambda name: {"SC_PAGE_SIZE": 4096}.get(name, 4))
    with pytest.raises(FileError, match=r"but only 0\.0 GB of memory"):
        read_parquet(path, DEFAULT)


def test_one_value_that_is_repeated_too_often(tmp_path, monkeypatch):
    path = made(tmp_path / "x.parquet", enroll=["e"] * 2000, test=["t"] * 2000)
    monkeypatch.setattr("evenscore.files.parquet_sizes._VALUE_BYTES", 1_000_000)
    with pytest.raises(FileError, match=r"GB unpack to 4\.0 GB"):
        read_parquet(path, DEFAULT)


def test_a_page_that_declares_too_many_values_does_not_end_the_process(tmp_path):
    path = made(tmp_path / "x.parquet", enroll=["e", "f"], test=["t", "t"], score=[1.0, 2.0])
    content = path.read_bytes()
    count = content.index(b"\x15\x04")  # field 1 of the first page's header: two values, as a zigzag number
    path.write_bytes(content[: count + 1] + b"\xff" + content[count + 2 :])
    with pytest.raises(FileError, match="copy the file again"):
        read_parquet(path, DEFAULT)


@pytest.mark.parametrize("compression", ["zstd", "snappy", "gzip", "lz4", "uncompressed"])
def test_many_pages_and_row_groups(tmp_path, compression):
    rows = 5000
    frame = pl.DataFrame({"enroll": ["e"] * rows, "test": [f"t{i}" for i in range(rows)], "score": np.arange(rows) / 7})
    frame.write_parquet(tmp_path / "x.parquet", compression=compression, row_group_size=999, data_page_size=256)
    trials = read_parquet(tmp_path / "x.parquet", DEFAULT)
    np.testing.assert_array_equal(trials.scores, np.arange(rows) / 7)
    assert trials.test[-1] == f"t{rows - 1}"


@given(data=st.data())
@examples(150)
def test_damaged_files(tmp_path, data):
    path = tmp_path / "x.parquet"
    table = data.draw(
        st.sampled_from(
            [
                TrialList.from_pairs(["e", "e"], ["t", "u"], scores=[1.0, 2.0], labels=[1, 0]),
                Embeddings(["a", "b"], [[1.0, 2.0], [3.0, 4.0]], ["x", None]),
            ]
        )
    )
    write_parquet(table, path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(lambda file: read_parquet(file, DEFAULT), path)
    must_parse_or_refuse(lambda file: open_scores(file).in_memory(), path)
