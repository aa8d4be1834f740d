"""Files of embeddings for ``accuracy.py``: what must be in them, and what is wrong with those that do not fit."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

__all__ = ["PHRASES", "STATUS", "TAKES", "column", "files_of", "read"]

PHRASES = ("phrase", "digit", "word", "half", "sentence", "text")
TAKES = ("rep", "take", "session", "repetition")
STATUS = "status"
LEAST_SPEAKERS = 4


def files_of(data: Sequence[str]) -> list[Path]:
    """Return the npz files that directories and names lead to; those below ``embeddings`` count, too."""
    found: list[Path] = []
    for name in data:
        path = Path(name)
        if path.is_dir():
            found += sorted({*path.glob("*.npz"), *path.glob("embeddings/*.npz")})
        elif path.exists():
            found.append(path)
        else:
            raise SystemExit(f"{name}: there is no such file or directory; give --data, or set EVENSCORE_DATA")
    return found


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the columns of a file; one that is not of the right form is refused."""
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise SystemExit(f"{path}: this is a single array, but an npz with embeddings and speakers is expected")
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise SystemExit(f"{path}: this is no npz of plain arrays (text as 'U', no objects); write it again") from None
    absent = [name for name in ("embeddings", "speakers") if name not in arrays]
    if absent:
        found = ", ".join(arrays) or "nothing"
        raise SystemExit(f"{path}: there is no array {absent[0]!r}, only {found}; give it this name")
    vectors = arrays["embeddings"]
    if vectors.ndim != 2 or not np.issubdtype(vectors.dtype, np.floating) or not np.isfinite(vectors).all():
        raise SystemExit(f"{path}: the embeddings must be a matrix of finite numbers, a row for each utterance")
    for name in ("ids", "speakers", STATUS, *PHRASES, *TAKES):
        if name in arrays and arrays[name].shape != (len(vectors),):
            raise SystemExit(
                f"{path}: {name!r} has shape {arrays[name].shape}, but there are {len(vectors)} embeddings"
            )
    if len(np.unique(arrays["speakers"])) < LEAST_SPEAKERS:
        raise SystemExit(f"{path}: there are fewer than {LEAST_SPEAKERS} speakers, two for each half; give more")
    return arrays


def column(arrays: dict[str, np.ndarray], given: str | None, guesses: Sequence[str]) -> np.ndarray | None:
    """Return a column by its name, or the first that is there of those that are usual; None if there is none."""
    if given is not None and given not in arrays:
        return None
    name = given or next((guess for guess in guesses if guess in arrays), None)
    return None if name is None else arrays[name]
