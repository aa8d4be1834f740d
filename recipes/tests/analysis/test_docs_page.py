"""The section "Looking inside" has the tables and figures of the analysis."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"
SECTION = (DOCS / "paper.md").read_text(encoding="utf-8").partition("## Looking inside")[2]


@pytest.fixture
def make_analysis(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))  # as when it is run as a program
    spec = importlib.util.spec_from_file_location("make_analysis", DOCS / "make_analysis.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_table_is_there(make_analysis):
    found = dict(make_analysis.TABLE.findall(SECTION))
    assert len(found) == SECTION.count("<!-- table:") == 12
    assert all(table.strip().startswith("| ") for table in found.values())


def test_figures_and_section_belong_together(make_analysis):
    drawn = {f"analysis_{name}.svg" for name in make_analysis.FIGURES}
    assert set(re.findall(r"\(figures/(\w+\.svg)\)", SECTION)) == drawn
    assert {path.name for path in (DOCS / "figures").glob("analysis_*")} == drawn


def test_the_script_puts_a_run_into_the_page(make_analysis, tmp_path):
    run, docs = tmp_path / "run", tmp_path / "docs"
    (docs / "figures").mkdir(parents=True)
    run.mkdir()
    for name in make_analysis.FIGURES:
        (run / f"{name}.svg").write_text(name)
    (run / "blocks.md").write_text("| new |\n")
    (docs / "paper.md").write_text("a\n\n<!-- table: blocks -->\n\n| old |\n\n<!-- end -->\n\nz\n")
    make_analysis.main(run, docs)
    assert (docs / "paper.md").read_text() == "a\n\n<!-- table: blocks -->\n\n| new |\n\n<!-- end -->\n\nz\n"
    assert (docs / "figures" / "analysis_sizes.svg").read_text() == "sizes"
