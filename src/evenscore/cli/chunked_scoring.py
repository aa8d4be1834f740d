"""`evenscore normalize` and `evenscore score` for scores that are not in memory."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenscore.cli.chunked_data import chunked_blocks
from evenscore.cli.scale_options import ScaleChoices
from evenscore.errors import FileError, InputError
from evenscore.files.chunked_output import ChunkedOutput
from evenscore.scale import ChunkedScores, ChunkedTrials, normalize_chunks, score_chunks

if TYPE_CHECKING:
    from evenscore.progress import Progress
    from evenscore.tables import Embeddings, TrialList

__all__ = ["normalize_in_chunks", "output_in_chunks", "score_in_chunks", "write_result"]

_GATHERED = 1 << 28  # bytes of a result that may be brought together in memory, for formats that have no chunks
_ENDINGS = (".zarr", ".parquet", ".pq")


def normalize_in_chunks(
    blocks_of: tuple[str | None, Mapping[str, str | None], Mapping[str, Any], str | None, str | None, Any],
    asked: Mapping[str, Any],
    scale: ScaleChoices,
    resume: bool,
    client: Any,
    progress: Progress,
    files: tuple[str, str | None],
) -> None:
    """Normalize blocks of scores and write them.

    Parameters
    ----------
    blocks_of
        Names of the files of trials and cohort scores, how to read them, and the maps of speakers and the cohort's key.
    asked
        The norm and its options.
    scale, resume, client, progress
        Where and how the work is done.
    files
        The output and its format.
    """
    trials, paths, reading, speakers, cohort_speakers, cohort_key = blocks_of
    if trials is None:
        raise InputError("there is nothing to normalize; give --trials, or embeddings")
    with output_in_chunks(*files, resume) as output:
        blocks = chunked_blocks(trials, paths, scale, reading, speakers, cohort_speakers, cohort_key)
        if output is not None and isinstance(blocks.trials, ChunkedTrials):
            output.refuse_lists()
        result = normalize_chunks(blocks, client=client, progress=progress, keep=output, **asked)
        write_result(result, output, *files, client, progress)


def score_in_chunks(
    sides: tuple[Embeddings, Embeddings],
    listed: TrialList | None,
    asked: Mapping[str, Any],
    scale: ScaleChoices,
    resume: bool,
    client: Any,
    progress: Progress,
    files: tuple[str, str | None, str | None],
) -> None:
    """Score embeddings, normalize the scores, and write them; ``files``: the output, that of raw scores, the format."""
    path, raw, to_format = files
    jobs: list[tuple[str, Mapping[str, Any]]] = [] if raw is None else [(raw, {"scorer": asked["scorer"]})]
    jobs.append((path, asked))
    outputs = [output_in_chunks(name, to_format, resume) for name, _ in jobs]  # wrong names are refused before any work
    for (name, what), place in zip(jobs, outputs, strict=True):
        with place as output:
            if output is not None and listed is not None:
                output.refuse_lists()
            result = score_chunks(*sides, listed, client=client, progress=progress, keep=output, **what)
            write_result(_in_tiles(result, scale), output, name, to_format, client, progress)


def _in_tiles(scores: ChunkedScores | ChunkedTrials, scale: ScaleChoices) -> ChunkedScores | ChunkedTrials:
    return scores.with_tiles(scale.tile_bytes) if isinstance(scores, ChunkedScores) else scores


def output_in_chunks(
    path: str, to_format: str | None, resume: bool
) -> AbstractContextManager[ChunkedOutput] | AbstractContextManager[None]:
    """Return an output in chunks, as a context; None where the format has none."""
    if to_format in ("zarr", "parquet") or (to_format is None and Path(path).suffix.lower() in _ENDINGS):
        if not Path(path).absolute().parent.is_dir():
            raise FileError(path, "its directory does not exist; create it first")
        return ChunkedOutput(path, format=to_format, resume=resume)
    if resume:
        raise FileError(path, "only .zarr and .parquet are written in chunks, so --resume has nothing to go on with")
    return nullcontext()


def write_result(
    result: ChunkedScores | ChunkedTrials,
    output: ChunkedOutput | None,
    path: str,
    to_format: str | None,
    client: Any,
    progress: Progress,
) -> None:
    """Write chunk by chunk, or, in formats that have no chunks, a result that is small enough."""
    if output is not None:
        output.write(result, client=client, progress=progress)
        return
    size = 13 * len(result) if isinstance(result, ChunkedTrials) else result.nbytes
    if size > _GATHERED:
        raise FileError(path, "these scores are too many for this format; write them to .zarr or .parquet")
    from evenscore.cli.scored_output import write_scores

    write_scores(result.gather() if isinstance(result, ChunkedTrials) else result.matrix(), path, to_format)
