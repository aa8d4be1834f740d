"""Write the tables of docs/scale.md from the costs that benchmarks/scale_costs.py measured; --check only compares."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

from evenscore.tables.tile import TILE_BYTES

FOLDER = Path(__file__).resolve().parent
PAGE, COSTS = FOLDER / "scale.md", FOLDER / "scale_costs.json"

# What the table takes for granted.
CORES, MEMORY, DISK = 16, 64e9, 1e9  # of a machine: cores, bytes, bytes per second
HOURS = 8.0  # that a job may take; more machines are counted until it does
DIM, COHORT = 256, 5000
BYTES = 4  # of a score, and of a component of an embedding
PROCESS = 0.3e9 + 8 * TILE_BYTES  # bytes of a process: Python with its libraries, and eight tiles
EXPONENTS = (6, 8, 9, 10, 11, 12, 13, 15)
NAME = 150  # bytes of an id in memory, with its place in tables


def main(arguments: list[str]) -> int:
    """Put both tables into the page; return 1 if --check finds them stale."""
    costs = json.loads(COSTS.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    new = page
    for name, table in (("costs", costs_table(costs)), ("sizes", sizes_table(costs))):
        pattern = rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)"
        new = re.sub(pattern, lambda found: found[1] + table + found[2], new, flags=re.DOTALL)  # noqa: B023
    if "--check" in arguments:
        return int(new != page)
    PAGE.write_text(new, encoding="utf-8")
    return 0


def costs_table(costs: dict) -> str:
    """Return what each step costs."""
    lines = ["| step | cost on one core |", "|---|---|"]
    lines += [f"| {name} | {value:.2g} ns per score |" for name, value in costs["nanoseconds per score"].items()]
    per_embedding = costs["microseconds per embedding"]
    lines += [f"| {name} | {value:.2g} µs per embedding |" for name, value in per_embedding.items()]
    return "\n".join(["", *lines, "", f"Measured on one core of: {costs['machine']}.", ""]) + "\n"


def sizes_table(costs: dict) -> str:
    """Return what jobs of many sizes take."""
    lines = [
        "| scores | job | core time | machines | time | memory of a process | disk | bottleneck |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for exponent in EXPONENTS:
        lines += [job(10.0**exponent, exponent, costs) for job in (stored, from_embeddings, no_matrix)]
    return "\n".join(["", *lines, ""]) + "\n"


def stored(n: float, exponent: int, costs: dict) -> str:
    """Train on a stored matrix, normalize it, write it."""
    ns = costs["nanoseconds per score"]
    side = math.sqrt(n)
    steps = {
        "reading": 2 * n * ns["read"],
        "writing": n * ns["write"],
        "cohort": 2 * side * COHORT * ns["cohort score (lgsm)"],
        "arithmetic": n * (ns["sum for training"] + ns["normalize (lgsm)"]),
    }
    disk = 2 * n * BYTES
    return row(f"10^{exponent}", "stored: fit + normalize", steps, 3 * n * BYTES, PROCESS + 2 * side * NAME, disk)


def from_embeddings(n: float, exponent: int, costs: dict) -> str:
    """AS-norm of embeddings, with all scores written."""
    ns = costs["nanoseconds per score"]
    side = math.sqrt(n)
    make = ns[f"make from embeddings, d = {DIM}"]
    steps = {
        "products": n * make,
        "cohort": 2 * side * COHORT * (make + ns["cohort score (as)"]),
        "writing": n * ns["write"],
        "arithmetic": n * ns["normalize (s, as)"],
    }
    memory = PROCESS + 2 * side * (NAME + DIM * BYTES)
    return row("", "embeddings: AS-norm, written", steps, n * BYTES, memory, n * BYTES)


def no_matrix(n: float, exponent: int, costs: dict) -> str:
    """Train the score model on all pairs, and fold the cohort, without any matrix."""
    us = costs["microseconds per embedding"]
    side = math.sqrt(n)
    each = us["length normalization"] + us["sum for training, no matrix"] + us["cohort, score model"]
    steps = {"embeddings": 2 * side * each * 1e3, "EM": costs["seconds of training"] * 1e9}
    memory = 0.3e9 + 2 * side * (NAME + 2 * DIM * BYTES)
    return row("", "embeddings: fit, no matrix", steps, 0.0, memory, 2 * side * DIM * BYTES)


def row(scores: str, job: str, steps: dict[str, float], moved: float, memory: float, disk: float) -> str:
    """One line: nanoseconds of each step on one core, bytes through the disk, bytes in memory and on disk."""
    seconds = 1e-9 * sum(steps.values())
    machines = max(1, math.ceil(max(seconds / CORES, moved / DISK) / (3600 * HOURS)))
    if job.endswith("no matrix"):
        machines, clock = 1, seconds  # on one core
    else:
        clock = max(seconds / CORES, moved / DISK) / machines
    bottleneck = "disk" if moved / DISK > seconds / CORES else max(steps, key=lambda name: steps[name])
    if memory * (1 if job.endswith("no matrix") else CORES) > MEMORY:
        bottleneck += ", memory"
    cells = (scores, job, span(seconds), f"{machines:,}", span(clock), size(memory), size(disk), bottleneck)
    return f"| {' | '.join(cells)} |"


def span(seconds: float) -> str:
    """Return a time in a unit that fits."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s" if seconds >= 1 else "< 1 s"


def size(nbytes: float) -> str:
    """Return a number of bytes in a unit that fits."""
    for unit, length in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if nbytes >= length:
            return f"{nbytes / length:.2g} {unit}" if nbytes < 100 * length else f"{nbytes / length:.0f} {unit}"
    return f"{nbytes / 1e3:.0f} kB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
