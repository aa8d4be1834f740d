"""``evenscore score``: from embeddings to raw and normalized scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import norm_options as norms, options as opt
from evenscore.cli.cohort_options import CohortChoices
from evenscore.cli.option_records import option_name, with_records
from evenscore.cli.progress import progress_bar
from evenscore.cli.scale_options import Resume, ScaleChoices, bytes_of
from evenscore.cli.scorers import EnrollMap, ScorerOption, scorer_of
from evenscore.errors import FileError, InputError
from evenscore.spelling import name_and_options

if TYPE_CHECKING:
    from evenscore.cli.scored_output import ScoredOutput
    from evenscore.tables import Embeddings, TrialList

__all__ = ["EXAMPLES", "score"]

EXAMPLES = """
evenscore score --enroll-embeddings x.npz --test-embeddings x.npz \\
    --trials dev.trials -o raw
evenscore score --enroll-embeddings e --test-embeddings t \\
    --scorer plda:model=p.json -o out.npz
evenscore score --enroll-embeddings x.npz --test-embeddings x.npz \\
    --trials dev.trials --norm as:top_k=300 --raw raw -o out \\
    --cohort-embeddings c.npz --cohort-unit speaker
evenscore score --enroll-embeddings x.scp --enroll-map spk2utt \\
    --test-embeddings y.scp --norm evidence --model evidence.json -o out \\
    --cohort-embeddings c.scp --cohort-speakers utt2spk --memory 500MB
evenscore score --enroll-embeddings e.npz --test-embeddings t.npz \\
    --norm as --cohort-embeddings c.npz --workers 4 -o out.zarr
"""


def _file(name: str, meaning: str) -> Any:
    return typer.Option(f"--{name}", metavar="FILE", help=meaning)


@with_records
def score(
    output: opt.Output,
    enroll_embeddings: Annotated[str, _file("enroll-embeddings", "Embeddings of the enrolments.")],
    test_embeddings: Annotated[str, _file("test-embeddings", "Embeddings of the tests; may be the same file.")],
    trials: Annotated[
        str | None, _file("trials", "Trials to score; without, every enrolment against every test.")
    ] = None,
    scorer: ScorerOption = "cosine",
    enroll_map: EnrollMap = None,
    norm: Annotated[str | None, norms.NormName] = None,
    cohort_embeddings: Annotated[
        str | None, _file("cohort-embeddings", "Embeddings of the cohort, which serve on both sides.")
    ] = None,
    *,
    members: CohortChoices,
    model: norms.ModelFile = None,
    speakers: norms.TrialSpeakers = None,
    cohort_speakers: norms.CohortSpeakers = None,
    conditions: norms.TrialConditions = None,
    cohort_conditions: norms.CohortConditions = None,
    memory: Annotated[
        str, typer.Option("--memory", metavar="SIZE", help="Most memory for cohort scores at a time, like 500MB.")
    ] = "2GB",
    raw: Annotated[str | None, _file("raw", "Write the raw scores, too, beside the normalized ones.")] = None,
    from_format: opt.FromFormat = None,
    trials_format: Annotated[
        str | None, typer.Option("--trials-from", metavar="FORMAT", help="Format of the trials; guessed if not given.")
    ] = None,
    to_format: opt.ToFormat = None,
    scale: ScaleChoices,
    resume: Resume = False,
) -> None:
    """Score embeddings of enrolments against embeddings of tests, and normalize the scores with a cohort.

    Each embedding is scored against the cohort once, however often it is listed, and never more cohort scores are kept
    than --memory allows. Speakers come from the embeddings or from maps; a trial's own speakers, and an utterance that
    stands in the trials and in the cohort, are left out of that trial's cohort. The output is a matrix, or the listed
    trials in their order and with their labels; without --norm it holds the raw scores ('evenscore normalize --help'
    explains the options of norms). With workers or a memory limit,
    a matrix is never in memory: it is written to .zarr or .parquet chunk by chunk.
    """
    _check_outputs(output, raw)
    maps = {
        "speakers": speakers,
        "cohort_speakers": cohort_speakers,
        "conditions": conditions,
        "cohort_conditions": cohort_conditions,
    }
    _check_norm(norm, cohort_embeddings, raw, members, {"model": model, **maps})
    bytes_allowed = bytes_of(memory, "--memory")
    from evenscore.cli.embedding_sets import CONDITION, EmbeddingFiles

    files = EmbeddingFiles(
        enroll=enroll_embeddings,
        test=test_embeddings,
        cohort=cohort_embeddings,
        format=from_format,
        enroll_map=enroll_map,
        **maps,
    )
    with progress_bar() as progress, scale.client(progress) as client:
        method, settings = ("", {}) if norm is None else norms.norm_settings(norm, model)
        progress("reading", 0.0)
        from evenscore.files import read_trials

        listed = None if trials is None else read_trials(trials, format=trials_format)
        sides = files.read_trial_sides()
        others = None if cohort_embeddings is None else files.read_cohort(members)
        made_by = scorer_of(scorer)
        progress("reading", 1.0)
        asked: dict[str, Any] = {"scorer": made_by}
        if norm is not None:
            condition = None if conditions is None else CONDITION
            asked |= {"cohort": others, "method": method, "condition": condition, **settings}
        lazy = scale.given or resume
        from evenscore.cli.scored_output import scored_output

        place: dict[str, Any] = {"lazy": lazy, "client": client, "progress": progress}
        with (
            scored_output(output, to_format, resume=resume, **place) as normalized,
            scored_output(raw, to_format, resume=resume and raw is not None, **place) as beside,
        ):
            if not lazy:
                if norm is not None:
                    asked |= {"memory": bytes_allowed, "progress": progress}
                _write_scored(sides, listed, asked, normalized, beside)
                return
            for target, what in ((beside, {"scorer": made_by}), (normalized, asked)):
                if target.path is not None:
                    _write_lazily(sides, listed, what, target, scale)


def _write_scored(
    sides: tuple[Embeddings, Embeddings],
    listed: TrialList | None,
    asked: dict[str, Any],
    output: ScoredOutput,
    raw: ScoredOutput,
) -> None:
    from evenscore.scoring import score_embeddings

    scores = score_embeddings(*sides, listed, **asked)
    if raw.path is not None:
        raw.write(scores.raw)
    output.write(scores.raw if scores.normalized is None else scores.normalized)


def _write_lazily(
    sides: tuple[Embeddings, Embeddings],
    listed: TrialList | None,
    asked: dict[str, Any],
    output: ScoredOutput,
    scale: ScaleChoices,
) -> None:
    """Make scores tile by tile when they are written."""
    from evenscore.scoring import score_lazily

    output.check(listed is not None)
    how: dict[str, Any] = {"client": output.client, "progress": output.progress, "keep": output.store}
    enroll, test = sides
    output.write(score_lazily(enroll, test, listed, **asked, **how).in_tiles(scale.tile_bytes))


def _check_outputs(output: str, raw: str | None) -> None:
    """Refuse places that cannot be written to before the work begins."""
    if raw is not None and raw == output:
        raise InputError("--raw and --output are the same file; give two names")
    for path in (output, raw):
        if path is not None and not Path(path).absolute().parent.is_dir():
            raise FileError(path, "its directory does not exist; create it first")


def _check_norm(
    norm: str | None,
    cohort: str | None,
    raw: str | None,
    members: CohortChoices,
    others: Mapping[str, str | None],
) -> None:
    """Refuse options that only a norm or a cohort gives a meaning."""
    if norm is not None:
        name, _ = name_and_options(norm)
        if cohort is None:
            raise InputError(
                f"the norm {name!r} needs a cohort; give embeddings of other speakers with --cohort-embeddings"
            )
        if others["cohort_conditions"] is not None and others["conditions"] is None:
            raise InputError("--cohort-conditions are those of the cohort; give --conditions of the trials, too")
        return
    changed = [field.name for field in fields(members) if getattr(members, field.name) != field.default]
    given = [*(name for name, value in others.items() if value is not None), *changed]
    if cohort is not None or given:
        odd = "--cohort-embeddings" if cohort is not None else option_name(given[0])
        raise InputError(f"{odd} is for normalized scores; name a norm, such as --norm as, or leave it out")
    if raw is not None:
        raise InputError("without --norm the output holds the raw scores; leave out --raw")
