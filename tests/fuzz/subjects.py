"""What is given spoilt input: every reader, every model file, runs that go on, the methods, and the command line."""

from __future__ import annotations

import gzip
import io
import os
import random
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

from evenscore import read
from evenscore.files import (
    FORMATS,
    ArrayCache,
    load_calibration,
    load_evidence,
    load_model,
    load_plda,
    load_score_set,
    load_verifier,
    open_scores,
    read_metadata,
)
from evenscore.files.kaldi_objects import read_vector
from evenscore.files.models import load_trained, load_transform
from evenscore.files.numpy_files import read_ids
from evenscore.files.score_tiles import open_trials
from evenscore.files.speakers import read_members, read_names
from fuzz.mutations import mutated
from fuzz.sound_files import Files, records, sound, sound_kaldi_objects, sound_score_set, sound_verifiers
from fuzz.uses import use_model, use_table, use_tiles, use_verifier

__all__ = ["SUBJECTS", "Subject", "clean", "spoilt"]


@dataclass(frozen=True)
class Subject:
    """One thing that is tried: ``attempt`` makes the input of a number in a directory, and tries it.

    Of all inputs of a campaign, a subject gets a part in proportion to its weight.
    """

    name: str
    attempt: Callable[[random.Random, Path], object]
    weight: float = 1.0


def spoilt(known: Sequence[Files], rng: random.Random, folder: Path) -> Path:
    """Write files of which one is spoilt, and return the path that a reader is given."""
    chosen = dict(rng.choice(known))
    main = next(iter(chosen))
    parts = [name for name, data in chosen.items() if data] or [main]
    part = rng.choice(parts)
    if len(parts) > 1 and rng.random() < 0.1:  # one is missing, or has the content of another
        chosen[part] = b"" if rng.random() < 0.5 else chosen[rng.choice(parts)]
    else:
        others = [rng.choice(known).get(main) or chosen[part]]
        chosen[part] = mutated(chosen[part], others, rng)
        if part == main and len(parts) == 1 and rng.random() < 0.03:
            chosen[part] = gzip.compress(chosen[part], 1)
    for name, data in chosen.items():
        if data or name == part:
            target = folder / name
            if len(chosen) > 1:
                target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "wb") as stream:
                stream.write(data)
    return folder / main


def read_spoilt(name: str, rng: random.Random, folder: Path) -> None:
    """Spoil a file of a format, and read it: by the format's name, by a guess, or from standard input; then use it."""
    path = spoilt(sound(name), rng, folder)
    way = rng.random()
    options = {"missing": "skip", "duplicates": "drop"} if rng.random() < 0.3 else {}
    if way < 0.05 and path.is_file():
        with mock.patch.object(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes()))):
            table = read("-", format=name, **options)
    else:
        table = read(path, format=name if way < 0.7 else None, **options)
    use_table(table, rng, folder)


def load_spoilt(rng: random.Random, folder: Path) -> None:
    """Spoil a model file, load it as what it was, or sometimes as something else, and use what it holds."""
    loaders = {
        "score_model": load_model,
        "evidence": load_evidence,
        "calibration": load_calibration,
        "plda": load_plda,
        "transform": load_transform,
    }
    path = spoilt(records(), rng, folder)
    fitting = next((load for start, load in loaders.items() if path.name.startswith(start)), load_trained)
    loader = fitting if rng.random() < 0.95 else rng.choice([*loaders.values(), load_trained])
    use_model(loader(path), folder)


def load_spoilt_verifier(rng: random.Random, folder: Path) -> None:
    """Spoil the file of a verifier, load it, and score a trial."""
    use_verifier(load_verifier(spoilt(sound_verifiers(), rng, folder)))


def load_kaldi_object(rng: random.Random, folder: Path) -> None:
    """Spoil a PLDA or a vector of Kaldi."""
    path = spoilt(sound_kaldi_objects(), rng, folder)
    rng.choice((load_plda, read_vector))(path)


def read_spoilt_lists(rng: random.Random, folder: Path) -> None:
    """Spoil metadata, quality measures, maps and lists of names, and read them in all ways."""
    kind = rng.choice(("csv", "tsv", "utt2spk", "spk2utt", "kaldi", "nist"))
    path = spoilt(sound(kind), rng, folder)
    rng.choice((read_metadata, read_metadata, read_metadata, read_members, read_names, read_ids))(path)


def open_spoilt(kind: str, rng: random.Random, folder: Path) -> None:
    """Spoil a store or a dataset, and read it tile by tile."""
    path = spoilt(sound(kind), rng, folder)
    use_tiles((open_scores if kind == "zarr" else open_trials)(path))


def find_in_cache(rng: random.Random, folder: Path) -> None:
    """Spoil what a cache holds; then it counts as absent."""
    cache = ArrayCache(folder)
    file = spoilt(sound("npz"), rng, folder)
    os.replace(file, cache.path("made"))
    cache.get("made")


def load_spoilt_set(rng: random.Random, folder: Path) -> None:
    """Spoil one file of a score set."""
    load_score_set(spoilt(sound_score_set(), rng, folder))


def clean(folder: Path) -> None:
    """Remove what an attempt has left."""
    for one in os.scandir(folder):
        shutil.rmtree(one.path) if one.is_dir(follow_symlinks=False) else os.unlink(one.path)


#: How many of 1000 inputs each format gets, cheap and risky ones most; the others two or three.
_WEIGHTS = {
    "npz": 130, "npy": 50, "parquet": 105, "kaldi-ark": 90, "kaldi-ark-text": 60, "kaldi-scp": 60, "utt2spk": 40,
    "spk2utt": 40, "bosaris": 14, "bosaris-old-key": 9, "sidekit": 9, "dca-plda": 9, "pybosaris": 9, "hdf5": 14,
    "kaldi": 9, "csv": 9,
}  # fmt: skip


def _subjects() -> dict[str, Subject]:
    from fuzz.command_lines import run_odd_command
    from fuzz.left_runs import compare_again, resume_spoilt
    from fuzz.odd_numbers import use_odd_numbers

    found = [Subject(f"read-{name}", partial(read_spoilt, name), _WEIGHTS.get(name, 5)) for name in FORMATS]
    found += [
        Subject("model-files", load_spoilt, 110),
        Subject("verifiers", load_spoilt_verifier, 50),
        Subject("kaldi-objects", load_kaldi_object, 60),
        Subject("lists", read_spoilt_lists, 60),
        Subject("cache", find_in_cache, 20),
        Subject("score-set", load_spoilt_set, 4),
        Subject("tiles-zarr", partial(open_spoilt, "zarr"), 4),
        Subject("tiles-parquet", partial(open_spoilt, "parquet"), 8),
        Subject("resumed", resume_spoilt, 3),
        Subject("compared", compare_again, 0.3),
        Subject("command-line", run_odd_command, 4),
        Subject("odd-numbers", use_odd_numbers, 2.5),
    ]
    return {one.name: one for one in found}


SUBJECTS = _subjects()
