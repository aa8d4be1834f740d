"""The calibration file: exact round trips, and a reason for every refusal."""

import functools
import gzip
import json

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import FileError, InputError, LogisticCalibration, load_calibration, save_calibration
from evenscore.calibrate import CALIBRATIONS
from evenscore.files.models import CALIBRATION
from examples import examples

RNG = np.random.default_rng(0)
LABELS = RNG.random(300) < 0.3
SCORES = RNG.normal(np.where(LABELS, 3.0, 0.0), 1.0)
GOOD = {
    "format": "evenscore-calibration",
    "version": 1,
    "kind": "gaussian",
    "parameters": {"mean": [0.0, 5.0], "variance": [1.0, 2.0]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@functools.cache
def fitted(kind):
    return CALIBRATIONS[kind].fit(SCORES, LABELS)


@pytest.mark.parametrize("kind", CALIBRATIONS)
def test_round_trip_is_exact(tmp_path, kind):
    calibration = fitted(kind)
    save_calibration(calibration, tmp_path / "c.json", info={"scores": ["dev"], "n": 3})
    found = CALIBRATION.read(tmp_path / "c.json")
    assert type(found.model) is CALIBRATIONS[kind]
    assert found.model == calibration
    assert found.info == {"scores": ["dev"], "n": 3}
    assert load_calibration(tmp_path / "c.json")(SCORES).tobytes() == calibration(SCORES).tobytes()


def test_infinite_ends_of_a_staircase_stay(tmp_path):
    calibration = CALIBRATIONS["pav"].fit([-1.0, 0.0, 1.0], [0, 0, 1], smoothing=0)
    save_calibration(calibration, tmp_path / "c.json")
    assert '"llr": ["-inf", "inf"]' in (tmp_path / "c.json").read_text()
    assert load_calibration(tmp_path / "c.json").llr.tolist() == [-np.inf, np.inf]


def test_gzip_and_whole_numbers_are_read(tmp_path):
    values = GOOD | {"parameters": {"mean": [0, 5], "variance": [1, 2]}}
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(json.dumps(values).encode()))
    assert load_calibration(tmp_path / "c.json.gz").mean.tolist() == [0.0, 5.0]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "c.json"
    calibration = LogisticCalibration(weights=[1.0], quality_weights=[], offset=0.0)
    save_calibration(calibration, path)
    for info in ({"x": np.nan}, {"x": object()}, {1: "x"}):
        with pytest.raises(InputError):
            save_calibration(calibration, path, info=info)
    assert load_calibration(path) == calibration
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    ("change", "where", "reason"),
    [
        ({"format": None}, "[format]", "expected 'evenscore-calibration', but found None"),
        ({"format": "evenscore-score-model"}, "[format]", "expected 'evenscore-calibration'"),
        ({"version": 2}, "[version]", "the file has version 2, but this evenscore reads version 1"),
        ({"kind": "magic"}, "[kind]", "there is no calibration 'magic'; known are gaussian, logistic"),
        ({"kind": ["pav"]}, "[kind]", "there is no calibration"),
        ({"kind": "pav"}, "[parameters.llr]", "the key is missing"),
        ({"parameters": [1]}, "[parameters]", "expected an object, but found a list"),
        ({"parameters": {"mean": [0, 1]}}, "[parameters.variance]", "the key is missing"),
        ({"parameters": GOOD["parameters"] | {"x": 1}}, "[parameters.'x']", "there is no such key in version 1"),
        ({"parameters": {"mean": [0, True], "variance": [1, 1]}}, "[parameters.mean[1]]", "found true or false"),
        ({"parameters": {"mean": "0", "variance": [1, 1]}}, "[parameters.mean]", "expected a number, but found text"),
        ({"parameters": {"mean": [0, [1]], "variance": [1, 1]}}, "[parameters.mean[1]]", "found a list"),
        ({"parameters": {"mean": [0, 1, 2], "variance": [1, 1]}}, "[parameters]", "mean has shape (3,)"),
        ({"parameters": {"mean": [0, 1], "variance": [1, 0]}}, "[parameters]", "variance is [1.0, 0.0], but must be"),
        ({"parameters": {"mean": [0, "inf"], "variance": [1, 1]}}, "[parameters]", "must be finite"),
        ({"info": 3}, "[info]", "expected an object, but found a number"),
        ({"extra": 3}, "['extra']", "there is no such key in version 1; it knows format, version, kind"),
    ],
)
def test_refusals_name_the_key_and_the_reason(tmp_path, change, where, reason):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(GOOD | change))
    with pytest.raises(FileError) as caught:
        load_calibration(path)
    assert str(caught.value).startswith(f"{path}{where}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("name", ["kind", "parameters"])
def test_a_missing_key_is_named(tmp_path, name):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({key: value for key, value in GOOD.items() if key != name}))
    with pytest.raises(FileError, match="the key is missing") as caught:
        load_calibration(path)
    assert caught.value.part == name


def test_what_is_no_calibration_at_all_is_refused(tmp_path):
    path = tmp_path / "c.json"
    with pytest.raises(FileError, match="there is no such file"):
        load_calibration(path)
    for text, reason in (("", "not JSON"), ("[]", "expected a JSON object"), ('{"a": NaN}', "not finite")):
        path.write_text(text)
        with pytest.raises(FileError, match=reason):
            load_calibration(path)


@examples(40)
@given(data=st.data())
def test_damaged_files_parse_or_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "c.json"
    save_calibration(CALIBRATIONS["pav"].fit(SCORES[:30], LABELS[:30]), path)
    path.write_bytes(data.draw(cuts_and_flips(path.read_bytes())))
    must_parse_or_refuse(load_calibration, path)


@examples(60)
@given(kind=st.sampled_from(sorted(CALIBRATIONS)), value=JSON, data=st.data())
def test_any_value_of_a_parameter_parses_or_is_refused(tmp_path_factory, kind, value, data):
    path = tmp_path_factory.mktemp("odd") / "c.json"
    save_calibration(fitted(kind), path)
    values = json.loads(path.read_text())
    values["parameters"][data.draw(st.sampled_from(sorted(values["parameters"])))] = value
    path.write_text(json.dumps(values))
    must_parse_or_refuse(load_calibration, path)
