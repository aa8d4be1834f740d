"""Tables as named arrays, the content of npz files and zarr stores; the names decide the kind of table.

================  ==================================================================================================
score matrix      ``scores`` (K x L, NaN where a pair is missing), ``enroll_ids`` (K), ``test_ids`` (L);
                  with ``labels`` (K x L) it is read as a list of trials
list of trials    ``enroll_ids``, ``test_ids`` (each id once), ``enroll_index``, ``test_index`` (one number per
                  trial), and where they are known ``scores``, ``labels`` (1, 0, -1), ``measure:<name>``
embeddings        ``embeddings`` (n x d), ``ids`` (n), and where they are known ``speakers`` (n, '' if unknown) and
                  any further one-dimensional array of n entries; or nothing but a vector for each id, called by it
                  (read only)
================  ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError, InputError
from evenscore.files.registry import ArrayTable, ReadOptions, Table
from evenscore.files.streams import PathLike, listed, parsing
from evenscore.tables import Embeddings, Labels, ScoreMatrix, TrialList
from evenscore.tables.ids import Ids, as_ids, as_speakers

__all__ = [
    "UNPICKLED",
    "StoredArrays",
    "from_arrays",
    "ids_of",
    "listed_scores",
    "matrix_of",
    "text_array",
    "to_arrays",
    "trials_of",
    "utf8",
]

Array = npt.NDArray[Any]
#: What to do with files that are not read because they can run any code.
UNPICKLED = "load it where you trust it, and write the vectors with numpy.savez(path, **vectors)"
_LEAST_DIM = 2  # components of what counts as a vector


class StoredArrays(Mapping[str, Array]):
    """The arrays of a file by name, each read when it is asked for; whether it is there tells without reading it.

    ``places`` says where each of them is, for `read_at`; ``what`` is the kind of file, for messages.
    """

    def __init__(self, path: PathLike, what: str, places: Mapping[str, Any]) -> None:
        self.path, self.what, self.places = path, what, places

    def read_at(self, place: Any, name: str) -> Array:
        """Read the array at a place."""
        raise NotImplementedError

    def __getitem__(self, name: str) -> Array:
        place = self.places[name]
        with parsing(self.path, self.what, part=name):
            return self.read_at(place, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, name: object) -> bool:
        return name in self.places


_MEASURE = "measure:"
# What other programs call these arrays; our own names come first.
_SPELLINGS = {
    "embeddings": ("embeddings", "vectors", "embedding", "xvectors", "data", "x", "X"),
    "ids": ("ids", "utt_ids", "utts", "utt", "keys", "names"),
    "speakers": ("speakers", "speaker_ids", "spk_ids", "speaker", "spk"),
    "scores": ("scores", "score_mat", "scoremat"),
    "enroll_ids": ("enroll_ids", "model_ids", "train_ids", "row_ids", "modelset", "model_names"),
    "test_ids": ("test_ids", "segment_ids", "column_ids", "segset", "test_names"),
}


def to_arrays(table: ArrayTable, path: PathLike) -> dict[str, Array]:
    """Return the arrays that hold a table; text is in object arrays of strings."""
    if isinstance(table, ScoreMatrix):
        return {"scores": table.scores, "enroll_ids": table.enroll_ids, "test_ids": table.test_ids}
    if isinstance(table, TrialList):
        arrays: dict[str, Array] = {
            "enroll_ids": table.enroll_ids,
            "test_ids": table.test_ids,
            "enroll_index": table.enroll_index,
            "test_index": table.test_index,
        }
        if table.scores is not None:
            arrays["scores"] = table.scores
        if table.labels is not None:
            arrays["labels"] = table.labels
        return arrays | {_MEASURE + name: values for name, values in table.measures.items()}
    arrays = {"embeddings": table.vectors, "ids": table.ids}
    if table.speakers is not None:
        arrays["speakers"] = text_array(table.speakers, path, "speakers")
    for name, values in table.columns.items():
        if name in ("embeddings", "ids", "speakers"):
            raise FileError(path, f"a further column cannot be called {name!r}; rename it", part=name)
        arrays[name] = values if values.dtype.kind in "biuf" else text_array(values, path, name)
    return arrays


def text_array(values: npt.ArrayLike, path: PathLike, part: str) -> Ids:
    """Return text as an object array of strings, '' for None; anything but text is refused."""
    items = np.asarray(values, dtype=object).tolist()
    if not all(item is None or isinstance(item, str) for item in items):
        raise FileError(path, "it holds Python objects, but only text and numbers can be stored; convert it", part=part)
    texts = np.empty(len(items), dtype=object)
    texts[:] = ["" if item is None else item for item in items]
    return texts


def utf8(texts: Ids, path: PathLike, part: str) -> list[bytes]:
    """Return text as bytes."""
    try:
        return [text.encode() for text in texts.tolist()]
    except UnicodeEncodeError as error:
        raise FileError(path, f"{error.object!r} cannot be written as UTF-8; rename it", part=part) from None


def from_arrays(arrays: Mapping[str, Array], path: PathLike, options: ReadOptions) -> Table:
    """Return the table that named arrays hold; see the top of the module."""
    if "enroll_index" in arrays and "test_index" in arrays:
        return _trials_from(arrays, path, options)
    if _found(arrays, "enroll_ids") and _found(arrays, "test_ids"):
        return _matrix_from(arrays, path, options)
    if _found(arrays, "embeddings") and _found(arrays, "ids"):
        return _embeddings_from(arrays, path)
    if _found(arrays, "embeddings"):
        raise FileError(path, "there are embeddings but no ids; add an array `ids` with one id per row", part="ids")
    if any(name.endswith("data.pkl") for name in arrays):
        raise FileError(path, f"it is a file of PyTorch, which holds pickled objects; {UNPICKLED}")
    by_id = _vectors_by_id(arrays, path)
    if by_id is not None:
        return by_id
    raise FileError(
        path,
        f"found {listed(arrays)}, but expected `scores`, `enroll_ids` and `test_ids`, or `embeddings` and `ids`, or a "
        "vector for each id, all of one length; rename the arrays",
    )


def ids_of(values: Array, path: PathLike, part: str) -> Ids:
    """Return unique ids; ``part`` names them in an error."""
    try:
        return as_ids(values.tolist() if values.ndim == 1 else values, "this list")
    except InputError as error:
        raise FileError(path, str(error), part=part) from None


def matrix_of(
    scores: Array, enroll_ids: Ids, test_ids: Ids, *, path: PathLike, part: str, options: ReadOptions
) -> ScoreMatrix | TrialList:
    """Return a score matrix, where NaN marks a missing pair; infinite scores are refused, left out, or listed."""
    if scores.shape != (len(enroll_ids), len(test_ids)):
        raise FileError(
            path,
            f"the array has shape {scores.shape}, but there are {len(enroll_ids)} enrolment ids and "
            f"{len(test_ids)} test ids; make them agree",
            part=part,
        )
    if options.accepts_infinite and scores.dtype.kind == "f" and np.isinf(scores).any():
        return listed_scores(scores, ~np.isnan(scores), enroll_ids, test_ids)
    try:
        if options.missing == "skip" and scores.dtype.kind == "f" and np.isinf(scores).any():
            scores = np.where(np.isinf(scores), np.array(np.nan, dtype=scores.dtype), scores)
        return ScoreMatrix(scores, enroll_ids, test_ids, missing="nan" if scores.dtype.kind == "f" else None)
    except InputError as error:
        remedy = "; or read it with missing='skip'" if "finite" in str(error) else ""
        raise FileError(path, str(error) + remedy, part=part) from None


def listed_scores(scores: Array, scored: npt.NDArray[np.bool_], enroll_ids: Ids, test_ids: Ids) -> TrialList:
    """Return the scores of a matrix as a list of trials, which, unlike a matrix, may hold infinite scores."""
    row, column = np.nonzero(scored)
    return TrialList(enroll_ids, test_ids, row, column, scores=scores[row, column], allow_infinite=True)


def trials_of(
    enroll_ids: Ids,
    test_ids: Ids,
    enroll_index: Array,
    test_index: Array,
    *,
    scores: Array | None,
    labels: Array | None,
    measures: Mapping[str, Array],
    path: PathLike,
    options: ReadOptions,
) -> TrialList:
    """Return a list of trials; scores that are not finite and repeated trials are treated as the options say."""
    columns = {"enroll_index": enroll_index, "test_index": test_index, "scores": scores, "labels": labels}
    columns |= {_MEASURE + name: values for name, values in measures.items()}
    for name, values in columns.items():
        if values is not None and values.shape != enroll_index.shape:
            raise FileError(
                path, f"shape {values.shape} differs from that of the trials, {enroll_index.shape}", part=name
            )
    keep = np.ones(enroll_index.shape, dtype=bool)
    if options.missing == "skip" and scores is not None and scores.dtype.kind == "f":
        keep &= options.usable(scores)
    try:
        if options.duplicates == "drop":
            keep[keep] = _first_of_identical({name: v[keep] for name, v in columns.items() if v is not None})
        kept = {name: None if v is None else v if keep.all() else v[keep] for name, v in columns.items()}
        return TrialList(
            enroll_ids,
            test_ids,
            kept["enroll_index"],  # type: ignore[arg-type]
            kept["test_index"],  # type: ignore[arg-type]
            scores=kept["scores"],
            labels=kept["labels"],
            measures={name: kept[_MEASURE + name] for name in measures},  # type: ignore[misc]
            allow_infinite=options.accepts_infinite,
        )
    except InputError as error:
        remedy = "; or read it with missing='skip'" if "must be finite" in str(error) else ""
        raise FileError(path, str(error) + remedy) from None


def _first_of_identical(columns: Mapping[str, Array]) -> npt.NDArray[np.bool_]:
    """Return which rows are not equal to an earlier row in all columns."""
    rows, tests = columns["enroll_index"].astype(np.int64), columns["test_index"].astype(np.int64)
    _, first, inverse = np.unique(rows * (tests.max(initial=0) + 1) + tests, return_index=True, return_inverse=True)
    twin = first[inverse.reshape(-1)]
    keep: npt.NDArray[np.bool_] = twin == np.arange(len(rows))
    for values in columns.values():
        keep |= (values != values[twin]) & ~((values != values) & (values[twin] != values[twin]))  # NaN equals NaN
    return keep


def _found(arrays: Mapping[str, Array], what: str) -> str | None:
    """Return what this file calls an array; other programs' names count only where our own are not used."""
    own = "embeddings" in arrays and "ids" in arrays
    names = (what,) if own else _SPELLINGS[what]
    return next((name for name in names if name in arrays), None)


def _sides(arrays: Mapping[str, Array], path: PathLike) -> tuple[Ids, Ids]:
    names = [_found(arrays, what) for what in ("enroll_ids", "test_ids")]
    for name, what in zip(names, ("enroll_ids", "test_ids"), strict=True):
        if name is None:
            raise FileError(path, "the array is missing; add the ids", part=what)
    rows, columns = (ids_of(arrays[str(name)], path, str(name)) for name in names)
    return rows, columns


def _trials_from(arrays: Mapping[str, Array], path: PathLike, options: ReadOptions) -> TrialList:
    rows, columns = _sides(arrays, path)
    scores = _found(arrays, "scores")
    return trials_of(
        rows,
        columns,
        arrays["enroll_index"],
        arrays["test_index"],
        scores=arrays[scores] if scores else None,
        labels=arrays.get("labels"),
        measures={name.removeprefix(_MEASURE): arrays[name] for name in arrays if name.startswith(_MEASURE)},
        path=path,
        options=options,
    )


def _matrix_from(arrays: Mapping[str, Array], path: PathLike, options: ReadOptions) -> ScoreMatrix | TrialList:
    rows, columns = _sides(arrays, path)
    name = _found(arrays, "scores")
    if name is None and "labels" not in arrays:
        raise FileError(path, "there are ids but no scores; add the array", part="scores")
    matrix = matrix_of(arrays[name], rows, columns, path=path, part=name, options=options) if name else None
    if "labels" not in arrays:
        assert matrix is not None  # noqa: S101
        return matrix
    try:
        labels = Labels.from_key(arrays["labels"]).align(rows, columns)
    except InputError as error:
        raise FileError(path, str(error), part="labels") from None
    if isinstance(matrix, TrialList):
        return matrix.join(labels)
    if matrix is not None:
        return matrix.to_trials(labels)
    row, column = np.divmod(np.arange(labels.matrix.size), max(len(columns), 1))
    return TrialList(rows, columns, row, column, labels=labels.matrix.reshape(-1))


def _embeddings_from(arrays: Mapping[str, Array], path: PathLike) -> Embeddings:
    names = {what: _found(arrays, what) for what in ("embeddings", "ids", "speakers")}
    ids = ids_of(arrays[str(names["ids"])], path, str(names["ids"]))  # before the vectors, which may be large
    vectors = arrays[str(names["embeddings"])]
    if vectors.ndim != 2:
        raise FileError(
            path, f"shape {vectors.shape} is not that of a matrix, one row per id", part=str(names["embeddings"])
        )
    if len(ids) != len(vectors):
        raise FileError(
            path, f"there are {len(ids)} ids, but {len(vectors)} vectors; make them agree", part=names["ids"]
        )
    speakers = None
    try:
        if names["speakers"] is not None:
            speakers = as_speakers(arrays[names["speakers"]], "this list", len(ids))
    except InputError as error:
        raise FileError(path, str(error), part=names["speakers"]) from None
    others = {name: arrays[name] for name in arrays if name not in names.values()}
    columns = {name: _readable(values) for name, values in others.items() if values.shape == (len(ids),)}
    try:
        return Embeddings(ids, vectors, speakers, columns=columns)
    except InputError as error:
        raise FileError(path, str(error), part=names["embeddings"]) from None


def _vectors_by_id(arrays: Mapping[str, Array], path: PathLike) -> Embeddings | None:
    """Return embeddings of arrays that are called by their ids, as of ``{id: vector}``; None if these are others."""
    vectors: list[Array] = []
    for name in arrays:
        vector = arrays[name]
        if vector.dtype.kind != "f" or vector.size != max(vector.shape, default=0) or vector.size < _LEAST_DIM:
            return None
        vectors.append(vector.reshape(-1))
        if len(vector.reshape(-1)) != len(vectors[0]):
            return None
    try:
        return Embeddings(list(arrays), np.stack(vectors)) if vectors else None
    except InputError as error:
        raise FileError(path, str(error)) from None


def _readable(values: Array) -> Array:
    """Return text instead of bytes."""
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values
