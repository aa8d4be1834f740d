"""``evenscore simulate``: labelled scores drawn from a score model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenscore.cli.options import ToFormat, file_option
from evenscore.errors import InputError

__all__ = ["EXAMPLES", "simulate"]

EXAMPLES = """
evenscore simulate --speakers 100 -o train     # scores.npz and its key
evenscore simulate --speakers 50 --cohort-speakers 80 -o eval
evenscore simulate --model m.json --speakers 20 -o one.csv
"""

_MOST_SCORES = 10**9  # which are 8 GB


def simulate(
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="DIR|FILE", help="Directory, or one file of scores.")
    ],
    speakers: Annotated[int, typer.Option(min=1, metavar="N", help="Number of speakers.")] = 100,
    enroll_per_speaker: Annotated[int, typer.Option(min=1, metavar="N", help="Enrolments of each.")] = 2,
    test_per_speaker: Annotated[int, typer.Option(min=1, metavar="N", help="Tests of each.")] = 4,
    cohort_speakers: Annotated[int, typer.Option(min=0, metavar="N", help="Further speakers as a cohort.")] = 0,
    model: Annotated[str | None, file_option("Score model; by default one with D = 2.")] = None,
    seed: Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Another number, other scores.")] = 0,
    to_format: ToFormat = None,
) -> None:
    """Draw labelled scores from a score model, to try things out or to plan an experiment.

    Into a directory go scores.npz (or the format of --to), key.trials and utt2spk; with --cohort-speakers trials,
    enroll, test and cohort scores, their keys key.trials and cohort.trials, and utt2spk. An output with the ending of a
    score format (such as .csv) is one file of labelled scores. The model without --model has the variances that Swart
    and Brümmer report for male speakers of RSR2015.
    """
    from evenscore.data.labels import Labels
    from evenscore.data.trial_list import TrialList
    from evenscore.files import FORMATS, output_format, read_model, write
    from evenscore.model import ScoreModel, simulate as draw, simulate_blocks

    known: Any = {"mu": [-10.0, 25.0], "sigma2": [18.9, 55.7]}
    known |= {"alpha": [[1.43, 0.0], [4.6, 3.5]], "beta": [[1.43, 0.0], [4.6, -3.4]]}
    truth = ScoreModel(**known) if model is None else read_model(model, ScoreModel)
    endings = tuple(end for each in FORMATS.values() if "scores" in each.kinds for end in each.extensions)
    single = output == "-" or (output.removesuffix(".gz").endswith(endings) and not Path(output).is_dir())
    if single and cohort_speakers:
        raise InputError(f"{output} is one file, but a cohort makes several; name a directory")
    n_scores = (speakers + cohort_speakers) ** 2 * enroll_per_speaker * test_per_speaker
    if n_scores > _MOST_SCORES:
        raise InputError(f"these are {n_scores:.1e} scores, but at most {_MOST_SCORES:.0e} are drawn; ask for fewer")
    chosen = output_format(output if single else f"{output}.npz", "scores", to_format)
    people = [f"spk{n}" for n in range(speakers)]
    others = [f"coh{n}" for n in range(cohort_speakers)]
    sides = [sorted(group * times) for group in (people, others) for times in (enroll_per_speaker, test_per_speaker)]
    if not cohort_speakers:
        trials, labels = draw(truth, sides[0], sides[1], seed=seed)
        tables, keys = {"scores": trials}, {"key": trials.to_trials(labels)}
    else:
        blocks, labels = simulate_blocks(truth, sides[0], sides[1], sides[2], sides[3], seed=seed)
        tables = {name: getattr(blocks, name) for name in ("trials", "enroll", "test", "cohort")}
        own = Labels.from_speakers(tables["cohort"].enroll, tables["cohort"].test)
        keys = {"key": tables["trials"].to_trials(labels), "cohort": tables["cohort"].to_trials(own)}
    if single:
        write(keys["key"], output, format=to_format)
        return
    folder = Path(output)
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        write(table, folder / f"{name}{chosen.extensions[0] if chosen.extensions else '.scores'}", format=chosen.name)
    ids: list[str] = []
    for name, key in keys.items():
        ids += [*key.enroll_ids, *key.test_ids]
        unscored = TrialList.trusted(key.enroll, key.test, key.rows, key.cols, labels=key.labels)
        write(unscored, folder / f"{name}.trials", format="kaldi")
    write(dict(zip(ids, (name for side in sides for name in side), strict=True)), folder / "utt2spk")
    typer.echo("\n".join(sorted(map(str, folder.iterdir()))))
