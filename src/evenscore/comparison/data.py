"""What the data of a comparison are: how much of it, and whether the speakers of its parts meet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from operator import add

from evenscore.comparison.cohorts import CohortDiagnostics
from evenscore.comparison.trials import FROM_TARGETS, ComparedTrials
from evenscore.errors import InputError
from evenscore.tables.ids import shown

__all__ = ["FEW_SPEAKERS", "FEW_TARGETS", "DataSummary", "SideSummary", "check_data", "summary_of"]

FEW_TARGETS = 30  #: with fewer target trials the figures are not reliable
FEW_SPEAKERS = 20  #: with fewer speakers the intervals are too narrow
_MOST_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class SideSummary:
    """How much there is in one condition, or in all of them."""

    name: str
    speakers: int
    enrolments: int
    tests: int
    trials: int
    targets: int
    nontargets: int
    unknown: int


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
        training=_total(training),
        evaluation=_total(evaluation),
        training_conditions=_by_condition(training),
        evaluation_conditions=_by_condition(evaluation),
        training_speakers_from=training.speakers_from,
        evaluation_speakers_from=evaluation.speakers_from,
        shared_speakers=tuple(sorted(set(training.speakers) & set(evaluation.speakers))),
    )


def _by_condition(trials: ComparedTrials) -> tuple[SideSummary, ...]:
    return tuple(
        SideSummary(
            name=name,
            speakers=len({*enroll.tolist(), *test.tolist()} - {-1}),
            enrolments=len(enroll),
            tests=len(test),
            trials=count.trials,
            **asdict(count),
        )
        for name, (enroll, test), count in zip(trials.names, trials.codes, trials.counts, strict=True)
    )


def _total(trials: ComparedTrials) -> SideSummary:
    tables = [part.blocks.trials for part in trials.parts]
    return SideSummary(
        name="",
        speakers=len(trials.speakers),
        enrolments=len({name for table in tables for name in table.enroll_ids}),
        tests=len({name for table in tables for name in table.test_ids}),
        trials=len(trials),
        **asdict(reduce(add, trials.counts)),
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
