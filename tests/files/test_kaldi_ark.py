from __future__ import annotations

import gzip
import struct
import warnings

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix
from evenscore.files import write
from evenscore.files.kaldi_ark import read_ark, read_scp, write_ark, write_ark_text, write_scp
from evenscore.files.registry import ReadOptions
from strategies import embeddings

DEFAULT = ReadOptions()
TWO = Embeddings(["utt1", "utt2"], np.array([[0.5, -1.5], [2.0, 3.25]], dtype=np.float32))


def vector_entry(key: bytes, kind: bytes, *numbers: float) -> bytes:
    """A binary entry written straight from the definition of the format."""
    code = "f" if kind[:1] == b"F" else "d"
    return key + b" \0B" + kind + b" \4" + struct.pack(f"<i{len(numbers)}{code}", len(numbers), *numbers)


def matrix_entry(key: bytes, rows: int, columns: int, *numbers: float) -> bytes:
    head = b" \0BFM \4" + struct.pack("<i", rows) + b"\4" + struct.pack("<i", columns)
    return key + head + struct.pack(f"<{len(numbers)}f", *numbers)


GOLDEN = vector_entry(b"utt1", b"FV", 0.5, -1.5) + vector_entry(b"utt2", b"FV", 2.0, 3.25)


@given(embeddings(speakers=False))
def test_round_trip_binary(tmp_path, table):
    write_ark(table, tmp_path / "t.ark")
    assert read_ark(tmp_path / "t.ark", DEFAULT) == table


@given(embeddings(speakers=False))
def test_round_trip_text(tmp_path, table):
    write_ark_text(table, tmp_path / "t.ark")
    again = read_ark(tmp_path / "t.ark", DEFAULT)
    assert Embeddings(again.ids, again.vectors.astype(table.vectors.dtype)) == table


@given(embeddings(speakers=False))
def test_round_trip_scp(tmp_path, table):
    write_scp(table, tmp_path / "t.scp")
    assert (tmp_path / "t.ark").exists()
    assert read_scp(tmp_path / "t.scp", DEFAULT) == table


@given(embeddings(speakers=False))
def test_kaldiio_reads_what_we_write_and_we_read_what_it_writes(tmp_path, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import kaldiio
    write_scp(table, tmp_path / "ours.scp")
    theirs = dict(kaldiio.load_ark(str(tmp_path / "ours.ark")))
    by_scp = kaldiio.load_scp(str(tmp_path / "ours.scp"), separator=" ")
    for key, vector in zip(table.ids, table.vectors, strict=True):
        np.testing.assert_array_equal(theirs[key], vector)
        np.testing.assert_array_equal(by_scp[key], vector)
    vectors = dict(zip(table.ids, table.vectors, strict=True))
    kaldiio.save_ark(str(tmp_path / "theirs.ark"), vectors, scp=str(tmp_path / "theirs.scp"))
    assert read_ark(tmp_path / "theirs.ark", DEFAULT) == table
    assert read_scp(tmp_path / "theirs.scp", DEFAULT) == table


def test_golden_binary(tmp_path):
    (tmp_path / "g.ark").write_bytes(GOLDEN)
    assert read_ark(tmp_path / "g.ark", DEFAULT) == TWO
    write_ark(TWO, tmp_path / "w.ark")
    assert (tmp_path / "w.ark").read_bytes() == GOLDEN


def test_golden_text(tmp_path):
    (tmp_path / "g.ark").write_bytes(b"utt1  [ 0.5 -1.5 ]\nutt2  [\n  2 3.25 ]\r\n\n")
    assert read_ark(tmp_path / "g.ark", DEFAULT) == Embeddings(TWO.ids, TWO.vectors.astype(np.float64))
    write_ark_text(TWO, tmp_path / "w.ark")
    assert (tmp_path / "w.ark").read_text() == "utt1  [ 0.5 -1.5 ]\nutt2  [ 2 3.25 ]\n"


def test_double_one_row_matrix_and_gzip(tmp_path):
    content = vector_entry(b"a", b"DV", 0.1, 0.2) + matrix_entry(b"b", 1, 2, 0.5, 1.0)
    (tmp_path / "m.ark.gz").write_bytes(gzip.compress(content))
    table = read_ark(tmp_path / "m.ark.gz", DEFAULT)
    assert table == Embeddings(["a", "b"], np.array([[0.1, 0.2], [0.5, 1.0]]))
    write_ark(table, tmp_path / "w.ark.gz")
    assert read_ark(tmp_path / "w.ark.gz", DEFAULT) == table


def test_scp_of_text_archive_and_of_whole_files(tmp_path):
    (tmp_path / "t.ark").write_bytes(b"a  [ 1 2 ]\n")
    (tmp_path / "v.vec").write_bytes(vector_entry(b"", b"FV", 3.0, 4.0)[1:])
    (tmp_path / "t.scp").write_text(f"a {tmp_path}/t.ark:2\nb {tmp_path}/v.vec\n")
    assert read_scp(tmp_path / "t.scp", DEFAULT).vectors.tolist() == [[1, 2], [3, 4]]


def test_scp_paths_are_relative_to_the_working_directory_else_to_the_scp(tmp_path, monkeypatch):
    (tmp_path / "exp").mkdir()
    monkeypatch.chdir(tmp_path)
    write_scp(TWO, "exp/x.scp")
    assert (tmp_path / "exp/x.scp").read_text() == "utt1 exp/x.ark:5\nutt2 exp/x.ark:28\n"
    assert read_scp("exp/x.scp", DEFAULT) == TWO
    (tmp_path / "exp/y.scp").write_text("utt1 x.ark:5\nutt2 x.ark:28\n")
    assert read_scp("exp/y.scp", DEFAULT) == TWO


@pytest.mark.parametrize(
    "command", ["touch RAN; cat g.ark |", "|touch RAN", "gunzip -c g.ark.gz |", "touch RAN|", "-", "cat g.ark:5 | "]
)
def test_commands_in_an_scp_are_refused_and_never_run(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.ark").write_bytes(GOLDEN)
    (tmp_path / "x.scp").write_text(f"utt1 g.ark:5\nutt2 {command}\n")
    with pytest.raises(FileError, match=r"x\.scp:2: .* is a command, which is never run"):
        read_scp("x.scp", DEFAULT)
    assert not (tmp_path / "RAN").exists()


BAD_SCP = {
    "": "the file is empty",
    "\n\n": "the file is empty",
    "utt1\n": r"x\.scp:1: expected an id and",
    "utt1 none.ark:5\n": r"x\.scp:1: the archive 'none\.ark' is not there",
    "utt1 .:5\n": r"x\.scp:1: the archive '\.' is not there, or is not a file",
    "utt1 /dev/zero:0\n": r"x\.scp:1: .* is not a file",
    "utt1 g.ark:5\nutt2 g.ark:99\n": r"x\.scp:2\[utt2\]: offset 99 lies beyond the end of 'g\.ark' \(46 bytes\)",
    "utt1 g.ark:6\n": r"x\.scp:1\[utt1\]: expected a vector",
    "utt1 g.ark:5[0:1]\n": r"x\.scp:1: the range",
    "utt1 g.ark\n": r"x\.scp:1\[utt1\]: expected a vector",
    "utt1 g.ark:5\nutt1 g.ark:28\n": "'utt1' more than once",
    "utt1 empty.ark:5\n": r"empty\.ark: the file is empty",
}


@pytest.mark.parametrize("content", BAD_SCP)
def test_bad_scp(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.ark").write_bytes(GOLDEN)
    (tmp_path / "empty.ark").touch()
    (tmp_path / "x.scp").write_text(content)
    with pytest.raises(FileError, match=BAD_SCP[content]):
        read_scp("x.scp", DEFAULT)


BAD_ARK = {
    b"": "the file is empty",
    b"\n \n": "only blank lines",
    GOLDEN[:-1]: r"x\.ark\[utt2\]: the vector has 2 components \(8 bytes\), but 7 bytes are left; the file is cut off",
    GOLDEN[:30]: r"x\.ark\[utt2\]: expected a vector",
    GOLDEN[:35]: r"x\.ark\[utt2\]: its size is cut off",
    GOLDEN[:25]: r"x\.ark: expected an id and a space after 'utt1'",
    vector_entry(b"a", b"FV", 1.0) + vector_entry(b"b", b"FV", 1.0, 2.0): r"\[b\]: the vector has 2 components, but",
    b"a \0BFV \4" + struct.pack("<i", 2**31 - 1): r"\[a\]: the vector has 2147483647 components",
    b"a \0BFV \4" + struct.pack("<i", -1) + b"1234": r"\[a\]: the vector has -1 components",
    b"a \0BCM ....": r"\[a\]: expected a vector \(type FV or DV\)",
    b"a \0B\4\1\0\0\0": r"\[a\]: expected a vector",
    vector_entry(b"a", b"FV", 1.0) + b"b NPY....": r"\[b\]: expected a vector .* found b'NPY",
    vector_entry(b"a", b"FV", 1.0) + b"b PKLcos\nsystem\n": r"\[b\]: expected a vector .* found b'PKL",
    vector_entry(b"a", b"FV", 1.0) + b"b AUDIO....": r"\[b\]: expected a vector",
    b"a PKLcos\nsystem\n(S'touch RAN'\ntR.": r"x\.ark:1: expected an id and a vector in brackets",
    matrix_entry(b"a", 2, 1, 1.0, 2.0): r"\[a\]: this is a matrix of 2 x 1, but a vector is expected",
    vector_entry(b"a", b"FV", float("nan")): "the vector of 'a' has a value that is not finite",
    vector_entry(b"\xff", b"FV", 1.0): "expected an id in UTF-8",
    vector_entry(b"a", b"FV", 1.0) * 2: "'a' more than once",
    b"a [ 1 2 ]\nb [ 1 ]\n": r"x\.ark:2\[b\]: the vector has 1 components",
    b"a [ 1 2 ]\nb [ 1 x ]\n": r"x\.ark:2: could not convert .*; expected numbers",
    b"a [ 1 2_0 ]\n": r"x\.ark:1: a number has an underscore",
    b"a [ 1 2\n": r"x\.ark:1: expected an id and a vector in brackets",
    b"a [\n": r"x\.ark:1: the closing bracket is missing",
    b"a [ ]\n": r"x\.ark:1: expected an id and a vector",
    b"a b 0.5\n": r"x\.ark:1: expected an id and a vector",
    b"a [ 1 2 ]\nb [\n 1 2\n 3 4 ]\n": r"x\.ark:2: expected an id and a vector",
    b"x" * (17 << 20): r"x\.ark:1: the line has more than",
}


@pytest.mark.parametrize("content", BAD_ARK, ids=lambda content: repr(content[:40]))
def test_bad_ark(tmp_path, content):
    (tmp_path / "x.ark").write_bytes(content)
    with pytest.raises(FileError, match=BAD_ARK[content]):
        read_ark(tmp_path / "x.ark", DEFAULT)


def test_cut_off_gzip(tmp_path):
    (tmp_path / "x.ark.gz").write_bytes(gzip.compress(GOLDEN)[:-12])
    with pytest.raises(FileError, match="gzip data is cut off"):
        read_ark(tmp_path / "x.ark.gz", DEFAULT)


@given(data=st.data())
def test_damaged_files(tmp_path, data):
    text = b"utt1  [ 0.5 -1.5 ]\nutt2  [ 2.0 3.25 ]\n"
    scp = f"utt1 {tmp_path}/g.ark:5\nutt2 {tmp_path}/g.ark:28\n".encode()
    (tmp_path / "g.ark").write_bytes(GOLDEN)
    content, read = data.draw(st.sampled_from([(GOLDEN, read_ark), (text, read_ark), (scp, read_scp)]))
    (tmp_path / "x.ark").write_bytes(data.draw(cuts_and_flips(content)))
    must_parse_or_refuse(lambda file: read(file, DEFAULT), tmp_path / "x.ark")


@given(st.binary(max_size=100))
def test_garbage(tmp_path, content):
    (tmp_path / "x.ark").write_bytes(content)
    must_parse_or_refuse(lambda file: read_ark(file, DEFAULT), tmp_path / "x.ark")
    must_parse_or_refuse(lambda file: read_scp(file, DEFAULT), tmp_path / "x.ark")


@pytest.mark.parametrize("name", ["kaldi-ark", "kaldi-ark-text", "kaldi-scp"])
def test_what_cannot_be_written(tmp_path, name):
    with pytest.raises(FileError, match="the id 'a b' cannot be written"):
        write(Embeddings(["a b"], [[1.0]]), tmp_path / "x.ark", format=name)
    with pytest.raises(FileError, match="holds embeddings, not a score matrix"):
        write(ScoreMatrix([[1.0]], ["e"], ["t"]), tmp_path / "x.ark", format=name)
    assert list(tmp_path.iterdir()) == []


def test_an_scp_cannot_go_to_standard_output():
    with pytest.raises(FileError, match="write it to a file"):
        write_scp(TWO, "-")
