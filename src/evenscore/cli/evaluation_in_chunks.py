"""`evenscore evaluate` for scores that are not in memory: counted once, whatever their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenscore.cli.combine import as_list
from evenscore.cli.embedded_scores import Source
from evenscore.cli.evaluated_chunks import LabelledFile, conditions_in_chunks, labelled_files, open_chunked
from evenscore.cli.evaluated_trials import evaluated, labelled
from evenscore.cli.evaluation import EvaluationOptions, evaluate_systems, metadata_of
from evenscore.cli.scale_options import ScaleChoices
from evenscore.errors import InputError
from evenscore.metrics import ScoreSummary
from evenscore.metrics.summary import BITS
from evenscore.metrics.summary_groups import evaluate_groups
from evenscore.progress import Progress
from evenscore.scale import ChunkedTrials

if TYPE_CHECKING:
    from evenscore.files.metadata import Metadata

__all__ = ["evaluate_in_chunks"]

_MOST_IN_MEMORY = 1 << 24  # trials that are brought into memory where counts do not do


def evaluate_in_chunks(
    paths: Sequence[Source],
    options: EvaluationOptions,
    reading: Mapping[str, Any],
    scale: ScaleChoices,
    client: Any,
    progress: Progress,
) -> dict[str, Any]:
    """Return what `evaluate_systems` returns, with bounds; see `evenscore.ScoreSummary.evaluate`."""
    needed = _needs_trials(options)
    if needed is not None:
        return _in_memory(needed, paths, options, reading, scale, progress)
    metadata = metadata_of(options)
    files = labelled_files(paths, options.sources, scale, reading)
    systems = []
    for number, file in enumerate(files):

        def of_all(stage: str, fraction: float, number: int = number) -> None:
            progress(stage, (number + fraction) / len(files))

        systems.append(_evaluated(file, options, metadata, client, of_all))
    return systems[0] if len(systems) == 1 else {"systems": systems}


def _needs_trials(options: EvaluationOptions) -> str | None:
    """Return the option for which counts do not do, None if there is none."""
    if options.replicates:
        return "--bootstrap"
    if options.compared:
        return "--paired"
    return None if options.eer_method == "rocch" else f"--eer {options.eer_method}"


def _in_memory(
    needed: str,
    paths: Sequence[Source],
    options: EvaluationOptions,
    reading: Mapping[str, Any],
    scale: ScaleChoices,
    progress: Progress,
) -> dict[str, Any]:
    """Evaluate few trials as if they had never been in chunks."""
    tables = []
    for path in paths:
        scores, _ = open_chunked(path, scale, reading)
        size = len(scores) if isinstance(scores, ChunkedTrials) else scores.shape[0] * scores.shape[1]
        if size > _MOST_IN_MEMORY:
            raise InputError(
                f"{path}: {needed} needs all trials in memory, and {size} are too many; leave it out, or evaluate a "
                f"list of at most {_MOST_IN_MEMORY} trials"
            )
        tables.append(as_list(scores.gather() if isinstance(scores, ChunkedTrials) else scores.matrix()))
    items = [evaluated(*one) for one in zip(paths, labelled(paths, tables, options.sources), strict=True)]
    return evaluate_systems(items, options, progress)


def _evaluated(
    file: LabelledFile, options: EvaluationOptions, metadata: Metadata | None, client: Any, progress: Progress
) -> dict[str, Any]:
    groupings = []
    for column in options.by:
        assert metadata is not None  # noqa: S101
        groupings.append(conditions_in_chunks(file.scores, metadata, column))
    counts = file.count(
        [groups for _, groups in groupings],
        group_bits=_group_bits(sum(len(names) for names, _ in groupings)),
        client=client,
        progress=progress,
        points=options.points,
    )
    _check(file.path, counts.summary)
    pooled: dict[str, Any] = {}
    conditions = {}
    for column, (names, _), groups in zip(options.by, groupings, counts.groups, strict=True):
        known = {names[number]: summary for number, summary in groups.items() if summary.n_target + summary.n_nontarget}
        found = evaluate_groups(known, counts.summary, equalize=options.equalize, normalize=options.normalize)
        pooled, conditions[column] = found["pooled"], found["conditions"]
    pooled = pooled or counts.summary.evaluate(normalize=options.normalize) | {"equalized": False}
    pooled["n_unknown"] = counts.n_unknown
    result = {"scores": file.path, "eer_method": options.eer_method, "pooled": pooled}
    return result | ({"conditions": conditions} if conditions else {})


def _group_bits(n_groups: int) -> int:
    """Return fewer bits for many conditions, so that their summaries do not take more memory than those of a few."""
    return BITS if n_groups <= 4 else max(BITS - (n_groups // 2).bit_length() + 1, 14)


def _check(path: str, summary: ScoreSummary) -> None:
    """Refuse what tells nothing."""
    target, nontarget = summary.n_target, summary.n_nontarget
    if not target or not nontarget:
        absent = "target" if not target else "non-target"
        raise InputError(
            f"{path}: there are {target} target and {nontarget} non-target trials, and without {absent} trials nothing "
            "can be measured; check the key"
        )
    if summary.bins.size == 1:
        mean = summary.sums.sum() / summary.counts.sum()
        raise InputError(
            f"{path}: all {target + nontarget} scores are {mean:g} or very near it, so they cannot tell targets from "
            "non-targets; check how they were made"
        )
