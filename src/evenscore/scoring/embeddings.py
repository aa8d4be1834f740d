"""From embeddings to raw and normalized scores, block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenscore.errors import InputError
from evenscore.norms.options import CLASSICAL_METHODS
from evenscore.norms.registry import prepare_norm
from evenscore.norms.sides import Codes
from evenscore.progress import Progress, silent
from evenscore.scoring.averages import LengthNorm, average_embeddings
from evenscore.scoring.products import Vectors, raw_scores
from evenscore.sources import BilinearNormalizer, Cosine, DotProduct, Scorer, score_blocks
from evenscore.sources.cohort_weights import cohort_labels
from evenscore.tables.blocks import ScoreBlocks
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.ids import Ids, positions
from evenscore.tables.score_matrix import ScoreMatrix
from evenscore.tables.trial_list import TrialList

__all__ = ["EmbeddingScores", "meet", "score_embeddings", "scorer_named"]

SCORERS: Mapping[str, Callable[[], Scorer]] = {"cosine": Cosine, "dot": DotProduct}


@dataclass(frozen=True)
class EmbeddingScores:
    """Scores of embeddings.

    Attributes
    ----------
    raw
        As the scorer gives them: a matrix, or the listed trials.
    normalized
        The same trials after the norm; None without one.

    Examples
    --------
    >>> one = Embeddings(["e"], [[3.0, 4.0]])
    >>> score_embeddings(one, one)
    EmbeddingScores(raw=ScoreMatrix(1 enrolments x 1 tests, float64, scores 1 to 1, 0 missing), normalized=None)
    """

    raw: ScoreMatrix | TrialList
    normalized: ScoreMatrix | TrialList | None


def score_embeddings(
    enroll: Embeddings,
    test: Embeddings,
    trials: TrialList | None = None,
    *,
    scorer: str | Scorer = "cosine",
    models: Mapping[str, Sequence[str]] | None = None,
    length_norm: LengthNorm = "none",
    cohort: Embeddings | None = None,
    method: str | None = None,
    condition: str | None = None,
    memory: float = 2e9,
    progress: Progress = silent,
    **options: Any,
) -> EmbeddingScores:
    """Score enrolments against tests, and normalize the scores with a cohort.

    Every embedding that the trials name is scored against the cohort once, however often it is listed, in pieces that
    stay within ``memory``; no matrix of all cohort scores exists, but for methods that need all of them where a
    trial's own speakers are in the cohort. If both sides are the same embeddings and the scorer is symmetric, one piece
    serves both sides.

    Parameters
    ----------
    enroll, test
        Embeddings of the two sides. They may be the same object.
    trials
        The pairs to score; None scores every enrolment against every test.
    scorer
        ``"cosine"``, ``"dot"``, or any `Scorer`, such as `Cosine(mean=...)` or a `PLDA`.
    models
        Enrolments of several utterances: from each model's id to the ids of its utterances in ``enroll``.
    length_norm
        Whether utterances of a model are brought to length 1 ``"before"`` they are averaged, the means ``"after"``,
        ``"both"`` or ``"none"``.
    cohort
        Embeddings of the cohort, see `make_cohort`. Its members are both the tests and the enrolments of the cohort.
        An id that stands in the trials and in the cohort is one utterance, whose score against itself is left out.
    method
        Name of the norm, see `normalize`; None for raw scores only.
    condition
        Name of a column, such as gender, that enrolments, tests and cohort have: each of them is then compared with the
        cohort members of the same condition only.
    memory
        Bytes that cohort scores may take at a time.
    progress
        Called with ``"cohort scores"`` and the fraction that is made.
    **options
        Options of the norm. With speakers in the embeddings, a trial's own speakers are left out of its cohort.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> takes = Embeddings(["a1", "a2", "b1"], rng.normal(size=(3, 4)), speakers=["ann", "ann", "bob"])
    >>> others = Embeddings([f"c{i}" for i in range(20)], rng.normal(size=(20, 4)))
    >>> listed = TrialList.from_pairs(["a1", "a1"], ["a2", "b1"])
    >>> scores = score_embeddings(takes, takes, listed, cohort=others, method="as", top_k=5)
    >>> scores.normalized.scores.round(2)
    array([-3.68, -6.78])
    """
    scorer = scorer_named(scorer)
    if method is None and (cohort is not None or options or condition is not None):
        raise InputError("a cohort or options of a norm were given, but no norm; name one with method, such as 'as'")
    if method is not None and cohort is None:
        raise InputError(f"the norm {method!r} needs a cohort; give embeddings of other speakers as cohort")
    if not memory > 0:
        raise InputError(f"memory is {memory!r}, but must be a number of bytes above 0")
    norm = None if method is None else prepare_norm(method, **options)
    if models is not None:
        enroll = average_embeddings(enroll, models, length_norm=length_norm)
    enroll, test, row, column = _used(enroll, test, trials)
    scores = scorer.score(enroll, test)
    mirrored = enroll is test and Vectors.left(scores).same(Vectors.right(scores))
    raw = raw_scores(scores, trials, row, column)
    if norm is None or cohort is None:
        return EmbeddingScores(raw, None)
    if method in CLASSICAL_METHODS:
        from evenscore.scoring.embedding_sides import EmbeddingSides

        sides = EmbeddingSides(
            enroll, test, cohort, scores, scorer.score(cohort, cohort), mirrored, condition, progress
        )
        return EmbeddingScores(
            raw, norm.normalize_sides(raw, sides.of(str(method), row, column, memory), memory=memory)
        )
    if condition is not None:
        raise InputError(f"the norm {method!r} knows no conditions; leave them out")
    if method == "lgsm" and not meet(enroll, test, cohort):
        among = scorer.score(cohort, cohort)
        normalizer = BilinearNormalizer(norm.model, among, cohort_labels(among, cohort.speakers))
        return EmbeddingScores(
            raw, normalizer.normalize(scores) if trials is None else normalizer.normalize_trials(scores, trials)
        )
    if method == "evidence" and not meet(enroll, test, cohort):
        from evenscore.evidence import normalize_vectors

        blocks = (scorer.score(enroll, cohort), scorer.score(cohort, test), scorer.score(cohort, cohort))
        return EmbeddingScores(
            raw, normalize_vectors(norm.model, raw, *blocks, cohort.speakers, memory=memory, progress=progress)
        )
    return EmbeddingScores(raw, norm.normalize(_blocks(scorer, enroll, test, cohort, trials, memory)))


def scorer_named(scorer: str | Scorer) -> Scorer:
    """Return the scorer of a name, or the scorer itself."""
    if isinstance(scorer, str):
        if scorer not in SCORERS:
            raise InputError(
                f"there is no scorer {scorer!r}; there are {', '.join(SCORERS)}, or give one that has a method `score`"
            )
        return SCORERS[scorer]()
    return scorer


def meet(enroll: Embeddings, test: Embeddings, cohort: Embeddings) -> bool:
    """Tell whether an utterance or a speaker of the trials is in the cohort."""

    def known(*sides: Any) -> set[str]:
        return {name for side in sides if side is not None for name in side} - {None}

    ids = known(enroll.ids, test.ids) & known(cohort.ids)
    return bool(ids or known(enroll.speakers, test.speakers) & known(cohort.speakers))


def _used(
    enroll: Embeddings, test: Embeddings, trials: TrialList | None
) -> tuple[Embeddings, Embeddings, Codes, Codes]:
    """Return the embeddings that the trials name, and where the trials' enrolments and tests stand in them.

    If both sides are the same object, they stay one, and have what either side needs.
    """
    if trials is None:
        return enroll, test, np.arange(len(enroll)), np.arange(len(test))
    row = _rows(enroll, trials.enroll_ids, "enrolment")
    column = _rows(test, trials.test_ids, "test")
    if enroll is not test:
        return enroll.take(row), test.take(column), np.arange(len(row)), np.arange(len(column))
    both, place = np.unique(np.concatenate([row, column]), return_inverse=True)
    one = enroll if len(both) == len(enroll) else enroll.take(both)
    return one, one, place[: len(row)], place[len(row) :]


def _rows(embeddings: Embeddings, ids: Ids, what: str) -> Codes:
    if np.array_equal(embeddings.ids, ids):
        return np.arange(len(ids))
    return positions(embeddings.ids, ids, what, "the embeddings")


def _blocks(
    scorer: Scorer, enroll: Embeddings, test: Embeddings, cohort: Embeddings, trials: TrialList | None, memory: float
) -> ScoreBlocks:
    """Return all cohort scores, for norms that work on whole blocks."""
    needed = 8 * len(cohort) * (len(enroll) + len(test) + len(cohort))
    if needed > memory:
        raise InputError(
            f"this norm needs all cohort scores at once, about {needed / 1e9:.1f} GB, but memory is set to "
            f"{memory / 1e9:.1f} GB; allow more, or take a smaller cohort"
        )
    return score_blocks(scorer, enroll, test, cohort, trials=trials)
