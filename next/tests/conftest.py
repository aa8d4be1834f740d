"""Settings of all tests of the second edition."""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

import evenscore

SOURCE = Path(__file__).resolve().parents[1] / "src"
if SOURCE not in Path(evenscore.__file__).resolve().parents:
    raise ImportError(f"these tests are for the package in {SOURCE}, not for {evenscore.__file__}; set PYTHONPATH=src")
os.environ["PYTHONPATH"] = str(SOURCE)  # for the processes that tests start

# Time on a shared machine says nothing about correctness, and every run draws the same examples.
settings.register_profile(
    "evenscore",
    deadline=None,
    derandomize=True,
    max_examples=int(os.environ.get("EVENSCORE_EXAMPLES", "8")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenscore")
