"""Parquet, HDF5, Kaldi's vectors and embeddings: what is written is read again, and damaged files are refused."""

import struct
from contextlib import suppress

import h5py
import numpy as np
import polars as pl
import pytest

from evenscore.data import Embeddings, ScoreMatrix, TrialList
from evenscore.errors import FileError
from evenscore.files import output_format, read, read_embeddings, read_model, read_scores, read_trials, write

RNG = np.random.default_rng(5)
VECTORS = Embeddings(["u/1.wav", "é2", "u3"], RNG.normal(size=(3, 4)), ["ann", None, "bob"], {"dur": [1.5, 2, 3]})
MATRIX = ScoreMatrix(np.array([[1.5, np.nan, -2], [0.1, 3, 4]], np.float32), ["e 1", "é"], ["t1", "t,2", "t3"])
LISTS = [
    TrialList(["e1", "e2", "e2"], ["t1", "t1", "t2"], scores=[1.0, -2, 0.25], labels=[1, -1, 0]),
    TrialList(["e1", "e2"], ["t1", "t1"], labels=[1, 0]),
    TrialList(["e1", "e2"], ["t1", "t1"]),
    TrialList(["e1"], ["t1"], labels=[1]),
]


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.h5", "a.zarr", "a.npy", "a.ark", "a.scp", "a.h5.gz"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_embeddings_are_read_as_they_were_written(tmp_path, name, dtype):
    table = Embeddings(VECTORS.ids, VECTORS.vectors.astype(dtype), VECTORS.speakers, VECTORS.columns)
    write(table, tmp_path / name)
    found = read_embeddings(tmp_path / name)
    assert found.ids.tolist() == table.ids.tolist()
    np.testing.assert_array_equal(found.vectors, table.vectors)
    assert found.vectors.dtype == dtype
    if name.endswith(("npy", "ark", "scp")):
        return
    assert found.speakers.tolist() == ["ann", None, "bob"]
    assert found.columns["dur"].tolist() == [1.5, 2, 3]


def test_kaldi_archives_of_text_and_of_matrices_with_one_row(tmp_path):
    write(VECTORS, tmp_path / "a", format="kaldi-ark-text")
    np.testing.assert_array_equal(read(tmp_path / "a").vectors, VECTORS.vectors)
    row = struct.pack("<4s5s5s", b" \0BF", b"M \4\1\0", b"\0\0\4\2\0") + struct.pack("<2s2f", b"\0\0", 1.5, -2)
    (tmp_path / "b.ark").write_bytes(b"u1" + row + b"u2" + row)
    assert read_embeddings(tmp_path / "b.ark").vectors.tolist() == [[1.5, -2], [1.5, -2]]
    (tmp_path / "c.scp").write_text("u1 gunzip -c b.ark |\n")
    with pytest.raises(FileError, match=r"c\.scp:1:"):
        read(tmp_path / "c.scp", format="kaldi-scp")


def test_a_plda_of_kaldi_is_binary_or_text(tmp_path):
    mean, psi, transform = [0.5, 1.0], [3.0, 2.0], [[2.0, 0.0], [1.0, 1.0]]
    (tmp_path / "text").write_text("<Plda>  [ 0.5 1 ]\n [\n  2 0\n  1 1 ]\n [ 3 2 ]\n</Plda> ")
    size = struct.pack("<ci", b"\4", 2)
    numbers = [np.array(values, "<f8").tobytes() for values in (mean, transform, psi)]
    parts = (b"DV " + size + numbers[0], b"DM " + size + size + numbers[1], b"DV " + size + numbers[2])
    (tmp_path / "binary").write_bytes(b"\0B<Plda> " + b"".join(parts) + b"</Plda> ")
    for name in ("text", "binary"):
        plda, A = read_model(tmp_path / name), np.array(transform)
        np.testing.assert_allclose(A @ plda.within @ A.T, np.eye(2), atol=1e-12)
        np.testing.assert_allclose(A @ plda.between @ A.T, np.diag(psi), atol=1e-12)
        assert plda.mean.tolist() == mean


@pytest.mark.parametrize("extension", ["h5", "parquet"])
def test_trials_are_read_as_they_were_written(tmp_path, extension):
    path = tmp_path / f"a.{extension}"
    for trials in LISTS:
        write(trials, path)
        assert read_trials(path) == trials
    write(MATRIX, path)
    assert read_scores(path).to_trials() == MATRIX.to_trials()
    assert read_scores(path).scores.dtype == np.float32
    infinite = TrialList(["e1"], ["t1"]).with_scores([-np.inf], infinite=True)
    write(infinite, path)
    assert read_scores(path, infinite="accept").to_trials().scores.tolist() == [-np.inf]
    with pytest.raises(FileError):
        read_scores(path)


def test_columns_of_parquet(tmp_path):
    words = pl.DataFrame(
        {"Model": [1, 2], "segment": ["a", "b"], "LLR": [0.5, None], "label": ["Target", None], "x": 7}
    )
    words.write_parquet(tmp_path / "a.parquet")
    found = read(tmp_path / "a.parquet", missing="skip")
    assert (found.enroll_ids[found.rows].tolist(), found.labels.tolist()) == (["1"], [1])
    assert read(tmp_path / "a.parquet", score_column="x").scores.tolist() == [7, 7]
    pl.DataFrame({"enroll": ["a", "b"], "test": "t", "label": [1, -1]}).write_parquet(tmp_path / "b.parquet")
    assert read_trials(tmp_path / "b.parquet").labels.tolist() == [1, 0]


def test_a_matrix_of_matlab_is_transposed_and_other_files_are_not_opened(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["ID/row_ids"], file["ID/column_ids"] = np.array([[b"e1", b"e2"]]), np.array([[b"t1", b"t2", b"t3"]])
        file["scores"] = np.arange(6.0).reshape(3, 2)
    assert read_scores(tmp_path / "a.h5").scores.tolist() == [[0, 2, 4], [1, 3, 5]]
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["ids"], file["embeddings"] = ["u1"], h5py.ExternalLink("/etc/passwd", "x")
        layout = h5py.VirtualLayout((1, 2), float)
        layout[:] = h5py.VirtualSource(tmp_path / "a.h5", "scores", (3, 2))[:1]
        file.create_virtual_dataset("x", layout)
    with pytest.raises(FileError, match="another file"):
        read(tmp_path / "b.h5")


def test_a_file_that_asks_for_too_much_memory_is_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:  # declared, but not stored
        file["ID/row_ids"], file["ID/column_ids"] = ["e"], ["t"]
        file.create_dataset("scores", (1 << 20, 1 << 15), "f8", chunks=(1024, 1024))
    with pytest.raises(FileError, match=r"a\.h5"):
        read(tmp_path / "a.h5")


@pytest.mark.parametrize("name", ["a.npz", "a.parquet", "a.h5", "a.ark", "a.npy"])
def test_damaged_files_are_refused_or_read_but_never_break(tmp_path, name):
    write(VECTORS, tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    seeds = range(4 if name == "a.h5" else 40)  # a process each
    for rng in map(np.random.default_rng, seeds):
        data = bytearray(whole)
        for at in rng.integers(len(data), size=3):
            data[at] = rng.integers(256)
        (tmp_path / name).write_bytes(data if rng.random() < 0.6 else whole[: rng.integers(len(whole))])
        with suppress(FileError):
            read_embeddings(tmp_path / name, format=output_format(name, "embeddings").name)


def test_a_table_of_another_kind_is_refused_and_so_is_an_output_before_the_work(tmp_path):
    write(VECTORS, tmp_path / "a.npz")
    write(LISTS[0], tmp_path / "b.npz")
    for function, name in ((read_scores, "a.npz"), (read_trials, "a.npz"), (read_embeddings, "b.npz")):
        with pytest.raises(FileError, match=name):
            function(tmp_path / name)
    for name, kind in (
        ("a.ark", "scores"),
        ("a.mat", "trials"),
        ("a.csv", "embeddings"),
        ("none/a.csv", "scores"),
        ("a.pkl", "scores"),
    ):
        with pytest.raises(FileError):
            output_format(tmp_path / name, kind)
    assert output_format(tmp_path / "a.h5", "trials").name == output_format("a", None, "bosaris").name == "bosaris"
    write(VECTORS, tmp_path / "vectors")
    assert isinstance(read(tmp_path / "vectors"), Embeddings)
