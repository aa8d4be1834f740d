import io
import os
import sys

import pytest

from evenscore.data import TrialList
from evenscore.errors import FileError
from evenscore.files import read, read_metadata, read_speakers, write
from evenscore.files.streams import atomic_output

TABLE = TrialList(["e"], ["t"], scores=[1.0])


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file.gz"
    write(TABLE, path)
    before = path.read_bytes()
    with pytest.raises(TypeError), atomic_output(path) as stream:
        stream.writelines([b"half", None])
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["file.gz"]


def test_two_runs_on_one_output_do_not_mix(tmp_path):
    path = tmp_path / "o.scores"
    with atomic_output(path) as first, atomic_output(path) as second:
        for part in (b"a", b"b"):
            first.write(b"first " + part)
            second.write(b"second " + part)
        assert not path.exists()
    assert path.read_bytes() == b"first afirst b"  # which ends last
    assert os.listdir(tmp_path) == ["o.scores"]


def test_links_and_modes_stay(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("")
    path.chmod(0o640)
    link.symlink_to(path)
    write(TABLE, link)
    assert link.is_symlink()
    assert path.read_text() == "e t 1.0\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_errors_of_the_system_name_the_path(tmp_path):
    for path, problem in ((tmp_path / "no" / "file", "directory"), (tmp_path, "directory")):
        with pytest.raises(FileError, match=problem) as caught:
            write(TABLE, path)
        assert caught.value.path == str(path)
        with pytest.raises(FileError):
            read(path)
    write(TABLE, os.devnull)
    if os.path.exists("/dev/full"):
        with pytest.raises(FileError, match="disk is full"):
            write(TABLE, "/dev/full")


def test_standard_input_and_output(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"e t 1\n")))
    assert read("-") == TABLE
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"e t 1\ne t2 x\n")))
    with pytest.raises(FileError, match="<stdin>:2"):
        read("-")
    out = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", out)
    write(TABLE, "-")
    assert out.buffer.getvalue() == b"e t 1.0\n"


@pytest.mark.parametrize("format", ["utt2spk", "spk2utt"])
def test_speakers(tmp_path, format):
    speakers = {"a1": "ann", "b1": "bob", "a2": "ann"}
    write(speakers, tmp_path / "map", format=format)
    assert read_speakers(tmp_path / "map") == speakers
    (tmp_path / "map").write_text("u1 ann\nu2 ann\nu1 bob\n")
    with pytest.raises(FileError, match=":3: "):
        read_speakers(tmp_path / "map", format="utt2spk")


def test_speakers_and_metadata_of_a_table(tmp_path):
    path = tmp_path / "meta.csv"
    path.write_text('id,speaker,gender\nu1,ann,"f"\nu2,bob,m\n')
    assert read_speakers(path) == {"u1": "ann", "u2": "bob"}
    assert read_metadata(path).by_id("gender") == {"u1": "f", "u2": "m"}
    path.write_text("id,gender\nu1,f\nu1,m\n")
    with pytest.raises(FileError, match="'u1'"):
        read_metadata(path).by_id("gender")
    path.write_text("id,gender\nu1\n")
    with pytest.raises(FileError, match=":2: "):
        read_metadata(path)
    durations = tmp_path / "utt2dur"
    durations.write_text("u1 3.5\nu2 4\n")
    assert read_metadata(durations).by_id("dur") == {"u1": "3.5", "u2": "4"}
    path.write_text("modelid\tsegmentid\tphrase\nm\ts\tp1\n")
    assert read_metadata(path).ids == ("modelid", "segmentid")
