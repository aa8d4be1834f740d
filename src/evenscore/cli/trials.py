"""``evenscore trials``: a list of trials from a speaker map."""

from __future__ import annotations

from typing import Annotated

import typer

from evenscore.cli.options import Output, file_option

__all__ = ["EXAMPLES", "trials"]

EXAMPLES = """
evenscore trials utt2spk -o all.trials                         # all pairs
evenscore trials utt2spk --targets 9 --nontargets 99 -o k.trials
evenscore trials utt2spk --conditions utt2gender -o same_gender.trials
"""


def trials(
    speakers: Annotated[str, typer.Argument(metavar="FILE", help="Speakers by id: utt2spk, spk2utt, or a table.")],
    output: Output,
    targets: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Target trials of each speaker; by default all.")
    ] = None,
    nontargets: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Non-target trials of each speaker; by default all.")
    ] = None,
    conditions: Annotated[str | None, file_option("Conditions by id that are equal on both sides of a trial.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Of the random draws.")] = 0,
) -> None:
    """Make a list of trials with labels from the speakers of utterances.

    An utterance is never tried against itself, and no two utterances in both orders. Trials of so many per speaker are
    drawn at random; the same seed gives the same list.
    """
    from evenscore.files import output_format, read_speakers, write
    from evenscore.scoring import make_trials

    output_format(output, "trials")  # refused before the work, not after it
    known = read_speakers(speakers)
    equal = None if conditions is None else read_speakers(conditions)
    made = make_trials(known, targets=targets, nontargets=nontargets, conditions=equal, seed=seed)
    write(made, output)
    n_target = int((made.labels == 1).sum()) if made.labels is not None else 0
    if output != "-":
        typer.echo(f"{len(made)} trials of {len(set(known.values()))} speakers: {n_target} target")
