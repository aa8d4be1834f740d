"""The results of the experiment as tables: rows for CSV and JSON, Markdown for people."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any

from recipes.theory.bounds import Bound
from recipes.theory.breaks import BREAKS
from recipes.theory.calibration import Checked
from recipes.theory.dependence import QUESTIONS, Question
from recipes.theory.dependence_example import CASES, cohort_information
from recipes.theory.ideal import (
    COMPARED,
    GAUSSIAN,
    METRICS,
    ORACLE,
    REFERENCE,
    SCORE_MODEL,
    SYSTEMS,
    Estimate,
    Ideal,
    Level,
)

__all__ = [
    "TITLES",
    "as_csv",
    "as_json",
    "bounds_table",
    "broken_tables",
    "calibration_table",
    "dependence_table",
    "growth_table",
    "information_table",
    "killer_table",
    "rows_of",
    "tables_of",
]

#: What the systems are called in tables and figures.
TITLES = {
    "raw, uncalibrated": "raw, as it comes",
    "raw": "raw",
    "z": "Z-norm",
    "t": "T-norm",
    "zt": "ZT-norm",
    "s": "S-norm",
    "as": "AS-norm",
    GAUSSIAN: "LGSM, D = 0",
    SCORE_MODEL: "LGSM",
    f"{GAUSSIAN}, uncalibrated": "LGSM, D = 0, as it comes",
    f"{SCORE_MODEL}, uncalibrated": "LGSM, as it comes",
    ORACLE: "true parameters",
}
_METRIC_TITLES = {"eer": "EER, %", "min_dcf": "min DCF", "cllr": "Cllr", "min_cllr": "min Cllr"}


def rows_of(ideal: Ideal) -> list[dict[str, Any]]:
    """Return one row for each break, level, system and metric: the value, the difference to raw, both with interval."""
    return [
        {"break": name, "level": level.name, "system": system, "metric": metric}
        | _ends("", level.values[system][metric])
        | _ends("difference", level.differences[system][metric])
        for name, level in _levels(ideal)
        for system in (*SYSTEMS, ORACLE)
        for metric in METRICS
    ]


def _levels(ideal: Ideal) -> list[tuple[str, Level]]:
    broken = [(name, level) for name, found in ideal.broken.items() for level in found]
    return [("none", ideal.killer), *broken]


def _ends(name: str, estimate: Estimate) -> dict[str, float]:
    first, rest = (name, f"{name}_") if name else ("value", "")
    return {first: estimate.value, f"{rest}low": estimate.low, f"{rest}high": estimate.high}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with a header.

    Examples
    --------
    >>> print(as_csv([{"system": "raw", "value": 0.25}]))
    system,value
    raw,0.25
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def as_json(ideal: Ideal, checked: Mapping[str, Checked]) -> dict[str, Any]:
    """Return all results as plain numbers and lists; what is not a number or infinite is None."""
    questions = [
        {"graph": q.graph, "a": q.a, "b": list(q.b), "given": list(q.given), "dependent": q.dependent, "path": q.path}
        for q in QUESTIONS
    ]
    return {
        "seeds": list(ideal.seeds),
        "speakers": {"development": ideal.sizes.development, "evaluation": ideal.sizes.evaluation},
        "dependence": questions,
        "information": {case.name: cohort_information(case) for case in CASES},
        "norms": [{key: _finite(value) for key, value in row.items()} for row in rows_of(ideal)],
        "norm_effect": [
            {"break": name, "level": level.name, "metric": metric}
            | {key: _finite(value) for key, value in _ends("", effect).items()}
            for name, level in _levels(ideal)
            for metric, effect in level.norm_effect.items()
        ],
        "bounds": {
            **{
                name: {system: [vars(bound) for bound in found] for system, found in systems.items()}
                for name, systems in ideal.bounds.items()
            },
            **{name: {system: [vars(b)] for system, b in scores.bounds.items()} for name, scores in checked.items()},
        },
        "calibration": {
            name: {
                system: {key: _finite(value) for key, value in found.items()}
                for system, found in scores.summary().items()
            }
            for name, scores in checked.items()
        },
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def tables_of(ideal: Ideal, checked: Mapping[str, Checked]) -> dict[str, str]:
    """Return all tables in Markdown, by name of file."""
    return {
        "dependence": dependence_table(),
        "information": information_table(),
        "killer": killer_table(ideal),
        **{f"broken-{name}": table for name, table in broken_tables(ideal).items()},
        "growth": growth_table(ideal),
        "bounds": bounds_table(ideal, checked),
        "calibration": calibration_table(checked),
    }


def killer_table(ideal: Ideal) -> str:
    """Return the Markdown table of the systems on ideal scores, and how they differ from raw ones."""
    header = ["", *(f"{title} [95 %]" for title in _METRIC_TITLES.values()), "EER - raw [95 %]", "Cllr - raw [95 %]"]
    level = ideal.killer
    rows = [
        [
            TITLES[name],
            *(_with_interval(level.values[name][metric], metric) for metric in METRICS),
            *(_with_interval(level.differences[name][metric], metric, "+") for metric in ("eer", "cllr")),
        ]
        for name in SYSTEMS
    ]
    return _markdown(header, rows)


def broken_tables(ideal: Ideal, metric: str = "cllr") -> dict[str, str]:
    """Return a Markdown table for each break: raw and oracle, and what each norm adds to raw, over the levels."""
    return {name: _broken_table(name, levels, metric) for name, levels in ideal.broken.items()}


def _broken_table(name: str, levels: Sequence[Level], metric: str) -> str:
    header = [BREAKS[name].scale, TITLES[REFERENCE], TITLES[ORACLE], *(TITLES[norm] for norm in COMPARED)]
    header.append("of the loss, S / LGSM win back")
    rows = []
    for level in levels:
        row = [level.name, *(_number(level.values[system][metric].value, metric) for system in (REFERENCE, ORACLE))]
        row += [_change(level.differences[norm][metric], metric) for norm in COMPARED]
        shares = [level.recovered(norm, metric) for norm in ("s", SCORE_MODEL)]
        row.append(" / ".join(map(_share, shares)))
        rows.append(row)
    return _markdown(header, rows)


def _share(share: float | None) -> str:
    if share is None:
        return "-"
    return f"{100 * share:.0f} %" if share > 0 else "loses"


def growth_table(ideal: Ideal) -> str:
    """Return the Markdown table of the score model's gain, from ideal scores to the strongest level.

    Over raw scores it is what norm and Gaussians do together, over itself without hidden variables the norm alone.
    """
    most = max((len(levels) for levels in ideal.broken.values()), default=0)
    rows = []
    for name, levels in ideal.broken.items():
        for metric, unit in (("eer", "EER, % points"), ("cllr", "Cllr")):
            losses = {
                TITLES[REFERENCE]: [level.differences[SCORE_MODEL][metric] for level in levels],
                "D = 0": [level.norm_effect[metric] for level in levels],
            }
            for over, found in losses.items():
                gains = [_plus_minus(loss.negative, metric) for loss in found]
                rows.append([BREAKS[name].assumption, unit, over, *gains, *[""] * (most - len(gains))])
    return _markdown(["broken assumption", "gain in", "over", "ideal", *map(str, range(1, most))], rows)


def dependence_table(questions: Sequence[Question] = QUESTIONS) -> str:
    """Return the Markdown table of what depends on what.

    Examples
    --------
    >>> print(dependence_table([Question("score", "h", ("S_t",), ("s", "pi"))]))
    | graph | h and ... | given | dependent | along |
    | --- | --- | --- | --- | --- |
    | score | S_t | s, pi | yes | `h -> t -> S_t` |
    """
    rows = [
        [
            question.graph,
            ", ".join(question.b) if question.a == "h" else f"({question.a}) {', '.join(question.b)}",
            ", ".join(question.given),
            "yes" if question.dependent else "no",
            "" if question.path is None else f"`{question.path}`",
        ]
        for question in questions
    ]
    return _markdown(["graph", "h and ...", "given", "dependent", "along"], rows)


def information_table() -> str:
    """Return the Markdown table of what cohort scores tell in the small world, in thousandths of a bit."""
    found = {case.name: cohort_information(case) for case in CASES}
    names = list(next(iter(found.values())))
    unit = 1000 / math.log(2)
    rows = [[case, *(f"{abs(unit * values[name]):.3f}" for name in names)] for case, values in found.items()]
    return _markdown(["", *names], rows)


def calibration_table(checked: Mapping[str, Checked]) -> str:
    """Return the Markdown table of Cllr, min Cllr and the worst gap of the Bayes error rate."""
    rows = [
        [
            scores,
            system,
            f"{found['cllr']:.4f}",
            f"{found['min_cllr']:.4f}",
            f"{found['worst_gap']:.3f} at {found['worst_at']:.1f}",
            f"{found['from']:.1f} to {found['to']:.1f}",
        ]
        for scores, check in checked.items()
        for system, found in check.summary().items()
    ]
    header = [
        "scores",
        "system",
        "Cllr",
        "min Cllr",
        "largest gap, at log-odds",
        "log-odds with 30 errors of each kind",
    ]
    return _markdown(header, rows)


def bounds_table(ideal: Ideal, checked: Mapping[str, Checked]) -> str:
    """Return the Markdown table of how far the score model's LLRs go, with a norm and without; ranges over draws."""
    rows = []
    for name, systems in ideal.bounds.items():
        scores = "ideal scores" if name == "none" else f"{BREAKS[name].assumption} ({BREAKS[name].levels[-1]})"
        rows += [[scores, *_bound_cells(TITLES[system], found)] for system, found in systems.items()]
    for scores, check in checked.items():
        rows += [[scores, *_bound_cells(system, [found])] for system, found in check.bounds.items()]
    beyond = ("non-targets beyond, %", "targets beyond, %")
    return _markdown(["scores", "system", "variance, target / non-target", "LLR", *beyond], rows)


def _bound_cells(system: str, found: Sequence[Bound]) -> list[str]:
    kinds = {"floor" if bound.ratio > 1 else "ceiling" for bound in found}
    ends = _range([bound.extreme for bound in found], ".2f")
    shares = [[100 * bound.nontarget for bound in found], [100 * bound.target for bound in found]]
    return [
        system,
        _range([bound.ratio for bound in found], ".2f"),
        f"{' or '.join(sorted(kinds))} {ends}",
        *(_range(share, ".1f") for share in shares),
    ]


def _range(values: Sequence[float], form: str) -> str:
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"


def _number(value: float, metric: str, sign: str = "") -> str:
    return f"{100 * value:{sign}.2f}" if metric == "eer" else f"{value:{sign}.3f}"


def _with_interval(estimate: Estimate, metric: str, sign: str = "") -> str:
    value, low, high = (_number(end, metric, sign) for end in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"


def _plus_minus(estimate: Estimate, metric: str) -> str:
    """Return a value and half its interval."""
    text = _number(estimate.value, metric, "+")
    return f"{text} ± {_number(estimate.high - estimate.value, metric)}" if math.isfinite(estimate.high) else text


def _change(estimate: Estimate, metric: str) -> str:
    """Return the difference of a norm to raw scores; in bold if it gains for sure."""
    text = _plus_minus(estimate, metric)
    return f"**{text}**" if estimate.high < 0 else text


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("|  |", "| |") for line in lines)
