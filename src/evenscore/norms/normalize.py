"""The one way to normalize: a few numbers for each side where that is possible, whole blocks where it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evenscore.errors import InputError
from evenscore.norms import registry
from evenscore.norms.options import with_usual_top_k
from evenscore.norms.parts import ByBlocks, ByParts, Keep, Pass, side_parts
from evenscore.progress import Progress, silent
from evenscore.tables import Axis, Place, ScoreBlocks, Tile
from evenscore.tables.arrays import hashed
from evenscore.tables.score_table import Source
from evenscore.threads import one_thread_per_product

__all__ = ["Inputs", "Normalized", "described_norm", "normalize", "normalize_with", "prepare_norm"]


class Inputs:
    """Texts that stand for inputs and options, found when they are asked for; they stay behind when tasks travel."""

    def __init__(self, find: Callable[[], Mapping[str, str]]) -> None:
        self._find = find

    @cached_property
    def found(self) -> Mapping[str, str]:
        """The texts, by the names of what they stand for."""
        return self._find()

    def __reduce__(self) -> tuple[Any, ...]:
        return Inputs, (dict,)


def prepare_norm(method: str = "as", **options: Any) -> Any:
    """Prepare a norm once, to normalize blocks or single trials with it.

    Parameters
    ----------
    method
        Name of the norm: ``"z"``, ``"t"``, ``"zt"``, ``"tz"``, ``"s"``, ``"as"``, ``"at"``, ``"az"``, ``"lgsm"`` (the
        score model), or another one that is registered.
    **options
        For the classical norms: the fields of `NormOptions`, or ``convention`` (``"wespeaker"``, ``"speechbrain"``,
        ``"espnet"``, ``"asv-subtools"``, ``"hyperion"``, ``"bob"``) with single options that differ from it, or a
        record as ``options``; ``conditions``; and the cohort itself, which ZT and TZ need for single trials:
        ``cohort``, ``cohort_labels``, ``cohort_enroll_speakers``, ``cohort_test_speakers``. For the score model:
        ``model``, and the cohort likewise.

    Returns
    -------
    Normalizer
        For the classical norms a `ClassicalNorm`, for the score model with a cohort a `ScoreModelNormalizer`.

    Examples
    --------
    >>> norm = prepare_norm("as", top_k=2, cohort_enroll_speakers=["a", "b", "c"], cohort_test_speakers=["a", "b", "c"])
    >>> norm.normalize_one(3.0, [2.0, 1.0, 0.0], [1.5, 0.5, -0.5])
    3.5
    >>> norm.normalize_one(3.0, [2.0, 1.0, 0.0], [1.5, 0.5, -0.5], enroll_speaker="a")
    5.5
    """
    return registry.prepare_as_given(method, **with_usual_top_k(method, options))


@one_thread_per_product()
def normalize(
    blocks: ScoreBlocks,
    method: str = "as",
    *,
    client: Any = None,
    progress: Progress = silent,
    keep: Keep | None = None,
    **options: Any,
) -> Any:
    """Normalize trial scores with their cohort scores.

    Scores that are not in memory are read in one pass over the cohort scores, in which a few numbers for each
    enrolment and each test are found; every tile of the result is computed when it is read. Where a method cannot be
    taken apart so for these blocks, each tile is normalized with the cohort scores of its rows and columns instead.

    Parameters
    ----------
    blocks
        Trials and cohort scores. Which blocks a method needs: Z ``enroll``, T ``test``, S both, ZT and TZ also
        ``cohort``. With the speakers of trials and cohort, a trial's own speakers are left out of its cohort.
    method
        Name of the norm.
    client
        A `distributed.Client` whose workers read cohort scores that are not in memory; None does it here.
    progress
        Called with the name of the stage and the fraction done.
    keep
        Where the numbers of finished pieces are kept, for a run that is continued.
    **options
        See `prepare_norm`.

    Returns
    -------
    ScoreMatrix or TrialList
        The normalized trials, in the form of ``blocks.trials``; if these are not in memory, a table (`LazyScores`) that
        is computed when it is read or written.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> blocks = ScoreBlocks(
    ...     ScoreMatrix([[3.0, 1.0]], ["e"], ["t1", "t2"]),
    ...     enroll=ScoreMatrix([[2.0, 1.0, 0.0]], ["e"], ["c1", "c2", "c3"]),
    ...     test=ScoreMatrix([[1.5, 0.0], [0.5, 2.0], [-0.5, 1.0]], ["c1", "c2", "c3"], ["t1", "t2"]),
    ... )
    >>> normalize(blocks, "as", top_k=2).scores
    array([[ 3.5, -1. ]])
    >>> normalize(blocks, "z", ddof=1).scores
    array([[2., 0.]])
    """
    if not isinstance(blocks, ScoreBlocks):
        raise InputError(f"blocks are a {type(blocks).__name__}, but must be ScoreBlocks")
    options = with_usual_top_k(method, options)
    norm, described = prepare_norm(method, **options), described_norm(method, options)
    return normalize_with(norm, blocks, described, client=client, progress=progress, keep=keep)


@one_thread_per_product()
def normalize_with(
    norm: Any,
    blocks: ScoreBlocks,
    described: str,
    *,
    client: Any = None,
    progress: Progress = silent,
    keep: Keep | None = None,
) -> Any:
    """Normalize by a norm that is prepared; ``described`` is a text that changes when it does, for later runs."""
    if blocks.is_in_memory:
        return norm.normalize(blocks)
    if hasattr(norm, "with_cohort"):
        blocks = norm.with_cohort(blocks)
    inputs = Inputs(lambda: blocks.identity() | {"norm": described})
    if keep is not None:
        keep.begin(inputs.found)
    way = _by_parts(norm, blocks, Pass(client, progress, keep)) or ByBlocks(norm, blocks)
    trials = blocks.trials
    if trials.is_in_memory and isinstance(way, ByBlocks):
        trials = trials.in_tiles()  # so that the cohort scores of some of them are made at a time
    table = trials.with_source(Normalized(trials.source, trials.enroll_axis, trials.test_axis, way, inputs))
    return table.in_memory() if blocks.trials.is_in_memory else table


def _by_parts(norm: Any, blocks: ScoreBlocks, how: Pass) -> ByParts | None:
    """Return a norm by parts, if it knows how to be taken apart, and can be for these blocks."""
    parts = norm.parts(blocks, how) if hasattr(norm, "parts") else None
    if parts is None:
        return None
    sides = side_parts(parts, blocks, how, getattr(norm, "needs", ("enroll", "test")))
    may_lack = getattr(norm, "may_lack", False)  # the classical norms say what they do with NaN
    if not may_lack and any(np.isnan(part).any() for part in sides):
        return None
    return ByParts(parts, *sides)


@dataclass(frozen=True, eq=False)
class Normalized:
    """Reads tiles of raw scores and gives them normalized."""

    raw: Source
    enroll_axis: Axis
    test_axis: Axis
    way: ByParts | ByBlocks
    inputs: Inputs

    def read(self, place: Place) -> Tile:
        """Return a tile."""
        return self.way.tile(self.raw.read(place), self.enroll_axis, self.test_axis)

    def identity(self) -> str:
        """Return a hash of all inputs and options."""
        return hashed(sorted(self.inputs.found.items()))


def described_norm(method: str, options: Mapping[str, Any]) -> str:
    """Return a text that stands for a norm and its options, and changes when they change."""
    settings = {name: _described(value) for name, value in sorted(options.items())}
    version = registry.METHODS[method].version if method in registry.METHODS else ""
    return f"{method} {settings}{version and f' {version}'}"


def _described(value: Any) -> str:
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(value, type):
        return hashed(*(_described(item) for _, item in sorted(fields.items())))
    return hashed(value) if isinstance(value, np.ndarray) else repr(value)
