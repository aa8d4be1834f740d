"""Put the results of ``python -m recipes.theory`` into docs/theory.md: its tables, and its figures beside them.

``python -m recipes.theory -o out && python docs/make_theory.py out``
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
FIGURES = ("dependence", "killer", "broken", "gain", "calibration")
TABLE = re.compile(r"<!-- table: ([\w-]+) -->\n(.*?)<!-- end -->", re.DOTALL)


def filled(page: str, tables: dict[str, str]) -> str:
    """Return the page with the tables between their marks replaced."""
    return TABLE.sub(lambda found: f"<!-- table: {found[1]} -->\n\n{tables[found[1]].strip()}\n\n<!-- end -->", page)


def main(folder: Path, docs: Path = DOCS) -> None:
    """Copy figures and tables from the folder of a run."""
    for name in FIGURES:
        (docs / "figures" / f"theory_{name}.svg").write_bytes((folder / f"{name}.svg").read_bytes())
    page = docs / "theory.md"
    text = page.read_text(encoding="utf-8")
    tables = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name, _ in TABLE.findall(text)}
    page.write_text(filled(text, tables), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
