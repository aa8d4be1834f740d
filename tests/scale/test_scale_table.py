"""The tables of docs/scale.md are those that the measured costs give."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_tables_are_fresh():
    spec = importlib.util.spec_from_file_location("make_scale_table", DOCS / "make_scale_table.py")
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    assert tables.main(["--check"]) == 0, "run: python docs/make_scale_table.py"
    assert tables.span(90) == "90 s"
    assert tables.span(7200) == "2 h"
    assert tables.size(4e9) == "4 GB"
