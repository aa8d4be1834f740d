"""What the campaign has found, each in its smallest form."""

import json
import random
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from evenscore import EvenscoreError, FileError, InputError, ScoreMatrix
from evenscore.calibrate import BayesianCalibration, GaussianCalibration, logistic_regression
from evenscore.files import ArrayCache, load_plda, read
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.files.kaldi_objects import read_vector
from fuzz import odd_numbers

HEADERS = {
    "brackets that are not closed": "{'descr': '<f8', 'fortran_order': False, 'shape': (((((",
    "a shape of text": "{'descr': '<f8', 'fortran_order': False, 'shape': ('a',)}",
    "a shape of a truth value": "{'descr': '<f8', 'fortran_order': False, 'shape': (True,)}",
    "a shape below 0": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
    "a shape of a tebibyte": f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({1 << 37},)}}",
}


def npy(header):
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header) + 1) + header.encode() + b"\n" + bytes(16)


@pytest.mark.parametrize("case", HEADERS)
def test_headers_of_numpy(tmp_path, case):
    cache = ArrayCache(tmp_path)
    with zipfile.ZipFile(cache.path("made"), "w") as archive:
        archive.writestr("x.npy", npy(HEADERS[case]))
    assert cache.get("made") is None
    with pytest.raises(FileError):
        read(cache.path("made"))
    (tmp_path / "mean.npy").write_bytes(npy(HEADERS[case]))
    with pytest.raises(FileError):
        read_vector(tmp_path / "mean.npy")


@pytest.mark.parametrize(("field", "value"), [(8, 1), (10, 99), (6, 255)])
def test_archives_that_the_library_cannot_read_are_no_cache(tmp_path, field, value):
    """Encrypted, packed in an unknown way, or of a later version."""
    cache = ArrayCache(tmp_path)
    cache.put("made", {"x": np.ones(3)})
    data = bytearray(cache.path("made").read_bytes())
    data[data.index(b"PK\x01\x02") + field] = value
    cache.path("made").write_bytes(bytes(data))
    assert cache.get("made") is None


def test_a_plda_of_kaldi_whose_covariances_overflow(tmp_path):
    (tmp_path / "plda").write_text("<Plda>  [ 0 0 ]\n [\n  1e-200 0\n  0 1 ]\n [ 1 1 ]\n</Plda>\n")
    with pytest.raises(FileError, match="it is no PLDA"):
        load_plda(tmp_path / "plda")


def test_variances_that_no_scores_have():
    with pytest.raises(InputError, match="must be above 1e-60"):
        GaussianCalibration(mean=[0, 1], variance=[1e-300, 1])
    with pytest.raises(InputError, match="must be above 1e-60"):
        BayesianCalibration(mean=[0, 1], scale2=[1, 1e-320], df=[3, 3])


@pytest.mark.parametrize("line", [b'{"chunk": [0]}', b"[" * 100_000, b'{"chunk": {}}', b'{"chunk": "0", "layout": 3}'])
def test_journals_with_odd_lines(tmp_path, line):
    scores = ScoreMatrix(np.arange(6.0).reshape(2, 3), ["a", "b"], ["x", "y", "z"])
    with ChunkedOutput(tmp_path / "out.parquet") as output:
        output.begin({"inputs": "these"})
        output.put("sums", np.ones(3))
    journal = output.partial / "journal.jsonl"
    journal.write_bytes(journal.read_bytes() + line + b"\n")
    (output.partial / "kept" / "sums.npy").write_bytes(npy(HEADERS["a shape of text"]))
    with ChunkedOutput(tmp_path / "out.parquet", resume=True) as output:
        output.begin({"inputs": "these"})
        assert output.get("sums") is None
        if b"layout" in line:
            with pytest.raises(FileError, match="chunks of another size"):
                output.write(scores)
            return
        output.write(scores)
    assert read(tmp_path / "out.parquet").scores.tolist() == scores.scores.reshape(-1).tolist()


def test_the_journal_is_what_these_tests_think(tmp_path):
    with ChunkedOutput(tmp_path / "out.parquet") as output:
        output.begin({"inputs": "these"})
        assert json.loads((output.partial / "journal.jsonl").read_bytes())["inputs"] == "these"


def test_a_regression_whose_steps_lead_nowhere_is_given_up_at_once(monkeypatch):
    """Beside a score of -1e10, all others are nearly one: 5,204 evaluations of a fusion once, or a wrong weight."""
    rng = np.random.default_rng(1)
    nontarget, target = rng.normal(0, 1, (200, 1)), rng.normal(1, 1, (100, 1))
    slopes, evaluations, objective = [], [], logistic_regression.objective
    monkeypatch.setattr(logistic_regression, "objective", lambda *given: evaluations.append(1) or objective(*given))
    for far in (1e3, 1e8, 1e10):
        nontarget[0] = -far
        evaluations.clear()
        design = logistic_regression.Design.of(nontarget, target, 1)
        if far < 1e10:
            slopes.append(logistic_regression.minimize(design, p_target=0.5, l2=0)[0])
        else:
            with pytest.raises(InputError, match="far from all others"):
                logistic_regression.minimize(design, p_target=0.5, l2=0)
        assert len(evaluations) < 60
    np.testing.assert_allclose(slopes[0], slopes[1], rtol=1e-8)


@pytest.mark.parametrize("seed", [29, 30])
def test_a_model_is_adapted_to_trials_of_another_scale(tmp_path, seed):
    """The scale was 1 / 0, as the digits of a root cancelled each other: a warning, which is an error here."""
    with suppress(EvenscoreError):
        odd_numbers.adapt(random.Random(seed), tmp_path)


ODD = {
    "808 360": "features of cohort evidence overflowed",
    "808 613": "a saturating calibration divided by the spread of equal scores",
    "1010 246": "float32 scores of 1e30 were squared",
    "1010 2513": "a within-speaker covariance was singular after the check of its rank",
    "1010 2743": "squares of the variances of figures overflowed",
    "1010 2965": "a PLDA of a file was whitened to beyond all numbers",
    "1010 3274": "a calibration took scores that no table takes",
    "1010 4838": "a score model left less than nothing of the scores unexplained",
}


@pytest.mark.parametrize("number", ODD)
def test_odd_numbers(tmp_path, monkeypatch, number):
    """A warning or any error but ours is a failure."""
    monkeypatch.chdir(tmp_path)
    with suppress(EvenscoreError):
        odd_numbers.use_odd_numbers(random.Random(f"odd-numbers {number}"), tmp_path)
