"""Features of many recordings: by several processes, kept in a cache."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import kaldi_native_fbank as knf
import numpy as np
import numpy.typing as npt

from evenscore import EvenscoreError, FileError
from evenscore.files import ArrayCache
from evenscore.progress import silent
from recipes.text_dependent.audio import MissingProgramError, read_audio
from recipes.text_dependent.degradations import Degradation, made_from
from recipes.text_dependent.features import FeatureOptions, features
from recipes.text_dependent.recordings import Progress, Recording

__all__ = ["Extracted", "extract_features", "process_pool"]

_VERSION = 1  # of the features in the cache: raised when other numbers come out
_BATCH = 150  # recordings of a speaker that are worked on, and kept, together


@dataclass(frozen=True, eq=False)
class Extracted:
    """Features of recordings.

    Attributes
    ----------
    frames
        For each recording a float32 matrix, a row for each frame of speech.
    skipped
        Recordings that could not be used, and why.
    """

    frames: dict[Recording, npt.NDArray[np.float32]]
    skipped: dict[Recording, str]


@dataclass(frozen=True)
class _Batch:
    """What a process gets to do."""

    recordings: tuple[Recording, ...]
    options: FeatureOptions
    degradation: Degradation | None
    cache: str | None


def extract_features(
    recordings: Sequence[Recording],
    options: FeatureOptions | None = None,
    *,
    degradation: Degradation | None = None,
    cache: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    pool: Executor | None = None,
    skip_unreadable: bool = False,
    progress: Progress = silent,
) -> Extracted:
    """Compute the features of recordings, or take them from a cache.

    Parameters
    ----------
    recordings
        In any order.
    options
        How features are computed.
    degradation
        Spoils each recording first.
    cache
        Directory; features are found there again while a file keeps its name, size and time. None keeps nothing.
    jobs
        Number of processes. With more than one, a script must guard its main part with
        ``if __name__ == "__main__":``, as the processes import it.
    pool
        Processes that are there already, see `process_pool`.
    skip_unreadable
        List recordings that cannot be read, or that hold no speech, in `Extracted.skipped`; else they are an error.
    progress
        Called with a stage name and the fraction done.
    """
    options = options or FeatureOptions()
    place = None if cache is None else str(cache)
    batches = [_Batch(part, options, degradation, place) for part in _parts(sorted(set(recordings)))]
    extracted = Extracted({}, {})
    done = 0
    for batch, arrays in zip(batches, _results(batches, jobs, pool), strict=True):
        _collect(batch, arrays, extracted, skip_unreadable)
        done += len(batch.recordings)
        progress("features", done / len(recordings))
    return extracted


def _parts(recordings: Sequence[Recording]) -> Iterator[tuple[Recording, ...]]:
    for _, group in groupby(recordings, key=lambda recording: recording.speaker):
        members = tuple(group)
        for start in range(0, len(members), _BATCH):
            yield members[start : start + _BATCH]


def process_pool(jobs: int) -> Executor:
    """Return a pool of processes, which start when they are needed.

    Fresh processes behave alike on all systems, and inherit neither threads nor open files.
    """
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


def _results(batches: Sequence[_Batch], jobs: int, pool: Executor | None) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """Return the arrays of each batch, in order; processes work only on what is not in the cache."""
    kept = [_from_cache(batch) for batch in batches]
    absent = [batch for batch, arrays in zip(batches, kept, strict=True) if arrays is None]
    with ExitStack() as opened:
        if pool is None and jobs > 1 and len(absent) > 1:
            pool = opened.enter_context(process_pool(min(jobs, len(absent))))
        computed = map(_computed, absent) if pool is None else pool.map(_computed, absent)
        for arrays in kept:
            yield next(computed) if arrays is None else arrays


def _from_cache(batch: _Batch) -> dict[str, npt.NDArray[Any]] | None:
    return None if batch.cache is None else ArrayCache(batch.cache).get(_recipe(batch))


def _recipe(batch: _Batch) -> dict[str, Any]:
    return {
        "features": _VERSION,
        "kaldi_native_fbank": knf.__version__,
        "options": asdict(batch.options),
        "degradation": made_from(batch.degradation),
        "files": [_state(recording) for recording in batch.recordings],
    }


def _state(recording: Recording) -> list[str | int]:
    """Return what changes with the content of a file; the recording's name decides about its noise."""
    path = os.path.abspath(recording.path)
    try:
        found = os.stat(path)
    except OSError:
        return [recording.name, path]
    return [recording.name, path, found.st_size, found.st_mtime_ns]


def _computed(batch: _Batch) -> dict[str, npt.NDArray[Any]]:
    """Return frames, number of frames and problems of a batch, and put them into the cache."""
    arrays = _extracted(batch)
    if batch.cache is not None:
        ArrayCache(batch.cache).put(_recipe(batch), arrays)
    return arrays


def _extracted(batch: _Batch) -> dict[str, npt.NDArray[Any]]:
    frames, problems = [], []
    for recording in batch.recordings:
        problem = ""
        found = np.zeros((0, batch.options.dimension), dtype=np.float32)
        try:
            samples = read_audio(recording.path)
            if batch.degradation is not None:
                samples = batch.degradation.apply(samples, recording.name)
            found = features(samples, batch.options)
        except MissingProgramError:
            raise
        except FileError as error:
            problem = error.problem
        except EvenscoreError as error:
            problem = str(error)
        frames.append(found)
        problems.append(problem)
    return {
        "frames": np.concatenate(frames),
        "lengths": np.array([len(one) for one in frames]),
        "problems": np.array(problems),
    }


def _collect(batch: _Batch, arrays: dict[str, npt.NDArray[Any]], extracted: Extracted, skip: bool) -> None:
    ends = np.cumsum(arrays["lengths"])
    for recording, length, end, problem in zip(
        batch.recordings, arrays["lengths"], ends, arrays["problems"], strict=True
    ):
        if not problem:
            extracted.frames[recording] = arrays["frames"][end - length : end]
        elif skip:
            extracted.skipped[recording] = f"{recording.path}: {problem}"
        else:
            raise FileError(recording.path, str(problem))
