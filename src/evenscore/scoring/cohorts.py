"""Means of several utterances: enrolments, and cohorts of speakers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenscore.data.embeddings import Embeddings
from evenscore.errors import InputError, quoted
from evenscore.scoring.plda import PLDA, UTTERANCES
from evenscore.scoring.projection import unit_vectors
from evenscore.scoring.scorers import Scorer

__all__ = ["LengthNorm", "average_embeddings", "enroll_models", "make_cohort"]

LengthNorm = Literal["none", "before", "after", "both"]
Members = Mapping[str, Sequence[str]]


def average_embeddings(embeddings: Embeddings, members: Members, length_norm: LengthNorm = "none") -> Embeddings:
    """Return the mean vector of each list of utterances.

    ``members`` maps the id of each mean, such as an enrolment or a speaker, to the ids of its utterances. With
    ``length_norm``, utterances are brought to length 1 ``"before"`` they are averaged, or means ``"after"``, or
    ``"both"``. A mean has the speaker and the columns that all its utterances share.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2", "u3"], [[1.0, 0.0], [0.0, 3.0], [2.0, 2.0]], speakers=["ann", "ann", "bob"])
    >>> models = average_embeddings(takes, {"ann-model": ["u1", "u2"], "bob-model": ["u3"]})
    >>> models.vectors.tolist(), models.speakers.tolist()
    ([[0.5, 1.5], [2.0, 2.0]], ['ann', 'bob'])
    """
    if length_norm not in ("none", "before", "after", "both"):
        raise InputError(f"length_norm is {length_norm!r}, but must be 'none', 'before', 'after' or 'both'")
    empty = [name for name, parts in members.items() if not len(parts)]
    if empty or not members:
        raise InputError(f"{quoted(empty) or 'the cohort'} has no utterances to average; drop it")
    order = embeddings.positions([name for parts in members.values() for name in parts], "utterance", "the embeddings")
    groups = np.split(order, np.cumsum([len(parts) for parts in members.values()])[:-1])
    vectors = unit_vectors(embeddings, embeddings.ids) if length_norm in ("before", "both") else embeddings.vectors
    means = np.array([vectors[at].mean(axis=0, dtype=np.float64) for at in groups], vectors.dtype)
    if length_norm in ("after", "both"):
        means = unit_vectors(means, np.array([*members], object))
    known = {name: _shared(values, groups) for name, values in embeddings.columns.items()}
    columns = {name: np.array(values) for name, values in known.items() if None not in values}
    speakers = None if embeddings.speakers is None else _shared(embeddings.speakers, groups)
    return Embeddings(members, means, speakers, columns)


def _shared(values: npt.NDArray[np.generic], groups: Sequence[npt.NDArray[np.intp]]) -> list[Any]:
    """Return the value that all utterances of a mean have, or None."""
    parts = (set(values[at].tolist()) for at in groups)
    return [part.pop() if len(part) == 1 else None for part in parts]


def enroll_models(
    scorer: Scorer, embeddings: Embeddings, members: Members, length_norm: LengthNorm = "none"
) -> Embeddings:
    """Return enrolments of several utterances as a scorer takes them: mean vectors, see `average_embeddings`.

    For a `PLDA` without length normalization, they are means of what the model sees, with the number of utterances:
    scores follow from the posterior of the speaker's variable, which ten utterances tell better than two.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2"], [[2.0], [1.0]])
    >>> plda = PLDA(mean=[0.0], between=[[3.0]], within=[[1.0]])
    >>> np.asarray(plda.bilinear(enroll_models(plda, takes, {"ann": ["u1", "u2"]}), [[1.5]])).round(3)
    array([[0.78]])
    """
    if not isinstance(scorer, PLDA) or length_norm != "none":
        return average_embeddings(embeddings, members, length_norm)
    phi = Embeddings(embeddings.ids, scorer.projection(embeddings), embeddings.speakers, embeddings.columns)
    means = average_embeddings(phi, members)
    return means.with_columns({UTTERANCES: np.array([len(parts) for parts in members.values()])})


def make_cohort(
    embeddings: Embeddings,
    unit: Literal["utterance", "speaker"] = "utterance",
    *,
    length_norm: LengthNorm = "none",
    exclude_speakers: Iterable[str] = (),
) -> Embeddings:
    """Return the members of a cohort: utterances, or the mean of each speaker's utterances under the speaker's name.

    ``exclude_speakers`` are left out, such as those of an evaluation; for ``length_norm`` see `average_embeddings`.

    Examples
    --------
    >>> takes = Embeddings(["u1", "u2", "u3"], [[1.0, 0.0], [0.0, 1.0], [2.0, 2.0]], speakers=["ann", "ann", "bob"])
    >>> make_cohort(takes, "speaker").ids
    array(['ann', 'bob'], dtype=object)
    """
    if unit not in ("utterance", "speaker"):
        raise InputError(f"the unit of a cohort is {unit!r}, but must be 'utterance' or 'speaker'")
    excluded, speakers = set(exclude_speakers), embeddings.speakers
    if speakers is None and (excluded or unit == "speaker"):
        raise InputError("the cohort's embeddings have no speakers; give a map from id to speaker")
    if speakers is not None and excluded:
        embeddings = embeddings.take(np.array([name not in excluded for name in speakers], bool))
    if unit == "utterance" and length_norm == "none":
        return embeddings
    members: dict[str, list[str]] = {}
    names = embeddings.ids if unit == "utterance" else embeddings.speakers
    for utterance, name in zip(embeddings.ids, names, strict=True):  # type: ignore[arg-type]
        if name is None:
            raise InputError(f"the speaker of {utterance!r} is not known, so it belongs to no mean; drop it")
        members.setdefault(name, []).append(utterance)
    return average_embeddings(embeddings, members, length_norm)
