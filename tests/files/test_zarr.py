from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shutil
import sys
import time
import zlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

from damage import cuts_and_flips, must_parse_or_refuse
from evenscore import Embeddings, FileError, ScoreMatrix, TrialList
from evenscore.files import open_scores, write
from evenscore.files.registry import ReadOptions
from evenscore.files.zarr_store import open_store, read_zarr, write_zarr
from examples import examples
from strategies import embeddings, score_matrices, trial_lists
from zarr_formats import FORMATS, ZARR_3, chunk_name, write_format

DEFAULT = ReadOptions()
MATRIX = ScoreMatrix([[1.5, np.nan], [0.25, -3.0]], ["e1", "e2"], ["t1", "t2"], missing="nan")


def golden_array(folder, values, format=2, **changes):
    """An array of one chunk, written by hand: metadata in JSON, and the bytes of the chunk."""
    folder.mkdir(parents=True)
    chunks = [max(size, 1) for size in values.shape]
    metadata = {"zarr_format": format, "shape": list(values.shape)}
    if format == 2:
        metadata |= {"chunks": chunks, "dtype": values.dtype.str, "compressor": None, "filters": None}
        metadata |= {"fill_value": None, "order": "C"}
    else:
        metadata |= {"node_type": "array", "data_type": data_type(values.dtype), "fill_value": fill_of(values.dtype)}
        metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": chunks}}
        metadata["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "/"}}
        metadata["codecs"] = [LITTLE]
    (folder / {2: ".zarray", 3: "zarr.json"}[format]).write_text(json.dumps(metadata | changes))
    chunk = folder / {2: ".".join("0" * values.ndim), 3: "/".join("c" + "0" * values.ndim)}[format]
    chunk.parent.mkdir(parents=True, exist_ok=True)
    chunk.write_bytes(values.tobytes())


LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def data_type(dtype):
    texts = {"name": "fixed_length_utf32", "configuration": {"length_bytes": dtype.itemsize}}
    return texts if dtype.kind == "U" else dtype.name


def fill_of(dtype):
    return "" if dtype.kind == "U" else 0


def golden_group(folder, format):
    folder.mkdir(exist_ok=True)
    if format == 2:
        (folder / ".zgroup").write_text('{"zarr_format": 2}')
    else:
        (folder / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')


def golden_text(folder, *texts, format=2):
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)])
    golden_array(folder / "utf8", np.frombuffer(data, dtype=np.uint8), format)
    golden_array(folder / "offsets", offsets.astype("<i8"), format)
    golden_group(folder, format)


def golden_store(folder, format=2, **changes):
    golden_group(folder, format)
    golden_array(folder / "scores", MATRIX.scores.astype("<f8"), format, **changes)
    golden_text(folder / "enroll_ids", "e1", "e2", format=format)
    golden_text(folder / "test_ids", "t1", "t2", format=format)
    return folder


@examples(20)  # each store is a dozen files
@given(
    table=score_matrices(spaces=True)
    | trial_lists(measures=True, unused_ids=True, spaces=True, min_size=0)
    | embeddings(columns=True, spaces=True),
    format=st.sampled_from(FORMATS),
)
def test_round_trip(tmp_path, monkeypatch, table, format):
    write_format(monkeypatch, format)
    write_zarr(table, tmp_path / "t.zarr")
    again = read_zarr(tmp_path / "t.zarr", DEFAULT)
    assert again == table
    if isinstance(table, TrialList) and table.scores is not None:
        assert again.scores.dtype == table.scores.dtype


@pytest.mark.parametrize("format", FORMATS)
def test_golden(tmp_path, format):
    assert read_zarr(golden_store(tmp_path / "g.zarr", format), DEFAULT) == MATRIX
    shutil.rmtree(tmp_path / "g.zarr/enroll_ids")
    golden_array(tmp_path / "g.zarr/enroll_ids", np.array(["x", "yy"]), format)  # NumPy's own text is read, too
    assert read_zarr(tmp_path / "g.zarr", DEFAULT).enroll_ids.tolist() == ["x", "yy"]


def test_what_we_write(tmp_path):
    write_zarr(MATRIX, tmp_path / "t.zarr")
    format, file = (3, "zarr.json") if ZARR_3 else (2, ".zarray")
    metadata = json.loads((tmp_path / "t.zarr/scores" / file).read_text())
    assert (metadata["zarr_format"], metadata["shape"], metadata["fill_value"]) == (format, [2, 2], "NaN")
    chunk = chunk_name(tmp_path / "t.zarr", 0, 0)
    assert (tmp_path / "t.zarr/scores" / chunk).read_bytes() == MATRIX.scores.tobytes()
    assert len(list(tmp_path.glob(f"t.zarr/enroll_ids/*/{file}"))) == 2


def test_scores_in_chunks(tmp_path):
    scores = np.arange(3 * 9000, dtype=np.float32).reshape(3, 9000)
    matrix = ScoreMatrix(scores, ["a", "b", "c"], [f"t{i}" for i in range(9000)])
    write_zarr(matrix, tmp_path / "t.zarr")
    stored = open_store(tmp_path / "t.zarr")
    assert stored.scores.chunks == (3, 4096)
    np.testing.assert_array_equal(stored.scores[1:, 5000:5003], scores[1:, 5000:5003])
    assert stored.test_ids[-1] == "t8999"
    (tmp_path / "t.zarr/scores" / chunk_name(tmp_path / "t.zarr", 0, 1)).unlink()
    partly = read_zarr(tmp_path / "t.zarr", DEFAULT)
    assert partly.n_missing == 3 * 4096


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 writes no format 3")
def test_a_store_that_zarr_wrote(tmp_path):
    import zarr

    group = zarr.open_group(str(tmp_path / "t.zarr"), mode="w", zarr_format=3)
    for name, values in {"embeddings": np.ones((2, 3)), "ids": np.array([7, 8]), "rep": np.array([1, 2])}.items():
        group.create_array(name, data=values)
    group.create_array("ignored", data=np.ones((2, 2)), chunks=(1, 1), shards=(2, 2))
    group.create_group("nested").create_group("deeper").create_array("ignored", shape=(2, 2), dtype=str)
    table = read_zarr(tmp_path / "t.zarr", DEFAULT)
    assert table == Embeddings(["7", "8"], np.ones((2, 3)), columns={"rep": [1, 2]})


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 has no create_array")
def test_a_store_that_takes_the_place_of_another_is_opened_anew(tmp_path):
    import zarr

    for rows, columns in ((6, 4), (4, 6)):
        values = np.random.default_rng(rows).normal(size=(rows, columns))
        group = zarr.open_group(str(tmp_path / "t.zarr"), mode="w", zarr_format=2)
        group.create_array("scores", data=values, chunks=(2, 2))
        for name, size in (("enroll_ids", rows), ("test_ids", columns)):
            group.create_array(name, data=np.arange(size))
        assert np.array_equal(open_scores(tmp_path / "t.zarr").in_memory().scores, values)


def test_writing_replaces_the_old_store_and_leaves_nothing_else(tmp_path):
    write_zarr(MATRIX, tmp_path / "t.zarr")
    write_zarr(Embeddings(["a"], [[1.0]]), tmp_path / "t.zarr")
    assert read_zarr(tmp_path / "t.zarr", DEFAULT) == Embeddings(["a"], [[1.0]])
    with pytest.raises(FileError, match="cannot be called"):
        write_zarr(Embeddings(["a"], [[1.0]], columns={"../../x": [1]}), tmp_path / "t.zarr")
    with pytest.raises(FileError, match="cannot be written as UTF-8"):
        write_zarr(Embeddings(["\ud800"], [[1.0]]), tmp_path / "t.zarr")
    with pytest.raises(FileError, match="not a map of speakers"):
        write({"a": "b"}, tmp_path / "t.zarr")
    assert read_zarr(tmp_path / "t.zarr", DEFAULT) == Embeddings(["a"], [[1.0]])
    assert [place.name for place in tmp_path.iterdir()] == ["t.zarr"]
    with pytest.raises(FileError, match="is a directory; give it a name"):
        write_zarr(MATRIX, "-")


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 does one thing after the other")
def test_what_zarr_does_beside_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    import asyncio

    from zarr.storage import LocalStore

    put = LocalStore.set

    async def late(store, key, *given, **named):
        await asyncio.sleep(0.1)
        await put(store, key, *given, **named)

    async def fail(store, key, *_):
        raise OSError(5, "Input/output error", key)

    monkeypatch.setattr(LocalStore, "set", late)
    with monkeypatch.context() as only_here:
        only_here.setattr(LocalStore, "set_if_not_exists", fail)
        with pytest.raises(FileError, match="Input/output error"):
            write(ScoreMatrix([[1.0]], ["e"], ["t"]), tmp_path / "s.zarr")
    time.sleep(0.2)
    assert list(tmp_path.iterdir()) == []


def test_without_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    for call in (lambda: write_zarr(MATRIX, tmp_path / "t.zarr"), lambda: read_zarr(tmp_path / "t.zarr", DEFAULT)):
        with pytest.raises(FileError, match=r"pip install 'evenscore\[zarr\]'"):
            call()


BAD_METADATA = {
    "pickle as filter": ({"filters": [{"id": "pickle"}]}, r"\[scores\]: it is packed with 'pickle', which is not read"),
    "pickle as compressor": ({"compressor": {"id": "pickle"}}, "packed with 'pickle'"),
    "json": ({"filters": [{"id": "json2"}]}, "packed with 'json2'"),
    "objects": ({"dtype": "|O"}, r"\[scores\]: it has type \|O, but only numbers"),
    "records": ({"dtype": [["a", "<f8"]]}, "only numbers are read"),
    "empty chunks": ({"chunks": [2, 0]}, r"\[scores\]: chunks \[2, 0\] make no sense"),
    "no type": ({"dtype": "?!"}, "not a zarr store, or it is damaged"),
    "huge chunk": ({"chunks": [1 << 40, 1 << 10]}, "but only .* of memory"),
    "huge array": ({"shape": [1 << 40, 2]}, r"\[scores\]: .*but only .* of memory"),
    "negative": ({"shape": [-1, 2]}, r"shape \[-1, 2\] makes no sense"),
    "other shape": ({"shape": [2, 1]}, r"\[scores\]: the array has shape \(2, 1\)"),
    "infinite": ({"dtype": "<f4"}, r"\[scores\]"),
    "format": ({"zarr_format": 9}, "damaged"),
}


def grid(*shape, name="regular"):
    return {"chunk_grid": {"name": name, "configuration": {"chunk_shape": shape}}}


GZIP = {"name": "gzip", "configuration": {"level": 1}}


def shards(*codecs, index=(LITTLE,)):
    settings = {"chunk_shape": [1, 1], "codecs": codecs, "index_codecs": index}
    return {"codecs": [{"name": "sharding_indexed", "configuration": settings}]}


def named(encoding, separator):
    return {"chunk_key_encoding": {"name": encoding, "configuration": {"separator": separator}}}


BAD_METADATA_3 = {
    "many chunks": ({"shape": [1 << 20, 2]} | grid(1, 1), "declares 2097152 chunks, but only 1 are there"),
    "pickle": ({"codecs": [{"name": "pickle"}, LITTLE]}, r"\[scores\]: it is packed with 'pickle', which is not read"),
    "short name": ({"codecs": ["pickle"]}, "packed with 'pickle'"),
    "pickle in shards": (shards({"name": "pickle"}), "packed with 'pickle'"),
    "pickle in the index": (shards(LITTLE, index=[{"name": "pickle"}]), "packed with 'pickle'"),
    "pickle in shards of shards": (shards(*shards({"name": "pickle"})["codecs"]), "packed with 'pickle'"),
    "packed shards": ({"codecs": [*shards(LITTLE)["codecs"], GZIP]}, "its shards are packed once more"),
    "shards of shards": (shards(*shards(LITTLE)["codecs"]), "its shards are packed once more"),
    "a packed index": (shards(LITTLE, index=[LITTLE, GZIP]), "or their index is, which is not read"),
    "strings": ({"data_type": "string", "codecs": ["vlen-utf8"]}, "it has type string, but only numbers"),
    "records": ({"data_type": {"name": "struct", "configuration": {}}}, "only numbers are read"),
    "no type": ({"data_type": "?!"}, "not a zarr store, or it is damaged"),
    "huge text": ({"data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 1 << 50}}}, "damaged"),
    "huge chunk": (grid(1 << 40, 1 << 10), "but only .* of memory"),
    "huge array": ({"shape": [1 << 40, 2]}, r"\[scores\]: .*but only .* of memory"),
    "negative": ({"shape": [-1, 2]}, r"shape \[-1, 2\] makes no sense"),
    "other shape": ({"shape": [2, 1]}, r"\[scores\]: the array has shape \(2, 1\)"),
    "other grid": (grid(1, 1, name="rectilinear"), "its chunks lie in the way 'rectilinear', which is not read"),
    "other names": (named("hilbert", "/"), "its chunks are named in the way 'hilbert', which is not read"),
    "names elsewhere": (named("v2", "/../"), "chunks cannot be named with '/../'"),
    "transformers": ({"storage_transformers": [{"name": "x"}]}, "it has storage transformers, which are not read"),
    "format": ({"zarr_format": 2}, "is not of zarr's format 3, as that of the store is; the store is damaged"),
}
ALL_BAD = [(2, case) for case in BAD_METADATA] + [(3, case) for case in BAD_METADATA_3 if ZARR_3]


@pytest.mark.parametrize(("format", "case"), ALL_BAD)
def test_bad_metadata(tmp_path, format, case):
    changes, message = {2: BAD_METADATA, 3: BAD_METADATA_3}[format][case]
    with pytest.raises(FileError, match=message):
        read_zarr(golden_store(tmp_path / "g.zarr", format, **changes), DEFAULT)


def test_format_3_needs_zarr_3(tmp_path, monkeypatch):
    monkeypatch.setattr("evenscore.files.zarr_store._has_format_3", lambda zarr: False)  # as with zarr 2
    with pytest.raises(FileError, match=r"g.zarr: it is in zarr's format 3; install zarr 3 or newer"):
        read_zarr(golden_store(tmp_path / "g.zarr", 3), DEFAULT)


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 does not look for consolidated metadata")
@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("format", FORMATS)
def test_only_metadata_that_was_checked_is_used(tmp_path, format):
    """A second copy of the metadata, which may say anything, is left alone: consolidated, or of the other format."""
    import zarr

    store = golden_store(tmp_path / "g.zarr", format)
    zarr.consolidate_metadata(str(store), zarr_format=format)
    file = store / {2: ".zmetadata", 3: "zarr.json"}[format]
    metadata = json.loads(file.read_text())
    assert str(metadata).count("float64" if format == 3 else "<f8") == 1
    file.write_text(json.dumps(metadata).replace("float64", "int64").replace("<f8", "<i8"))
    other = tmp_path / "other"
    golden_array(other, np.zeros((7, 7)), 5 - format)
    shutil.copytree(other, store / "scores", dirs_exist_ok=True, ignore=lambda *_: {"0.0", "c"})
    assert read_zarr(store, DEFAULT) == MATRIX
    assert open_scores(store).in_memory() == MATRIX


def test_bad_stores(tmp_path):
    with pytest.raises(FileError, match="no such directory"):
        read_zarr(tmp_path / "none.zarr", DEFAULT)
    (tmp_path / "file.zarr").write_text("x")
    with pytest.raises(FileError, match="it is a file, but a zarr store is a directory"):
        read_zarr(tmp_path / "file.zarr", DEFAULT)
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(FileError, match="not a zarr store"):
        read_zarr(tmp_path / "empty.zarr", DEFAULT)
    golden_array(tmp_path / "array.zarr", np.ones(3))
    with pytest.raises(FileError, match="a single array"):
        read_zarr(tmp_path / "array.zarr", DEFAULT)
    store = golden_store(tmp_path / "g.zarr")
    shutil.rmtree(store / "test_ids")
    with pytest.raises(FileError, match="found scores, enroll_ids, but expected"):
        read_zarr(store, DEFAULT)
    with pytest.raises(FileError, match=r"\[test_ids\]: the array is missing"):
        open_scores(store)
    golden_text(store / "test_ids", "t1")
    with pytest.raises(FileError, match=r"\[scores\]: it is float64 of shape \(2, 2\), but .* \(2, 1\)"):
        open_scores(store)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("lost", ["enroll_ids/utf8", "enroll_ids/offsets"])
def test_a_lost_chunk_of_ids_is_noticed(tmp_path, monkeypatch, lost, format):
    write_format(monkeypatch, format)
    write_zarr(MATRIX, tmp_path / "t.zarr")
    (tmp_path / "t.zarr" / lost / chunk_name(tmp_path / "t.zarr", 0)).unlink()
    with pytest.raises(FileError, match=r"t\.zarr\[enroll_ids\]"):
        read_zarr(tmp_path / "t.zarr", DEFAULT)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as monkeypatch:
        for format in FORMATS:
            write_format(monkeypatch, format)
            write_zarr(MATRIX, folder / f"scores-{format}.zarr")
            write_zarr(Embeddings(["a", "b"], [[1.0], [2.0]]), folder / f"embeddings-{format}.zarr")
    return sorted(folder.iterdir())


@given(data=st.data())
def test_damaged_files(stores, data):
    store = data.draw(st.sampled_from(stores))
    files = sorted(place for place in store.rglob("*") if place.is_file() and place.stat().st_size)
    damaged = data.draw(st.sampled_from(files))
    before = damaged.read_bytes()
    damaged.write_bytes(data.draw(cuts_and_flips(before)))
    try:
        must_parse_or_refuse(lambda path: read_zarr(path, DEFAULT), store)
    finally:
        damaged.write_bytes(before)


def repeated_zeros(blocks):
    """Return a zstd frame that does not say its size: of blocks of 128 KB, each of one byte that is repeated."""
    heads = [(1 << 17 << 3 | 1 << 1 | (number == blocks - 1)).to_bytes(3, "little") for number in range(blocks)]
    return b"\x28\xb5\x2f\xfd\x00\x38" + b"".join(head + b"\0" for head in heads)


def bombs():
    import numcodecs

    zeros = bytes(3_000_000)
    return {
        "blosc": numcodecs.Blosc().encode(zeros),
        "zstd": numcodecs.Zstd().encode(zeros),
        "zstd of several frames": numcodecs.Zstd().encode(zeros[:60_000]) * 3,
        "zstd of unknown size": repeated_zeros(1000),
        "lz4": numcodecs.LZ4().encode(zeros),
        "zlib": zlib.compress(zeros),
        "gzip": gzip.compress(zeros),
        "bz2": bz2.compress(zeros),
        "lzma": lzma.compress(zeros),
    }


@pytest.mark.parametrize("name", bombs())
def test_a_chunk_that_unpacks_to_more_than_it_must_hold(tmp_path, name):
    import numcodecs

    codec = numcodecs.get_codec({"id": name.split()[0]})
    path = golden_store(tmp_path / "g.zarr", 2, compressor=codec.get_config())
    chunk = path / "scores" / "0.0"
    chunk.write_bytes(codec.encode(chunk.read_bytes()))
    assert read_zarr(path, DEFAULT).shape == (2, 2)
    chunk.write_bytes(bombs()[name])
    with pytest.raises(FileError, match=r"\[scores\]: 0\.0 unpacks to \d+ bytes or more, but a chunk has"):
        read_zarr(path, DEFAULT)
    scores = open_scores(path)
    with pytest.raises(FileError, match=r"\[scores\]: 0\.0 unpacks to"):
        scores.source.read(scores.places()[0])


@pytest.mark.skipif(not ZARR_3, reason="zarr 2 knows no shards")
@pytest.mark.parametrize("location", ["start", "end"])
def test_a_chunk_in_a_shard_that_unpacks_to_more_than_it_must_hold(tmp_path, location):
    import zarr

    group = zarr.open_group(str(golden_store(tmp_path / "g.zarr", 3)), mode="a", zarr_format=3)
    del group["scores"]
    codec = zarr.codecs.ShardingCodec(
        chunk_shape=(1, 1), codecs=[zarr.codecs.BytesCodec(), zarr.codecs.GzipCodec()], index_location=location
    )
    scores = group.create_array(
        "scores", shape=(2, 2), chunks=(2, 2), dtype="float64", serializer=codec, compressors=None
    )
    scores[...] = np.arange(4.0).reshape(2, 2)
    assert read_zarr(tmp_path / "g.zarr", DEFAULT).scores.tolist() == [[0, 1], [2, 3]]
    assert open_scores(tmp_path / "g.zarr").in_memory().scores.tolist() == [[0, 1], [2, 3]]
    shard = tmp_path / "g.zarr/scores/c/0/0"
    index = np.array([[68 * (location == "start"), 1 << 20], *[[2**64 - 1] * 2] * 3], dtype="<u8").tobytes() + bytes(4)
    bomb = bombs()["gzip"]
    shard.write_bytes(index + bomb if location == "start" else bomb + index)
    with pytest.raises(FileError, match=r"\[scores\]: 0 unpacks to \d+ bytes or more, but a chunk has 8"):
        read_zarr(tmp_path / "g.zarr", DEFAULT)
    tiles = open_scores(tmp_path / "g.zarr")
    with pytest.raises(FileError, match=r"\[scores\]: 0 unpacks to"):
        tiles.source.read(tiles.places()[0])
    shard.write_bytes(b"short")
    with pytest.raises(FileError):
        read_zarr(tmp_path / "g.zarr", DEFAULT)
