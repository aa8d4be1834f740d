"""Hold the imported evenscore to the recorded acceptance cases.

The second edition runs them as ``PYTHONPATH=next/src pytest tests/acceptance --confcutdir=tests/acceptance``. Cases
that it does not handle yet stand in next/tests/pending_cases.txt and are skipped; EVENSCORE_PENDING=run runs them.
"""

import json
import os
from pathlib import Path

import pytest
from cases import CASES

import evenscore
from data import make_data
from run import run_case

HERE = Path(__file__).resolve().parent
EXPECTED = {}
for recorded in sorted((HERE / "expected").glob("*.json")):
    EXPECTED |= json.loads(recorded.read_text())


def pending_names():
    """Return names and prefixes of cases that the program is not held to yet."""
    program = Path(evenscore.__file__).resolve()
    site = next((folder for folder in program.parents if folder.name == "next"), None)
    if site is None or os.environ.get("EVENSCORE_PENDING") == "run":
        return ()
    lines = (site / "tests" / "pending_cases.txt").read_text().splitlines()
    return tuple(name for name in (line.split("#")[0].strip() for line in lines) if name)


PENDING = pending_names()


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
    if any(name == item or (item.endswith("/") and name.startswith(item)) for item in PENDING):
        pytest.skip("pending in next/tests/pending_cases.txt")
    found = run_case(case, data)
    wrong = list(differences(found, EXPECTED[name], case.tol))
    assert not wrong, "\n".join(wrong[:8])


def test_every_recorded_case_exists():
    assert set(EXPECTED) == set(CASES)
