"""``evenscore simulate``: labelled scores drawn from a score model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import print_lines
from evenscore.errors import FileError, InputError

if TYPE_CHECKING:
    from evenscore.files import Table
    from evenscore.model import ScoreModel
    from evenscore.tables import ScoreBlocks

__all__ = ["EXAMPLES", "simulate"]

EXAMPLES = """
evenscore simulate --speakers 100 -o train     # scores.npz and its key
evenscore simulate --speakers 50 --cohort-speakers 80 -o eval
evenscore simulate --model m.json --speakers 20 -o one.csv
"""

_SIZE = 8  # bytes of a score


def simulate(
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="DIR|FILE", help="Directory for all files, or one file of scores."),
    ],
    speakers: Annotated[int, typer.Option("--speakers", min=1, metavar="N", help="Number of speakers.")] = 100,
    enroll_per_speaker: Annotated[
        int, typer.Option("--enroll-per-speaker", min=1, metavar="A", help="Enrolments of each speaker.")
    ] = 2,
    test_per_speaker: Annotated[
        int, typer.Option("--test-per-speaker", min=1, metavar="B", help="Tests of each speaker.")
    ] = 4,
    cohort_speakers: Annotated[
        int,
        typer.Option(
            "--cohort-speakers", min=0, metavar="N", help="Further speakers as a cohort, with all cohort scores."
        ),
    ] = 0,
    model: Annotated[
        str | None, typer.Option("--model", metavar="FILE", help="Model file; a built-in model (D = 2) if not given.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, metavar="NUMBER", help="Another number, other scores.")] = 0,
    to_format: opt.ToFormat = None,
) -> None:
    """Draw labelled scores from a score model, to try things out or to plan an experiment.

    Into a directory go scores.npz (or the format of --to), key.trials and utt2spk. With --cohort-speakers it is a whole
    experiment: trials, enroll, test and cohort scores, key.trials and cohort.trials with the labels, utt2spk with
    everybody's speaker. An output with the ending of a score format (such as .csv) is one file of labelled scores. The
    built-in model has the variances that Swart and Brümmer report for male speakers of RSR2015: the hidden variables
    explain a fifth of the variance of non-target scores and half of that of target scores.
    """
    from evenscore.model.simulation import simulate as draw, simulate_blocks

    everybody = speakers + cohort_speakers
    _refuse_too_large(everybody * enroll_per_speaker * everybody * test_per_speaker * _SIZE)
    enroll, test = (_named("spk", speakers, each) for each in (enroll_per_speaker, test_per_speaker))
    cohort = tuple(_named("coh", cohort_speakers, each) for each in (enroll_per_speaker, test_per_speaker))
    truth = _model(model)
    single = _is_file(output)
    if single and cohort_speakers:
        raise InputError(f"{output} is one file, but a cohort makes several; name a directory")
    if cohort_speakers:
        blocks, labels = simulate_blocks(truth, enroll, test, *cohort, seed=seed)
        tables = _experiment(blocks)
        tables["key.trials"] = blocks.trials.to_trials(labels)
        speaker_of = dict(zip(_ids(blocks), [*enroll, *test, *cohort[0], *cohort[1]], strict=True))
    else:
        scores, labels = draw(truth, enroll, test, seed=seed)
        trials = scores.to_trials(labels)
        if single:
            _write_one(trials, output, to_format)
            return
        tables = {"scores": scores, "key.trials": trials}
        speaker_of = dict(zip([*scores.enroll_ids, *scores.test_ids], [*enroll, *test], strict=True))
    _write_all(tables, speaker_of, output, to_format)


def _named(group: str, count: int, each: int) -> list[str]:
    return [f"{group}{number}" for number in range(count) for _ in range(each)]


def _model(path: str | None) -> ScoreModel:
    if path is not None:
        from evenscore.files.models import load_model

        return load_model(path)
    import numpy as np

    from evenscore.model import ScoreModel

    return ScoreModel(  # the variances are those of the paper for male speakers: nu is 4.1 and 66
        mu=np.array([-10.0, 25.0]),
        alpha=np.array([[1.43, 0.0], [4.6, 3.5]]),
        beta=np.array([[1.43, 0.0], [4.6, -3.4]]),
        sigma2=np.array([18.9, 55.7]),
    )


def _refuse_too_large(nbytes: int) -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if nbytes > memory:
        raise InputError(
            f"these scores take {nbytes / 1e9:.0f} GB, more than the {memory / 1e9:.0f} GB of memory of this machine; "
            "simulate fewer speakers"
        )


def _is_file(output: str) -> bool:
    from evenscore.files import FORMATS

    endings = tuple(ending for format in FORMATS.values() if "scores" in format.kinds for ending in format.extensions)
    return output == "-" or (output.lower().removesuffix(".gz").endswith(endings) and not Path(output).is_dir())


def _experiment(blocks: ScoreBlocks) -> dict[str, Table]:
    assert blocks.enroll is not None and blocks.test is not None and blocks.cohort is not None  # noqa: S101, PT018
    return {
        "trials": blocks.trials,
        "enroll": blocks.enroll,
        "test": blocks.test,
        "cohort": blocks.cohort,
        "cohort.trials": blocks.cohort.to_trials(blocks.cohort_labels),
    }


def _ids(blocks: ScoreBlocks) -> list[str]:
    assert blocks.cohort is not None  # noqa: S101
    sides = (blocks.trials.enroll_ids, blocks.trials.test_ids, blocks.cohort.enroll_ids, blocks.cohort.test_ids)
    return [name for side in sides for name in side]


def _write_one(trials: Table, output: str, to_format: str | None) -> None:
    from evenscore.files import write

    write(trials, output, format=to_format or ("wespeaker" if output == "-" else None))


def _write_all(tables: dict[str, Table], speaker_of: dict[str, str], output: str, to_format: str | None) -> None:
    from evenscore.files import FORMATS, write
    from evenscore.files.registry import format_named
    from evenscore.files.streams import writing

    chosen = FORMATS["npz"] if to_format is None else format_named(to_format)
    ending = chosen.extensions[0] if chosen.extensions else ".scores"
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise FileError(output, "a file of this name exists, but several files are to be written; name a directory")
    with writing(output):
        folder.mkdir(exist_ok=True)
    written = []
    for name, table in tables.items():
        is_key = name.endswith(".trials")
        path = folder / (name if is_key else name + ending)
        write(_unscored(table) if is_key else table, path, format="kaldi" if is_key else chosen.name)
        written.append(str(path))
    write(speaker_of, folder / "utt2spk", format="utt2spk")
    print_lines([*written, str(folder / "utt2spk")])


def _unscored(table: Table) -> Table:
    from evenscore.tables import TrialList

    assert isinstance(table, TrialList)  # noqa: S101
    return TrialList(table.enroll_ids, table.test_ids, table.enroll_index, table.test_index, labels=table.labels)
