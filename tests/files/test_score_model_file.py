"""The model file: exact round trips, a schema that agrees, and a reason for every refusal."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import FileError, InputError, ScoreModel, load_model, save_model
from evenscore.files.models import SCORE_MODEL
from examples import examples

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "score_model.schema.json"
MODEL = ScoreModel(mu=[-2.0, 3.0], alpha=[[0.5, 0.1], [1.0, -0.2]], beta=[[0.1, 0], [0.7, 1 / 3]], sigma2=[1.0, 2.0])
GOOD = {
    "format": "evenscore-score-model",
    "version": 1,
    "mu": [-2.0, 3.0],
    "alpha": [[0.5], [1.0]],
    "beta": [[0.1], [0.7]],
    "sigma2": [1.0, 2.0],
}

finite = st.floats(-1e30, 1e30)
facts = st.dictionaries(
    st.text(max_size=8), st.none() | st.booleans() | finite | st.text(max_size=8) | st.lists(finite, max_size=2)
)


@st.composite
def models(draw):
    dim = draw(st.integers(0, 4))
    loading = hnp.arrays(np.float64, (2, dim), elements=finite)
    positive = st.floats(1e-60, 1e60)
    return ScoreModel(
        mu=draw(st.tuples(finite, finite)),
        alpha=draw(loading),
        beta=draw(loading),
        sigma2=draw(st.tuples(positive, positive)),
    )


@settings(deadline=None)
@given(model=models(), info=st.none() | facts)
def test_round_trip_is_exact(tmp_path_factory, model, info):
    path = tmp_path_factory.mktemp("model") / "m.json"
    save_model(model, path, info=info)
    found = SCORE_MODEL.read(path)
    assert found.info == (info or {})
    for name in ("mu", "alpha", "beta", "sigma2"):
        ours, theirs = getattr(model, name), getattr(found.model, name)
        assert ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes()  # the sign of zero, too


@examples(30)
@given(model=models(), info=st.none() | facts)
def test_files_follow_the_schema(tmp_path_factory, model, info):
    jsonschema = pytest.importorskip("jsonschema", reason="the schema is checked only if jsonschema is installed")
    path = tmp_path_factory.mktemp("model") / "m.json"
    save_model(model, path, info=info)
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    validator.validate(json.loads(path.read_text()))


def test_the_schema_refuses_what_the_reader_refuses():
    jsonschema = pytest.importorskip("jsonschema", reason="the schema is checked only if jsonschema is installed")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(GOOD)
    for name in GOOD:
        assert not validator.is_valid({key: value for key, value in GOOD.items() if key != name})
    for change in ({"version": 2}, {"mu": [0.0]}, {"sigma2": [1.0, 0]}, {"alpha": [1, 2]}, {"info": []}, {"x": 1}):
        assert not validator.is_valid(GOOD | change)


def test_a_person_can_read_it(tmp_path):
    save_model(MODEL, tmp_path / "m.json", info={"converged": True, "note": "sǿren"})
    lines = (tmp_path / "m.json").read_text().splitlines()
    assert lines[3] == '  "mu": [-2.0, 3.0],'
    assert lines[4] == '  "alpha": [[0.5, 0.1], [1.0, -0.2]],'
    assert lines[7:10] == ['  "info": {', '    "converged": true,', r'    "note": "s\u01ffren"']


def test_gzip_and_whole_numbers_are_read(tmp_path):
    (tmp_path / "m.json").write_bytes(gzip.compress(json.dumps(GOOD | {"mu": [-2, 3]}).encode()))
    assert load_model(tmp_path / "m.json").mu.tolist() == [-2.0, 3.0]
    (tmp_path / "bom.json").write_text("\ufeff" + json.dumps(GOOD), encoding="utf-8")
    assert load_model(tmp_path / "bom.json").sigma2.tolist() == [1.0, 2.0]


def test_standard_output(capfdbinary):
    save_model(MODEL, "-")
    assert json.loads(capfdbinary.readouterr().out)["sigma2"] == [1.0, 2.0]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "m.json"
    save_model(MODEL, path)
    for info in ({"x": float("nan")}, {"x": object()}, {1: 2}, {"x": np.float32(1)}):
        with pytest.raises(InputError):
            save_model(MODEL, path, info=info)
    assert load_model(path) == MODEL
    assert [file.name for file in tmp_path.iterdir()] == ["m.json"]
    with pytest.raises(FileError, match="its directory does not exist"):
        save_model(MODEL, tmp_path / "absent" / "m.json")


@pytest.mark.parametrize(
    ("change", "where", "reason"),
    [
        ({"format": None}, "[format]", "the key is missing"),
        ({"format": "evenscore-plda"}, "[format]", "expected 'evenscore-score-model', but found 'evenscore-plda'"),
        ({"format": ["x"] * 99}, "[format]", "..."),
        ({"version": None}, "[version]", "the key is missing"),
        ({"version": 2}, "[version]", "version 2, but this evenscore reads version 1"),
        ({"version": True}, "[version]", "version True"),
        ({"version": 1.0}, "[version]", "version 1.0"),
        ({"version": 10**5000}, "", "digits"),
        ({"mu": None}, "[mu]", "the key is missing"),
        ({"alpha": None}, "[alpha]", "the key is missing"),
        ({"beta": None}, "[beta]", "the key is missing"),
        ({"sigma2": None}, "[sigma2]", "the key is missing"),
        ({"mu": 1.0}, "[mu]", "expected 2 numbers (non-target, target), but found a number"),
        ({"mu": [1.0]}, "[mu]", "but found 1 values"),
        ({"mu": [1.0, 2.0, 3.0]}, "[mu]", "but found 3 values"),
        ({"mu": ["1", 2.0]}, "[mu[0]]", "expected a number, but found text"),
        ({"mu": [True, 2.0]}, "[mu[0]]", "expected a number, but found true or false"),
        ({"mu": [1.0, [2.0]]}, "[mu[1]]", "expected a number, but found a list"),
        ({"mu": [1.0, 10**400]}, "[mu[1]]", "not finite"),
        ({"alpha": [[0.5]]}, "[alpha]", "but found 1 rows"),
        ({"alpha": [0.5, 1.0]}, "[alpha[0]]", "expected a list of D numbers, but found a number"),
        ({"alpha": {"a": 1}}, "[alpha]", "but found an object"),
        ({"alpha": [[0.5], [1.0, 2.0]]}, "[alpha]", "its rows have 1 and 2 numbers"),
        ({"beta": [[0.5, 1.0], [1.0, 2.0]]}, "[beta]", "its rows have 2 numbers, but those of alpha have 1"),
        ({"beta": [[], []]}, "[beta]", "its rows have 0 numbers"),
        ({"beta": [[0.5], [{}]]}, "[beta[1][0]]", "expected a number, but found an object"),
        ({"sigma2": [0.0, 1.0]}, "[sigma2[0]]", "a variance must be positive, but is 0.0"),
        ({"sigma2": [1.0, -1]}, "[sigma2[1]]", "a variance must be positive, but is -1"),
        ({"sigma2": [1e-400, 1]}, "[sigma2[0]]", "a variance must be positive"),
        ({"sigma": [1.0, 1]}, "['sigma']", "there is no such key in version 1"),
        ({"info": []}, "[info]", "expected an object, but found a list"),
    ],
)
def test_refusals_name_the_key_and_the_reason(tmp_path, change, where, reason):
    values = {key: value for key, value in (GOOD | change).items() if value is not None}
    path = tmp_path / "m.json"
    text = json.dumps(values) if change.get("version") != 10**5000 else json.dumps(GOOD).replace("1,", "1" * 5000 + ",")
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        load_model(path)
    assert str(caught.value).startswith(f"{path}{where}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "this is not JSON"),
        ("[]", "expected a JSON object {...}, but found a list"),
        ("3", "but found a number"),
        ('{"mu": [NaN, 1]}', "the value NaN is not finite"),
        ('{"mu": [-Infinity, 1]}', "the value -Infinity is not finite"),
        ('{"mu": 1, "mu": 1}', "the key 'mu' stands twice"),
        ('{"a": {"b": 1, "b": 2}}', "the key 'b' stands twice"),
        ("[" * 200_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        (b'{"mu": "\xff"}', "byte 0xff is not UTF-8"),
        (b"\xff\xfe{\x00}\x00", "is not UTF-8"),
        (" " * (SCORE_MODEL.largest + 1), "larger than 1000 kB"),
        (gzip.compress(b" " * (50 * SCORE_MODEL.largest)), "larger than 1000 kB"),
        (gzip.compress(json.dumps(GOOD).encode())[:-20], "cut off or damaged"),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) < 60 else "long",
)
def test_what_is_no_model_at_all_is_refused(tmp_path, text, reason):
    path = tmp_path / "m.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(FileError) as caught:
        load_model(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_numbers_beyond_floating_point_are_refused(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(GOOD).replace("-2.0", "-2e999"))
    with pytest.raises(FileError, match=r"\[mu\[0\]\]: the number is not finite"):
        load_model(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileError, match="there is no such file"):
        load_model(tmp_path / "absent.json")


TEXT = json.dumps(GOOD | {"info": {"a": [1, 2.5, None]}}).encode()


@settings(deadline=None)
@given(data=cuts_and_flips(TEXT) | st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_damaged_files_parse_or_are_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "m.json"
    path.write_bytes(data)
    must_parse_or_refuse(load_model, path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(name=st.sampled_from(sorted(GOOD)), value=json_values)
def test_any_value_of_a_key_parses_or_is_refused(tmp_path_factory, name, value):
    path = tmp_path_factory.mktemp("odd") / "m.json"
    path.write_text(json.dumps(GOOD | {name: value}))
    must_parse_or_refuse(load_model, path)
