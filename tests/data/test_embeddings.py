"""Embeddings: what they accept, and that vectors, speakers and columns stay together."""

from __future__ import annotations

import numpy as np
import pytest

from evenscore import Embeddings, InputError


def test_rows_stay_together() -> None:
    whole = Embeddings(["a", "b", "c"], np.eye(3), ["x", "", "y"], {"gender": ["f", "m", "f"]})
    part = whole.select(["c", "a"])
    assert part.ids.tolist() == ["c", "a"]
    assert part.speakers is not None
    assert part.speakers.tolist() == ["y", "x"]
    assert part.columns["gender"].tolist() == ["f", "f"]
    np.testing.assert_array_equal(part.vectors, np.eye(3)[[2, 0]])
    again = Embeddings.concat([part, whole.take(np.array([False, True, False]))])
    assert again.ids.tolist() == ["c", "a", "b"]
    assert again.with_speakers({"a": "1", "b": "2", "c": "3"}).speakers.tolist() == ["3", "1", "2"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("vectors", "culprit"),
    [([[1.0], [np.nan]], "'b'"), ([[1.0]], "1 vectors"), ([1.0, 2.0], "2 dimensions")],
)
def test_bad_vectors_are_refused(vectors: list, culprit: str) -> None:
    with pytest.raises(InputError, match=culprit):
        Embeddings(["a", "b"], vectors)


def test_different_dimensions_are_refused() -> None:
    with pytest.raises(InputError, match="dimensions"):
        Embeddings.concat([Embeddings(["a"], [[1.0]]), Embeddings(["b"], [[1.0, 2.0]])])
