"""One vector for several utterances: enrolments of several takes, cohorts of one mean per speaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from evenscore.errors import InputError
from evenscore.sources.scorers import length_normalized
from evenscore.tables.embeddings import Embeddings
from evenscore.tables.ids import as_ids

__all__ = ["LengthNorm", "average_embeddings", "check_length_norm"]

LengthNorm = Literal["none", "before", "after", "both"]


def check_length_norm(length_norm: str) -> None:
    """Refuse a length norm that does not exist."""
    if length_norm not in get_args(LengthNorm):
        choices = ", ".join(repr(choice) for choice in get_args(LengthNorm))
        raise InputError(f"length_norm is {length_norm!r}, but must be one of {choices}")


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
    check_length_norm(length_norm)
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
