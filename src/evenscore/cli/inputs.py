"""From what a command line names to tables, labels, score blocks, embeddings and scorers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.labels import Labels
from evenscore.data.score_matrix import LARGEST_SCORE, ScoreMatrix, first_bad_score
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError, InputError, quoted
from evenscore.files import FORMATS, read_embeddings, read_model, read_scores, read_speakers, read_trials
from evenscore.large import Scores, is_dask
from evenscore.spelling import parse_name

if TYPE_CHECKING:
    from evenscore.data.embeddings import Embeddings
    from evenscore.scoring.scorers import Scorer

__all__ = ["CONDITION", "facts_of_ids", "labelled_format", "read_blocks", "read_labelled", "read_scorer", "read_sides"]
__all__ += ["refuse_overflow", "score_training", "warn_self_pairs"]

CONDITION = "condition"  #: the column that --conditions gives to every side
AnySide = TypeVar("AnySide", bound=Side)
Table = ScoreMatrix | TrialList


def facts_of_ids(speakers: str | None, conditions: str | None) -> Callable[[AnySide], AnySide]:
    """Return a function that gives a side the speakers and conditions of files.

    Every id needs a speaker; a condition that is absent or '-' is unknown.
    """
    if speakers is None and conditions is None:
        return lambda side: side
    people = None if speakers is None else read_speakers(speakers)
    groups = None if conditions is None else read_speakers(conditions)

    def described(side: Any) -> Any:
        names = side.ids.tolist()
        if people is not None:
            absent = [name for name in names if name not in people]
            if absent:
                raise FileError(str(speakers), f"it has no line for {quoted(absent)}; add them")
            side = side.with_speakers([people[name] for name in names])
        if groups is not None:
            import numpy as np

            values = [groups.get(name, "") for name in names]
            column = np.array(["" if value == "-" else value for value in values], dtype=object)
            side = side.with_columns({CONDITION: column})
        return side

    return described


def read_blocks(
    trials: str,
    enroll: str | None,
    test: str | None,
    cohort: str | None,
    keys: tuple[str | None, str | None, str | None],
    of_trials: Callable[[Side], Side],
    of_cohort: Callable[[Side], Side],
) -> ScoreBlocks:
    """Read trials and cohort scores; ``keys`` are the labels of enroll, test and cohort scores."""
    scores = read_scores(trials)
    scores = scores.with_sides(of_trials(scores.enroll), of_trials(scores.test))
    S_e, S_t, S_I = (None if path is None else read_scores(path).to_matrix() for path in (enroll, test, cohort))
    S_e = S_e and S_e.with_sides(S_e.enroll, of_cohort(S_e.test))
    S_t = S_t and S_t.with_sides(of_cohort(S_t.enroll), S_t.test)
    S_I = S_I and S_I.with_sides(of_cohort(S_I.enroll), of_cohort(S_I.test))
    names = (("--enroll-key", "--enroll-cohort"), ("--test-key", "--test-cohort"), ("--cohort-key", "--cohort"))
    labels = [
        None if path is None else _read_key(path, block, *of)
        for path, block, of in zip(keys, (S_e, S_t, S_I), names, strict=True)
    ]
    cohort_labels = None if labels[2] is None else Labels.from_trials(labels[2])
    return ScoreBlocks(
        scores, S_e, S_t, S_I, enroll_labels=labels[0], test_labels=labels[1], cohort_labels=cohort_labels
    )


def _read_key(path: str, block: ScoreMatrix | None, option: str, scores: str) -> TrialList:
    """Read the labels of a block of cohort scores; every pair that it lists must be there."""
    if block is None:
        raise InputError(f"{option} has the labels of {scores}; give these scores, too")
    key = read_trials(path)
    for side, there in ((key.enroll, block.enroll), (key.test, block.test)):
        found = there.find(side.ids)
        if (found < 0).any():
            raise FileError(path, f"{quoted(side.ids[found < 0])} not among the scores of {scores}")
    return key


def read_labelled(
    scores: Sequence[str],
    keys: Sequence[str],
    speakers: str | None,
    key_option: str = "--key",
) -> list[tuple[Table, Labels | None]]:
    """Read labelled scores: a list of trials has its labels itself, a matrix has them beside it.

    Labels are those of keys (one for all files or one for each), of speaker maps, or of the score files.
    """
    if keys and speakers is not None:
        raise InputError("--key and --speakers both give labels; leave out one of them")
    if len(keys) not in (0, 1, len(scores)):
        raise InputError(f"there are {len(keys)} of --key, but {len(scores)} of --scores; give one for all or for each")
    described = facts_of_ids(speakers, None)
    parts: list[tuple[Table, Labels | None]] = []
    for number, path in enumerate(scores):
        table = read_scores(path)
        table = table.with_sides(described(table.enroll), described(table.test))
        if keys:
            parts.append(_with_key(table, keys[number if len(keys) > 1 else 0]))
        elif speakers is not None:
            labels = Labels.from_speakers(table.enroll, table.test)
            listed = None if table.rows is None else table.with_labels(labels.pairs(table.rows, table.cols))
            parts.append((table, labels) if listed is None else (listed, None))
        elif getattr(table, "labels", None) is not None:
            parts.append((table, None))
        else:
            raise FileError(path, f"its scores have no labels; give them by {key_option} or --speakers")
    return parts


def _with_key(table: Table, path: str) -> tuple[Table, Labels | None]:
    """Return a list of trials with labels of a key, or a matrix and its labels; pairs that have none are not used."""
    key = read_trials(path)
    if key.labels is None:
        raise FileError(path, "it has no labels; give a key")
    try:
        if table.rows is None:
            return table, Labels.from_trials(key).align(table.enroll, table.test)
        return table.join(key), None
    except InputError as error:
        raise FileError(path, str(error)) from None


def read_scorer(text: str) -> Scorer:
    """Return the scorer that ``--scorer`` names, trained on the file that it names, if it does."""
    from evenscore.scoring import make_scorer

    background, options = _scorer_options(text)
    return make_scorer(training=background, **options)


def score_training(text: str, enroll: Embeddings, test: Embeddings) -> ScoreMatrix:
    """Score training trials; those of speakers that the scorer was trained on are scored by folds without them."""
    from evenscore.scoring import make_scorer, score_by_folds, score_embeddings

    background, options = _scorer_options(text)
    known = {*(() if background is None or background.speakers is None else background.speakers)} - {None}
    sides = [set() if side.speakers is None else {*side.speakers} for side in (enroll, test)]
    if background is None or not known & (sides[0] | sides[1]):
        return score_embeddings(enroll, test, scorer=make_scorer(training=background, **options)).to_matrix()
    return score_by_folds(lambda part: make_scorer(training=part, **options), background, enroll, test)


def read_sides(
    enroll: str, test: str, enroll_map: str | None = None, scorer: Scorer | None = None
) -> tuple[Embeddings, Embeddings]:
    """Read the embeddings of both sides, one object if they are one file; enrolments of a map are made of several."""
    from evenscore.scoring import enroll_models, make_scorer

    left = read_embeddings(enroll)
    right = left if test == enroll else read_embeddings(test)
    if enroll_map is None:
        return left, right
    path, options = parse_name(enroll_map, ("length_norm",))
    members: dict[str, list[str]] = {}
    for utterance, model in read_speakers(path).items():
        members.setdefault(model, []).append(utterance)
    return enroll_models(make_scorer() if scorer is None else scorer, left, members, **options), right


def _scorer_options(text: str) -> tuple[Embeddings | None, dict[str, Any]]:
    """Return what a scorer is trained on, and the name and the options of `make_scorer`."""
    from evenscore.scoring import PLDA, SCORERS

    name = text.partition(":")[0]
    if name not in SCORERS:
        raise InputError(f"there is no scorer {name!r}; there are {', '.join(SCORERS)}")
    name, options = parse_name(text, (*SCORERS[name], "train"))
    background = read_embeddings(str(options.pop("train"))) if "train" in options else None
    if name == "plda" and "model" not in options and background is None:
        raise InputError("--scorer plda needs a trained PLDA; give plda:model=FILE, made by 'evenscore plda'")
    if "model" in options:
        options["model"] = read_model(str(options["model"]), PLDA)
    if "center" in options:
        center = read_embeddings(str(options["center"]))
        fixed = background is not None or name == "plda"
        options["center"] = center.vectors.mean(axis=0, dtype=float) if fixed else "mean"
        background = background if fixed else center
    return background, {"scorer": name, **options}


def warn_self_pairs(table: Table) -> None:
    """Say so if there are trials of an utterance against itself."""
    at = table.test.find(table.enroll_ids)
    if (at >= 0).any():
        trials = table.to_trials()
        number = int((trials.test.find(trials.enroll_ids)[trials.rows] == trials.cols).sum())
        if number:
            typer.echo(f"warning: in {number} trials an id stands on both sides; leave these out", err=True)


def refuse_overflow(table: Table, *, infinite: bool = False) -> Table:
    """Return the same scores, checked; a score that no reader would accept is an error (of dask, when it is computed).

    ``infinite`` accepts LLRs of plus and minus infinity.
    """

    def check(part: Scores) -> Scores:
        bad = first_bad_score(part, infinite=infinite)
        if bad is not None:
            limit = f"scores are at most {LARGEST_SCORE:g}"
            raise InputError(f"a score of the output is {part.flat[bad]:g}, but {limit}; scale the input")
        return part

    scores: Scores = table.scores
    if is_dask(scores):  # a name of its own: that of a closure would differ between processes
        return table.with_normalized(scores.map_blocks(check, name=f"checked-{scores.name}", meta=scores._meta))
    return table.with_normalized(check(scores))


def labelled_format(table: Any, output: str, to_format: str | None) -> str | None:
    """Return the format of scores: a text format with labels, where trials have them and nothing else is asked for."""
    labels = getattr(table, "labels", None)
    endings = tuple(ending for each in FORMATS.values() for ending in each.extensions)
    named = to_format is not None or output.lower().removesuffix(".gz").endswith(endings)
    return to_format if named or labels is None or (labels < 0).any() else "wespeaker"
