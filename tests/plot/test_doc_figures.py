"""The figures of the documentation can be drawn anew."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize(("script", "page"), [("make_figures", "plots"), ("make_score_model", "score-model")])
def test_the_script_draws_every_figure_of_the_page(tmp_path, script, page):
    spec = importlib.util.spec_from_file_location(script, DOCS / f"{script}.py")
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    program.main(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert names == set(re.findall(r"\(figures/([^)]+)\)", text))
    assert names <= {path.name for path in (DOCS / "figures").iterdir()}
