"""How two embeddings make a score: the option --scorer, for new trials and for those of the training side."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenscore.errors import InputError
from evenscore.spelling import checked_options

if TYPE_CHECKING:
    from evenscore.sources import Scorer
    from evenscore.tables import Embeddings

__all__ = ["ScorerOption", "scorer_of", "trained_note", "training_scorer_of"]

_OF_COSINE = ("center", "leave_out", "transform", "train", "folds")
SCORERS = {
    "cosine": _OF_COSINE,
    "dot": _OF_COSINE,
    "plda": ("model", "center", "train", "folds"),
    "verifier": ("model",),
}  # and their options
LEAVE_OUT = ("speakers", "none")
_OPTION = re.compile(rf":(?={'|'.join(f'{name}=' for names in SCORERS.values() for name in names)})")
_PLDA_RECIPE = {"center": bool, "lda_dim": int, "whiten": bool, "length_normalize": bool}
_PLDA_RECIPE |= {"method": str, "shrinkage": float, "inflation": float}
_TRANSFORM_RECIPE = {"steps": list, "shrinkage": float}

ScorerOption = Annotated[
    str,
    typer.Option(
        "--scorer",
        metavar="NAME[:OPTION=VALUE]",
        help="How two embeddings make a score: cosine, dot, or plda:model=FILE, trained by 'evenscore plda' or by "
        "Kaldi. With cosine:center=FILE the mean of these embeddings, or the vector of that file, is subtracted first; "
        "leave_out=speakers: the mean without the pair's own two speakers, which training trials have unless "
        "leave_out=none is given. cosine:transform=FILE is trained by 'evenscore transform'. train=FILE names what a "
        "PLDA or transform was trained on: training trials of these speakers are scored by folds (folds=5). "
        "verifier:model=FILE, of 'evenscore verifier', normalizes and calibrates, too, trial by trial; it is for "
        "'evenscore score' alone.",
        autocompletion=lambda incomplete: [name for name in SCORERS if name.startswith(incomplete)],
    ),
]


def scorer_of(text: str, *, raw: bool = True) -> Scorer:
    """Return the scorer that a text names, such as ``plda:model=FILE``; names of files may have colons.

    One that normalizes by itself is refused where raw scores are wanted.
    """
    from evenscore.files import load_verifier, read_embeddings
    from evenscore.files.models import load_plda, load_transform
    from evenscore.sources import LeftOutCenter

    name, options = _parts(text)
    if name == "verifier" and raw:
        raise InputError("--scorer verifier normalizes and calibrates by itself; it is for 'evenscore score' alone")
    if name == "verifier":
        return load_verifier(options["model"])
    if name == "plda":
        return _recentered(load_plda(options["model"]), options)
    if "transform" in options:
        return _transformed(name, load_transform(options["transform"]), options)
    if options.get("leave_out") == "speakers":
        background = read_embeddings(options["center"])
        if background.speakers is None:
            raise InputError(
                f"the embeddings of {options['center']} have no speakers to leave out; give leave_out=none"
            )
        return LeftOutCenter(background, name)  # type: ignore[arg-type]
    return _plain(name, _center(options["center"]) if "center" in options else None)


def training_scorer_of(text: str, *sides: Embeddings) -> Scorer:
    """Return the scorer of training trials: whose speakers are in the centre, they are left out of it.

    If it is named what a PLDA or transform was trained on, trials of these speakers are scored by folds. Who speaks in
    the file of the centre, or in that one, the training embeddings tell where they have the same ids, else that file.
    """
    from evenscore.files import read_embeddings
    from evenscore.files.kaldi_objects import read_vector
    from evenscore.scoring import ByFolds
    from evenscore.sources import LeftOutCenter

    name, options = _parts(text)
    if "train" in options:
        background = _spoken(read_embeddings(options["train"]), *sides)
        by_folds = ByFolds(_trainer(name, options), background, folds=_number(options.get("folds", "5")))
        return by_folds if any(by_folds.concerns(side) for side in sides) else scorer_of(text)
    left_out = "center" in options and not {"model", "transform"} & set(options)
    if not left_out or options.get("leave_out") == "none" or read_vector(options["center"]) is not None:
        return scorer_of(text)
    centered = LeftOutCenter(_spoken(read_embeddings(options["center"]), *sides), name)  # type: ignore[arg-type]
    return centered if any(centered.concerns(side) for side in sides) else scorer_of(text)


def trained_note(text: str) -> list[str]:
    """Return what is to be said where a trained scorer scores the training side."""
    name, options = _parts(text)
    what = "PLDA" if name == "plda" else "transform" if "transform" in options else None
    if what is None or "train" in options:
        return []
    return [
        f"it is not known whose embeddings the {what} was trained on; if training speakers are among them, their "
        "scores are better than those of new speakers: name these embeddings with --scorer ...:train=FILE"
    ]


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """Return the name of a scorer and its options; wrong ones are refused."""
    name, *pieces = _OPTION.split(text)
    if name not in SCORERS:
        raise InputError(f"{text!r} is no scorer; choose {', '.join(SCORERS)}, or plda:model=FILE")
    options = dict(piece.split("=", 1) for piece in pieces)
    for odd in set(options) - set(SCORERS[name]):
        raise InputError(f"the scorer {text!r}: {name} has no option {odd}; it has {', '.join(SCORERS[name])}")
    if options.get("leave_out", "none") not in LEAVE_OUT:
        raise InputError(f"leave_out is {options['leave_out']!r}, but must be {' or '.join(LEAVE_OUT)}")
    if "leave_out" in options and ("center" not in options or "transform" in options):
        raise InputError(f"the scorer {text!r}: without center=FILE alone there is nothing to leave out; leave it out")
    if name == "plda" and "model" not in options:
        raise InputError("--scorer plda needs a trained PLDA; give plda:model=FILE (made by 'evenscore plda')")
    if name == "verifier" and "model" not in options:
        raise InputError("--scorer verifier needs a file; give verifier:model=FILE (made by 'evenscore verifier')")
    if "folds" in options and "train" not in options:
        raise InputError(f"the scorer {text!r}: folds are for train=FILE; give that, too")
    if "train" in options and not {"model", "transform"} & set(options):
        raise InputError(f"the scorer {text!r}: nothing is trained; give transform=FILE, or leave out train")
    return name, options


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"folds is {text!r}, but must be a whole number from 3")
    return int(text)


def _center(path: str) -> Any:
    """Return the vector of a file, or the mean of its embeddings."""
    from evenscore.files import read_embeddings
    from evenscore.files.kaldi_objects import read_vector

    vector = read_vector(path)
    return read_embeddings(path).vectors.mean(axis=0, dtype=float) if vector is None else vector


def _recentered(trained: Any, options: dict[str, str]) -> Any:
    return trained.recentered(_center(options["center"])) if "center" in options else trained


def _plain(name: str, mean: Any = None) -> Scorer:
    from evenscore.sources import Cosine, DotProduct

    return Cosine(mean=mean) if name == "cosine" else DotProduct(mean=mean)


def _transformed(name: str, transform: Any, options: dict[str, str]) -> Scorer:
    from evenscore.scoring import Transformed

    return Transformed(_recentered(transform, options), _plain(name))


def _spoken(background: Embeddings, *sides: Embeddings) -> Embeddings:
    """Return embeddings with the speakers that they or others of the same ids have."""
    known = dict(zip(background.ids, [None] * len(background), strict=True))
    for axis in (background, *sides):
        if axis.speakers is not None:
            known |= {key: who for key, who in zip(axis.ids, axis.speakers, strict=True) if key in known and who}
    return background.with_speakers(known)


def _trainer(name: str, options: dict[str, str]) -> Any:
    """Return what trains a scorer as that of a file was trained."""
    from evenscore.files.kaldi_objects import is_kaldi_plda
    from evenscore.files.vector_records import PLDA_MODEL, TRANSFORM
    from evenscore.plda import fit_plda
    from evenscore.scoring import fit_transform

    path = options["model" if name == "plda" else "transform"]
    record: Any = PLDA_MODEL if name == "plda" else TRANSFORM
    found = None if is_kaldi_plda(path) else record.read(path).info.get("recipe")
    if not isinstance(found, dict):
        raise InputError(f"{path} does not tell how it was trained, so it cannot be trained by folds; leave out train")
    given = {key: value for key, value in found.items() if value is not None}
    recipe = checked_options(f"the recipe in {path}", given, _PLDA_RECIPE if name == "plda" else _TRANSFORM_RECIPE)

    def train(part: Embeddings) -> Scorer:
        if name != "plda":
            return _transformed(name, fit_transform(part, **recipe).transform, options)
        most = {"lda_dim": min(recipe["lda_dim"], len(set(part.speakers)) - 1)} if "lda_dim" in recipe else {}  # type: ignore[arg-type]
        scorer: Scorer = _recentered(fit_plda(part, **recipe | most).model, options)
        return scorer

    return train
