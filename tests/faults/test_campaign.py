"""A small part of `make faults`: each kind of fault, at a few calls of commands that write in different ways."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not sys.platform.startswith("linux") or not shutil.which("gcc"), reason="needs Linux and gcc")
def test_nothing_is_lost_or_left_behind():
    campaign = Path(__file__).with_name("campaign.py")
    jobs = "convert to npy,convert over zarr,normalize to parquet"
    run = subprocess.run(
        [sys.executable, campaign, "--every", "45", "--jobs", jobs], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "faults, 0 failures" in run.stdout
