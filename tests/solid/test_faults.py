"""A little of the program that strikes every call."""

import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from evenscore import FileError, ScoreMatrix, read, write

FAULTS = str(Path(__file__).with_name("faults.py"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="faults need gcc and Linux")
def test_outputs_are_whole_or_not_there():
    code, said = runpy.run_path(FAULTS)["campaign"](("text", "zarr"), every=9)
    assert code == 0, said


@pytest.mark.skipif(sys.platform != "linux", reason="locks are those of Unix")
@pytest.mark.parametrize("another", [None, "", "new"], ids=["it writes", "it has ended", "a third one has begun"])
def test_a_store_that_another_run_is_writing_is_refused(tmp_path, monkeypatch, another):
    import fcntl

    table, lock, flock = ScoreMatrix([[1.0]], ["e"], ["t"]), tmp_path / ".o.zarr.lock", fcntl.flock

    def as_another_run_ends(stream, how):
        lock.unlink()
        if another:
            lock.touch()
        flock(stream, how)

    with lock.open("wb") as held:
        flock(held, fcntl.LOCK_EX)
        if another is not None:
            held.close()
            monkeypatch.setattr(fcntl, "flock", as_another_run_ends)
        with pytest.raises(FileError, match="another run"):
            write(table, tmp_path / "o.zarr")
    monkeypatch.undo()
    write(table, tmp_path / "o.zarr")
    assert read(tmp_path / "o.zarr").compute() == table


WRITE = """
import sys
from contextlib import suppress
from evenscore import FileError, read_scores, write
table = read_scores(sys.argv[1])
print("ready", flush=True)
while True:
    with suppress(FileError):  # another run is writing the store
        write(table, sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["o.npz", "o.zarr", "o.scores"])
def test_two_runs_on_one_output_and_one_is_killed(tmp_path, name):
    table = ScoreMatrix(np.arange(60_000.0).reshape(200, 300), [f"e{i}" for i in range(200)], range(300))
    write(table, tmp_path / "in.npz")
    for delay in (0.1, 0.3, 0.7):
        command = [sys.executable, "-c", WRITE, tmp_path / "in.npz", tmp_path / name]
        runs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
        for run in runs:
            run.stdout.readline()
        for run in runs:  # the second goes on alone, and is killed, too
            time.sleep(delay)
            run.kill()
            run.communicate()
        if (tmp_path / name).exists():
            assert read(tmp_path / name).to_matrix().compute() == table
        write(table, tmp_path / name)  # nothing is left that is in the way
        assert read(tmp_path / name).to_matrix().compute() == table
