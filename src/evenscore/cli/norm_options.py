"""The options of commands that normalize: norm, cohort scores, who speaks, embeddings and how they make scores."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.cli import options as opt
from evenscore.errors import InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.sources import Scorer
    from evenscore.tables import Embeddings

__all__ = [
    "EMBEDDINGS",
    "CohortChoices",
    "CohortScores",
    "EnrollMap",
    "ModelFile",
    "NormName",
    "ScorerOption",
    "TrialFacts",
    "norm_settings",
    "plda_note",
    "scorer_of",
    "training_scorer_of",
]

EMBEDDINGS = "Embeddings in place of scores"  #: a panel of the help
SCORERS = {"cosine": ("center", "leave_out"), "dot": ("center", "leave_out"), "plda": ("model",)}  # and their options
LEAVE_OUT = ("speakers", "none")
_MEMBER_OPTIONS = {"size": int, "pick": str, "seed": int, "length_norm": str}


def _names(incomplete: str) -> list[str]:
    from evenscore.norms import norm_methods

    return [name for name in norm_methods() if name.startswith(incomplete)]


NormName = typer.Option(
    "--norm",
    metavar="NAME[:OPTION=VALUE]",
    help="lgsm (the score model), evidence (all the cohort says), or z, t, zt, tz, s, as, at, az; with options, such "
    "as as:top_k=300.",
    autocompletion=_names,
)
ModelFile = Annotated[str | None, opt.file("Model file, for lgsm and evidence.", "--model")]

ScorerOption = Annotated[
    str,
    typer.Option(
        "--scorer",
        metavar="NAME[:OPTION=VALUE]",
        help="How two embeddings make a score: cosine, dot, or plda:model=FILE, trained by 'evenscore plda'. With "
        "cosine:center=FILE the mean of these embeddings is subtracted first; so with dot. leave_out=speakers: the "
        "mean without the pair's own two speakers, which training trials have unless leave_out=none is given.",
        autocompletion=lambda incomplete: [name for name in SCORERS if name.startswith(incomplete)],
    ),
]
EnrollMap = Annotated[
    str | None,
    typer.Option(
        "--enroll-map",
        metavar="FILE[:length_norm=WHEN]",
        help="Enrolments of several utterances, as in spk2utt: a model and its utterances per line. Their vectors are "
        "brought to length 1 before they are averaged, after it, or both.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class CohortScores:
    """Files with the scores of trials against the cohort."""

    PANEL: ClassVar[str] = "Cohort scores"

    enroll_cohort: Annotated[
        str | None, opt.file("Cohort scores of the enrolments: they against the cohort's tests (S_e).")
    ] = None
    test_cohort: Annotated[
        str | None, opt.file("Cohort scores of the tests: the cohort's enrolments against them (S_t).")
    ] = None
    cohort: Annotated[str | None, opt.file("Scores of the cohort against itself (S_I).")] = None

    @property
    def paths(self) -> dict[str, str]:
        """The files that are given, by the names of the blocks."""
        named = {"enroll": self.enroll_cohort, "test": self.test_cohort, "cohort": self.cohort}
        return {name: path for name, path in named.items() if path is not None}


@dataclass(frozen=True, kw_only=True)
class TrialFacts:
    """Maps that tell who speaks, and under which condition."""

    PANEL: ClassVar[str] = "Speakers and conditions"

    speakers: Annotated[
        str | None, opt.file("Map from id to speaker: a trial's own speakers are left out of its cohort.")
    ] = None
    cohort_speakers: Annotated[str | None, opt.file("Map from id to speaker for the cohort; else --speakers.")] = None
    conditions: Annotated[
        str | None,
        opt.file(
            "Map from id to gender, channel or the like: each side keeps the cohort members of its own condition. '-' "
            "stands for unknown; for embeddings also 'column:' and a column of them."
        ),
    ] = None
    cohort_conditions: Annotated[str | None, opt.file("The same for the cohort; else --conditions.")] = None

    def __post_init__(self) -> None:
        if self.cohort_conditions is not None and self.conditions is None:
            raise InputError("--cohort-conditions are those of the cohort; give --conditions of the trials, too")


@dataclass(frozen=True, kw_only=True)
class CohortChoices:
    """How the members of the cohort are chosen from its embeddings."""

    PANEL: ClassVar[str] = EMBEDDINGS

    cohort_unit: Annotated[
        str,
        typer.Option(
            metavar="NAME[:OPTION=VALUE]",
            help="Cohort members: each utterance, or one mean vector per speaker. Options: size=300 keeps so many, "
            "pick=random (with seed=0) or pick=kmeans, those nearest to cluster centres; length_norm=before, after or "
            "both: bring vectors to length 1 before or after they are averaged.",
        ),
    ] = "utterance"
    exclude_speakers: Annotated[str | None, opt.file("Speakers that must not be in the cohort, one per line.")] = None

    @property
    def by_speaker(self) -> bool:
        """Whether the members are speakers, not utterances."""
        return name_and_options(self.cohort_unit, "cohort unit")[0] == "speaker"

    def chosen(self, embeddings: Embeddings) -> Embeddings:
        """Return the members of the cohort."""
        from evenscore.files.speakers import read_names
        from evenscore.scoring import make_cohort

        unit, given = name_and_options(self.cohort_unit, "cohort unit")
        how: dict[str, Any] = checked_options("a cohort unit", given, _MEMBER_OPTIONS)
        excluded = () if self.exclude_speakers is None else read_names(self.exclude_speakers)
        members = make_cohort(embeddings, unit=unit, **how, exclude_speakers=excluded)  # type: ignore[arg-type]
        if not len(members):
            raise InputError("nobody is left in the cohort; exclude fewer speakers, or give another cohort")
        return members


def norm_settings(text: str, model: str | None) -> tuple[str, dict[str, Any]]:
    """Return the name of a norm and its options, as `prepare_norm` takes them; wrong ones are refused."""
    from evenscore.files.models import load_model_of, trained_methods
    from evenscore.norms import prepare_norm

    norm, settings = name_and_options(text)
    if norm in trained_methods():
        if model is None:
            raise InputError(f"the norm {norm} needs a trained model; give --model, or choose another norm")
        if settings:
            odd = next(iter(settings))
            raise InputError(f"{odd} is for the classical norms, but the norm is {norm}; leave it out")
        return norm, {"model": load_model_of(norm, model)}
    if model is not None:
        raise InputError(
            f"the norm {norm!r} uses no model; leave out --model, or choose {' or '.join(trained_methods())}"
        )
    if "trim" in settings and settings.get("statistic") != "trimmed":
        raise InputError("trim is for statistic=trimmed; give that too, or leave out trim")
    prepare_norm(norm, **settings)
    return norm, settings


def scorer_of(text: str) -> Scorer:
    """Return the scorer that a text names, such as ``plda:model=FILE``; names of files may have colons."""
    from evenscore.files import read_embeddings
    from evenscore.files.models import load_plda
    from evenscore.sources import Cosine, DotProduct, LeftOutCenter

    name, options = _scorer_parts(text)
    if name == "plda":
        if "model" not in options:
            raise InputError("--scorer plda needs a trained PLDA; give plda:model=FILE (made by 'evenscore plda')")
        return load_plda(options["model"])
    background = read_embeddings(options["center"]) if "center" in options else None
    if background is not None and options.get("leave_out") == "speakers":
        if background.speakers is None:
            raise InputError(
                f"the embeddings of {options['center']} have no speakers to leave out; give leave_out=none"
            )
        return LeftOutCenter(background, name)  # type: ignore[arg-type]
    mean = None if background is None else background.vectors.mean(axis=0, dtype=float)
    return Cosine(mean=mean) if name == "cosine" else DotProduct(mean=mean)


def training_scorer_of(text: str, *sides: Embeddings) -> Scorer:
    """Return the scorer of training trials: whose speakers are in the centre, they are left out of it.

    Who speaks in the file of the centre, the training embeddings tell where they have the same ids, else that file.
    """
    from evenscore.files import read_embeddings
    from evenscore.sources import LeftOutCenter

    name, options = _scorer_parts(text)
    if "center" not in options or options.get("leave_out") == "none":
        return scorer_of(text)
    background = read_embeddings(options["center"])
    known = dict(zip(background.ids, [None] * len(background), strict=True))
    for axis in (background, *sides):
        if axis.speakers is not None:
            known |= {key: who for key, who in zip(axis.ids, axis.speakers, strict=True) if key in known and who}
    left_out = LeftOutCenter(background.with_speakers(known), name)  # type: ignore[arg-type]
    return left_out if any(left_out.concerns(side) for side in sides) else scorer_of(text)


def plda_note(text: str) -> list[str]:
    """Return what is to be said where a trained scorer scores the training side."""
    if _scorer_parts(text)[0] != "plda":
        return []
    return [
        "it is not known whose embeddings the PLDA was trained on; if training speakers are among them, their scores "
        "are better than those of new speakers: train it on others, or score by folds (score_by_folds)"
    ]


def _scorer_parts(text: str) -> tuple[str, dict[str, str]]:
    """Return the name of a scorer and its options; wrong ones are refused."""
    name, *pieces = re.split(r":(?=model=|center=|leave_out=)", text)
    if name not in SCORERS:
        raise InputError(f"{text!r} is no scorer; choose {', '.join(SCORERS)}, or plda:model=FILE")
    options = dict(piece.split("=", 1) for piece in pieces)
    if set(options) - set(SCORERS[name]):
        raise InputError(f"the scorer {text!r}: {name} has no other option than {SCORERS[name][0]}=FILE; leave it out")
    if options.get("leave_out", "none") not in LEAVE_OUT:
        raise InputError(f"leave_out is {options['leave_out']!r}, but must be {' or '.join(LEAVE_OUT)}")
    if "leave_out" in options and "center" not in options:
        raise InputError(f"the scorer {text!r}: without center=FILE there is nothing to leave out; leave it out")
    return name, options
