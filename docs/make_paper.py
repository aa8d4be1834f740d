"""Put the results of `python -m recipes.paper` into docs/paper.md, docs/figures and docs/tables.

``python docs/make_paper.py OUT --both BOTH --development DEVELOPMENT`` replaces the tables after the marks of the page;
the words around them are written by hand, so read them again. BOTH is the output of a run with ``--shift-side both``,
DEVELOPMENT of one with ``--train-sets background,development``; tables of a run that is not given stay as they are.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for recipes

from recipes.paper.tables import (
    Table,
    as_markdown,
    eer_table,
    interval_table,
    metric_table,
    scale_table,
    set_table,
    shift_table,
    variance_table,
)

DOCS = Path(__file__).resolve().parent
FIGURES = ("det.svg", "det_mean.svg", "bayes.svg", "shift.svg")
TABLES = ("metrics.csv", "variances.csv", "shift.csv")
SHIFTED = ("eer", "cllr_calibrated", "cllr")


def tables(results: Mapping[str, Any], folder: Path) -> dict[str, Table]:
    """Return the tables of the page by name of their mark."""
    summary, shifts = results["summary"], results["shifts"]
    made = {
        "eer": eer_table(summary["per-gender"]),
        "eer joint": eer_table(summary["joint"]),
        "variances": variance_table(results["variances"]),
        "scales": scale_table(results["scales"]),
        "metrics": metric_table({"pooled": summary["joint"]["pooled"]}),
        "intervals": interval_table({"pooled": results["splits"][0]["models"]["joint"]["pooled"]}),
        "stages": stages(folder),
    }
    return made | {f"shift {name}": shift_table(shifts, "joint", "pooled", name) for name in SHIFTED}


def both_tables(results: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of a run in which both sides are shifted."""
    return {f"shift both {name}": shift_table(results["shifts"], "joint", "pooled", name) for name in SHIFTED}


def development_tables(results: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of a recognizer that knows the development speakers; ``plain`` are results of one without."""
    summary = results["summary"]
    return {
        "eer development": eer_table(summary["per-gender"]),
        "metrics development": metric_table({"pooled": summary["joint"]["pooled"]}),
        "sets": set_table({"background": plain["sets"], "background and development": results["sets"]}),
    }


def stages(folder: Path) -> list[list[str]]:
    """Return how long each stage took."""
    with (folder / "stages.csv").open(encoding="utf-8") as file:
        rows = [[row["stage"], f"{float(row['seconds']):.0f}"] for row in csv.DictReader(file)]
    return [["stage", "seconds"], *rows, ["all", f"{sum(float(seconds) for _, seconds in rows):.0f}"]]


def read(folder: Path) -> Any:
    """Return the results of a run."""
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def main(arguments: list[str]) -> int:
    """Rewrite the page and copy the files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--both", type=Path)
    parser.add_argument("--development", type=Path)
    given = parser.parse_args(arguments)
    folder = given.out
    for name in FIGURES:
        shutil.copyfile(folder / name, DOCS / "figures" / f"paper_{name}")
    (DOCS / "tables").mkdir(exist_ok=True)
    for name in TABLES:
        shutil.copyfile(folder / name, DOCS / "tables" / f"paper_{name}")
    results = read(folder)
    made = tables(results, folder)
    if given.both:
        made |= both_tables(read(given.both))
    if given.development:
        shutil.copyfile(given.development / "metrics.csv", DOCS / "tables" / "paper_metrics_development.csv")
        made |= development_tables(read(given.development), results)
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    for name, table in made.items():
        mark = f"<!-- {name} -->\n"
        text = f"{mark}\n{as_markdown(table)}"
        page, count = re.subn(re.escape(mark) + r"(\n(\|.*\n)+)?", lambda _, text=text: text, page)  # type: ignore[misc]
        if not count:
            sys.stderr.write(f"paper.md has no mark {mark}")
    (DOCS / "paper.md").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
