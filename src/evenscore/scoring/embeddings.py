"""From embeddings to raw and normalized scores, block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evenscore.calibrate.quality import Quality, quality_measures
from evenscore.errors import InputError
from evenscore.norms.conditions import Conditions
from evenscore.norms.normalize import normalize, prepare_norm
from evenscore.norms.options import CLASSICAL_METHODS
from evenscore.norms.parts import Keep, speakers_meet
from evenscore.progress import Progress, silent
from evenscore.scoring.cohorts import LengthNorm, enroll_models
from evenscore.sources import Cosine, DotProduct, Scorer
from evenscore.sources.computed import ComputedScores
from evenscore.sources.scorers import scored
from evenscore.tables import Axis, Embeddings, Place, ScoreBlocks, ScoreMatrix, ScoreTable, TrialList
from evenscore.tables.axis import positions_of_both
from evenscore.tables.tile import TILE_BYTES

__all__ = ["cohort_blocks", "embedding_quality", "score_embeddings", "score_lazily", "scorer_named"]

_MEMORY = 1e9  # bytes that the cohort against itself may take
SCORERS: Mapping[str, Callable[[], Scorer]] = {"cosine": Cosine, "dot": DotProduct}


def score_embeddings(
    enroll: Embeddings,
    test: Embeddings,
    trials: TrialList | ScoreMatrix | None = None,
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
) -> ScoreMatrix | TrialList:
    """Score enrolments against tests, and normalize the scores if there is a cohort.

    Every embedding that the trials name is scored against the cohort once, however often it is listed, in pieces that
    stay within ``memory``; no matrix of all cohort scores exists, but for methods that need all of them where a
    trial's own speakers are in the cohort. If both sides are the same embeddings and the scorer is symmetric, one piece
    serves both sides.

    Parameters
    ----------
    enroll, test
        Embeddings of the two sides. They may be the same object.
    trials
        The pairs to score; None scores every enrolment against every test. Those that have scores already keep them if
        there is a norm: they are what is normalized, and embeddings are compared with the cohort only.
    scorer
        ``"cosine"``, ``"dot"``, or any `Scorer`, such as `Cosine(mean=...)` or a `PLDA`.
    models
        Enrolments of several utterances: from each model's id to the ids of its utterances in ``enroll``; see
        `enroll_models`.
    length_norm
        Whether utterances of a model are brought to length 1 ``"before"`` they are averaged, the means ``"after"``,
        ``"both"`` or ``"none"``.
    cohort
        Embeddings of the cohort, see `make_cohort`. Its members are both the tests and the enrolments of the cohort.
        An id that stands in the trials and in the cohort is one utterance, whose score against itself is left out.
    method
        Name of the norm, see `normalize`; None for raw scores.
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
    >>> score_embeddings(takes, takes, listed).scores.round(2)
    array([ 0.7, -0.3])
    >>> score_embeddings(takes, takes, listed, cohort=others, method="as", top_k=5).scores.round(2)
    array([-3.68, -6.78])
    >>> rounded = listed.with_scores([0.7, -0.3])  # by another program; they are what is normalized
    >>> score_embeddings(takes, takes, rounded, cohort=others, method="as", top_k=5).scores.round(2)
    array([-3.68, -6.8 ])
    """
    scorer = scorer_named(scorer)
    _refuse_half_a_norm(cohort, method, condition, options)
    if not memory > 0:
        raise InputError(f"memory is {memory!r}, but must be a number of bytes above 0")
    if method is not None:
        prepare_norm(method, **options)  # which refuses what cannot be meant, before any work is done
    if models is not None:
        enroll = enroll_models(scorer, enroll, models, length_norm=length_norm)
    enroll, test = _used(enroll, test, trials)
    found: Any
    if trials is not None and method is not None and _have_scores(trials):
        found = _known(trials, enroll, test)
    else:
        scores = scored(scorer, enroll, test)
        found = scores.in_memory() if trials is None else _listed(scores, trials.to_trials())
    if method is not None and cohort is not None:
        blocks = cohort_blocks(scorer, enroll, test, cohort, found, method, memory, options)
        found = normalize(blocks, method, progress=progress, **_conditions(blocks, condition, method), **options)
    return _like(trials, found) if isinstance(trials, TrialList) else found


def score_lazily(
    enroll: Embeddings,
    test: Embeddings,
    trials: ScoreTable | None = None,
    *,
    scorer: str | Scorer = "cosine",
    cohort: Embeddings | None = None,
    method: str | None = None,
    condition: str | None = None,
    client: Any = None,
    progress: Progress = silent,
    keep: Keep | None = None,
    **options: Any,
) -> ScoreTable:
    """Score enrolments against tests, and normalize the scores with a cohort, without the matrix of all scores.

    Each embedding is compared with the cohort once, in pieces; every tile of the result is computed when it is read,
    as by `write_table`. On a cluster, embeddings are sent to each worker once. The numbers are those of
    `score_embeddings`.

    Parameters
    ----------
    enroll, test, trials, scorer, cohort, method, condition, **options
        As in `score_embeddings`; trials that have scores may be in files or Dask arrays, too.
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
    >>> scores = score_lazily(takes, takes, cohort=others, method="as", top_k=5)
    >>> scores
    LazyScores(3 enrolments x 3 tests, float64, 1 tiles)
    >>> scores.in_memory().scores[0].round(2)
    array([ 2.23, -3.68, -6.78])
    """
    scorer = scorer_named(scorer)
    _refuse_half_a_norm(cohort, method, condition, options)
    raw: ScoreTable
    if trials is not None and method is not None and _have_scores(trials):
        raw = _known(trials, enroll, test)
    else:
        scores = scored(scorer, enroll, test)
        raw = scores if trials is None else scores.of_trials(trials.in_memory().to_trials())
    if method is None or cohort is None:
        if keep is not None:
            keep.begin({"trials": raw.identity()})
        return raw
    blocks = cohort_blocks(scorer, enroll, test, cohort, raw, method, _MEMORY, options)
    how: dict[str, Any] = {"client": client, "progress": progress, "keep": keep}
    return normalize(blocks, method, **how, **_conditions(blocks, condition, method), **options)


def embedding_quality(
    enroll: Embeddings,
    test: Embeddings,
    trials: ScoreTable,
    *,
    scorer: str | Scorer = "cosine",
    cohort: Embeddings,
    method: str = "s",
    condition: str | None = None,
    client: Any = None,
    progress: Progress = silent,
    **options: Any,
) -> Quality:
    """Find quality measures of trials from embeddings: lengths, cohort scores, and facts that are numbers.

    Cohort scores are made and forgotten in pieces. `quality_measures` explains the measures.

    Parameters
    ----------
    enroll, test, scorer, cohort, method, condition, **options
        As in `score_embeddings`.
    trials
        Their enrolments and tests are measured.
    client, progress
        As in `normalize`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> takes = Embeddings(["a1", "a2", "b1"], rng.normal(size=(3, 4)))
    >>> others = Embeddings([f"c{i}" for i in range(20)], rng.normal(size=(20, 4)))
    >>> scores = score_embeddings(takes, takes, cohort=others, method="as", top_k=5)
    >>> embedding_quality(takes, takes, scores, cohort=others, method="as", top_k=5)
    Quality(mag_e, mu_e, sigma_e of 3 enrolments; mag_t, mu_t, sigma_t of 3 tests)
    """
    scorer = scorer_named(scorer)
    enroll, test = _used(enroll, test, trials)
    blocks = cohort_blocks(scorer, enroll, test, cohort, _known(trials, enroll, test), "s", _MEMORY, {})
    how: dict[str, Any] = {"client": client, "progress": progress, "center": getattr(scorer, "mean", None)}
    found = _conditions(blocks, condition, method)
    return quality_measures(blocks, method, enroll=enroll, test=test, **how, **found, **options)


def _refuse_half_a_norm(cohort: Embeddings | None, method: str | None, condition: str | None, options: Any) -> None:
    if method is None and (cohort is not None or options or condition is not None):
        raise InputError("a cohort or options of a norm were given, but no norm; name one with method, such as 'as'")
    if method is not None and cohort is None:
        raise InputError(f"the norm {method!r} needs a cohort; give embeddings of other speakers as cohort")


def _have_scores(trials: ScoreTable) -> bool:
    return not isinstance(trials, TrialList) or trials.scores is not None


def _known(trials: ScoreTable, enroll: Embeddings, test: Embeddings) -> ScoreTable:
    """Return scores that there are already, with what the embeddings know about enrolments and tests."""
    rows, columns = positions_of_both((enroll, test), (trials.enroll_ids, trials.test_ids), "the embeddings")
    axes = enroll.axis.take(rows), test.axis.take(columns)
    return trials.with_axes(trials.enroll_axis.knowing(axes[0]), trials.test_axis.knowing(axes[1]))


def _listed(scores: ComputedScores, trials: TrialList) -> TrialList:
    """Return listed trials with their scores, on the axes of the embeddings."""
    table = scores.of_trials(trials)
    tile = table.read(Place(0, slice(0, len(trials))))
    if not np.isfinite(tile.scores).all():
        trials.with_scores(tile.scores)  # refuses them by name
    return TrialList.trusted(table.enroll_axis, table.test_axis, tile)


def _like(trials: TrialList, scored: TrialList) -> TrialList:
    """Return scores of listed trials on the list's own axes; a norm may have left out some of the trials."""
    if len(scored) == len(trials):
        return trials.rescored(np.array(scored.scores))
    return scored.select(np.arange(len(scored)))


def scorer_named(scorer: str | Scorer) -> Scorer:
    """Return the scorer of a name, or the scorer itself."""
    if isinstance(scorer, str):
        if scorer not in SCORERS:
            raise InputError(
                f"there is no scorer {scorer!r}; there are {', '.join(SCORERS)}, or give one that has a method `score`"
            )
        return SCORERS[scorer]()
    return scorer


def _used(enroll: Embeddings, test: Embeddings, trials: ScoreTable | None) -> tuple[Embeddings, Embeddings]:
    """Return the embeddings that the trials name; if both sides are the same object, they stay one."""
    if trials is None:
        return enroll, test
    rows, columns = positions_of_both((enroll, test), (trials.enroll_ids, trials.test_ids), "the embeddings")
    if enroll is not test:
        return enroll.take(rows), test.take(columns)
    both = np.union1d(rows, columns)
    one = enroll if len(both) == len(enroll) else enroll.take(both)
    return one, one


def cohort_blocks(
    scorer: Scorer,
    enroll: Embeddings,
    test: Embeddings,
    cohort: Embeddings,
    trials: ScoreTable,
    method: str,
    memory: float,
    options: Mapping[str, Any],
) -> ScoreBlocks:
    """Return the trials with their cohort scores, which are made in pieces when a norm reads them."""
    if cohort.dim != enroll.dim:
        raise InputError(
            f"the cohort's embeddings have {cohort.dim} dimensions, but those of the enrolments have {enroll.dim}; "
            "all must come from the same extractor"
        )
    tile = min(memory / 4, TILE_BYTES)
    blocks = ScoreBlocks(
        trials,
        enroll=scored(scorer, enroll, cohort).without_itself().in_tiles(tile),
        test=scored(scorer, cohort, test).without_itself().in_tiles(tile),
        cohort=scored(scorer, cohort, cohort).without_itself().in_tiles(tile),
    )
    if 8 * len(cohort) ** 2 > memory and not _by_parts(blocks, method, options):
        raise InputError(
            f"{method!r} needs all {len(cohort)} x {len(cohort)} cohort scores at once here, more than the memory of "
            f"{memory / 1e9:.1f} GB; allow more, or take a smaller cohort, or one without the trials' own speakers"
        )
    return blocks


def _by_parts(blocks: ScoreBlocks, method: str, options: Mapping[str, Any]) -> bool:
    """Tell whether a norm needs some cohort scores at a time only, as far as its name and options tell."""
    if getattr(options.get("options"), "select", options.get("select")) == "profile":
        return False
    if method in ("lgsm", *CLASSICAL_METHODS) and method not in ("zt", "tz"):
        return True
    return method in ("zt", "tz", "evidence") and not speakers_meet(blocks, ("cohort",))


def _conditions(blocks: ScoreBlocks, condition: str | None, method: str) -> dict[str, Any]:
    """Return the conditions of all sides, from a fact that the embeddings know, as an option of the norm."""
    if condition is None:
        return {}
    if method not in CLASSICAL_METHODS:
        raise InputError(f"the norm {method!r} knows no conditions; leave them out")
    trials, cohort = blocks.trials, _facts(blocks.cohort.enroll_axis, condition, "cohort")
    enroll, test = (
        _facts(axis, condition, side) for axis, side in ((trials.enroll_axis, "enroll"), (trials.test_axis, "test"))
    )
    return {"conditions": Conditions(enroll=enroll, test=test, cohort_enroll=cohort, cohort_test=cohort)}


def _facts(axis: Axis, name: str, what: str) -> dict[str, str | None]:
    if name not in axis.facts:
        have = ", ".join(axis.facts) or "none"
        raise InputError(f"the {what} embeddings have no column {name!r} to be the condition; they have {have}")
    values = axis.facts[name].tolist()
    return {key: None if value is None else str(value) for key, value in zip(axis.ids, values, strict=True)}
