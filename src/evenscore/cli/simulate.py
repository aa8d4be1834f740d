"""``evenscore simulate``: labelled scores drawn from a score model."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.cli import options as opt
from evenscore.cli.output import check_output, check_output_folder, print_lines
from evenscore.errors import FileError, InputError
from evenscore.memory import refuse_too_large

if TYPE_CHECKING:
    from evenscore.model import ScoreModel
    from evenscore.tables import TrialList

__all__ = ["EXAMPLES", "simulate"]

EXAMPLES = """
evenscore simulate --speakers 100 -o train     # scores.npz and its key
evenscore simulate --speakers 50 --cohort-speakers 80 -o eval
evenscore simulate --model m.json --speakers 20 -o one.csv
"""

_SIZE = 8  # bytes of a score


def simulate(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR|FILE", help="Directory for all files, or one file of scores.")
    ],
    speakers: Annotated[int, typer.Option(min=1, metavar="N", help="Number of speakers.")] = 100,
    enroll_per_speaker: Annotated[int, typer.Option(min=1, metavar="A", help="Enrolments of each speaker.")] = 2,
    test_per_speaker: Annotated[int, typer.Option(min=1, metavar="B", help="Tests of each speaker.")] = 4,
    cohort_speakers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Further speakers as a cohort, with all cohort scores.")
    ] = 0,
    model: Annotated[str | None, opt.file("Model file; a built-in model (D = 2) if not given.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Another number, other scores.")] = 0,
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

    each = (enroll_per_speaker, test_per_speaker)
    size = (speakers + cohort_speakers) ** 2 * each[0] * each[1] * _SIZE
    refuse_too_large(size, "the whole of these scores", "simulate fewer speakers")
    single = _is_file(output)
    if single and cohort_speakers:
        raise InputError(f"{output} is one file, but a cohort makes several; name a directory")
    if single:
        check_output(output)
    else:
        check_output_folder(output)
    truth = _model(model)
    sides = [
        [f"{group}{number}" for number in range(count) for _ in range(times)]
        for group, count in (("spk", speakers), ("coh", cohort_speakers))
        for times in each
    ]
    if cohort_speakers:
        blocks, labels = simulate_blocks(truth, *sides, seed=seed)
        tables = {name: getattr(blocks, name) for name in ("trials", "enroll", "test", "cohort")}
        keys = {"cohort": tables["cohort"].to_trials(blocks.cohort_labels), "key": blocks.trials.to_trials(labels)}
        matrices = [tables["trials"], tables["cohort"]]
    else:
        scores, labels = draw(truth, sides[0], sides[1], seed=seed)
        tables, keys, matrices = {"scores": scores}, {"key": scores.to_trials(labels)}, [scores]
    if single:
        from evenscore.files import write

        write(keys["key"], output, format=to_format or ("wespeaker" if output == "-" else None))
        return
    ids = [name for matrix in matrices for side in (matrix.enroll_ids, matrix.test_ids) for name in side]
    _write_all(tables, keys, dict(zip(ids, chain(*sides), strict=True)), output, to_format)


def _model(path: str | None) -> ScoreModel:
    if path is not None:
        from evenscore.files.models import load_model

        return load_model(path)
    from evenscore.model import ScoreModel

    return ScoreModel(  # the variances are those of the paper for male speakers: nu is 4.1 and 66
        mu=[-10.0, 25.0], alpha=[[1.43, 0.0], [4.6, 3.5]], beta=[[1.43, 0.0], [4.6, -3.4]], sigma2=[18.9, 55.7]
    )


def _is_file(output: str) -> bool:
    from evenscore.files import FORMATS

    endings = tuple(ending for format in FORMATS.values() if "scores" in format.kinds for ending in format.extensions)
    return output == "-" or (output.lower().removesuffix(".gz").endswith(endings) and not Path(output).is_dir())


def _write_all(
    tables: dict[str, Any], keys: dict[str, TrialList], speaker_of: dict[str, str], output: str, to_format: str | None
) -> None:
    from evenscore.files import FORMATS, write
    from evenscore.files.registry import format_named
    from evenscore.files.streams import writing
    from evenscore.files.working_files import only_run
    from evenscore.tables import TrialList

    chosen = FORMATS["npz"] if to_format is None else format_named(to_format)
    ending = chosen.extensions[0] if chosen.extensions else ".scores"
    folder = Path(output)
    if folder.exists() and not folder.is_dir():
        raise FileError(output, "a file of this name exists, but several files are to be written; name a directory")
    with writing(output):
        folder.mkdir(exist_ok=True)
    files: dict[str, tuple[Any, str]] = {name + ending: (table, chosen.name) for name, table in tables.items()}
    for name, key in keys.items():
        unscored = TrialList(key.enroll_ids, key.test_ids, key.enroll_index, key.test_index, labels=key.labels)
        files[f"{name}.trials"] = unscored, "kaldi"
    files["utt2spk"] = speaker_of, "utt2spk"
    with only_run(folder, output):
        for name, (table, format) in files.items():
            write(table, folder / name, format=format)
    print_lines([str(folder / name) for name in files])
