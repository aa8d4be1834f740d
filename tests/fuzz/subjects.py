"""What is given spoilt input: every reader, every model file, the methods, and the command line."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from evenscore import Embeddings, EvenscoreError, ScoreMatrix, TrialList, read
from evenscore.files import FORMATS, write
from evenscore.files.models import load_calibration, load_evidence, load_model, load_plda, load_trained
from fuzz.mutations import mutated

__all__ = ["SUBJECTS", "Subject"]

GOLDEN = Path(__file__).resolve().parent.parent / "files" / "golden"

Attempt = Callable[[Path], object]  #: given a directory to work in; raises `EvenscoreError`, or nothing


@dataclass(frozen=True)
class Subject:
    """One thing that is tried: ``attempt`` makes the input of a number and tries it."""

    name: str
    attempt: Callable[[random.Random, Path], object]


def tables() -> dict[str, list[object]]:
    """Small tables of every kind."""
    rng = np.random.default_rng(1)
    ids, others = [f"spk{n}-a" for n in range(6)], [f"spk{n % 6}-{n}" for n in range(9)]
    scores = ScoreMatrix(rng.normal(size=(6, 9)).astype(np.float32), ids, others)
    gappy = scores.scores.copy()
    gappy[2, 3] = np.nan
    labels = rng.integers(0, 2, 54)
    trials = TrialList.from_pairs([i for i in ids for _ in others], others * 6, labels=labels)
    full = trials.with_scores(rng.normal(size=54))
    matrices = [scores, ScoreMatrix(gappy, ids, others, missing="nan")]
    vectors = Embeddings(others, rng.normal(size=(9, 5)), [name.split("-")[0] for name in others])
    return {
        "scores": [*matrices, full],
        "trials": [trials],
        "embeddings": [vectors],
        "speakers": [{name: name.split("-")[0] for name in others}],
    }


@cache
def seeds(name: str) -> list[bytes | dict[str, bytes]]:
    """Return sound files of a format; a format that is a directory, or has a file beside it, as a dict of files."""
    found: list[bytes | dict[str, bytes]] = []
    format = FORMATS[name]
    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder:
        for kind in format.kinds:
            for number, table in enumerate(tables()[kind]):
                place = Path(folder) / f"{kind}{number}"
                place.mkdir()
                path = place / ("file" + (format.extensions[0] if format.extensions else ".txt"))
                try:
                    write(table, path, format=name)
                except EvenscoreError:  # only read, or no place for it
                    continue
                files = {str(one.relative_to(place)): one.read_bytes() for one in place.rglob("*") if one.is_file()}
                found.append(files if len(files) > 1 else next(iter(files.values())))
    if not found:  # formats that are only read have the bytes of their relatives
        found = seeds("bosaris")
    return found


def read_spoilt(name: str, guess: bool, rng: random.Random, folder: Path) -> None:
    """Spoil a file of a format, and read it."""
    known = seeds(name)
    chosen = rng.choice(known)
    suffix = FORMATS[name].extensions[0] if FORMATS[name].extensions else ".txt"
    if isinstance(chosen, bytes):
        plain = [one for one in known if isinstance(one, bytes)]
        path = folder / f"file{suffix}"
        path.write_bytes(mutated(chosen, plain, rng))
    else:
        path = folder / f"file{suffix}"
        spoilt = rng.choice(sorted(chosen))
        for part, data in chosen.items():
            (folder / part).parent.mkdir(parents=True, exist_ok=True)
            (folder / part).write_bytes(mutated(data, list(chosen.values()), rng) if part == spoilt else data)
    read(path) if guess else read(path, format=name)


LOADERS = {"score_model": load_model, "evidence": load_evidence, "calibration": load_calibration, "plda": load_plda}


@cache
def records() -> dict[str, bytes]:
    """Return a sound file of every record."""
    return {path.name: path.read_bytes() for path in sorted((GOLDEN / "records").glob("*.json"))}


def load_spoilt(rng: random.Random, folder: Path) -> None:
    """Spoil a model file, load it, and use what it holds."""
    name = rng.choice(sorted(records()))
    path = folder / "model.json"
    path.write_bytes(mutated(records()[name], list(records().values()), rng))
    loader = next((load for start, load in LOADERS.items() if name.startswith(start)), load_trained)
    found = loader(path)
    if loader is load_calibration:
        found(np.linspace(-5, 5, 11))


def clean(folder: Path) -> None:
    """Remove what an attempt has left."""
    for one in os.scandir(folder):
        shutil.rmtree(one.path) if one.is_dir(follow_symlinks=False) else os.unlink(one.path)


def _subjects() -> dict[str, Subject]:
    from fuzz.command_lines import run_odd_command
    from fuzz.odd_numbers import use_odd_numbers

    found = [Subject(f"read-{name}", partial(read_spoilt, name, False)) for name in FORMATS]
    found += [Subject(f"guess-{name}", partial(read_spoilt, name, True)) for name in FORMATS]
    found += [Subject("model-files", load_spoilt), Subject("command-line", run_odd_command)]
    found += [Subject("odd-numbers", use_odd_numbers)]
    return {one.name: one for one in found}


SUBJECTS = _subjects()
