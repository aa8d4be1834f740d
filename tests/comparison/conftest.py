"""Make the modules beside this file importable, as pytest's importlib mode does not."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def _brief_training(brief_training):
    """Compare models that were trained briefly."""
