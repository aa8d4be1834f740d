"""What `evenscore info` tells about a table: sizes, counts, ranges, and what looks wrong, alone or beside a key."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.cli.inputs import TRIALS, kind_of
from evenscore.cli.labelled import contradictions, labels_in
from evenscore.errors import InputError
from evenscore.tables import NONTARGET, TARGET, Embeddings, ScoreMatrix, TrialList
from evenscore.tables.ids import shown

__all__ = ["Facts", "compare_with_key", "facts_of", "suspicions_of"]

Facts = dict[str, Any]

FEW_TRIALS = 30  # with fewer trials in a class, an error rate says little
UNEQUAL = 10_000  # more non-targets than this for each target
FEW_ODD = 0.1  # ids that miss on one side are odd only if nearly all others are on both
FAR_OUT = 30  # interquartile ranges from the median
ALIKE = 0.1  # standard deviations between the class means
MOST_ROWS = 1_000_000  # looked at for ties, outliers and equal vectors
MOST_SHOWN = 5  # trials named for each kind of disagreement


def facts_of(table: Any) -> Facts:
    """Return the facts about a table, ready to be printed or to become JSON."""
    kind = kind_of(table)
    if kind in TRIALS:
        return _trial_facts(table) if table.listed else _matrix_facts(table)
    if kind == "embeddings":
        return _embedding_facts(table)
    return {"utterances": len(table), **_speaker_facts(list(table.values()))}


def _score_summary(scores: npt.NDArray[Any]) -> Facts:
    """Return how many scores there are, and their range, mean and standard deviation; NaN is left out."""
    count = int(scores.size - np.count_nonzero(np.isnan(scores)))
    if count == 0:
        return {"count": 0}
    return {
        "count": count,
        "min": float(np.nanmin(scores)),
        "mean": float(np.nanmean(scores, dtype=np.float64)),
        "max": float(np.nanmax(scores)),
        "std": float(np.nanstd(scores, dtype=np.float64)),
    }


def _matrix_facts(matrix: ScoreMatrix) -> Facts:
    return {
        "enrolments": matrix.shape[0],
        "tests": matrix.shape[1],
        "trials": matrix.scores.size - matrix.n_missing,
        "missing": matrix.n_missing,
        "type": str(matrix.scores.dtype),
        "scores": {"all": _score_summary(matrix.scores)},
    }


def _trial_facts(trials: TrialList) -> Facts:
    facts: Facts = {
        "enrolments": len(trials.enroll_ids),
        "tests": len(trials.test_ids),
        "trials": len(trials),
        "missing": len(trials.enroll_ids) * len(trials.test_ids) - len(trials),
    }
    if trials.scores is not None:
        facts["type"] = str(trials.scores.dtype)
    if trials.labels is not None:
        facts["labels"] = dict(zip(("target", "nontarget", "unknown"), trials.counts, strict=True))
    if trials.scores is not None:
        facts["scores"] = {"all": _score_summary(trials.scores)}
        if trials.labels is not None:
            for name, label in (("target", TARGET), ("nontarget", NONTARGET)):
                facts["scores"][name] = _score_summary(trials.scores[trials.labels == label])
    if trials.measures:
        facts["measures"] = {name: _score_summary(values) for name, values in trials.measures.items()}
    return facts


def _embedding_facts(embeddings: Embeddings) -> Facts:
    norms = np.linalg.norm(embeddings.vectors.astype(np.float64, copy=False), axis=1)
    facts: Facts = {
        "vectors": len(embeddings),
        "dimensions": embeddings.dim,
        "type": str(embeddings.vectors.dtype),
        "lengths": _score_summary(norms),
    }
    if embeddings.speakers is not None:
        facts |= _speaker_facts([name for name in embeddings.speakers if name is not None])
    if embeddings.columns:
        facts["columns"] = list(embeddings.columns)
    return facts


def _speaker_facts(speakers: list[str]) -> Facts:
    counts = list(Counter(speakers).values())
    facts: Facts = {"speakers": len(counts)}
    if counts:
        facts["utterances_per_speaker"] = {"min": min(counts), "mean": len(speakers) / len(counts), "max": max(counts)}
    return facts


def suspicions_of(table: Any, facts: Facts) -> list[str]:
    """Return one sentence for each thing that looks wrong."""
    kind = kind_of(table)
    if kind in TRIALS and not table.listed:
        return [*_about_scores(table.scores), *_about_missing(table), *_about_sides(table)]
    if kind in TRIALS:
        scores = [] if table.scores is None else _about_scores(table.scores)
        return [*scores, *_about_labels(table, facts), *_about_sides(table), *_about_self_trials(table)]
    if kind == "embeddings":
        speakers = [] if table.speakers is None else table.speakers.tolist()
        return [*_about_vectors(table, facts), *_about_similar(table.ids), *_about_speakers(speakers)]
    return [*_about_similar(table), *_about_speakers(table.values())]


def _about_scores(scores: npt.NDArray[Any]) -> list[str]:
    flat = scores.reshape(-1)[: 2 * MOST_ROWS]
    flat = flat[~np.isnan(flat)][:MOST_ROWS]
    if flat.size == 0:
        return ["there are no scores"]
    values = np.unique(flat)
    if values.size == 1:
        same = np.nanmin(scores) == np.nanmax(scores)
        return [f"all {np.count_nonzero(~np.isnan(scores))} scores are {values[0]:g}"] if same and flat.size > 1 else []
    notes = []
    if flat.size >= 1000 and values.size < 0.01 * flat.size:
        hint = "decisions instead of scores?" if values.size == 2 else "rounded?"
        notes.append(f"only {values.size} different values in {flat.size} scores: {hint}")
    low, middle, high = np.quantile(flat, (0.25, 0.5, 0.75))
    far = [value for value in (values[0], values[-1]) if high > low and abs(value - middle) > FAR_OUT * (high - low)]
    return [
        *notes,
        *(f"the score {value:g} is far from all others: a placeholder for a missing score?" for value in far),
    ]


def _about_labels(trials: TrialList, facts: Facts) -> list[str]:
    if trials.labels is None or len(trials) == 0:
        return []
    target, nontarget, _ = trials.counts
    if target == 0 and nontarget == 0:
        return ["no trial has a label"]
    if target == 0 or nontarget == 0:
        return [f"all labels are {'target' if target else 'non-target'}, so error rates cannot be measured"]
    notes = []
    for count, name in ((target, "target"), (nontarget, "non-target")):
        if count < FEW_TRIALS:
            notes.append(f"only {count} {name} trials: error rates will be very uncertain")
    if nontarget > UNEQUAL * target:
        notes.append(f"{nontarget / target:.0f} non-targets for each target: are all targets listed?")
    if target > nontarget:
        notes.append(f"more targets ({target}) than non-targets ({nontarget}): are the labels the right way round?")
    return (
        [*notes, *_about_order(facts["scores"]["target"], facts["scores"]["nontarget"])] if "scores" in facts else notes
    )


def _about_order(target: Facts, nontarget: Facts) -> list[str]:
    """Tell if the classes come in the wrong order, or if the scores do not tell them apart."""
    distance = target["mean"] - nontarget["mean"]
    if distance < -ALIKE * nontarget["std"]:
        means = f"targets score lower ({target['mean']:.4g}) than non-targets ({nontarget['mean']:.4g}) on average"
        return [f"{means}: distances, or labels the wrong way round?"]
    if distance < ALIKE * nontarget["std"] and min(target["count"], nontarget["count"]) >= FEW_TRIALS:
        return ["targets score no higher than non-targets: do the labels belong to these scores?"]
    return []


def _about_missing(matrix: ScoreMatrix) -> list[str]:
    if matrix.n_missing == 0:
        return []
    notes = []
    for axis, ids, side in ((1, matrix.enroll_ids, "enrolment"), (0, matrix.test_ids, "test")):
        empty = ids[matrix.missing.all(axis=axis)]
        if len(empty):
            notes.append(f"{len(empty)} {side} ids have no score at all: {shown(empty)}")
    return notes


def _about_sides(table: ScoreMatrix | TrialList) -> list[str]:
    enroll, test = set(table.enroll_ids.tolist()), set(table.test_ids.tolist())
    notes = []
    for ids, others, side, other in ((enroll, test, "enrolment", "test"), (test, enroll, "test", "enrolment")):
        odd = ids - others
        if 0 < len(odd) <= FEW_ODD * len(ids):
            notes.append(
                f"{len(odd)} of {len(ids)} ids stand only on the {side} side, all others are {other} ids too: "
                f"{shown(sorted(odd))}"
            )
    return [*notes, *_about_similar(dict.fromkeys([*table.enroll_ids, *table.test_ids]))]


def _about_self_trials(trials: TrialList) -> list[str]:
    place = {name: at for at, name in enumerate(trials.test_ids.tolist())}
    twin = np.fromiter((place.get(name, -1) for name in trials.enroll_ids.tolist()), np.int64, len(trials.enroll_ids))
    itself = twin[trials.enroll_index] == trials.test_index
    count = int(np.count_nonzero(itself))
    if count == 0:
        return []
    notes = [f"{count} trials compare an id with itself, first {trials.pair(int(np.argmax(itself)))[0]!r}"]
    if trials.labels is not None and (trials.labels[itself] == NONTARGET).any():
        wrong = int(np.argmax(itself & (trials.labels == NONTARGET)))
        notes.append(f"{trials.pair(wrong)[0]!r} against itself is labelled non-target")
    if trials.labels is not None and count == np.count_nonzero(trials.labels == TARGET):
        notes.append("all target trials compare an id with itself")
    return notes


def _about_vectors(embeddings: Embeddings, facts: Facts) -> list[str]:
    vectors, notes = embeddings.vectors, []
    if len(embeddings) == 0:
        return ["there are no vectors"]
    zero = embeddings.ids[~vectors.any(axis=1)]
    if len(zero):
        notes.append(f"{len(zero)} vectors are all zero: {shown(zero)}")
    lengths = facts["lengths"]
    if lengths["max"] - lengths["min"] > 1e-3 * lengths["max"]:
        notes.append(
            f"lengths go from {lengths['min']:.4g} to {lengths['max']:.4g}: not length-normalized, "
            "so cosine and dot product differ"
        )
    if len(embeddings) > 1:
        constant = np.flatnonzero((vectors == vectors[0]).all(axis=0))
        if len(constant):
            notes.append(f"{len(constant)} of {embeddings.dim} components are the same in all vectors")
    first: dict[bytes, str] = {}
    twins = [
        (first[row], name)
        for row, name in zip((row.tobytes() for row in vectors[:MOST_ROWS]), embeddings.ids, strict=False)
        if first.setdefault(row, name) != name
    ]
    if twins:
        notes.append(f"{len(twins)} vectors equal an earlier one, first {twins[0][0]!r} and {twins[0][1]!r}")
    return notes


def _about_similar(ids: Iterable[str]) -> list[str]:
    """Name ids that look like typing errors of each other."""
    groups: dict[str, list[str]] = {}
    for name in ids:
        groups.setdefault("".join(unicodedata.normalize("NFKC", name).casefold().split()), []).append(name)
    similar = [group for group in groups.values() if len(group) > 1]
    if not similar:
        return []
    more = f", and {len(similar) - 1} more groups" if len(similar) > 1 else ""
    return [f"ids that differ only in case or blanks: {similar[0][0]!r} and {similar[0][1]!r}{more}"]


def _about_speakers(speakers: Iterable[str | None]) -> list[str]:
    counts = Counter(speakers)
    unknown = counts.pop(None, 0)
    notes = [f"{unknown} utterances have no speaker"] if unknown else []
    single = [name for name, count in counts.items() if count == 1 and name is not None]
    if len(counts) == 1 and not unknown:
        notes.append("there is only one speaker")
    elif single and len(single) == len(counts):
        notes.append("every speaker has only one utterance, so there are no target pairs")
    elif single:
        notes.append(f"{len(single)} of {len(counts)} speakers have only one utterance: {shown(single)}")
    return [*notes, *(f"speaker {line}" for line in _about_similar(name for name in counts if name is not None))]


def compare_with_key(trials: TrialList, key: TrialList) -> tuple[Facts, list[str], TrialList]:
    """Return the facts of the comparison, what looks wrong, and the trials with the labels of the key."""
    if key.labels is None:
        raise InputError("the key has no labels; give a file with target and non-target trials")
    match = trials.match(key)
    in_key = np.zeros(len(key), dtype=bool)
    in_key[match[match >= 0]] = True
    facts: Facts = {
        "trials": len(key),
        "in_both": int(np.count_nonzero(in_key)),
        "only_in_file": _listed(trials, match < 0),
        "only_in_key": _listed(key, ~in_key),
    }
    notes = []
    for name, what in (
        ("only_in_file", "trials of the file are not in the key"),
        ("only_in_key", "trials of the key are not in the file"),
    ):
        if facts[name]["count"]:
            notes.append(f"{facts[name]['count']} {what}, first {facts[name]['first'][0]}")
    clash = contradictions(trials, labels_in(trials, key))
    if clash.any():
        first = trials.pair(int(np.argmax(clash)))
        notes.append(f"{np.count_nonzero(clash)} labels of the file do not agree with the key, first that of {first}")
    return facts, notes + _reasons(trials, key), trials.join(key, unmatched="drop")


def _listed(trials: TrialList, which: npt.NDArray[np.bool_]) -> Facts:
    first = np.flatnonzero(which)[:MOST_SHOWN]
    return {"count": int(np.count_nonzero(which)), "first": [trials.pair(int(place)) for place in first]}


def _reasons(trials: TrialList, key: TrialList) -> list[str]:
    """Guess why ids do not meet."""
    enroll, test = set(trials.enroll_ids.tolist()), set(trials.test_ids.tolist())
    key_enroll, key_test = set(key.enroll_ids.tolist()), set(key.test_ids.tolist())
    notes = []
    for ours, theirs, side in ((enroll, key_enroll, "enrolment"), (test, key_test, "test")):
        if ours - theirs:
            notes.append(f"{len(ours - theirs)} {side} ids are only in the file: {shown(sorted(ours - theirs))}")
        if theirs - ours:
            notes.append(f"{len(theirs - ours)} {side} ids are only in the key: {shown(sorted(theirs - ours))}")
    if not (enroll & key_enroll) and not (test & key_test) and (enroll & key_test) and (test & key_enroll):
        notes.append("the key's enrolments are the file's tests: are the two sides swapped?")
    elif not (enroll & key_enroll) or not (test & key_test):
        notes += _spelling(enroll | test, key_enroll | key_test)
    return notes


def _spelling(ours: set[str], theirs: set[str]) -> list[str]:
    """Tell whether ids meet when case, folders or file endings are left out."""
    ways: dict[str, Callable[[str], str]] = {
        "case": str.casefold,
        "file endings": lambda name: str(PurePosixPath(name).parent / PurePosixPath(name).stem),
        "folders and file endings": lambda name: PurePosixPath(name.replace("\\", "/")).stem,
    }
    for what, changed in ways.items():
        if {changed(name) for name in ours - theirs} & {changed(name) for name in theirs - ours}:
            return [f"ids of the two files meet without regard to {what}: are they written differently?"]
    return []
