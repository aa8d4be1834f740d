"""Stores as other programs may write them: shards, and numbers of any type."""

import numpy as np
import pytest
import zarr

from evenscore import FileError, ScoreMatrix, read_scores, write
from evenscore.files import open_scores
from scale.chunked_examples import ids, matrix
from zarr_formats import ZARR_3

E, T = ids("e", 23), ids("t", 31)


@pytest.fixture
def whole():
    return matrix(np.random.default_rng(0), E, T, missing=0.1, dtype=np.float32)


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 knows no shards")
def test_shards_are_read_and_written_whole(tmp_path, whole):
    write(whole, tmp_path / "in.zarr")
    group = zarr.open_group(str(tmp_path / "in.zarr"), mode="r+")
    del group["scores"]
    group.create_array("scores", shape=whole.shape, chunks=(2, 4), shards=(6, 12), dtype="float32", fill_value=np.nan)
    group["scores"][...] = whole.scores
    scores = open_scores(tmp_path / "in.zarr")
    assert scores.layout.stored == (6, 12)
    assert scores.in_tiles(300).in_memory() == whole
    shard = tmp_path / "in.zarr/scores/c/1/2"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(FileError, match=r"\[scores/c/1/2\]: the chunk is damaged"):
        scores.in_tiles(300).in_memory()


@pytest.mark.parametrize("dtype", [">f4", ">f8", "f2", "i4"])
def test_other_numbers_are_read_in_chunks_as_into_memory(tmp_path, whole, dtype):
    table = ScoreMatrix(np.nan_to_num(whole.scores).astype(dtype).astype(float), E, T)
    write(table, tmp_path / "dev.zarr")
    group = zarr.open_group(str(tmp_path / "dev.zarr"), mode="r+")
    del group["scores"]
    create = group.create_array if ZARR_3 else group.create_dataset
    array = create("scores", shape=table.shape, chunks=(5, 7), dtype=dtype, fill_value=0)
    array[...] = table.scores
    np.save(tmp_path / "dev.npy", table.scores.astype(dtype))
    for name, names in (("enroll_ids", E), ("test_ids", T)):
        (tmp_path / f"dev.{name}").write_text("".join(f"{one}\n" for one in names))
    for name in ("dev.zarr", "dev.npy"):
        scores = open_scores(tmp_path / name)
        tile = scores.block(slice(0, 9), slice(2, 12))
        assert scores.dtype == tile.dtype == (np.float32 if dtype == ">f4" else np.float64)
        np.testing.assert_array_equal(tile, table.scores[0:9, 2:12])
    np.testing.assert_array_equal(read_scores(tmp_path / "dev.zarr").scores, table.scores)


def test_npy_without_lists_of_ids(tmp_path):
    np.save(tmp_path / "dev.npy", np.zeros((2, 3)))
    with pytest.raises(FileError, match=r"needs its ids; .* that end in .enroll_ids and .test_ids"):
        read_scores(tmp_path / "dev.npy")
