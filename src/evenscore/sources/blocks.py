"""The four blocks of scores that norms work on, made from embeddings."""

from __future__ import annotations

import numpy as np

from evenscore.sources.computed import ComputedScores
from evenscore.sources.scorers import Scorer, scored
from evenscore.tables import Embeddings, ScoreBlocks, ScoreMatrix, TrialList

__all__ = ["cohort_matrix", "score_blocks"]


def score_blocks(
    scorer: Scorer,
    enroll: Embeddings,
    test: Embeddings,
    cohort_enroll: Embeddings | None = None,
    cohort_test: Embeddings | None = None,
    *,
    trials: TrialList | None = None,
) -> ScoreBlocks:
    """Score trials and their cohort: all four blocks, ready for any norm.

    Parameters
    ----------
    scorer
        `Cosine`, `DotProduct`, `PLDA`, or anything else with a method ``score(enroll, test)``.
    enroll, test
        Embeddings of the trials' enrolments and tests.
    cohort_enroll, cohort_test
        Embeddings of the cohort on each side; one that is given alone serves both sides. An id that stands on both
        sides of a block of cohort scores is one utterance, whose score against itself is missing.
    trials
        The trials to score; by default every enrolment against every test. Those that have scores already keep them.

    Returns
    -------
    ScoreBlocks
        With the speakers of all embeddings that have them.

    Examples
    --------
    >>> from evenscore import Cosine, Embeddings
    >>> enroll, test = Embeddings(["e"], [[1.0, 0.0]]), Embeddings(["t"], [[0.8, 0.6]])
    >>> cohort = Embeddings(["c1", "c2"], [[0.0, 1.0], [0.6, 0.8]])
    >>> blocks = score_blocks(Cosine(), enroll, test, cohort)
    >>> blocks
    ScoreBlocks(trials 1 x 1, enroll 1 x 2, test 2 x 1, cohort 2 x 2)
    >>> blocks.cohort.scores
    array([[nan, 0.8],
           [0.8, nan]])
    """
    if trials is not None:
        enroll, test = enroll.select(trials.enroll_ids), test.select(trials.test_ids)
    rows = cohort_test if cohort_enroll is None else cohort_enroll
    columns = cohort_enroll if cohort_test is None else cohort_test
    both = rows is not None and columns is not None
    return ScoreBlocks(
        _trial_scores(scorer, enroll, test, trials),
        enroll=None if columns is None else cohort_matrix(scored(scorer, enroll, columns)),
        test=None if rows is None else cohort_matrix(scored(scorer, rows, test)),
        cohort=cohort_matrix(scored(scorer, rows, columns)) if both else None,  # type: ignore[arg-type]
    )


def _trial_scores(
    scorer: Scorer, enroll: Embeddings, test: Embeddings, trials: TrialList | None
) -> ScoreMatrix | TrialList:
    if trials is None:
        return scored(scorer, enroll, test).in_memory()
    known = trials if trials.scores is not None else scored(scorer, enroll, test).score_trials(trials)
    return known.with_axes(enroll.axis, test.axis)


def cohort_matrix(scores: ComputedScores) -> ScoreMatrix:
    """Return all scores, with those of an utterance against itself missing."""
    own = scores.test_axis.find(scores.enroll_ids)
    rows = np.flatnonzero(own >= 0)
    if not len(rows):
        return scores.in_memory()
    values = scores.block()
    values[rows, own[rows]] = np.nan
    return ScoreMatrix(values, scores.enroll_axis, scores.test_axis, missing="nan")
