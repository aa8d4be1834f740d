"""Embeddings on the command line: ``--scorer NAME:option=value`` and ``--enroll-map FILE``, for several commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evenscore.cli.options import _RARE, parse_name
from evenscore.errors import InputError

if TYPE_CHECKING:
    from evenscore.data.embeddings import Embeddings
    from evenscore.data.score_matrix import ScoreMatrix
    from evenscore.scoring.scorers import Scorer

__all__ = ["EnrollMap", "ScorerOption", "read_scorer", "read_sides", "score_training"]

ScorerOption = Annotated[
    str,
    typer.Option(
        "--scorer",
        metavar="NAME[:OPTION=VALUE]",
        help="cosine or dot, with center=FILE, or train=FILE:lda=150 or :wccn=1; plda:model=FILE or plda:train=FILE.",
    ),
]
EnrollMap = Annotated[
    str | None,
    typer.Option(
        metavar="FILE[:length_norm=before]",
        help="Utterances of each enrolment, as in spk2utt; their mean is scored.",
        rich_help_panel=_RARE,
    ),
]


def read_scorer(text: str) -> Scorer:
    """Return the scorer that ``--scorer`` names, trained on the file that it names, if it does."""
    background, options = _scorer_options(text)
    return _make(background, options)


def score_training(text: str, enroll: Embeddings, test: Embeddings) -> ScoreMatrix:
    """Score training trials; those of speakers that the scorer was trained on are scored by folds without them."""
    from evenscore.scoring import score_by_folds, score_embeddings

    background, options = _scorer_options(text)
    known = {*(() if background is None or background.speakers is None else background.speakers)} - {None}
    sides = [set() if side.speakers is None else {*side.speakers} for side in (enroll, test)]
    if background is None or not known & (sides[0] | sides[1]):
        return score_embeddings(enroll, test, scorer=_make(background, options)).to_matrix()
    return score_by_folds(lambda part: _make(part, options), background, enroll, test)


def read_sides(
    enroll: str, test: str, enroll_map: str | None = None, scorer: Scorer | None = None
) -> tuple[Embeddings, Embeddings]:
    """Read the embeddings of both sides, one object if they are one file; enrolments of a map are made of several."""
    from evenscore.files import read_embeddings, read_speakers
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


def _scorer_options(text: str) -> tuple[Embeddings | None, dict[str, object]]:
    """Return what a scorer is trained on, and the name and the options of `make_scorer`."""
    from evenscore.files import read_embeddings, read_model
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


def _make(background: Embeddings | None, options: dict[str, object]) -> Scorer:
    from evenscore.scoring import make_scorer

    return make_scorer(training=background, **options)  # type: ignore[arg-type]
