"""The installed program, as a shell sees it."""

import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EVENSCORE = Path(sys.executable).parent / "evenscore"
SCORES = "ann utt1 4.2\nann utt2 -1.5\nbob utt1 -0.7\n"

pytestmark = pytest.mark.skipif(not EVENSCORE.exists(), reason="the program is not installed beside this Python")


def evenscore(*arguments, cwd, input=None, **environment):
    return subprocess.run(
        [EVENSCORE, *arguments],
        cwd=cwd,
        input=input,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=120,
    )


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["formats"], 0), (["info", "nowhere"], 2), (["nonsense"], 2)]
)
def test_exit_codes(tmp_path, arguments, code):
    assert evenscore(*arguments, cwd=tmp_path).returncode == code


def test_pipes_and_gzip(tmp_path):
    (tmp_path / "dev.scores").write_text(SCORES)
    assert evenscore("convert", "dev.scores", "dev.gz", cwd=tmp_path).returncode == 0
    packed = (tmp_path / "dev.gz").read_bytes()
    assert gzip.decompress(packed).decode() == SCORES
    for data in (SCORES.encode(), packed):
        run = evenscore("convert", "-", "-", "--to", "kaldi", cwd=tmp_path, input=data)
        assert (run.returncode, run.stderr) == (0, b"")
        assert run.stdout.decode() == SCORES


def test_nothing_but_json_on_standard_output(tmp_path):
    run = evenscore("info", "-", "--json", cwd=tmp_path, input=b"ann utt1 1.0\nann utt2 high\n")
    assert (run.returncode, run.stdout) == (2, b"")
    assert run.stderr.count(b"\n") == 1


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("command", [["convert", "big.scores", "-"], ["info", *["small.scores"] * 400]])
def test_a_closed_pipe_is_no_failure_to_talk_about(tmp_path, command, unbuffered):
    (tmp_path / "big.scores").write_text("".join(f"e{i} t{i} {i}.5\n" for i in range(200_000)))
    (tmp_path / "small.scores").write_text(SCORES)
    program = subprocess.Popen(
        [EVENSCORE, *command],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
    )
    program.stdout.read(10)
    program.stdout.close()
    complaint = program.stderr.read()
    program.stderr.close()
    assert program.wait(timeout=60) == 141
    assert complaint == b""


def test_ctrl_c_stops_quietly_and_leaves_nothing_behind(tmp_path):
    program = subprocess.Popen(
        [EVENSCORE, "convert", "-", "out.npz"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    time.sleep(2.0)  # it has started, and now waits for input that never comes
    program.send_signal(signal.SIGINT)
    out, complaint = program.communicate(timeout=60)
    assert (program.returncode, out, complaint) == (130, b"", b"")
    assert os.listdir(tmp_path) == []


def test_ids_that_the_terminal_cannot_show_do_not_stop_the_work(tmp_path):
    (tmp_path / "dev.scores").write_text("sǿren 日本語 4.2\nsǿren SǾREN 1.0\n", encoding="utf-8")
    run = evenscore("info", "dev.scores", cwd=tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    assert (run.returncode, run.stderr) == (0, b"")
    assert b"s\\u01ffren" in run.stdout


@pytest.mark.parametrize(
    ("line", "found"), [("evenscore inf", b"info"), ("evenscore convert a b --to kald", b"kaldi-ark")]
)
def test_the_shell_completes_commands_and_formats(tmp_path, line, found):
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    assert found in evenscore(cwd=tmp_path, _EVENSCORE_COMPLETE="complete_bash", **words).stdout.split()


def test_python_m(tmp_path):
    run = subprocess.run([sys.executable, "-m", "evenscore", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout.startswith("evenscore ")
