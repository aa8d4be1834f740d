"""Training scores whose vectors were centred on their own speakers: said so, or mended if asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from evenscore.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenscore.scoring import SelfCentering
    from evenscore.tables import LabelledBlocks, Labels, ScoreMatrix

__all__ = ["SelfCenteredOption", "mended", "mended_training", "note_on"]

Choice = Literal["keep", "correct"]
SelfCenteredOption = Annotated[
    Choice,
    typer.Option(
        "--self-centered",
        help="What to do with training scores, given as such, that were centred on their own speakers, as new trials "
        "are not: keep them, or correct them (one matrix of cosines or dot products, without phrases).",
    ),
]

_REMEDY = (
    "correct them with --self-centered correct, or better score them anew, each pair with a centre without its two"
)


def note_on(found: SelfCentering) -> list[str]:
    """Return what to say about scores that are kept as they are."""
    if not found.found:
        return []
    return [
        "the scores look as if their vectors had been centred on their own speakers, which new speakers are not: "
        f"{found}; {_REMEDY}"
    ]


def mended(matrix: ScoreMatrix, labels: Labels | None) -> ScoreMatrix:
    """Return corrected scores; such that do not look self-centred are refused."""
    from evenscore.scoring import correct_self_centering, find_self_centering

    found = find_self_centering(matrix, labels)
    if not found.found:
        raise InputError(
            f"the training scores do not look centred on their own speakers ({found}, not about 0), so there is "
            "nothing to correct; leave out --self-centered"
        )
    return correct_self_centering(matrix, labels)


def refuse_several(parts: Sequence[Any]) -> None:
    """Refuse to correct scores by phrase: their centre is that of all phrases, which a single one does not show."""
    if len(parts) > 1:
        raise InputError(
            f"--self-centered correct is for one matrix, but there are {len(parts)}; the centre of several phrases "
            "cannot be told from the scores of one, so score the embeddings anew"
        )


def mended_training(training: list[LabelledBlocks]) -> list[LabelledBlocks]:
    """Return the training side with corrected scores; it must be its own cohort."""
    from evenscore.tables import LabelledBlocks, Labels

    refuse_several(training)
    [part] = training
    trials, cohort = part.blocks.trials, part.blocks.cohort
    if not trials.is_in_memory or trials.listed:
        raise InputError("--self-centered correct is for a matrix in memory; leave out --workers and --memory-limit")
    own = cohort is not None and all(
        getattr(cohort, side).same_ids(getattr(trials, side)) for side in ("enroll_axis", "test_axis")
    )
    if not own:
        raise InputError("--self-centered correct is for a training side that is its own cohort; leave out --cohort")
    scores: Any = mended(trials, Labels.of_axes(trials.enroll_axis, trials.test_axis))
    blocks = part.blocks.replace(trials=scores, enroll=scores, test=scores, cohort=scores)
    return [LabelledBlocks(blocks, part.labels, part.name, part.unmatched)]
