"""``evenscore normalize``: cohort scores in, comparable scores or log-likelihood ratios out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import norm_options as norms, options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.progress import progress_bar
from evenscore.cli.scale_options import Resume, ScaleChoices
from evenscore.cli.scorers import ScorerOption, scorer_of
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.cli.scored_output import ScoredOutput
    from evenscore.sources import Scorer
    from evenscore.tables import Embeddings, Labels, ScoreBlocks, ScoreTable, TrialList

__all__ = ["EXAMPLES", "cohort_labels", "normalize"]

EXAMPLES = """
evenscore normalize --norm as:top_k=300 --trials s --enroll-cohort e \\
    --test-cohort t -o out
evenscore normalize --norm z --trials s --enroll-cohort e -o out.csv
evenscore normalize --norm lgsm --model m.json --trials s --cohort c \\
    --enroll-cohort e --test-cohort t -o out
evenscore normalize --norm as --trials dev.trials -o out \\
    --enroll-embeddings x --test-embeddings x --cohort-embeddings c
evenscore normalize --norm s --trials s.zarr --enroll-cohort e.zarr \\
    --test-cohort t.zarr --workers 4 -o out.zarr
"""


def _block(name: str, meaning: str) -> Any:
    return typer.Option(f"--{name}", metavar="FILE", help=meaning)


@with_records
def normalize(
    output: opt.Output,
    trials: Annotated[
        str | None,
        typer.Option(
            "--trials", metavar="FILE", help="Scores to be normalized (S); for embeddings, the trials to score, or all."
        ),
    ] = None,
    norm: Annotated[str, norms.NormName] = norms.LGSM,
    model: norms.ModelFile = None,
    enroll_cohort: Annotated[
        str | None, _block("enroll-cohort", "Cohort scores of the enrolments: they against the cohort's tests (S_e).")
    ] = None,
    test_cohort: Annotated[
        str | None, _block("test-cohort", "Cohort scores of the tests: the cohort's enrolments against them (S_t).")
    ] = None,
    cohort: Annotated[str | None, _block("cohort", "Scores of the cohort against itself (S_I).")] = None,
    cohort_key: Annotated[
        str | None, _block("cohort-key", "Labels of the cohort scores; by default all are non-targets.")
    ] = None,
    speakers: norms.TrialSpeakers = None,
    cohort_speakers: norms.CohortSpeakers = None,
    conditions: norms.TrialConditions = None,
    cohort_conditions: norms.CohortConditions = None,
    enroll_embeddings: Annotated[
        str | None, _block("enroll-embeddings", "Embeddings of the enrolments, in place of the blocks of scores.")
    ] = None,
    test_embeddings: Annotated[str | None, _block("test-embeddings", "Embeddings of the tests.")] = None,
    cohort_embeddings: Annotated[
        str | None, _block("cohort-embeddings", "Embeddings of the cohort, which serve on both sides.")
    ] = None,
    scorer: ScorerOption = "cosine",
    *,
    unmatched: opt.OnUnmatched = opt.Unmatched.error,
    missing: opt.OnMissing = opt.Missing.error,
    duplicates: opt.OnDuplicates = opt.Duplicates.error,
    score_column: opt.ScoreColumn = None,
    from_format: opt.FromFormat = None,
    to_format: opt.ToFormat = None,
    scale: ScaleChoices,
    resume: Resume = False,
) -> None:
    """Normalize trial scores with the help of cohort scores.

    lgsm and evidence need a trained model (--model) and return log-likelihood ratios; they work with the cohort scores
    of both sides, of one, or of none. evidence is best with the cohort's own scores and speakers, too. z needs
    --enroll-cohort, t needs --test-cohort, s and as need both, zt and tz also --cohort. The four blocks are matched by
    id; their rows and columns may be in any order. The output keeps the form (matrix or list), the order and the labels
    of the trials. With embeddings of enrolments, tests and cohort, all scores are made by --scorer.

    Options of a norm follow its name after colons, as in as:top_k=300:select=cross. top_k: how many of the highest
    cohort scores as, at and az take (300), or a fraction like 0.1; excess=clip: all, if there are fewer; drop_top: how
    many of the very highest to leave out; select=cross: the other side ranks the cohort; statistic=median or
    statistic=trimmed (with trim=0.1 at each end) instead of mean; ddof=1: variance over n - 1; std_floor: least
    standard deviation; zero_std=one: divide by 1 where it is zero; combine=sqrt2: the sum of the sides over the root of
    2, not half of it; vanished=raw or vanished=missing: trials without a cohort; convention: all these as in wespeaker,
    speechbrain, espnet, asv-subtools, hyperion or bob, where single options win.

    Blocks in .zarr, in .npy with lists of ids beside it, and trials in .parquet are read in chunks if they are large
    or if workers or a memory limit are asked for; the output is then .zarr or .parquet, and is written chunk by chunk.
    """
    reading = {
        "format": from_format,
        "missing": missing.value,
        "duplicates": duplicates.value,
        "score_column": score_column,
    }
    maps = {
        "speakers": speakers,
        "cohort_speakers": cohort_speakers,
        "conditions": conditions,
        "cohort_conditions": cohort_conditions,
    }
    with progress_bar() as progress, scale.client(progress) as client:
        method, settings = norms.norm_settings(norm, model)
        progress("reading", 0.0)
        paths = {"enroll": enroll_cohort, "test": test_cohort, "cohort": cohort}
        vectors = {"enroll": enroll_embeddings, "test": test_embeddings, "cohort": cohort_embeddings}
        made = any(vectors.values())
        if made and (any(paths.values()) or cohort_key):
            raise InputError("both embeddings and cohort scores were given; normalize with one of the two")
        lazy = resume or (scale.given if made else scale.in_chunks(trials, *paths.values()))
        from evenscore.cli.scored_output import scored_output

        how: dict[str, Any] = {"client": client, "progress": progress}
        with scored_output(output, to_format, lazy=lazy, resume=resume, **how) as place:
            if made:
                scoring = scorer_of(scorer), vectors, maps, trials, from_format
                place.write(_from_embeddings(method, settings, *scoring, place, scale if lazy else None, how))
                return
            from evenscore.norms import normalize as normalized, prepare_norm

            settings |= _conditions(method, conditions, cohort_conditions)
            prepare_norm(method, **settings)  # wrong options are refused before anything is read
            key = (cohort_key, unmatched.value)
            blocks = _read_blocks(trials, paths, reading, scale if lazy else None, key, speakers, cohort_speakers)
            place.check(blocks.trials.listed)
            progress("normalizing", 0.3)
            place.write(normalized(blocks, method, **how, keep=place.store, **settings))


def _from_embeddings(
    method: str,
    settings: dict[str, Any],
    scorer: Scorer,
    paths: dict[str, str | None],
    maps: dict[str, str | None],
    trials: str | None,
    format: str | None,
    place: ScoredOutput,
    scale: ScaleChoices | None,
    how: dict[str, Any],
) -> ScoreTable:
    from evenscore.scoring import score_embeddings, score_lazily

    (enroll, test, cohort), listed, condition = _read_embeddings(method, settings, paths, maps, trials, format)
    norm: dict[str, Any] = {"scorer": scorer, "cohort": cohort, "method": method, "condition": condition, **settings}
    if scale is not None:
        place.check(listed is not None)
        return score_lazily(enroll, test, listed, **norm, **how, keep=place.store).in_tiles(scale.tile_bytes)
    normalized = score_embeddings(enroll, test, listed, **norm).normalized
    assert normalized is not None  # noqa: S101
    return normalized


def _read_embeddings(
    method: str,
    settings: dict[str, Any],
    paths: dict[str, str | None],
    maps: dict[str, str | None],
    trials: str | None,
    format: str | None,
) -> tuple[tuple[Embeddings, Embeddings, Embeddings], TrialList | None, str | None]:
    """Return the embeddings of enrolments, tests and cohort, the trials, and the column of the conditions."""
    from evenscore.cli.embedding_sets import CONDITION, EmbeddingFiles
    from evenscore.files import read_trials
    from evenscore.norms import prepare_norm

    for name, path in paths.items():
        if path is None:
            raise InputError(f"to normalize scores of embeddings, --{name}-embeddings is needed too")
    prepare_norm(method, **settings)  # wrong options are refused before anything is read
    files = EmbeddingFiles(**paths, **maps)  # type: ignore[arg-type]
    sides = (*files.read_trial_sides(), files.read_cohort())
    listed = None if trials is None else read_trials(trials, format=format)
    return sides, listed, None if maps["conditions"] is None else CONDITION


def _conditions(method: str, trials: str | None, cohort: str | None) -> dict[str, Any]:
    """Return the conditions of trials and cohort as an option of a norm, or nothing if there are none."""
    if trials is None:
        if cohort is not None:
            raise InputError("--cohort-conditions are those of the cohort; give --conditions of the trials, too")
        return {}
    from evenscore.files.models import trained_methods

    if method in trained_methods():
        raise InputError(f"the norm {method!r} knows no conditions; leave out --conditions")
    from evenscore.cli.embedding_sets import read_conditions
    from evenscore.norms import Conditions

    mine = read_conditions(trials)
    theirs = mine if cohort is None else read_conditions(cohort)
    return {"conditions": Conditions(enroll=mine, test=mine, cohort_enroll=theirs, cohort_test=theirs)}


def _read_blocks(
    trials: str | None,
    paths: dict[str, str | None],
    reading: dict[str, Any],
    scale: ScaleChoices | None,
    cohort_key: tuple[str | None, Any],
    speakers: str | None,
    cohort_speakers: str | None,
) -> ScoreBlocks:
    """Read trials and cohort scores; ``cohort_key`` is the file, and what to do with pairs that do not match."""
    from evenscore.cli.inputs import open_matrix, open_tiles
    from evenscore.cli.labelled import with_map, with_maps
    from evenscore.files import read_speakers
    from evenscore.tables import ScoreBlocks

    if trials is None:
        raise InputError("there is nothing to normalize; give --trials, or embeddings")
    scores = open_tiles(trials, reading, scale)
    blocks: dict[str, Any] = {
        name: open_matrix(path, reading, scale) for name, path in paths.items() if path is not None
    }
    sides: dict[str, Any] = {}
    key, unmatched = cohort_key
    if key is not None:
        if "cohort" not in blocks:
            raise InputError("--cohort-key gives labels to cohort scores; give --cohort too")
        sides["cohort_labels"] = cohort_labels(str(paths["cohort"]), blocks["cohort"], key, unmatched)
    if speakers is not None:
        known = speakers, read_speakers(speakers)
        scores = with_maps(scores, known, known)
    path = cohort_speakers or speakers
    if path is not None:
        known = path, read_speakers(path)
        for side, other in (("enroll", "test"), ("test", "enroll")):
            block = blocks.get("cohort", blocks.get(other))
            if block is not None:
                members = with_map(getattr(block, f"{side}_axis"), known, "cohort member")
                sides[f"cohort_{side}_speakers"] = members.speakers
    return ScoreBlocks(scores, **blocks, **sides)


def cohort_labels(name: str, cohort: ScoreTable, key: str | TrialList, unmatched: Any) -> Labels:
    """Return the labels of cohort scores by a key, or by its file."""
    from evenscore.cli.labelled import LabelledScores, LabelSources, refuse_mismatch
    from evenscore.tables.pair_values import table_of_labels

    known = LabelSources(keys=[key]).read_keys()[0] if isinstance(key, str) else key
    file = LabelledScores(path=name, scores=cohort, given=known, unmatched=unmatched)
    refuse_mismatch([file])
    return table_of_labels(cohort, file.labels)
