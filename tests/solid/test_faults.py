"""A little of the program that strikes every call."""

import runpy
import shutil
import sys
from pathlib import Path

import pytest

FAULTS = str(Path(__file__).with_name("faults.py"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="faults need gcc and Linux")
def test_outputs_are_whole_or_not_there():
    code, said = runpy.run_path(FAULTS)["campaign"](("text", "zarr"), every=9)
    assert code == 0, said
