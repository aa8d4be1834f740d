"""The page that tells what the experiment has found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from recipes.theory.breaks import BREAKS
from recipes.theory.calibration import Checked
from recipes.theory.ideal import NORMS, SCORE_MODEL, Ideal
from recipes.theory.tables import (
    TITLES,
    bounds_table,
    broken_tables,
    calibration_table,
    dependence_table,
    growth_table,
    information_table,
    killer_table,
)

__all__ = ["ideal_page", "killer_verdict", "mismatch_verdict"]


def ideal_page(ideal: Ideal, checked: Mapping[str, Checked]) -> str:
    """Return the page in Markdown; figures stand beside it."""
    sizes = ideal.sizes
    parts = [
        "# Where normalization cannot help, and where it can",
        f"Seeds {', '.join(map(str, ideal.seeds))}; {sizes.development} development speakers (cohort, and training set "
        f"of score model and calibration), {sizes.evaluation} evaluation speakers.",
        "## What depends on what",
        "![graphs](dependence.svg)",
        dependence_table(),
        "What cohort scores tell about the hypothesis in a small world, in thousandths of a bit (all outcomes "
        "enumerated); `score` is what the score itself tells:",
        information_table(),
        "## Ideal scores",
        "![norms on ideal scores](killer.svg)",
        killer_table(ideal),
        "Means over seeds; intervals by resampling speakers.",
        killer_verdict(ideal),
    ]
    if ideal.broken:
        parts += ["## Broken assumptions", "![error](broken.svg)", "![gain](gain.svg)"]
        parts += ["Cllr; norms as differences to raw, with 95 % intervals over seeds; bold if the norm gains."]
        for name, table in broken_tables(ideal).items():
            parts += [f"### {BREAKS[name].assumption.capitalize()}", table, mismatch_verdict(ideal, name) + "."]
        parts += ["### The score model's gain", growth_table(ideal), "### The same in EER (%)"]
        for name, table in broken_tables(ideal, "eer").items():
            parts += [f"{BREAKS[name].assumption.capitalize()}:", table]
    parts += ["## How far the score model's LLRs go", bounds_table(ideal, checked)]
    parts += ["## Calibration", "![Bayes error](calibration.svg)", calibration_table(checked)]
    return "\n\n".join(parts) + "\n"


def killer_verdict(ideal: Ideal) -> str:
    """Say which norms gain on ideal scores, if any does."""
    better: list[str] = []
    same: list[str] = []
    for name in NORMS:
        found = ideal.killer.differences[name]["cllr"]
        (better if found.high < 0 else same if found.covers_zero else []).append(TITLES[name])
    gain = f"{_listed(better)} gain" if better else "No norm gains"
    rest = f"; the difference of {_listed(same)} is within its interval" if same else "; each one loses for sure"
    return f"{gain} over raw scores in Cllr{rest if not better else ''}."


def mismatch_verdict(ideal: Ideal, name: str) -> str:
    """Say which norms gain at the strongest level, and whether the score model's gain grows with every level."""
    levels = ideal.broken[name]
    last = levels[-1].differences
    gaining = [TITLES[norm] for norm in NORMS if last[norm]["cllr"].high < 0]
    found = f"{_listed(gaining)} gain{'' if len(gaining) > 1 else 's'}" if gaining else "no norm gains"
    courses = {
        "in EER (%)": [-100 * level.differences[SCORE_MODEL]["eer"].value for level in levels],
        "in Cllr": [-level.differences[SCORE_MODEL]["cllr"].value for level in levels],
        "in Cllr over D = 0 (the norm alone)": [-level.norm_effect["cllr"].value for level in levels],
    }
    return f"At the strongest level {found} for sure in Cllr. The score model's gain " + "; ".join(
        f"{what} {_course(gains)}" for what, gains in courses.items()
    )


def _course(gains: Sequence[float]) -> str:
    rising = all(after > before for before, after in pairwise(gains))
    how = "grows with every level" if rising else "does not grow with every level"
    return f"{how}: {', '.join(f'{gain:+.3f}' for gain in gains)}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
