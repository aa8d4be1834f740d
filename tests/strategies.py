"""hypothesis strategies for tables: unequal sizes, single rows, missing pairs, ids of any script, Windows paths.

``spaces=False`` (the default) draws ids that text formats with columns can hold: no white space, no control characters,
no byte-order mark. ``spaces=True`` draws any text but the null character.
"""

from __future__ import annotations

import string

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenscore import Embeddings, ScoreMatrix, TrialList

__all__ = ["dtypes", "embeddings", "id_lists", "id_texts", "score_matrices", "speaker_maps", "trial_lists", "vectors"]

_TRICKY = [
    r"C:\Users\Ann\take 1.wav",
    r"D:\eval\a.wav",
    "id/with/slash.flac",
    "sǿren",
    "日本語",
    "🎤-1",
    '"quoted"',
    "#1",
]

dtypes = st.sampled_from([np.float32, np.float64])


def id_texts(*, spaces: bool = False) -> st.SearchStrategy[str]:
    """One id: plain ASCII most of the time, sometimes any script."""
    plain = st.text(string.ascii_letters + string.digits + "-_.", min_size=1, max_size=8)
    if spaces:
        wild = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8)
        return plain | st.sampled_from(_TRICKY) | wild
    wild = st.text(
        st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufeff"),
        min_size=1,
        max_size=8,
    )
    return plain | st.sampled_from([text for text in _TRICKY if " " not in text]) | wild


def id_lists(min_size: int = 1, max_size: int = 6, *, spaces: bool = False) -> st.SearchStrategy[list[str]]:
    """Unique ids."""
    return st.lists(id_texts(spaces=spaces), min_size=min_size, max_size=max_size, unique=True)


def vectors(
    shape: int | tuple[int, ...], dtype: type = np.float64, largest: float = 2.0**99
) -> st.SearchStrategy[np.ndarray]:
    """Finite numbers of a shape."""
    width = 8 * np.dtype(dtype).itemsize
    finite = st.floats(-largest, largest, width=width)
    return hnp.arrays(dtype, shape, elements=finite.map(lambda value: value if abs(value) > 1e-28 else 0.0))


@st.composite
def score_matrices(draw, *, missing: bool = True, dtype: type | None = None, spaces: bool = False) -> ScoreMatrix:
    """A score matrix of 1 to 6 rows and columns; with ``missing``, some pairs may have no score."""
    rows, columns = draw(id_lists(spaces=spaces)), draw(id_lists(spaces=spaces))
    scores = draw(vectors((len(rows), len(columns)), dtype or draw(dtypes)))
    mask = draw(hnp.arrays(bool, scores.shape)) if missing and draw(st.booleans()) else None
    return ScoreMatrix(scores, rows, columns, missing=mask)


@st.composite
def trial_lists(
    draw,
    *,
    scores: bool | None = None,
    labels: bool | None = None,
    unknown: bool = True,
    measures: bool = False,
    unused_ids: bool = False,
    dtype: type | None = None,
    spaces: bool = False,
    min_size: int = 1,
) -> TrialList:
    """A list of distinct trials in any order; None for ``scores`` or ``labels`` means with or without.

    With ``unused_ids``, some ids may occur in no trial (a matrix can say that, a list of lines cannot).
    """
    rows, columns = draw(id_lists(spaces=spaces)), draw(id_lists(spaces=spaces))
    every_pair = range(len(rows) * len(columns))
    pairs = np.array(draw(st.lists(st.sampled_from(every_pair), min_size=min_size, unique=True)), dtype=np.int64)
    row, column = np.divmod(pairs, len(columns))
    some_labels = st.sampled_from([-1, 0, 1] if unknown else [0, 1])
    names = draw(st.lists(st.sampled_from(["snr", "duration_s", "mu_e"]), unique=True)) if measures else []
    trials = TrialList(
        rows,
        columns,
        row,
        column,
        scores=draw(vectors(len(pairs), dtype or draw(dtypes))) if _wanted(draw, scores) else None,
        labels=draw(hnp.arrays(np.int8, len(pairs), elements=some_labels)) if _wanted(draw, labels) else None,
        measures={name: draw(vectors(len(pairs))) for name in names},
    )
    return trials if unused_ids else trials.select(np.arange(len(pairs)))


@st.composite
def embeddings(
    draw,
    *,
    speakers: bool | None = None,
    columns: bool = False,
    dtype: type | None = None,
    spaces: bool = False,
    min_size: int = 1,
) -> Embeddings:
    """1 to 6 vectors of 1 to 5 components; a speaker may be unknown (None)."""
    ids = draw(id_lists(min_size, spaces=spaces))
    size = len(ids)
    matrix = draw(vectors((size, draw(st.integers(1, 5))), dtype or draw(dtypes), 2.0**39))
    names = st.lists(st.none() | id_texts(spaces=spaces), min_size=size, max_size=size)
    facts = {}
    if columns:
        facts = {
            "gender": np.array(
                draw(st.lists(st.sampled_from(["f", "m", ""]), min_size=size, max_size=size)), dtype=str
            ),
            "rep": draw(hnp.arrays(np.int64, size, elements=st.integers(-9, 9))),
            "duration": draw(vectors(size, np.float32)),
        }
        facts = {name: facts[name] for name in draw(st.lists(st.sampled_from(sorted(facts)), unique=True))}
    return Embeddings(ids, matrix, draw(names) if _wanted(draw, speakers) else None, columns=facts)


def speaker_maps(*, spaces: bool = False) -> st.SearchStrategy[dict[str, str]]:
    """From utterance to speaker; speakers repeat."""
    speaker = st.sampled_from(["ann", "bob"]) | id_texts(spaces=spaces)
    return st.dictionaries(id_texts(spaces=spaces), speaker, min_size=1, max_size=6)


def _wanted(draw: st.DrawFn, choice: bool | None) -> bool:
    return draw(st.booleans()) if choice is None else choice
