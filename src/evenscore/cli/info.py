"""``evenscore info``: what is in files."""

from __future__ import annotations

import json
import sys
import warnings
from typing import Annotated, Any

import numpy as np
import typer

from evenscore.cli.options import file_option
from evenscore.data.trial_list import TrialList
from evenscore.files import read, read_trials, sniff, spooled
from evenscore.large import is_dask

__all__ = ["EXAMPLES", "info"]

EXAMPLES = """
evenscore info dev.scores
evenscore info dev.scores --key dev.trials    # do the two agree?
evenscore info xvector.scp utt2spk dev.h5     # several files
zcat big.gz | evenscore info - --json         # for a program
"""
_CLASSES = {"target": 1, "nontarget": 0, "unknown": -1}


def info(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files of any kind; '-' is standard input.")],
    key: Annotated[str | None, file_option("Labels of the trials.", "--key", "-k")] = None,
    from_format: Annotated[str | None, typer.Option("--from", metavar="FORMAT", help="Format of the files.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is in files: kind and format, sizes, labels, and the range of the scores of each class.

    With --key, it also shows how many trials are only in the scores or only in the key.
    """
    labels = None if key is None else read_trials(key)
    found = []
    for file in files:
        with spooled(file) as local:
            format_name = from_format or sniff(local)
            facts = _facts(read(local, format=format_name), labels)
        found.append({"file": file, "format": format_name, **facts})
    if as_json:
        json.dump(found, sys.stdout, indent=2)
        typer.echo()
        return
    for facts in found:
        typer.echo("\n".join(_lines(facts)))


def _facts(table: Any, key: TrialList | None) -> dict[str, Any]:
    """Return figures of a table by name."""
    kind = getattr(table, "kind", "speakers")
    if kind == "speakers":
        return {"kind": kind, "utterances": len(table), "speakers": len(set(table.values()))}
    if kind == "embeddings":
        known: dict[str, Any] = {} if table.speakers is None else {"speakers": len({*table.speakers.tolist()} - {None})}
        known |= {"type": str(table.vectors.dtype), "lengths": _summary(np.linalg.norm(table.vectors, axis=1))}
        return {"kind": kind, "vectors": len(table), "dimensions": table.dim, **known}
    facts: dict[str, Any] = {"kind": kind, "enrolments": len(table.enroll), "tests": len(table.test)}
    agreement = {}
    if key is not None:
        table = table.to_trials()
        n_trials, table = len(table), table.join(key, unmatched="drop")
        agreement["key"] = {"trials": len(key), "in both": len(table)}
        agreement["key"] |= {"only in file": n_trials - len(table), "only in key": len(key) - len(table)}
    if table.rows is None:
        scores = _summary(table.scores)
        facts |= {"trials": scores["count"], "missing": table.scores.size - scores["count"]}
        return {**facts, "type": str(table.scores.dtype), "scores": {"all": scores}}
    facts |= {"trials": len(table), "missing": facts["enrolments"] * facts["tests"] - len(table), **agreement}
    parts = {"all": np.ones(len(table), bool)}
    if table.labels is not None:
        parts |= {name: table.labels == label for name, label in _CLASSES.items()}
        facts["labels"] = {name: int(parts[name].sum()) for name in _CLASSES}
    if table.scores is None:
        return facts
    facts["scores"] = {name: _summary(table.scores[part]) for name, part in parts.items() if part.any()}
    if {"target", "nontarget"} <= facts["scores"].keys():
        means = [facts["scores"][name]["mean"] for name in ("target", "nontarget")]
        facts["note"] = "" if means[0] > means[1] else "targets score below non-targets: distances, or swapped labels?"
    return facts


def _summary(values: Any) -> dict[str, float]:
    """Return count, minimum, mean, maximum and standard deviation of what is not NaN, of a dask array in one pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of chunks without scores
        values = values if is_dask(values) or not len(values) else values[~np.isnan(values)]
        if not values.size:
            return {"count": 0}
        figures = [function(values) for function in (np.nanmin, np.nanmean, np.nanmax, np.nanstd)]
        figures.append((values == values).sum())
        if is_dask(values):
            import dask

            figures = list(dask.compute(*figures))
    count = int(figures.pop())
    return {"count": count, **dict(zip(("min", "mean", "max", "std"), map(float, figures), strict=True))}


def _lines(facts: dict[str, Any]) -> list[str]:
    """Return the figures as lines for people."""
    lines = [facts.pop("file")]
    summaries = {"lengths": facts.pop("lengths", None), **facts.pop("scores", {})}
    for name, value in facts.items():
        shown = ", ".join(f"{number} {what}" for what, number in value.items()) if isinstance(value, dict) else value
        lines += [f"  {name:12s}{shown}"] if shown != "" else []
    for name, value in summaries.items():
        if value is not None:
            numbers = "  ".join(f"{what} {number:.5g}" for what, number in value.items())
            lines.append(f"  {name:12s}{numbers}")
    return lines
