"""The experiment of Swart and Brümmer (Interspeech 2017) on open speech: recordings in, their table and figure out.

A text-dependent recognizer is trained on background speakers. The scores of development speakers, one matrix per
phrase, train the score models and are the cohorts of the evaluation speakers. Evaluation tests may be degraded, while
everything that is trained stays as it is.

    python -m recipes.paper --corpus audiomnist --root AudioMNIST -o out/
    python -m recipes.paper --corpus rsr2015 --root RSR2015 -o out/ --train-sets background,development
    python -m recipes.paper --corpus manifest --root list.csv --enroll 1,2,3 -o out/ --shift telephone,gsm
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore import (
    EvenscoreError,
    InputError,
    LabelledBlocks,
    Labels,
    LogisticCalibration,
    ScoreBlocks,
    ScoreMatrix,
    Side,
    TrialList,
    evaluate,
    fit_norm,
)
from evenscore.norms import FittedNorm
from recipes.corpora import Corpus, Recording, Split, read_corpus, role_permutations, split_speakers
from recipes.features import FeatureOptions, degradation_named, features, read_audio
from recipes.recognizer import Recognizer, train_recognizer

__all__ = ["SYSTEMS", "main", "run_paper"]

#: Name -> norm and its options. LGSM 0D has no hidden variables: two Gaussians, a calibration without a norm. S shift
#: is S-norm without its division: the floor is above every standard deviation. AS takes half of the cohort.
SYSTEMS: dict[str, tuple[str, dict[str, float | str]]] = {
    "raw": ("raw", {}),
    "ZT": ("zt", {}),
    "LGSM 0D": ("lgsm", {"dim": 0, "residuals": "gaussian"}),
    "LGSM 1D": ("lgsm", {"dim": 1, "residuals": "gaussian"}),
    "LGSM 2D": ("lgsm", {"dim": 2, "residuals": "gaussian"}),
    "S": ("s", {}),
    "S shift": ("s", {"std_floor": 1e3}),
    "AS": ("as", {"top_k": 0.5}),
}
#: What the paper reports on RSR2015 part I, in percent.
PAPER_EER = {
    "female": {"raw": 0.53, "ZT": 0.27, "LGSM 1D": 0.38, "LGSM 2D": 0.27},
    "male": {"raw": 1.24, "ZT": 0.73, "LGSM 1D": 0.80, "LGSM 2D": 0.76},
}
_GENDERS = {"f": "female", "m": "male"}
_PENALTY = 1e-4  # keeps the calibration of classes that do not overlap finite
Frames = dict[Recording, npt.NDArray[np.float32]]
Trained = dict[str, dict[str, tuple[FittedNorm, LogisticCalibration]]]  # by group of speakers and system
Scored = npt.NDArray[np.float64]  # three rows: a system's scores, the calibrated ones, labels
Figures = dict[str, dict[str, dict[str, float]]]  # by group, system and metric


@dataclass(frozen=True, eq=False)
class Vectors:
    """Enrolments and tests of one phrase as vectors whose product is the score."""

    enroll: Side
    test: Side
    of_enroll: npt.NDArray[np.float32]
    of_test: npt.NDArray[np.float32]


def run_paper(
    corpus: Corpus,
    *,
    splits: int | None = None,
    shifts: Sequence[str] = (),
    train_sets: Sequence[str] = ("background",),
    n_gaussians: int = 128,
    rank: int = 40,
    jobs: int = 1,
    cache: Path | None = None,
) -> list[dict[str, Any]]:
    """Run the experiment.

    Returns for each split of the speakers, and for score models and cohorts that are ``per-gender`` or ``joint``, the
    figures by shift, group and system, the variances, and the clean scores.

    Parameters
    ----------
    corpus
        The recordings.
    splits
        How many of the six ways to give the sets of speakers their roles; by default all, or 1 if the corpus has sets.
    shifts
        Degradations of the evaluation tests: telephone, gsm, noise:DB.
    train_sets
        Whose speech trains the recognizer; the paper took development speakers, too.
    n_gaussians, rank
        Of the background model and of the eigenchannels.
    jobs, cache
        Processes that compute features, and where features are kept.
    """
    roles = role_permutations(corpus.split or split_speakers(corpus))
    roles = roles[: splits or (6 if corpus.split is None else 1)]
    frames = _features(corpus.recordings, "none", jobs, cache)
    runs = []
    for split in roles:
        speakers = [name for role in train_sets for name in getattr(split, role)]
        training = [one for one in corpus.select(speakers) if one in frames]
        classes = np.unique([one.model for one in training], return_inverse=True)[1]
        recognizer = train_recognizer([frames[one] for one in training], classes, n_gaussians=n_gaussians, rank=rank)
        clean = _vectors(corpus, recognizer, frames, (*split.development, *split.evaluation))
        found: dict[str, Any] = {}
        for models, by_gender in (("per-gender", True), ("joint", False)):
            trained = _train(corpus, split, clean, by_gender)
            scored = _score(corpus, split, clean, clean, trained)
            figures = {"clean": _figures(scored)}
            for shift in shifts:
                tests = [one for one in corpus.select(split.evaluation) if one.session not in corpus.enroll_sessions]
                degraded = frames | _features(tests, shift, jobs, cache)
                shifted = _vectors(corpus, recognizer, degraded, split.evaluation)
                figures[shift] = _figures(_score(corpus, split, clean, shifted, trained))
            found[models] = {"figures": figures, "variances": _variances(trained), "scores": scored}
        runs.append(found)
    return runs


def _features(recordings: Sequence[Recording], shift: str, jobs: int, cache: Path | None) -> Frames:
    """Compute the features of recordings, or read them from the cache; those without speech are left out."""
    found: Frames = {}
    for speaker, group in groupby(sorted(recordings), key=lambda one: one.speaker):
        members = list(group)
        kept = None if cache is None else cache / f"{shift.replace(':', '-')}-{speaker}-{len(members)}.npz"
        if kept is not None and kept.is_file():
            with np.load(kept, allow_pickle=False) as arrays:
                found |= {one: arrays[one.name] for one in members if one.name in arrays}
            continue
        work = partial(_features_of, shift=shift)
        if jobs > 1:
            with ProcessPoolExecutor(jobs) as pool:
                frames = list(pool.map(work, members, chunksize=16))
        else:
            frames = list(map(work, members))
        part = {one: values for one, values in zip(members, frames, strict=True) if values is not None}
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            np.savez(kept, **{one.name: values for one, values in part.items()})
        found |= part
    return found


def _features_of(recording: Recording, shift: str) -> npt.NDArray[np.float32] | None:
    samples = degradation_named(shift)(read_audio(recording.path), recording.name)
    try:
        return features(samples, FeatureOptions())
    except InputError:
        return None


def _vectors(corpus: Corpus, recognizer: Recognizer, frames: Frames, speakers: Sequence[str]) -> dict[str, Vectors]:
    """Return the enrolments and tests of some speakers, phrase by phrase."""
    chosen = sorted((one for one in corpus.select(speakers) if one in frames), key=lambda one: (one.phrase, one))
    found = {}
    for phrase, group in groupby(chosen, key=lambda one: one.phrase):
        members = list(group)
        enrolments = [one for one in members if one.session in corpus.enroll_sessions]
        tests = [one for one in members if one.session not in corpus.enroll_sessions]
        models, classes = np.unique([one.model for one in enrolments], return_inverse=True)
        speaker = {one.model: one.speaker for one in enrolments}
        found[phrase] = Vectors(
            Side(models.tolist(), [speaker[name] for name in models.tolist()]),
            Side([one.name for one in tests], [one.speaker for one in tests]),
            recognizer.enroll([frames[one] for one in enrolments], classes),
            recognizer.test([frames[one] for one in tests]),
        )
    return found


def _scores(enroll: Vectors, test: Vectors, enroll_speakers: set[str], test_speakers: set[str]) -> ScoreMatrix:
    """Return the scores of the enrolments of some speakers against the tests of others."""
    rows = np.flatnonzero([name in enroll_speakers for name in enroll.enroll.speakers])
    cols = np.flatnonzero([name in test_speakers for name in test.test.speakers])
    scores = (enroll.of_enroll[rows] @ test.of_test[cols].T).astype(np.float64)
    return ScoreMatrix(scores, enroll.enroll.take(rows), test.test.take(cols))


def _groups(corpus: Corpus, speakers: Sequence[str], by_gender: bool) -> dict[str, set[str]]:
    """Return the speakers of each gender, or all of them."""
    gender = corpus.gender
    if not by_gender or "" in gender.values():
        return {"all": set(speakers)}
    return {name: {one for one in speakers if gender[one] == kind} for kind, name in _GENDERS.items()}


def _train(corpus: Corpus, split: Split, clean: Mapping[str, Vectors], by_gender: bool) -> Trained:
    """Train all systems, each with a calibration, on the development trials of each group of speakers."""
    trained: Trained = {}
    for group, speakers in _groups(corpus, split.development, by_gender).items():
        parts = [LabelledBlocks.own_cohort(_scores(part, part, speakers, speakers)) for part in clean.values()]
        trained[group] = {}
        for name, (method, options) in SYSTEMS.items():
            norm = fit_norm(method, parts, **options)
            trials = TrialList.concat([part.labelled(norm.normalize(part.blocks)) for part in parts])
            trained[group][name] = norm, LogisticCalibration.fit(trials.scores, trials.labels, l2=_PENALTY)
    return trained


def _score(
    corpus: Corpus, split: Split, clean: Mapping[str, Vectors], tested: Mapping[str, Vectors], trained: Trained
) -> dict[str, dict[str, Scored]]:
    """Return the evaluation trials as every system scores them: within each gender, and all of these."""
    found: dict[str, dict[str, Scored]] = {}
    for group, speakers in _groups(corpus, split.evaluation, True).items():
        key = group if group in trained else "all"
        cohort = _groups(corpus, split.development, key != "all")[key]
        parts = [_blocks(clean[phrase], tested[phrase], speakers, cohort) for phrase in tested if phrase in clean]
        found[group] = {}
        for name, (norm, calibration) in trained[key].items():
            trials = TrialList.concat([part.labelled(norm.normalize(part.blocks)) for part in parts])
            found[group][name] = np.stack([trials.scores, calibration(trials.scores), trials.labels])
    if len(found) > 1:
        found["pooled"] = {name: np.concatenate([group[name] for group in found.values()], axis=1) for name in SYSTEMS}
    return found


def _blocks(clean: Vectors, tested: Vectors, speakers: set[str], cohort: set[str]) -> LabelledBlocks:
    """Return evaluation trials with the development speakers as their cohort."""
    trials = _scores(clean, tested, speakers, speakers)
    blocks = ScoreBlocks(
        trials,
        enroll=_scores(clean, clean, speakers, cohort),
        test=_scores(clean, tested, cohort, speakers),
        cohort=_scores(clean, clean, cohort, cohort),
    )
    return LabelledBlocks(blocks, Labels.from_speakers(trials.enroll, trials.test))


def _figures(scored: Mapping[str, Mapping[str, Scored]]) -> Figures:
    """Return the figures of merit; the Cllr of what is not an LLR has no meaning."""
    figures: Figures = {}
    for group, systems in scored.items():
        for name, (scores, llr, labels) in systems.items():
            own, calibrated = (evaluate(values, labels.astype(int)) for values in (scores, llr))
            numbers = {"eer": own.eer, "min_dcf": own.min_dcf, "min_cllr": own.min_cllr}
            figures.setdefault(group, {})[name] = numbers | {"cllr": own.cllr, "cllr_calibrated": calibrated.cllr}
    return figures


def _variances(trained: Trained) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Return the paper's table: sigma^2 and nu of the non-targets and of the targets."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for group, systems in trained.items():
        for name, (norm, _) in systems.items():
            if norm.method == "lgsm":
                table = norm.model.variances
                found.setdefault(group, {})[name] = {"sigma2": table.sigma2.tolist(), "nu": table.nu.tolist()}
    return found


def _table(runs: Sequence[Mapping[str, Any]], models: str, shift: str, metric: str) -> list[str]:
    """Return a Markdown table of one figure, mean and standard deviation over the splits, beside the paper's."""
    groups = list(runs[0][models]["figures"][shift])
    percent = 100.0 if metric == "eer" else 1.0
    lines = [f"| {metric}, {models}, {shift} | " + " | ".join(groups) + " | paper, female | paper, male |"]
    lines.append("|---" * (len(groups) + 3) + "|")
    for name in SYSTEMS:
        cells = []
        for group in groups:
            values = np.array([run[models]["figures"][shift][group][name][metric] for run in runs]) * percent
            spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
            cells.append(f"{values.mean():.3f}{spread}")
        known = [PAPER_EER[group].get(name, "") if metric == "eer" else "" for group in ("female", "male")]
        lines.append(f"| {name} | " + " | ".join(map(str, [*cells, *known])) + " |")
    return [*lines, ""]


def _variance_table(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["| variances | sigma2 non | nu non | sigma2 tar | nu tar |", "|---|---|---|---|---|"]
    for group, systems in runs[0]["per-gender"]["variances"].items():
        for name in systems:
            found = [run["per-gender"]["variances"][group][name] for run in runs]
            means = {what: np.mean([one[what] for one in found], axis=0) for what in ("sigma2", "nu")}
            cells = [f"{means[what][h]:.3f}" for h in (0, 1) for what in ("sigma2", "nu")]
            lines.append(f"| {group}, {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _write(runs: Sequence[Mapping[str, Any]], folder: Path) -> None:
    """Write tables, figures of merit, and DET curves of the first split."""
    from evenscore.plot import plot_det

    lines = ["# The paper's experiment", "", *_variance_table(runs)]
    shifts = list(runs[0]["joint"]["figures"])
    for metric in ("eer", "cllr_calibrated"):
        for models in ("per-gender", "joint"):
            lines += [line for shift in shifts for line in _table(runs, models, shift, metric)]
    numbers = [{models: {**part, "scores": None} for models, part in run.items()} for run in runs]
    (folder / "results.json").write_text(json.dumps({"splits": numbers, "paper_eer": PAPER_EER}, indent=1))
    for group, systems in runs[0]["per-gender"]["scores"].items():
        shown = {name: systems[name] for name in ("raw", "ZT", "LGSM 1D", "LGSM 2D")}
        labels = systems["raw"][2].astype(int)
        axes = plot_det({name: scores for name, (scores, _, _) in shown.items()}, labels)
        axes.figure.savefig(folder / f"det_{group}.svg")
        lines.append(f"![DET curves, {group}](det_{group}.svg)")
    (folder / "index.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(
        "recipes.paper", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", required=True, help="audiomnist, rsr2015 (part I) or manifest")
    parser.add_argument("--root", required=True, help="directory of the corpus, or the manifest")
    parser.add_argument("--output", "-o", required=True, type=Path, help="directory for the results")
    parser.add_argument("--enroll", help="sessions that enrol, such as 1,2,3")
    parser.add_argument("--splits", type=int, help="how many of the six roles of the speaker sets")
    parser.add_argument("--shift", default="", help="telephone, gsm, noise:DB; several with commas")
    parser.add_argument("--train-sets", default="background", help="background, or background,development")
    parser.add_argument("--gaussians", type=int, default=128)
    parser.add_argument("--rank", type=int, default=40, help="number of eigenchannels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args(arguments)
    try:
        corpus = read_corpus(given.corpus, given.root, given.enroll and given.enroll.split(","))
        given.output.mkdir(parents=True, exist_ok=True)
        runs = run_paper(
            corpus,
            splits=given.splits,
            shifts=[name for name in given.shift.split(",") if name],
            train_sets=given.train_sets.split(","),
            n_gaussians=given.gaussians,
            rank=given.rank,
            jobs=given.jobs,
            cache=given.output / "features",
        )
        _write(runs, given.output)
    except (EvenscoreError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stdout.write((given.output / "index.md").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
