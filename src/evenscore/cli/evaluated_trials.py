"""Labelled scores, ready to be evaluated: from a key, from the score file itself, or from speaker maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.cli.combine import as_list, with_key
from evenscore.cli.embedded_scores import Source, read_source
from evenscore.cli.labelled import label_by_speakers
from evenscore.cli.suspicions import FEW_TRIALS
from evenscore.cli.training_data import LabelSources
from evenscore.errors import InputError
from evenscore.files import read_trials
from evenscore.tables import UNKNOWN, TrialList

__all__ = ["EvaluatedTrials", "evaluated", "labelled", "read_evaluated", "warnings_about"]


@dataclass(frozen=True, kw_only=True)
class EvaluatedTrials:
    """The trials of one score file whose class is known, and how many others there were."""

    path: str
    trials: TrialList
    n_unknown: int


def labelled(paths: Sequence[Source], tables: Sequence[TrialList], sources: LabelSources) -> list[TrialList]:
    """Return scores with labels: of the key if there is one, else their own, else by the speaker maps."""
    key = None
    if sources.keys:
        [path] = sources.keys
        key = read_trials(path, format=sources.key_format, infinite="accept")
        if key.labels is None:
            raise InputError(f"the key {path} has no labels; give a list of trials with labels")
    maps = sources.read_speaker_maps() if key is None and sources.by_speaker else None
    return [_labelled(path, trials, key, maps, sources) for path, trials in zip(paths, tables, strict=True)]


def _labelled(path: Source, trials: TrialList, key: TrialList | None, maps: Any, sources: LabelSources) -> TrialList:
    try:
        if key is not None:
            joined = with_key(trials, key, sources.unmatched)
            if not len(joined):
                raise InputError("the key has none of these trials; do the two files belong together?")
            return joined
        if trials.labels is None and maps is not None:
            by_speaker = label_by_speakers(trials, *maps)
            assert isinstance(by_speaker, TrialList)  # noqa: S101
            return by_speaker
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if trials.labels is None:
        raise InputError(f"{path}: the scores have no labels; give a key, or --enroll-speakers")
    return trials


def read_evaluated(paths: Sequence[Source], sources: LabelSources, reading: Mapping[str, Any]) -> list[EvaluatedTrials]:
    """Read what `evaluate` can measure, or say why a file cannot be evaluated."""
    tables = [as_list(read_source(path, reading)) for path in paths]
    return [evaluated(*one) for one in zip(paths, labelled(paths, tables, sources), strict=True)]


def evaluated(path: Source, trials: TrialList) -> EvaluatedTrials:
    """Return the trials whose class is known; refuse those that tell nothing."""
    target, nontarget, unknown = trials.counts
    if not target or not nontarget:
        absent = "target" if not target else "non-target"
        raise InputError(
            f"{path}: there are {target} target and {nontarget} non-target trials, and without {absent} trials nothing "
            "can be measured; check the key"
        )
    assert trials.labels is not None and trials.scores is not None  # noqa: S101, PT018
    known = trials.select(trials.labels != UNKNOWN) if unknown else trials
    assert known.scores is not None  # noqa: S101
    if np.min(known.scores) == np.max(known.scores):
        raise InputError(
            f"{path}: all {len(known)} scores are {known.scores[0]:g}, so they cannot tell targets from non-targets; "
            "check how they were made"
        )
    return EvaluatedTrials(path=str(path), trials=known, n_unknown=unknown)


def warnings_about(system: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each class with few trials, given what was measured of a system."""
    pooled = system["pooled"]
    counts = (("target", pooled["n_target"]), ("non-target", pooled["n_nontarget"]))
    return [
        f"{system['scores']} has only {count} {name} trial{'s' * (count != 1)}: error rates are very uncertain"
        for name, count in counts
        if count < FEW_TRIALS
    ]
