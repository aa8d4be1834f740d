"""results.json follows its schema; words and tables say what the numbers say."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from compared_sides import evaluation_side, training_side

from evenscore import compare
from evenscore.comparison.results import plain

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schema" / "comparison.schema.json"


@pytest.fixture(scope="module")
def comparison():
    return compare(training_side(("a", "b")), evaluation_side(("a", "b")), ["z", "lgsm", "as:top_k=1000"], bootstrap=30)


@pytest.mark.parametrize("smoothing", [None, 0])
def test_results_follow_the_schema(comparison, tmp_path, smoothing):
    jsonschema = pytest.importorskip("jsonschema", reason="the schema is checked only if jsonschema is installed")
    if smoothing is not None:  # infinite LLRs
        sides = training_side(), evaluation_side(cohort="new")
        comparison = compare(*sides, ["z"], calibration="pav:smoothing=0", bootstrap=5)
    comparison.save(tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(found)
    assert found == comparison.results()
    assert list(found["methods"]) == [method.name for method in comparison.methods]


def test_infinite_numbers_become_text():
    assert plain({"a": [float("inf"), -float("inf"), 1.5]}) == {"a": ["inf", "-inf", 1.5]}
    assert plain(float("nan")) is None


def test_the_words_say_what_the_numbers_say(comparison):
    used, text = comparison[comparison.verdict.use], comparison.verdict.text
    gain = used.to_raw["cllr"]
    assert f"Cllr {gain.a:.3f} against {gain.b:.3f} raw" in text
    assert f"95 % interval of the difference {gain.interval.low:.3f} to {gain.interval.high:.3f}" in text
    assert str(comparison.verdict) == text
    for other in comparison.methods:
        if other.name not in ("raw", used.name):
            test = comparison.paired(other, used)
            alike = test.interval.low <= 0 <= test.interval.high
            assert (other.name in comparison.verdict.not_distinguishable) == alike


@pytest.mark.parametrize(
    ("cllr", "loss", "words"),
    [
        (0.5, 0.04, "can be taken at face value"),
        (0.2, 0.05, "fairly well calibrated"),
        (0.2, 0.15, "not well calibrated on these trials"),
        (1.2, 0.9, "worse than none"),
        (float("inf"), float("inf"), "worse than none"),
        (0.0, 0.0, "can be taken at face value"),
    ],
)
def test_the_words_about_calibration(comparison, cllr, loss, words):
    used = comparison[comparison.verdict.use]
    figures = replace(used.figures, values={**used.figures.values, "cllr": cllr, "calibration_loss": loss})
    changed = replace(
        comparison,
        methods=tuple(replace(one, figures=figures) if one.name == used.name else one for one in comparison.methods),
    )
    assert words in changed.verdict.text
