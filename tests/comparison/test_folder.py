"""The folder of a comparison: complete or absent, and of use to the other parts of the library."""

import json

import numpy as np
import pytest

from evenscore import FileError, fit_norm, normalize, read_model, read_scores
from evenscore.comparison import folder as folder_module, write_folder


def test_everything_is_written_and_can_be_used_again(comparison, sides, tmp_path):
    write_folder(comparison, tmp_path / "out", "<html>", scores=True)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"results.json", "report.html", "methods"}
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == comparison.to_dict()
    for method in comparison.methods:
        place = tmp_path / "out" / "methods" / method.name
        scores, llrs = read_scores(place / "scores.npz"), read_scores(place / "llrs.npz")
        np.testing.assert_array_equal(scores.scores, method.scores)
        np.testing.assert_array_equal(llrs.scores, method.llrs)
        calibration = read_model(place / "calibration.json")
        np.testing.assert_allclose(calibration(method.scores), method.calibration(method.scores))
    model = read_model(tmp_path / "out" / "methods" / "lgsm" / "model.json")
    again = sides[1].labelled(normalize(sides[1].blocks, "lgsm", model=model))
    np.testing.assert_allclose(again.scores, comparison["lgsm"].scores)
    assert fit_norm("lgsm", sides[0]).model.mu == pytest.approx(model.mu)


def test_scores_are_written_on_request_only(comparison, tmp_path):
    write_folder(comparison, tmp_path / "new" / "out")
    names = {path.name for path in (tmp_path / "new" / "out").rglob("*") if path.is_file()}
    assert names == {"results.json", "calibration.json", "model.json"}


def test_a_folder_that_is_there_keeps_other_files(comparison, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "results.json").write_text("old")
    write_folder(comparison, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert json.loads((tmp_path / "results.json").read_text())["best"] == comparison.best.name
    assert not list(tmp_path.parent.glob(f".{tmp_path.name}*"))


def test_a_failure_leaves_nothing(comparison, tmp_path, monkeypatch):
    def full(model, path):
        raise FileError(path, "the disk is full")

    monkeypatch.setattr(folder_module, "write_model", full)
    with pytest.raises(FileError, match="full"):
        write_folder(comparison, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(comparison, tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(FileError, match="out"):
        write_folder(comparison, tmp_path / "out")
