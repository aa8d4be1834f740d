"""Parquet files, read and written with polars.

Trials are in long form, one row each, with the columns of a headed CSV: ``enroll``, ``test``, and where they are known
``score``, ``label`` (1, 0, null if unknown) and further numbers (measures). A score matrix is written so, too.
Embeddings have ``id``, ``speaker`` (null if unknown), ``embedding`` (an array of fixed size) and any further columns;
files with one column per component are read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenscore.errors import FileError
from evenscore.files.named_arrays import ids_of, trials_of
from evenscore.files.panics import panics_unseen
from evenscore.files.parquet_sizes import check_sizes
from evenscore.files.registry import ArrayTable, ReadOptions
from evenscore.files.streams import PathLike, atomic_output, listed, local_file, parsing, refuse_larger_than_memory
from evenscore.files.text.layouts import ENROLL_NAMES, LABEL_NAMES, LABEL_WORDS, SCORE_NAMES, TEST_NAMES
from evenscore.tables import NONTARGET, UNKNOWN, Embeddings, TrialList
from evenscore.tables.ids import Ids

if TYPE_CHECKING:
    import polars as pl

__all__ = [
    "ID_NAMES",
    "distinct_ids",
    "parquet_parts",
    "parsing_parquet",
    "read_parquet",
    "read_text_columns",
    "trials_of_frame",
    "write_parquet",
]

ID_NAMES = ("id", "ids", "utt", "utt_id", "utterance", "utterance_id", "key", "name", "file", "filename", "path")
_SPEAKER_NAMES = ("speaker", "speakers", "speaker_id", "spk", "spk_id")
_NUMBERED = re.compile(r"(.*?)(\d+)")


def read_parquet(path: PathLike, options: ReadOptions) -> TrialList | Embeddings:
    """Read trials, scores or embeddings from a file or a directory of parts; the columns' names decide which."""
    with _local(path) as file, parsing_parquet(path):
        frame = _load(file, path)
        lists = [name for name, kind in frame.schema.items() if kind.base_type().__name__ in ("List", "Array")]
        if not lists and all(_found(frame.columns, names) for names in (ENROLL_NAMES, TEST_NAMES)):
            return trials_of_frame(frame, path, options)
        identity = _found(frame.columns, ID_NAMES)
        if identity is None:
            problem = f"found the columns {listed(frame.columns)}, but expected enroll and test, or id and embedding"
            raise FileError(path, f"{problem}; rename them")
        return _embeddings(frame, identity, lists, path)


def trials_of_frame(frame: pl.DataFrame, path: PathLike, options: ReadOptions) -> TrialList:
    """Return the trials in the rows of a frame."""
    enroll, test = _sides(frame.columns, path)
    score = options.score_column or _found(frame.columns, SCORE_NAMES)
    if score is not None and score not in frame.columns:
        raise FileError(path, f"there is no column {score!r}; found {listed(frame.columns)}", part=score)
    label = _found(frame.columns, LABEL_NAMES)
    (enroll_ids, enroll_index), (test_ids, test_index) = (_coded(frame[name], path) for name in (enroll, test))
    rest = [name for name in frame.columns if name not in (enroll, test, score, label)]
    return trials_of(
        enroll_ids,
        test_ids,
        enroll_index,
        test_index,
        scores=None if score is None else _numbers(frame[score], path),
        labels=None if label is None else _labels(frame[label], path),
        measures={name: _numbers(frame[name], path) for name in rest if frame.schema[name].is_numeric()},
        path=path,
        options=options,
    )


def distinct_ids(frame: pl.LazyFrame, path: PathLike, options: ReadOptions) -> dict[str, npt.NDArray[Any]]:
    """Return the distinct ids of both sides of trials, in order of appearance, and an empty array of their scores."""
    import polars as pl

    with parsing_parquet(path):
        columns = frame.collect_schema().names()
        found = {}
        for side, name in zip(("enroll", "test"), _sides(columns, path), strict=True):
            distinct = frame.select(pl.col(name).unique(maintain_order=True)).collect()[name]
            found[side] = ids_of(_texts(distinct, path).unique(maintain_order=True).to_numpy(), path, name)
        score = options.score_column or _found(columns, SCORE_NAMES)
        single = score is not None and frame.collect_schema().get(score) == pl.Float32
        return found | {"score": np.empty(0, dtype=np.float32 if single else np.float64)}


def parquet_parts(path: Path) -> list[Path]:
    """Return the files of a dataset, in order: those of a directory, or the file itself."""
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def read_text_columns(path: PathLike) -> dict[str, list[str]]:
    """Read all columns that are not lists as text, '' for null."""
    import polars as pl

    with _local(path) as file, parsing_parquet(path):
        frame = _load(file, path)
        plain = [name for name, kind in frame.schema.items() if not kind.is_nested() and kind != pl.Binary]
        return {name: frame[name].cast(pl.String).fill_null("").to_list() for name in plain}


def write_parquet(table: ArrayTable, path: PathLike) -> None:
    """Write a table; a score matrix is written in long form, without its missing pairs."""
    import polars as pl

    try:
        columns = (
            _embedding_columns(table, path)
            if isinstance(table, Embeddings)
            else _trial_columns(table.to_trials(), path)
        )
        frame = pl.DataFrame([_series(name, values, path) for name, values in columns.items()])
    except UnicodeEncodeError as error:
        raise FileError(path, f"{error.object!r} is no Unicode text; rename it, or write npz") from None
    with atomic_output(path) as stream:
        try:
            frame.write_parquet(stream)
        except pl.exceptions.PolarsError as error:
            raise OSError(str(error)) from None


def _load(file: Path, path: PathLike) -> pl.DataFrame:
    import polars as pl

    frames = []
    refuse_larger_than_memory(path, sum(check_sizes(part, path) for part in parquet_parts(file)))
    for part in parquet_parts(file):
        with open(part, "rb") as stream:  # a name would be searched for wildcards
            frames.append(pl.read_parquet(stream, hive_partitioning=False))
    return frames[0] if len(frames) == 1 else pl.concat(frames)


@contextmanager
def _local(path: PathLike) -> Iterator[Path]:
    if str(path) != "-" and Path(path).is_dir():
        if not parquet_parts(Path(path)):
            raise FileError(path, "there is no parquet file in this directory; check the name")
        yield Path(path)
        return
    with local_file(path) as file:
        yield file


@contextmanager
def parsing_parquet(path: PathLike) -> Iterator[None]:
    """Turn whatever goes wrong while parquet is read into a `FileError`."""
    import polars as pl

    with parsing(path, "a parquet file"):
        try:
            with panics_unseen(pl.exceptions.PanicException, pl.exceptions.PolarsError):
                yield
        except pl.exceptions.PanicException as error:  # which is not an `Exception`
            first_line = str(error).splitlines()[0]
            raise FileError(path, f"it is damaged ({first_line}); copy or write it again") from None


def _found(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the first of the names that a column has, in any case of letters."""
    by_lower = {column.lower(): column for column in reversed(columns)}
    return next((by_lower[name] for name in names if name in by_lower), None)


def _sides(columns: Sequence[str], path: PathLike) -> tuple[str, str]:
    """Return the columns of the ids of trials."""
    enroll, test = _found(columns, ENROLL_NAMES), _found(columns, TEST_NAMES)
    if enroll is None or test is None:
        raise FileError(path, f"found the columns {listed(columns)}, but expected enroll and test; rename them")
    return enroll, test


def _coded(column: pl.Series, path: PathLike) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Return the distinct ids in order of appearance, and for each row which of them it has."""
    import polars as pl

    texts = _texts(column, path)
    distinct = texts.unique(maintain_order=True)
    index = texts.cast(pl.Enum(distinct)).to_physical().cast(pl.Int32).to_numpy()
    return ids_of(distinct.to_numpy(), path, column.name), index


def _texts(column: pl.Series, path: PathLike) -> pl.Series:
    import polars as pl

    if column.dtype.is_float() or column.dtype.is_nested():
        raise FileError(path, f"it has type {column.dtype}, but ids must be text", part=column.name)
    if column.null_count():
        raise FileError(path, f"row {column.is_null().arg_max()} has no id; every row needs one", part=column.name)
    return column.cast(pl.String)


def _numbers(column: pl.Series, path: PathLike) -> npt.NDArray[Any]:
    """Return float32 or float64, NaN for null."""
    import polars as pl

    if not column.dtype.is_numeric():
        raise FileError(path, f"it has type {column.dtype}, but numbers are expected", part=column.name)
    kind = pl.Float32 if column.dtype == pl.Float32 else pl.Float64
    return column.cast(kind).fill_null(float("nan")).to_numpy()


def _labels(column: pl.Series, path: PathLike) -> npt.NDArray[np.int8]:
    import polars as pl

    if column.dtype.is_integer() or column.dtype == pl.Boolean:
        labels = column.cast(pl.Int64).fill_null(UNKNOWN).to_numpy(writable=True)
        odd = ~np.isin(labels, (-1, 0, 1))
        if odd.any():
            problem = f"it holds {labels[odd][0]}, but labels are 1 (target), 0 (non-target) or null"
            raise FileError(path, problem, part=column.name)
        if not (labels == NONTARGET).any():  # then the classes are +1 and -1
            labels[(labels == -1) & column.is_not_null().to_numpy()] = NONTARGET
        return labels.astype(np.int8)
    words = _texts(column.fill_null(""), path).str.to_lowercase()
    known = LABEL_WORDS | {"": UNKNOWN, "unknown": UNKNOWN}
    odd_words = [word for word in words.unique().to_list() if word not in known]
    if odd_words:
        raise FileError(path, f"unknown label {odd_words[0]!r}; expected target or nontarget", part=column.name)
    return words.replace_strict(known, return_dtype=pl.Int8).to_numpy()


def _embeddings(frame: pl.DataFrame, identity: str, lists: list[str], path: PathLike) -> Embeddings:
    own = "id" in frame.columns and "embedding" in frame.columns
    speaker = _found(frame.columns, ("speaker",) if own else _SPEAKER_NAMES)
    if own or len(lists) == 1:
        used = ["embedding"] if own else lists
        vectors = _matrix(frame[used[0]], path)
    elif lists:
        raise FileError(path, f"{listed(lists)} are all lists; call the vectors `embedding`")
    else:
        used = _components(frame, (identity, speaker))
        if not used:
            problem = f"found the columns {listed(frame.columns)}, but no vectors; call them `embedding`"
            raise FileError(path, problem)
        vectors = np.column_stack([_numbers(frame[name], path) for name in used])
    rest = [name for name in frame.columns if name not in (identity, speaker, *used)]
    return Embeddings(
        ids_of(_texts(frame[identity], path).to_numpy(), path, identity),
        vectors,
        None if speaker is None else _texts(frame[speaker].fill_null(""), path).to_list(),
        columns={name: frame[name].to_numpy() for name in rest if not frame.schema[name].is_nested()},
    )


def _matrix(column: pl.Series, path: PathLike) -> npt.NDArray[Any]:
    """Return a column of lists as a matrix."""
    import polars as pl

    if isinstance(column.dtype, pl.List):
        sizes = column.list.len().unique()
        if column.null_count() or len(sizes) != 1:
            raise FileError(path, "the vectors differ in length; keep vectors of one kind in a file", part=column.name)
        column = column.list.to_array(int(sizes[0]))
    if not isinstance(column.dtype, pl.Array):
        raise FileError(path, f"it has type {column.dtype}, but lists of numbers are expected", part=column.name)
    if column.null_count() or column.explode().null_count():
        raise FileError(path, "a vector or a component is null; drop such rows", part=column.name)
    return column.to_numpy()


def _components(frame: pl.DataFrame, others: tuple[str | None, ...]) -> list[str]:
    """Return the columns of the components: those that are numbered (x0, x1, ...), else all of type float."""
    names = [name for name, kind in frame.schema.items() if kind.is_float() and name not in others]
    numbered: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is not None:
            numbered.setdefault(match[1], []).append((int(match[2]), name))
    largest = max(numbered.values(), key=len, default=[])
    return [name for _, name in sorted(largest)] if len(largest) > 1 else names


def _trial_columns(table: TrialList, path: PathLike) -> dict[str, Any]:
    import polars as pl

    columns: dict[str, Any] = {
        side: pl.Series(side, ids.tolist(), dtype=pl.String).gather(index)
        for side, ids, index in (
            ("enroll", table.enroll_ids, table.enroll_index),
            ("test", table.test_ids, table.test_index),
        )
    }
    if table.scores is not None:
        columns["score"] = table.scores
    if table.labels is not None:
        labels = pl.Series(table.labels)
        columns["label"] = labels.set(labels == UNKNOWN, None)
    taken = {"enroll", "test", "score", "label"}
    taken |= set(SCORE_NAMES) if table.scores is None else set()
    taken |= set(LABEL_NAMES) if table.labels is None else set()
    for name, values in table.measures.items():
        if name.lower() in taken:
            raise FileError(path, f"the measure {name!r} has a name with a meaning of its own; rename it", part=name)
        columns[name] = values
    return columns


def _embedding_columns(table: Embeddings, path: PathLike) -> dict[str, Any]:
    columns: dict[str, Any] = {"id": table.ids.tolist()}
    if table.speakers is not None:
        columns["speaker"] = table.speakers.tolist()
    columns["embedding"] = table.vectors
    for name, values in table.columns.items():
        if name in ("id", "speaker", "embedding"):
            raise FileError(path, f"a further column cannot be called {name!r}; rename it", part=name)
        columns[name] = values.tolist() if values.dtype.kind in "OU" else values
    return columns


def _series(name: str, values: Any, path: PathLike) -> pl.Series:
    """Return a column; text is always of type String, even where all of it is null."""
    import polars as pl

    try:
        if isinstance(values, list):
            return pl.Series(name, values, dtype=pl.String)
        return values.alias(name) if isinstance(values, pl.Series) else pl.Series(name, np.ascontiguousarray(values))
    except UnicodeEncodeError:
        raise
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        problem = f"it cannot be stored ({str(error).splitlines()[0]}); only text and numbers can"
        raise FileError(path, problem, part=name) from None
