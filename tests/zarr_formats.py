"""The two formats of zarr stores, as tests ask for them and look at them."""

import pytest

zarr = pytest.importorskip("zarr", reason="zarr is not installed (pip install 'evenscore[zarr]')")

ZARR_3 = hasattr(zarr.Group, "create_array")
FORMATS = [2, 3] if ZARR_3 else [2]


def write_format(monkeypatch, format):
    """Let all stores be written in a format from here on."""
    monkeypatch.setattr("evenscore.files.zarr_store._written_format", lambda zarr: format)


def chunk_name(store, *place):
    """Return what the file of a chunk is called within its array."""
    places = [str(number) for number in place]
    return "/".join(["c", *places]) if (store / "zarr.json").exists() else ".".join(places)
