"""Accuracy of every method on real scores: speaker-disjoint halves, both directions, several splits.

Embeddings come from npz files with ``embeddings``, ``ids`` and ``speakers``; a column of phrases makes one matrix per
phrase. One half of the speakers trains everything and is the cohort, the other half is judged, then they change places.
Enrolments are the mean of a speaker's first takes; vectors are centred on the training half's mean; scores are cosines.
Nothing is ever chosen on the judged half, but for one thing: methods are compared with the classical norm, followed by
logistic calibration, that happens to be best there. The scores that come with evenscore are always judged, too.
Training trials are centred without their own two speakers, as judged trials are (--center self: on all of them).

    python benchmarks/accuracy.py --data DIRECTORY_OR_FILES [--seeds 0 1] [--replicates 200] [--output DIRECTORY]

With --training-speakers 8 15 30, so many speakers of the training half, drawn at random (--draws times), train
everything and are the cohort; the judged half stays whole. A further figure shows Cllr over their number.

With --records, nothing is run: what earlier runs wrote (accuracy.json) is joined into one set of tables and figures.

Without --data, the variable EVENSCORE_DATA names the directory.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_data import files_of, read
from accuracy_figures import draw, draw_speakers
from accuracy_settings import CENTERS, LEAST, Setting, embedding_settings, shipped_settings
from evenscore import (
    EvenscoreError,
    LabelledBlocks,
    LogisticCalibration,
    SaturatingCalibration,
    bootstrap,
    evaluate,
    fit_norm,
    paired_test,
)

CLASSICAL = ("raw", "z", "t", "zt", "tz", "s", "as", "as20")
METHODS = (*CLASSICAL, "s+sat", "lgsm", "lgsm+log", "evidence")
OPTIONS: dict[str, dict[str, Any]] = {"as": {"top_k": 300, "excess": "clip"}, "as20": {"top_k": 0.2}}
OPTIONS |= {"gauss": {"residuals": "gaussian"}}
NORMS = {"as20": "as", "gauss": "lgsm"}  # where a method has another name than its norm
#: What is aimed at, relative to the classical norm that happens to be best in a setting.
BARS = {"mean of ratios": 0.90, "ratio of means": 0.93, "worst ratio": 1.03, "(Cllr - minCllr) / Cllr": 0.15}
METRICS = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")


def values_of(tables: Sequence[Any]) -> np.ndarray:
    return np.concatenate([np.asarray(table.scores, dtype=float).reshape(-1) for table in tables])


def speakers_of(parts: Sequence[LabelledBlocks]) -> tuple[np.ndarray, np.ndarray]:
    """Return the speakers of both sides of all trials."""
    grids = [
        np.meshgrid(part.blocks.enroll_speakers.astype(str), part.blocks.test_speakers.astype(str), indexing="ij")
        for part in parts
    ]
    return tuple(np.concatenate([grid[side].reshape(-1) for grid in grids]) for side in (0, 1))


def llrs_of(method: str, setting: Setting, known: dict[str, Any]) -> np.ndarray:
    """Train a method on the training half, and return the log-likelihood ratios of the judged trials."""
    norm, _, after = method.partition("+")
    if norm not in known:
        fitted = fit_norm(NORMS.get(norm, norm), setting.training, **OPTIONS.get(norm, {}))
        judged = values_of([fitted.normalizer.normalize(part.blocks) for part in setting.evaluation])
        known[norm] = fitted, values_of(fitted.training_scores), judged
    fitted, trained, judged = known[norm]
    if fitted.is_llr and not after:
        return judged
    key = np.concatenate([part.labels.matrix.reshape(-1) for part in setting.training])
    if after == "sat":
        enroll, test = speakers_of(setting.training)
        return SaturatingCalibration.fit(trained, key, enroll_speakers=enroll, test_speakers=test)(judged)
    return LogisticCalibration.fit(trained, key, l2=1e-8)(judged)


def judged(setting: Setting, methods: Sequence[str], replicates: int) -> list[dict[str, Any]]:
    """Return a record for each method: metrics, intervals, and the difference to the best classical norm."""
    key = np.concatenate([part.labels.matrix.reshape(-1) for part in setting.evaluation])
    enroll, test = speakers_of(setting.evaluation)
    who = {"enroll_speakers": enroll, "test_speakers": test}
    known: dict[str, Any] = {}
    llrs, seconds = {}, {}
    for method in methods:
        start = time.perf_counter()
        llrs[method] = llrs_of(method, setting, known)
        seconds[method] = time.perf_counter() - start
    figures = {method: evaluate(llr, key) for method, llr in llrs.items()}
    classical = [method for method in methods if method in CLASSICAL]
    best = min(classical, key=lambda method: figures[method]["cllr"])
    records = []
    for method in methods:
        record: dict[str, Any] = {"set": setting.name, "seed": setting.seed, "direction": setting.direction}
        record |= {"training_speakers": setting.training_speakers, "draw": setting.draw, "center": setting.center}
        record |= {"method": method, "best_classical": best, "seconds": round(seconds[method], 2)}
        record |= {name: float(figures[method][name]) for name in METRICS}
        record["ratio"] = record["cllr"] / float(figures[best]["cllr"])
        if replicates:
            drawn = bootstrap(llrs[method], key, **who, replicates=replicates)
            for name in METRICS:
                interval = drawn.interval(name)
                record[f"{name}_low"], record[f"{name}_high"] = float(interval.low), float(interval.high)
            pair = paired_test(llrs[method], llrs[best], key, **who, metric="cllr", replicates=replicates)
            record["difference"] = float(pair.difference)
            record["difference_low"], record["difference_high"] = float(pair.interval.low), float(pair.interval.high)
        records.append(record)
    return records


def mean_of(records: Sequence[dict[str, Any]], value: str, **which: Any) -> float:
    found = [row[value] for row in records if all(row[name] == wanted for name, wanted in which.items())]
    return float(np.mean(found))


def summary(records: Sequence[dict[str, Any]], methods: Sequence[str]) -> str:
    """Return the tables in Markdown: mean Cllr by set and method, and what the bar asks for."""
    sets = list(dict.fromkeys(row["set"] for row in records))
    lines = ["| mean Cllr | settings | best classical | " + " | ".join(methods) + " |"]
    lines.append("|---" * (len(methods) + 3) + "|")
    for name in sets:
        rows = [row for row in records if row["set"] == name]
        settings = {(row["seed"], row["direction"], row["draw"]) for row in rows}
        cells = [mean_of(rows, "cllr", method=method) for method in methods]
        best = float(np.mean([row["cllr"] for row in rows if row["method"] == row["best_classical"]]))
        texts = [f"**{cell:.4f}**" if cell == min(cells) else f"{cell:.4f}" for cell in cells]
        lines.append(f"| {name} | {len(settings)} | {best:.4f} | " + " | ".join(texts) + " |")
    names = "mean Cllr to best classical | worst setting | best setting | (Cllr - minCllr) / Cllr | EER | actDCF"
    lines += ["", f"| method | {names} |"]
    lines.append("|---" * 7 + "|")
    for method in methods:
        rows = [row for row in records if row["method"] == method]
        ratios = [row["ratio"] for row in rows]
        by_set = np.mean([np.mean([row["ratio"] for row in rows if row["set"] == name]) for name in sets])
        loss = np.mean([1 - row["min_cllr"] / row["cllr"] for row in rows])
        rates = f"{100 * np.mean([row['eer'] for row in rows]):.2f} % | {np.mean([row['act_dcf'] for row in rows]):.3f}"
        lines.append(
            f"| {method} | {by_set:.3f} | {max(ratios):.3f} | {min(ratios):.3f} | {100 * loss:.0f} % | {rates} |"
        )
    return "\n".join([*lines, "", *bars(records, methods)]) + "\n"


def bars(records: Sequence[dict[str, Any]], methods: Sequence[str]) -> list[str]:
    """Return a table of the four figures that `BARS` are set for, over all settings, of every method."""
    lines = ["| over all settings | " + " | ".join(BARS) + " |", "|---" * (len(BARS) + 1) + "|"]
    best = np.mean([row["cllr"] for row in records if row["method"] == row["best_classical"]])
    for method in methods:
        rows = [row for row in records if row["method"] == method]
        ratios = np.array([row["ratio"] for row in rows])
        loss = np.mean([1 - row["min_cllr"] / row["cllr"] for row in rows])
        found = ratios.mean(), np.mean([row["cllr"] for row in rows]) / best, ratios.max(), loss
        cells = [
            f"{value:.3f}{'' if value <= bar else ' (no)'}" for value, bar in zip(found, BARS.values(), strict=True)
        ]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return [*lines, "", f"Bars: {', '.join(f'{name} at most {bar:g}' for name, bar in BARS.items())}."]


def measured(args: argparse.Namespace, parser: argparse.ArgumentParser) -> list[dict[str, Any]]:
    """Judge all methods in all settings."""
    if not args.data:
        print("no --data and no EVENSCORE_DATA: only the scores that come with evenscore are judged")
    records: list[dict[str, Any]] = []
    paths = files_of(args.data)
    known = {name for path in paths for name in read(path)}  # what is wrong is better told now than after an hour
    for name in (args.phrase_column, args.take_column):
        if paths and name not in (None, "-", *known):
            parser.error(f"no file has a column {name!r}; there are {', '.join(sorted(known))}")
    sources: list[Iterator[Setting]] = [embedding_settings(path, args) for path in paths]
    for source in (*sources, shipped_settings(args)):
        for setting in source:
            records += judged(setting, args.methods, args.replicates)
            rows = records[-len(args.methods) :]
            texts = " ".join(f"{row['method']} {row['cllr']:.4f}" for row in rows)
            print(f"{setting.name} seed {setting.seed} {setting.direction}: {texts}", flush=True)
    return records


def joined(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Return the records of several runs; what was judged twice, such as the shipped scores, counts once."""
    names = ("set", "seed", "direction", "training_speakers", "draw", "center", "method")
    found = [row for path in paths for row in json.loads(path.read_text(encoding="utf-8"))]
    return list({tuple(row[name] for name in names): row for row in found}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = [os.environ["EVENSCORE_DATA"]] if os.environ.get("EVENSCORE_DATA") else []
    parser.add_argument("--data", nargs="*", default=default, help="directories and npz files of embeddings")
    parser.add_argument("--phrase-column", help="column of phrases; guessed if not given, '-' for none")
    parser.add_argument("--take-column", help="column that orders the takes of a speaker; guessed if not given")
    parser.add_argument("--enroll-takes", type=int, help="takes of an enrolment; 3 with phrases, else 1")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1], help="of the splits of speakers")
    parser.add_argument(
        "--training-speakers", type=int, nargs="+", help="how many speakers of the training half to use; all by default"
    )
    parser.add_argument("--draws", type=int, default=1, help="of training speakers, in each split and direction")
    parser.add_argument(
        "--center",
        choices=CENTERS,
        nargs="+",
        default=["left-out"],
        help="of training trials: on the mean without the trial's two speakers (left-out), or that of all training "
        "speakers (self); with left-out-cohort, cohort scores of judged trials are centred without the cohort member's "
        "speaker, too; corrected: as self, and mended from the scores alone",
    )
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help=f"of {', '.join(METHODS)}, and others")
    parser.add_argument("--replicates", type=int, default=200, help="of the bootstrap over speakers; 0 for none")
    parser.add_argument("--records", nargs="+", type=Path, help="accuracy.json of earlier runs, to be joined")
    parser.add_argument("--output", default="accuracy-results", help="directory of tables and figure")
    args = parser.parse_args()
    if not any(method in CLASSICAL for method in args.methods):
        parser.error("name at least one classical norm, which the others are compared with")
    if min(args.training_speakers or [LEAST]) < LEAST or args.draws < 1:
        parser.error(f"give at least {LEAST} training speakers and 1 draw")
    records = joined(args.records) if args.records else measured(args, parser)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    methods = [method for method in args.methods if any(row["method"] == method for row in records)]
    table = summary(records, methods)
    (folder / "accuracy.md").write_text(table, encoding="utf-8")
    (folder / "accuracy.json").write_text(json.dumps(records, indent=1), encoding="utf-8")
    with (folder / "accuracy.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    draw(records, methods, folder / "accuracy.svg")
    if any(", " in row["set"] for row in records):
        draw_speakers(records, methods, folder / "accuracy_speakers.svg")
    print(table)


if __name__ == "__main__":
    try:
        main()
    except EvenscoreError as error:
        raise SystemExit(f"error: {error}") from None
