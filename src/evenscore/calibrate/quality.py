"""Quality measures: numbers about the two sides of a trial, which a calibration weighs beside its score.

A measure has a column for each side, ``mag_e`` of enrolments and ``mag_t`` of tests. Names put columns together:
``min:mag``, ``max:mag``, ``diff:mag`` (the higher less the lower), ``ratio:mag`` (the higher by the lower), and
``log:`` before any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.progress import Progress, silent
from evenscore.sources.chunks import float64_chunks
from evenscore.tables import Axis, Embeddings, Place, ScoreBlocks, ScoreTable, Tile, TrialList
from evenscore.tables.arrays import hashed
from evenscore.tables.ids import merge
from evenscore.tables.score_table import Source

if TYPE_CHECKING:
    from evenscore.norms.classical import ClassicalNorm
    from evenscore.norms.sides import Sides

__all__ = ["COMBINATIONS", "LOG", "Quality", "measured", "quality_measures"]

Numbers = npt.NDArray[np.float64]

LOG = "log"  #: before the name of a measure: its logarithm
LENGTH, MEAN, DEVIATION = "mag", "mu", "sigma"  #: of a vector; of the cohort scores
_SIDES = ("e", "t")


def _ratio(enroll: Numbers, test: Numbers) -> Numbers:
    low, high = np.minimum(enroll, test), np.maximum(enroll, test)
    return np.asarray(np.divide(high, low, out=np.full(low.shape, np.nan), where=low > 0))


COMBINATIONS: Mapping[str, Callable[[Numbers, Numbers], Numbers]] = {
    "min": np.minimum,
    "max": np.maximum,
    "diff": lambda enroll, test: np.abs(enroll - test),
    "ratio": _ratio,
}  #: how the numbers of two sides become one; a ratio needs numbers above 0, and is NaN without


def measured(name: str, look_up: Callable[[str], Numbers]) -> Numbers:
    """Return the numbers that a name spells; NaN where there is no logarithm or no ratio.

    Parameters
    ----------
    name
        A column, or one of the spellings above.
    look_up
        Finds a column by its name.

    Examples
    --------
    >>> columns = {"dur_e": np.array([2.0, 8.0]), "dur_t": np.array([4.0, 4.0])}
    >>> measured("min:dur", columns.__getitem__), measured("ratio:dur", columns.__getitem__)
    (array([2., 4.]), array([2., 2.]))
    """
    prefix, colon, rest = name.partition(":")
    if colon and prefix == LOG:
        inner = measured(rest, look_up)
        return np.log(inner, out=np.full(inner.shape, np.nan), where=inner > 0)
    if colon and prefix in COMBINATIONS:
        return COMBINATIONS[prefix](*(look_up(f"{rest}_{side}") for side in _SIDES))
    return look_up(name)


@dataclass(frozen=True, eq=False, repr=False)
class Quality:
    """Quality measures of enrolments and of tests: facts of the two axes.

    Attributes
    ----------
    enroll, test
        Ids, with the measures by name.

    Examples
    --------
    >>> quality = Quality(Axis(np.array(["e"]), None, {"dur": np.array([3.0])}),
    ...                   Axis(np.array(["t1", "t2"]), None, {"dur": np.array([1.0, 6.0])}))
    >>> quality
    Quality(dur_e of 1 enrolments; dur_t of 2 tests)
    >>> quality.columns(TrialList.from_pairs(["e", "e"], ["t1", "t2"]), ["dur_t", "max:dur"])
    {'dur_t': array([1., 6.]), 'max:dur': array([3., 6.])}
    """

    enroll: Axis
    test: Axis

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, one for each side of a measure."""
        measures = dict.fromkeys((*self.enroll.facts, *self.test.facts))
        sides = tuple(zip(_SIDES, (self.enroll, self.test), strict=True))
        return tuple(f"{name}_{side}" for name in measures for side, axis in sides if name in axis.facts)

    def columns(self, trials: ScoreTable, names: Iterable[str] | None = None) -> dict[str, Numbers]:
        """Return measures of trials in memory, in the shape of their scores.

        ``names`` are spelled as the top of this module tells; a measure alone, such as ``mag``, stands for the columns
        of both sides. By default they are all columns there are.
        """
        tile = Tile(np.empty(0), trials.enroll_index, trials.test_index) if isinstance(trials, TrialList) else None
        return self._on(trials, names).of(trials.tile if tile is None else tile)

    def added(self, trials: ScoreTable, names: Iterable[str] | None = None) -> ScoreTable:
        """Return a list of trials with measures as further columns; one that is read in tiles gets them then."""
        if not trials.listed:
            raise InputError("a matrix has no further columns; keep the measures in a table of their own")
        table = trials.with_source(_Added(trials.source, self._on(trials, names)))
        return table.in_memory() if trials.is_in_memory else table

    def table(self) -> dict[str, npt.NDArray[Any]]:
        """Return a column of ids, and the measures of both sides; NaN where an id does not stand on a side."""
        ids = merge([self.enroll.ids, self.test.ids])
        columns: dict[str, npt.NDArray[Any]] = {"id": ids}
        for name in self.names:
            axis = self._axis(name)
            at = axis.find(ids)
            columns[name] = np.where(at >= 0, axis.facts[name[:-2]][at], np.nan) if len(axis) else np.empty(0)
        return columns

    def _axis(self, name: str) -> Axis:
        return self.enroll if name.endswith("_e") else self.test

    def _on(self, trials: ScoreTable, names: Iterable[str] | None) -> _Columns:
        sides = (self.enroll, trials.enroll_ids, "enrolment"), (self.test, trials.test_ids, "test")
        at = dict(zip(_SIDES, (axis.positions(ids, what, "the measures") for axis, ids, what in sides), strict=True))
        known = {name: self._axis(name).facts[name[:-2]][at[name[-1]]] for name in self.names}
        found = _Columns(known, tuple(self._spelled(names)), trials.shape)
        for name in found.names:  # a wrong one is refused before any work
            measured(name, lambda column: found.look_up(column)[:0])
        return found

    def _spelled(self, names: Iterable[str] | None) -> Iterable[str]:
        """Return the names of columns: a measure alone stands for those of both sides."""
        for name in self.names if names is None else names:
            alone = name in self.enroll.facts or name in self.test.facts
            yield from (f"{name}_{side}" for side in _SIDES) if alone else (name,)

    def __repr__(self) -> str:
        parts = [", ".join(name for name in self.names if name.endswith(f"_{side}")) or "nothing" for side in _SIDES]
        return f"Quality({parts[0]} of {len(self.enroll)} enrolments; {parts[1]} of {len(self.test)} tests)"


@dataclass(frozen=True, eq=False)
class _Columns:
    """Measures of the enrolments and tests of a table, and the names of what is made of them."""

    known: Mapping[str, Numbers]
    names: tuple[str, ...]
    shape: tuple[int, int]

    def of(self, tile: Tile) -> dict[str, Numbers]:
        """Return the measures of a tile of trials."""
        rows, columns = tile.pair(*(np.arange(size) for size in self.shape))
        shape = np.broadcast_shapes(rows.shape, columns.shape)

        def paired(name: str) -> Numbers:
            return self.look_up(name)[rows if name.endswith("_e") else columns]

        return {name: np.array(np.broadcast_to(measured(name, paired), shape)) for name in self.names}

    def look_up(self, name: str) -> Numbers:
        """Return the numbers of a side."""
        if name not in self.known:
            raise InputError(f"there is no measure {name!r}; there are {', '.join(self.known) or 'none'}")
        return self.known[name]


@dataclass(frozen=True, eq=False)
class _Added:
    """Trials of a list, with further columns."""

    source: Source
    columns: _Columns

    def read(self, place: Place) -> Tile:
        tile = self.source.read(place)
        return replace(tile, measures={**tile.measures, **self.columns.of(tile)})

    def identity(self) -> str:
        return hashed(self.source.identity(), self.columns.names, *self.columns.known.values())


def quality_measures(
    blocks: ScoreBlocks,
    method: str = "s",
    *,
    enroll: Embeddings | None = None,
    test: Embeddings | None = None,
    center: npt.ArrayLike | None = None,
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> Quality:
    """Find quality measures of the enrolments and tests of trials.

    ``mag`` is the length of a vector before it is brought to length 1, ``mu`` and ``sigma`` are location and scale of
    the cohort scores as a classical norm takes them; further facts that are numbers, such as the duration, keep their
    names. What is left out of a cohort because of the other side of a trial (its speaker, or what it ranks lower with
    ``select="cross"``) stays in here, so that a measure is of one side and cannot tell the label.

    Parameters
    ----------
    blocks
        The trials, and cohort scores of one side or of both, if there are any. They may be read in tiles.
    method
        A norm: of the adaptive ones ``mu`` and ``sigma`` are of the highest cohort scores, else of all.
    enroll, test
        Vectors of the enrolments and tests, if they are known; they may have further ids.
    center
        What is subtracted from the vectors before their length is measured, such as the mean of a scorer.
    client, progress
        As in `normalize`.
    **options
        Of the norm, such as ``top_k``.

    Examples
    --------
    >>> from evenscore import Cosine, score_blocks
    >>> rng = np.random.default_rng(0)
    >>> takes = Embeddings(["u1", "u2"], rng.normal(size=(2, 4)), columns={"duration": [3.0, 5.5]})
    >>> blocks = score_blocks(Cosine(), takes, takes, Embeddings(range(9), rng.normal(size=(9, 4))))
    >>> quality = quality_measures(blocks, "as", top_k=3, enroll=takes, test=takes)
    >>> quality.names
    ('duration_e', 'duration_t', 'mag_e', 'mag_t', 'mu_e', 'mu_t', 'sigma_e', 'sigma_t')
    >>> trials = TrialList.from_pairs(["u1", "u1"], ["u1", "u2"])
    >>> {name: values.round(2).tolist() for name, values in quality.columns(trials, ["min:mag", "diff:mu"]).items()}
    {'min:mag': [0.67, 0.67], 'diff:mu': [0.0, 0.42]}
    """
    if not isinstance(blocks, ScoreBlocks):
        raise InputError(f"blocks are a {type(blocks).__name__}, but must be ScoreBlocks")
    trials = blocks.trials
    vectors = {"enroll": enroll, "test": test}
    cohort = _cohort_measures(blocks, method, options, client, progress)
    axes = []
    for side, axis in (("enroll", trials.enroll_axis), ("test", trials.test_axis)):
        facts = _numbers(axis.facts)
        embeddings = vectors[side]
        if embeddings is not None:
            at = embeddings.positions(axis.ids, side, "the embeddings")
            facts |= _numbers({name: values[at] for name, values in embeddings.facts.items()})
            facts[LENGTH] = _lengths(embeddings, center)[at]
        axes.append(Axis(axis.ids, axis.speakers, facts | cohort.get(side, {})))
    return Quality(*axes)


def _numbers(facts: Mapping[str, npt.NDArray[Any]]) -> dict[str, Numbers]:
    """Return the facts that are numbers."""
    return {name: values.astype(np.float64) for name, values in facts.items() if values.dtype.kind in "fiu"}


def _lengths(embeddings: Embeddings, center: npt.ArrayLike | None) -> Numbers:
    mean = np.zeros(embeddings.dim) if center is None else np.asarray(center, dtype=np.float64)
    if mean.shape != (embeddings.dim,):
        raise InputError(f"center has shape {mean.shape}, but the embeddings have {embeddings.dim} components")
    parts = [np.linalg.norm(chunk - mean, axis=1) for _, chunk in float64_chunks(embeddings.vectors)]
    return np.concatenate([np.empty(0), *parts])


@dataclass(frozen=True, eq=False)
class _SideTask:
    norm: ClassicalNorm
    sides: Sides
    name: str
    source: Source


def _cohort_measures(
    blocks: ScoreBlocks, method: str, options: Mapping[str, Any], client: Any, progress: Progress
) -> dict[str, dict[str, Numbers]]:
    """Return location and scale of the cohort scores of each side that has some."""
    from evenscore.norms.normalize import prepare_norm
    from evenscore.norms.options import ADAPTIVE_METHODS, CLASSICAL_METHODS
    from evenscore.norms.parts import Pass, mirrored
    from evenscore.norms.sides import Sides

    given: dict[str, Any] = {}
    if method in CLASSICAL_METHODS:
        record = options.get("options")
        own = {"select": "own"} if record is None else {"options": replace(record, select="own")}
        given = {**options, **own}
    norm = prepare_norm("as" if method in ADAPTIVE_METHODS else "s", **given)
    found: dict[str, dict[str, Numbers]] = {}
    for name in ("enroll", "test"):
        block = getattr(blocks, name)
        if block is None:
            continue
        if name == "test" and found and mirrored(blocks):
            found[name] = found["enroll"]
            continue
        task = _side_statistics, _SideTask(norm, Sides.of(blocks, norm.conditions), name, block.source)
        tiles = block.in_tiles() if block.is_in_memory else block
        both = Pass(client, progress).along(name, tiles, name == "enroll", 2, task)
        found[name] = {MEAN: both[:, 0], DEVIATION: both[:, 1]}
    return found


def _side_statistics(task: _SideTask, place: Place) -> Numbers:
    at = place.rows if task.name == "enroll" else place.columns
    found = task.norm.statistics(task.sides.side(task.name, task.source.read(place).scores, at))
    return np.stack([found.mean, found.std], axis=1)
