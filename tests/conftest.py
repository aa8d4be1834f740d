"""Settings of all tests."""

import os
import re
from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, Phase, settings

from evenscore import EvenscoreError

#: Packages of the extras that are not installed: `make release-check` runs the tests on a plain installation, too.
ABSENT = [name for name in ("dask", "zarr", "matplotlib", "soundfile") if find_spec(name) is None]

# Time on a shared machine says nothing about correctness, and every run draws the same examples.
settings.register_profile(
    "evenscore",
    deadline=None,
    derandomize=True,
    # What needs an absent package fails with every example: to look for the smallest one takes minutes.
    phases=(Phase.explicit, Phase.generate) if ABSENT else tuple(Phase),
    max_examples=int(os.environ.get("EVENSCORE_EXAMPLES", "8")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenscore")


def pytest_ignore_collect(collection_path):
    """Leave out modules that import an absent package, and the acceptance cases, whose data are made with zarr."""
    if collection_path.name == "acceptance" and "zarr" in ABSENT:
        return True
    if ABSENT and collection_path.suffix == ".py":
        imports = re.compile(rf"^(?:import|from) (?:{'|'.join(ABSENT)})\b", re.MULTILINE)
        return bool(imports.search(collection_path.read_text(encoding="utf-8"))) or None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Skip a test whose fixtures need an absent package."""
    return (yield from skip_what_is_absent())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test that turns out to need an absent package."""
    return (yield from skip_what_is_absent())


def skip_what_is_absent():
    """Skip if what runs needs an absent package, or refuses to run without it."""
    try:
        return (yield)
    except (ModuleNotFoundError, EvenscoreError) as error:
        cause = error.__context__ if isinstance(error, EvenscoreError) else error
        if not isinstance(cause, ModuleNotFoundError) or str(cause.name).partition(".")[0] not in ABSENT:
            raise
        pytest.skip(f"it needs {cause.name}, which a plain installation has not")
