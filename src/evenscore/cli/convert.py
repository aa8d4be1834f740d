"""``evenscore convert``: from one file format to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.option_records import with_records
from evenscore.cli.output import check_output, progress_bar
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.files import Table

__all__ = ["EXAMPLES", "convert"]

EXAMPLES = """
evenscore convert dev.scores dev.npz                    # text to npz
evenscore convert dev.scores dev.csv --key dev.trials   # add labels
evenscore convert a.scores b.scores all.parquet         # put together
evenscore convert xvector.scp x.npz --speakers utt2spk  # embeddings
zcat dev.gz | evenscore convert - - --to csv | head     # in a pipe
"""


@with_records
def convert(
    inputs: Annotated[list[str], typer.Argument(metavar="IN", help="Files to read; '-' is standard input.")],
    output: Annotated[str, typer.Argument(metavar="OUT", help="File to write; '-' is standard output.")],
    to_format: opt.ToFormat = None,
    key: opt.Key = None,
    speakers: Annotated[
        str | None, opt.file("Map from id to speaker: speakers for embeddings, labels for trials.")
    ] = None,
    unmatched: opt.OnUnmatched = "error",
    matrix: Annotated[
        bool | None,
        typer.Option(
            "--matrix/--list", help="Write scores as a matrix or as a list of trials, where OUT can hold both."
        ),
    ] = None,
    *,
    repairs: opt.ReadingChoices,
) -> None:
    """Convert scores, trials, keys, embeddings or speaker maps to another format.

    The input's format is guessed from its content, the output's follows from its name; --from and --to say it. A name
    that ends in .gz is packed. OUT appears only when everything is written. Several inputs are put together by id. What
    the output's format has no place for (labels in a Kaldi score file) is left out.
    """
    from evenscore.cli.inputs import TRIALS, kind_of
    from evenscore.cli.labelled import as_matrix, with_key
    from evenscore.files import read, read_speakers, read_trials, write

    if matrix and (key or speakers):
        raise typer.BadParameter("a matrix holds no labels: leave out --matrix, or --key and --speakers")
    check_output(output)
    with progress_bar() as progress:
        tables = []
        for number, path in enumerate(inputs):
            progress("reading", number / len(inputs))
            tables.append(read(path, **repairs.options))
        table: Any = _concatenated(tables)
        if key is not None:
            table = with_key(table, read_trials(key), unmatched)
        if speakers is not None:
            table = _with_speakers(table, read_speakers(speakers))
        if matrix:
            table = as_matrix(table)
        elif matrix is False and kind_of(table) in TRIALS:
            table = table.to_trials()
        progress("writing", 0.0)
        write(table, output, format=to_format or _labelled_format(table, output, key or speakers))


def _labelled_format(table: Any, output: str, labels: str | None) -> str | None:
    """Return a text format with labels where the name of the output suggests none and labels were asked for."""
    from evenscore.cli.inputs import kind_of
    from evenscore.files import FORMATS

    known = tuple(ending for format in FORMATS.values() for ending in format.extensions)
    if labels is None or output.lower().removesuffix(".gz").endswith(known):
        return None
    return "wespeaker" if kind_of(table) == "scores" and table.listed else None


def _concatenated(tables: Sequence[Any]) -> Table:
    """Return several tables of one kind as one."""
    from evenscore.cli.inputs import TRIALS, kind_of
    from evenscore.tables import Embeddings, ScoreMatrix, TrialList

    if len(tables) == 1:
        return tables[0]
    kinds = {kind_of(table) for table in tables}
    if kinds <= set(TRIALS):
        if not any(table.listed for table in tables):
            return ScoreMatrix.concat(tables)
        lists = [table.to_trials() for table in tables]
        for what in ("scores", "labels"):
            if len({getattr(trials, what) is None for trials in lists}) > 1:
                raise InputError(f"some of the files have {what} and others have none; convert them apart")
        return TrialList.concat(lists)
    if kinds == {"embeddings"}:
        return Embeddings.concat(tables)
    if kinds == {"speakers"}:
        return _one_map(tables)
    raise InputError("the files hold different kinds of things, so they cannot become one; convert them apart")


def _one_map(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    whole: dict[str, str] = {}
    for speakers in maps:
        for name, speaker in speakers.items():
            if whole.setdefault(name, speaker) != speaker:
                raise InputError(f"utterance {name!r} has two speakers, {whole[name]!r} and {speaker!r}; keep one")
    return whole


def _with_speakers(table: Any, speakers: Mapping[str, str]) -> Table:
    """Return embeddings with the speakers of a map, or trials with the labels that follow from it."""
    from evenscore.cli.inputs import kind_of
    from evenscore.cli.labelled import refuse_contradiction, with_maps
    from evenscore.tables import Labels

    kind = kind_of(table)
    if kind == "embeddings":
        return table.with_speakers(speakers)
    if kind == "speakers":
        raise InputError("a speaker map cannot get speakers from another one; leave out --speakers")
    trials, known = table.to_trials(), ("the speaker map", speakers)
    spoken = with_maps(trials, known, known)
    labels = Labels.of_axes(spoken.enroll_axis, spoken.test_axis).of_pairs(trials.enroll_index, trials.test_index)
    refuse_contradiction(trials, labels, "speaker map")
    return trials.with_labels(labels)
