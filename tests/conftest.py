"""Make the modules beside this file importable (`strategies`, `reference`), as pytest's importlib mode does not."""

import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

# Files on a shared machine: time says nothing about correctness. The same examples are drawn in every run.
settings.register_profile(
    "evenscore",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("evenscore")
