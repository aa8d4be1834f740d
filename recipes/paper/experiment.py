"""The paper's experiment, from recordings to results: recognizer, score models, evaluation, dataset shift."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from evenscore import InputError
from evenscore.files import ScoreSet
from evenscore.progress import silent
from recipes.paper.genders import GENDER_NAMES
from recipes.paper.metrics import measure_groups, raw_by_set, summarize_metrics, variances
from recipes.paper.scales import scale_facts
from recipes.paper.shift import CLEAN, DEFAULT_SHIFTS, check_shifts, shift_of
from recipes.paper.stages import StageClock
from recipes.paper.systems import Groups, TrainedSystem, apply_systems, train_systems
from recipes.text_dependent import (
    Corpus,
    RecognizerOptions,
    Split,
    TextDependentSystem,
    role_permutations,
    split_speakers,
)

__all__ = ["MODELS", "PaperOptions", "PaperResult", "run_paper"]

#: Whether score models, cohorts and calibrations are for each gender apart (as in the paper) or for all speakers.
MODELS = {"per-gender": True, "joint": False}

_ALL = 6  # ways to give three sets of speakers three roles


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """What is run.

    Attributes
    ----------
    permutations
        How many of the six ways to give the three sets of speakers their roles; None is all of them, or one if the
        corpus has sets of its own.
    shifts
        Names of shifts, see `check_shifts`; none for no shift.
    shift_side
        ``"test"``: the evaluation tests are shifted, ``"both"``: the evaluation enrolments, too.
    replicates
        Draws of speakers for the intervals of the first split, 0 for no intervals.
    seed
        Of the split of the speakers and of all that is drawn at random.
    """

    permutations: int | None = None
    shifts: tuple[str, ...] = DEFAULT_SHIFTS
    shift_side: str = "test"
    replicates: int = 1000
    seed: int = 0
    recognizer: RecognizerOptions = field(default_factory=RecognizerOptions)

    def __post_init__(self) -> None:
        if self.permutations is not None and not 1 <= self.permutations <= _ALL:
            raise InputError(f"permutations is {self.permutations}, but must be from 1 to {_ALL}")
        if self.shift_side not in ("test", "both"):
            raise InputError(f"shift_side is {self.shift_side!r}, but must be 'test' or 'both'")
        if self.replicates < 0:
            raise InputError(f"replicates is {self.replicates}, but must be at least 0")
        check_shifts(self.shifts)


@dataclass(frozen=True, kw_only=True, eq=False)
class PaperResult:
    """What came out.

    Attributes
    ----------
    figures
        All numbers as plain values, ready for JSON; the same seed gives the same numbers.
    groups
        For each split the evaluation trials by group and system, with score models for each gender.
    scores
        The scores of the first split.
    seconds
        How long each stage took.
    """

    figures: dict[str, Any]
    groups: Sequence[Groups]
    scores: ScoreSet
    seconds: Mapping[str, float]


def run_paper(
    corpus: Corpus,
    options: PaperOptions | None = None,
    *,
    name: str = "recordings",
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    skip_unreadable: bool = False,
    progress: Callable[[str, float], None] = silent,
) -> PaperResult:
    """Run the paper's experiment on a corpus.

    Parameters
    ----------
    corpus
        The recordings.
    options
        What is run.
    name
        Of the corpus, for the report.
    cache, jobs, skip_unreadable
        As in `TextDependentSystem`.
    progress
        Called with a stage name and the fraction done.
    """
    options = options or PaperOptions()
    clock = StageClock(progress)
    system = TextDependentSystem(
        corpus,
        options.recognizer,
        cache=cache,
        jobs=jobs,
        skip_unreadable=skip_unreadable,
        progress=clock,
    )
    splits = _splits(corpus, options)
    runs: list[_Run] = []
    for place, split in enumerate(splits, 1):
        clock.whole((place - 1) / len(splits))
        replicates = options.replicates if place == 1 else 0
        runs.append(_run_split(system, split, options, replicates, clock))
    figures = {
        "corpus": _corpus_facts(corpus, name, system),
        "options": _option_facts(options, len(splits)),
        "splits": [
            {"speakers": _people(corpus, run.split), **_roles(run.split), "models": run.metrics} for run in runs
        ],
        "summary": {kind: summarize_metrics([run.metrics[kind] for run in runs]) for kind in MODELS},
        "variances": summarize_metrics([run.variances for run in runs]),
        "scales": summarize_metrics([run.scales for run in runs]),
        "sets": summarize_metrics([run.sets for run in runs]),
        "shifts": _shift_facts(runs, options),
    }
    return PaperResult(
        figures=figures, groups=[run.groups for run in runs], scores=runs[0].scores, seconds=dict(clock.seconds)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Run:
    """One split of the speakers: what was scored, and what came out."""

    split: Split
    scores: ScoreSet
    groups: Groups
    metrics: dict[str, Any]
    variances: dict[str, Any]
    scales: dict[str, Any]
    sets: dict[str, Any]
    shifted: dict[str, dict[str, Any]]


def _splits(corpus: Corpus, options: PaperOptions) -> list[Split]:
    first = corpus.split or split_speakers(corpus, seed=options.seed)
    number = options.permutations or (_ALL if corpus.split is None else 1)
    return role_permutations(first)[:number]


def _run_split(
    system: TextDependentSystem, split: Split, options: PaperOptions, replicates: int, clock: StageClock
) -> _Run:
    scores = system.score(split)
    clock("scores", 1.0)
    trained = {kind: train_systems(scores, by_gender=by_gender, progress=clock) for kind, by_gender in MODELS.items()}
    groups = {kind: apply_systems(scores, trained[kind]) for kind in MODELS}
    clock("models", 1.0)
    metrics = {
        kind: measure_groups(groups[kind], replicates=replicates, seed=options.seed, progress=clock) for kind in MODELS
    }
    clock("evaluation", 1.0)
    shifted = _run_shifts(system, split, trained, options, clock)
    return _Run(
        split=split,
        scores=scores,
        groups=groups["per-gender"],
        metrics=metrics,
        variances=variances(trained["per-gender"]),
        scales=scale_facts(scores),
        sets=raw_by_set(scores),
        shifted=shifted,
    )


def _run_shifts(
    system: TextDependentSystem,
    split: Split,
    trained: Mapping[str, Mapping[str, Mapping[str, TrainedSystem]]],
    options: PaperOptions,
    clock: StageClock,
) -> dict[str, dict[str, Any]]:
    """Return the metrics under each shift; everything that is trained stays as it is."""
    found: dict[str, dict[str, Any]] = {}
    background = system.corpus.of(split.background)
    for name in options.shifts:
        shift = shift_of(name, options.shifts, background, options.seed)
        scores = system.score(split, degradation=shift, degrade_enrolments=options.shift_side == "both")
        clock("scores", 1.0)
        found[name] = {
            kind: measure_groups(apply_systems(scores, trained[kind]), replicates=0, seed=options.seed)
            for kind in MODELS
        }
        clock("evaluation", 1.0)
    return found


def _shift_facts(runs: Sequence[_Run], options: PaperOptions) -> list[dict[str, Any]]:
    if not options.shifts:
        return []
    conditions = {CLEAN: [run.metrics for run in runs]}
    conditions |= {name: [run.shifted[name] for run in runs] for name in options.shifts}
    return [
        {"name": name, "summary": {kind: summarize_metrics([one[kind] for one in found]) for kind in MODELS}}
        for name, found in conditions.items()
    ]


def _corpus_facts(corpus: Corpus, name: str, system: TextDependentSystem) -> dict[str, Any]:
    return {
        "name": name,
        "n_recordings": len(corpus.recordings) - len(system.skipped),
        "n_phrases": len(corpus.phrases),
        "n_speakers": len(corpus.speakers),
        "skipped": [*corpus.skipped, *system.skipped.values()],
    }


def _option_facts(options: PaperOptions, n_splits: int) -> dict[str, Any]:
    return {
        "seed": options.seed,
        "replicates": options.replicates,
        "splits": n_splits,
        "shifts": list(options.shifts),
        "shift_side": options.shift_side,
        "recognizer": asdict(options.recognizer),
    }


def _roles(split: Split) -> dict[str, Any]:
    return {"roles": {role: list(speakers) for role, speakers in asdict(split).items()}}


def _people(corpus: Corpus, split: Split) -> dict[str, dict[str, int]]:
    """Return how many speakers of each gender have each role."""
    gender = corpus.gender
    return {
        role: dict(Counter(GENDER_NAMES[gender[speaker]] for speaker in sorted(speakers, key=gender.__getitem__)))
        for role, speakers in asdict(split).items()
    }
