"""Scores of embeddings, raw and normalized, that are computed tile by tile where they are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.norms.classical import NEEDS, ClassicalNorm
from evenscore.norms.registry import prepare_norm
from evenscore.norms.statistics import Statistics
from evenscore.progress import Progress, silent
from evenscore.scale.blocks import ChunkedBlocks
from evenscore.scale.chunked_scores import ChunkedScores, as_chunked, hashed
from evenscore.scale.chunked_trials import ChunkedTrials, ListedTrials, TrialReader
from evenscore.scale.cohort_parts import Piece, fill_parts
from evenscore.engine.engine import engine_for
from evenscore.scale.normalize import (
    ByParts,
    Inputs,
    Keep,
    NormalizedTiles,
    NormalizedTrials,
    described_norm,
    normalize_chunks,
    side_parts,
)
from evenscore.scale.separable import ClassicalParts, Part
from evenscore.scale.tiles import spans
from evenscore.scoring.embedding_sides import EmbeddingSides
from evenscore.scoring.embeddings import meet, scorer_named
from evenscore.scoring.products import Vectors
from evenscore.sources import Bilinear, BilinearNormalizer, Scorer
from evenscore.sources.cohort_weights import cohort_labels
from evenscore.tables import Embeddings, ScoreMatrix, TrialList
from evenscore.tables.ids import positions

if TYPE_CHECKING:
    from evenscore.evidence import CohortEvidence
    from evenscore.evidence.parts import EvidenceParts

__all__ = ["ScoredPairs", "chunked_pairs", "chunked_trials", "score_chunks"]

_CHAINED = ("zt", "tz")
_PIECES = 16  # of each side, at least, so that many workers have something to do
_COHORT_BYTES = 1 << 28  # of the cohort scores of the embeddings of a task, of which some are made at a time
_MEMORY = 1e9  # bytes that the cohort against itself, or the cohort scores of one tile, may take


def score_chunks(
    enroll: Embeddings,
    test: Embeddings,
    trials: TrialList | None = None,
    *,
    scorer: str | Scorer = "cosine",
    cohort: Embeddings | None = None,
    method: str | None = None,
    condition: str | None = None,
    client: Any = None,
    progress: Progress = silent,
    keep: Keep | None = None,
    **options: Any,
) -> ChunkedScores | ChunkedTrials:
    """Score enrolments against tests, and normalize the scores with a cohort, without the matrix of all scores.

    Each embedding is compared with the cohort once, in pieces; every tile of the result is computed when it is read,
    as by `write_chunks`. On a cluster, embeddings are sent to each worker once. The numbers are those of
    `score_embeddings`.

    Parameters
    ----------
    enroll, test, trials, scorer, cohort, method, condition, **options
        As in `score_embeddings`.
    client
        A `distributed.Client` whose workers compare embeddings with the cohort; None does it here.
    progress
        Called with the name of the stage and the fraction done.
    keep
        Where statistics of finished pieces are kept, for a run that is continued.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> takes = Embeddings(["a1", "a2", "b1"], rng.normal(size=(3, 4)))
    >>> others = Embeddings([f"c{i}" for i in range(20)], rng.normal(size=(20, 4)))
    >>> scores = score_chunks(takes, takes, cohort=others, method="as", top_k=5)
    >>> scores
    ChunkedScores(3 enrolments x 3 tests, float64, 1 tiles)
    >>> scores.matrix().scores[0].round(2)
    array([ 2.23, -3.68, -6.78])
    """
    scorer = scorer_named(scorer)
    if (method is None) != (cohort is None):
        raise InputError("a norm needs a cohort, and a cohort a norm; give both `method` and `cohort`, or none of them")
    scores = scorer.score(enroll, test)
    raw = as_chunked(scores) if trials is None else chunked_trials(scores, trials)
    if method is None or cohort is None:
        if keep is not None:
            keep.begin(_identity(raw, trials))
        return raw
    norm = prepare_norm(method, **options)
    cohort_scores = scorer.score(cohort, cohort)
    inputs = Inputs(
        lambda: (
            _identity(raw, trials)
            | {
                "cohort": as_chunked(cohort_scores).identity(),
                "map of speakers or conditions": hashed([_facts(side, condition) for side in (enroll, test, cohort)]),
                "norm": described_norm(method, options),
            }
        )
    )
    if keep is not None:
        keep.begin(inputs.found)
    if isinstance(norm, ClassicalNorm):
        mirrored = enroll is test and Vectors.left(scores).same(Vectors.right(scores))
        sides = EmbeddingSides(enroll, test, cohort, scores, cohort_scores, mirrored, condition)
        return _normalized(raw, _classical(norm, sides, client, progress, keep), inputs)
    if condition is not None:
        raise InputError(f"the norm {method!r} knows no conditions; leave them out")
    if method == "lgsm" and not meet(enroll, test, cohort):
        normalizer = BilinearNormalizer(norm.model, cohort_scores, cohort_labels(cohort_scores, cohort.speakers))
        return _normalized(raw, _Folded(normalizer, scores), inputs)
    blocks = ChunkedBlocks(
        raw,
        enroll=chunked_pairs(scorer.score(enroll, cohort)),
        test=chunked_pairs(scorer.score(cohort, test)),
        cohort=chunked_pairs(cohort_scores),
        enroll_speakers=_speakers(enroll, trials),
        test_speakers=_speakers(test, trials),
        cohort_enroll_speakers=cohort.speakers,
        cohort_test_speakers=cohort.speakers,
    )
    parts = _evidence_parts(norm.model, enroll, test, cohort, cohort_scores) if method == "evidence" else None
    if parts is not None:
        found = side_parts(parts, blocks, engine_for(client), progress, keep)
        return _normalized(raw, ByParts(parts, *found, enroll.ids, test.ids), inputs)
    return normalize_chunks(blocks, method, client=client, progress=progress, **options)


def _identity(raw: ChunkedScores | ChunkedTrials, trials: TrialList | None) -> dict[str, str]:
    return {"embeddings": raw.identity(), "trials": "" if trials is None else ListedTrials(trials).identity()}


def _facts(side: Embeddings, condition: str | None) -> str:
    return hashed(side.speakers, condition, *(side.columns.values() if condition else ()))


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """Tiles of bilinear scores; ``itself``: whether the score of an utterance against itself is missing."""

    scores: Bilinear
    itself: bool = True

    def read(self, rows: slice, columns: slice) -> npt.NDArray[Any]:
        """Return a tile."""
        tile = self.scores.block(rows, columns)
        if not self.itself:
            at = self._own[rows] - columns.start
            here = np.flatnonzero((at >= 0) & (at < tile.shape[1]))
            tile[here, at[here]] = np.nan
        return tile

    def identity(self) -> str:
        """Return a hash of vectors and offsets."""
        s = self.scores
        return hashed(s.left, s.right, s.left_offset, s.right_offset, self.itself)

    @cached_property
    def _own(self) -> npt.NDArray[np.intp]:
        """Where the utterance of each row stands among the columns, far left if it does not."""
        places = {name: at for at, name in enumerate(self.scores.test_ids.tolist())}
        ids = self.scores.enroll_ids.tolist()
        return np.fromiter((places.get(name, -1 << 40) for name in ids), dtype=np.intp, count=len(ids))


def chunked_pairs(scores: Bilinear) -> ChunkedScores:
    """Return the scores of embeddings, but those of an utterance against itself, made when they are read."""
    return ChunkedScores(
        enroll_ids=scores.enroll_ids,
        test_ids=scores.test_ids,
        dtype=scores.dtype,
        reader=ScoredPairs(scores, itself=False),
    )


@dataclass(frozen=True, eq=False)
class _ScoredTrials:
    """Chunks of a list of trials, with the scores of their embeddings."""

    scores: Bilinear
    listed: TrialReader

    def read(self, trials: slice) -> TrialList:
        return self.scores.score_trials(self.listed.read(trials))

    def identity(self) -> str:
        return hashed(ScoredPairs(self.scores).identity(), self.listed.identity())


def chunked_trials(scores: Bilinear, trials: TrialList) -> ChunkedTrials:
    """Return listed trials with the scores of their embeddings, made when they are read."""
    reader = _ScoredTrials(scores, ListedTrials(trials))
    return ChunkedTrials(size=len(trials), reader=reader, bounds=ChunkedTrials.cut(len(trials)))


def _normalized(raw: ChunkedScores | ChunkedTrials, way: Any, inputs: Inputs) -> ChunkedScores | ChunkedTrials:
    if isinstance(raw, ChunkedScores):
        return replace(raw, reader=NormalizedTiles(raw.reader, raw.enroll_ids, raw.test_ids, way, inputs))
    return replace(raw, reader=NormalizedTrials(raw.reader, way, inputs))


def _classical(
    norm: ClassicalNorm, sides: EmbeddingSides, client: Any, progress: Progress, keep: Keep | None
) -> ByParts | _BySides:
    """Return how tiles are normalized: by two numbers per embedding where that is possible."""
    everyone = np.arange(len(sides.enroll)), np.arange(len(sides.test))
    whole = sides.of(norm.method, *everyone, _MEMORY)
    if norm.options.select == "cross" or whole.speakers_meet:
        return _BySides(norm, sides)
    ready = None if whole.cohort is None else norm.side_statistics(whole.cohort)
    sizes = {"enroll": len(sides.enroll), "test": len(sides.test)}
    found = {name: np.tile([0.0, 1.0], (size, 1)) for name, size in sizes.items()}
    one_side = whole.both is not None and norm.method not in _CHAINED
    needed = [name for name in NEEDS[norm.method] if name in sizes]
    if one_side and len(needed) == 2:
        needed = ["enroll"]
    step = max(1, int(_COHORT_BYTES // (len(sides.cohort) * sides.scores.dtype.itemsize + 1)))
    pieces = [
        Piece(name, rows, (name, rows))
        for name in needed
        for rows in spans(sizes[name], min(step, -(-sizes[name] // _PIECES)))
    ]
    task = _SideTask(norm, _lighter(sides), ready)
    how: dict[str, Any] = {"engine": engine_for(client), "progress": progress, "keep": keep}
    fill_parts(found, pieces, _side_part, task, stage="cohort scores", **how)
    if one_side and len(needed) == 1 and len(NEEDS[norm.method]) == 2:
        found["test"] = found["enroll"]
    return ByParts(ClassicalParts(norm=norm), found["enroll"], found["test"], sides.enroll.ids, sides.test.ids)


def _lighter(sides: EmbeddingSides) -> EmbeddingSides:
    """Return the sides without the raw vectors, which no worker needs."""

    def named(side: Embeddings) -> Embeddings:
        return Embeddings(side.ids, np.zeros((len(side), 1), dtype=np.float32), side.speakers, columns=side.columns)

    return replace(
        sides,
        enroll=named(sides.enroll),
        test=named(sides.test),
        cohort=named(sides.cohort),
    )


@dataclass(frozen=True, eq=False)
class _SideTask:
    norm: ClassicalNorm
    sides: EmbeddingSides
    ready: Statistics | None


def _side_part(task: _SideTask, place: tuple[str, slice]) -> Part:
    name, rows = place
    some, none = np.arange(rows.start, rows.stop), np.empty(0, dtype=np.int64)
    row, column = (some, none) if name == "enroll" else (none, some)
    sides = task.sides.of("s", row, column, _MEMORY)
    side = sides.enroll if name == "enroll" else sides.test
    assert side is not None  # noqa: S101
    found = task.norm.side_statistics(side, ready=task.ready)
    return np.stack([found.mean, found.std], axis=1)


@dataclass(frozen=True, eq=False)
class _BySides:
    """Normalizes trials with the cohort scores of their embeddings, made anew for each tile."""

    norm: ClassicalNorm
    sides: EmbeddingSides

    def tile(self, trials: ScoreMatrix, rows: slice, columns: slice) -> ScoreMatrix | TrialList:
        trials = ScoreMatrix(trials.scores, trials.enroll_ids, trials.test_ids, missing="nan")
        return self._normalized(trials, np.arange(rows.start, rows.stop), np.arange(columns.start, columns.stop))

    def listed(self, trials: TrialList) -> ScoreMatrix | TrialList:
        row = positions(self.sides.enroll.ids, trials.enroll_ids, "enrolment", "the embeddings")
        column = positions(self.sides.test.ids, trials.test_ids, "test", "the embeddings")
        return self._normalized(trials, row, column)

    def _normalized(self, trials: ScoreMatrix | TrialList, row: Any, column: Any) -> ScoreMatrix | TrialList:
        sides = self.sides.of(self.norm.method, row, column, _MEMORY)
        return self.norm.normalize_sides(trials, sides, memory=_MEMORY / 4)  # a few tiles are at work at a time


@dataclass(frozen=True, eq=False)
class _Folded:
    """Normalizes by the score model, whose cohort is folded into a vector per side."""

    normalizer: BilinearNormalizer
    scores: Bilinear

    def tile(self, trials: ScoreMatrix, rows: slice, columns: slice) -> ScoreMatrix | TrialList:
        return ScoreMatrix(self.normalizer.block(self.scores, rows, columns), trials.enroll_ids, trials.test_ids)

    def listed(self, trials: TrialList) -> ScoreMatrix | TrialList:
        return self.normalizer.normalize_trials(self.scores, trials)


def _evidence_parts(
    model: CohortEvidence, enroll: Embeddings, test: Embeddings, cohort: Embeddings, scores: Bilinear
) -> EvidenceParts | None:
    """Prepare the cohort-evidence model; None where trials meet the cohort, which then must be small enough."""
    from evenscore.evidence import parts_of_vectors

    if not meet(enroll, test, cohort):
        return parts_of_vectors(model, scores, cohort.speakers)
    if len(cohort) ** 2 * scores.dtype.itemsize > _MEMORY:
        raise InputError(
            f"'evidence' with own speakers in the cohort needs all {len(cohort)} x {len(cohort)} cohort scores at "
            f"once, more than {_MEMORY / 1e9:.0f} GB; take a smaller cohort, or one without these speakers"
        )
    return None


def _speakers(side: Embeddings, trials: TrialList | None) -> Any:
    if side.speakers is None or trials is None:
        return side.speakers
    return dict(zip(side.ids.tolist(), side.speakers.tolist(), strict=True))
