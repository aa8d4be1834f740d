"""The figures of the documentation can be drawn anew."""

import importlib.util
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_script_draws_every_figure_of_the_page(tmp_path):
    spec = importlib.util.spec_from_file_location("make_figures", DOCS / "make_figures.py")
    make_figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_figures)
    make_figures.main(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    page = (DOCS / "plots.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"\(figures/([^)]+)\)", page))
    assert names <= {path.name for path in (DOCS / "figures").iterdir()}
