"""The page on the theory has the tables and figures of the experiment."""

import importlib.util
import re
from pathlib import Path

import pytest

pytest.importorskip("networkx", reason="graphs need the extra 'theory'")

from recipes.theory.tables import dependence_table, information_table

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "theory.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def make_theory():
    spec = importlib.util.spec_from_file_location("make_theory", DOCS / "make_theory.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables(make_theory):
    return {name: table.strip() for name, table in make_theory.TABLE.findall(PAGE)}


def test_tables_that_take_no_time_are_fresh(make_theory):
    found = tables(make_theory)
    assert found["dependence"] == dependence_table()
    assert found["information"] == information_table()


def test_every_table_is_there(make_theory):
    found = tables(make_theory)
    assert len(found) == PAGE.count("<!-- table:") == 12
    assert all(table.startswith("| ") for table in found.values())


def test_figures_and_page_belong_together(make_theory):
    drawn = {f"theory_{name}.svg" for name in make_theory.FIGURES}
    assert set(re.findall(r"\(figures/(\w+\.svg)\)", PAGE)) == drawn
    assert {path.name for path in (DOCS / "figures").glob("theory_*")} == drawn


def test_the_script_puts_a_run_into_the_page(make_theory, tmp_path):
    run, docs = tmp_path / "run", tmp_path / "docs"
    (docs / "figures").mkdir(parents=True)
    run.mkdir()
    for name in make_theory.FIGURES:
        (run / f"{name}.svg").write_text(name)
    (run / "killer.md").write_text("| new |\n")
    (docs / "theory.md").write_text("a\n\n<!-- table: killer -->\n\n| old |\n\n<!-- end -->\n\nz\n")
    make_theory.main(run, docs)
    assert (docs / "theory.md").read_text() == "a\n\n<!-- table: killer -->\n\n| new |\n\n<!-- end -->\n\nz\n"
    assert (docs / "figures" / "theory_gain.svg").read_text() == "gain"
