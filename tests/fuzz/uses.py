"""What is done with input that was read, although it was spoilt: all of it must work, or be refused in a sentence."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from evenscore import Embeddings, TrialList, evaluate, read
from evenscore.calibrate import Calibration
from evenscore.files import FORMATS, write
from evenscore.files.models import is_saved, load_trained, save_trained
from evenscore.files.registry import kind_of
from evenscore.scoring import score_embeddings

__all__ = ["use_model", "use_table", "use_tiles", "use_verifier"]

_SLOW = {"zarr", "bosaris", "bosaris-old-key", "sidekit", "dca-plda", "pybosaris", "hdf5", "parquet"}


def use_table(table: Any, rng: random.Random, folder: Path) -> None:
    """Show it; now and then write it to a format that can hold it and read it again, or compute with it."""
    repr(table)
    way = rng.random()
    if way < 0.25:
        names = [name for name, format in FORMATS.items() if kind_of(table) in format.kinds]
        name = rng.choice([one for one in names if one not in _SLOW or rng.random() < 0.1] or names)
        path = folder / ("again" + (FORMATS[name].extensions or (".txt",))[0])
        write(table, path, format=name)
        again = read(path, format=name)
        if not _alike(table, again):
            raise AssertionError(f"{table!r} came back from {name} as {again!r}")
    elif way < 0.3 and isinstance(table, TrialList) and table.scores is not None and table.labels is not None:
        evaluate(table)
    elif way < 0.3 and isinstance(table, Embeddings):
        score_embeddings(table, table)


def _alike(table: Any, again: Any) -> bool:
    """Tell whether the numbers of all ids are the same; what a format has no place for is left out."""
    if isinstance(table, Embeddings):
        return table.ids.tolist() == again.ids.tolist() and _same(table.vectors, again.vectors)
    if isinstance(table, dict):
        return bool(table == again)
    table, again = (_by_pair(one.to_trials()) for one in (table, again))
    both = [one for one in (table[1], again[1]) if one is not None]
    return table[0] == again[0] and (len(both) < 2 or _same(*both))


def _by_pair(trials: TrialList) -> tuple[list[tuple[str, str]], Any]:
    """Return the pairs, sorted, as matrices have an order of their own, and their scores in the same order."""
    sides = trials.enroll_ids[trials.enroll_index], trials.test_ids[trials.test_index]
    pairs = list(zip(*(side.tolist() for side in sides), strict=True))
    order = sorted(range(len(pairs)), key=pairs.__getitem__)
    return [pairs[place] for place in order], None if trials.scores is None else trials.scores[order]


def _same(one: Any, other: Any) -> bool:
    single = np.float32 in (one.dtype, other.dtype)
    return one.shape == other.shape and np.allclose(
        one, other, rtol=1e-6 if single else 1e-15, atol=1e-44, equal_nan=True
    )


def use_model(model: Any, folder: Path) -> None:
    """Apply a calibration; write a model and read it again."""
    repr(model)
    if isinstance(model, Calibration) and not getattr(model, "quality_names", ()):
        model(np.linspace(-5, 5, 11))
    if is_saved(model):
        save_trained(model, folder / "again.json")
        if load_trained(folder / "again.json") is None:
            raise AssertionError(f"{model!r} is not a model any more when it is read again")


def use_tiles(scores: Any) -> None:
    """Read all tiles."""
    for place in scores.places():
        scores.source.read(place)


def use_verifier(verifier: Any) -> None:
    """Score one trial."""
    size = verifier.dim or 3
    vectors = np.linspace(-1, 1, size), np.linspace(2, -1, size)
    verifier.normalized(*vectors)
    if verifier.is_llr:
        verifier.llr(*vectors)
