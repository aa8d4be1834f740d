"""The files that ``benchmarks/accuracy.py`` takes: those of the right form are read, others are refused by name."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
accuracy_data = pytest.importorskip("accuracy_data", reason="the benchmarks are in the source tree only")

SPEAKERS = np.repeat([f"s{n}" for n in range(6)], 3)
GOOD = {
    "embeddings": np.random.default_rng(0).normal(size=(18, 4)),
    "speakers": SPEAKERS,
    "word": np.tile([0, 1, 2], 6),
}


def test_files_of_the_right_form_are_read(tmp_path):
    np.savez(tmp_path / "a.npz", **GOOD)
    (tmp_path / "embeddings").mkdir()
    np.savez(tmp_path / "embeddings" / "b.npz", **GOOD)
    assert [path.name for path in accuracy_data.files_of([str(tmp_path)])] == ["a.npz", "b.npz"]
    arrays = accuracy_data.read(tmp_path / "a.npz")
    assert np.array_equal(accuracy_data.column(arrays, None, accuracy_data.PHRASES), GOOD["word"])
    assert accuracy_data.column(arrays, "-", accuracy_data.PHRASES) is None
    with pytest.raises(SystemExit, match="there is no such file"):
        accuracy_data.files_of([str(tmp_path / "no.npz")])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"embeddings": None}, "there is no array 'embeddings', only speakers, word"),
        ({"speakers": None}, "there is no array 'speakers'"),
        ({"speakers": SPEAKERS[:5]}, r"'speakers' has shape \(5,\), but there are 18 embeddings"),
        ({"word": np.zeros(3)}, r"'word' has shape \(3,\)"),
        ({"embeddings": np.full((18, 4), np.nan)}, "a matrix of finite numbers"),
        ({"embeddings": np.zeros(18)}, "a matrix of finite numbers"),
        ({"speakers": SPEAKERS.astype(object)}, "no npz of plain arrays"),
        ({"speakers": np.full(18, "a")}, "fewer than 4 speakers"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, change, message):
    arrays = {name: values for name, values in (GOOD | change).items() if values is not None}
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(SystemExit, match=f"x.npz: .*{message}"):
        accuracy_data.read(tmp_path / "x.npz")


def test_files_that_are_no_npz_are_refused(tmp_path):
    (tmp_path / "x.npz").write_text("hello")
    np.save(tmp_path / "y.npy", GOOD["embeddings"])
    for name, message in (("x.npz", "no npz of plain arrays"), ("y.npy", "a single array")):
        with pytest.raises(SystemExit, match=message):
            accuracy_data.read(tmp_path / name)
