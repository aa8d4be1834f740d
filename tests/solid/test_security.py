"""What SECURITY.md promises, as far as a test can tell. That no module unpickles or runs text is in test_layers.py."""

import gzip
import io
import json
import os
import stat
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

import h5py
import numpy as np
import pytest
import zarr

from evenscore.data import Embeddings, ScoreMatrix, TrialList
from evenscore.errors import EvenscoreError, FileError
from evenscore.files import formats, read, read_model, read_scores, streams, write, write_model
from evenscore.large import cluster
from evenscore.model import ScoreModel

EVIL = "import os; os.mkdir('evil')"
MODEL = ScoreModel(mu=[0.0, 2.0], alpha=[[0.1], [0.3]], beta=[[1.0], [1.0]], sigma2=[1.0, 1.0])
MATRIX = ScoreMatrix([[1.0, 2.0]], ["e"], ["t1", "t2"])


class Bomb:
    def __reduce__(self):
        return exec, (EVIL,)


@pytest.fixture(autouse=True)
def _nothing_ran(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    assert not (tmp_path / "evil").exists()


def pickled():
    out = io.BytesIO()
    np.lib.format.write_array(out, np.array([[Bomb()]], object), allow_pickle=True)
    return out.getvalue()


def test_pickles_in_arrays_are_refused(tmp_path):
    (tmp_path / "a.npy").write_bytes(pickled())
    for ending, ids in ((".enroll_ids", "e\n"), (".test_ids", "t\n"), (".ids", "x\n")):
        (tmp_path / f"a{ending}").write_text(ids)
    for name, members in {"b.npz": ("scores",), "v.npz": ("verifier",), "x.npz": ("embeddings", "ids")}.items():
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(f"{member}.npy", pickled())
    for name in ("a.npy", "b.npz", "v.npz", "x.npz"):
        for reader in (read, read_scores, read_model):
            with pytest.raises(FileError):
                reader(tmp_path / name)
    raw = pickled()
    (tmp_path / "c").write_bytes(raw[raw.index(b"\x80") :])  # the bare pickle
    with pytest.raises(FileError, match="pickle"):
        read(tmp_path / "c")


@pytest.mark.skipif(not hasattr(zarr, "create_array"), reason="makes stores with zarr 3")
def test_pickles_in_stores_are_refused(tmp_path):
    write(MATRIX, tmp_path / "a.zarr")
    for codec in ({"id": "pickle"}, {"id": "json2"}):
        group = zarr.open_group(str(tmp_path / "b.zarr"), mode="w", zarr_format=2)
        group.create_array("scores", shape=(1, 2), chunks=(1, 2), dtype="f8")
        array = tmp_path / "b.zarr" / "scores" / ".zarray"
        array.write_text(json.dumps({**json.loads(array.read_text()), "dtype": "|O", "filters": [codec]}))
        with pytest.raises(FileError):
            read(tmp_path / "b.zarr")
    metadata = tmp_path / "a.zarr" / "scores" / "zarr.json"
    metadata.write_text(metadata.read_text().replace('"crc32c"', '"numcodecs.pickle"'))
    with pytest.raises(FileError, match="pickle"):
        read(tmp_path / "a.zarr")


@pytest.mark.parametrize("name", ["os:system", "builtins:exec", "evenscore.files.hdf5:copy_datasets", "../evil", "", 7])
def test_a_model_names_only_records_of_the_program(tmp_path, name):
    write_model(MODEL, tmp_path / "m.json")
    record = json.loads((tmp_path / "m.json").read_text())
    for changed in ({**record, "format": name}, {**record, "residuals": {"format": name, "command": EVIL}}):
        (tmp_path / "m.json").write_text(json.dumps(changed))
        with pytest.raises(FileError):
            read_model(tmp_path / "m.json")


@pytest.mark.parametrize("entry", ["touch evil |", "| touch evil", "$(touch evil)", "x.ark[0:1]", "-"])
def test_commands_in_lists_of_vectors_are_not_run(tmp_path, entry):
    (tmp_path / "a.scp").write_text(f"u1 {entry}\n")
    with pytest.raises(FileError):
        read(tmp_path / "a.scp", format="kaldi-scp")


def test_hdf5_does_not_open_other_files(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(np.arange(2.0).tobytes())
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["ids"] = ["u1"]
        file.create_dataset("embeddings", (1, 2), "f8", external=[(str(secret), 0, 16)])
    with pytest.raises(FileError, match="another file"):
        read(tmp_path / "a.h5")


HOSTILE = ["../../evil", "/etc/evil", "..", "a/../../evil", "C:\\evil", "~/evil", ".hidden", "%s", "$(touch evil)"]


@pytest.mark.parametrize("name", ["o.npz", "o.zarr", "o.npy", "o.h5", "o.parquet", "o.ark", "o.scp", "o.csv"])
def test_ids_and_columns_are_no_paths(tmp_path, name):
    folder = tmp_path / "one" / "two"
    folder.mkdir(parents=True)
    numbers = np.ones(len(HOSTILE))
    for columns in ({}, {"../evil": numbers}):
        for table in (
            Embeddings(HOSTILE, numbers[:, None], None, columns),
            TrialList(HOSTILE, HOSTILE, numbers, None, columns),
        ):
            with suppress(EvenscoreError):
                write(table, folder / name)
                found = read(folder / name)
                assert [*getattr(found, "ids", ())] or [*found.to_trials().enroll_ids] == HOSTILE
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and folder not in path.parents]
    assert outside == []


def test_members_of_an_archive_are_not_unpacked(tmp_path):
    write(MATRIX, tmp_path / "a.npz")
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as archive:
        archive.writestr("evil", b"x")
        archive.writestr("../evil", b"x")
    assert read(tmp_path / "a.npz") == MATRIX
    assert os.listdir(tmp_path) == ["a.npz"]


def test_temporary_files_are_private_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen, original = [], formats.sniff

    def watched(path, kind):
        seen.append(stat.S_IMODE(os.stat(path).st_mode))
        return original(path, kind)

    monkeypatch.setattr(formats, "sniff", watched)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"e t 1\n")))
    read("-")
    assert seen == [0o600]
    write(Embeddings(["u"], [[1.0]]), tmp_path / "a.h5")
    read(tmp_path / "a.h5")
    assert os.listdir(tmp_path) == ["a.h5"]


@pytest.mark.parametrize("name", ["b.npz", "b.zarr", "b.parquet", "b.scores.gz", "m.json.gz"])
def test_small_files_that_unpack_to_more_than_memory_are_refused(tmp_path, monkeypatch, name):
    ids = [f"e{i}" for i in range(2000)]
    if name == "b.npz":
        np.savez_compressed(tmp_path / name, scores=np.zeros((2000, 2000)), enroll_ids=ids, test_ids=ids)
    elif name == "b.zarr":
        write(Embeddings(ids, np.zeros((2000, 1000))), tmp_path / name)
    elif name == "b.parquet":
        write(TrialList(ids * 50, np.repeat(ids[:50], 2000), np.zeros(100_000)), tmp_path / name)
    else:
        (tmp_path / name).write_bytes(gzip.compress(b"e t 1\n" * 1_000_000))
    (tmp_path / "meminfo").write_text("MemTotal:      8192 kB\nMemAvailable:  4096 kB\n")
    places = {"/proc/meminfo": tmp_path / "meminfo"}
    monkeypatch.setattr(streams, "open", lambda path, *how: io.FileIO(places.get(path, path), *how), raising=False)
    with pytest.raises(FileError, match="memory"):
        (read_model if name == "m.json.gz" else read)(tmp_path / name)


def listening(pid):
    """Return the addresses on which a process waits for connections, as /proc writes them."""
    open_files = [os.path.realpath(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
    sockets = {name.partition("socket:[")[2].rstrip("]") for name in open_files if "socket:[" in name}
    tables = [Path(f"/proc/{pid}/net/{name}").read_text().splitlines() for name in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    return [row[1] for row in rows if row[3] == "0A" and row[9] in sockets]


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are listed in /proc")
def test_workers_listen_on_the_loopback_address_only():
    pytest.importorskip("distributed")
    before = listening(os.getpid())
    with cluster(workers=1), cluster(workers=1) as client:  # schedulers and nannies are in this process
        found = listening(os.getpid()) + [one for pid in client.run(os.getpid).values() for one in listening(pid)]
    opened = set(found) - set(before)
    assert len(opened) >= 3  # of scheduler, nanny and worker
    assert {address.partition(":")[0] for address in opened} == {"0100007F"}


def test_control_codes_do_not_reach_the_terminal(tmp_path):
    (tmp_path / "a\x1b[31m.scores").write_text("e\x1b]0;evil\x07 t\x1b[2J 1\ne\x1b]0;evil\x07 t\x1b[2J 2\n")
    for line in (["info", "a\x1b[31m.scores"], ["evaluate", "a\x1b[31m.scores"], ["model", "show", "no\x1b[31m"]):
        done = subprocess.run([sys.executable, "-m", "evenscore", *line], capture_output=True, check=False)
        assert done.returncode == 2
        assert b"\x1b" not in done.stdout + done.stderr
        assert b"\x07" not in done.stdout + done.stderr
