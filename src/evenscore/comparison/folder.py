"""The folder of a comparison: ``results.json``, ``report.html``, and what each method made."""

from __future__ import annotations

import json
import re
import secrets
import shutil
from pathlib import Path

from evenscore.comparison.record import Comparison, Floats, MethodResult
from evenscore.files.formats import write
from evenscore.files.models import write_model
from evenscore.files.streams import PathLike, atomic_output, writing

__all__ = ["check_folder", "write_folder"]


def check_folder(directory: PathLike) -> Path:
    """Return the path of a folder that can be written; refused before the work, not after it."""
    place = Path(directory)
    with writing(place):
        if place.exists() and not place.is_dir():
            raise NotADirectoryError(20, "it is a file; name a directory")
        place.absolute().parent.mkdir(parents=True, exist_ok=True)
    return place


def write_folder(comparison: Comparison, directory: PathLike, report: str = "", *, scores: bool = False) -> None:
    """Write the results of a comparison into a folder, all of them or nothing.

    The folder gets ``results.json``, ``report.html`` (if there is a report), and for each method its calibration, its
    model if it has one, and with ``scores`` its normalized scores and LLRs, in ``methods/NAME``. Files of an earlier
    comparison there are replaced.
    """
    place = check_folder(directory)
    made = place.absolute().parent / f".{place.name}.{secrets.token_hex(6)}.partial"
    with writing(made):
        made.mkdir()
    try:
        for method in comparison.methods:
            _write_method(comparison, method, made / "methods" / re.sub(r"[^\w.=-]+", "-", method.name), scores)
        texts = {"report.html": report} if report else {}
        texts["results.json"] = json.dumps(comparison.to_dict(), indent=1, allow_nan=False) + "\n"
        for name, text in texts.items():
            with atomic_output(made / name) as stream:
                stream.write(text.encode())
        with writing(place):
            _move(made, place)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _write_method(comparison: Comparison, method: MethodResult, folder: Path, scores: bool) -> None:
    """Write what one method learned and, if wanted, made."""
    with writing(folder):
        folder.mkdir(parents=True)
    write_model(method.calibration, folder / "calibration.json")
    if method.model is not None:
        write_model(method.model, folder / "model.json")
    if scores:
        _write_scores(comparison, method.scores, folder, "scores")
        _write_scores(comparison, method.llrs, folder, "llrs")


def _write_scores(comparison: Comparison, values: Floats, folder: Path, kind: str) -> None:
    """Write scores of all trials: one file, or one for each phrase or condition."""
    start = 0
    for name, trials in comparison.trials.items():
        part = trials.with_scores(values[start : start + len(trials)], infinite=True)
        start += len(trials)
        suffix = "" if len(comparison.trials) == 1 else "-" + re.sub(r"[^\w.=-]+", "-", name)
        write(part, folder / f"{kind}{suffix}.npz")


def _move(made: Path, place: Path) -> None:
    """Give a finished folder its name; in a folder that is there, file after file, each at once."""
    if not place.exists():
        made.rename(place)
        return
    for path in sorted(made.rglob("*")):
        target = place / path.relative_to(made)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            path.replace(target)
