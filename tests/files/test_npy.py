from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix
from evenscore.files import write
from evenscore.files.numpy_files import read_npy, write_npy
from evenscore.files.registry import ReadOptions
from strategies import embeddings

DEFAULT = ReadOptions()


@given(embeddings(speakers=False))
def test_round_trip(tmp_path, table):
    write_npy(table, tmp_path / "e.npy")
    assert read_npy(tmp_path / "e.npy", DEFAULT) == table


@pytest.mark.parametrize("name", ["e.npy.ids", "e.ids", "e.npy.txt", "e.txt"])
def test_golden(tmp_path, name):
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }".ljust(117) + b"\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<2f", 0.5, -2.0)
    (tmp_path / "e.npy").write_bytes(content)
    (tmp_path / name).write_bytes(b"\xef\xbb\xbfutt 1\r\nC:\\x\\y.wav\r\n")
    expected = Embeddings(["utt 1", "C:\\x\\y.wav"], np.float32([[0.5], [-2.0]]))
    assert read_npy(tmp_path / "e.npy", DEFAULT) == expected


def test_ids_that_are_named_and_gzip(tmp_path):
    table = Embeddings(["a", "b"], [[1.0], [2.0]])
    write_npy(table, tmp_path / "e.npy.gz")
    assert (tmp_path / "e.ids").read_text() == "a\nb\n"
    assert read_npy(tmp_path / "e.npy.gz", DEFAULT) == table
    (tmp_path / "others").write_text("x\ny\n")
    assert read_npy(tmp_path / "e.npy.gz", ReadOptions(ids=tmp_path / "others")).ids.tolist() == ["x", "y"]


def test_ids_that_do_not_fit(tmp_path):
    np.save(tmp_path / "e.npy", np.ones((2, 1)))
    with pytest.raises(FileError, match=r"e\.npy: an npy file has no ids.*e\.ids.*ids=FILE"):
        read_npy(tmp_path / "e.npy", DEFAULT)
    (tmp_path / "e.ids").write_text("a\n")
    with pytest.raises(FileError, match=r"e\.ids: there are 1 ids, but .*e\.npy has 2 rows"):
        read_npy(tmp_path / "e.npy", DEFAULT)
    (tmp_path / "e.ids").write_text("a\na\n")
    with pytest.raises(FileError, match=r"e\.ids: the list has 'a' more than once"):
        read_npy(tmp_path / "e.npy", DEFAULT)
    (tmp_path / "e.ids").write_bytes(b"a\n\xff\n")
    with pytest.raises(FileError, match=r"e\.ids:2: byte 0xff is not UTF-8"):
        read_npy(tmp_path / "e.npy", DEFAULT)
    with pytest.raises(FileError, match=r"none: there is no such file"):
        read_npy(tmp_path / "e.npy", ReadOptions(ids=tmp_path / "none"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(2), r"shape \(2,\) is not that of a matrix"),
        (np.array([["a"]]), "must hold real numbers"),
        (np.array([[None]], dtype=object), "no pickled objects"),
        (np.array([[np.nan]]), "not finite"),
        (np.zeros((1, 1), dtype="f4,f4"), "only plain numbers and text"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, array, message):
    np.save(tmp_path / "e.npy", array)
    (tmp_path / "e.ids").write_text("a\n")
    with pytest.raises(FileError, match=message):
        read_npy(tmp_path / "e.npy", DEFAULT)


def test_a_header_that_promises_too_much(tmp_path):
    np.save(tmp_path / "e.npy", np.ones((1, 1)))
    content = (tmp_path / "e.npy").read_bytes()
    (tmp_path / "e.npy").write_bytes(content.replace(b"(1, 1), }      ", b"(1000000, 1), }"))
    with pytest.raises(FileError, match="needs 8000000 bytes, but there are 8"):
        read_npy(tmp_path / "e.npy", DEFAULT)


def test_what_cannot_be_written(tmp_path):
    for bad in (" a", "a\nb", "a\u2028b", "\ufeffa", "a\0b"):
        with pytest.raises(FileError, match=r"cannot (be written|stand on a line of its own)"):
            write_npy(Embeddings([bad], [[1.0]]), tmp_path / "e.npy")
    with pytest.raises(FileError, match="holds embeddings, not a score matrix"):
        write(ScoreMatrix([[1.0]], ["e"], ["t"]), tmp_path / "e.npy", format="npy")
    with pytest.raises(FileError, match="write it to a file"):
        write_npy(Embeddings(["a"], [[1.0]]), "-")
    assert list(tmp_path.iterdir()) == []


@given(data=st.data())
def test_damaged_files(tmp_path, data):
    path = tmp_path / "e.npy"
    write_npy(Embeddings(["a", "b"], [[1.0], [2.0]]), path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(lambda file: read_npy(file, DEFAULT), path)
