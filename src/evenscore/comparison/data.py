"""The data of both sides: in which form it is worked on, how much of it there is, and whether its speakers meet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenscore.comparison.cohorts import CohortDiagnostics
from evenscore.comparison.trials import FROM_TARGETS, ComparedTrials, SideSummary, compared_trials
from evenscore.errors import InputError
from evenscore.metrics import auc
from evenscore.metrics.points import Points
from evenscore.progress import Progress
from evenscore.scoring import find_self_centering
from evenscore.tables import LabelledBlocks, ScoreMatrix
from evenscore.tables.ids import shown

__all__ = [
    "FEW_SPEAKERS",
    "FEW_TARGETS",
    "DataSummary",
    "Sides",
    "centering_warnings",
    "check_data",
    "cohort_warnings",
    "in_memory",
    "inverted_warnings",
]

FEW_TARGETS = 30  #: with fewer target trials the figures are not reliable
FEW_SPEAKERS = 20  #: with fewer speakers the intervals are too narrow
_MOST_NAMED = 20
_INVERTED = 0.5  # area under the ROC
_MOST_SCORES = 20_000_000  # of a training side whose centre is looked at; so many speakers hardly move it
_MEANING = {
    "enroll": "cohort scores of the enrolments",
    "test": "cohort scores of the tests",
    "cohort": "scores of the cohort against itself",
}


@dataclass(frozen=True, kw_only=True)
class DataSummary:
    """How much there is on the training side and on the evaluation side.

    Attributes
    ----------
    training, evaluation
        All conditions together.
    training_conditions, evaluation_conditions
        One for each phrase or condition.
    training_speakers_from, evaluation_speakers_from
        Where it is known from who speaks.
    shared_speakers
        Speakers of both sides.
    """

    training: SideSummary
    evaluation: SideSummary
    training_conditions: tuple[SideSummary, ...]
    evaluation_conditions: tuple[SideSummary, ...]
    training_speakers_from: str
    evaluation_speakers_from: str
    shared_speakers: tuple[str, ...] = field(default=())


def summary_of(training: ComparedTrials, evaluation: ComparedTrials) -> DataSummary:
    """Count what there is."""
    return DataSummary(
        training=training.summary,
        evaluation=evaluation.summary,
        training_conditions=training.summaries,
        evaluation_conditions=evaluation.summaries,
        training_speakers_from=training.speakers_from,
        evaluation_speakers_from=evaluation.speakers_from,
        shared_speakers=tuple(sorted(set(training.speakers) & set(evaluation.speakers))),
    )


def check_data(data: DataSummary, speakers: Sequence[Sequence[str]], *, allow_overlap: bool) -> list[str]:
    """Refuse data on which nothing can be compared, and return what the user should be warned of.

    ``speakers`` are those of the training and of the evaluation side.
    """
    warnings = []
    for side, part, names in (("training", data.training, speakers[0]), ("evaluation", data.evaluation, speakers[1])):
        if len(names) < 2:
            who = f"one speaker, {names[0]!r}" if names else "nobody"
            raise InputError(f"all {side} trials are of {who}; at least two speakers are needed, better twenty")
        if not part.targets or not part.nontargets:
            raise InputError(
                f"the {side} side has {part.targets} target and {part.nontargets} non-target trials, but both kinds "
                "are needed; check the key"
            )
        if part.targets < FEW_TARGETS:
            warnings.append(
                f"only {part.targets} target trials on the {side} side: the figures are not reliable; "
                f"have {FEW_TARGETS} or more"
            )
        if len(names) < FEW_SPEAKERS:
            warnings.append(f"only {len(names)} speakers on the {side} side: the real uncertainty is larger than shown")
    shared = data.shared_speakers
    if shared:
        count = "1 speaker is" if len(shared) == 1 else f"{len(shared)} speakers are"
        overlap = f"{count} on the training side and on the evaluation side: {shown(shared, _MOST_NAMED)}"
        if not allow_overlap:
            raise InputError(f"{overlap}; take them out of one side, or allow it with allow_overlap=True")
        warnings.append(f"{overlap}; the figures are better than they would be for new speakers")
    origins = (data.training_speakers_from, data.evaluation_speakers_from)
    if FROM_TARGETS in origins and not shared:
        warnings.append(
            "who speaks is known only as far as target trials connect ids, so speakers of both sides may go unseen; "
            "give maps of speakers to be sure"
        )
    return warnings


def centering_warnings(training: Sequence[LabelledBlocks]) -> list[str]:
    """Return what is odd about the centre of the training scores: it should not contain a trial's own speakers."""
    trials: Any = training[0].blocks.trials
    known = trials.enroll_axis.speakers is not None and trials.test_axis.speakers is not None
    if len(training) > 1 or not known or not isinstance(trials, ScoreMatrix) or trials.size > _MOST_SCORES:
        return []
    found = find_self_centering(trials)
    if not found.found:
        return []
    return [
        "the training scores look as if their vectors had been centred on their own speakers, which the evaluation's "
        f"are not: {found}; centre each training trial without its two speakers, see 'Train as you evaluate'"
    ]


def inverted_warnings(sides: Mapping[str, Iterable[Points]]) -> list[str]:
    """Name the sides of whose raw scores targets have the lower ones."""
    return [
        f"a target scores below a non-target more often than above it on the {side} side (AUC {area:.3f}); are these "
        "distances, whose sign must be changed, or are the labels inverted?"
        for side, parts in sides.items()
        if (area := min(map(auc, parts), default=1.0)) < _INVERTED
    ]


def cohort_warnings(cohorts: Iterable[CohortDiagnostics]) -> list[str]:
    """Return what is odd about the cohorts."""
    found = list(cohorts)
    shared = sorted({name for cohort in found for name in cohort.shared_with_evaluation})
    warnings = []
    if shared:
        count = "1 evaluation speaker is" if len(shared) == 1 else f"{len(shared)} evaluation speakers are"
        left_out = all(cohort.own_speakers_left_out for cohort in found if cohort.shared_with_evaluation)
        remedy = "they are left out of their own trials' cohort" if left_out else "give the speakers of both sides"
        warnings.append(f"{count} in the cohort: {shown(shared, _MOST_NAMED)}; {remedy}")
    hidden = sum(cohort.n_hidden_targets for cohort in found)
    if hidden:
        first = next(cohort.hidden_targets[0] for cohort in found if cohort.hidden_targets)
        warnings.append(
            f"{hidden} cohort score{' looks' if hidden == 1 else 's look'} like that of one speaker on both sides, "
            f"highest {first.score:.4g} of {first.trial_id!r} and {first.cohort_id!r}; is the speaker in the cohort?"
        )
    return warnings


@dataclass(frozen=True, kw_only=True, eq=False)
class Sides:
    """The data of both sides, and the Dask client that works on what is not in memory."""

    training: Sequence[LabelledBlocks]
    evaluation: Sequence[LabelledBlocks]
    training_trials: ComparedTrials
    trials: ComparedTrials
    client: Any = None

    @classmethod
    def of(
        cls,
        training: Sequence[LabelledBlocks],
        evaluation: Sequence[LabelledBlocks],
        *,
        client: Any,
        memory: float | None,
        progress: Progress,
    ) -> tuple[Sides, list[str]]:
        """Return the data, and what the user should know about it."""
        training, evaluation, warnings = shared_blocks(training, evaluation)
        training = in_memory(training, memory)
        sides = cls(
            training=training,
            evaluation=evaluation,
            training_trials=compared_trials(training, client=client, progress=progress),
            trials=compared_trials(evaluation, client=client, progress=progress),
            client=client,
        )
        if not sides.training_trials.is_in_memory:
            warnings.append(
                "the training side does not fit into memory: methods are calibrated from summaries of its scores, and "
                "have no cross-validated figures of it"
            )
        return sides, warnings


def in_memory(training: Sequence[LabelledBlocks], memory: float | None = None) -> list[LabelledBlocks]:
    """Bring the training side into memory if work on it takes no more than so many bytes, by default `memory_room`."""
    from evenscore.files.streams import TRIAL_BYTES, memory_room

    outside = [part for part in training if not part.blocks.is_in_memory]
    fits = TRIAL_BYTES * sum(part.n_scores for part in outside) <= (memory_room() if memory is None else memory)
    return [part.in_memory() if fits and not part.blocks.is_in_memory else part for part in training]


def shared_blocks(
    training: Sequence[LabelledBlocks], evaluation: Sequence[LabelledBlocks]
) -> tuple[list[LabelledBlocks], list[LabelledBlocks], list[str]]:
    """Return both sides without the blocks that one of them lacks, and a warning for each such block.

    So a norm is calibrated with the same kinds of cohort scores that it meets later.

    Examples
    --------
    >>> from evenscore import ScoreBlocks, ScoreMatrix, TrialList
    >>> trials = TrialList.from_pairs(["e"], ["t"], scores=[1.0], labels=[1])
    >>> bare = LabelledBlocks(ScoreBlocks(trials))
    >>> full = LabelledBlocks(ScoreBlocks(trials, enroll=ScoreMatrix([[0.0]], ["e"], ["c"])))
    >>> _, [part], [warning] = shared_blocks([bare], [full])
    >>> part.blocks
    ScoreBlocks(1 listed trials)
    >>> warning
    'the cohort scores of the enrolments (enroll) are not on the training side, so nobody uses them'
    """
    dropped, warnings = [], []
    for name, meaning in _MEANING.items():
        lacking = [
            side
            for side, parts in (("training", training), ("evaluation", evaluation))
            if any(getattr(part.blocks, name) is None for part in parts)
        ]
        anywhere = any(getattr(part.blocks, name) is not None for part in (*training, *evaluation))
        if lacking and anywhere:
            dropped.append(name)
            sides = "on either side of all conditions" if len(lacking) == 2 else f"on the {lacking[0]} side"
            warnings.append(f"the {meaning} ({name}) are not {sides}, so nobody uses them")
    if not dropped:
        return list(training), list(evaluation), []
    return [_without(part, dropped) for part in training], [_without(part, dropped) for part in evaluation], warnings


def _without(part: LabelledBlocks, dropped: Sequence[str]) -> LabelledBlocks:
    return replace(part, blocks=part.blocks.replace(**dict.fromkeys(dropped)))
