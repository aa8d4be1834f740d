"""Spellings of earlier versions. They are in no help, but rewritten before a command reads its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import typer

from evenscore.cli.option_records import option_name

__all__ = ["SPELLINGS", "modern"]


@dataclass(frozen=True)
class Part:
    """An option that became a part of the value of another one."""

    of: str
    name: str
    value: str | None = None  #: of an option that took none


@dataclass(frozen=True)
class Gone:
    """An option that a command has no more, and what to do instead."""

    remedy: str


@dataclass(frozen=True)
class Bare:
    """An option that took no value, the value that it meant, and the option that told another one."""

    value: str
    number: str


_REPAIRS = {
    option: Gone(f"mend the file with 'evenscore convert {option} ... IN OUT'")
    for option in ("--missing", "--duplicates", "--score-column", "--ids", "--from")
}
_REPAIRS |= dict.fromkeys(("--key-from", "--trials-from"), _REPAIRS["--from"])
_EMBEDDINGS = dict.fromkeys(
    (
        *("--enroll-embeddings", "--test-embeddings", "--train-embeddings", "--train-test-embeddings", "--enroll-map"),
        *("--train-enroll-map", "--enroll-length-norm", "--scorer", "--plda", "--center", "--trials"),
    ),
    Gone("'evenscore score' makes scores of embeddings, which it takes"),
)
_NORM_OPTIONS = (
    *("convention", "top_k", "excess", "drop_top", "select", "statistic", "trim", "ddof", "std_floor", "zero_std"),
    *("combine", "vanished"),
)
_OF_NORM = {option_name(name): Part("--norm", name) for name in _NORM_OPTIONS}
_VECTORS = {"--enroll": "--enroll-embeddings", "--test": "--test-embeddings"}
_BLOCKS = {"--enroll": "--enroll-cohort", "--test": "--test-cohort"}
_SCORER = {"--plda": Part("--scorer", "model"), "--center": Part("--scorer", "center")}
_LENGTH_NORM = {"--enroll-length-norm": Part("--enroll-map", "length_norm")}
_CHOICES = ("size", "pick", "seed", "length_norm")
_MEMBERS = {option_name(f"cohort_{name}"): Part("--cohort-unit", name) for name in _CHOICES}
_BOOTSTRAP = {
    **dict.fromkeys(("--seed", "--bootstrap-seed"), Part("--bootstrap", "seed")),
    "--level": Part("--bootstrap", "level"),
}
_TRAIN_BLOCKS: dict[str, str | Gone] = dict.fromkeys(
    ("--train-enroll", "--train-test", "--train-enroll-cohort", "--train-test-cohort"), "--cohort"
)
_TRAIN_BLOCKS |= {
    "--score-set": Gone("compare it in Python, with load_score_set and compare"),
    "--cohort-key": Gone("tell who the cohort's members are with --cohort-speakers"),
    "--cohort-conditions": Gone("name the members of each with --candidates NAME=FILE"),
}

#: By command: what an option is called now.
SPELLINGS: Mapping[str, Mapping[str, str | Part | Gone | Bare]] = {
    "normalize": {"--method": "--norm", **_BLOCKS, **_OF_NORM, **_SCORER},
    "score": {
        "--cohort": "--cohort-embeddings",
        "--seed": Part("--cohort-unit", "seed"),
        "--memory": Gone("cohort scores are made in small pieces anyhow; --memory-limit bounds the rest"),
        "--raw": Gone("make raw scores in a run without --norm"),
        **_VECTORS,
        **_OF_NORM,
        **_SCORER,
        **_LENGTH_NORM,
        **_MEMBERS,
    },
    "fit": {
        **_VECTORS,
        **_SCORER,
        "--method": "--norm",
        **{option_name(name): Part("--norm", name) for name in ("dim", "tol", "max_iter", "starts")},
        "--min-divergence": Part("--norm", "min_divergence", "true"),
        "--no-min-divergence": Part("--norm", "min_divergence", "false"),
    },
    "adapt": _BLOCKS,
    "demo": {"--seed": "--simulation-seed"},
    "calibrate": {
        **_EMBEDDINGS,
        "--cross-validate": Bare("5", "--folds"),
        "--folds": "--cross-validate",
        "--method": "--calibration",
        "--saturate": "--calibration=saturating",
        "--prior": Part("--calibration", "p_target"),
        "--l2": Part("--calibration", "l2"),
        "--shared-variance": Part("--calibration", "shared_variance", "true"),
        "--smoothing": Part("--calibration", "smoothing"),
    },
    "compare": {**_BLOCKS, **_TRAIN_BLOCKS, **_BOOTSTRAP, **_SCORER, **_MEMBERS},
    "choose-cohort": {
        "--method": "--norm",
        "--metric": "--rank-by",
        "--draws-seed": _BOOTSTRAP["--seed"],
        **_TRAIN_BLOCKS,
        **_BOOTSTRAP,
        **_SCORER,
        **_MEMBERS,
    },
    "evaluate": {**_EMBEDDINGS, **_BOOTSTRAP, "--csv": "--table=csv", "--latex": "--table=latex"},
    "plot": {**_BOOTSTRAP, **dict.fromkeys(("--calibration", "--calibration-file"), "--model")},
}
#: What the parts of an option belong to if it is not given itself.
_DEFAULTS = {"--norm": "lgsm", "--calibration": "logistic", "--scorer": "cosine", "--cohort-unit": "utterance"}
_DEFAULTS |= {"--bootstrap": "0", "compare --bootstrap": "1000", "choose-cohort --bootstrap": "200"}


def modern(command: str, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command as they are spelled now.

    Examples
    --------
    >>> modern("normalize", ["--method", "as", "--top-k", "300", "--enroll", "e.npz"])
    ['--norm', 'as:top_k=300', '--enroll-cohort', 'e.npz']
    >>> modern("calibrate", ["--shared-variance", "--method=gaussian", "eval.scores"])
    ['--calibration', 'gaussian:shared_variance=true', 'eval.scores']
    """
    known = SPELLINGS.get(command, {})
    if command not in ("convert", "info"):
        known = {**_REPAIRS, **known}
    found: list[str] = []
    parts: dict[str, dict[str, str]] = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word == "--":
            found += [word, *words]
            break
        option, mark, value = word.partition("=")
        new = known.get(option, option)
        if isinstance(new, Gone):
            raise typer.BadParameter(f"{command} has no {option} any more: {new.remedy}")
        if isinstance(new, Bare):
            valued = bool(mark) or (bool(words) and words[0].isdecimal())
            found += [word] if valued else [] if new.number in arguments else [option, new.value]
        elif isinstance(new, str):
            found.append(f"{new}{mark}{value}")
        else:
            given = new.value or (value if mark else words.pop(0) if words else "")
            parts.setdefault(new.of, {})[new.name] = given
    for option, values in parts.items():
        default = _DEFAULTS.get(f"{command} {option}", _DEFAULTS.get(option, ""))
        name, found = _taken(option, found, default)
        found = [option, ":".join([name, *(f"{part}={value}" for part, value in values.items())]), *found]
    return found


def _taken(option: str, arguments: Sequence[str], default: str) -> tuple[str, list[str]]:
    """Return the value of an option, the last one if it is repeated, and the other arguments."""
    others: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == option:
            default = next(words, default)
        elif word.startswith(f"{option}="):
            default = word.partition("=")[2]
        else:
            others.append(word)
    return default, others
