"""Chunks in files: what is read and written, what is damaged, and what a run that was cut short leaves behind."""

import errno
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import zarr

from evenscore import FileError, ScoreBlocks, ScoreMatrix, normalize, read_scores, write
from evenscore.files import open_scores, write_table
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.files.zarr_chunks import PlainChunks
from evenscore.sources import as_table
from scale.chunked_examples import contents, ids, in_tiles, matrix
from slow_tiles import SlowTiles
from zarr_formats import FORMATS, ZARR_3, chunk_name, write_format

E, T = ids("e", 23), ids("t", 31)


@pytest.fixture
def whole():
    return matrix(np.random.default_rng(0), E, T, missing=0.1, dtype=np.float32)


@pytest.fixture(params=FORMATS)
def format(request, monkeypatch):
    """Let stores be written in each format in turn."""
    write_format(monkeypatch, request.param)
    return request.param


def stored_by_zarr(path, table, **how):
    """Write a store with the zarr library, as another program might."""
    write(table, path)
    group = zarr.open_group(str(path), mode="r+")
    del group["scores"]
    if not ZARR_3:
        how = {"compressor": None} if how else {}
    create = group.create_array if ZARR_3 else group.create_dataset
    array = create("scores", shape=table.shape, chunks=(5, 7), dtype="float32", fill_value=np.nan, **how)
    array[...] = table.scores
    return path


def test_written_stores_are_read_by_us_and_by_zarr(tmp_path, whole, format):
    path = tmp_path / "out.zarr"
    write_table(in_tiles(whole), path)
    assert read_scores(path) == whole
    assert open_scores(path).in_memory() == whole
    np.testing.assert_array_equal(zarr.open_group(str(path), mode="r")["scores"][...], whole.scores)
    assert not (tmp_path / "out.zarr.partial").exists()
    write_table(in_tiles(whole), path)  # takes the place of the earlier one
    assert read_scores(path) == whole


@pytest.mark.parametrize("piece", [1, 60, 100], ids=["a row", "two rows", "three rows"])
def test_chunks_are_read_and_written_in_pieces(tmp_path, whole, format, monkeypatch, piece):
    write_table(in_tiles(whole), tmp_path / "at once.zarr")
    monkeypatch.setattr("evenscore.files.zarr_chunks._PIECE", piece)
    write_table(in_tiles(whole), tmp_path / "in pieces.zarr")
    assert contents(tmp_path / "in pieces.zarr") == contents(tmp_path / "at once.zarr")
    scores, rng = open_scores(tmp_path / "in pieces.zarr"), np.random.default_rng(piece)
    for _ in range(50):
        (top, bottom), (left, right) = (np.sort(rng.integers(0, size + 1, 2)) for size in whole.shape)
        part = scores.block(slice(top, bottom), slice(left, right))
        np.testing.assert_array_equal(part, whole.scores[top:bottom, left:right])
    for change in (flip, flip_first, cut):
        name = damaged(tmp_path / "in pieces.zarr", change)
        with pytest.raises(FileError, match=rf"scores/{name}\]: the chunk is damaged"):
            scores.block(slice(14, 15), slice(21, 22))


@pytest.mark.parametrize("how", [{"compressors": None}, {}], ids=["plain", "packed"])
def test_stores_of_the_zarr_library_are_read(tmp_path, whole, format, how):
    scores = open_scores(stored_by_zarr(tmp_path / "in.zarr", whole, **how))
    assert (scores.source.source.plain is not None) == bool(how)
    assert scores.layout.stored == (5, 7)
    assert scores.in_tiles(300).in_memory() == whole
    part = scores.block(slice(3, 18), slice(6, 30))
    np.testing.assert_array_equal(part, whole.scores[3:18, 6:30])


def test_a_missing_chunk_is_missing_scores(tmp_path, whole, format):
    path = tmp_path / "out.zarr"
    write_table(in_tiles(whole), path)
    (path / "scores" / chunk_name(path, 1, 1)).unlink()
    there = open_scores(path).in_memory().scores
    assert np.isnan(there[5:10, 7:14]).all()
    np.testing.assert_array_equal(there[10:], whole.scores[10:])


def test_a_store_that_is_not_there_is_no_store_of_missing_scores(tmp_path, whole, format):
    path = tmp_path / "out.zarr"
    write_table(in_tiles(whole), path)
    scores = open_scores(os.path.relpath(path))
    assert Path(scores.source.source.plain.folder).is_absolute()
    path.rename(tmp_path / "moved.zarr")
    with pytest.raises(FileError, match=r"there is no such store on .*; all workers must see the same files"):
        scores.in_memory()


def damaged(path, change):
    """Change the bytes of a chunk, and return what it is called in an error."""
    name = chunk_name(path, 2, 3)
    data = bytearray((path / "scores" / name).read_bytes())
    change(data)
    (path / "scores" / name).write_bytes(bytes(data))
    return re.escape(name)


def flip(data):
    data[-9] ^= 1


def flip_first(data):
    data[-9] ^= 1  # mends what `flip` did
    data[4] ^= 1


def cut(data):
    del data[-9:]


@pytest.mark.parametrize("change", [flip, cut])
def test_a_damaged_chunk_is_named(tmp_path, whole, format, change):
    path = tmp_path / "out.zarr"
    write_table(in_tiles(whole), path)
    name = damaged(path, change)
    with pytest.raises(FileError, match=rf"out.zarr\[scores/{name}\]: the chunk is damaged .*; copy or write it again"):
        open_scores(path).in_memory()
    with pytest.raises(FileError, match=name):
        write_table(open_scores(path), tmp_path / "copy.zarr")


def test_a_chunk_of_the_output_is_not_tiny(tmp_path, whole, format, monkeypatch):
    monkeypatch.setattr("evenscore.files.score_tiles._MANY", 20)
    monkeypatch.setattr("evenscore.files.score_tiles._SMALL", 400)
    path = stored_by_zarr(tmp_path / "in.zarr", whole)  # 5 x 5 chunks of 5 x 7 float32, 140 bytes
    assert open_scores(path).layout.stored == (5, 14)
    write_table(open_scores(path), tmp_path / "out.zarr")
    assert len(contents(tmp_path / "out.zarr" / "scores")) == 1 + 5 * 3
    assert read_scores(tmp_path / "out.zarr") == whole


def test_a_damaged_packed_chunk_is_named(tmp_path, whole, format):
    path = stored_by_zarr(tmp_path / "in.zarr", whole)
    name = damaged(path, cut)
    with pytest.raises(FileError, match=rf"in.zarr\[scores/{name}\]: the chunk is damaged"):
        open_scores(path).in_memory()


def test_npy_with_lists_of_ids(tmp_path, whole):
    path = tmp_path / "dev.npy"
    np.save(path, whole.scores)
    with pytest.raises(FileError, match=r"there is no .*dev.enroll_ids"):
        open_scores(path)
    for name, names in (("enroll_ids", E), ("test_ids", T)):
        path.with_suffix(f".{name}").write_text("".join(f"{one}\n" for one in names))
    assert open_scores(path).in_tiles(300).in_memory() == whole
    path.with_suffix(".test_ids").write_text("t0\n")
    with pytest.raises(FileError, match=r"numbers of shape \(23, 1\) are expected"):
        open_scores(path)


def test_parquet_in_and_out(tmp_path, whole, monkeypatch):
    monkeypatch.setattr("evenscore.tables.tile._TRIALS", 100)
    trials = whole.to_trials().with_labels(np.arange(len(whole.to_trials())) % 2)
    write(trials, tmp_path / "in.parquet")
    listed = open_scores(tmp_path / "in.parquet")
    assert len(listed.places()) == 7
    assert listed.in_memory() == trials
    write_table(listed, tmp_path / "out.parquet")
    assert sorted(file.name for file in (tmp_path / "out.parquet").iterdir())[-1] == "part-000006.parquet"
    assert read_scores(tmp_path / "out.parquet") == trials
    assert open_scores(tmp_path / "out.parquet").in_memory() == trials
    monkeypatch.setattr("evenscore.files.chunked_output._LISTED_BYTES", 600)
    write_table(as_table(whole), tmp_path / "matrix.parquet")
    assert len(list((tmp_path / "matrix.parquet").iterdir())) > 1
    assert read_scores(tmp_path / "matrix.parquet").to_matrix().align(E, T) == whole
    with pytest.raises(FileError, match=r"written to parquet; give a name in .parquet"):
        write_table(listed, tmp_path / "out.zarr")
    assert not (tmp_path / "out.zarr.partial").exists()


def test_names_and_places_that_cannot_be_written(tmp_path, whole):
    with pytest.raises(FileError, match=r"written to .zarr or .parquet"):
        write_table(as_table(whole), tmp_path / "out.txt")
    (tmp_path / "mine.zarr").mkdir()
    (tmp_path / "mine.zarr" / "thesis.tex").write_text("years of work")
    with pytest.raises(FileError, match="a directory with other files has this name"):
        write_table(as_table(whole), tmp_path / "mine.zarr")
    (tmp_path / "empty.parquet").mkdir()
    with pytest.raises(FileError, match="no parquet file in this directory"):
        open_scores(tmp_path / "empty.parquet")


class Stops(Exception):  # noqa: N818
    """Stands for whatever ends a run."""


def stop_at(fraction):
    def progress(stage, done):
        if stage == "writing" and done >= fraction:
            raise Stops

    return progress


def cut_short(scores, path, fraction=0.5):
    with pytest.raises(Stops):
        write_table(scores, path, progress=stop_at(fraction))


def test_a_run_goes_on_with_what_is_left(tmp_path, whole, format, monkeypatch):
    write_table(in_tiles(whole), tmp_path / "one.zarr")
    cut_short(in_tiles(whole), tmp_path / "two.zarr")
    partial = tmp_path / "two.zarr.partial"
    assert not (tmp_path / "two.zarr").exists()
    with pytest.raises(FileError, match=r"is left from a run that was cut short; go on with it \(resume=True\)"):
        write_table(in_tiles(whole), tmp_path / "two.zarr")
    with (partial / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"chu')  # killed in the middle of a line
    read = []
    monkeypatch.setattr(SlowTiles, "read", lambda self, *at: read.append(at) or self.source.read(*at))
    counted = in_tiles(whole)
    counted = replace(counted, source=SlowTiles(counted.source, 0.0))
    write_table(counted, tmp_path / "two.zarr", resume=True)
    assert 0 < len(read) <= len(counted.places()) / 2 + 1
    assert contents(tmp_path / "two.zarr") == contents(tmp_path / "one.zarr")
    assert not partial.exists()


def test_a_chunk_that_got_lost_is_made_again(tmp_path, whole, format):
    write_table(in_tiles(whole), tmp_path / "one.zarr")
    cut_short(in_tiles(whole), tmp_path / "two.zarr")
    data = tmp_path / "two.zarr.partial" / "data"
    (data / "scores" / chunk_name(data, 0, 0)).unlink()
    write_table(in_tiles(whole), tmp_path / "two.zarr", resume=True)
    assert contents(tmp_path / "two.zarr") == contents(tmp_path / "one.zarr")


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 writes no format 3")
def test_a_run_goes_on_in_the_format_in_which_it_was_begun(tmp_path, whole, monkeypatch):
    write_format(monkeypatch, 2)
    write_table(in_tiles(whole), tmp_path / "one.zarr")
    cut_short(in_tiles(whole), tmp_path / "two.zarr")
    write_format(monkeypatch, 3)
    write_table(in_tiles(whole), tmp_path / "two.zarr", resume=True)
    assert contents(tmp_path / "two.zarr") == contents(tmp_path / "one.zarr")
    assert read_scores(tmp_path / "two.zarr") == whole


def test_a_run_with_other_scores_or_chunks_is_not_gone_on_with(tmp_path, whole):
    path = tmp_path / "two.zarr"
    cut_short(in_tiles(whole), path)
    with pytest.raises(FileError, match="was begun with another scores; give the same one, or delete the directory"):
        write_table(in_tiles(whole.with_scores(2 * whole.scores)), path, resume=True)
    with pytest.raises(FileError, match="was begun with chunks of another size"):
        write_table(in_tiles(whole, tile_bytes=2000.0), path, resume=True)
    (tmp_path / "two.zarr.partial" / "journal.jsonl").write_bytes(b"")
    with pytest.raises(FileError, match="has no journal"):
        write_table(in_tiles(whole), path, resume=True)


def test_statistics_are_kept_too(tmp_path, whole):
    rng = np.random.default_rng(1)
    enroll, test = matrix(rng, E, ids("c", 9)), matrix(rng, ids("d", 9), T)
    blocks = ScoreBlocks(in_tiles(whole), enroll=in_tiles(enroll), test=in_tiles(test))
    wanted = normalize(ScoreBlocks(whole, enroll=enroll, test=test), "s")

    def stop(stage, done):
        if stage == "cohort scores of tests" and done > 0.4:
            raise Stops

    with pytest.raises(Stops), ChunkedOutput(tmp_path / "out.zarr") as output:
        normalize(blocks, "s", keep=output, progress=stop)
    kept = sorted(file.name for file in (tmp_path / "out.zarr.partial" / "kept").iterdir())
    assert "enroll-0-5.npy" in kept
    again = ChunkedOutput(tmp_path / "out.zarr", resume=True)
    told = []
    result = normalize(blocks, "s", keep=again, progress=lambda stage, done: told.append(stage))
    assert "cohort scores of enrolments" not in set(told[:-1]) or told.count("cohort scores of enrolments") == 1
    again.write(result)
    np.testing.assert_allclose(read_scores(tmp_path / "out.zarr").scores, wanted.scores, rtol=1e-6)
    with ChunkedOutput(tmp_path / "three.zarr") as third:
        normalize(blocks, "s", keep=third)
    with pytest.raises(FileError, match="begun with another norm"):
        normalize(blocks, "s", keep=ChunkedOutput(tmp_path / "three.zarr", resume=True), combine="sqrt2")


def test_a_full_disk_names_the_chunk_and_the_run_can_go_on(tmp_path, whole, monkeypatch):
    path = tmp_path / "out.zarr"
    write_one = PlainChunks._write_one

    def full(self, i, j, part):
        if (i, j) == (2, 1):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_one(self, i, j, part)

    monkeypatch.setattr(PlainChunks, "_write_one", full)
    with pytest.raises(
        FileError, match=r"out.zarr: chunk \d+ \(rows 10 to 14, .*\) cannot be written: the disk is full"
    ):
        write_table(in_tiles(whole), path)
    monkeypatch.undo()
    write_table(in_tiles(whole), path, resume=True)
    assert read_scores(path) == whole


def test_a_file_system_that_is_really_full(tmp_path, whole):
    """On a file system of 200 kB, as root."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("run as root, who can mount a small file system")
    try:
        large = ScoreMatrix(np.zeros((500, 500), dtype=np.float32), ids("e", 500), ids("t", 500))
        large = in_tiles(large, (50, 100), 20_000)
        with pytest.raises(FileError, match=r"chunk \d+ \(rows .*\) cannot be written: the disk is full; mend that"):
            write_table(large, small / "out.zarr")
    finally:
        subprocess.run(["umount", small], check=True)


KILLED = """
import sys, numpy as np
sys.path[:0] = {path!r}
from scale.chunked_examples import in_tiles
from evenscore import read_scores
from evenscore.files import write_table
from slow_tiles import slowed
write_table(slowed(in_tiles(read_scores({source!r}))), {target!r})
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path, whole):
    source, target = tmp_path / "in.npz", tmp_path / "out.zarr"
    write(whole, source)
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    code = KILLED.format(path=[tests], source=str(source), target=str(target))
    run = subprocess.Popen([sys.executable, "-c", code])
    journal = tmp_path / "out.zarr.partial" / "journal.jsonl"
    while run.poll() is None and not (journal.exists() and journal.read_bytes().count(b'"chunk"') >= 3):
        pass
    run.kill()
    assert run.wait() != 0
    assert not target.exists()
    write_table(in_tiles(read_scores(source)), target, resume=True)
    write_table(in_tiles(whole), tmp_path / "one.zarr")
    assert contents(target) == contents(tmp_path / "one.zarr")


def test_readers_and_errors_travel(tmp_path, whole):
    write_table(in_tiles(whole), tmp_path / "out.zarr")
    scores = pickle.loads(pickle.dumps(open_scores(tmp_path / "out.zarr")))  # noqa: S301
    assert scores.in_memory() == whole
    error = pickle.loads(pickle.dumps(FileError("a.zarr", "it is damaged", part="scores/0.0")))  # noqa: S301
    assert str(error) == "a.zarr[scores/0.0]: it is damaged"
    assert error.part == "scores/0.0"
