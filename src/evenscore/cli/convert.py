"""``evenscore convert``: scores, trials, keys, embeddings and speaker maps in another format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from evenscore.cli.options import ToFormat, file_option
from evenscore.data.embeddings import Embeddings
from evenscore.data.labels import Labels
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.files import output_format, read, read_speakers, read_trials, write

__all__ = ["EXAMPLES", "convert"]

EXAMPLES = """
evenscore convert dev.scores dev.npz                    # text to npz
evenscore convert dev.scores dev.csv --key dev.trials   # add labels
evenscore convert a.scores b.scores all.zarr            # put together
evenscore convert xvector.scp xvector.npz --speakers utt2spk
zcat dev.gz | evenscore convert - - --to csv | head     # in a pipe
"""


def convert(
    inputs: Annotated[list[str], typer.Argument(metavar="IN...", help="Files to read; '-' is standard input.")],
    output: Annotated[str, typer.Argument(metavar="OUT", help="File to write; '-' is standard output.")],
    to_format: ToFormat = None,
    from_format: Annotated[str | None, typer.Option("--from", metavar="FORMAT", help="Format of the input.")] = None,
    key: Annotated[str | None, file_option("Labels of the trials.")] = None,
    speakers: Annotated[str | None, file_option("Speakers by id, from which labels follow.")] = None,
    unmatched: Annotated[Literal["error", "drop"], typer.Option(help="Trials that the key does not have.")] = "error",
    matrix: Annotated[bool | None, typer.Option("--matrix/--list", help="Write a matrix, or a list of trials.")] = None,
    missing: Annotated[Literal["error", "skip"], typer.Option(help="Trials without a finite score.")] = "error",
    infinite: Annotated[Literal["error", "accept"], typer.Option(help="Trials with an infinite score.")] = "error",
    duplicates: Annotated[Literal["error", "drop"], typer.Option(help="Trials that are listed twice.")] = "error",
    score_column: Annotated[str | None, typer.Option(metavar="NAME", help="Column of the scores.")] = None,
) -> None:
    """Convert scores, trials, keys, embeddings or speaker maps to another format.

    The format of the input is recognized, that of the output follows from its name. Several inputs are put together by
    id. What a format has no place for, such as labels in Kaldi scores, is left out.
    """
    output_format(output, None, to_format)  # refused before the work, not after it
    how: dict[str, Any] = {"missing": missing, "infinite": infinite, "duplicates": duplicates}
    how |= {"format": from_format, "score_column": score_column}
    table: Any = _put_together([read(path, **how) for path in inputs])
    kind = getattr(table, "kind", "speakers")
    trials = kind in ("scores", "trials")
    if (key and not trials) or (speakers and kind == "speakers"):
        raise InputError("only scores and trials have labels; leave out --key and --speakers")
    if key is not None:
        table = table.to_trials().join(read_trials(key), unmatched=unmatched)
    if speakers is not None and trials:
        table, known = table.to_trials(), read_speakers(speakers)
        labels = Labels.from_speakers(known, known, enroll_ids=table.enroll_ids, test_ids=table.test_ids)
        table = table.with_labels(labels.pairs(table.rows, table.cols))
    elif speakers is not None:
        table = table.with_speakers(read_speakers(speakers))
    if matrix is not None and trials:
        table = table.to_matrix() if matrix else table.to_trials()
    write(table, output, format=to_format)


def _put_together(tables: Sequence[Any]) -> Any:
    """Return several tables of one kind as one."""
    kinds = {getattr(table, "kind", "speakers") for table in tables}
    if len(tables) == 1:
        return tables[0]
    if kinds == {"embeddings"}:
        return Embeddings.concat(tables)
    if kinds == {"speakers"}:
        return _one_map(tables)
    if kinds & {"embeddings", "speakers"}:
        raise InputError("the files hold tables of several kinds, so they cannot become one; convert them apart")
    if all(table.rows is None for table in tables):
        return ScoreMatrix.concat(tables)
    lists = [table.to_trials() for table in tables]
    if len({(trials.scores is None, trials.labels is None) for trials in lists}) > 1:
        raise InputError("some of the files have scores or labels and others have none; convert them apart")
    return TrialList.concat(lists)


def _one_map(maps: Sequence[Mapping[str, str]]) -> dict[str, str]:
    whole: dict[str, str] = {}
    for one in maps:
        for name, speaker in one.items():
            if whole.setdefault(name, speaker) != speaker:
                raise InputError(f"{name!r} has two speakers, {whole[name]!r} and {speaker!r}; keep one")
    return whole
