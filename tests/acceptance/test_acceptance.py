"""Hold the imported evenscore to the recorded acceptance cases."""

import json
from pathlib import Path

import pytest
from case_data import make_data
from case_run import run_case
from cases import CASES

HERE = Path(__file__).resolve().parent
EXPECTED = {}
for recorded in sorted((HERE / "expected").glob("*.json")):
    EXPECTED |= json.loads(recorded.read_text())


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_data(folder)
    return folder


def differences(found, expected, tol, place=""):
    """Yield where a result differs from the recorded one; further keys are allowed."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from differences(found[key], value, tol, f"{place}/{key}")
            else:
                yield f"{place}/{key}: absent"
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            yield from differences(one, other, tol, f"{place}/{number}")
    elif type(expected) in (int, float) and type(found) in (int, float):
        if not abs(found - expected) <= tol * max(1.0, abs(expected)):
            yield f"{place}: {found!r} instead of {expected!r}"
    elif found != expected:
        yield f"{place}: {found!r} instead of {expected!r}"


@pytest.mark.parametrize("name", CASES)
def test_case(name, data):
    case = CASES[name]
    found = run_case(case, data)
    wrong = list(differences(found, EXPECTED[name], case.tol))
    assert not wrong, "\n".join(wrong[:8])


def test_every_recorded_case_exists():
    assert set(EXPECTED) == set(CASES)
