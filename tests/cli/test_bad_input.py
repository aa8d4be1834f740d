"""Every kind of broken input, as a new user would try it: one sentence with the place, code 2, nothing left behind."""

import contextlib
import gzip
import os
import re
import resource

import h5py
import kaldiio
import numpy as np
import pytest

from evenscore import ScoreMatrix
from evenscore.files import read, read_embeddings, write

GOOD = "ann utt1 4.2\nann utt2 -1.5\nbob utt1 -0.7\n"
KEY = "ann utt1 target\nann utt2 nontarget\nbob utt1 nontarget\n"


@pytest.fixture
def refused(cli, tmp_path):
    """Give a file to `info` and to `convert`; both must refuse it in one sentence."""

    def run(name, *options):
        for command in (["info", name], ["convert", name, "out.npz"]):
            result = cli(*command, *options)
            assert result.exit_code == 2, result.output
            assert result.stdout == ""
            assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
            assert "Traceback" not in result.stderr
            assert not [path for path in os.listdir(tmp_path) if path.startswith(("out", ".out"))]
        return result.stderr.removeprefix("error: ").rstrip()

    return run


BROKEN_LINES = {
    "too few columns": ("ann utt1 4.2\nann utt2\n", 2),
    "too many columns": ("ann utt1 4.2\nann utt2 1 2 3 4 5 6 7\n", 2),
    "text for a number": ("ann utt1 4.2\nann utt2 -1.5\nbob utt1 high\n", 3),
    "nan": ("ann utt1 4.2\nann utt2 nan\n", 2),
    "inf": ("ann utt1 4.2\nann utt2 -inf\n", 2),
    "too large for a number": ("ann utt1 4.2\nann utt2 1e999\n", 2),
    "unknown label": ("ann utt1 target\nann utt2 nontarget\nann utt3 maybe\n", 3),
    "identical twice": ("ann utt1 4.2\nbob utt1 1.0\nann utt1 4.2\n", 3),
    "contradicting scores": ("ann utt1 4.2\nbob utt1 1.0\nann utt1 -1.0\n", 3),
    "contradicting labels": ("ann utt1 target\nbob utt1 nontarget\nann utt1 nontarget\n", 3),
}


@pytest.mark.parametrize("case", BROKEN_LINES)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_broken_lines_are_named(refused, file, case, packed):
    text, line = BROKEN_LINES[case]
    name = file("dev.txt", gzip.compress(text.encode()) if packed else text)
    assert refused(name).startswith(f"dev.txt:{line}: ")


def test_contradicting_speakers(refused, file):
    name = file("utt2spk", "utt1 ann\nutt2 bob\nutt3 bob\nutt1 bob\n")
    assert refused(name, "--from", "utt2spk").startswith("utt2spk:4: ")


def test_the_broken_line_is_named_in_a_large_file_too(refused, file):
    lines = [f"e{i} t{i} {i / 7:.4f}" for i in range(20_000)]
    lines[16_000] = "e16000 t16000 oops"
    message = refused(file("big.scores", "\n".join(lines) + "\n"))
    assert message.startswith("big.scores:16001: ")
    assert "'oops'" in message


def test_a_broken_line_of_standard_input_is_named(cli):
    result = cli("info", "-", input="ann utt1 4.2\nann utt2 high\n")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: <stdin>:2: ")


def test_missing_file(refused):
    assert refused("nowhere.scores") == "nowhere.scores: there is no such file; check the name"


@pytest.mark.parametrize("content", [b"", b"\n \n\n", gzip.compress(b"")], ids=["empty", "blank", "gzip"])
def test_empty_file(refused, file, content):
    assert refused(file("dev.scores", content)).startswith("dev.scores: ")


def test_directory(refused, tmp_path):
    (tmp_path / "folder").mkdir()
    assert refused("folder") == "folder: this is a directory, but a file is expected"


def test_no_permission(refused, file, tmp_path, monkeypatch):
    (tmp_path / file("dev.scores", GOOD)).chmod(0)
    if os.geteuid() == 0:  # root may read everything, so the operating system's answer is played
        really_open = open

        def forbidden(path, *arguments, **options):
            if str(path) == "dev.scores":
                raise PermissionError(13, "Permission denied")
            return really_open(path, *arguments, **options)

        monkeypatch.setattr("builtins.open", forbidden)
    assert refused("dev.scores") == "dev.scores: no permission to read it; change its mode or owner"


def test_truncated_gzip(refused, file):
    whole = gzip.compress("".join(f"e{i} t{i} {i / 7:.5f}\n" for i in range(5000)).encode())
    assert "cut off or damaged" in refused(file("dev.scores.gz", whole[: len(whole) // 2]))


def test_truncated_hdf5(refused, tmp_path):
    write(ScoreMatrix(np.ones((50, 60)), np.arange(50), np.arange(60)), tmp_path / "dev.h5")
    whole = (tmp_path / "dev.h5").read_bytes()
    (tmp_path / "dev.h5").write_bytes(whole[: len(whole) // 2])
    assert refused("dev.h5").startswith("dev.h5")


def test_hdf5_of_something_else(refused, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["weights"] = np.ones((2, 2, 2))
    assert refused("other.h5").startswith("other.h5")


def test_truncated_ark(refused, tmp_path):
    kaldiio.save_ark(str(tmp_path / "x.ark"), {f"u{i}": np.ones(20, np.float32) for i in range(5)})
    whole = (tmp_path / "x.ark").read_bytes()
    (tmp_path / "x.ark").write_bytes(whole[:-10])
    assert refused("x.ark").startswith("x.ark")


def test_truncated_npz(refused, tmp_path):
    write(ScoreMatrix(np.ones((50, 60)), np.arange(50), np.arange(60)), tmp_path / "dev.npz")
    whole = (tmp_path / "dev.npz").read_bytes()
    (tmp_path / "dev.npz").write_bytes(whole[: len(whole) // 2])
    assert refused("dev.npz").startswith("dev.npz")


def test_binary_garbage(refused, file):
    rng = np.random.default_rng(0)
    assert refused(file("dev.scores", rng.bytes(4096))).startswith("dev.scores")


def test_invalid_utf8(refused, file):
    assert refused(file("dev.scores", b"ann utt1 4.2\n\xff\xfe utt2 1.0\n")).startswith("dev.scores:2: ")


def test_a_line_without_end(refused, file):
    assert refused(file("dev.scores", b"x" * 40_000_000)).startswith("dev.scores:1: ")


def test_crlf_bom_and_windows_paths_are_fine(cli, file, tmp_path):
    file("dev.scores", "\ufeffC:\\eval\\ann.wav D:\\utt1.wav 4.2\r\nC:\\eval\\bob.wav D:\\utt1.wav -1.5\r\n".encode())
    result = cli("convert", "dev.scores", "out.npz")
    assert result.exit_code == 0, result.stderr
    table = read(tmp_path / "out.npz")
    assert table.enroll_ids.tolist() == [r"C:\eval\ann.wav", r"C:\eval\bob.wav"]
    assert table.scores.tolist() == [4.2, -1.5]


def test_a_broken_key_is_named(cli, file):
    file("dev.trials", KEY.replace("bob utt1 nontarget", "bob utt1 maybe"))
    result = cli("convert", file("dev.scores", GOOD), "out.csv", "--key", "dev.trials")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: dev.trials:3: ")


OUTPUTS = {
    "directory that is not there": ("nowhere/out.npz", "its directory does not exist"),
    "directory instead of a file": ("folder", "this is a directory"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_outputs_that_cannot_be_written(cli, file, tmp_path, case):
    (tmp_path / "folder").mkdir()
    name, problem = OUTPUTS[case]
    result = cli("convert", file("dev.scores", GOOD), name)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {name}: {problem}")
    assert sorted(os.listdir(tmp_path)) == ["dev.scores", "folder"]


def test_a_full_disk_leaves_the_old_file_alone(cli, file, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    file("out.npz", "precious")
    monkeypatch.setattr(os, "fsync", full)
    result = cli("convert", file("dev.scores", GOOD), "out.npz")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: out.npz: the disk is full; nothing was written")
    assert sorted(os.listdir(tmp_path)) == ["dev.scores", "out.npz"]
    assert (tmp_path / "out.npz").read_text() == "precious"


@pytest.fixture
def small_files():
    """Let no file grow beyond 10 kB; Python ignores the signal, so that writing fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextlib.contextmanager
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.mark.parametrize("name", ["out.scores", "out.scores.gz", "out.csv", "out.npz", "out.parquet"])
def test_a_file_that_may_not_grow_leaves_nothing_behind(cli, tmp_path, small_files, name):
    """The real thing, as far as an ordinary user can have it."""
    rng = np.random.default_rng(1)
    write(ScoreMatrix(rng.normal(size=(200, 200)), np.arange(200), np.arange(200)), tmp_path / "in.npz")
    with small_files():
        run = cli("convert", "in.npz", name)
    assert run.exit_code == 2, run.output
    assert re.fullmatch(rf"error: {name}: [^\n]+\n", run.stderr)
    assert os.listdir(tmp_path) == ["in.npz"]


REPAIRS = {
    "missing": ("ann u1 1.5 target\nann u2 nan nontarget\nbob u1 0.5 nontarget\nbob u3 2.5 target\n", "--missing skip"),
    "duplicates": ("ann u1 1 target\nann u2 0 nontarget\nann u1 1 target\n", "--duplicates drop"),
    "score column": ("enroll,test,dots,label\nann,u1,1,target\nann,u2,0,nontarget\n", "--score-column NAME"),
    "format": ("ann u1 1 0\nann u2 0 1\n", "--from NAME"),
}


@pytest.mark.parametrize("case", REPAIRS)
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_a_command_says_how_convert_mends_a_file(cli, file, case, piped):
    text, repair = REPAIRS[case]
    name = file("dev.txt", text)
    said = cli("evaluate", name)
    assert said.exit_code == 2
    assert f"mend it with 'evenscore convert {repair} IN OUT'" in said.stderr
    option, value = repair.split()
    value = {"--score-column": "dots", "--from": "speechbrain"}.get(option, value)
    read = {"input": text} if piped else {}
    assert cli("convert", option, value, "-" if piped else name, "mended.npz", **read).exit_code == 0
    assert cli("evaluate", "mended.npz").exit_code == 0


def test_convert_gives_ids_to_vectors(cli, file, tmp_path):
    np.save("x.npy", np.eye(2))
    said = cli("plda", "x.npy", "-o", "p.json")
    assert "mend it with 'evenscore convert --ids FILE IN OUT'" in said.stderr
    assert cli("convert", "--ids", file("names", "a\nb\n"), "x.npy", "x.npz").exit_code == 0
    assert read_embeddings("x.npz").ids.tolist() == ["a", "b"]


@pytest.mark.parametrize("option", ["--missing", "--duplicates", "--score-column", "--from", "--key-from"])
def test_repairs_of_earlier_versions_are_told_where_they_went(cli, option):
    said = cli("evaluate", "dev.scores", option, "skip")
    assert said.exit_code == 2
    assert "evenscore convert" in said.stderr
