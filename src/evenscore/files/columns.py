"""The names that columns and labels go by in tables with a header (CSV, TSV, parquet)."""

from __future__ import annotations

from collections.abc import Iterable

from evenscore.tables import NONTARGET, TARGET, UNKNOWN

__all__ = ["COLUMN_NAMES", "LABEL_TEXTS", "find_column"]

#: What each column may be called, in lower case; the first name is the one that is written.
COLUMN_NAMES = {
    "enroll": ("enroll", "enrol", "enroll_id", "enrollment", "enrolment", "modelid", "model_id", "model", "ref"),
    "test": ("test", "test_id", "segmentid", "segment_id", "segment", "testid", "probe", "probe_id"),
    "score": ("score", "scores", "llr"),
    "label": ("label", "labels", "targettype", "target_type", "trial_type", "is_target", "target", "key"),
    "id": ("id", "ids", "utt", "utt_id", "utterance", "utterance_id", "file", "filename", "path", "name"),
    "speaker": ("speaker", "speakers", "speaker_id", "spk", "spk_id"),
    "embedding": ("embedding", "embeddings", "vector", "vectors", "xvector"),
}

#: What labels may be called, in lower case; the first name of each class is the one that is written.
LABEL_TEXTS = {
    "target": TARGET,
    "tgt": TARGET,
    "tar": TARGET,
    "genuine": TARGET,
    "true": TARGET,
    "1": TARGET,
    "nontarget": NONTARGET,
    "non-target": NONTARGET,
    "nontgt": NONTARGET,
    "non": NONTARGET,
    "imp": NONTARGET,
    "impostor": NONTARGET,
    "imposter": NONTARGET,
    "false": NONTARGET,
    "0": NONTARGET,
    "unknown": UNKNOWN,
    "": UNKNOWN,
}


def find_column(names: Iterable[str], what: str) -> str | None:
    """Return the name under which a column is found, in any case of letters, or None.

    Examples
    --------
    >>> find_column(["modelid", "segmentid", "LLR"], "score")
    'LLR'
    """
    by_lower = {name.lower(): name for name in reversed(list(names))}
    return next((by_lower[name] for name in COLUMN_NAMES[what] if name in by_lower), None)
