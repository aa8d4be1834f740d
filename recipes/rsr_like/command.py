"""``python -m recipes.rsr_like``: a corpus under the names of RSR2015 part I."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from evenscore import EvenscoreError, FileError
from evenscore.cli.app import program
from evenscore.cli.output import print_lines, print_table, progress_bar

__all__ = ["APP", "EXAMPLES", "rsr_like"]

EXAMPLES = """
python -m recipes.rsr_like -o tree/
python -m recipes.paper --corpus rsr2015 --root tree/ -o out/ \\
    --gender-dependent --gaussians 16 --rank 5 --shift none
python -m recipes.rsr_like -o tree/ --audiomnist AudioMNIST \\
    --speakers 16 --phrases 30
"""

_MISSING = {"soundfile", "kaldi_native_fbank"}


def rsr_like(
    output: Annotated[str, typer.Option("--output", "-o", metavar="DIR", help="Directory for the corpus.")],
    speakers: Annotated[
        int,
        typer.Option(
            "--speakers", metavar="N", help="Of each gender and set; at most as many as there are, so 57 is all."
        ),
    ] = 4,
    phrases: Annotated[int, typer.Option("--phrases", metavar="N", help="1 to 30.")] = 3,
    sessions: Annotated[int, typer.Option("--sessions", metavar="N", help="2 to 9; 1, 4 and 7 enrol.")] = 9,
    audiomnist: Annotated[
        str | None,
        typer.Option(
            "--audiomnist",
            metavar="DIR",
            help="Take the speech from AudioMNIST, five digits for a phrase, in place of made-up voices.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="Of the made-up voices.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", min=1, metavar="N", help="Number of processes.")] = 1,
) -> None:
    """Make a corpus that is laid out as RSR2015 part I, to try the paper's experiment without it.

    SPHERE files at 16 kHz as sph/male/m001/m001_01_001.sph (speaker m001, session 1, phrase 1), with the sets,
    sessions and genders of RSR2015, and its lists in key/part1/. The voices are made up, or those of AudioMNIST. Needs
    the extra "speech".
    """
    try:
        from recipes.rsr_like.digits import DigitSpeech
        from recipes.rsr_like.synthesizer import Synthesizer
        from recipes.rsr_like.tree import TreeOptions, make_tree
        from recipes.text_dependent.extraction import process_pool
    except ModuleNotFoundError as error:
        if error.name not in _MISSING:
            raise
        raise EvenscoreError(
            f"speech needs the package {error.name}; install it: pip install 'evenscore[speech]'"
        ) from None
    from evenscore.files.streams import writing

    options = TreeOptions(speakers=speakers, phrases=phrases, sessions=sessions)
    if Path(output).exists() and not Path(output).is_dir():
        raise FileError(output, "a file of this name exists, but a directory is needed; choose another name")
    source = Synthesizer(seed=seed) if audiomnist is None else DigitSpeech(audiomnist)
    with progress_bar() as progress, writing(output), ExitStack() as opened:
        pool = opened.enter_context(process_pool(jobs)) if jobs > 1 else None
        sizes = make_tree(output, source, options, pool=pool, progress=progress)
    rows = [
        [f"{size.role}, {size.gender}", *map(str, (len(size.speakers), size.recordings, size.target, size.nontarget))]
        for size in sizes
    ]
    print_table(rows, header=["set", "speakers", "recordings", "target trials", "non-target trials"], numbers=True)
    print_lines(["", f"wrote {output}"])


APP = program("rsr_like", rsr_like, EXAMPLES)
