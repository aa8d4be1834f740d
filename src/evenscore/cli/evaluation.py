"""What `evenscore evaluate` measures: pooled, per condition, with intervals, and one system against another.

Trials in memory are measured one by one; others are counted once, whatever their number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from evenscore.cli.evaluation_tables import PARTITION
from evenscore.cli.findings import FEW_TRIALS
from evenscore.cli.inputs import open_tiles
from evenscore.cli.labelled import (
    LabelledScores,
    LabelSources,
    labelled_scores,
    named,
    speakers_of,
    with_known_speakers,
)
from evenscore.cli.options import Draws, parsed_points
from evenscore.cli.trial_columns import conditions_of, grouped_by
from evenscore.errors import InputError
from evenscore.metrics import (
    NIST_PRESETS,
    OperatingPoint,
    Points,
    Trials,
    bootstrap,
    dev_pav,
    evaluate,
    evaluate_by,
    evaluate_nist,
    llr_bounds,
    paired_test,
)
from evenscore.metrics.summary import BITS
from evenscore.progress import Progress, silent
from evenscore.tables import UNKNOWN, TrialList

if TYPE_CHECKING:
    from evenscore.cli.evaluate import EvaluationChoices, UncertaintyChoices
    from evenscore.cli.options import ScaleChoices
    from evenscore.files.metadata import Metadata

__all__ = ["EvaluationOptions", "evaluate_systems", "evaluated", "open_labelled", "warnings_about"]

INVERTED = 0.5  # area under the ROC, below which scores tell the classes apart the wrong way round
DRAWS = 1000  # of speakers for a comparison, where the number is not given


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions:
    """What to measure, how sure that is, and where labels come from."""

    what: EvaluationChoices
    doubt: UncertaintyChoices
    sources: LabelSources

    def __post_init__(self) -> None:
        chosen = "--spoof" if self.what.spoof is not None else "--preset" if self.what.preset is not None else None
        if chosen is not None:
            given: dict[str, Any] = {"--points": self.what.points, "--by": self.by, "--equalize": self.what.equalize}
            given |= {"--no-normalize": not self.what.normalize, "--bootstrap": self.draws.number}
            given |= {"--paired": self.doubt.paired}
            if chosen == "--preset":
                given["--eer"] = self.what.eer != "rocch"
            else:
                given |= {"--preset": self.what.preset, "--forensic": self.what.forensic}
            refused = next((option for option, value in given.items() if value), None)
            if refused is not None:
                raise InputError(f"{chosen} says all about how trials are scored; leave out {refused}")
        if self.doubt.metric and not self.doubt.paired:
            raise InputError("--metric says what --paired compares; give --paired, too")
        if self.what.equalize and len(self.by) != 1:
            raise InputError("--equalize weighs the conditions of one column; give one --by")
        if self.draws.number or self.doubt.paired:
            drawing = "--bootstrap" if self.draws.number else "--paired"
            if self.eer_method != "rocch":
                raise InputError(f"{drawing} knows the EER by rocch only; leave out --eer {self.eer_method}")
            if self.what.equalize:
                raise InputError(f"{drawing} draws speakers, which changes the weights of --equalize; leave out one")

    @cached_property
    def points(self) -> tuple[OperatingPoint, ...]:
        """The operating points."""
        if self.what.preset is not None:
            return NIST_PRESETS[self.what.preset].points
        return parsed_points(self.what.points)

    @cached_property
    def draws(self) -> Draws:
        """The draws of speakers for intervals; none of them if their number is 0."""
        return Draws.of(self.doubt.bootstrap)

    @property
    def by(self) -> list[str]:
        """The columns that tell conditions."""
        return self.what.by or []

    @property
    def eer_method(self) -> Any:
        """The convention of the EER."""
        return "interpolated" if self.what.preset else self.what.eer

    @property
    def figures(self) -> dict[str, Any]:
        """The options of the library's `evaluate`."""
        return {"points": self.points, "eer_method": self.eer_method, "normalize": self.what.normalize}

    @property
    def needs_trials(self) -> str | None:
        """The option for which counts do not do, None if there is none."""
        if self.draws.number:
            return "--bootstrap"
        if self.doubt.paired or self.what.preset:
            return "--paired" if self.doubt.paired else "--preset"
        if self.what.forensic:
            return "--forensic"
        return None if self.eer_method == "rocch" else f"--eer {self.eer_method}"


@dataclass(frozen=True, kw_only=True)
class EvaluatedTrials:
    """The trials of one score file whose class is known, and how many others there were."""

    path: str
    trials: TrialList
    n_unknown: int


def open_labelled(
    paths: Sequence[str], sources: LabelSources, scale: ScaleChoices | None = None
) -> list[LabelledScores]:
    """Read scores and their labels; with ``scale``, scores that can be read tile by tile stay where they are."""
    return labelled_scores(paths, [open_tiles(path, scale, infinite=True) for path in paths], sources)


def evaluate_systems(
    files: Sequence[LabelledScores],
    options: EvaluationOptions,
    scale: ScaleChoices,
    *,
    client: Any = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Return the figures of one system, or those of each of several systems and how the first two compare.

    Of one system: ``scores`` (the file), ``pooled`` (see `evenscore.evaluate`; with ``n_unknown``, ``equalized`` and,
    where asked for, ``intervals``) and ``conditions``: by column and by value. Of several: ``systems``, a list of
    these, and ``comparisons``, a list of what `evenscore.paired_test` found. Scores that are not in memory, or too many
    to be sorted there, are counted, which gives bounds, if nothing needs the trials themselves.
    """
    large = scale.given or scale.is_large(sum(file.scores.size for file in files))
    metadata = _metadata_of(options)
    systems, items = [], []
    if large and options.needs_trials is None:
        for number, file in enumerate(files):

            def of_all(stage: str, fraction: float, number: int = number) -> None:
                progress(stage, (number + fraction) / len(files))

            tiles = replace(file, scores=file.scores.in_tiles(scale.tile_bytes))
            systems.append(_counted(tiles, options, metadata, client, of_all))
    else:
        for file in files:
            _refuse_too_many(file, options, scale)
        items = [evaluated(file) for file in files]
        for number, item in enumerate(items):
            progress("evaluating", number / len(items))
            systems.append(_evaluated(item, options, metadata))
    if len(files) == 1:
        return systems[0]
    result: dict[str, Any] = {"systems": systems}
    if options.doubt.paired:
        progress("comparing", 0.0)
        metrics = [metric.value for metric in options.doubt.metric or ()] or ["eer"]
        result["comparisons"] = [_compared(items[0], items[1], metric, options) for metric in metrics]
    return result


def evaluated(file: LabelledScores) -> EvaluatedTrials:
    """Return the trials whose class is known, in memory; refuse those that tell nothing."""
    trials = file.trials()
    assert trials.labels is not None and trials.scores is not None  # noqa: S101, PT018
    _refuse_telling_nothing(file.path, Trials(values=trials.scores, key=trials.labels))
    known = trials.select(trials.labels != UNKNOWN) if trials.n_unknown else trials
    return EvaluatedTrials(path=file.path, trials=known, n_unknown=trials.n_unknown)


def _refuse_telling_nothing(path: str, found: Points) -> None:
    """Refuse trials of which nothing can be measured."""
    target, nontarget = found.n_target, found.n_nontarget
    if not target or not nontarget:
        absent = "target" if not target else "non-target"
        raise InputError(
            f"{path}: there are {target} target and {nontarget} non-target trials, and without {absent} trials nothing "
            "can be measured; check the key"
        )
    scores, _ = found.pooled_scores()
    if scores.min() == scores.max():
        near = "" if isinstance(found, Trials) else " or very near it"
        raise InputError(
            f"{path}: all {target + nontarget} scores are {scores[0]:g}{near}, so they cannot tell targets from "
            "non-targets; check how they were made"
        )


def warnings_about(system: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each class with few trials, and one for scores that run the wrong way round."""
    pooled = system["pooled"]
    counts = (("target", pooled["n_target"]), ("non-target", pooled["n_nontarget"]))
    lines = [
        f"{system['scores']} has only {count} {name} trial{'s' * (count != 1)}: error rates are very uncertain"
        for name, count in counts
        if count < FEW_TRIALS
    ]
    area = pooled.get("auc")
    if area is not None and area < INVERTED:
        lines.append(
            f"{system['scores']}: a target scores below a non-target more often than above it (AUC {area:.3f}); are "
            "these distances, whose sign must be changed, or are the labels inverted?"
        )
    return lines


def _refuse_too_many(file: LabelledScores, options: EvaluationOptions, scale: ScaleChoices) -> None:
    """Refuse to bring very many trials into memory."""
    if not file.scores.is_in_memory and scale.is_large(file.scores.size):
        raise InputError(
            f"{file.path}: {options.needs_trials} needs all trials in memory, and {file.scores.size} are too many for "
            f"{scale.room / 1e9:.2g} GB, a quarter of it; leave it out, or evaluate a shorter list of trials"
        )


def _metadata_of(options: EvaluationOptions) -> Metadata | None:
    """Read the table that has the columns of --by; None if there are none."""
    from evenscore.files.metadata import read_metadata

    if not (options.by or (options.what.preset and NIST_PRESETS[options.what.preset].partitions)):
        return None
    if options.what.metadata is not None:
        return read_metadata(options.what.metadata)
    keys = [read_metadata(path) for path in options.sources.keys]
    if not keys or len(keys[0].ids) != 2:
        asked = f"--by {', '.join(options.by)}" if options.by else f"--preset {options.what.preset}"
        raise InputError(f"{asked} needs a file with such a column; give it with --metadata")
    return keys[0]


def _evaluated(item: EvaluatedTrials, options: EvaluationOptions, metadata: Metadata | None) -> dict[str, Any]:
    trials, origin = item.trials, ""
    if options.draws.number:
        trials, origin = with_known_speakers(trials, options.sources, trials)
    conditions, pooled = {}, None
    for column in options.by:
        assert metadata is not None  # noqa: S101
        values = conditions_of(trials, metadata, column)
        found = evaluate_by(trials, conditions=values, equalize=options.what.equalize, **options.figures).to_dict()
        pooled, conditions[column] = found["pooled"], found["conditions"]
        if origin:
            for name, figures in found["conditions"].items():
                if "problem" not in figures:
                    try:
                        figures["intervals"] = _intervals(trials.select(values == name), options)
                    except InputError as error:  # one condition does not stop the others
                        figures["intervals"] = {"problem": str(error)}
    if options.what.preset is not None:
        columns = NIST_PRESETS[options.what.preset].partitions
        known = {} if metadata is None else {name: conditions_of(trials, metadata, name) for name in columns}
        with named(item.path):
            found = evaluate_nist(trials, preset=options.what.preset, columns=known).to_dict()
        pooled = found["pooled"]
        conditions |= {PARTITION: found["conditions"]} if known else {}
    pooled = pooled or evaluate(trials, **options.figures).to_dict() | {"equalized": False}
    if options.what.forensic:
        pooled |= {"dev_pav": dev_pav(trials), "llr_bounds": list(llr_bounds(trials))}
    result = _result(item.path, pooled, item.n_unknown, conditions, options)
    if origin:
        pooled["intervals"] = _intervals(trials, options)
        result["speakers_from"] = origin
    return result


def _counted(
    file: LabelledScores, options: EvaluationOptions, metadata: Metadata | None, client: Any, progress: Progress
) -> dict[str, Any]:
    from evenscore.metrics.counting import evaluate_groups

    groupings = []
    for column in options.by:
        assert metadata is not None  # noqa: S101
        groupings.append(grouped_by(file.scores, metadata, column))
    counts = file.count(
        [groups for _, groups in groupings],
        group_bits=_group_bits(sum(len(names) for names, _ in groupings)),
        client=client,
        progress=progress,
        options={"points": options.points},
    )
    _refuse_telling_nothing(file.path, counts.summary)
    pooled: dict[str, Any] = {}
    conditions = {}
    for column, (names, _), groups in zip(options.by, groupings, counts.groups, strict=True):
        known = {names[number]: summary for number, summary in groups.items() if summary.n_target + summary.n_nontarget}
        how = {"equalize": options.what.equalize, "normalize": options.what.normalize}
        found = evaluate_groups(known, counts.summary, **how).to_dict()
        pooled, conditions[column] = found["pooled"], found["conditions"]
    pooled = pooled or counts.summary.evaluate(normalize=options.what.normalize).to_dict() | {"equalized": False}
    return _result(file.path, pooled, counts.n_unknown, conditions, options)


def _result(
    path: str, pooled: dict[str, Any], n_unknown: int, conditions: dict[str, Any], options: EvaluationOptions
) -> dict[str, Any]:
    pooled["n_unknown"] = n_unknown
    found = {"scores": path, "eer_method": options.eer_method, "pooled": pooled}
    return found | ({"conditions": conditions} if conditions else {})


def _group_bits(n_groups: int) -> int:
    """Return fewer bits for many conditions, so that their summaries do not take more memory than those of a few."""
    return BITS if n_groups <= 4 else max(BITS - (n_groups // 2).bit_length() + 1, 14)


def _intervals(trials: TrialList, options: EvaluationOptions) -> dict[str, Any]:
    drawn = bootstrap(
        trials,
        **speakers_of(trials),
        replicates=options.draws.number,
        points=options.points,
        normalize=options.what.normalize,
        seed=options.draws.seed,
    )
    return drawn.to_dict(options.draws.level)


def _compared(
    first: EvaluatedTrials, second: EvaluatedTrials, metric: Any, options: EvaluationOptions
) -> dict[str, Any]:
    lengths = len(first.trials), len(second.trials)
    if lengths[0] != lengths[1]:
        raise InputError(
            f"{first.path} has {lengths[0]} trials and {second.path} has {lengths[1]}; compare systems on the same ones"
        )
    trials, origin = with_known_speakers(first.trials, options.sources, first.trials)
    found = paired_test(
        trials,
        second.trials,
        **speakers_of(trials),
        metric=metric,
        point=list(options.points),
        normalize=options.what.normalize,
        replicates=options.draws.number or DRAWS,
        level=options.draws.level,
        seed=options.draws.seed,
    )
    names = {"system_a": first.path, "system_b": second.path}
    return {**names, **asdict(found), "speakers_from": origin}
