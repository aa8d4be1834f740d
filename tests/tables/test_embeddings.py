import numpy as np
import pytest
from hypothesis import given, strategies as st

from evenscore import Embeddings, InputError
from strategies import embeddings

TABLES = embeddings(columns=True, spaces=True, min_size=0)


@given(TABLES, st.randoms())
def test_select_finds_vectors_by_id(table, random):
    ids = table.ids.tolist()
    random.shuffle(ids)
    chosen = table.select(ids)
    assert chosen.ids.tolist() == ids
    for name, vector in zip(table.ids, table.vectors, strict=True):
        assert np.array_equal(chosen.vectors[ids.index(name)], vector)
    assert chosen.select(table.ids) == table


@given(TABLES, st.integers(0, 5))
def test_concat_of_the_parts_is_the_whole(table, cut):
    rows = np.arange(len(table))
    assert Embeddings.concat([table.take(rows < cut), table.take(rows >= cut)]) == table


def test_concat_keeps_what_all_parts_have():
    first = Embeddings(["a"], [[1.0]], ["ann"], columns={"q": [1]})
    second = Embeddings(["b"], [[2.0]])
    whole = Embeddings.concat([first, second])
    assert whole.speakers is None
    assert dict(whole.columns) == {}
    with pytest.raises(InputError, match=r"embeddings have different dimensions: \[1, 2\]"):
        Embeddings.concat([first, Embeddings(["c"], [[1.0, 2.0]])])
    with pytest.raises(InputError, match="ids has 'a' more than once"):
        Embeddings.concat([first, first])
    with pytest.raises(InputError, match="nothing to concatenate"):
        Embeddings.concat([])


def test_speakers_by_row_or_by_id():
    table = Embeddings(["a", "b"], np.eye(2))
    assert table.with_speakers({"b": "bob", "a": "ann"}).speakers.tolist() == ["ann", "bob"]
    assert table.with_speakers(["ann", ""]).speakers.tolist() == ["ann", None]
    with pytest.raises(InputError, match="the map of speakers has no speaker for 'b'"):
        table.with_speakers({"a": "ann"})


def test_equality_and_repr():
    table = Embeddings(["a", "b"], np.eye(2), ["ann", None], columns={"q": [1, 2]})
    assert table == Embeddings(["a", "b"], np.eye(2), ["ann", None], columns={"q": [1, 2]})
    assert table != Embeddings(["a", "b"], np.eye(2), ["ann", "bob"], columns={"q": [1, 2]})
    assert table != Embeddings(["a", "b"], np.eye(2, dtype=np.float32), ["ann", None], columns={"q": [1, 2]})
    assert (table == 1) is False
    assert repr(table) == "Embeddings(2 x 2, float64, 1 speakers, columns q)"
    assert repr(Embeddings([], np.zeros((0, 4)))) == "Embeddings(0 x 4, float64, no speakers)"


def test_embeddings_cannot_be_changed():
    table = Embeddings(["a"], [[1.0]], ["ann"], columns={"q": [1]})
    for array in (table.ids, table.vectors, table.speakers, table.columns["q"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        table.ids = []
    with pytest.raises(TypeError, match="unhashable"):
        hash(table)


@pytest.mark.parametrize(
    ("ids", "vectors", "options", "message"),
    [
        (["a", "b"], [[1.0], [np.inf]], {}, r"the vector of 'b' has a value that is not finite"),
        (["a"], [1.0], {}, r"vectors must have 2 dimensions"),
        (["a"], [[1.0], [2.0]], {}, r"ids has 1 ids, but 2 are needed"),
        (["a", "a"], [[1.0], [2.0]], {}, r"ids has 'a' more than once"),
        (["a"], [[1.0]], {"speakers": ["x", "y"]}, r"speakers has 2 speakers, but 1 are needed"),
        (["a"], [[1.0]], {"columns": {"q": [1, 2]}}, r"column 'q' has shape \(2,\), but there are 1 rows"),
    ],
)
def test_wrong_embeddings_are_refused_with_the_culprit(ids, vectors, options, message):
    with pytest.raises(InputError, match=message):
        Embeddings(ids, vectors, **options)


def test_unknown_rows_are_refused():
    table = Embeddings(["a"], [[1.0]])
    with pytest.raises(InputError, match="embedding 'z' not in the embeddings"):
        table.select(["z"])
    with pytest.raises(InputError, match=r"the mask has shape \(2,\), but there are 1 rows"):
        table.take([True, False])
