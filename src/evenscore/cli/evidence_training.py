"""Training of the cohort-evidence model from files, for ``evenscore fit --norm evidence``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenscore.cli.model import print_covariances, print_variances
from evenscore.cli.output import print_json, print_lines, print_table
from evenscore.errors import InputError
from evenscore.evidence import CohortEvidence, fit_evidence, sampled_own_cohort
from evenscore.metrics.target_speakers import speakers_by_targets
from evenscore.model.fit import fit_score_model
from evenscore.progress import Progress
from evenscore.sources import Bilinear
from evenscore.sources.blocks import cohort_matrix
from evenscore.tables import LabelledBlocks, Labels, ScoreMatrix, TrialList

__all__ = ["evidence_facts", "print_evidence", "train_from", "write_evidence"]

LIMIT = 1e9  # bytes of training scores; they are copied several times
WHOLE = 2_000_000  # training trials whose features are all computed
SAMPLE = 150_000  # of more trials: how many of each class are used


def train_from(data: Sequence[Any], dim: int, progress: Progress) -> CohortEvidence:
    """Train on labelled matrices, each its own cohort: a trial's own speakers are left out of it."""
    sizes = [_size(item) for item in data]
    if sum(size[0] * size[1] * size[2] for size in sizes) > LIMIT:
        shapes = ", ".join(f"{rows} x {columns}" for rows, columns, _ in sizes[:3])
        total = sum(size[0] * size[1] * size[2] for size in sizes) / 1e9
        raise InputError(
            f"the training scores ({shapes}) take {total:.1f} GB, but evidence is trained on at most {LIMIT / 1e9:.0f} "
            "GB of them, which are all in memory; train on fewer speakers, or on fewer utterances of each"
        )
    tables = [_labelled(item) for item in data]
    if sum(matrix.scores.size for matrix, _ in tables) <= WHOLE:
        return fit_evidence([LabelledBlocks.own_cohort(*table) for table in tables], dim=dim, progress=progress)
    score_model = fit_score_model(tables, dim, tol=1e-8, progress=progress).model
    sampled = [sampled_own_cohort(*table, most=SAMPLE // len(tables)) for table in tables]
    return fit_evidence(sampled, score_model=score_model, progress=progress)


def _size(item: Any) -> tuple[int, int, int]:
    """Return the rows and columns of the matrix of some training scores, and the bytes of a score."""
    if isinstance(item, TrialList):
        return len(item.enroll_ids), len(item.test_ids), 8
    return *item[0].shape, item[0].dtype.itemsize


def _labelled(item: Any) -> tuple[ScoreMatrix, Labels]:
    """Return a matrix with labels by speaker; an utterance has no score against itself."""
    if isinstance(item, TrialList):
        matrix, listed = item.to_matrix(), item
    else:
        scores, labels = item
        matrix = cohort_matrix(scores) if isinstance(scores, Bilinear) else scores
        assert isinstance(matrix, ScoreMatrix)  # noqa: S101
        if labels.by_speaker:
            return matrix, labels
        listed = matrix.to_trials(labels)
    speakers = speakers_by_targets([listed])
    names = [[speakers.get(name, name) for name in ids.tolist()] for ids in (matrix.enroll_ids, matrix.test_ids)]
    return matrix, Labels.from_speakers(*names, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)


def write_evidence(model: CohortEvidence, path: str, inputs: Mapping[str, Any]) -> None:
    """Write the model with what it was trained on."""
    from evenscore._version import __version__
    from evenscore.files.models import save_evidence

    save_evidence(model, path, info={"evenscore": __version__, **inputs})


def evidence_facts(model: CohortEvidence) -> dict[str, Any]:
    """Return what was trained on, what was chosen, and what each feature weighs, ready to become JSON."""
    report, head = model.report, next(iter(model.heads.values()))
    return {
        "method": "evidence",
        "heads": list(model.heads),
        "weights": dict(head.weight),
        "ridges": vars(model.ridges),
        "penalties": vars(head.penalties),
        "trials": {"nontarget": report.n_nontarget, "target": report.n_target},
        "speakers": report.n_speakers,
        "folds": report.folds,
        "cllr": report.loss,
        "without": dict(report.without),
        "tried": {name: dict(losses) for name, losses in report.tried.items()},
    }


def print_evidence(model: CohortEvidence, notes: Sequence[str], *, verbose: bool = False, json: bool = False) -> None:
    """Print what was chosen, and what each feature is worth."""
    if json:
        print_json({**evidence_facts(model), "notes": list(notes)})
        return
    report, head = model.report, next(iter(model.heads.values()))
    rows = []
    for name, weight in head.weight.items():
        loss = report.without.get(name)
        rows.append((name, f"{weight:+.3f}", "-" if loss is None else f"{loss:.4f}"))
    print_table(rows, header=("feature", "weight", "Cllr without it"), title="Cohort evidence", numbers=True)
    print_lines([*report.lines()[:2], *(f"! {note}" for note in notes)])
    if verbose:
        print_variances(model.score_model)
        print_covariances(model.score_model)
