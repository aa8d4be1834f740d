"""The two formats of zarr stores, as tests ask for them and look at them."""

import pytest

zarr = pytest.importorskip("zarr", reason="zarr is not installed (pip install 'evenscore[zarr]')")

FORMATS = [2, 3]


def write_format(monkeypatch, format):
    """Let stores be written whole in a format from here on, as other programs might."""
    monkeypatch.setattr("evenscore.files.zarr_store._FORMAT", format)


def chunk_name(store, *place):
    """Return what the file of a chunk is called within its array."""
    places = [str(number) for number in place]
    return "/".join(["c", *places]) if (store / "zarr.json").exists() else ".".join(places)
