"""From embeddings to scores, raw or normalized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.embeddings import Embeddings
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.norms.classical import cohort_counts, statistics_of_enrolments, statistics_of_tests
from evenscore.norms.folds import EXACT_FOLDS, MANY_FOLDS, assign_folds
from evenscore.norms.options import ADAPTIVE, CLASSICAL, NormOptions
from evenscore.norms.registry import normalize
from evenscore.scoring.plda import UTTERANCES
from evenscore.scoring.projection import Array, VectorsLike
from evenscore.scoring.scorers import Scorer, make_scorer

__all__ = ["embedding_blocks", "embedding_quality", "score_by_folds", "score_embeddings"]

Table = ScoreMatrix | TrialList


@overload
def score_embeddings(enroll: Embeddings, test: Embeddings, *args: Any, **options: Any) -> Table: ...
@overload
def score_embeddings(enroll: npt.ArrayLike, test: npt.ArrayLike, *args: Any, **options: Any) -> Array: ...
def score_embeddings(
    enroll: VectorsLike,
    test: VectorsLike,
    trials: Table | None = None,
    cohort: VectorsLike | None = None,
    scorer: str | Scorer = "cosine",
    method: str | None = None,
    **options: Any,
) -> Table | Array:
    """Score enrolments against tests, and normalize the scores if there is a cohort.

    Parameters
    ----------
    enroll, test, trials, cohort, scorer
        See `embedding_blocks`; embeddings may be arrays of vectors. Enrolments of several utterances are made by
        `enroll_models`.
    method, **options
        Name of the norm, and options of it and of `normalize`; None for raw scores.

    Returns
    -------
    ScoreMatrix, TrialList or array
        A list for listed trials, an array for arrays.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> takes = Embeddings(["a1", "a2", "b1"], rng.normal(size=(3, 4)), speakers=["ann", "ann", "bob"])
    >>> others = Embeddings([f"c{i}" for i in range(20)], rng.normal(size=(20, 4)))
    >>> listed = TrialList(["a1", "a1"], ["a2", "b1"])
    >>> score_embeddings(takes, takes, listed).scores.round(2)
    array([ 0.7, -0.3])
    >>> score_embeddings(takes, takes, listed, others, method="as", top_k=5).scores.round(2)
    array([-3.68, -6.78])
    """
    if method is None and (cohort is not None or options):
        raise InputError("a cohort or options of a norm were given, but no norm; name one with method, such as 'as'")
    if method is not None and cohort is None:
        raise InputError(f"the norm {method!r} needs a cohort; give embeddings of other speakers as cohort")
    left = _as_embeddings(enroll, "e")
    right = left if test is enroll else _as_embeddings(test, "t")
    members = None if cohort is None else _as_embeddings(cohort, "c")
    blocks = embedding_blocks(left, right, members, trials, scorer=scorer, method=method, **options)
    found = blocks.trials if method is None else normalize(blocks, method, **options)
    return found if left is enroll else np.asarray(found.scores)


def _as_embeddings(vectors: VectorsLike, letter: str) -> Embeddings:
    if isinstance(vectors, Embeddings):
        return vectors
    x = np.asarray(vectors)
    return Embeddings([f"{letter}{row}" for row in range(len(x))], x)


def embedding_blocks(
    enroll: Embeddings,
    test: Embeddings,
    cohort: Embeddings | None = None,
    trials: Table | None = None,
    *,
    scorer: str | Scorer = "cosine",
    method: str | None = None,
    lazy: bool = False,
    **options: Any,
) -> ScoreBlocks:
    """Return trials and cohort scores as score blocks, for `normalize`; cohort scores are made when a norm uses them.

    The sides of the blocks have the speakers and the columns of the embeddings, so that a norm leaves a trial's own
    speakers out of its cohort.

    Parameters
    ----------
    enroll, test
        Embeddings of the two sides. They may be the same object. A pair with the same id on both sides has no score: it
        is NaN in a matrix, and left out of a list.
    cohort
        Embeddings of the cohort, see `make_cohort`; its members are both the tests and the enrolments of the cohort.
    trials
        The pairs to score; None scores every enrolment against every test. If they have scores and there is a cohort,
        these scores are kept, and embeddings are compared with the cohort only.
    scorer
        A name or a scorer, see `make_scorer`.
    method, **options
        The norm that the blocks are for: one that uses no scores of the cohort against itself gets none.
    lazy
        Whether the scores of all pairs are a dask array, computed in chunks when they are used.
    """
    scorer, listed = make_scorer(scorer), None if trials is None else trials.to_trials()
    if listed is not None:
        enroll, test, listed = _used(enroll, test, listed)
    products, sides = scorer.bilinear(enroll, test), (_side(enroll), _side(test))
    if listed is None:
        table: Table = ScoreMatrix.trusted(products.to_dask() if lazy else np.asarray(products), *sides)
    else:
        known = None if cohort is None or listed.scores is None else listed.scores.copy()
        scores = products.pairs(listed.rows, listed.cols) if known is None else known
        scores[products.missing_columns()[listed.rows] == listed.cols] = np.nan
        table = listed.with_sides(*sides).with_normalized(scores)
    if cohort is None:
        return ScoreBlocks(table)
    if cohort.dim != test.dim:
        raise InputError(f"the cohort's embeddings have {cohort.dim} dimensions, those of the tests have {test.dim}")
    of_enroll, members = scorer.bilinear(enroll, cohort), _side(cohort)
    S_e = ScoreMatrix.trusted(of_enroll, sides[0], members)
    S_t = ScoreMatrix.trusted(of_enroll.T if test is enroll else scorer.bilinear(cohort, test), members, sides[1])
    select = getattr(options.get("options"), "select", options.get("select"))
    if method in CLASSICAL and method not in ("zt", "tz") and select != "profile":
        return ScoreBlocks(table, S_e, S_t)
    if method not in CLASSICAL:  # which alone take cohort scores with gaps in pieces
        S_e, S_t = (
            one if one.scores.missing is None else one.with_scores(np.asarray(one.scores)) for one in (S_e, S_t)
        )
    return ScoreBlocks(table, S_e, S_t, ScoreMatrix.trusted(scorer.bilinear(cohort, cohort), members, members))


def _side(embeddings: Embeddings) -> Side:
    """Return what is known about embeddings, without their vectors."""
    columns = {name: values for name, values in embeddings.columns.items() if name != UTTERANCES}
    return Side.trusted(embeddings.ids, embeddings.speakers, columns)


def _used(enroll: Embeddings, test: Embeddings, trials: TrialList) -> tuple[Embeddings, Embeddings, TrialList]:
    """Return the embeddings that trials name, and the trials with their positions among these.

    If both sides are one object, they stay one, so that each embedding is compared with the cohort once.
    """
    rows = enroll.positions(trials.enroll_ids, "enrolment", "the embeddings", test)
    cols = test.positions(trials.test_ids, "test", "the embeddings", enroll)
    if enroll is not test:
        return enroll.take(rows), test.take(cols), trials
    both = np.union1d(rows, cols)
    one = enroll if len(both) == len(enroll) else enroll.take(both)
    at = np.searchsorted(both, rows).astype(np.int32), np.searchsorted(both, cols).astype(np.int32)
    facts = trials.scores, trials.labels, trials.columns
    return one, one, TrialList.trusted(one, one, at[0][trials.rows], at[1][trials.cols], *facts)


def score_by_folds(
    train: Callable[[Embeddings], Scorer],
    training: Embeddings,
    enroll: Embeddings | None = None,
    test: Embeddings | None = None,
    *,
    folds: int | None = None,
) -> ScoreMatrix:
    """Score trials of speakers of a scorer's own training data, each by a scorer trained without its two speakers.

    Speakers of the training data are dealt out to folds. Trials between folds a and b are scored by what was trained
    without these two, so that their scores are like those of new speakers: for a centre, LDA, WCCN, PLDA.

    Parameters
    ----------
    train
        Makes a scorer from embeddings, such as ``lambda part: make_scorer("cosine", part, center="mean")``.
    training
        What the scorer is trained on, with speakers.
    enroll, test
        The trials' embeddings with their speakers; by default the training data against itself.
    folds
        At least 3. By default one per speaker for up to 40 speakers, and 20 for more; as training runs once for each
        pair of folds, take 5 where it is slow.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> takes = Embeddings(range(120), rng.normal(size=(120, 6)), speakers=np.repeat(np.arange(30), 4))
    >>> score_by_folds(lambda part: make_scorer("cosine", part, center="mean"), takes)
    ScoreMatrix(120 enrolments x 120 tests, float64)
    """
    sides = training, training if enroll is None else enroll, training if test is None else test
    if any(side.speakers is None or None in side.speakers.tolist() for side in sides):
        raise InputError("folds need the speaker of every embedding; give it, or drop the embedding")
    names = training.speakers.tolist()  # type: ignore[union-attr]
    n_speakers = len(set(names))
    n_folds = (n_speakers if n_speakers <= EXACT_FOLDS else MANY_FOLDS) if folds is None else folds
    if n_folds < 3 or n_speakers < 3:
        raise InputError(f"{n_folds} folds of {n_speakers} speakers leave nothing to train on; give at least 3 of both")
    fold = assign_folds(names, n_folds)
    own, rows, cols = (np.array([fold.get(name, -1) for name in side.speakers], np.intp) for side in sides)  # type: ignore[union-attr]
    _, left, right = sides
    out = np.empty((len(left), len(right)), np.result_type(left.vectors, right.vectors))
    trained: dict[tuple[int, int], Scorer] = {}
    for a in np.unique(rows).tolist():
        for b in np.unique(cols).tolist():
            pair = (min(a, b), max(a, b))
            if pair not in trained:
                trained[pair] = train(training.take(~np.isin(own, pair)))
            at, there = np.flatnonzero(rows == a), np.flatnonzero(cols == b)
            out[np.ix_(at, there)] = trained[pair](left.take(at), right.take(there))
    return ScoreMatrix.trusted(out, _side(left), _side(right))


def embedding_quality(
    blocks: ScoreBlocks,
    enroll: Embeddings,
    test: Embeddings,
    method: str = "s",
    center: npt.ArrayLike | None = None,
    **options: Any,
) -> tuple[Side, Side]:
    """Return the sides of the trials with quality measures as columns, see `quality_columns`.

    ``mag`` is the length of a vector, less ``center``; ``mu`` and ``sigma`` are mean and standard deviation of the
    cohort scores, of the highest ones if the norm is an adaptive one. What is left out of a cohort because of the other
    side of a trial stays in here, so that a measure is of one side and cannot tell the label.
    """
    how = NormOptions.resolve(options.pop("options", None), options.pop("convention", None), **options)
    norm = "as" if method in ADAPTIVE else "s"
    blocks = blocks.only(("enroll", "test"))
    S_e, S_t = blocks.enroll and blocks.enroll.scores, blocks.test and blocks.test.scores
    counts = cohort_counts(norm, S_e, S_t, how)
    of_enroll = () if S_e is None else statistics_of_enrolments(norm, S_e, None, how, counts[0])
    of_test = () if S_t is None else statistics_of_tests(norm, S_t, None, how, counts[1])
    found = []
    for side, vectors, numbers in ((blocks.trials.enroll, enroll, of_enroll), (blocks.trials.test, test, of_test)):
        middle = np.asarray(0.0 if center is None else center)
        lengths = np.linalg.norm(vectors.select(side.ids).vectors - middle, axis=1)
        found.append(side.with_columns({"mag": lengths, **dict(zip(("mu", "sigma"), numbers, strict=False))}))
    return found[0], found[1]
