"""Standard error while a library fails: nothing of it is seen, and nothing else is lost."""

import os

import pytest

from evenscore import FileError, TrialList, read, write
from evenscore.files import panics
from evenscore.files.panics import panics_unseen


@pytest.fixture(autouse=True)
def own_process(monkeypatch):
    monkeypatch.setattr(panics._kept, "wanted", True)


class PanicError(BaseException):
    pass


def panic(text):
    with panics_unseen(PanicError):
        os.write(2, text)
        raise PanicError


def test_what_a_panic_writes_is_not_seen(capfd):
    with pytest.raises(PanicError):
        panic(b"thread panicked")
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"


def test_a_library_leaves_standard_error_alone(capfd, monkeypatch):
    monkeypatch.setattr(panics._kept, "wanted", False)
    with pytest.raises(PanicError):
        panic(b"thread panicked")
    assert capfd.readouterr().err == "thread panicked"


def test_what_others_write_is_shown_afterwards(capfd):
    with panics_unseen(PanicError), panics_unseen(PanicError):
        os.write(2, b"a note")
    assert capfd.readouterr().err == "a note"


def test_a_file_over_which_polars_panics_is_one_sentence(tmp_path, capfd):
    """The levels of a page say that there are fewer values than its header declares."""
    import polars as pl

    path = tmp_path / "x.parquet"
    frame = pl.DataFrame({"enroll": ["a"] * 9, "test": list("abcdefghi"), "score": [1.0] * 9})
    frame.write_parquet(path, compression="uncompressed")
    sound = path.read_bytes()
    panicked = False
    for place in range(4, len(sound) - 8):
        path.write_bytes(sound[:place] + b"\xff" + sound[place + 1 :])
        try:
            read(path)
        except FileError as error:
            panicked = ": it is damaged (" in str(error)
        if panicked:
            break
    assert capfd.readouterr().err == ""
    assert panicked


def test_standard_error_may_be_closed(tmp_path):
    write(TrialList.from_pairs(["a"], ["b"], scores=[1.0]), tmp_path / "x.parquet")
    saved = os.dup(2)
    os.close(2)
    try:
        assert len(read(tmp_path / "x.parquet")) == 1
    finally:
        os.dup2(saved, 2)
        os.close(saved)
