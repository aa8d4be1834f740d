"""The cache gives back what was put in, and nothing else."""

import numpy as np
import pytest

from evenscore import FileError
from evenscore.files import ArrayCache


def test_arrays_come_back_for_the_same_recipe_only(tmp_path):
    cache = ArrayCache(tmp_path / "new" / "cache")
    arrays = {"x": np.arange(6.0).reshape(2, 3), "names": np.array(["ä", ""]), "none": np.zeros((0, 4), np.float32)}
    recipe = {"a": [1, 2.5, None], "b": "é"}
    assert cache.get(recipe) is None
    cache.put(recipe, arrays)
    found = cache.get({"b": "é", "a": [1, 2.5, None]})
    assert list(found) == list(arrays)
    for name, values in arrays.items():
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values)
    assert cache.get({**recipe, "a": [1, 2.5]}) is None
    cache.put(recipe, {"x": np.zeros(1)})
    assert list(cache.get(recipe)) == ["x"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"no archive"])
def test_damaged_files_count_as_absent(tmp_path, content):
    cache = ArrayCache(tmp_path)
    cache.put("key", {"x": np.arange(100)})
    cache.path("key").write_bytes(content)
    assert cache.get("key") is None
    whole = cache.path("other")
    cache.put("other", {"x": np.arange(100)})
    whole.write_bytes(whole.read_bytes()[:-30])
    assert cache.get("other") is None


def test_objects_are_not_kept(tmp_path):
    cache = ArrayCache(tmp_path)
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        cache.put("key", {"x": np.array([object()])})
    assert cache.get("key") is None
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="file"):
        ArrayCache(tmp_path / "file")
