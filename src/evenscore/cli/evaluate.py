"""``evenscore evaluate``: how good scores are, and how sure that is."""

from __future__ import annotations

import json as json_format
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from evenscore.cli.options import Json, MemoryLimit, Scheduler, Workers, file_option, operating_point
from evenscore.errors import FileError, InputError

if TYPE_CHECKING:
    from evenscore.data.trial_list import TrialList
    from evenscore.files import Metadata
    from evenscore.metrics import SpoofCosts

__all__ = ["EXAMPLES", "evaluate"]

EXAMPLES = """
evenscore evaluate eval.scores --key eval.trials
evenscore evaluate eval.scores --key eval.trials --bootstrap 1000 --at-far 0.001
evenscore evaluate raw llr --key k --points 0.01 --points 0.05,10,1
evenscore evaluate e.scores --key k --metadata meta.csv --by enroll:gender
evenscore evaluate eval.zarr --speakers utt2spk --workers 4
"""
_LISTED, _MOST = 1 << 24, 200_000_000  # pairs up to which a matrix is, or can be, evaluated as a list of trials
Figures = dict[str, Any]


def evaluate(
    scores: Annotated[list[str], typer.Argument(metavar="SCORES...", help="Score files, one per system.")],
    key: Annotated[str | None, file_option("Labels of the trials.", "--key", "-k")] = None,
    points: Annotated[list[str] | None, typer.Option(metavar="P[,C_MISS,C_FA]", help="Priors and costs.")] = None,
    bootstrap: Annotated[int | None, typer.Option(min=1, metavar="N", help="Intervals from N draws.")] = None,
    at_far: Annotated[float | None, typer.Option(metavar="RATE", help="Threshold at a false-alarm rate.")] = None,
    eer: Annotated[str, typer.Option(metavar="METHOD", help="Or interpolated, nearest-mean, ...")] = "rocch",
    normalize: Annotated[bool, typer.Option(show_default=False, help="Divide costs by the trivial cost.")] = True,
    by: Annotated[list[str] | None, typer.Option(metavar="SIDE:COLUMN", help="SIDE: enroll, test, pair, same.")] = None,
    metadata: Annotated[str | None, file_option("Table with the columns of --by; else the key.")] = None,
    equalize: Annotated[bool, typer.Option("--equalize", help="Conditions of --by have equal weight.")] = False,
    preset: Annotated[str | None, typer.Option(help="Score as NIST: sre16, sre18, sre19, sre21, ...")] = None,
    spoof: Annotated[str | None, typer.Option(metavar="COSTS", help="a-DCF: asvspoof5, a-dcf or 6 numbers.")] = None,
    forensic: Annotated[bool, typer.Option("--forensic", help="devPAV, and bounds (ELUB) of the LLRs.")] = False,
    speakers: Annotated[str | None, file_option("Speakers by id: labels, if there is no key.")] = None,
    test_speakers: Annotated[str | None, file_option("The same for tests; else --speakers.")] = None,
    unmatched: Annotated[Literal["error", "drop"], typer.Option(help="Trials that the key lacks.")] = "error",
    json: Json = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Measure scores with a key: EER, detection costs, Cllr, by condition, with intervals.

    actDCF and Cllr take scores for natural-log LLRs. Without maps, ids that target trials connect are of one speaker.
    """
    from evenscore.cli.inputs import facts_of_ids
    from evenscore.files import read_metadata
    from evenscore.large import cluster
    from evenscore.metrics import NIST_PRESETS

    if (preset or spoof) and (points or by or equalize or bootstrap or not normalize):
        raise InputError("--preset and --spoof define how trials are scored; leave out other options of scoring")
    if equalize and len(by or ()) != 1:
        raise InputError("--equalize weighs the conditions of one column; give one --by")
    if preset and preset not in NIST_PRESETS:
        raise InputError(f"--preset is {preset!r}, but must be one of {', '.join(NIST_PRESETS)}")
    places = tuple(map(operating_point, map(str, NIST_PRESETS[preset].points) if preset else points or ["0.01"]))
    divided, file = by or (preset and NIST_PRESETS[preset].partitions), metadata or key
    if divided and file is None:
        raise InputError("--by and --preset need a table with columns about the trials; give --metadata")
    columns = read_metadata(file) if divided and file else None
    maps = facts_of_ids(speakers, None), facts_of_ids(test_speakers or speakers, None)
    how: Figures = {"points": places, "eer_method": "interpolated" if preset else eer, "normalize": normalize}
    more: Figures = {"by": by or (), "equalize": equalize, "preset": preset, "forensic": forensic, "at_far": at_far}
    more |= {"replicates": bootstrap, "spoof": spoof and _spoof_costs(spoof)}
    listed = any((spoof, preset, bootstrap, forensic, equalize, eer not in ("rocch", "interpolated")))
    found: list[Figures] = []
    with cluster(workers, scheduler, memory_limit):
        for path in scores:
            try:
                table, labels = _read(path, key, maps, unmatched, listed)
                figures = _measure(table, labels, columns, how, more)
            except InputError as error:
                raise FileError(path, str(error).replace("unmatched='drop'", "--unmatched drop")) from None
            found.append({"scores": path, "eer_method": how["eer_method"], **figures})
    if json:
        results = found[0] if len(found) == 1 else {"systems": found}
        plain = json_format.loads(json_format.dumps(results), parse_constant=str)  # JSON has no infinite numbers
        typer.echo(json_format.dumps(plain, indent=2))
    else:
        typer.echo("\n".join(_lines(found, how)))


def _read(path: str, key: str | None, maps: Any, unmatched: Any, listed: bool) -> tuple[Any, TrialList | None]:
    """Read labelled scores: a list with labels, or a large matrix and its key (None: labels by speakers)."""
    from evenscore.cli.inputs import warn_self_pairs
    from evenscore.files import read_scores, read_trials
    from evenscore.metrics.points import labelled_list

    table: Any = read_scores(path, infinite="accept")
    table = table.with_sides(maps[0](table.enroll), maps[1](table.test))
    labels = None if key is None else read_trials(key, infinite="accept")
    if labels is None and table.enroll.speakers is None and getattr(table, "labels", None) is None:
        raise InputError("the scores have no labels; give --key or --speakers")
    if table.scores.size > (_MOST if listed else _LISTED) and table.cols is None:
        if listed:
            raise InputError(f"these options need all trials in memory, but there are {table.scores.size}")
        if unmatched == "drop" and labels is not None:
            rows, cols = labels.enroll.find(table.enroll.ids) >= 0, labels.test.find(table.test.ids) >= 0
            table = table.take(np.flatnonzero(rows), np.flatnonzero(cols))
        return table, labels
    trials = table.to_trials()
    trials = labelled_list(trials, None) if labels is None else trials.join(labels, unmatched=unmatched)
    warn_self_pairs(trials)
    return trials, None


def _measure(table: Any, labels: TrialList | None, columns: Metadata | None, how: Figures, more: Figures) -> Figures:
    """Return the figures of one system: ``pooled`` and ``conditions``, by column and value."""
    from evenscore import metrics

    if more["spoof"]:
        classes = np.array(["nontarget", "target", "spoof"])[table.labels]  # a label of -1 is the last
        method = how["eer_method"]
        return asdict(metrics.evaluate_spoofing(table.scores, classes, costs=more["spoof"], eer_method=method))
    conditions, pooled, at_far, replicates = {}, {}, more["at_far"], more["replicates"]
    for column in more["by"]:
        values = _conditions(table, columns, column)
        found = metrics.evaluate_by(table, labels, conditions=values, equalize=more["equalize"], **how).to_dict()
        pooled, conditions[column] = found["pooled"], found["conditions"]
    if more["preset"]:
        known = {name: _conditions(table, columns, name) for name in metrics.NIST_PRESETS[more["preset"]].partitions}
        found = metrics.evaluate_nist(table, preset=more["preset"], columns=known).to_dict()
        pooled, conditions = found["pooled"], {"partition": found["conditions"]} if known else {}
    pooled = pooled or metrics.evaluate(table, labels, **how).to_dict() | {"equalized": False}
    if table.cols is not None:
        pooled["n_unknown"] = int(np.count_nonzero(table.labels < 0))
    if more["forensic"]:
        pooled |= {"dev_pav": metrics.dev_pav(table), "llr_bounds": list(metrics.llr_bounds(table))}
    if at_far is not None:
        pooled["at_far"] = {"rate": at_far, **asdict(metrics.miss_rate_at(table, labels, p_fa=at_far))}
    if replicates:
        if table.enroll.speakers is None or table.test.speakers is None:
            speakers = metrics.speakers_from_targets([table])
            table = table.with_speakers(speakers, speakers)
        draws = {"points": how["points"], "normalize": how["normalize"], "replicates": replicates}
        pooled["intervals"] = metrics.bootstrap(table, **draws).to_dict()
        if at_far is not None:
            band = metrics.bootstrap_det(table, p_fa=[at_far], replicates=replicates)
            pooled["at_far"]["interval"] = [float(band.low[0]), float(band.high[0])]
    return {"pooled": pooled, "conditions": conditions} if conditions else {"pooled": pooled}


def _spoof_costs(text: str) -> SpoofCosts:
    from evenscore.metrics import SPOOF_COSTS, SpoofCosts

    try:
        return SPOOF_COSTS[text] if text in SPOOF_COSTS else SpoofCosts(*map(float, text.split(",")))
    except (TypeError, ValueError):
        numbers = "three priors and three costs (targets, non-targets, spoofs), which are above 0"
        raise InputError(f"--spoof is {text!r}, but must be {', '.join(SPOOF_COSTS)}, or {numbers}") from None


def _conditions(table: Any, columns: Any, asked: str) -> Any:
    """Return the condition of each trial; of a matrix, an array that can be broadcast to its shape."""
    from evenscore.data.trial_list import TrialList

    which, colon, name = asked.partition(":")
    which, name = (which, name) if colon and asked not in columns.columns else ("", asked)
    if name not in columns.columns or which not in ("", "enroll", "test", "pair", "same"):
        raise FileError(columns.path, f"there is no column {asked!r}; it has {', '.join(columns.columns)}")
    if len(columns.ids) == 2:
        at = table.find(TrialList(*(columns.columns[one] for one in columns.ids)))
        if (at < 0).any():
            raise FileError(columns.path, f"it has no row for the trial {table.pair(int(np.argmin(at)))}; add it")
        return np.array(columns.columns[name])[at]
    known = columns.by_id(name)
    enroll, test = ([known.get(one) for one in side.ids.tolist()] for side in (table.enroll, table.test))
    which = which or columns.side or ("test" if None in enroll else "enroll" if None in test else "")
    if not which:
        raise FileError(columns.path, f"{name!r} is known of both sides; give enroll:{name} or test:{name}")
    for side, values, other in ((table.enroll, enroll, "test"), (table.test, test, "enroll")):
        if None in values and which != other:
            raise FileError(columns.path, f"it has no row for {side.ids[values.index(None)]!r}; add it")
    rows, cols = ((slice(None), None), (None, slice(None))) if table.cols is None else (table.rows, table.cols)
    of_enroll, of_test = np.array(enroll, str)[rows], np.array(test, str)[cols]
    if which in ("enroll", "test"):
        return of_enroll if which == "enroll" else of_test
    if which == "same":
        return np.where(of_enroll == of_test, "same", "different")
    return np.char.add(np.char.add(of_enroll, "-"), of_test)


def _cells(figures: Figures, names: list[str]) -> list[str]:
    """Return figures as text: numbers, intervals of two ends, or nothing where a figure is absent."""
    cells = []
    for name in names:
        place, _, cost = name.partition(":")
        value = figures.get(name) if not cost else figures["dcf"][int(place)][cost] if "dcf" in figures else None
        ends = value if isinstance(value, list) else [] if value is None else [value]
        form = "{:d}" if name.startswith("n_") else "{:.3f}"
        shown = [f"{100 * end:.2f}" if name.endswith("eer") else form.format(end) for end in ends]
        cells.append("..".join(shown) or ("" if name.startswith("n_") else "-"))
    return cells


def _lines(found: list[Figures], how: Figures) -> list[str]:
    """Return the table that people read, and what must be said about it."""
    titles = {"eer": "EER %"}
    for place, point in enumerate(how["points"]):
        mark = f" {point.name}" if len(how["points"]) > 1 else ""
        titles |= {f"{place}:min_dcf": f"minDCF{mark}", f"{place}:act_dcf": f"actDCF{mark}"}
    if len(how["points"]) > 1:
        titles |= {"min_c_primary": "minCprim", "act_c_primary": "actCprim"}
    titles |= {"min_cllr": "minCllr", "cllr": "Cllr", "n_target": "targets", "n_nontarget": "non-targets"}
    if "sasv_eer" in found[0]:
        titles = {name: name.replace("_", " ") for name in found[0] if name not in ("scores", "eer_method")}
    rows, notes = [["", *titles.values()]], []
    for one in found:
        pooled, name = one.get("pooled", one), one["scores"]
        rows.append([name, *_cells(pooled, list(titles))])
        if "intervals" in pooled:
            rows.append(["  95 %", *_cells(pooled["intervals"], list(titles))])
        for column, values in one.get("conditions", {}).items():
            rows += [[f"  {column} = {value}", *_cells(part, list(titles))] for value, part in values.items()]
        notes += _notes(f"{name}: " if len(found) > 1 else "", pooled, how) if pooled is not one else []
    if "sasv_eer" not in found[0]:
        points = "; ".join(f"p_target {at.p_target:g}, c_miss {at.c_miss:g}, c_fa {at.c_fa:g}" for at in how["points"])
        unit = "" if how["normalize"] else ", not normalized"
        notes.insert(0, f"DCF at {points}{unit}; EER by {how['eer_method']}")
    first, *widths = (max(map(len, column)) + 3 for column in zip(*rows, strict=True))
    cells = [[f"{cell:>{width}}" for cell, width in zip(row[1:], widths, strict=True)] for row in rows]
    table = [f"{row[0]:{first - 3}}" + "".join(line) for row, line in zip(rows, cells, strict=True)]
    return [line.rstrip() for line in [table[0], "─" * len(table[0]), *table[1:], *notes]]


def _notes(name: str, pooled: Figures, how: Figures) -> list[str]:
    """Return sentences about one system."""
    lines = [f"{name}EER threshold {pooled['eer_threshold']:.4g}, AUC {pooled['auc']:.4f}"]
    if pooled["auc"] < 0.5:
        lines.append(f"{name}targets score below non-targets: are these distances, or are the labels swapped?")
    for point, cost in zip(how["points"], pooled["dcf"], strict=True):
        if cost["act_dcf"] > 1.2 * cost["min_dcf"]:
            remedy = f"evenscore calibrate --calibration logistic:p_target={point.weights[0] / sum(point.weights):.3g}"
            lines.append(f"{name}actDCF {point.name} is far above minDCF: calibrate the scores ({remedy})")
    if at := pooled.get("at_far"):
        ends = "..".join(f"{100 * end:.2f}" for end in at.get("interval", ()))
        rates = f"threshold {at['threshold']:.6g}, miss rate {100 * at['p_miss']:.2f} %{ends and f' ({ends})'}"
        lines.append(f"{name}at a false-alarm rate of {at['rate']:g}: {rates}")
    if "dev_pav" in pooled:
        low, high = pooled["llr_bounds"]
        lines.append(f"{name}devPAV {pooled['dev_pav']:.4f}; the trials support LLRs from {low:.2f} to {high:.2f}")
    if pooled.get("n_unknown"):
        lines.append(f"{name}{pooled['n_unknown']} trials of unknown class were left out")
    if drawn := pooled.get("intervals"):
        lines.append(f"{name}intervals from {drawn['replicates']} draws of {drawn['n_speakers']} speakers")
    return lines
