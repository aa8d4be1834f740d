"""Accuracy of every method on real scores: speaker-disjoint halves, both directions, several splits.

Embeddings come from npz files with ``embeddings``, ``ids`` and ``speakers``; a column of phrases makes one matrix per
phrase. One half of the speakers trains everything and is the cohort, the other half is judged, then they change places.
Enrolments are the mean of a speaker's first takes; vectors are centred on the training half's mean; scores are cosines.
Nothing is ever chosen on the judged half, but for one thing: methods are compared with the classical norm, followed by
logistic calibration, that happens to be best there. The scores that come with evenscore are always judged, too.

    python benchmarks/accuracy.py --data DIRECTORY_OR_FILES [--seeds 0 1] [--replicates 200] [--output DIRECTORY]

Without --data, the variable EVENSCORE_DATA names the directory.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from accuracy_data import PHRASES, STATUS, TAKES, column, files_of, read
from evenscore import (
    EvenscoreError,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    SaturatingCalibration,
    ScoreBlocks,
    ScoreMatrix,
    bootstrap,
    evaluate,
    fit_norm,
    load_audiomnist_scores,
    paired_test,
)

CLASSICAL = ("raw", "z", "t", "zt", "tz", "s", "as", "as20")
METHODS = (*CLASSICAL, "s+sat", "lgsm", "lgsm+log", "evidence")
OPTIONS: dict[str, dict[str, Any]] = {"as": {"top_k": 300, "excess": "clip"}, "as20": {"top_k": 0.2}}
GOOD = "validated"  # of the clips with a status, which make a set of their own
METRICS = ("eer", "min_dcf", "act_dcf", "cllr", "min_cllr")


@dataclass(frozen=True)
class Setting:
    """One split of one set, in one direction."""

    name: str
    seed: int
    direction: str
    training: list[LabelledBlocks]
    evaluation: list[LabelledBlocks]


@dataclass(frozen=True)
class Side:
    """Enrolments and tests of one phrase, of one half of the speakers."""

    enroll: np.ndarray
    enroll_speakers: list[str]
    test: np.ndarray
    test_speakers: list[str]


def halves(arrays: dict[str, np.ndarray], keep: np.ndarray, chosen: np.ndarray, args: argparse.Namespace) -> list[Side]:
    """Return for each phrase the enrolments and tests of the chosen speakers; who has no test left is only enrolled."""
    phrases = column(arrays, args.phrase_column, PHRASES)
    takes = column(arrays, args.take_column, TAKES)
    speakers = arrays["speakers"].astype(str)
    number = args.enroll_takes or (3 if phrases is not None else 1)
    codes = np.zeros(len(speakers), dtype=int) if phrases is None else np.unique(phrases, return_inverse=True)[1]
    rows, width = np.flatnonzero(keep & np.isin(speakers, chosen)), arrays["embeddings"].shape[1]
    sides = []
    for phrase in np.unique(codes):
        enroll, names, tests, test_names = [], [], [], []
        here = rows[codes[rows] == phrase]
        for speaker in chosen:
            at = here[speakers[here] == speaker]
            at = at if takes is None else at[np.argsort(takes[at], kind="stable")]
            if len(at) < number:
                continue
            enroll.append(arrays["embeddings"][at[:number]].astype(np.float64).mean(axis=0))
            names.append(str(speaker))
            tests.append(arrays["embeddings"][at[number:]].astype(np.float64))
            test_names += [str(speaker)] * (len(at) - number)
        sides.append(Side(np.array(enroll), names, np.concatenate([np.empty((0, width)), *tests]), test_names))
    return sides


def unit(vectors: np.ndarray, center: np.ndarray) -> np.ndarray:
    centred = vectors - center
    return centred / np.linalg.norm(centred, axis=1, keepdims=True)


def matrix(left: np.ndarray, right: np.ndarray, names: tuple[str, str]) -> ScoreMatrix:
    rows, columns = (
        [f"{name}{at}" for at in range(len(side))] for name, side in zip(names, (left, right), strict=True)
    )
    return ScoreMatrix(left @ right.T, rows, columns)


def judged_blocks(scores: ScoreMatrix, enroll: ScoreMatrix, test: ScoreMatrix, own: LabelledBlocks, sides: Any) -> Any:
    """Return trials of one half with the other half as cohort."""
    labels = Labels.from_speakers(*sides, enroll_ids=scores.enroll_ids, test_ids=scores.test_ids)
    blocks = ScoreBlocks(
        scores,
        enroll=enroll,
        test=test,
        cohort=own.blocks.cohort,
        cohort_labels=own.blocks.cohort_labels,
        enroll_speakers=sides[0],
        test_speakers=sides[1],
        cohort_enroll_speakers=own.blocks.cohort_enroll_speakers,
        cohort_test_speakers=own.blocks.cohort_test_speakers,
    )
    return LabelledBlocks(blocks, labels)


def setting_of(
    arrays: dict[str, np.ndarray], keep: np.ndarray, halved: Sequence[np.ndarray], args: argparse.Namespace
) -> tuple[list[LabelledBlocks], list[LabelledBlocks]]:
    """Return training and evaluation blocks: trained on the first half, judged on the second."""
    center = arrays["embeddings"][keep & np.isin(arrays["speakers"].astype(str), halved[0])].mean(axis=0, dtype=float)
    training, evaluation = [], []
    for dev, new in zip(*(halves(arrays, keep, half, args) for half in halved), strict=True):
        if any(len({*side.enroll_speakers}) < 2 or not side.test_speakers for side in (dev, new)):
            continue  # hardly anybody said this phrase often enough
        E, T, E2, T2 = (unit(vectors, center) for vectors in (dev.enroll, dev.test, new.enroll, new.test))
        cohort = matrix(E, T, ("ce", "ct"))
        labels = Labels.from_speakers(
            dev.enroll_speakers, dev.test_speakers, enroll_ids=cohort.enroll_ids, test_ids=cohort.test_ids
        )
        own = LabelledBlocks.own_cohort(cohort, labels)
        trials = matrix(E2, T2, ("e", "t"))
        sides = (new.enroll_speakers, new.test_speakers)
        training.append(own)
        evaluation.append(judged_blocks(trials, matrix(E2, T, ("e", "ct")), matrix(E, T2, ("ce", "t")), own, sides))
    return training, evaluation


def embedding_settings(path: Path, args: argparse.Namespace) -> Iterator[Setting]:
    """Yield all settings of one file; a column of votes makes a set of its own of the clips that are good."""
    arrays = read(path)
    speakers = arrays["speakers"].astype(str)
    views = {path.stem: np.ones(len(speakers), dtype=bool)}
    if STATUS in arrays and (arrays[STATUS] == GOOD).any():
        views[f"{path.stem} ({GOOD})"] = arrays[STATUS] == GOOD
    for name, keep in views.items():
        names = np.unique(speakers[keep])
        for seed in args.seeds:
            order = np.random.default_rng(seed).permutation(len(names))
            half = [names[order[: len(names) // 2]], names[order[len(names) // 2 :]]]
            for direction, halved in (("A to B", half), ("B to A", half[::-1])):
                training, evaluation = setting_of(arrays, keep, halved, args)
                if not training:
                    raise SystemExit(
                        f"{path}: a half of the speakers has fewer than two with enough takes of a phrase "
                        "(--enroll-takes, and one to test); give more speakers or takes, or --enroll-takes 1"
                    )
                yield Setting(name, seed, direction, training, evaluation)


def shipped_settings() -> Iterator[Setting]:
    """Yield both directions of the scores that come with evenscore."""
    scores = load_audiomnist_scores()
    yield Setting("audiomnist_gmm", 0, "dev to eval", list(scores.development), list(scores.evaluation))
    training, evaluation = [], []
    for dev, new in zip(scores.development, scores.evaluation, strict=True):
        labels = Labels.from_speakers(
            new.blocks.enroll_speakers,
            new.blocks.test_speakers,
            enroll_ids=new.blocks.trials.enroll_ids,
            test_ids=new.blocks.trials.test_ids,
        )
        own = LabelledBlocks.own_cohort(new.blocks.trials, labels, name=new.name)
        sides = (dev.blocks.enroll_speakers, dev.blocks.test_speakers)
        training.append(own)
        evaluation.append(judged_blocks(dev.blocks.trials, new.blocks.test, new.blocks.enroll, own, sides))
    yield Setting("audiomnist_gmm", 0, "eval to dev", training, evaluation)


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
        fitted = fit_norm(norm.rstrip("0123456789"), setting.training, **OPTIONS.get(norm, {}))
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
        settings = {(row["seed"], row["direction"]) for row in rows}
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
    return "\n".join(lines) + "\n"


def draw(records: Sequence[dict[str, Any]], methods: Sequence[str], path: Path) -> None:
    """Draw the Cllr of some methods, relative to the best classical norm, setting by setting."""
    import matplotlib.pyplot as plt

    from evenscore.plot.style import MARKERS, PALETTE, figure_style

    shown = [method for method in ("raw", "s", "as", "lgsm+log", "evidence") if method in methods]
    sets = list(dict.fromkeys(row["set"] for row in records))
    with figure_style():
        figure, ax = plt.subplots(figsize=(7.5, 0.75 * len(sets) + 1.6))
        for place, name in enumerate(sets):
            for at, method in enumerate(shown):
                ratios = [row["ratio"] for row in records if row["set"] == name and row["method"] == method]
                height = place + 0.14 * (at - len(shown) / 2 + 0.5)
                ax.plot(
                    ratios,
                    [height] * len(ratios),
                    linestyle="none",
                    marker=MARKERS[at],
                    markersize=4.5,
                    color=PALETTE[at],
                    label=method if place == 0 else None,
                )
        ax.axvline(1.0, color="black", linewidth=1)
        ax.axvline(0.9, color="black", linewidth=0.8, linestyle=":")
        ax.set_yticks(range(len(sets)), sets)
        ax.invert_yaxis()
        ax.set_xscale("log")
        ticks = [0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(0.4, 2.5)
        ax.set_xlabel("Cllr, relative to the best classical norm of the setting")
        ax.legend(loc="lower right", ncols=2)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = [os.environ["EVENSCORE_DATA"]] if os.environ.get("EVENSCORE_DATA") else []
    parser.add_argument("--data", nargs="*", default=default, help="directories and npz files of embeddings")
    parser.add_argument("--phrase-column", help="column of phrases; guessed if not given, '-' for none")
    parser.add_argument("--take-column", help="column that orders the takes of a speaker; guessed if not given")
    parser.add_argument("--enroll-takes", type=int, help="takes of an enrolment; 3 with phrases, else 1")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1], help="of the splits of speakers")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help=f"of {', '.join(METHODS)}, and others")
    parser.add_argument("--replicates", type=int, default=200, help="of the bootstrap over speakers; 0 for none")
    parser.add_argument("--output", default="accuracy-results", help="directory of tables and figure")
    args = parser.parse_args()
    if not any(method in CLASSICAL for method in args.methods):
        parser.error("name at least one classical norm, which the others are compared with")
    if not args.data:
        print("no --data and no EVENSCORE_DATA: only the scores that come with evenscore are judged")
    records: list[dict[str, Any]] = []
    paths = files_of(args.data)
    known = {name for path in paths for name in read(path)}  # what is wrong is better told now than after an hour
    for name in (args.phrase_column, args.take_column):
        if paths and name not in (None, "-", *known):
            parser.error(f"no file has a column {name!r}; there are {', '.join(sorted(known))}")
    sources: list[Iterator[Setting]] = [embedding_settings(path, args) for path in paths]
    for source in (*sources, shipped_settings()):
        for setting in source:
            records += judged(setting, args.methods, args.replicates)
            rows = records[-len(args.methods) :]
            texts = " ".join(f"{row['method']} {row['cllr']:.4f}" for row in rows)
            print(f"{setting.name} seed {setting.seed} {setting.direction}: {texts}", flush=True)
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    table = summary(records, args.methods)
    (folder / "accuracy.md").write_text(table, encoding="utf-8")
    (folder / "accuracy.json").write_text(json.dumps(records, indent=1), encoding="utf-8")
    with (folder / "accuracy.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, fieldnames=list(records[0]))
        writer.writeheader()
        writer.writerows(records)
    draw(records, args.methods, folder / "accuracy.svg")
    print(table)


if __name__ == "__main__":
    try:
        main()
    except EvenscoreError as error:
        raise SystemExit(f"error: {error}") from None
