"""Model files of every kind: the files of version 1 stay as they are, and what is wrong is named by its place."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import PLDA, FileError, InputError
from evenscore.files.models import (
    CALIBRATION,
    EVIDENCE,
    PLDA_MODEL,
    SCORE_MODEL,
    load_plda,
    load_trained,
    save_plda,
    save_trained,
)
from evenscore.norms.registry import METHODS, Method
from examples import examples

GOLDEN = Path(__file__).parent / "golden" / "records"
FORMATS = {"score": SCORE_MODEL, "evidence": EVIDENCE, "calibration": CALIBRATION, "plda": PLDA_MODEL}
NAMES = sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "norm_golden")


@dataclass
class Share:
    share: float

    def to_dict(self):
        return {"share": self.share}

    @classmethod
    def from_dict(cls, values):
        if not 0 <= values["share"] <= 1:
            raise InputError("a share is from 0 to 1")
        return cls(values["share"])


@pytest.mark.parametrize("name", NAMES)
def test_golden_files_are_read_and_written_byte_for_byte(tmp_path, name):
    format, golden = FORMATS[name.partition("_")[0]], GOLDEN / f"{name}.json"
    found = format.read(golden)
    format.write(found.model, tmp_path / "again.json", dict(found.info) or None)
    assert (tmp_path / "again.json").read_bytes() == golden.read_bytes()


def test_older_evidence_models_are_read():
    old, new = (
        EVIDENCE.read(GOLDEN.parent / folder / "evidence.json").model for folder in ("older_records", "records")
    )
    assert (old.scales.enroll.alike, new.scales.enroll.alike) == (0.0, 0.25)
    for name in ("enroll", "test", "enroll_top", "test_top"):
        assert getattr(old.scales, name) == replace(getattr(new.scales, name), alike=0.0)


def test_the_record_of_a_registered_method(tmp_path, monkeypatch):
    golden, path = GOLDEN / "norm_golden.json", tmp_path / "m.json"
    assert load_trained(golden) is None
    monkeypatch.setitem(METHODS, "golden", Method(prepare=lambda method: None, record=Share))
    save_trained(load_trained(golden), path)
    assert path.read_bytes() == golden.read_bytes()
    path.write_text(path.read_text().replace("0.25", "2"))
    with pytest.raises(FileError, match=r"m.json\[model\]: a share is from 0 to 1"):
        load_trained(path)
    path.write_text(path.read_text().replace('"model"', '"modle"'))
    with pytest.raises(FileError, match=r"m.json\[model\]: the key is missing"):
        load_trained(path)


@pytest.mark.parametrize("name", ["evidence", "plda_projection"])
@examples(40)
@given(data=st.data())
def test_damaged_files_parse_or_are_refused(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("damaged") / "m.json"
    path.write_bytes(data.draw(cuts_and_flips((GOLDEN / f"{name}.json").read_bytes())))
    must_parse_or_refuse(FORMATS[name.partition("_")[0]].read, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, r"\[format\]: expected 'evenscore-plda', but found 'other'"),
        ({"version": 2}, r"\[version\]: the file has version 2, but this evenscore reads version 1"),
        ({"mean": [0.0]}, "mean has 1 components, between 2, within 2"),
        ({"mean": [0.0, None]}, r"\[mean\[1\]\]: expected a number, but found null"),
        ({"mean": "x"}, r"\[mean\]: expected a list of D numbers, but found text"),
        ({"mean": []}, "mean must have 1 dimensions and not be empty"),
        ({"between": [[1.0, 2.0], [0.0, 1.0]]}, "between must be a symmetric matrix"),
        ({"between": [[1.0, 0.0], [0.0, -1.0]]}, "between must be a covariance, but has a negative eigenvalue"),
        ({"within": [[1.0, 0.0], [0.0, 0.0]]}, "within must be positive definite"),
        ({"within": [1.0, 2.0]}, r"\[within\[0\]\]: expected a list of D numbers, but found a number"),
        ({"within": [[1.0, 0.0], [0.0]]}, r"\[within\]: its rows have 2 and 1 numbers"),
        ({"length_normalize": 1}, r"\[length_normalize\]: expected true or false, but found a number"),
        ({"projection": [[1.0, 0.0]]}, r"\[projection\]: it has 1 rows, but center has 2"),
        ({"projection": [[], []]}, "projection 0, but all must have the same"),
        ({"center": [10**400, 0.0]}, r"\[center\[0\]\]: the number is not finite"),
        ({"center": []}, r"\[center\]: it is empty"),
        ({"x": 1}, r"\['x'\]: there is no such key in version 1"),
    ],
)
def test_what_is_wrong_with_a_plda_is_named(tmp_path, change, message):
    path = tmp_path / "plda.json"
    save_plda(PLDA(mean=[0.0, 0.0], between=np.eye(2), within=np.eye(2)), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError, match=message):
        load_plda(path)
