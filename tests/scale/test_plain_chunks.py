"""Plain chunks against the zarr library, in all layouts: each reads what the other writes, and damage is named."""

import json
import re
import shutil

import numpy as np
import pytest
import zarr

from evenscore import FileError, write
from evenscore.files import open_scores
from evenscore.files.zarr_chunks import PlainChunks
from evenscore.tables import Place, Tile
from scale.chunked_examples import contents, ids, matrix
from zarr_formats import FORMATS, ZARR_3, write_format

NAMES = {2: ["{}.{}", "{}/{}"], 3: ["c/{}/{}", "c.{}.{}", "{}.{}", "{}/{}"]}
LAYOUTS = [(format, names, checksum) for format in FORMATS for names in NAMES[format] for checksum in (True, False)]
SIZES = {"odd": ("f4", (7, 10), (3, 4)), "even": ("f8", (6, 4), (3, 4)), "within a chunk": ("f8", (3, 4), (8, 9))}


def array_of(folder, table, chunks, format, names, checksum, **changes):
    """Return an empty array that the zarr library made, in a group at ``folder``."""
    import numcodecs

    how = {"shape": table.shape, "chunks": chunks, "dtype": table.dtype, "fill_value": np.nan}
    separator = "/" if "/" in names else "."
    if not ZARR_3:
        packed = {"compressor": numcodecs.CRC32() if checksum else None, "dimension_separator": separator}
        return zarr.open_group(str(folder), mode="a").create_dataset("scores", **{**how, **packed, **changes})
    group = zarr.open_group(str(folder), mode="a", zarr_format=format)
    encoding = {"name": "default" if names[0] == "c" else "v2", "separator": separator}
    codec = numcodecs.CRC32() if format == 2 else zarr.codecs.Crc32cCodec()
    packed = {"compressors": codec if checksum else None, "chunk_key_encoding": encoding}
    return group.create_array("scores", **{**how, **packed, **changes})


def store_of(path, table, monkeypatch, format, names, checksum, **changes):
    """Return a store whose scores the zarr library wrote."""
    write_format(monkeypatch, format)
    write(table, path)
    shutil.rmtree(path / "scores")
    array = array_of(path, table.scores, (5, 7), format, names, checksum, **changes)
    array[...] = table.scores
    return path


@pytest.fixture
def whole():
    return matrix(np.random.default_rng(0), ids("e", 9), ids("t", 10), missing=0.1, dtype=np.float32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_we_and_zarr_write_the_same_bytes_and_read_each_other(tmp_path, layout, size):
    (dtype, shape, chunks), rng = SIZES[size], np.random.default_rng(1)
    scores = rng.normal(size=shape).astype(dtype)
    scores[rng.random(shape) < 0.1] = np.nan
    by_zarr = array_of(tmp_path / "zarr", scores, chunks, *layout)
    by_zarr[...] = scores
    plain = PlainChunks.of(tmp_path / "zarr" / "scores")
    assert (plain.format, plain.names, plain.checksum, plain.dtype) == (*layout, dtype)
    for _ in range(10):
        (top, bottom), (left, right) = (np.sort(rng.integers(0, size + 1, 2)) for size in shape)
        found = plain.read(slice(top, bottom), slice(left, right))
        np.testing.assert_array_equal(found, scores[top:bottom, left:right])
    by_us = array_of(tmp_path / "us", scores, chunks, *layout)
    everything = slice(0, shape[0]), slice(0, shape[1])
    PlainChunks.of(tmp_path / "us" / "scores").write(Place(0, *everything), Tile(scores, *everything))
    assert contents(tmp_path / "us") == contents(tmp_path / "zarr")
    np.testing.assert_array_equal(by_us[...], scores)


@pytest.mark.parametrize("format", FORMATS)
def test_an_array_that_we_create_is_one_of_zarr(tmp_path, format):
    how = {"zarr_format": format} if ZARR_3 else {}
    group = zarr.open_group(str(tmp_path / "us"), mode="w", **how)
    PlainChunks.create(tmp_path / "us" / "scores", (23, 31), (5, 7), np.dtype(np.float32))
    array_of(tmp_path / "zarr", np.empty((23, 31), np.float32), (5, 7), format, NAMES[format][0], True)
    found = [json.loads(file.read_text()) for file in tmp_path.glob("*/scores/*") if ".zattrs" not in file.name]
    found += [json.loads(file.read_text()) for file in tmp_path.glob("*/scores/.zarray") if format == 2 and not found]
    assert len(found) == 2
    assert found[0] == found[1]
    assert np.isnan(group["scores"][...]).all()


def not_plain(format):
    """Return settings of arrays that are not plain, for the zarr library."""
    import numcodecs

    if format == 3:
        turned = {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]}
        packed = {"compressors": zarr.codecs.BloscCodec()}
        big = {"serializer": zarr.codecs.BytesCodec(endian="big")}
    else:
        packed = {"compressors" if ZARR_3 else "compressor": numcodecs.Blosc()}
        turned, big = {"order": "F"}, {"dtype": ">f4"}
    return {"packed": packed, "turned": turned, "big": big, "half": {"dtype": "f2"}, "other fill": {"fill_value": 0.0}}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("case", ["packed", "turned", "big", "half", "other fill"])
def test_what_is_not_plain_is_read_by_the_zarr_library(tmp_path, monkeypatch, whole, format, case):
    table = whole.with_scores(np.nan_to_num(whole.scores).astype(np.float16).astype(np.float32))
    names = NAMES[format][0]
    path = store_of(tmp_path / "in.zarr", table, monkeypatch, format, names, False, **not_plain(format)[case])
    scores = open_scores(path)
    assert scores.source.source.plain is None
    np.testing.assert_array_equal(scores.in_tiles(300).in_memory().scores, table.scores)
    if case == "packed":
        damage(path / "scores" / names.format(1, 1), lambda data: data[:-9])
        with pytest.raises(FileError, match=rf"\[scores/{re.escape(names.format(1, 1))}\]: .*damaged \(it is cut off"):
            scores.in_memory()


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 writes no format 3")
def test_without_the_checksum_of_zarr_3(tmp_path, monkeypatch, whole):
    path = store_of(tmp_path / "in.zarr", whole, monkeypatch, 3, "c/{}/{}", True)
    plain = PlainChunks.of(path / "scores")
    monkeypatch.setattr("evenscore.files.zarr_chunks.fast_crc32c", lambda: None)
    scores = open_scores(path)
    assert scores.source.source.plain is None
    assert scores.in_memory() == whole
    with pytest.raises(FileError, match=r"the checksums of zarr 3 cannot be had on .*; install the same zarr"):
        plain.read(slice(0, 1), slice(0, 1))


def damage(file, change):
    file.write_bytes(change(file.read_bytes()))


def flipped(place):
    return lambda data: bytes(byte ^ (at == place % len(data)) for at, byte in enumerate(data))


DAMAGES = {
    **{f"byte {place}": (flipped(place), "its checksum is wrong") for place in (0, 3, 4, 70, -5, -4, -1)},
    "cut off": (lambda data: data[:-1], "it does not have the"),
    "too long": (lambda data: data + b"x", "it does not have the"),
    "empty": (lambda data: b"", "it does not have the"),
    "without checksum": (lambda data: data[4:], "it does not have the"),
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_a_damaged_chunk_is_named(tmp_path, layout):
    _, names, checksum = layout
    scores = np.random.default_rng(2).normal(size=(9, 10))
    array_of(tmp_path / "in.zarr", scores, (5, 7), *layout)[...] = scores
    plain, file = PlainChunks.of(tmp_path / "in.zarr" / "scores"), tmp_path / "in.zarr" / "scores" / names.format(1, 1)
    whole = file.read_bytes()
    for change, problem in DAMAGES.values():
        if not checksum and "checksum" in problem:
            continue  # nobody can tell
        file.write_bytes(change(whole))
        plain.read(slice(0, 5), slice(0, 10))
        message = (
            rf"in.zarr\[scores/{re.escape(names.format(1, 1))}\]: the chunk is damaged \({problem}.*; copy or write"
        )
        with pytest.raises(FileError, match=message):
            plain.read(slice(4, 6), slice(6, 10))
    file.write_bytes(whole)
    np.testing.assert_array_equal(plain.read(slice(4, 6), slice(6, 10)), scores[4:6, 6:10])


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_that_a_worker_does_not_see_is_not_made(tmp_path, format):
    array_of(tmp_path / "out.zarr", np.empty((5, 7)), (5, 7), format, NAMES[format][0], True)
    plain = PlainChunks.of(tmp_path / "out.zarr" / "scores")
    shutil.rmtree(tmp_path / "out.zarr" / "scores")
    with pytest.raises(FileNotFoundError):
        plain.write(Place(0, slice(0, 5), slice(0, 7)), Tile(np.zeros((5, 7)), slice(0, 5), slice(0, 7)))
    assert not (tmp_path / "out.zarr" / "scores").exists()
