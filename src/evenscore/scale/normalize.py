"""Norms of scores that are not in memory: one pass over the cohort scores, then tiles of trials on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.model.normalizer import ScoreModelNormalizer
from evenscore.norms.classical import NEEDS, ClassicalNorm
from evenscore.norms.registry import prepare_norm
from evenscore.progress import Progress, silent
from evenscore.scale.blocks import ChunkedBlocks
from evenscore.scale.by_blocks import ByBlocks
from evenscore.scale.chunked_scores import ChunkedScores, TileReader, hashed
from evenscore.scale.chunked_trials import ChunkedTrials, TrialReader
from evenscore.scale.cohort_parts import Piece, cohort_statistics, cohort_weights, fill_parts
from evenscore.scale.engine import Engine, engine_for
from evenscore.scale.own_model_parts import OwnScoreModelParts
from evenscore.scale.own_parts import OwnSpeakerParts
from evenscore.scale.separable import (
    ClassicalParts,
    Part,
    ScoreModelParts,
    Separable,
    cohort_alone,
    speakers_meet,
    tile_matrix,
)
from evenscore.scale.tiles import Tile
from evenscore.tables import ScoreMatrix, TrialList
from evenscore.tables.ids import Ids, shown

__all__ = [
    "ByBlocks",
    "ByParts",
    "Inputs",
    "Keep",
    "NormalizedTiles",
    "NormalizedTrials",
    "described_norm",
    "normalize_by",
    "normalize_chunks",
    "side_parts",
]


class Keep(Protocol):
    """Keeps what was computed already, for a run that is continued."""

    def begin(self, identity: Mapping[str, str]) -> None:
        """Refuse to go on with a run of other inputs or options; named texts stand for them."""

    def get(self, name: str) -> npt.NDArray[Any] | None:
        """Return what was kept under a name, None if nothing was."""

    def put(self, name: str, values: npt.NDArray[Any]) -> None:
        """Keep values under a name."""


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


def normalize_chunks(
    blocks: ChunkedBlocks,
    method: str = "as",
    *,
    client: Any = None,
    progress: Progress = silent,
    keep: Keep | None = None,
    **options: Any,
) -> ChunkedScores | ChunkedTrials:
    """Normalize trial scores that are not in memory.

    A few numbers for each enrolment and each test are found in one pass over the cohort scores; every tile of the
    result is computed when it is read. Where a trial's own speakers are in its cohort, where cohort scores are missing
    and the method minds, or where a method works on whole blocks, each tile is normalized with the cohort scores of its
    rows and columns instead. The numbers are those of `normalize` in memory.

    Parameters
    ----------
    blocks
        Trials and cohort scores.
    method, **options
        As in `normalize`.
    client
        A `distributed.Client` whose workers do the pass over the cohort scores; None does it here.
    progress
        Called with the name of the stage and the fraction done.
    keep
        Where the numbers of finished pieces are kept, for a run that is continued.

    Examples
    --------
    >>> from evenscore import ScoreMatrix
    >>> blocks = ChunkedBlocks(
    ...     ScoreMatrix([[3.0, 1.0]], ["e"], ["t1", "t2"]),
    ...     enroll=ScoreMatrix([[2.0, 1.0, 0.0]], ["e"], ["c1", "c2", "c3"]),
    ... )
    >>> normalize_chunks(blocks, "z", ddof=1).matrix().scores
    array([[2., 0.]])
    """
    norm = prepare_norm(method, **options)
    identity = Inputs(lambda: _identity(blocks, method, options))
    if keep is not None:
        keep.begin(identity.found)
    parts = _separable(norm, method, blocks, client, progress, keep)
    if parts is not None:
        found = side_parts(parts, blocks, engine_for(client), progress, keep, needs=NEEDS.get(method))
        if isinstance(norm, ClassicalNorm) or (np.isfinite(found[0]).all() and np.isfinite(found[1]).all()):
            return _normalized(blocks, ByParts(parts, *found, blocks.enroll_ids, blocks.test_ids), identity)
    return _normalized(blocks, ByBlocks(norm, blocks), identity)


def normalize_by(norm: Any, blocks: ChunkedBlocks, described: str) -> ChunkedScores | ChunkedTrials:
    """Normalize by any object with a method ``normalize``, each tile with the cohort scores of its rows and columns.

    ``described`` is a text that changes when the norm does, for runs that are continued.
    """
    return _normalized(blocks, ByBlocks(norm, blocks), Inputs(lambda: blocks.identity() | {"norm": described}))


def _separable(
    norm: Any, method: str, blocks: ChunkedBlocks, client: Any, progress: Progress, keep: Keep | None
) -> Separable | None:
    """Return the norm in separable form, None where it has none for these blocks."""
    if isinstance(norm, ClassicalNorm):
        for name in NEEDS[method]:
            if getattr(blocks, name) is None:
                raise InputError(f"the norm {method!r} needs the block `{name}` of cohort scores")
        if norm.options.select == "cross":
            return None
        if speakers_meet(blocks, method):
            return OwnSpeakerParts.of(norm, blocks)
        ready, labels = None, blocks.labels_of_cohort
        if "cohort" in NEEDS[method] and blocks.cohort is not None and labels is not None:
            how: dict[str, Any] = {"engine": engine_for(client), "progress": progress, "keep": keep}
            ready = cohort_statistics(norm, blocks.cohort, labels, **how)
        return ClassicalParts.of(norm, blocks, ready)
    if method not in ("lgsm", "evidence"):
        return None
    if speakers_meet(blocks, method):
        if method != "lgsm" or isinstance(norm, ScoreModelNormalizer):
            return None
        return OwnScoreModelParts.of(norm.model, blocks, client=client, progress=progress)
    if isinstance(norm, ScoreModelNormalizer):
        return ScoreModelParts.of_prepared(norm, blocks)
    if method == "lgsm":
        return ScoreModelParts(weights=cohort_weights(norm.model, blocks, client=client, progress=progress))
    from evenscore.evidence import EvidenceNormalizer

    cohort = cohort_alone(blocks)
    return (norm if isinstance(norm, EvidenceNormalizer) else EvidenceNormalizer(norm.model, cohort)).parts(cohort)


def side_parts(
    parts: Separable,
    blocks: ChunkedBlocks,
    engine: Engine,
    progress: Progress = silent,
    keep: Keep | None = None,
    needs: tuple[str, ...] | None = None,
) -> tuple[Part, Part]:
    """Pass over the cohort scores of both sides: the numbers of every enrolment, and of every test."""
    found = []
    for name in ("enroll", "test"):
        block, ids = getattr(blocks, name), getattr(blocks, f"{name}_ids")
        if block is None or (needs is not None and name not in needs):
            found.append(_without_cohort(parts, name, 0 if ids is None else len(ids)))
            continue
        tiles = block.whole_rows() if name == "enroll" else block.whole_columns()
        out = np.empty((len(ids), parts.width))
        fill_parts(
            {name: out},
            [Piece(name, _of(name, tile), tile) for tile in tiles],
            _side_part,
            _SideTask(parts, block.reader, name),
            engine=engine,
            stage="cohort scores of enrolments" if name == "enroll" else "cohort scores of tests",
            progress=progress,
            keep=keep,
        )
        found.append(out)
    return found[0], found[1]


@dataclass(frozen=True, eq=False)
class _SideTask:
    parts: Separable
    reader: TileReader
    side: str


def _of(side: str, tile: Tile) -> slice:
    return tile.rows if side == "enroll" else tile.columns


def _side_part(task: _SideTask, tile: Tile) -> Part:
    scores = task.reader.read(tile.rows, tile.columns)
    if task.side == "enroll":
        return task.parts.enroll_part(scores, tile.rows)
    return task.parts.test_part(scores, tile.columns)


def _without_cohort(parts: Separable, side: str, size: int) -> Part:
    """Return the numbers of elements without cohort scores."""
    if isinstance(parts, ClassicalParts):
        return np.tile([0.0, 1.0], (size, 1))
    empty = (size, 0) if side == "enroll" else (0, size)
    part = parts.enroll_part if side == "enroll" else parts.test_part
    return part(np.empty(empty), slice(0, size))


def _normalized(blocks: ChunkedBlocks, way: ByParts | ByBlocks, identity: Inputs) -> ChunkedScores | ChunkedTrials:
    trials = blocks.trials
    if isinstance(trials, ChunkedScores):
        reader = NormalizedTiles(trials.reader, trials.enroll_ids, trials.test_ids, way, identity)
        return replace(trials, reader=reader)
    return replace(trials, reader=NormalizedTrials(trials.reader, way, identity))


def _identity(blocks: ChunkedBlocks, method: str, options: Mapping[str, Any]) -> dict[str, str]:
    return blocks.identity() | {"norm": described_norm(method, options)}


def described_norm(method: str, options: Mapping[str, Any]) -> str:
    """Return a text that stands for a norm and its options, and changes when they change."""
    settings = {name: _described(value) for name, value in sorted(options.items())}
    return f"{method} {settings}"


def _described(value: Any) -> str:
    fields = getattr(value, "__dict__", None)
    if isinstance(fields, dict) and not isinstance(value, type):
        return hashed(*(_described(item) for _, item in sorted(fields.items())))
    return hashed(value) if isinstance(value, np.ndarray) else repr(value)


@dataclass(frozen=True, eq=False)
class ByParts:
    """Normalizes a tile or a list with a few numbers per element."""

    parts: Separable
    enroll: Part
    test: Part
    enroll_ids: Ids | None
    test_ids: Ids | None

    def tile(self, trials: ScoreMatrix, rows: slice, columns: slice) -> ScoreMatrix | TrialList:
        """Return a tile of raw scores normalized."""
        return self.parts.apply(trials, self.enroll[rows], self.test[columns])

    def listed(self, trials: TrialList) -> ScoreMatrix | TrialList:
        """Return listed trials normalized."""
        return self.parts.apply(
            trials,
            self._taken(self.enroll, self.enroll_ids, trials.enroll_ids, "enrolment"),
            self._taken(self.test, self.test_ids, trials.test_ids, "test"),
        )

    def _taken(self, part: Part, ids: Ids | None, wanted: Ids, side: str) -> Part:
        if ids is None:
            return _without_cohort(self.parts, "enroll" if side == "enrolment" else "test", len(wanted))
        place = self._places[side]
        at = np.fromiter((place.get(name, -1) for name in wanted.tolist()), dtype=np.intp, count=len(wanted))
        if at.size and at.min() < 0:
            raise InputError(f"{side} {shown(wanted[at < 0])} of the trials has no cohort scores; add them")
        return part[at]

    @cached_property
    def _places(self) -> dict[str, dict[str, int]]:
        sides = (("enrolment", self.enroll_ids), ("test", self.test_ids))
        return {name: {} if ids is None else {key: at for at, key in enumerate(ids.tolist())} for name, ids in sides}


@dataclass(frozen=True, eq=False)
class NormalizedTiles:
    """Reads tiles of raw scores and gives them normalized."""

    raw: TileReader
    enroll_ids: Ids
    test_ids: Ids
    way: ByParts | ByBlocks
    inputs: Inputs

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile."""
        trials = tile_matrix(self.raw.read(rows, columns), self.enroll_ids[rows], self.test_ids[columns])
        return np.asarray(self.way.tile(trials, rows, columns).scores)

    def identity(self) -> str:
        """Return a hash of all inputs and options."""
        return hashed(sorted(self.inputs.found.items()))


@dataclass(frozen=True, eq=False)
class NormalizedTrials:
    """Reads chunks of a list of trials and gives them normalized."""

    raw: TrialReader
    way: ByParts | ByBlocks
    inputs: Inputs

    def read(self, trials: slice) -> TrialList:
        """Return some trials."""
        normalized = self.way.listed(self.raw.read(trials))
        assert isinstance(normalized, TrialList)  # noqa: S101
        return normalized

    def identity(self) -> str:
        """Return a hash of all inputs and options."""
        return hashed(sorted(self.inputs.found.items()))
