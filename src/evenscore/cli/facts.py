"""What `evenscore info` tells about a table: sizes, label counts, ranges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.tables import NONTARGET, TARGET, Embeddings, ScoreMatrix, TrialList

__all__ = ["Facts", "facts_of", "score_summary"]

Facts = dict[str, Any]


def facts_of(table: ScoreMatrix | TrialList | Embeddings | Mapping[str, str]) -> Facts:
    """Return the facts about a table, ready to be printed or to become JSON.

    Examples
    --------
    >>> facts_of({"utt1": "ann", "utt2": "ann", "utt3": "bob"})
    {'utterances': 3, 'speakers': 2, 'utterances_per_speaker': {'min': 1, 'mean': 1.5, 'max': 2}}
    """
    if isinstance(table, ScoreMatrix):
        return _matrix_facts(table)
    if isinstance(table, TrialList):
        return _trial_facts(table)
    if isinstance(table, Embeddings):
        return _embedding_facts(table)
    return {"utterances": len(table), **_speaker_facts(list(table.values()))}


def score_summary(scores: npt.NDArray[Any]) -> Facts:
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
        "scores": {"all": score_summary(matrix.scores)},
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
        facts["scores"] = {"all": score_summary(trials.scores)}
        if trials.labels is not None:
            for name, label in (("target", TARGET), ("nontarget", NONTARGET)):
                facts["scores"][name] = score_summary(trials.scores[trials.labels == label])
    if trials.measures:
        facts["measures"] = {name: score_summary(values) for name, values in trials.measures.items()}
    return facts


def _embedding_facts(embeddings: Embeddings) -> Facts:
    norms = np.linalg.norm(embeddings.vectors.astype(np.float64, copy=False), axis=1)
    facts: Facts = {
        "vectors": len(embeddings),
        "dimensions": embeddings.dim,
        "type": str(embeddings.vectors.dtype),
        "lengths": score_summary(norms),
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
