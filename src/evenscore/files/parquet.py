"""Parquet files, by polars.

Trials have one row each, with the columns of csv: ``enroll``, ``test``, and where they are known ``score``, ``label``
(1, 0, null) and further numbers. Embeddings have ``id``, ``embedding`` (a list of numbers), and where they are known
``speaker`` and further columns.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from evenscore.data.embeddings import Embeddings
from evenscore.data.labels import UNKNOWN
from evenscore.data.score_matrix import ScoreMatrix
from evenscore.data.trial_list import TrialList
from evenscore.errors import FileError
from evenscore.files import text
from evenscore.files.arrays import Array, from_arrays, parsing
from evenscore.files.formats import ReadOptions
from evenscore.files.speakers import ID_NAMES, SPEAKER_NAMES
from evenscore.files.streams import PathLike, atomic_output, check_memory, open_input
from evenscore.files.text import ENROLL_NAMES, LABEL_NAMES, LABEL_WORDS, SCORE_NAMES, TEST_NAMES, columns_to_write

__all__ = ["read", "write"]


def read(path: PathLike, format: str, options: ReadOptions) -> TrialList | Embeddings:
    """Read trials or embeddings; the names of the columns decide which."""
    with open_input(path) as stream, parsing(path, "a parquet file"):
        try:
            file = pl.scan_parquet(io.BytesIO(stream.read()))
            check_memory(path, 48 * file.select(pl.len()).collect().item())  # two ids and a score per row
            frame = file.collect()
        except pl.exceptions.PanicException as error:  # which is no `Exception`
            raise FileError(path, f"it is damaged ({str(error).splitlines()[0]}); copy it again") from None
        plain = {name.lower(): name for name in reversed(frame.columns)}
        enroll, test, score, label, identity, speaker = (
            next((plain[name] for name in names if name in plain), None)
            for names in (ENROLL_NAMES, TEST_NAMES, SCORE_NAMES, LABEL_NAMES, ID_NAMES, SPEAKER_NAMES)
        )
        score = options.score_column or score
        vectors = [name for name, kind in frame.schema.items() if kind.is_nested()]
        if score is not None and score not in frame.columns:
            raise FileError(path, f"there is no column {score!r}; it has {', '.join(frame.columns)}")
        if len(vectors) == 1 and identity is not None:
            rest = frame.drop(identity, vectors[0], *([speaker] if speaker else []))
            facts = {name: values.to_numpy() for name, values in rest.to_dict().items() if not values.dtype.is_nested()}
            speakers = None if speaker is None else _texts(frame[speaker].fill_null("")).to_list()
            return Embeddings(_texts(frame[identity]).to_list(), _matrix(frame[vectors[0]]), speakers, facts)
        if enroll is None or test is None:
            problem = "expected enroll and test, or id and embedding; rename them"
            raise FileError(path, f"it has the columns {', '.join(frame.columns)}, but {problem}")
        arrays: dict[str, Any] = {}
        for side, column in (("enroll", _texts(frame[enroll])), ("test", _texts(frame[test]))):
            distinct = column.unique(maintain_order=True)
            arrays[f"{side}_ids"] = distinct.to_list()
            arrays[f"{side}_index"] = column.cast(pl.Enum(distinct)).to_physical().to_numpy()
        further = frame.drop(enroll, test, *(name for name in (score, label) if name))
        arrays |= {} if score is None else {"scores": _numbers(frame[score])}
        arrays |= {} if label is None else {"labels": _labels(frame[label])}
        arrays |= {f"measure:{one.name}": _numbers(one) for one in further if one.dtype.is_numeric()}
        return from_arrays(arrays, path, options)  # type: ignore[return-value]


def _texts(column: pl.Series) -> pl.Series:
    if column.null_count() or column.dtype.is_float() or column.dtype.is_nested():
        raise ValueError(f"the column {column.name} must hold a text in each row")
    return column.cast(pl.String)


def _numbers(column: pl.Series) -> Array:
    return column.cast(pl.Float32 if column.dtype == pl.Float32 else pl.Float64).fill_null(float("nan")).to_numpy()


def _labels(column: pl.Series) -> npt.NDArray[np.int8]:
    """Return labels of numbers or words; null is unknown, and so is -1 unless the classes are 1 and -1."""
    words = column.cast(pl.String).str.to_lowercase()
    unknown = dict.fromkeys(("unknown", "", *(["-1"] if (words == "0").any() else [])), UNKNOWN)
    return words.replace_strict({**LABEL_WORDS, **unknown}, return_dtype=pl.Int8).fill_null(UNKNOWN).to_numpy()


def _matrix(column: pl.Series) -> Array:
    if isinstance(column.dtype, pl.List):
        sizes = column.list.len().unique().to_list()
        if len(sizes) > 1 or None in sizes:
            raise ValueError("the vectors differ in length")
        column = column.list.to_array(sizes[0] if sizes else 0)
    return np.array(column.to_numpy())


def write(table: ScoreMatrix | TrialList | Embeddings, path: PathLike, format: str) -> None:
    """Write a table; a score matrix is written in long form, without its missing scores."""
    if table.kind == "embeddings":
        text.refuse_unwritable(table.ids, "")
        columns: dict[str, Any] = {"id": table.ids.tolist(), "embedding": np.ascontiguousarray(table.vectors)}
        columns |= {} if table.speakers is None else {"speaker": table.speakers.tolist()}
        texts = {name: values.tolist() for name, values in table.columns.items() if values.dtype.kind in "OU"}
        columns |= {name: values for name, values in {**table.columns, **texts}.items() if name not in columns}
    else:
        trials = table.to_trials()
        columns_to_write(trials, "csv")  # refuses names of columns with a meaning of their own
        text.refuse_unwritable((*trials.enroll_ids, *trials.test_ids), "")
        columns = {"enroll": pl.Series(trials.enroll_ids.tolist(), dtype=pl.String).gather(trials.rows)}
        columns["test"] = pl.Series(trials.test_ids.tolist(), dtype=pl.String).gather(trials.cols)
        columns |= {} if trials.scores is None else {"score": trials.scores}
        if trials.labels is not None:
            labels = pl.Series(trials.labels)
            columns["label"] = labels.set(labels == UNKNOWN, None)
        columns |= trials.columns
    buffer = io.BytesIO()  # polars would turn the error of a full disk into one of its own
    pl.DataFrame(columns).write_parquet(buffer)
    with atomic_output(path) as stream:
        stream.write(buffer.getbuffer())
