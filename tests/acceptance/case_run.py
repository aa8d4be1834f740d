"""Run an acceptance case against the imported evenscore, and read what it wrote with readers of its own.

Numbers are kept as digests: all of them if they are few, else a sample, moments and a sum with a weight for each
position, which together fix every number well enough to hold another program to them.
"""

import contextlib
import csv
import hashlib
import io
import itertools
import json
import math
import os
import runpy
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import polars as pl
import zarr

HERE = Path(__file__).resolve().parent
FEW, SAMPLE = 24, 12


@dataclass(frozen=True, kw_only=True)
class Case:
    """Commands to run one after the other in a folder with the data, and what of the outcome is recorded."""

    name: str
    commands: tuple = ()  #: command lines, without the name of the program
    files: tuple = ()  #: written files to read back; a pattern such as "report/*.npz" is allowed
    json: tuple = ()  #: dotted keys of the last command's standard output, or of a JSON file: "file.json:a.b"
    python: object = None  #: a function over the public API, called in the folder, that returns a dict of numbers
    check: object = None  #: a function of the folder that asserts what cannot be recorded, such as random draws
    tol: float = 1e-9
    code: int = 0  #: exit code of the last command
    culprit: str = ""  #: what standard error must name


def run_command(line):
    """Run one command line in this process; returns exit code, standard output and standard error."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    argv, sys.argv = sys.argv, ["evenscore", *shlex.split(line)]
    code = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_module("evenscore", run_name="__main__")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        sys.argv = argv
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


@contextlib.contextmanager
def folder_with(data):
    """Enter a fresh folder in which all data files are links."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="acceptance-") as name:
        folder = Path(name)
        for source in (*Path(data).iterdir(), HERE / "models"):
            if source.exists():
                (folder / source.name).symlink_to(source)
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


def run_case(case, data):
    """Run a case and return what is recorded of it."""
    with folder_with(data) as folder:
        given = set(os.listdir(folder))
        found, out, err, code = {}, "", "", 0
        for number, line in enumerate(case.commands):
            code, out, err = run_command(line)
            last = number == len(case.commands) - 1
            expected = case.code if last else 0
            assert code == expected, f"exit code {code}, not {expected}, of: evenscore {line}\n{out}{err}"
        if case.code:
            assert "Traceback" not in out + err, err
            assert case.culprit in " ".join(err.split()), f"{case.culprit!r} is not named in: {err}"
            new = set(os.listdir(folder)) - given
            assert not new, f"a failed command left {sorted(new)}"
        if case.json:
            found["json"] = {key: numbers_of(value_at(*json_at(out, key))) for key in case.json}
        for pattern in case.files:
            paths = sorted(folder.glob(pattern))
            assert paths, f"there is no {pattern}, only {sorted(set(os.listdir(folder)) - given)}"
            for path in paths:
                found.setdefault("files", {})[str(path.relative_to(folder))] = read_back(path)
        if case.python is not None:
            found["python"] = {key: numbers_of(value) for key, value in case.python().items()}
        if case.check is not None:
            case.check(folder)
        return found


def json_at(out, key):
    """Return the JSON that a key is about, and its dotted part."""
    name, found, rest = key.partition(".json:")
    return (json.loads(Path(f"{name}.json").read_text()), rest) if found else (json.loads(out), key)


def value_at(tree, key):
    """Return what stands at a dotted key; a number is a place in a list."""
    for part in key.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


def numbers_of(value):
    """Return JSON for a number, a text, a mapping of such, or an array of any shape."""
    if isinstance(value, dict):
        return {key: numbers_of(item) for key, item in value.items()}
    if value is None or isinstance(value, str | bool):
        return value
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return text_digest([str(item) for item in array.ravel()])
    if array.ndim == 0:
        return plain(array)
    return number_digest(array)


def plain(number):
    number = float(number)
    return number if math.isfinite(number) else str(number)


def number_digest(array):
    """Return all numbers if they are few, else a sample, mean, deviation and a weighted mean."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    digest = {"shape": list(np.shape(array))}
    if flat.size <= FEW:
        return digest | {"values": [plain(x) for x in flat]}
    at = np.linspace(0, flat.size - 1, SAMPLE).round().astype(int)
    known = np.isfinite(flat)
    kept = np.where(known, flat, 0.0)
    weighted = kept * np.cos(1.0 + np.arange(flat.size))
    digest["unknown"] = int((~known).sum())
    digest["values"] = [plain(x) for x in flat[at]]
    return digest | {"moments": [plain(x) for x in (kept.mean(), kept.std(), weighted.mean())]}


def text_digest(texts):
    return f"{len(texts)}:{hashlib.sha256(chr(10).join(texts).encode()).hexdigest()[:16]}"


def read_back(path):
    """Read a written file by its name: arrays, JSON, or lines whose words and numbers are taken apart."""
    readers = {".npz": read_npz, ".h5": read_hdf5, ".zarr": read_zarr, ".parquet": read_parquet, ".npy": np.load}
    if path.suffix == ".json":
        return "json"  # records of models have no fixed layout; cases use them
    if path.suffix in (".svg", ".png", ".pdf", ".html"):
        return "figure" if path.stat().st_size > 2000 else "empty figure"
    if path.suffix in readers:
        arrays = readers[path.suffix](path)
        return table_of(arrays) if isinstance(arrays, dict) else numbers_of(arrays)
    if path.suffix == ".ark" and path.read_bytes()[:200].find(b"\0B") >= 0:
        return table_of(read_ark(path))
    if path.suffix == ".scp":
        return text_digest([line.split()[0] for line in path.read_text().splitlines()])
    return lines_of(path)


def lines_of(path):
    """Take lines apart: the words in order, and the numbers in order."""
    if path.suffix in (".csv", ".tsv"):
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))
    else:
        rows = [line.replace("*", " ").split() for line in path.read_text(encoding="utf-8").splitlines()]
    words, numbers = [], []
    for token in (token for row in rows for token in row):
        try:
            numbers.append(float(token))
        except ValueError:  # noqa: PERF203
            words.append(token)
    return {"lines": len(rows), "words": text_digest(words), "numbers": number_digest(numbers)}


def read_npz(path):
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def read_hdf5(path):
    arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: arrays.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    texts = {name for name, values in arrays.items() if getattr(values, "dtype", np.dtype("f8")).kind in "SO"}
    arrays = {n: np.array([as_text(t) for t in v]) if n in texts else v for n, v in arrays.items()}
    renamed = {"ID/row_ids": "enroll_ids", "ID/column_ids": "test_ids"}
    arrays = {renamed.get(name, name): values for name, values in arrays.items() if name != "file_format"}
    if "score_mask" in arrays:
        arrays["scores"] = np.where(arrays.pop("score_mask") > 0, arrays["scores"], np.nan)
    return arrays


def as_text(value):
    return value.decode() if isinstance(value, bytes) else str(value)


def read_zarr(path):
    group, arrays = zarr.open_group(str(path), mode="r"), {}
    for name in sorted(group.keys()):
        item = group[name]
        if hasattr(item, "keys"):  # text: all bytes, and where each begins
            packed, offsets = bytes(np.asarray(item["utf8"][:])), np.asarray(item["offsets"][:])
            arrays[name] = np.array([packed[a:b].decode() for a, b in itertools.pairwise(offsets)])
        else:
            arrays[name] = np.asarray(item[:])
    return arrays


def read_parquet(path):
    table = pl.read_parquet(path)
    columns = {name: table[name].to_numpy() for name in table.columns if table[name].dtype != pl.Categorical}
    columns |= {name: np.array(table[name].cast(pl.String)) for name in table.columns if name not in columns}
    if "embedding" in columns:
        columns["embedding"] = np.stack([np.asarray(vector) for vector in table["embedding"].to_list()])
    return columns


def read_ark(path):
    content, at, ids, vectors = path.read_bytes(), 0, [], []
    while at < len(content):
        end = content.index(b" ", at)
        kind = {b"FV ": "<f4", b"DV ": "<f8"}[content[end + 3 : end + 6]]
        size = int.from_bytes(content[end + 7 : end + 11], "little")
        ids.append(content[at:end].decode())
        vectors.append(np.frombuffer(content, kind, size, end + 11))
        at = end + 11 + size * np.dtype(kind).itemsize
    return {"ids": np.array(ids), "embeddings": np.stack(vectors)}


def table_of(arrays):
    """Return the digest of named arrays: of a matrix sorted by ids, of a list in its order with ids spelled out."""
    arrays = dict(arrays)
    if {"enroll_ids", "test_ids"} <= arrays.keys():
        enroll, test = arrays.pop("enroll_ids").astype(str), arrays.pop("test_ids").astype(str)
        if "enroll_index" in arrays:
            arrays["enroll"], arrays["test"] = enroll[arrays.pop("enroll_index")], test[arrays.pop("test_index")]
        else:
            rows, columns = np.argsort(enroll), np.argsort(test)
            arrays = {name: values[np.ix_(rows, columns)] for name, values in arrays.items()}
            arrays["enroll"], arrays["test"] = enroll[rows], test[columns]
    return {name: numbers_of(arrays[name]) for name in sorted(arrays)}
