"""Training of the cohort-evidence model from files, for ``evenscore fit --method evidence``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenscore.cli.output import print_json, print_lines, print_table
from evenscore.evidence import CohortEvidence, fit_evidence
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.progress import Progress
from evenscore.sources import Bilinear
from evenscore.tables import LabelledBlocks, Labels, ScoreMatrix, TrialList

__all__ = ["print_evidence", "train_from", "write_evidence"]


def train_from(data: Sequence[Any], dim: int, progress: Progress) -> CohortEvidence:
    """Train on labelled matrices, each its own cohort: a trial's own speakers are left out of it."""
    return fit_evidence([_own_cohort(item) for item in data], dim=dim, progress=progress)


def _own_cohort(item: Any) -> LabelledBlocks:
    if isinstance(item, TrialList):
        matrix, labels = item.to_matrix(), None
        listed = item
    else:
        scores, labels = item
        matrix = scores.matrix() if isinstance(scores, Bilinear) else scores
        assert isinstance(matrix, ScoreMatrix)  # noqa: S101
        if labels.by_speaker:
            return LabelledBlocks.own_cohort(matrix, labels)
        listed = matrix.to_trials(labels)
    speakers = speakers_by_targets([listed])
    names = [[speakers.get(name, name) for name in ids.tolist()] for ids in (matrix.enroll_ids, matrix.test_ids)]
    known = Labels.from_speakers(*names, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
    return LabelledBlocks.own_cohort(matrix, known)


def write_evidence(model: CohortEvidence, path: str, inputs: Mapping[str, Any]) -> None:
    """Write the model with what it was trained on."""
    from evenscore._version import __version__
    from evenscore.files.evidence_json import save_evidence

    save_evidence(model, path, info={"evenscore": __version__, **inputs})


def print_evidence(model: CohortEvidence, notes: Sequence[str], json: bool) -> None:
    """Print what was chosen, and what each feature is worth."""
    report, head = model.report, next(iter(model.heads.values()))
    if json:
        facts = {
            "method": "evidence",
            "heads": list(model.heads),
            "weights": dict(head.weight),
            "ridges": vars(model.ridges),
            "penalties": vars(head.penalties),
            "cllr": report.loss,
            "without": dict(report.without),
            "tried": {name: dict(losses) for name, losses in report.tried.items()},
            "notes": list(notes),
        }
        print_json(facts)
        return
    rows = []
    for name, weight in head.weight.items():
        loss = report.without.get(name)
        rows.append((name, f"{weight:+.3f}", "-" if loss is None else f"{loss:.4f}"))
    print_table(rows, header=("feature", "weight", "Cllr without it"), title="Cohort evidence", numbers=True)
    print_lines([*report.lines()[:2], *(f"! {note}" for note in notes)])
