"""``evenscore demo``: the main job from files to figures, on scores that are made up on the spot."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_json, print_lines, print_table
from evenscore.cli.progress import progress_bar

if TYPE_CHECKING:
    from evenscore.model import FitResult
    from evenscore.tables import Labels, ScoreBlocks, ScoreMatrix

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = """
evenscore demo
evenscore demo --keep demo-files    # and look at the files it used
evenscore demo --json
"""

COLUMNS = {"min_dcf": "min DCF", "act_dcf": "actual DCF", "cllr": "Cllr", "min_cllr": "min Cllr"}
SYSTEMS = {
    "raw": "raw scores",
    "calibrated": "calibrated, no cohort",
    "normalized": "score model, with cohort",
}
FILES = {"trials": "trials.npz", "enroll": "enroll.npz", "test": "test.npz", "cohort": "cohort.npz"}


def demo(
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="Another number, other scores.")] = 1,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="DIR", help="Keep the files in this directory, which must exist.")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Show the main job on simulated scores: train the score model, normalize trials, measure.

    Simulates labelled scores for training, and trials with their cohort scores; writes them to files and reads them
    back; trains the score model; and compares raw scores, scores calibrated without a cohort, and scores normalized
    with the cohort.
    """
    from evenscore import fit_score_model

    folder = TemporaryDirectory(prefix="evenscore-demo-") if keep is None else nullcontext(keep)
    with folder as name, progress_bar() as progress:
        progress("simulating", 0.0)
        _write_files(Path(name), seed)
        training, blocks, labels = _read_files(Path(name))
        plain = fit_score_model([training], dim=0)
        fitted = fit_score_model([training], dim=2, progress=progress)
        progress("normalizing", 0.0)
        figures = _figures(blocks, labels, plain, fitted)
    if json:
        print_json({"seed": seed, **figures})
    else:
        _print_story(training, blocks, labels, fitted, figures)


def _write_files(folder: Path, seed: int) -> None:
    """Simulate scores of speakers who occur in one of training, trials and cohort only."""
    import numpy as np

    from evenscore import ScoreModel, simulate, simulate_blocks, write

    model = ScoreModel(
        mu=np.array([-2.0, 2.5]),
        alpha=np.array([[0.9, 0.0], [0.7, 0.5]]),
        beta=np.array([[0.8, 0.0], [0.6, -0.5]]),
        sigma2=np.array([1.0, 1.5]),
    )
    enroll, test = _speakers("train", 100, 2), _speakers("train", 100, 4)
    scores, _ = simulate(model, enroll, test, seed=seed)
    write(scores, folder / "training.npz")
    speakers = dict(zip([*scores.enroll_ids, *scores.test_ids], [*enroll, *test], strict=True))
    write(speakers, folder / "training.utt2spk", format="utt2spk")
    enroll, test = _speakers("trial", 80, 1), _speakers("trial", 80, 5)
    cohort = _speakers("cohort", 60, 1), _speakers("cohort", 60, 2)
    blocks, _ = simulate_blocks(model, enroll, test, *cohort, seed=seed + 1)
    for block, name in FILES.items():
        write(getattr(blocks, block), folder / name)
    speakers = dict(zip([*blocks.trials.enroll_ids, *blocks.trials.test_ids], [*enroll, *test], strict=True))
    write(speakers, folder / "trials.utt2spk", format="utt2spk")


def _speakers(group: str, count: int, each: int) -> list[str]:
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


def _read_files(folder: Path) -> tuple[tuple[ScoreMatrix, Labels], ScoreBlocks, Labels]:
    """Read what a user would have: training scores and trials with their speakers, and the cohort blocks."""
    from evenscore import ScoreBlocks

    training = _labelled(folder / "training.npz", folder / "training.utt2spk")
    trials, labels = _labelled(folder / FILES["trials"], folder / "trials.utt2spk")
    enroll, test, cohort = (_matrix(folder / FILES[block]) for block in ("enroll", "test", "cohort"))
    return training, ScoreBlocks(trials, enroll=enroll, test=test, cohort=cohort), labels


def _labelled(scores: Path, speakers: Path) -> tuple[ScoreMatrix, Labels]:
    from evenscore import Labels, read_speakers

    matrix, speaker_of = _matrix(scores), read_speakers(speakers, format="utt2spk")
    labels = Labels.from_speakers(speaker_of, speaker_of, enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
    return matrix, labels


def _matrix(path: Path) -> ScoreMatrix:
    from evenscore import read_scores
    from evenscore.cli.combine import as_matrix

    return as_matrix(read_scores(path))


def _figures(blocks: ScoreBlocks, labels: Labels, plain: FitResult, fitted: FitResult) -> dict[str, Any]:
    """Evaluate the trials raw, calibrated without a cohort, and normalized with it."""
    from evenscore import ScoreBlocks, ScoreModelNormalizer, evaluate

    systems = {
        "raw": blocks.trials,
        "calibrated": ScoreModelNormalizer(plain.model).normalize(ScoreBlocks(blocks.trials)),
        "normalized": ScoreModelNormalizer(fitted.model, blocks).normalize(blocks),
    }
    return {name: evaluate(table.to_trials(labels)) for name, table in systems.items()}  # type: ignore[union-attr]


def _print_story(
    training: tuple[ScoreMatrix, Labels],
    blocks: ScoreBlocks,
    labels: Labels,
    fitted: FitResult,
    figures: dict[str, Any],
) -> None:
    target, nontarget, _ = labels.counts
    print_lines(
        [
            f"Training scores: {training[0]}",
            f"Their labels:    {training[1]}",
            f"Trials:          {blocks}",
            f"Their labels:    {target} target, {nontarget} non-target",
            f"Score model:     D = {fitted.model.dim}, {fitted.n_iter} iterations, "
            f"{'converged' if fitted.converged else 'not converged'}",
            "",
        ]
    )
    rows = [
        (SYSTEMS[name], f"{100 * found['eer']:.2f} %", *(f"{found[key]:.3f}" for key in COLUMNS))
        for name, found in figures.items()
    ]
    print_table(rows, header=("", "EER", *COLUMNS.values()), numbers=True)
    print_lines(
        [
            "",
            "The speakers of the trials are neither in the training scores nor in the cohort.",
            "Raw scores are no log-likelihood ratios: their Cllr and actual DCF only show that.",
        ]
    )
