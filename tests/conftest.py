"""Settings of all tests."""

import os

from hypothesis import HealthCheck, settings

# Time on a shared machine says nothing about correctness, and every run draws the same examples.
settings.register_profile(
    "evenscore",
    deadline=None,
    derandomize=True,
    max_examples=int(os.environ.get("EVENSCORE_EXAMPLES", "8")),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenscore")
