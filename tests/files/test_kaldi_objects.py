"""Kaldi's files of one object: PLDA and vectors, text and binary, written here byte by byte as Kaldi's sources tell."""

import struct

import numpy as np
import pytest

from evenscore import PLDA, Embeddings, FileError, InputError
from evenscore.files.kaldi_objects import read_kaldi_plda, read_vector, write_kaldi_plda
from evenscore.files.models import load_plda, save_plda
from evenscore.plda.projection import Projection
from reference.dense_plda import kaldi_llr

MEAN, TRANSFORM, PSI = np.array([0.5, -1.0]), np.array([[2.0, 0.5], [-0.25, 1.5]]), np.array([3.0, 0.75])
TEXT = """<Plda>  [ 0.5 -1 ]
 [
  2 0.5
  -0.25 1.5 ]
 [ 3 0.75 ]
</Plda> """


def binary(*, kind="D"):
    dtype = "<f8" if kind == "D" else "<f4"
    parts = [b"\0B<Plda> "]
    for array in (MEAN, TRANSFORM, PSI):
        mark = f"{kind}{'V' if array.ndim == 1 else 'M'} ".encode()
        parts += [mark, *(b"\4" + struct.pack("<i", size) for size in array.shape), array.astype(dtype).tobytes()]
    return b"".join([*parts, b"</Plda> "])


@pytest.mark.parametrize("content", [TEXT.encode(), binary(), binary(kind="F")], ids=["text", "double", "float"])
def test_scores_are_those_of_kaldis_formula(tmp_path, content):
    path = tmp_path / "plda"
    path.write_bytes(content)
    plda = load_plda(path)
    u, v = np.array([1.0, 2.0]), np.array([-0.5, 0.25])
    score = plda.score(Embeddings(["e"], [u]), Embeddings(["t"], [v])).in_memory().scores[0, 0]
    assert score == pytest.approx(kaldi_llr(MEAN, TRANSFORM, PSI, u, 1, v), rel=1e-6)
    save_plda(plda, tmp_path / "plda.json")
    again = load_plda(tmp_path / "plda.json")
    assert again.model_length
    assert again.score(Embeddings(["e"], [u]), Embeddings(["t"], [v])).in_memory().scores[0, 0] == score


def test_what_is_written_is_read_back(tmp_path):
    plda = PLDA(mean=[0.1, 1 / 3], between=[[2.0, 0.3], [0.3, 1.0]], within=[[1.0, 0.2], [0.2, 0.5]])
    write_kaldi_plda(plda.recentered([1.0, 2.0]), tmp_path / "plda")
    again = read_kaldi_plda(tmp_path / "plda")
    np.testing.assert_allclose(again.mean, plda.mean + np.array([1.0, 2.0]))
    np.testing.assert_allclose(again.between, plda.between)
    np.testing.assert_allclose(again.within, plda.within)
    lengths = Projection(center=np.zeros(2), length_normalize=True)
    with pytest.raises(InputError, match="no place for LDA"):
        write_kaldi_plda(PLDA(mean=[0.0, 0], between=np.eye(2), within=np.eye(2), projection=lengths), tmp_path / "x")
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (binary()[:30], "does not fit into the file"),
        (binary()[:12], "a size is cut off"),
        (binary().replace(b"DM", b"XM"), "expected a vector or a matrix"),
        (binary()[:-8], "expected '</Plda>'"),
        (TEXT.replace("0.75", "").encode(), "psi 1"),
        (TEXT.replace("0.75", "x").encode(), "could not convert"),
        (TEXT.replace("0.75", "nan").encode(), "of finite numbers"),
        (TEXT.replace("-0.25 1.5", "-0.25").encode(), "different lengths"),
        (TEXT.replace("-0.25 1.5", "2 0.5").encode(), "it is no PLDA"),
        (TEXT.replace("[ 3", "3").encode(), "expected numbers in brackets"),
        (TEXT.replace("[ 3", "[ -3").encode(), "it is no PLDA"),
    ],
    ids=range(11),
)
def test_damaged_models_are_refused(tmp_path, content, problem):
    path = tmp_path / "plda"
    path.write_bytes(content)
    with pytest.raises(FileError, match=problem):
        load_plda(path)


def test_vectors(tmp_path):
    expected, path = np.array([0.5, -1.5, 2.0]), tmp_path / "mean"
    contents = [b" [ 0.5 -1.5 2 ]\n", b"\0BFV \4" + struct.pack("<i", 3) + expected.astype("<f4").tobytes()]
    for content in contents:
        path.write_bytes(content)
        np.testing.assert_array_equal(read_vector(path), expected)
    for array in (expected, expected[None], expected.astype(np.float32)):
        np.save(tmp_path / "mean.npy", array)
        np.testing.assert_array_equal(read_vector(tmp_path / "mean.npy"), expected)
    np.save(tmp_path / "mean.npy", np.eye(3))
    assert read_vector(tmp_path / "mean.npy") is None  # a matrix of scores, or of embeddings
    path.write_text("u1 [ 1 2 ]\n")
    assert read_vector(path) is None  # an archive
    path.write_bytes(contents[1] + b"more")
    with pytest.raises(FileError, match="expected the end"):
        read_vector(path)
    np.save(tmp_path / "mean.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match="no pickled objects"):
        read_vector(tmp_path / "mean.npy")
