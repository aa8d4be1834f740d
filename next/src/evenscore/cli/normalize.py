"""``evenscore normalize``: trial and cohort scores in, normalized scores out."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

import typer

from evenscore.cli.options import MemoryLimit, Output, Scheduler, ToFormat, Workers, file_option, parse_name

__all__ = ["EXAMPLES", "normalize"]

EXAMPLES = """
evenscore normalize --trials s --enroll-cohort e --test-cohort t -o out
evenscore normalize --norm as:top_k=300 --trials s --enroll-cohort e --test-cohort t -o out
evenscore normalize --norm zt --trials s --enroll-cohort e --test-cohort t --cohort c -o out
evenscore normalize --norm s --trials s.zarr --enroll-cohort e.zarr --test-cohort t.zarr -o out.zarr
"""


def normalize(
    output: Output,
    trials: Annotated[str, file_option("Scores to be normalized (S).")],
    norm: Annotated[str, typer.Option(metavar="NAME[:OPTION=VALUE]", help="z, t, zt, tz, s, as, at or az.")] = "as",
    enroll_cohort: Annotated[str | None, file_option("Enrolments against the cohort (S_e).")] = None,
    test_cohort: Annotated[str | None, file_option("Cohort against the tests (S_t).")] = None,
    cohort: Annotated[str | None, file_option("Cohort against itself (S_I).")] = None,
    cohort_key: Annotated[str | None, file_option("Labels of --cohort; by default all are non-targets.")] = None,
    enroll_key: Annotated[str | None, file_option("Labels of --enroll-cohort; others are non-targets.")] = None,
    test_key: Annotated[str | None, file_option("Labels of --test-cohort; others are non-targets.")] = None,
    speakers: Annotated[str | None, file_option("Speakers by id: own speakers leave a trial's cohort.")] = None,
    cohort_speakers: Annotated[str | None, file_option("The same for the cohort; else --speakers.")] = None,
    conditions: Annotated[str | None, file_option("Conditions by id: the cohort is of the same one.")] = None,
    cohort_conditions: Annotated[str | None, file_option("The same for the cohort; else --conditions.")] = None,
    folds: Annotated[int | None, typer.Option(metavar="N", help="Folds of speakers that leave a cohort.")] = None,
    to_format: ToFormat = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
) -> None:
    """Normalize trial scores with cohort scores.

    z needs --enroll-cohort, t needs --test-cohort, s and as need both, zt and tz also --cohort. Blocks are matched by
    id. Options follow the name of a norm: top_k, drop_top, select, statistic, trim, ddof, std_floor, zero_std, combine,
    excess, empty, convention.
    """
    from evenscore.cli.inputs import CONDITION, read_blocks
    from evenscore.files import output_format, write
    from evenscore.large import cluster
    from evenscore.norms.options import CLASSICAL, NormOptions
    from evenscore.norms.registry import method_named, normalize as normalize_blocks

    method, _, _ = norm.partition(":")
    method_named(method)
    known = (*(field.name for field in fields(NormOptions)), "convention") if method in CLASSICAL else None
    method, options = parse_name(norm, known)
    output_format(output, "scores", to_format)  # refused before the work, not after it
    keys = {"enroll": enroll_key, "test": test_key, "cohort": cohort_key}
    people = (speakers, cohort_speakers, conditions, cohort_conditions)
    with cluster(workers, scheduler, memory_limit):
        blocks = read_blocks(trials, enroll_cohort, test_cohort, cohort, keys, *people)
        condition = None if conditions is None else CONDITION
        scores = normalize_blocks(blocks, method, folds=folds, condition=condition, **options)
        write(scores, output, format=to_format)
