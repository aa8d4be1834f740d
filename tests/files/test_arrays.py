"""zarr stores, npz archives and npy matrices."""

import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
import zarr

from evenscore.data import ScoreMatrix, TrialList
from evenscore.errors import FileError
from evenscore.files import read, read_scores, read_trials, write

MATRIX = ScoreMatrix(np.array([[1.5, np.nan, -2], [0.1, 3, 4]], np.float32), ["e 1", "é"], ["t1", "t,2", "t3"])
TRIALS = TrialList(["e1", "e2"], ["t1", "t1"], [1.0, -2], [1, -1], {"dur": [np.nan, 3]})

ZARR_3 = pytest.mark.skipif(not hasattr(zarr, "create_array"), reason="Python 3.10 has zarr 2, which writes format 2")


@pytest.mark.parametrize("extension", ["zarr", "npz", "npy"])
def test_a_matrix_is_read_as_it_was_written(tmp_path, extension):
    for name, lazy in (("a", False), ("b", True)):
        scores = da.from_array(MATRIX.scores, chunks=((1, 1), (2, 1))) if lazy else MATRIX.scores
        write(ScoreMatrix(scores, MATRIX.enroll, MATRIX.test), tmp_path / f"{name}.{extension}")
        found = read_scores(tmp_path / f"{name}.{extension}")
        assert found == MATRIX
        assert found.scores.dtype == np.float32
    write(MATRIX.T, tmp_path / f"a.{extension}")
    assert read_scores(tmp_path / f"a.{extension}") == MATRIX.T
    assert not list(tmp_path.glob("*.partial")) + list(tmp_path.glob(".*"))


@pytest.mark.parametrize("extension", ["zarr", "npz"])
def test_a_list_is_read_as_it_was_written(tmp_path, extension):
    for trials in (TRIALS, TrialList(["e"], ["t"], labels=[1])):
        write(trials, tmp_path / f"a.{extension}")
        assert read_trials(tmp_path / f"a.{extension}") == trials


@ZARR_3
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_store_of_the_first_edition_is_read(tmp_path, zarr_format):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=zarr_format)
    scores = np.random.default_rng(0).normal(size=(5, 7))
    array = group.create_array("scores", shape=(5, 7), chunks=(2, 3), dtype="float64", fill_value=np.nan)
    array[:4] = scores[:4]  # chunks that are absent are missing scores
    for name, n in (("enroll_ids", 5), ("test_ids", 7)):
        texts = [f"{name[0]}ü{i}".encode() for i in range(n)]
        text = group.create_group(name)
        for part, values in (
            ("utf8", np.frombuffer(b"".join(texts), np.uint8)),
            ("offsets", np.cumsum([0, *map(len, texts)])),
        ):
            text.create_array(part, shape=values.shape, chunks=values.shape, dtype=values.dtype)[...] = values
    found = read(tmp_path / "a.zarr")
    np.testing.assert_array_equal(found.compute().scores[:4], scores[:4])
    assert np.isnan(found.compute().scores[4]).all()
    assert found.test_ids[6] == "tü6"


@ZARR_3
def test_an_unfinished_store_is_continued(tmp_path):
    path, computed = tmp_path / "a.zarr", []

    def block(part, block_info=None):
        where = block_info[0]["chunk-location"]
        computed.append(where)
        if fails and len(computed) == 4:
            raise RuntimeError("stopped")
        return part + 1

    scores = da.zeros((6, 8), chunks=(2, 4)).map_blocks(block, name="one", dtype=float, meta=np.empty((0, 0)))
    matrix = ScoreMatrix(scores, [f"e{i}" for i in range(6)], [f"t{i}" for i in range(8)])
    fails = True
    with dask.config.set(scheduler="synchronous"), pytest.raises(RuntimeError):  # no thread writes after the failure
        write(matrix, path)
    assert not path.exists()
    done = {(int(f.parent.name), int(f.name)) for f in (tmp_path / "a.zarr.partial/scores/c").glob("*/*")}
    assert 0 < len(done) < 6
    computed.clear()
    fails = False
    write(matrix, path)
    assert {*computed} == {(i, j) for i in range(3) for j in range(2)} - done
    assert np.all(read(path).compute().scores == 1)
    assert [file.name for file in tmp_path.iterdir()] == ["a.zarr"]


def test_an_unfinished_store_of_another_computation_is_begun_anew(tmp_path):
    first = ScoreMatrix(da.zeros((2, 2), chunks=1), ["a", "b"], ["c", "d"])
    write(first, tmp_path / "a.zarr")
    (tmp_path / "a.zarr").rename(tmp_path / "b.zarr.partial")
    write(ScoreMatrix(da.ones((2, 2), chunks=1), ["a", "b"], ["c", "d"]), tmp_path / "b.zarr")
    assert np.all(read(tmp_path / "b.zarr").compute().scores == 1)


def test_the_name_of_stored_scores_is_the_same_in_another_process(tmp_path):
    write(MATRIX, tmp_path / "a.zarr")
    code = f"from evenscore.files import read; print(read({str(tmp_path / 'a.zarr')!r}).scores.name)"
    name = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    assert read(tmp_path / "a.zarr").scores.name == name
    write(MATRIX, tmp_path / "a.zarr")
    assert read(tmp_path / "a.zarr").scores.name != name


def test_what_is_wrong_with_arrays_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", scores=np.ones((2, 2)), enroll_ids=["a", "b"], test_ids=["c"])
    np.savez(tmp_path / "b.npz", scores=np.ones((1, 1)))
    np.savez(tmp_path / "c.npz", scores=np.array([[None]]), enroll_ids=["a"], test_ids=["c"])
    (tmp_path / "d.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:200])
    np.save(tmp_path / "e.npy", np.ones((2, 2)))
    (tmp_path / "f.zarr").mkdir()
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(FileError) as caught:
            read_scores(file)
        assert caught.value.path == str(file)
    infinite = MATRIX.scores.copy()
    infinite[1, 2] = np.inf
    write(MATRIX.with_scores(infinite), tmp_path / "g.zarr")
    with pytest.raises(FileError, match="row 2, column 3"):
        read(tmp_path / "g.zarr").compute()
    write(MATRIX.with_scores(infinite), tmp_path / "g.npz")
    with pytest.raises(FileError):
        read_scores(tmp_path / "g.npz")
    assert np.isnan(read_scores(tmp_path / "g.npz", missing="skip").scores[1, 2])
    assert read_scores(tmp_path / "g.npz", infinite="accept").scores.max() == np.inf


def test_other_directories_are_not_replaced(tmp_path):
    (tmp_path / "a.zarr").mkdir()
    (tmp_path / "a.zarr" / "notes.txt").write_text("mine")
    with pytest.raises(FileError, match="other files"):
        write(MATRIX, tmp_path / "a.zarr")
    assert (tmp_path / "a.zarr" / "notes.txt").read_text() == "mine"


def test_a_store_that_another_run_writes_is_refused(tmp_path):
    def block(part):
        with pytest.raises(FileError, match="another run"):
            write(MATRIX, tmp_path / "a.zarr")
        return part

    scores = da.ones((2, 3), chunks=(2, 3)).map_blocks(block, dtype=float, meta=np.empty((0, 0)))
    write(ScoreMatrix(scores, MATRIX.enroll, MATRIX.test), tmp_path / "a.zarr")
    assert np.all(read(tmp_path / "a.zarr").compute().scores == 1)


def test_an_old_matrix_never_stands_beside_new_ids(tmp_path, monkeypatch):
    write(MATRIX, tmp_path / "a.npy")
    monkeypatch.setattr("os.replace", lambda *paths: (_ for _ in ()).throw(OSError(5, "broken")))
    with pytest.raises(FileError):
        write(MATRIX.T, tmp_path / "a.npy")
    assert not (tmp_path / "a.npy").exists()


def test_files_load_their_libraries_when_they_are_used():
    code = "import sys, evenscore.files as f; f.FORMATS; print({'polars', 'dask', 'zarr', 'numba'} & {*sys.modules})"
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "set()\n"
