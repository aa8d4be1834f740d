"""A little of the fuzz program; it runs for minutes by itself."""

import runpy
from pathlib import Path

import pytest

FUZZ = str(Path(__file__).with_name("fuzz.py"))


def test_bad_input_is_refused_or_used():
    pytest.importorskip("zarr", reason="a plain installation has not every kind of input")
    failures, count = runpy.run_path(FUZZ)["campaign"](count=60)
    assert count == 60
    assert failures == {}
