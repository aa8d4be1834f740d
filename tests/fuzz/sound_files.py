"""Sound files of every kind, small, to be spoilt: as the program writes them, and as other writers do."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from evenscore import Embeddings, EvenscoreError, ScoreMatrix, TrialList
from evenscore.files import FORMATS, save_score_set, save_verifier, sniff, write
from evenscore.files.kaldi_objects import write_kaldi_plda
from evenscore.files.models import load_evidence, load_plda, save_transform

__all__ = ["GOLDEN", "Files", "records", "sound", "sound_kaldi_objects", "sound_score_set", "sound_verifiers", "tables"]

GOLDEN = Path(__file__).resolve().parent.parent / "files" / "golden"
Files = dict[str, bytes]  #: what belongs together, by name; the first name is what a reader is given
_DIRECTORIES = (".zarr", ".parts")


@cache
def tables() -> dict[str, list[Any]]:
    """Small tables of every kind."""
    rng = np.random.default_rng(1)
    ids, others = [f"spk{n}-a" for n in range(4)], [f"spk{n % 4}-{n}" for n in range(7)]
    scores = ScoreMatrix(rng.normal(size=(4, 7)).astype(np.float32), ids, others)
    gappy = scores.scores.copy()
    gappy[2, 3] = np.nan
    labels = rng.integers(0, 2, 28)
    trials = TrialList.from_pairs([i for i in ids for _ in others], others * 4, labels=labels)
    full = trials.with_scores(rng.normal(size=28))
    vectors = Embeddings(others, rng.normal(size=(7, 5)), [name.split("-")[0] for name in others])
    return {
        "scores": [scores, ScoreMatrix(gappy, ids, others, missing="nan"), full],
        "trials": [trials],
        "embeddings": [vectors, Embeddings(others, vectors.vectors.astype(np.float32))],
        "speakers": [{name: name.split("-")[0] for name in others}],
    }


def _files(folder: Path, main: Path) -> Files:
    """Return the files of a folder by name, that which is given to a reader first."""
    found = {
        str(one.relative_to(folder)): one.read_bytes().replace(f"{folder}/".encode(), b"")  # an scp names its ark
        for one in sorted(folder.rglob("*"))
        if one.is_file()
    }
    first = str(main.relative_to(folder))
    return {first: found.pop(first), **found} if first in found else {first: b"", **found}


def _made(make: Callable[[Path], None], name: str) -> Files:
    """Return what a function writes to a path of this name."""
    with tempfile.TemporaryDirectory(prefix="evenscore-fuzz-") as folder:
        make(Path(folder) / name)
        return _files(Path(folder), Path(folder) / name)


@cache
def sound(name: str) -> list[Files]:
    """Return sound files of a format."""
    format = FORMATS[name]
    suffix = format.extensions[0] if format.extensions else ".txt"
    found = [{f"file{suffix}": data} for data in _golden().get(name, [])]
    for table in (table for kind in format.kinds for table in tables()[kind]):
        with suppress(EvenscoreError):  # only read, or no place for it
            found.append(_made(lambda path, table=table: write(table, path, format=name), f"file{suffix}"))
    found += [_made(make, file) for file, make in _OTHERS.get(name, lambda: ())()]
    return found or sound("bosaris")  # formats that are only read have the bytes of their relatives


@cache
def _golden() -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {"wespeaker": [(GOLDEN / "wespeaker.trials").read_bytes()]}
    for path in sorted(GOLDEN.iterdir()):
        if path.is_file() and path.name != "wespeaker.trials":
            found.setdefault(sniff(path).name, []).append(path.read_bytes())
    return found


def _other_parquet() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Parquet as it can be packed and encoded, and as a dataset of several parts."""
    import polars as pl

    trials = tables()["scores"][2]
    ids = {"enroll": trials.enroll_ids[trials.enroll_index], "test": trials.test_ids[trials.test_index]}
    frame = pl.DataFrame({**ids, "score": trials.scores, "label": trials.labels, "snr": trials.scores.round(1)})
    nulls = frame.with_columns(pl.when(pl.col("label") == 1).then(pl.col("snr")).alias("snr"))
    coded = nulls.with_columns(pl.col("enroll", "test").cast(pl.Categorical), pl.col("label").cast(pl.Boolean))
    vectors = tables()["embeddings"][0]
    lists = pl.DataFrame({"id": vectors.ids.tolist(), "embedding": vectors.vectors.tolist(), "spk": vectors.speakers})
    wide = pl.DataFrame(
        {"utt": vectors.ids.tolist(), **{f"x{n}": column for n, column in enumerate(vectors.vectors.T)}}
    )
    for packed in ("uncompressed", "uncompressed", "snappy", "zstd", "lz4", "gzip", "brotli"):
        for table in (frame, nulls, coded, lists, wide):
            how: dict[str, Any] = {"compression": packed, "row_group_size": 9, "data_page_size": 64}
            yield "file.parquet", lambda path, table=table, how=how: table.write_parquet(path, **how)

    def parts(path: Path) -> None:
        path.mkdir()
        for number, part in enumerate(frame.iter_slices(8)):
            part.write_parquet(path / f"part-{number:06d}.parquet", compression="uncompressed")

    yield "file.parts", parts


def _other_npz() -> Iterator[tuple[str, Callable[[Path], None]]]:
    vectors, scores = tables()["embeddings"][0], tables()["scores"][0]
    by_id = dict(zip(vectors.ids.tolist(), vectors.vectors, strict=True))
    matrix = {
        "scores": scores.scores,
        "enroll_ids": scores.enroll_ids.astype(str),
        "test_ids": scores.test_ids.astype("S"),
    }
    labels = {"labels": np.eye(4, 7, dtype=np.int8)}
    for arrays in (by_id, matrix, matrix | labels, {"x": vectors.vectors, "utts": vectors.ids.astype(str)}):
        for save in (np.savez, np.savez_compressed):
            yield "file.npz", lambda path, arrays=arrays, save=save: save(path, **arrays)


def _other_zarr() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """Stores of both formats, packed in several ways, and with shards."""
    import zarr

    if not hasattr(zarr.Group, "create_array"):
        return
    scores = tables()["scores"][0].scores
    ids = {"enroll_ids": np.array(["a", "b", "c", "d"]), "test_ids": np.array([f"t{n}" for n in range(7)])}

    def store(path: Path, zarr_format: int, **how: Any) -> None:
        group = zarr.open_group(str(path), mode="w", zarr_format=zarr_format)
        group.create_array("scores", data=scores, **how)
        for name, values in ids.items():
            text = "".join(values).encode()
            inner = group.create_group(name)
            inner.create_array("utf8", data=np.frombuffer(text, dtype=np.uint8))
            inner.create_array("offsets", data=np.cumsum([0, *map(len, values)], dtype=np.int64))

    codecs, numcodecs = zarr.codecs, __import__("numcodecs")
    for how in (
        {"zarr_format": 3, "chunks": (2, 3), "compressors": codecs.GzipCodec()},
        {"zarr_format": 3, "chunks": (2, 3), "compressors": None},
        {"zarr_format": 3, "chunks": (1, 2), "shards": (2, 4)},
        {"zarr_format": 2, "chunks": (2, 3), "compressors": numcodecs.Blosc()},
        {"zarr_format": 2, "chunks": (2, 3), "compressors": numcodecs.Zlib()},
        {"zarr_format": 2, "chunks": (2, 3), "compressors": None},
    ):
        yield "file.zarr", lambda path, how=how: store(path, **how)


def _other_bosaris() -> Iterator[tuple[str, Callable[[Path], None]]]:
    """HDF5 as newer and other writers have it: packed, in chunks, with text of any length."""
    import h5py

    scores = tables()["scores"][0]
    ids = {"ID/row_ids": scores.enroll_ids.tolist(), "ID/column_ids": scores.test_ids.tolist()}

    def make(path: Path, libver: str, fixed: bool, **how: Any) -> None:
        with h5py.File(path, "w", libver=libver) as file:
            for name, values in ids.items():
                file.create_dataset(name, data=np.array(values, dtype="S") if fixed else values)
            file.create_dataset("scores", data=scores.scores, **how)
            file.create_dataset("score_mask", data=np.ones(scores.shape, dtype=np.uint8), **how)

    for libver in ("earliest", "latest"):
        for how in (
            {},
            {"chunks": (2, 3), "compression": "gzip", "shuffle": True},
            {"maxshape": (None, None), "fletcher32": True},
        ):
            yield "file.h5", lambda path, libver=libver, how=how: make(path, libver, bool(how), **how)


def _other_hdf5() -> Iterator[tuple[str, Callable[[Path], None]]]:
    import h5py

    vectors = tables()["embeddings"][0]

    def by_id(path: Path, libver: str) -> None:
        with h5py.File(path, "w", libver=libver) as file:
            for name, vector in zip(vectors.ids.tolist(), vectors.vectors, strict=True):
                file.create_dataset(name.replace("-", "/"), data=vector)

    for libver in ("earliest", "latest"):
        yield "file.h5", lambda path, libver=libver: by_id(path, libver)


_OTHERS: dict[str, Callable[[], Iterator[tuple[str, Callable[[Path], None]]]]] = {
    "parquet": _other_parquet,
    "npz": _other_npz,
    "zarr": _other_zarr,
    "bosaris": _other_bosaris,
    "hdf5": _other_hdf5,
}


@cache
def records() -> list[Files]:
    """Return a sound file of every record; the name tells the kind."""
    from online_data import scorers

    found = [{path.name: path.read_bytes()} for path in sorted((GOLDEN / "records").glob("*.json"))]
    return [*found, _made(lambda path: save_transform(scorers()["transformed"].transform, path), "transform.json")]


@cache
def sound_verifiers() -> list[Files]:
    """Return verifiers of several kinds."""
    from evenscore.online import Verifier
    from online_data import CALIBRATION, COHORT, SIMPLE, scorers

    made = [Verifier(scorers()[name], cohort=COHORT, method="as", top_k=7) for name in scorers()]
    trained = {"lgsm": SIMPLE, "evidence": load_evidence(GOLDEN / "records" / "evidence.json")}
    made += [Verifier(scorers()["cosine"], cohort=COHORT, method=name, model=model) for name, model in trained.items()]
    made += [Verifier(method="raw", calibration=CALIBRATION), Verifier(cohort=COHORT, method="s")]
    return [_made(lambda path, one=one: save_verifier(one, path), "verifier.npz") for one in made]


@cache
def sound_kaldi_objects() -> list[Files]:
    """Return a PLDA and vectors, binary and in text."""
    plda = load_plda(GOLDEN / "records" / "plda.json")
    numbers = np.arange(3.0)
    binary = b"\0BDV \4" + np.int32(3).tobytes() + numbers.tobytes()
    matrix = b"\0B<Plda> DV \4" + np.int32(3).tobytes() + numbers.tobytes() + b"DM \4" + np.int32(3).tobytes()
    matrix += (
        b"\4" + np.int32(3).tobytes() + np.eye(3).tobytes() + b"DV \4" + np.int32(3).tobytes() + (1 + numbers).tobytes()
    )
    text = b" [ 0.5 1 2.5 ]\n"
    made = [
        _made(lambda path: write_kaldi_plda(plda, path), "file.txt"),
        _made(lambda path: np.save(path, numbers), "file.npy"),
    ]
    return made + [{"file.txt": data} for data in (binary, matrix + b"</Plda> ", text)]


@cache
def sound_score_set() -> list[Files]:
    """Return a directory of score matrices and maps."""
    from evenscore import LabelledBlocks, Labels
    from evenscore.files import ScoreSet

    matrix = ScoreMatrix([[2.0, 0.5]], ["ann-1"], ["ann-1-4", "bob-1-4"])
    labels = Labels.from_speakers(["ann"], ["ann", "bob"], enroll_ids=matrix.enroll_ids, test_ids=matrix.test_ids)
    part = LabelledBlocks.own_cohort(matrix, labels, name="1")
    return [_made(lambda path: save_score_set(ScoreSet([part], [part], {"ann": "f", "bob": "m"}), path), "set")]
