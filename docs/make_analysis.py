"""Put the results of ``python -m recipes.analysis`` into docs/paper.md: its tables, and its figures beside them.

``python -m recipes.analysis -o out && python docs/make_analysis.py out``; the words around the tables are written by
hand, so read them again.
"""

from __future__ import annotations

import sys
from pathlib import Path

from make_theory import TABLE, filled

DOCS = Path(__file__).resolve().parent
FIGURES = ("sizes", "phrases", "effects", "residuals")


def main(folder: Path, docs: Path = DOCS) -> None:
    """Copy figures and tables from the folder of a run."""
    for name in FIGURES:
        (docs / "figures" / f"analysis_{name}.svg").write_bytes((folder / f"{name}.svg").read_bytes())
    page = docs / "paper.md"
    text = page.read_text(encoding="utf-8")
    tables = {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name, _ in TABLE.findall(text)}
    page.write_text(filled(text, tables), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
