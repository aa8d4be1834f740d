"""Runs that go on from what an earlier one has left, where something in it is spoilt."""

from __future__ import annotations

import os
import random
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from evenscore import ScoreMatrix, write
from evenscore.files.chunked_output import ChunkedOutput
from fuzz.sound_files import Files, tables
from in_process import run_command

__all__ = ["compare_again", "resume_spoilt"]

IDENTITY = {"inputs": "those of the test"}
SPEAKERS = [f"s{n % 4}" for n in range(8)]


class _StoppedError(Exception):
    pass


def _scores() -> object:
    return tables()["scores"][0].in_tiles(24, stored=(2, 3))


@cache
def _begun(name: str) -> Files:
    """Return what a run has left that was stopped in the middle."""

    def stop(stage: str, fraction: float) -> None:
        if fraction >= 0.5:
            raise _StoppedError

    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder:
        output = ChunkedOutput(Path(folder) / name, resume=True)
        with suppress(_StoppedError), output:
            output.begin(IDENTITY)
            output.put("sums", np.arange(4.0))
            output.write(_scores(), progress=stop)
        return {str(one.relative_to(folder)): one.read_bytes() for one in Path(folder).rglob("*") if one.is_file()}


def resume_spoilt(rng: random.Random, folder: Path) -> None:
    """Spoil a file of a run that was stopped, most often its journal, and go on with it."""
    from fuzz.subjects import spoilt

    name = rng.choice(("out.zarr", "out.parquet"))
    left = _begun(name)
    chosen = [part for part in left if "journal" in part or "kept" in part] if rng.random() < 0.7 else sorted(left)
    part = rng.choice(chosen)
    for other, data in left.items():
        (folder / other).parent.mkdir(parents=True, exist_ok=True)
        (folder / other).write_bytes(data)
    spoilt([{part: left[part]}], rng, folder)
    with ChunkedOutput(folder / name, resume=True) as output:
        output.begin(IDENTITY)
        output.get("sums")
        output.write(_scores())


def _comparison(folder: Path) -> None:
    inputs = [
        part for name in ("train", "trials", "enroll", "test") for part in (f"--{name}", str(folder / f"{name}.npz"))
    ]
    line = ["compare", *inputs, "--speakers", str(folder / "utt2spk"), "--methods", "s", "--bootstrap", "5"]
    result = run_command(*line, "-o", str(folder / "out"))
    told = result.exception is None or isinstance(result.exception, SystemExit)
    if not told or result.exit_code not in (0, 2) or "unexpected " in result.stderr or "Traceback" in result.stderr:
        raise AssertionError(f"exit {result.exit_code}: {result.stderr[-500:]} {result.exception!r}")


@cache
def _compared() -> tuple[Files, Files]:
    """Return the inputs of a comparison, and what it has written."""
    rng = np.random.default_rng(3)
    sides = {"train": "cc", "trials": "tt", "enroll": "tc", "test": "ct"}
    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as name:
        folder = Path(name)
        for block, (rows, columns) in sides.items():
            ids = [f"{rows}e{n}" for n in range(8)], [f"{columns}t{n}" for n in range(8)]
            same = np.equal.outer(SPEAKERS, SPEAKERS)
            write(ScoreMatrix(rng.normal(size=(8, 8)) + 2 * same, *ids), folder / f"{block}.npz")
        known = [f"{side}{kind}{n} {side}{SPEAKERS[n]}\n" for side in "ct" for kind in "et" for n in range(8)]
        (folder / "utt2spk").write_text("".join(known))
        inputs = {path.name: path.read_bytes() for path in folder.iterdir()}
        _comparison(folder)
        found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        return inputs, {name: data for name, data in found.items() if name.startswith("out" + os.sep)}


def compare_again(rng: random.Random, folder: Path) -> None:
    """Spoil a file that a comparison has written, and run the comparison again."""
    from fuzz.subjects import spoilt

    inputs, written = _compared()
    for name, data in {**inputs, **written}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    part = rng.choice([name for name in sorted(written) if not name.endswith(".html")])
    spoilt([{part: written[part]}], rng, folder)
    _comparison(folder)
