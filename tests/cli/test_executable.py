"""The installed program, as a shell sees it: pipes, signals, exit codes; all else is tested without a process."""

import contextlib
import fcntl
import gzip
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

EVENSCORE = Path(sys.executable).parent / "evenscore"
SCORES = "ann utt1 4.2\nann utt2 -1.5\nbob utt1 -0.7\n"

pytestmark = pytest.mark.skipif(not EVENSCORE.exists(), reason="needs the program beside this Python: pip install .")


def evenscore(*arguments, cwd, input=None, **environment):
    return subprocess.run(
        [EVENSCORE, *arguments],
        cwd=cwd,
        input=input,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=120,
    )


def test_pipes(tmp_path):
    run = evenscore("convert", "-", "-", "--to", "kaldi", cwd=tmp_path, input=gzip.compress(SCORES.encode()))
    assert (run.returncode, run.stdout.decode(), run.stderr) == (0, SCORES, b"")


def test_bad_input_is_an_exit_code_and_one_line_and_nothing_for_the_next_program(tmp_path):
    run = evenscore("info", "-", "--json", cwd=tmp_path, input=b"ann utt1 1.0\nann utt2 high\n")
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.count(b"\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["convert", "big.scores", "-"], ["info", "small.scores"]])
def test_a_closed_pipe_is_no_failure_to_talk_about(tmp_path, command, unbuffered):
    (tmp_path / "big.scores").write_text("".join(f"e{i} t{i} {i}.5\n" for i in range(20_000)))  # no pipe holds that
    (tmp_path / "small.scores").write_text(SCORES)
    reader, writer = os.pipe()
    program = subprocess.Popen(
        [EVENSCORE, *command],
        cwd=tmp_path,
        stdout=writer,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    os.close(writer)
    if command[0] == "convert":
        os.read(reader, 10)  # the rest is half-way in the pipe
    os.close(reader)
    complaint = program.stderr.read()
    program.stderr.close()
    assert program.wait(timeout=60) == 141
    assert complaint == b""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_tables_know_how_wide_the_terminal_is(tmp_path, unbuffered):
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 133, 0, 0))
    settings = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    program = subprocess.Popen(
        [EVENSCORE, "formats"], cwd=tmp_path, stdout=writer, env={**settings, "PYTHONUNBUFFERED": unbuffered}
    )
    os.close(writer)
    printed = b""
    with contextlib.suppress(OSError):  # which is how a terminal ends
        while piece := os.read(reader, 4096):
            printed += piece
    os.close(reader)
    assert program.wait(timeout=60) == 0
    assert 100 < max(map(len, printed.decode().splitlines())) <= 133


def test_ctrl_c_stops_quietly_and_leaves_nothing_behind(tmp_path):
    program = subprocess.Popen(
        [EVENSCORE, "convert", "-", "out.npz"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    program.stdin.write(SCORES.encode() * 10_000)  # more than a pipe holds: it has started to read,
    program.stdin.flush()  # and now waits for the end, which never comes
    program.send_signal(signal.SIGINT)
    out, complaint = program.communicate(timeout=60)
    assert (program.returncode, out, complaint) == (130, b"", b"")
    assert os.listdir(tmp_path) == []


def test_ids_that_the_terminal_cannot_show_do_not_stop_the_work(tmp_path):
    (tmp_path / "dev.scores").write_text("sǿren 日本語 4.2\nsǿren SǾREN 1.0\n", encoding="utf-8")
    run = evenscore("info", "dev.scores", cwd=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"s\\u01ffren" in run.stdout


def test_python_m():
    run = subprocess.run([sys.executable, "-m", "evenscore", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("evenscore ")
