"""The process that reads HDF5 has limits, may die, and is used again."""

import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from evenscore import FileError, ScoreMatrix, read, write
from evenscore.files.hdf5 import open_hdf5

SCORES = ScoreMatrix(np.arange(6.0).reshape(2, 3), ["a", "b"], ["x", "y", "z"])


@pytest.fixture
def path(tmp_path):
    write(SCORES, tmp_path / "s.h5", format="bosaris")
    return tmp_path / "s.h5"


def test_a_process_that_dies_is_told_of_and_replaced(path):
    with open_hdf5(path) as file:
        file._reader._process.kill()
        file._reader._process.wait()
        with pytest.raises(FileError, match=r"s\.h5\[scores\]: the HDF5 library broke down over it"):
            file["scores"]
    assert read(path) == SCORES


def test_one_process_serves_one_file_after_the_other(path):
    with open_hdf5(path) as file:
        first = file._reader
    with open_hdf5(path) as file:
        assert file._reader is first
        with open_hdf5(path) as other:  # while the first is at work
            assert other._reader is not first
            assert other["scores"].tolist() == file["scores"].tolist()


def test_a_wrong_file_does_not_end_the_process(path, tmp_path):
    (tmp_path / "no.h5").write_bytes(path.read_bytes()[:100])
    with open_hdf5(path) as file:
        first = file._reader
    with pytest.raises(FileError, match=r"no\.h5: it is not an HDF5 file"):
        read(tmp_path / "no.h5", format="bosaris")
    with open_hdf5(path) as file:
        assert file._reader is first


def test_threads_read_at_the_same_time(path):
    found = []
    threads = [threading.Thread(target=lambda: found.append(read(path) == SCORES)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def limited(code):
    program = (
        f"import evenscore.files.hdf5_process as p; p._SECONDS = 0; p._SPARE_MEMORY = 1 << 26; p._limit(0, 0); {code}"
    )
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="this system has no limits of processor time")
def test_time_and_memory_have_limits():
    assert limited("sum(1 for _ in iter(int, 1))").returncode == -signal.SIGXCPU
    assert "MemoryError" in limited("bytearray(1 << 28)").stderr


def test_an_answer_cut_short_is_not_taken(path):
    with open_hdf5(path) as file:
        reader = file._reader
        answers = reader._process.stdout
        short = {"bytes": 10**6, "dtype": "<f8", "shape": [125000]}
        reader._process.kill()
        with pytest.raises(FileError, match="broke down"):
            reader._array(path, answers, short, "scores")
