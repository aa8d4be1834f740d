"""What the README shows of the real half of `evenscore demo`: python docs/make_demo.py DEMO_DIRECTORY.

Draws the DET plot and prints the table.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from evenscore import load_audiomnist_scores, read_scores
from evenscore.plot import plot_det, save_figure
from evenscore.tables import TrialList

METHODS = ("raw", "zt", "lgsm", "s", "evidence")


def main(directory: str) -> None:
    """Read the log-likelihood ratios of some methods, pool the digits, and draw."""
    evaluation = load_audiomnist_scores().evaluation
    systems = {}
    for method in METHODS:
        files = sorted(Path(directory, "audiomnist", "methods", method).glob("llrs-*.npz"), key=_number)
        lists = [part.labelled(read_scores(file)) for part, file in zip(evaluation, files, strict=True)]
        systems[method] = TrialList.concat(lists)
    figure = plot_det(systems)
    save_figure(figure, Path(__file__).parent / "figures" / "demo_det.svg")
    results = json.loads(Path(directory, "audiomnist", "results.json").read_text(encoding="utf-8"))
    print("\n".join(table_rows(results["methods"])))  # noqa: T201


def table_rows(methods: dict[str, dict]) -> list[str]:
    """Return the lines of the table, best method first."""
    rows = []
    for name in sorted(methods, key=lambda name: methods[name]["figures"]["cllr"]):
        figures, test = methods[name]["figures"], methods[name]["to_raw"]["cllr"]
        low, high = test["interval"]
        gain = "" if name == "raw" else f"{test['difference']:+.3f} [{low:+.3f}, {high:+.3f}]"
        numbers = [f"{figures[metric]:.3f}" for metric in ("min_dcf", "act_dcf", "cllr", "min_cllr")]
        cells = [name, f"{100 * figures['eer']:.2f}", *numbers, gain]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _number(file: Path) -> int:
    return int(file.stem.split("-")[1])


if __name__ == "__main__":
    main(sys.argv[1])
