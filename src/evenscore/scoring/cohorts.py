"""Means of several utterances (models, speakers), and cohorts: by utterance or speaker, all or a well-chosen few."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.plda import PLDA
from evenscore.sources.scorers import Scorer, length_normalized
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.ids import as_ids, as_speakers
from evenscore.threads import product

__all__ = ["LengthNorm", "average_embeddings", "enroll_models", "make_cohort"]

LengthNorm = Literal["none", "before", "after", "both"]
Unit = Literal["utterance", "speaker"]
Pick = Literal["random", "kmeans"]

_ROUNDS = 25


def average_embeddings(
    embeddings: Embeddings, members: Mapping[str, Sequence[str]], *, length_norm: LengthNorm = "none"
) -> Embeddings:
    """Return the mean vector of each list of utterances.

    Parameters
    ----------
    embeddings
        One vector per utterance.
    members
        From the id of each mean, such as an enrolment or a speaker, to the ids of its utterances.
    length_norm
        Whether utterances are brought to length 1 ``"before"`` they are averaged, means ``"after"``, ``"both"`` or
        ``"none"``.

    Returns
    -------
    Embeddings
        With the speaker and the further facts that all utterances of a mean share; None or nothing where they differ.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2", "u3"], [[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]], speakers=["ann", "ann", "bob"])
    >>> models = average_embeddings(takes, {"ann-model": ["u1", "u2"], "bob-model": ["u3"]})
    >>> models.vectors
    array([[0.5, 1.5],
           [2. , 2. ]])
    >>> models.speakers
    array(['ann', 'bob'], dtype=object)
    """
    _refuse_unknown(length_norm=(length_norm, LengthNorm))
    names = as_ids(members, "members")
    empty = [name for name in names if len(members[name]) == 0]
    if empty:
        raise InputError(f"{empty[0]!r} has no utterances to average; drop it")
    order = embeddings.positions([name for key in names for name in members[key]], "utterance", "the embeddings")
    start = np.concatenate([[0], np.cumsum([len(members[name]) for name in names])]).astype(np.intp)
    vectors = embeddings.vectors
    if length_norm in ("before", "both"):
        vectors = length_normalized(vectors, embeddings)
    means = _means(vectors, order, start)
    averaged = Embeddings(
        names,
        means,
        None if embeddings.speakers is None else _shared(embeddings.speakers, order, start),
        columns=_shared_columns(embeddings.columns, order, start),
    )
    if length_norm in ("after", "both"):
        means = length_normalized(means, averaged)
        averaged = Embeddings(names, means, averaged.speakers, columns=averaged.columns)
    return averaged


def enroll_models(
    scorer: Scorer, embeddings: Embeddings, members: Mapping[str, Sequence[str]], *, length_norm: LengthNorm = "none"
) -> Embeddings:
    """Return enrolments of several utterances as a scorer takes them.

    They are mean vectors, see `average_embeddings`. For a `PLDA`, unless a length normalization is asked for, they are
    means of what the model sees, that know of how many utterances: their scores follow from the posterior of the
    speaker's variable given all of them, so that a speaker with ten utterances is better known than one with two.

    Parameters
    ----------
    scorer
        What they will be scored by.
    embeddings, members, length_norm
        As in `average_embeddings`.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2"], [[2.0], [1.0]])
    >>> plda = PLDA(mean=[0.0], between=[[3.0]], within=[[1.0]])
    >>> enroll, test = enroll_models(plda, takes, {"ann": ["u1", "u2"]}), Embeddings(["t"], [[1.5]])
    >>> plda.score(enroll, test).in_memory().scores.round(3)
    array([[0.78]])
    """
    if not isinstance(scorer, PLDA) or length_norm != "none":
        return average_embeddings(embeddings, members, length_norm=length_norm)
    means = average_embeddings(scorer.projected(embeddings), members)
    return scorer.of_means(means, [len(members[name]) for name in means.ids])


def _means(
    vectors: npt.NDArray[Any], order: npt.NDArray[np.intp], start: npt.NDArray[np.intp]
) -> npt.NDArray[np.floating]:
    if len(start) == 1:
        return vectors[:0]
    means = np.empty((len(start) - 1, vectors.shape[1]), dtype=vectors.dtype)
    for row in range(len(means)):
        means[row] = vectors[order[start[row] : start[row + 1]]].mean(axis=0, dtype=np.float64)
    return means


def _shared(values: npt.NDArray[Any], order: npt.NDArray[np.intp], start: npt.NDArray[np.intp]) -> list[Any]:
    """Return the value that all utterances of a mean share, else None."""
    shared = []
    for low, high in pairwise(start):
        some = set(values[order[low:high]].tolist())
        shared.append(some.pop() if len(some) == 1 else None)
    return shared


def _shared_columns(
    columns: Mapping[str, npt.NDArray[Any]], order: npt.NDArray[np.intp], start: npt.NDArray[np.intp]
) -> dict[str, list[Any]]:
    found = {name: _shared(values, order, start) for name, values in columns.items()}
    return {name: values for name, values in found.items() if None not in values}


def make_cohort(
    embeddings: Embeddings,
    *,
    unit: Unit = "utterance",
    length_norm: LengthNorm = "none",
    size: int | None = None,
    pick: Pick = "random",
    seed: int = 0,
    exclude_speakers: Iterable[str] = (),
) -> Embeddings:
    """Choose the members of a cohort.

    Parameters
    ----------
    embeddings
        Vectors of utterances.
    unit
        ``"utterance"``: each utterance is a member; ``"speaker"``: the mean of each speaker's utterances is a member,
        under the speaker's name.
    length_norm
        Whether utterances are brought to length 1 ``"before"`` they are averaged, means ``"after"``, ``"both"`` or
        ``"none"`` (a cosine scorer normalizes what it scores anyhow).
    size
        How many members to keep; None keeps all.
    pick
        How they are picked: at ``"random"``, or the member nearest to the centre of each of ``size`` clusters
        (``"kmeans"``), which spreads them out. Either way the same seed gives the same members, in their old order.
    seed
        Seed of the random numbers.
    exclude_speakers
        Speakers that must not be in the cohort, such as those of an evaluation. Names that do not occur are fine.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2", "u3"], [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]], speakers=["ann", "ann", "bob"])
    >>> make_cohort(takes, unit="speaker").ids
    array(['ann', 'bob'], dtype=object)
    >>> make_cohort(takes, exclude_speakers=["bob"])
    Embeddings(2 x 2, float64, 1 speakers)
    """
    _refuse_unknown(unit=(unit, Unit), pick=(pick, Pick), length_norm=(length_norm, LengthNorm))
    members = _without(embeddings, exclude_speakers)
    if unit == "speaker":
        members = _by_speaker(members, length_norm)
    elif length_norm != "none":
        vectors = length_normalized(members.vectors, members)
        members = Embeddings(members.ids, vectors, members.speakers, columns=members.columns)
    if size is None:
        return members
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or not 1 <= size <= len(members):
        raise InputError(f"the cohort size is {size!r}, but must be from 1 to {len(members)}, the number of members")
    rng = np.random.default_rng(seed)
    if pick == "random":
        chosen = rng.choice(len(members), size=size, replace=False)
    else:
        chosen = _nearest_to_centers(members.vectors, int(size), rng)
    return members.take(np.sort(chosen))


def _refuse_unknown(**given: tuple[str, Any]) -> None:
    """Refuse a value that is none of the words that it can be."""
    for name, (value, words) in given.items():
        if value not in get_args(words):
            raise InputError(f"{name} is {value!r}, but must be {' or '.join(map(repr, get_args(words)))}")


def _without(embeddings: Embeddings, exclude: Iterable[str]) -> Embeddings:
    names = set(as_speakers(exclude, "exclude_speakers").tolist()) - {None}
    if not names:
        return embeddings
    if embeddings.speakers is None:
        raise InputError("speakers cannot be left out, because the embeddings have none; give a map from id to speaker")
    return embeddings.take(np.array([name not in names for name in embeddings.speakers], dtype=bool))


def _by_speaker(embeddings: Embeddings, length_norm: LengthNorm) -> Embeddings:
    if embeddings.speakers is None:
        raise InputError("a cohort by speaker needs the speaker of each utterance; give a map from id to speaker")
    members: dict[str, list[str]] = {}
    for name, speaker in zip(embeddings.ids, embeddings.speakers, strict=True):
        if speaker is None:
            raise InputError(f"the speaker of {name!r} is not known, so it has no mean to join; drop it")
        members.setdefault(speaker, []).append(name)
    return average_embeddings(embeddings, members, length_norm=length_norm)


def _nearest_to_centers(vectors: npt.NDArray[Any], k: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return one row of each of k clusters, the nearest to its centre (k-means++ and Lloyd's algorithm)."""
    X = vectors.astype(np.float64)
    centers = X[_spread(X, k, rng)]
    owner = np.full(len(X), -1)
    for _ in range(_ROUNDS):
        distance = _distances(X, centers)
        before, owner = owner, distance.argmin(axis=1)
        _fill_empty(owner, distance, k)
        if np.array_equal(owner, before):
            break
        sums = np.zeros_like(centers)
        np.add.at(sums, owner, X)
        centers = sums / np.bincount(owner, minlength=k)[:, None]
    distance = _distances(X, centers)[np.arange(len(X)), owner]
    order = np.lexsort((distance, owner))
    first = np.searchsorted(owner[order], np.arange(k))
    return order[first]


def _spread(X: npt.NDArray[np.float64], k: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Pick k different rows, each with a probability that grows with its distance to those before it."""
    chosen = [int(rng.integers(len(X)))]
    nearest = _distances(X, X[chosen])[:, 0]
    while len(chosen) < k:
        nearest[chosen] = 0.0
        total = nearest.sum()
        if total > 0:
            row = int(rng.choice(len(X), p=nearest / total))
        else:  # all rows left equal one that is chosen
            row = int(np.setdiff1d(np.arange(len(X)), chosen)[0])
        chosen.append(row)
        nearest = np.minimum(nearest, _distances(X, X[[row]])[:, 0])
    return np.array(chosen, dtype=np.intp)


def _distances(X: npt.NDArray[np.float64], centers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    squares = np.einsum("nd,nd->n", X, X)[:, None] + np.einsum("kd,kd->k", centers, centers) - 2 * product(X, centers.T)
    return np.maximum(squares, 0.0)


def _fill_empty(owner: npt.NDArray[np.intp], distance: npt.NDArray[np.float64], k: int) -> None:
    """Give each empty cluster the row that is farthest from its own centre and not alone there."""
    sizes = np.bincount(owner, minlength=k)
    far = np.argsort(-distance[np.arange(len(owner)), owner], kind="stable")
    for cluster in np.flatnonzero(sizes == 0):
        row = next(row for row in far if sizes[owner[row]] > 1)
        sizes[owner[row]] -= 1
        owner[row] = cluster
        sizes[cluster] = 1
