"""The options of commands that normalize: norm, cohort scores, who speaks, embeddings."""

from __future__ import annotations

import hashlib
import sys
import traceback
from dataclasses import dataclass, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from evenscore.cli import options as opt
from evenscore.errors import EvenscoreError, FileError, InputError
from evenscore.spelling import checked_options, name_and_options

if TYPE_CHECKING:
    from evenscore.tables import Embeddings

__all__ = [
    "EMBEDDINGS",
    "CohortChoices",
    "CohortScores",
    "EnrollMap",
    "ModelFile",
    "NormName",
    "OwnNorms",
    "TrialFacts",
    "norm_settings",
]

EMBEDDINGS = "Embeddings in place of scores"  #: a panel of the help
_OWN = "evenscore_own_norms"  # what the module of a file with norms is called
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
class OwnNorms:
    """Norms that the user brings along; a file that is named is run as soon as the options are read."""

    norm_file: Annotated[
        str | None,
        opt.file(
            "Python file with norms of your own, which calls evenscore.register_norm. It is run like any program, so "
            "name only a file that you trust; nothing else that evenscore reads is ever run. Norms of installed "
            "packages (entry points 'evenscore.norms') need no file."
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.norm_file is not None:
            run_norm_file(self.norm_file)

    def refuse_workers(self, scale: opt.ScaleChoices) -> None:
        """Refuse workers, which do not have the file."""
        if self.norm_file is not None and (scale.workers is not None or scale.scheduler is not None):
            raise InputError(
                "workers cannot run --norm-file; leave out --workers and --scheduler, or install the norm as a package "
                "with an entry point 'evenscore.norms'"
            )


def run_norm_file(path: str) -> None:
    """Run a Python file that registers norms."""
    from evenscore.norms.registry import METHODS

    if not path.endswith(".py"):
        raise FileError(path, "only files that end in .py are run as norms of your own")
    if not Path(path).is_file():
        raise FileError(path, "there is no such file")
    known = set(METHODS)
    loader, keeps = SourceFileLoader(_OWN, path), sys.dont_write_bytecode
    module = ModuleType(_OWN)
    sys.modules[_OWN] = module  # where dataclasses look for it
    sys.dont_write_bytecode = True  # nothing is left beside the file
    try:
        loader.exec_module(module)
    except EvenscoreError as error:
        raise FileError(path, str(error)) from None
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        line = error.lineno if isinstance(error, SyntaxError) else [None, *lines][-1]
        raise FileError(path, f"it cannot be run: {type(error).__name__}: {error}", line=line) from None
    finally:
        sys.dont_write_bytecode = keeps
    new = set(METHODS) - known
    if not new:
        raise FileError(path, "it registers no norm; call evenscore.register_norm in it")
    for name in new:
        METHODS[name] = replace(METHODS[name], version=hashlib.sha256(loader.get_data(path)).hexdigest())


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
    from evenscore.norms import norm_methods, prepare_norm

    norm, settings = name_and_options(text)
    if norm not in norm_methods():
        prepare_norm(norm, **settings)  # which finds installed ones, or refuses it
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
