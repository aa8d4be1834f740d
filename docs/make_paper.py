"""Put the results of `python -m recipes.paper` into docs/paper.md, docs/figures and docs/tables.

``python docs/make_paper.py OUT [BOTH]`` replaces the tables after the marks of the page; the words around them are
written by hand, so read them again. BOTH is the output of a run with ``--shift-side both``.
"""

from __future__ import annotations

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
    as_markdown,
    eer_table,
    interval_table,
    metric_table,
    shift_table,
    variance_table,
)

DOCS = Path(__file__).resolve().parent
FIGURES = ("det.svg", "det_mean.svg", "bayes.svg", "shift.svg")
TABLES = ("metrics.csv", "variances.csv", "shift.csv")


def tables(results: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the tables of the page by name of their mark."""
    summary, shifts = results["summary"], results["shifts"]
    made = {
        "eer": eer_table(summary["per-gender"]),
        "eer joint": eer_table(summary["joint"]),
        "variances": variance_table(results["variances"]),
        "metrics": metric_table({"pooled": summary["joint"]["pooled"]}),
        "intervals": interval_table({"pooled": results["splits"][0]["models"]["joint"]["pooled"]}),
        "stages": stages(folder),
    }
    for name in ("eer", "cllr_calibrated", "cllr"):
        made[f"shift {name}"] = shift_table(shifts, "joint", "pooled", name)
    return {name: as_markdown(table) for name, table in made.items()}


def stages(folder: Path) -> list[list[str]]:
    """Return how long each stage took."""
    with (folder / "stages.csv").open(encoding="utf-8") as file:
        rows = [[row["stage"], f"{float(row['seconds']):.0f}"] for row in csv.DictReader(file)]
    return [["stage", "seconds"], *rows, ["all", f"{sum(float(seconds) for _, seconds in rows):.0f}"]]


def main(arguments: list[str]) -> int:
    """Rewrite the page and copy the files."""
    folder = Path(arguments[0])
    for name in FIGURES:
        shutil.copyfile(folder / name, DOCS / "figures" / f"paper_{name}")
    (DOCS / "tables").mkdir(exist_ok=True)
    for name in TABLES:
        shutil.copyfile(folder / name, DOCS / "tables" / f"paper_{name}")
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    made = tables(results, folder)
    if len(arguments) > 1:
        other = json.loads((Path(arguments[1]) / "results.json").read_text(encoding="utf-8"))
        for name in ("eer", "cllr_calibrated", "cllr"):
            made[f"shift both {name}"] = as_markdown(shift_table(other["shifts"], "joint", "pooled", name))
    page = (DOCS / "paper.md").read_text(encoding="utf-8")
    for name, table in made.items():
        mark = f"<!-- {name} -->\n"
        page, count = re.subn(re.escape(mark) + r"(\n(\|.*\n)+)?", lambda _, new=f"{mark}\n{table}": new, page)  # type: ignore[misc]
        if not count:
            sys.stderr.write(f"paper.md has no mark {mark}")
    (DOCS / "paper.md").write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
