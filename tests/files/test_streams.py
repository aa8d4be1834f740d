"""Opening and writing files: gzip, pipes, standard streams, and nothing half-written, whatever goes wrong."""

import errno
import gzip
import io
import os
import resource
import stat
import sys
import threading

import pytest

from evenscore import FileError, TrialList, read, write
from evenscore.files.streams import atomic_directory, atomic_output, local_file, open_input, spooled

TABLE = TrialList.from_pairs(["a", "a"], ["b", "c"], scores=[0.5, 1.5])
TEXT = b"a b 0.5\na c 1.5\n"


def standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize("content", [b"", b"x", TEXT])
@pytest.mark.parametrize("packed", [False, True])
def test_open_input_unpacks_by_content(content, packed, tmp_path, monkeypatch):
    path = tmp_path / "any-name"
    stored = gzip.compress(content) if packed else content
    path.write_bytes(stored)
    with open_input(path) as stream:
        assert stream.read() == content
    with local_file(path) as local:
        assert local.read_bytes() == content
        assert (local == path) is not packed
    standard_input(monkeypatch, stored)
    with open_input("-") as stream:
        assert stream.read() == content
    standard_input(monkeypatch, stored)
    with local_file("-") as local:
        assert local.read_bytes() == content
    assert not local.exists()


def test_standard_input_stays_open(monkeypatch):
    standard_input(monkeypatch, TEXT)
    with open_input("-"):
        pass
    assert not sys.stdin.buffer.closed


def test_spooled_renames_only_errors_of_the_copy(monkeypatch):
    standard_input(monkeypatch, TEXT)
    with pytest.raises(FileError) as caught, spooled("-") as local:
        raise FileError(local, "bad", line=3)
    assert str(caught.value) == "<stdin>:3: bad"
    assert not os.path.exists(local)
    standard_input(monkeypatch, TEXT)
    with pytest.raises(FileError, match=r"^other: bad"), spooled("-"):
        raise FileError("other", "bad")


@pytest.mark.parametrize("format", [None, "kaldi"])
def test_a_pipe_is_read_like_a_file(format, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
    writer.start()
    assert read(path, format=format) == TABLE
    writer.join()


def test_devices_are_no_tables():
    with pytest.raises(FileError, match="empty"):
        read("/dev/null")
    with pytest.raises(FileError, match="binary"):
        read("/dev/zero")
    with pytest.raises(FileError, match="not the format kaldi"):
        read("/dev/zero", format="kaldi")


def test_a_gzip_bomb_is_read_in_chunks(tmp_path, monkeypatch):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 1) as stream:
        stream.write(TEXT)
        for _ in range(32):
            stream.write(b"\n" * (1 << 20))
    taken = []
    whole = gzip.GzipFile.read

    def counted(self, size=-1):
        taken.append(size)
        return whole(self, size)

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    assert read(path, format="kaldi") == TABLE
    assert 0 < min(taken) <= max(taken) <= 16 << 20


def test_a_gzip_bomb_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(TEXT) + 70 * gzip.compress(b"\n" * 1_000_000))
    with pytest.raises(FileError, match=r"bomb\.gz: 0\.000 GB unpack to 0\.1 GB or more.* write it unpacked"):
        read(path, format="kaldi")


def test_the_new_file_takes_the_place_of_the_old_one_in_one_step(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with atomic_output(path) as stream:
        stream.write(b"new")
        stream.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_an_error_leaves_what_was_there(name, tmp_path):
    path = tmp_path / name
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_output(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write(TABLE, tmp_path / "out")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(TABLE, tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == TEXT


def test_the_same_table_packs_to_the_same_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        write(TABLE, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_standard_output(monkeypatch):
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    write(TABLE, "-")
    assert out.buffer.getvalue() == TEXT


def test_an_error_of_writing_names_standard_output():
    with pytest.raises(FileError, match=r"^<stdout>: the format wespeaker needs labels"):
        write(TABLE, "-", format="wespeaker")


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    with pytest.raises(FileError, match="its directory does not exist; create it first"):
        write(TABLE, tmp_path / "no" / "out")
    with pytest.raises(FileError, match="this is a directory; name a file in it"):
        write(TABLE, tmp_path)

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("evenscore.files.working_files.os.open", refuse)
    with pytest.raises(FileError, match="no permission to write there; choose another place"):
        write(TABLE, tmp_path / "out")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_device(monkeypatch):
    with pytest.raises(FileError, match="the disk is full; nothing was written"):
        write(TABLE, "/dev/full")
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(FileError, match="<stdout>: the disk is full"):
            write(TABLE, "-")
        monkeypatch.undo()
        full.buffer.raw.close()


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_a_full_disk_leaves_what_was_there(name, tmp_path, monkeypatch):
    path = tmp_path / name
    path.write_text("old")

    def full(_handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("evenscore.files.streams.os.fsync", full)
    with pytest.raises(FileError, match="the disk is full; nothing was written, free some space"):
        write(TABLE, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_a_limit_in_the_middle_of_writing(name, tmp_path):
    """The operating system itself refuses to write more than 1000 bytes."""
    path = tmp_path / name
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    many = TrialList.from_pairs(["e"] * 50_000, [f"t{i}" for i in range(50_000)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(FileError, match="it cannot be written: File too large"):
            write(many, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_replaces_only_its_like(tmp_path):
    store = tmp_path / "store"
    for content in ("one", "two"):
        with atomic_directory(store) as inside:
            (inside / "zarr.json").write_text(content)
    assert (store / "zarr.json").read_text() == "two"
    with pytest.raises(ZeroDivisionError), atomic_directory(store) as inside:  # noqa: PT012
        (inside / "zarr.json").write_text("half")
        raise ZeroDivisionError
    assert (store / "zarr.json").read_text() == "two"
    assert list(tmp_path.iterdir()) == [store]
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1").write_text("precious")
    with (
        pytest.raises(FileError, match="a directory with other files has this name"),
        atomic_directory(tmp_path / "thesis"),
    ):
        pass
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="a file of this name exists"), atomic_directory(tmp_path / "file"):
        pass
    assert (tmp_path / "thesis" / "chapter1").read_text() == "precious"
