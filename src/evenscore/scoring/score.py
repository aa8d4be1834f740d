"""From embeddings to scores, raw or normalized, and from speakers to lists of trials."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from evenscore.data.blocks import ScoreBlocks
from evenscore.data.embeddings import Embeddings
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.side import Side
from evenscore.data.trial_list import TrialList
from evenscore.errors import InputError
from evenscore.norms.folds import EXACT_FOLDS, MANY_FOLDS, assign_folds
from evenscore.norms.options import ADAPTIVE, CLASSICAL, NormOptions
from evenscore.norms.registry import normalize
from evenscore.norms.statistics import row_statistics
from evenscore.scoring.plda import UTTERANCES
from evenscore.scoring.projection import Array, VectorsLike
from evenscore.scoring.scorers import Scorer, make_scorer

__all__ = ["embedding_blocks", "embedding_quality", "make_trials", "score_by_folds", "score_embeddings"]

Table = ScoreMatrix | TrialList
Codes = npt.NDArray[np.intp]
_MOST = 200_000_000  # trials of a list, which is in memory
_POOL = 1 << 20  # pairs of one speaker to draw from


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
    """Score enrolments against tests, and normalize the scores if there is a cohort; arrays make an array.

    Parameters
    ----------
    enroll, test, trials, cohort, scorer
        See `embedding_blocks`; embeddings may be arrays of vectors. Enrolments of several utterances are made by
        `enroll_models`.
    method, **options
        Name of the norm, by default ``"as"`` if there is a cohort, and options of it and of `normalize`.

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
    if cohort is None and (method is not None or options):
        raise InputError(f"a norm and its options ({', '.join(options)}) need a cohort; give embeddings of others")
    method = "as" if method is None and cohort is not None else method
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

    The sides have the speakers and the columns of the embeddings, so that a trial's own speakers leave its cohort.

    Parameters
    ----------
    enroll, test
        Embeddings of the two sides, or one object for both. A pair with the same id on both sides has no score: it is
        NaN in a matrix, and left out of a list.
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
        kept = products.missing_columns()[listed.rows] != listed.cols
        at = slice(None) if kept.all() else kept  # `select` would sort the ids
        rows, cols, known = listed.rows[at], listed.cols[at], None if cohort is None else listed.scores
        scores = products.pairs(rows, cols) if known is None else known[at]
        columns = {name: values[at] for name, values in listed.columns.items()}
        labels = None if listed.labels is None else listed.labels[at]
        table = TrialList.trusted(*sides, rows, cols, scores, labels, columns)
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
    """Return the embeddings that trials name, and the trials with their positions among these; one set stays one."""
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
    train, training
        Makes a scorer from embeddings, and what it is trained on, with speakers.
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
    left, right = training if enroll is None else enroll, training if test is None else test
    names = [[] if side.speakers is None else side.speakers.tolist() for side in (training, left, right)]
    if any(None in part or not part for part in names):
        raise InputError("folds need the speaker of every embedding; give it, or drop the embedding")
    n_speakers = len(set(names[0]))
    n_folds = (n_speakers if n_speakers <= EXACT_FOLDS else MANY_FOLDS) if folds is None else folds
    if n_folds < 3 or n_speakers < 3:
        raise InputError(f"{n_folds} folds of {n_speakers} speakers leave nothing to train on; give at least 3 of both")
    fold = assign_folds(names[0], n_folds)
    own, rows, cols = (np.array([fold.get(name, -1) for name in part]) for part in names)
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
    blocks: ScoreBlocks, enroll: Embeddings, test: Embeddings, method: str = "s", center: Any = None, **options: Any
) -> tuple[Side, Side]:
    """Return the sides of the trials with quality measures as columns, see `quality_columns`.

    ``mag`` is the length of a vector, less ``center``; ``mu`` and ``sigma`` are mean and standard deviation of the
    cohort scores, of the highest ones if the norm is an adaptive one. What is left out of a cohort because of the other
    side of a trial stays in here, so that a measure is of one side and cannot tell the label.
    """
    how = NormOptions.resolve(options.pop("options", None), options.pop("convention", None), **options)

    def measured(side: Side, vectors: Embeddings, scores: Any) -> Side:
        middle = np.asarray(0.0 if center is None else center)
        columns = {"mag": np.linalg.norm(vectors.select(side.ids).vectors - middle, axis=1)}
        if scores is not None:
            k = how.count("as" if method in ADAPTIVE else "s", scores.shape[1])
            columns["mu"], columns["sigma"] = row_statistics(scores, how, k, "cohort scores of")
        return side.with_columns(columns)

    S_e, S_t = blocks.enroll and blocks.enroll.scores, blocks.test and blocks.test.scores.T
    return measured(blocks.trials.enroll, enroll, S_e), measured(blocks.trials.test, test, S_t)


def make_trials(
    speakers: Mapping[str, str],
    *,
    targets: int | None = None,
    nontargets: int | None = None,
    conditions: Mapping[str, str] | None = None,
    seed: int = 0,
) -> TrialList:
    """Make a list of labelled trials of utterances; none is of an utterance with itself, or of two in both orders.

    Parameters
    ----------
    speakers
        The speaker of each utterance.
    targets, nontargets, seed
        Most target and non-target trials of each speaker's enrolments, drawn at random; None: all pairs.
    conditions
        A condition of each utterance, such as gender or phrase: both utterances of a trial have the same one, or none.

    Examples
    --------
    >>> make_trials({"a1": "ann", "a2": "ann", "b1": "bob", "b2": "bob"}, nontargets=1)
    TrialList(4 trials of 4 enrolments and 3 tests, 2 target, 2 non-target, 0 unknown, no scores)
    """
    side, n = Side(speakers, speakers), len(speakers)
    if min(targets or 0, nontargets or 0) < 0 or (None in (targets, nontargets) and n**2 // 2 > _MOST):
        raise InputError(f"{n} utterances make too many trials, or a number is below 0; give so many per speaker")
    speaker = np.unique([speakers[name] for name in side.ids], return_inverse=True)[1]
    condition = np.unique([(conditions or {}).get(name, "") for name in side.ids], return_inverse=True)[1]
    rng, parts = np.random.default_rng(seed), [np.empty((2, 0), np.intp)]
    for code in range(int(speaker.max(initial=-1)) + 1):
        own, others = np.flatnonzero(speaker == code), np.flatnonzero(speaker != code)
        parts += [_pairs(own, own, condition, targets, rng), _pairs(own, others, condition, nontargets, rng)]
    rows, cols = np.concatenate(parts, axis=1)
    # Two utterances may have been drawn for both of their speakers: the first of the two trials stays.
    first = np.sort(np.unique(np.minimum(rows, cols) * n + np.maximum(rows, cols), return_index=True)[1])
    return TrialList.from_codes(side, side, rows, cols, labels=speaker[rows] == speaker[cols]).select(first)


def _pairs(own: Codes, others: Codes, condition: Codes, most: int | None, rng: np.random.Generator) -> Codes:
    """Return pairs of the utterances of a speaker with some utterances, of one condition: rows and columns."""
    ordered = others is own or most is None  # the earlier utterance enrols
    if most is not None and len(own) * len(others) > _POOL:
        others = np.sort(rng.choice(others, max(1, _POOL // len(own)), replace=False))
    at = np.flatnonzero((condition[own][:, None] == condition[others]) & ((own[:, None] < others) | (not ordered)))
    if most is not None and most < len(at):
        at = np.sort(rng.choice(at, most, replace=False))
    return np.stack([own[at // max(len(others), 1)], others[at % max(len(others), 1)]])
