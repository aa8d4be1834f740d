"""What killed runs leave behind, two runs at a time, and links and modes of what is written."""

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evenscore import Embeddings, FileError, TrialList, read_embeddings, write
from evenscore.files import working_files, zarr_store
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.files.streams import atomic_directory, atomic_output
from evenscore.files.working_files import only_run
from in_process import run_command
from scale.chunked_examples import contents, ids, in_tiles, matrix

TABLE = TrialList.from_pairs(["a", "a"], ["b", "c"], scores=[0.5, 1.5])
LEFT = ".out.abcd2345.part"


@pytest.fixture
def scores():
    return in_tiles(matrix(np.random.default_rng(0), ids("e", 6), ids("t", 8)))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_next_run_removes_what_killed_runs_left_of_its_output(tmp_path):
    (tmp_path / LEFT).write_text("half")
    (tmp_path / ".out.bcde2345.part").mkdir()
    (tmp_path / ".out.bcde2345.part" / "chunk").write_text("half")
    others = [".other.abcd2345.part", ".out.part", ".out.x.abcd2345.part", "out.abcd2345.part"]
    for name in others:
        (tmp_path / name).write_text("of others")
    write(TABLE, tmp_path / "out")
    assert names(tmp_path) == sorted([*others, "out"])


def test_what_another_run_is_writing_stays(tmp_path):
    with atomic_output(tmp_path / "out") as first:
        first.write(b"first")
        write(TABLE, tmp_path / "out")
        assert len(names(tmp_path)) == 2
    assert (tmp_path / "out").read_bytes() == b"first"
    assert names(tmp_path) == ["out"]


def test_a_store_that_another_run_is_writing_stays(tmp_path, monkeypatch):
    real, calls = zarr_store._create, []

    def create(*how):
        real(*how)
        calls.append(how)
        if len(calls) == 3:
            write(TABLE, tmp_path / "out.zarr")

    write(TABLE, tmp_path / "calm.zarr")
    monkeypatch.setattr(zarr_store, "_create", create)
    write(TABLE, tmp_path / "out.zarr")
    assert names(tmp_path) == ["calm.zarr", "out.zarr"]
    assert contents(tmp_path / "out.zarr") == contents(tmp_path / "calm.zarr")


PAIRS = {"npy": ("out.npy", "out.ids"), "kaldi-scp": ("out.scp", "out.ark")}


@pytest.mark.parametrize("format", PAIRS)
@pytest.mark.parametrize("moment", ["fsync", "unlink", "replace"])
def test_two_files_that_are_read_together_never_belong_to_different_data(tmp_path, monkeypatch, format, moment):
    def fails(*_arguments, **_how):
        raise OSError("the disk fails")

    path, beside = (tmp_path / name for name in PAIRS[format])
    first, second = (Embeddings([f"{letter}1", f"{letter}2"], [[1.0], [2.0]]) for letter in "ab")
    write(first, path, format=format)
    earlier = beside.read_bytes()
    monkeypatch.setattr(Path if moment == "unlink" else os, moment, fails)
    with pytest.raises(FileError, match="the disk fails"):
        write(second, path, format=format)
    monkeypatch.undo()
    assert beside.read_bytes() == earlier
    assert path.exists() == (moment != "replace")
    write(second, path, format=format)
    assert read_embeddings(path).ids.tolist() == ["b1", "b2"]
    assert names(tmp_path) == sorted(PAIRS[format])


@pytest.mark.parametrize(("format", "name"), [("npy", "out.ids"), ("kaldi-scp", "out.ark")])
def test_two_files_of_one_name_are_refused(tmp_path, format, name):
    with pytest.raises(FileError, match="the file beside it would have the same name"):
        write(Embeddings(["a"], [[1.0]]), tmp_path / name, format=format)
    with pytest.raises(FileError, match="this is no plain file"):
        write(Embeddings(["a"], [[1.0]]), os.devnull, format=format)


def test_where_there_are_no_locks_nothing_is_taken_for_left(tmp_path, monkeypatch):
    monkeypatch.setattr(working_files, "_locks", lambda handle: None)
    (tmp_path / LEFT).write_text("half")
    write(TABLE, tmp_path / "out")
    assert names(tmp_path) == [LEFT, "out"]


@pytest.mark.parametrize("exchange", [True, False])
def test_a_store_takes_the_place_of_another(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(working_files, "_renameat2", lambda: None)
    for text in ("old", "new"):
        with atomic_directory(tmp_path / "out") as folder:
            (folder / ".zgroup").write_text(text)
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / ".zgroup").read_text() == "new"


def test_there_is_a_store_under_the_name_at_every_moment(tmp_path, monkeypatch):
    with atomic_directory(tmp_path / "out") as folder:
        (folder / ".zgroup").write_text("old")
    monkeypatch.setattr(working_files.os, "replace", None)  # the one exchange is all
    with atomic_directory(tmp_path / "out") as folder:
        (folder / ".zgroup").write_text("new")
    assert (tmp_path / "out" / ".zgroup").read_text() == "new"


class Killed(BaseException):
    """Stands for SIGKILL: whoever would clean up is made unable to."""


def kill_at(monkeypatch, name, call=1):
    """Stop at a call of a function of `chunked_output`, and let nothing be cleaned up after it."""
    left = [call]
    real = getattr(sys.modules["evenscore.files.chunked_output"], name)

    def killed(*arguments):
        left[0] -= 1
        if left[0] <= 0:
            raise Killed
        real(*arguments)

    monkeypatch.setattr(f"evenscore.files.chunked_output.{name}", killed)


@pytest.mark.parametrize("ending", ["zarr", "parquet"])
@pytest.mark.parametrize("before", [False, True], ids=["new", "over another"])
@pytest.mark.parametrize("moment", ["put_in_place", "take_away"])
def test_a_run_goes_on_that_was_killed_while_it_finished(tmp_path, scores, monkeypatch, ending, before, moment):
    def finish(path, *, resume=False, of=scores):
        with ChunkedOutput(path, resume=resume) as output:
            output.begin({"scores": of.identity()})
            output.write(of)

    finish(tmp_path / f"calm.{ending}")
    path = tmp_path / f"out.{ending}"
    if before:
        finish(path, of=in_tiles(matrix(np.random.default_rng(1), ids("e", 6), ids("t", 8))))
    kill_at(monkeypatch, moment)
    with pytest.raises(Killed):
        finish(path)
    monkeypatch.undo()
    assert path.exists() == (before or moment == "take_away")
    finish(path, resume=True)
    assert contents(path) == contents(tmp_path / f"calm.{ending}")
    assert names(tmp_path) == [f"calm.{ending}", f"out.{ending}"]


def test_an_earlier_output_is_not_taken_for_the_one_that_has_replaced_it(tmp_path, scores, monkeypatch):
    path = tmp_path / "out.zarr"
    other = in_tiles(matrix(np.random.default_rng(1), ids("e", 6), ids("t", 8)))
    for resume, table in ((False, other), (False, scores)):
        if table is scores:
            kill_at(monkeypatch, "take_away")
        try:
            with ChunkedOutput(path, resume=resume) as output:
                output.begin({"scores": table.identity()})
                output.write(table)
        except Killed:
            monkeypatch.undo()
    calm = contents(path)
    path.rename(tmp_path / "moved.zarr")  # what is in the working directory now is the output of the other scores
    with ChunkedOutput(path, resume=True) as output:
        output.begin({"scores": scores.identity()})
        output.write(scores)
    assert contents(path) == calm


def test_the_second_run_on_one_output_is_told(tmp_path, scores):
    path = tmp_path / "out.zarr"
    with ChunkedOutput(path) as first:
        first.begin({"scores": scores.identity()})
        for resume in (False, True):
            second = ChunkedOutput(path, resume=resume)
            with pytest.raises(FileError, match=r"out.zarr: another run is writing it; wait until that has ended"):
                second.begin({"scores": scores.identity()}, start_over=True)
        first.write(scores)
    assert names(tmp_path) == ["out.zarr"]
    with ChunkedOutput(path) as again:
        again.begin({"scores": scores.identity()})
        again.write(scores)


HOLD = """
import sys
from evenscore.files.working_files import only_run
from pathlib import Path
with only_run(Path(sys.argv[1]), sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_run_in_one_directory_is_told(tmp_path):
    (tmp_path / "sim").mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "sim")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"held\n"
    run = run_command("simulate", "--speakers", 3, "-o", tmp_path / "sim")
    holder.kill()
    holder.communicate()
    assert run.exit_code == 2
    assert "another run is writing it" in run.stderr
    assert names(tmp_path / "sim") == []
    assert run_command("simulate", "--speakers", 3, "-o", tmp_path / "sim").exit_code == 0


def test_a_comparison_has_its_directory_for_itself(tmp_path):
    from comparison.compared_sides import evaluation_side, training_side
    from evenscore import compare

    with only_run(tmp_path, tmp_path), pytest.raises(FileError, match="another run is writing it"):
        compare(training_side(("one",)), evaluation_side(("one",)), ["z"], bootstrap=20, directory=tmp_path)
    assert names(tmp_path) == []


def test_names_are_not_to_be_guessed_and_links_are_not_followed(tmp_path, monkeypatch):
    made = []
    real = os.open
    monkeypatch.setattr(working_files.os, "open", lambda path, *how: made.append((path, how)) or real(path, *how))
    for _ in range(2):
        write(TABLE, tmp_path / "out")
    assert len({path for path, _ in made}) == 2
    for path, (flags, _mode) in made:
        assert re.fullmatch(r"\.out\.[a-z2-7]{8}\.part", path.name)
        assert flags & os.O_EXCL
        assert flags & os.O_NOFOLLOW
    monkeypatch.undo()
    (tmp_path / "treasure").write_text("mine")
    (tmp_path / LEFT).symlink_to(tmp_path / "treasure")  # a link that looks like what a killed run has left
    write(TABLE, tmp_path / "out")
    assert (tmp_path / "treasure").read_text() == "mine"
    chances = iter([LEFT, ".out.bcde2345.part"])
    monkeypatch.setattr(working_files, "_hidden", lambda target, ending: target.with_name(next(chances)))
    write(TABLE, tmp_path / "out")
    assert (tmp_path / "treasure").read_text() == "mine"


def test_everything_that_is_written_follows_the_umask(tmp_path, scores):
    before = os.umask(0o027)
    try:
        write(TABLE, tmp_path / "out.csv")
        write(scores.in_memory(), tmp_path / "memory.zarr")
        with ChunkedOutput(tmp_path / "chunks.zarr") as output:
            output.begin({"scores": scores.identity()})
            output.write(scores)
    finally:
        os.umask(before)
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o750 if path.is_dir() else 0o640), path


def test_a_full_disk_is_no_reason_against_a_method(tmp_path, monkeypatch):
    from comparison.compared_sides import evaluation_side, training_side
    from comparison.tiled_sides import in_tiles as tiled
    from evenscore import compare

    def full(*_arguments, **_how):
        raise FileError("scores.zarr", "the disk is full")

    monkeypatch.setattr("evenscore.comparison.folder.write_tables", full)
    sides = training_side(), [tiled(part) for part in evaluation_side()]
    with pytest.raises(FileError, match="the disk is full"):
        compare(*sides, ["z"], bootstrap=10, directory=tmp_path)
